use super::*;
use crate::backend::SubscriptionGroup;
use crate::fake::{Client, FakeBackend};

/// All queues of t, for g.
fn all_of(backend: &FakeBackend, queues: i32) -> (Asked, Target) {
    let topic = backend.add_topic("t", queues);
    let group = SubscriptionGroup::with_defaults("g".into());
    let asked = Asked { group: "g".into(), name: "t".into(), queue_id: -1 };
    (asked, Target { topic, group: group.into() })
}

/// Each look takes a second and finds nothing, though the log goes on, for a hundred times.
#[derive(Default)]
struct Busy {
    looks: usize,
}

impl Look for Busy {
    async fn queue(&mut self, _queue_id: i32) -> Result<Wait, Refusal> {
        tokio::time::advance(Duration::from_secs(1)).await;
        self.looks += 1;
        Ok(if self.looks < 100 { Wait::Log(-1) } else { Wait::Ready })
    }

    fn is_done(&self) -> bool {
        false
    }

    fn has_found(&self) -> bool {
        false
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_ends_a_wait_though_each_look_finds_the_log_gone_on() {
    let backend = FakeBackend::new();
    let (asked, target) = all_of(&backend, 1);
    backend.write_tagged("t", 0, &[("A", "a")]);
    let shared = Client::new(backend).dispatcher.shared();
    let mut busy = Busy::default();
    let time = Some(Duration::from_secs(15));
    let ended = look(&shared, &asked, &target, time, &mut busy).await;
    assert_eq!((ended, busy.looks), (Ok(Ended::TimeUp), 15));
    let mut busy = Busy::default();
    let time = Some(Duration::from_millis(1));
    let ended = look(&shared, &asked, &target, time, &mut busy).await;
    assert_eq!((ended, busy.looks), (Ok(Ended::TimeUp), 1), "the first look is always had");
}

/// Which queues were looked at; there is nothing in any, but something the group has in hand in 2.
#[derive(Default)]
struct Empty {
    looked_at: Vec<i32>,
}

impl Look for Empty {
    async fn queue(&mut self, queue_id: i32) -> Result<Wait, Refusal> {
        let before = self.looked_at.iter().filter(|known| **known == queue_id).count();
        self.looked_at.push(queue_id);
        let next = i64::try_from(before).expect("few looks");
        Ok(if queue_id == 2 { Wait::Ready } else { Wait::Log(next) })
    }

    fn is_done(&self) -> bool {
        false
    }

    fn has_found(&self) -> bool {
        false
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_woken_looks_only_where_there_may_be_something() {
    let backend = FakeBackend::new();
    let (asked, target) = all_of(&backend, 4);
    let topic = target.topic.id;
    let client = Client::new(backend.clone());
    let shared = client.dispatcher.shared();
    let mut empty = Empty::default();
    let time = Some(Duration::from_secs(15));
    {
        let mut held = pin!(look(&shared, &asked, &target, time, &mut empty));
        let mut poll = || {
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(held.as_mut().poll(&mut context).is_pending());
        };
        poll();
        backend.write_tagged("t", 3, &[("A", "a")]);
        poll();
        client.dispatcher.pop_ready("g", topic, 2);
        client.dispatcher.pop_ready("g", topic, 7);
        poll();
        backend.write_tagged("t", 3, &[("A", "a")]);
        backend.write_tagged("t", 1, &[("A", "a")]);
        poll();
        poll();
        assert_eq!(held.await, Ok(Ended::TimeUp));
    }
    assert_eq!(empty.looked_at, [0, 1, 2, 3, 3, 2, 1, 3]);
}
