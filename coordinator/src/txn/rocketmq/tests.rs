//! Half messages through the runtime, and a crash at every record of random runs.

use std::collections::BTreeMap;

use bytes::Bytes;
use duolog_log_core::ids::{Offset, TopicPartition};
use duolog_log_core::producers::DeliveryPosition;
use proptest::prelude::*;

use super::check_back::{CheckConfig, Verdict};
use super::error::HalfError;
use super::event::*;
use super::shard::HalfShard;
use crate::delivery::{Delivers, StoredMessage};
use crate::error::AppendError;
use crate::record::half::{HalfMessage, Immunity};
use crate::shard::RecordBytes;
use crate::testing::{BEGIN, Driven};
use crate::time::Now;

type Answer = Result<Response, HalfError>;

/// What a target has: the position of each message, and its payload.
type Queues = BTreeMap<TopicPartition, Vec<(DeliveryPosition, Bytes)>>;

/// Beside it what was carried: what is noted waits until [`Self::carry`].
type Bench = Driven<HalfShard, Queues>;

impl Bench {
    fn new() -> Self {
        Self::on(Vec::new(), Queues::new(), BEGIN)
    }

    /// A coordinator that has just read `log`.
    fn on(log: Vec<RecordBytes>, queues: Queues, now: Now) -> Self {
        Self::loaded(HalfShard::new(CheckConfig::default()), log, now, queues)
    }

    /// Targets that something is to be carried to.
    fn told(&self) -> Vec<&TopicPartition> {
        let targets = self.notices.iter().filter_map(|notice| match notice {
            Notice::Deliver(target) => Some(target),
            _ => None,
        });
        targets.collect()
    }

    fn rounds(&self) -> usize {
        self.notices.iter().filter(|notice| matches!(notice, Notice::Round)).count()
    }

    fn trimmed(&self) -> i64 {
        let mut trims = self.notices.iter().rev().filter_map(|notice| match notice {
            Notice::Trim(offset) => Some(offset.0),
            _ => None,
        });
        trims.next().unwrap_or(0)
    }

    fn store(&mut self, payload: &str) -> Result<Offset, HalfError> {
        let half = self.half(payload);
        let key = Key::New(self.requests);
        match self.request(Event::Store { key, half })? {
            Response::Stored(offset) => Ok(offset),
            other => panic!("{other:?}"),
        }
    }

    fn half(&self, payload: &str) -> HalfMessage {
        let payload = Bytes::copy_from_slice(payload.as_bytes());
        HalfMessage {
            target: queue(i32::try_from(payload.len()).expect("short") % 2),
            group: "p".into(),
            client: "c".into(),
            immunity: Immunity::Default,
            born_ms: self.now.wall_ms,
            message: StoredMessage { timestamp_ms: self.now.wall_ms, payload },
        }
    }

    fn end(&mut self, half: Offset, ending: Ending) -> Result<bool, HalfError> {
        match self.request(Event::End { key: Key::Half(half), ending })? {
            Response::Ended { now } => Ok(now),
            other => panic!("{other:?}"),
        }
    }

    fn due(&mut self) -> Vec<Due> {
        match self.request(Event::Due { after: Offset(-1), count: usize::MAX }) {
            Ok(Response::Due(due)) => due,
            other => panic!("{other:?}"),
        }
    }

    fn check(&mut self, half: Offset) -> Result<Option<i32>, HalfError> {
        match self.request(Event::Check { key: Key::Half(half) })? {
            Response::Checked(times) => Ok(times),
            other => panic!("{other:?}"),
        }
    }

    fn give_up(&mut self, half: Offset, payload: &str) -> Answer {
        let payload = Bytes::copy_from_slice(payload.as_bytes());
        let message = StoredMessage { timestamp_ms: 1, payload };
        self.request(Event::GiveUp { key: Key::Half(half), target: lost(), message })
    }

    /// Appends what is noted to its targets, each message at its position, once.
    fn carry(&mut self) {
        let targets: Vec<_> = self.runtime.shard().deliveries().targets().cloned().collect();
        for target in targets {
            let notes = self.runtime.shard().deliveries().open(&target, Offset(-1), usize::MAX);
            let queue = self.more.entry(target.clone()).or_default();
            for note in &notes {
                for (place, noted) in note.messages.iter().enumerate() {
                    let position = DeliveryPosition::new(note.at, place).expect("a short log");
                    if queue.last().is_some_and(|(last, _)| position <= *last) {
                        continue;
                    }
                    let record = &self.log[noted.offset.0 as usize];
                    let value = record.value.as_ref().expect("a value");
                    let message = HalfShard::message(&record.key, value).expect("a message");
                    queue.push((position, message.payload));
                }
            }
        }
    }

    /// Says that all that was carried is there.
    fn confirm(&mut self) {
        let open = |shard: &HalfShard| {
            let deliveries = shard.deliveries();
            let all = deliveries.targets().map(|target| {
                let notes = deliveries.open(target, Offset(-1), usize::MAX);
                (target.clone(), notes.last().expect("an open note").at)
            });
            all.collect::<Vec<_>>()
        };
        for (target, through) in open(self.runtime.shard()) {
            let event = HalfShard::done(target, through);
            let _ = self.request(event);
        }
    }

