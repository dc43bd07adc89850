use super::*;
use crate::config::topic::Overrides;

const ID: Uuid = duolog_log_core::ids::TopicId([1; 16]);

fn asked(interval_ms: i32) -> Arc<Subscriptions> {
    let values = Overrides::from([
        ("metrics".to_owned(), "a.".to_owned()),
        ("interval.ms".to_owned(), interval_ms.to_string()),
    ]);
    Arc::new(Subscriptions::resolve([("s", &values)].into_iter()))
}

/// One client, asked by `asked`.
struct Bench {
    clients: Clients,
    asked: Arc<Subscriptions>,
}

impl Bench {
    fn new() -> Self {
        Self { clients: Clients::default(), asked: asked(1000) }
    }

    fn get(&mut self, now: i64) -> Result<Got, Refusal> {
        self.clients.know(&self.asked, ID, Attributes::new(), now);
        self.clients.get(ID, now)
    }

    fn push(&mut self, now: i64, change: impl FnOnce(&mut Push)) -> Result<i32, Refusal> {
        self.clients.know(&self.asked, ID, Attributes::new(), now);
        let subscription = self.clients.all[&ID].got.subscription;
        let metrics = bytes::Bytes::from_static(b"12345");
        let mut push =
            Push { client: ID, subscription, terminating: false, compression: 0, metrics };
        change(&mut push);
        self.clients.push(&push, 5, now)
    }
}

#[test]
fn gets_and_pushes_come_no_more_often_than_asked() {
    let mut bench = Bench::new();
    assert_eq!(bench.get(5).expect("told").metrics, ["a."]);
    assert_eq!(bench.get(1004), Err(Refusal::TooEarly));
    assert_eq!(bench.push(6, |_| {}), Ok(1000), "the first after a get is in time");
    assert_eq!(bench.push(1005, |_| {}), Err(Refusal::TooEarly));
    assert_eq!(bench.push(1006, |_| {}), Ok(1000));
    assert_eq!(bench.get(2005), Err(Refusal::TooEarly), "a push counts too");
    assert!(bench.get(2006).is_ok());
}

#[test]
fn a_terminating_push_is_taken_early_and_is_the_last() {
    let mut bench = Bench::new();
    bench.get(0).expect("told");
    assert_eq!(bench.push(1, |_| {}), Ok(1000));
    assert_eq!(bench.push(2, |push| push.terminating = true), Ok(1000));
    assert_eq!(bench.push(5000, |_| {}), Err(Refusal::Terminated));
    assert_eq!(bench.push(9000, |_| {}), Ok(1000), "it was not the last after all");
}

#[test]
fn what_was_not_asked_for_or_is_too_large_is_refused() {
    let mut bench = Bench::new();
    let mut refused = |now, change: fn(&mut Push)| bench.push(now, change).expect_err("refused");
    assert_eq!(refused(0, |push| push.subscription += 1), Refusal::UnknownSubscription);
    assert_eq!(refused(1000, |push| push.compression = 5), Refusal::UnsupportedCompression);
    assert_eq!(refused(2000, |push| push.compression = -1), Refusal::UnsupportedCompression);
    let large = |push: &mut Push| push.metrics = bytes::Bytes::from_static(b"123456");
    assert_eq!(refused(3000, large), Refusal::TooLarge);
}

#[test]
fn other_settings_are_told_at_once_and_old_subscriptions_refused() {
    let mut bench = Bench::new();
    let first = bench.get(0).expect("told");
    bench.asked = asked(500);
    let second = bench.get(1).expect("told at once");
    assert_ne!(first.subscription, second.subscription);
    assert_eq!(second.interval_ms, 500);
    let old = bench.push(2, |push| push.subscription = first.subscription);
    assert_eq!(old, Err(Refusal::UnknownSubscription));
    assert!(bench.get(3).is_ok(), "who was refused so may ask at once");
    assert_eq!(bench.get(4).err(), Some(Refusal::TooEarly));
    bench.clients.forget(ID);
    assert!(bench.get(5).is_ok(), "a client that came again");
}

#[test]
fn who_was_refused_for_what_a_get_mends_may_ask_at_once() {
    let mut bench = Bench::new();
    bench.get(0).expect("told");
    assert_eq!(bench.push(0, |_| {}), Ok(1000));
    assert_eq!(bench.push(1000, |push| push.subscription += 1), Err(Refusal::UnknownSubscription));
    assert!(bench.get(1001).is_ok());
    assert_eq!(bench.get(1002).err(), Some(Refusal::TooEarly), "once");
    assert_eq!(bench.push(1003, |_| {}), Err(Refusal::TooEarly), "as in Kafka");
    assert_eq!(bench.push(2000, |_| {}), Ok(1000));
}

#[test]
fn clients_are_so_many_at_most() {
    let mut bench = Bench::new();
    bench.get(0).expect("told");
    for number in 0..TELEMETRY_CLIENTS_MAX {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&number.to_be_bytes());
        bench.clients.know(&bench.asked, duolog_log_core::ids::TopicId(id), Attributes::new(), 1);
    }
    assert_eq!(bench.clients.all.len(), TELEMETRY_CLIENTS_MAX);
    assert_eq!(bench.clients.by_use.len(), TELEMETRY_CLIENTS_MAX);
    assert!(!bench.clients.all.contains_key(&ID), "the one that was heard of first");
}
