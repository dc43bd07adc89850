use std::collections::BTreeMap;

use bytes::Bytes;
use duolog_log_core::ids::{Offset, TopicPartition};
use proptest::prelude::*;

use super::error::TimerError;
use super::event::{Event, Key, Notice, Response, Waiting};
use super::shard::TimerShard;
use crate::delivery::{Delivers, StoredMessage};
use crate::error::AppendError;
use crate::limits::ON_THEIR_WAY_MAX;
use crate::record::timer::{TimedMessage, TimerRecord};
use crate::runtime::Effect;
use crate::testing::{BEGIN, Driven};

type Answer = Result<Response, TimerError>;

/// What is noted stays open until [`Self::deliver`].
type Bench = Driven<TimerShard>;

impl Bench {
    fn new() -> Self {
        Self::loaded(TimerShard::new(), Vec::new(), BEGIN, ())
    }

    fn restarted(self) -> Self {
        Self::loaded(TimerShard::new(), self.log, self.now, ())
    }

    fn store(&mut self, topic: &str, due_ms: i64, name: &str) -> Answer {
        let key = Key::Message(self.requests);
        self.request(Event::Store { key, timed: timed(topic, due_ms, name) })
    }

    /// Delivers all that is noted for `topic`: the messages' names, in order.
    fn deliver(&mut self, topic: &str) -> Vec<String> {
        let target = target(topic);
        let notes = self.runtime.shard().deliveries().open(&target, Offset(-1), usize::MAX);
        let mut names = Vec::new();
        for note in &notes {
            for noted in note.messages.iter() {
                let record = &self.log[noted.offset.0 as usize];
                let value = record.value.as_ref().expect("a value");
                let message = TimerShard::message(&record.key, value).expect("a message");
                names.push(String::from_utf8(message.payload.to_vec()).unwrap());
            }
        }
        if let Some(last) = notes.last() {
            let done = self.request(TimerShard::done(target, last.at));
            assert_eq!(done, Ok(Response::Done));
        }
        names
    }

    fn waiting(&self) -> usize {
        self.runtime.shard().waiting_count()
    }
}

fn target(topic: &str) -> TopicPartition {
    TopicPartition::new(topic, 0)
}

fn timed(topic: &str, due_ms: i64, name: &str) -> TimedMessage {
    let payload = Bytes::copy_from_slice(name.as_bytes());
    let message = StoredMessage { timestamp_ms: 5, payload };
    TimedMessage { due_ms, target: target(topic), id: name.into(), message }
}

#[test]
fn messages_are_noted_when_they_are_due_in_the_order_of_their_times() {
    let mut bench = Bench::new();
    assert_eq!(bench.store("a", 1_000_300, "late"), Ok(Response::Stored(Offset(0))));
    assert_eq!(bench.store("a", 1_000_100, "early"), Ok(Response::Stored(Offset(1))));
    assert_eq!(bench.store("b", 1_000_100, "other"), Ok(Response::Stored(Offset(2))));
    assert!(!bench.pass(99), "nothing is early");
    assert_eq!(bench.notices, []);
    assert!(bench.pass(1));
    let told = [Notice::Deliver(target("a")), Notice::Deliver(target("b"))];
    assert_eq!(bench.notices, told);
    assert_eq!((bench.deliver("a"), bench.waiting()), (vec!["early".to_owned()], 1));
    assert_eq!(bench.deliver("b"), ["other"]);
    assert!(bench.pass(200));
    assert_eq!(bench.deliver("a"), ["late"]);
    assert_eq!(bench.runtime.next_deadline(), None, "an empty wheel costs no alarm");
}

#[test]
fn what_was_due_while_nothing_ran_is_noted_at_once_and_open_notes_are_told_again() {
    let mut bench = Bench::new();
    bench.store("a", 1_000_100, "one").unwrap();
    bench.store("a", 1_000_200, "two").unwrap();
    bench.pass(150);
    bench.now.wall_ms += 1_000;
    let mut bench = bench.restarted();
    assert_eq!(bench.notices, [Notice::Deliver(target("a"))], "of the open note");
    assert!(bench.pass(0));
    assert_eq!(bench.deliver("a"), ["one", "two"]);
    let bench = bench.restarted();
    assert_eq!((bench.notices, bench.runtime.shard().waiting_count()), (vec![], 0));
}

#[test]
fn a_clock_that_is_set_is_noticed_within_a_second() {
    let mut bench = Bench::new();
    bench.store("a", 1_000_000 + 3_600_000, "in an hour").unwrap();
    bench.now.wall_ms += 3_600_000;
    assert!(bench.pass(1_000));
    assert_eq!(bench.deliver("a"), ["in an hour"]);
}