    fn seen(&self) -> Vec<&str> {
        let payloads = self.more.values().flatten();
        payloads.map(|(_, payload)| std::str::from_utf8(payload).expect("text")).collect()
    }

    fn open(&self) -> Vec<(i64, i32)> {
        self.runtime.shard().open().map(|half| (half.offset.0, half.times)).collect()
    }
}

fn queue(partition: i32) -> TopicPartition {
    TopicPartition::new("orders", partition)
}

fn lost() -> TopicPartition {
    TopicPartition::new("lost", 0)
}

#[test]
fn a_committed_message_is_delivered_and_a_rolled_back_one_is_not() {
    let mut bench = Bench::new();
    let first = bench.store("a").expect("stored");
    let second = bench.store("b").expect("stored");
    assert_eq!(bench.open(), [(first.0, 0), (second.0, 0)]);
    assert_eq!(bench.end(first, Ending::Commit(queue(1))), Ok(true));
    assert_eq!(bench.told(), [&queue(1)]);
    assert_eq!(bench.end(second, Ending::Rollback), Ok(true));
    assert_eq!(bench.open(), []);
    bench.carry();
    bench.confirm();
    assert_eq!(bench.seen(), ["a"]);
    assert_eq!(bench.runtime.shard().deliveries().message_count(), 0);
}

#[test]
fn the_first_word_counts_and_what_is_unknown_is_answered() {
    let mut bench = Bench::new();
    let half = bench.store("a").expect("stored");
    assert_eq!(bench.end(half, Ending::Commit(queue(0))), Ok(true));
    let stored = bench.log.len();
    for ending in [Ending::Commit(queue(0)), Ending::Rollback] {
        assert_eq!(bench.end(half, ending.clone()), Ok(false));
        assert_eq!(bench.end(Offset(77), ending), Ok(false));
    }
    assert_eq!(bench.check(half), Ok(None));
    assert_eq!(bench.give_up(half, "x"), Ok(Response::Ended { now: false }));
    assert_eq!(bench.log.len(), stored, "and nothing more is stored");
    bench.carry();
    assert_eq!(bench.seen(), ["a"]);
}

#[test]
fn a_round_is_called_every_thirty_seconds_while_anything_is_open() {
    let mut bench = Bench::new();
    bench.pass(60_000);
    assert_eq!(bench.rounds(), 0, "nothing is open");
    let half = bench.store("a").expect("stored");
    bench.pass(29_999);
    assert_eq!(bench.rounds(), 0);
    bench.pass(1);
    assert_eq!(bench.rounds(), 1);
    let due = Due { half, times: 0, verdict: Verdict::Ask };
    assert_eq!(bench.due(), [due]);
    assert_eq!(bench.check(half), Ok(Some(1)));
    bench.pass(30_000);
    assert_eq!((bench.rounds(), bench.due()), (2, vec![Due { times: 1, ..due }]));
    // A restart begins to count anew, and knows how often it has asked.
    bench = Bench::on(bench.log, bench.more, bench.now);
    bench.pass(30_000);
    assert_eq!((bench.rounds(), bench.due()), (1, vec![Due { times: 1, ..due }]));
    for times in 2..=15 {
        assert_eq!(bench.check(half), Ok(Some(times)));
    }
    assert_eq!(bench.due(), [Due { half, times: 15, verdict: Verdict::AskedTooOften }]);
    assert_eq!(bench.give_up(half, "given up"), Ok(Response::Ended { now: true }));
    bench.carry();
    bench.confirm();
    assert_eq!(bench.seen(), ["given up"]);
    assert!(bench.due().is_empty());
    bench.pass(30_000);
    bench.pass(30_000);
    assert_eq!(bench.rounds(), 1, "nothing is open any more");
}

#[test]
fn what_the_log_refuses_has_not_happened() {
    let mut bench = Bench::new();
    let fail = Some(AppendError::NotEnoughReplicas);
    bench.failure = fail;
    assert_eq!(bench.store("a"), Err(HalfError::NotAvailable));
    let half = bench.store("b").expect("stored");
    for ending in [Ending::Commit(queue(0)), Ending::Rollback] {
        bench.failure = fail;
        assert_eq!(bench.end(half, ending), Err(HalfError::NotAvailable));
        assert_eq!(bench.open(), [(half.0, 0)]);
    }
    bench.failure = fail;
    assert_eq!(bench.check(half), Err(HalfError::NotAvailable));
    bench.failure = fail;
    assert_eq!(bench.give_up(half, "x"), Err(HalfError::NotAvailable));
    assert_eq!((bench.open(), bench.told().len()), (vec![(half.0, 0)], 0));
    assert_eq!(bench.end(half, Ending::Commit(queue(0))), Ok(true));
}

#[test]
fn the_logs_start_follows_the_first_open_message() {
    let mut bench = Bench::new();
    let open = bench.store("open").expect("stored");
    for _ in 0..4_096 {
        let half = bench.store("x").expect("stored");
        assert_eq!(bench.end(half, Ending::Rollback), Ok(true));
    }
    assert_eq!(bench.trimmed(), 0, "the first is open");
    assert_eq!(bench.end(open, Ending::Commit(queue(0))), Ok(true));
    assert_eq!(bench.trimmed(), 0, "and on its way");
    bench.carry();
    bench.confirm();
    assert_eq!(bench.trimmed(), bench.log.len() as i64);
}

#[derive(Clone, Debug)]
enum Act {
    Store,
    End(usize, bool),
    Check(usize),
    GiveUp(usize),
    Carry,
    Confirm,
    Pass(i64),
    Fail,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => Just(Act::Store),
        4 => (0..12_usize, any::<bool>()).prop_map(|(half, commit)| Act::End(half, commit)),
        2 => (0..12_usize).prop_map(Act::Check),
        1 => (0..12_usize).prop_map(Act::GiveUp),
        2 => Just(Act::Carry),
        2 => Just(Act::Confirm),
        1 => (0..40_000_i64).prop_map(Act::Pass),
        1 => Just(Act::Fail),
    ]
}

/// A bench, and what its clients were told.
struct World {
    bench: Bench,
    /// Of each message where it stands; its payload is its number.
    halves: Vec<Offset>,
    /// What was decided first, as answered.
    ended: BTreeMap<usize, bool>,
    given_up: BTreeMap<usize, bool>,
}

impl World {
    fn perform(&mut self, act: Act) {
        match act {
            Act::Store => {
                let payload = self.halves.len().to_string();
                if let Ok(offset) = self.bench.store(&payload) {
                    self.halves.push(offset);
                }
            }
            Act::End(number, commit) => {
                let Some(half) = self.halves.get(number).copied() else { return };
                let ending = if commit { Ending::Commit(queue(0)) } else { Ending::Rollback };
                if self.bench.end(half, ending) == Ok(true) {
                    assert!(self.ended.insert(number, commit).is_none(), "decided once");
                }
            }
            Act::Check(number) => {
                let Some(half) = self.halves.get(number).copied() else { return };
                let _ = self.bench.check(half);
            }
            Act::GiveUp(number) => {
                let Some(half) = self.halves.get(number).copied() else { return };
                let answer = self.bench.give_up(half, &format!("lost {number}"));
                if answer == Ok(Response::Ended { now: true }) {
                    assert!(self.given_up.insert(number, true).is_none(), "given up once");
                }
            }
            Act::Carry => self.bench.carry(),
            Act::Confirm => {
                // Nothing is said to be there that is not.
                self.bench.carry();
                self.bench.confirm();
            }
            Act::Pass(ms) => {
                self.bench.pass(ms);
            }
            Act::Fail => self.bench.failure = Some(AppendError::NotEnoughReplicas),
        }
    }

    /// What everybody must see in the end, of what was answered.
    fn expected(&self) -> Vec<String> {
        let committed = self.ended.iter().filter(|(_, commit)| **commit);
        let committed = committed.map(|(number, _)| number.to_string());
        let given_up = self.given_up.keys().map(|number| format!("lost {number}"));
        let mut expected: Vec<_> = committed.chain(given_up).collect();
        expected.sort();
        expected
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn replay_equals_live_and_each_message_is_seen_as_it_was_decided(
        acts in prop::collection::vec(act(), 1..80),
    ) {
        let mut world = World {
            bench: Bench::new(),
            halves: Vec::new(),
            ended: BTreeMap::new(),
            given_up: BTreeMap::new(),
        };
        // Every state that a crash may leave: the log, and what the targets have by then.
        let mut crashes = vec![(0, Queues::new())];
        for act in acts {
            let before = world.bench.log.len();
            world.perform(act);
            let bench = &world.bench;
            let ends = (before + 1..=bench.log.len()).chain([bench.log.len()]);
            crashes.extend(ends.map(|end| (end, bench.more.clone())));
            let twin = Bench::on(bench.log.clone(), bench.more.clone(), bench.now);
            prop_assert_eq!(twin.open(), bench.open());
            let (twin, live) = (twin.runtime.shard().deliveries(), bench.runtime.shard().deliveries());
            prop_assert_eq!(twin, live);
        }
        let expected = world.expected();
        let (log, now) = (world.bench.log.clone(), world.bench.now);
        for (end, queues) in crashes {
            let mut crashed = Bench::on(log[..end].to_vec(), queues, now);
            crashed.carry();
            let before = crashed.seen().len();
            crashed.carry();
            crashed.confirm();
            prop_assert_eq!(crashed.seen().len(), before, "nothing comes twice");
            let mut seen: Vec<String> = crashed.seen().into_iter().map(str::to_owned).collect();
            seen.sort();
            let mut once = seen.clone();
            once.dedup();
            prop_assert_eq!(&once, &seen);
            prop_assert!(seen.iter().all(|one| expected.contains(one)), "{:?} {:?}", seen, expected);
            if end == log.len() {
                prop_assert_eq!(&seen, &expected);
            }
        }
    }
}