#[test]
fn what_was_recalled_is_never_noted_and_what_is_gone_cannot_be_recalled() {
    let mut bench = Bench::new();
    for (due_ms, name) in [(1_000_100, "x"), (1_000_500, "x"), (1_000_100, "y")] {
        bench.store("a", due_ms, name).unwrap();
    }
    let find = |from_ms, to_ms| Event::Find { id: "x".into(), from_ms, to_ms };
    let first = Waiting { due_ms: 1_000_100, offset: Offset(0) };
    assert_eq!(bench.request(find(1_000_000, 1_000_500)), Ok(Response::Found(vec![first])));
    assert_eq!(bench.request(find(1_000_100, 1_000_100)), Ok(Response::Found(vec![])));
    assert_eq!(bench.request(Event::Recall(first)), Ok(Response::Recalled(true)));
    assert_eq!(bench.request(Event::Recall(first)), Ok(Response::Recalled(false)));
    let mut bench = bench.restarted();
    bench.pass(200);
    assert_eq!(bench.deliver("a"), ["y"]);
    let gone = Waiting { due_ms: 1_000_100, offset: Offset(2) };
    assert_eq!(bench.request(Event::Recall(gone)), Ok(Response::Recalled(false)));
    bench.pass(300);
    assert_eq!(bench.deliver("a"), ["x"]);
}

#[test]
fn what_the_log_refuses_is_answered_so_and_due_messages_are_noted_later() {
    let mut bench = Bench::new();
    bench.failure = Some(AppendError::TooLarge);
    assert_eq!(bench.store("a", 1_000_100, "large"), Err(TimerError::TooLarge));
    assert_eq!(bench.waiting(), 0);
    bench.store("a", 1_000_100, "small").unwrap();
    bench.failure = Some(AppendError::NotEnoughReplicas);
    bench.pass(100);
    assert_eq!((bench.notices.len(), bench.waiting()), (0, 1));
    assert!(bench.pass(1_000));
    assert_eq!(bench.deliver("a"), ["small"]);
}

#[test]
fn the_log_may_be_trimmed_up_to_the_first_message_that_is_needed() {
    let mut bench = Bench::new();
    for number in 0..6_000 {
        let due_ms = if number == 5_000 { 9_000_000 } else { 1_000_000 };
        bench.store("a", due_ms, &number.to_string()).unwrap();
    }
    while bench.pass(0) {}
    assert_eq!(bench.deliver("a").len(), 5_999);
    let trims: Vec<_> =
        bench.notices.iter().filter(|notice| matches!(notice, Notice::Trim(_))).collect();
    assert_eq!(trims, [&Notice::Trim(Offset(4_096))], "message 5000 is in the fifth thousand");
    bench.pass(8_000_000);
    assert_eq!(bench.deliver("a"), ["5000"]);
    assert_eq!(
        bench.notices.last(),
        Some(&Notice::Deliver(target("a"))),
        "too little to trim again"
    );
}

#[test]
fn a_step_notes_no_more_than_so_many_and_goes_on() {
    let mut bench = Bench::new();
    for number in 0..10_000 {
        bench.store("a", 1_000_000, &number.to_string()).unwrap();
    }
    while bench.pass(0) {}
    let names = bench.deliver("a");
    assert_eq!(names, (0..10_000).map(|number| number.to_string()).collect::<Vec<_>>());
}

#[test]
fn what_cannot_be_reached_keeps_nothing_else_waiting() {
    let mut bench = Bench::new();
    let count = ON_THEIR_WAY_MAX + 5;
    for number in 0..count {
        bench.store("full", 1_000_000 + number as i64, &number.to_string()).unwrap();
    }
    bench.pass(count as i64);
    while bench.pass(0) {}
    assert_eq!(bench.waiting(), 5, "held back");
    bench.store("full", 1_000_000, "held back at once").unwrap();
    bench.store("a", 1_000_000, "other").unwrap();
    while bench.pass(0) {}
    assert_eq!((bench.deliver("a"), bench.waiting()), (vec!["other".to_owned()], 6));
    let find = |id: &str| Event::Find { id: id.into(), from_ms: 0, to_ms: i64::MAX };
    let recalled = (count - 1).to_string();
    let Ok(Response::Found(found)) = bench.request(find(&recalled)) else { panic!("found") };
    assert_eq!(bench.request(Event::Recall(found[0])), Ok(Response::Recalled(true)));
    let mut first = bench.deliver("full");
    assert_eq!(first.len(), ON_THEIR_WAY_MAX);
    while bench.pass(0) {}
    let rest = bench.deliver("full");
    assert_eq!((rest.len(), &*rest[0], bench.waiting()), (5, "held back at once", 0));
    first.extend(rest.into_iter().skip(1));
    assert_eq!(first, (0..count - 1).map(|number| number.to_string()).collect::<Vec<_>>());
    assert_eq!(bench.runtime.next_deadline(), None, "nothing left to look for");
}

/// Room that is made while nothing is held back, and shows only once something is.
#[test]
fn what_is_held_back_while_room_is_being_made_is_not_forgotten() {
    let mut bench = Bench::new();
    for number in 0..ON_THEIR_WAY_MAX {
        bench.store("a", 1_000_000, &number.to_string()).unwrap();
    }
    bench.store("a", 1_000_500, "late").unwrap();
    while bench.pass(0) {}
    assert_eq!(bench.waiting(), 1);
    let notes = bench.runtime.shard().deliveries().open(&target("a"), Offset(-1), usize::MAX);
    let last = notes.last().expect("a note").at;
    bench.runtime.notify(TimerShard::done(target("a"), last), bench.now);
    let Some(Effect::Append { id, records, .. }) = bench.runtime.poll_effect() else {
        panic!("it is noted that all have arrived")
    };
    bench.pass(500);
    let base = Offset(bench.log.len() as i64);
    bench.log.extend(records);
    bench.runtime.appended(id, base, bench.now);
    bench.runtime.advance_high_watermark(Offset(bench.log.len() as i64));
    bench.perform();
    bench.pass_timers(1_000);
    assert_eq!((bench.deliver("a"), bench.waiting()), (vec!["late".to_owned()], 0));
    assert_eq!(bench.runtime.next_deadline(), None, "nothing left to look for");
}

#[test]
fn records_are_read_as_they_were_written_and_damaged_ones_are_refused() {
    let records = [
        TimerRecord::Timed { timed: timed("topic", -5, "payload"), number: None },
        TimerRecord::Recalled { due_ms: 7, offset: Offset(1 << 40) },
    ];
    for record in records {
        let bytes = record.encode().unwrap();
        let value = bytes.value.expect("a value");
        assert_eq!(TimerRecord::decode(&bytes.key, Some(&value)), Ok(Some(record)));
        for end in 0..value.len() {
            assert!(TimerRecord::decode(&bytes.key, Some(&value[..end])).is_err(), "{end}");
        }
        assert!(TimerRecord::decode(&bytes.key, None).is_err());
        assert!(TimerRecord::decode(&bytes.key[..5], Some(&value)).is_err());
    }
    assert_eq!(TimerRecord::decode(&[0, 3], Some(&[])), Ok(None));
}

#[derive(Clone, Debug)]
enum Step {
    Store(u8, i64),
    Pass(i64),
    Recall(u8),
    Deliver,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u8..3, 0_i64..500).prop_map(|(topic, delay)| Step::Store(topic, delay)),
        3 => (0_i64..200).prop_map(Step::Pass),
        1 => any::<u8>().prop_map(Step::Recall),
        2 => Just(Step::Deliver),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    /// Whatever is done in whatever order, each message that was not recalled is noted once and not
    /// before its time, and what a replay knows is what the live machine knew.
    #[test]
    fn each_message_is_noted_once(steps in prop::collection::vec(step(), 1..60)) {
        let mut bench = Bench::new();
        let mut stored: BTreeMap<String, (i64, Offset)> = BTreeMap::new();
        let mut recalled = Vec::new();
        let mut delivered = Vec::new();
        for step in steps.into_iter().chain([Step::Pass(1_000), Step::Deliver]) {
            match step {
                Step::Store(topic, delay_ms) => {
                    let (name, due_ms) = (stored.len().to_string(), bench.now.wall_ms + delay_ms);
                    let answer = bench.store(&topic.to_string(), due_ms, &name);
                    let Ok(Response::Stored(offset)) = answer else { panic!("{answer:?}") };
                    stored.insert(name, (due_ms, offset));
                }
                Step::Pass(ms) => _ = bench.pass(ms),
                Step::Recall(which) => {
                    let index = usize::from(which) % stored.len().max(1);
                    if let Some((name, (due_ms, offset))) = stored.iter().nth(index) {
                        let recall = Event::Recall(Waiting { due_ms: *due_ms, offset: *offset });
                        if bench.request(recall) == Ok(Response::Recalled(true)) {
                            recalled.push(name.clone());
                        }
                    }
                }
                Step::Deliver => {
                    for topic in 0..3 {
                        for name in bench.deliver(&topic.to_string()) {
                            prop_assert!(stored[&name].0 <= bench.now.wall_ms);
                            delivered.push(name);
                        }
                    }
                }
                Step::Restart => {
                    let live = bench.runtime.shard().deliveries().clone();
                    let waiting = bench.waiting();
                    bench = bench.restarted();
                    prop_assert_eq!(&live, bench.runtime.shard().deliveries());
                    prop_assert_eq!(waiting, bench.waiting());
                }
            }
        }
        let mut all: Vec<_> = recalled.into_iter().chain(delivered).collect();
        all.sort();
        prop_assert_eq!(all, stored.into_keys().collect::<Vec<_>>());
    }
}
