//! Messages in hand, through the runtime.

mod crash;
mod positions;
mod records;
mod room;
mod settled;
mod told;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use duolog_log_core::ids::{Offset, TopicId, TopicPartition};
use proptest::prelude::*;

use self::settled::set;
use super::error::InflightError;
use super::event::{Ask, Event, Fresh, Key, Notice, Order, Plan, Response, Take};
use super::shard::InflightShard;
use super::window::Window;
use crate::delivery::{Delivers, StoredMessage};
use crate::error::AppendError;
use crate::group::event::OwnPositions;
use crate::limits::{SHARD_WINDOWS_MAX, WINDOW_FLIGHTS_MAX};
use crate::record::share::{DeliveryState, Lease, SharePartition, ShareRecord, StateBatch};
use crate::runtime::Runtime;
use crate::testing::{BEGIN, Driven, load};

type Answer = Result<Response, InflightError>;

type Bench = Driven<InflightShard>;

impl Bench {
    fn new() -> Self {
        Self::loaded(InflightShard::new(), Vec::new(), BEGIN, ())
    }

    fn restarted(self) -> Self {
        Self::loaded(InflightShard::new(), self.log, self.now, ())
    }

    fn ask_of(&mut self, share: &SharePartition, ask: Ask) -> Answer {
        self.request(Event::Of { key: Key::Window(share.clone()), ask })
    }

    fn ask(&mut self, ask: Ask) -> Answer {
        self.ask_of(&share("g"), ask)
    }

    fn open(&mut self, start: i64) {
        assert_eq!(self.ask(Ask::Open(start)), Ok(Response::Done));
    }

    fn plan(&mut self, count: usize) -> Plan {
        self.plan_in(count, None)
    }

    fn plan_in(&mut self, count: usize, order: Option<Order>) -> Plan {
        match self.ask(Ask::Plan { count, order }) {
            Ok(Response::Plan(Some(plan))) => plan,
            other => panic!("{other:?}"),
        }
    }

    /// Takes so many, those that come again first, for a second.
    fn take(&mut self, count: usize) -> Vec<(i64, u16)> {
        self.take_in(count, None)
    }

    fn take_in(&mut self, count: usize, order: Option<Order>) -> Vec<(i64, u16)> {
        let plan = self.plan_in(count, order.clone());
        if plan.is_blocked {
            return Vec::new();
        }
        let (take, mut taken) = (self.take_of(&plan, count, order), plan.again);
        taken.extend(take.fresh.iter().flat_map(|it| it.offsets.iter().map(|o| (*o, 1))));
        assert_eq!(self.ask(Ask::Take(take)), Ok(Response::Taken(true)));
        taken
    }

    fn take_of(&self, plan: &Plan, count: usize, order: Option<Order>) -> Take {
        let fresh = count.saturating_sub(plan.again.len()).min(plan.room) as i64;
        let (from, next) = (plan.next, plan.next + fresh);
        Take {
            again: plan.again.iter().map(|(offset, _)| *offset).collect(),
            fresh: (fresh > 0).then(|| Fresh { from, next, offsets: (from..next).collect() }),
            lease: self.lease(1_000),
            deliveries_max: 3,
            order,
            ..Take::default()
        }
    }

    fn lease(&self, ms: i64) -> Lease {
        Lease { until_ms: self.now.wall_ms + ms, popped_ms: self.now.wall_ms }
    }

    fn settle(&mut self, offsets: &[i64], popped_ms: i64) -> usize {
        let (offsets, state) = (set(offsets), DeliveryState::Acknowledged);
        match self.ask(Ask::Settle { offsets, popped_ms, state }) {
            Ok(Response::Settled(count)) => count,
            other => panic!("{other:?}"),
        }
    }

    fn bury(&mut self, offset: i64) -> Answer {
        let copy = (target(), message(offset));
        self.ask(Ask::Bury { offset, copy: Some(copy) })
    }

    /// Delivers all that is noted: the copies' payloads.
    fn deliver(&mut self) -> Vec<String> {
        let notes = self.runtime.shard().deliveries().open(&target(), Offset(-1), usize::MAX);
        let mut names = Vec::new();
        for noted in notes.iter().flat_map(|note| note.messages.iter()) {
            let record = &self.log[noted.offset.0 as usize];
            let value = record.value.as_ref().expect("a value");
            let message = InflightShard::message(&record.key, value).expect("a message");
            names.push(String::from_utf8(message.payload.to_vec()).unwrap());
        }
        if let Some(last) = notes.last() {
            let done = self.request(InflightShard::done(target(), last.at));
            assert_eq!(done, Ok(Response::Done));
        }
        names
    }

    fn window(&self) -> &Window {
        self.runtime.shard().window(&share("g")).expect("a window")
    }

    /// The positions that were told since last asked, each answered as committed.
    fn positions(&mut self) -> Vec<(Option<i64>, i64)> {
        let mut positions = Vec::new();
        loop {
            let told: Vec<_> = self
                .notices
                .extract_if(.., |notice| matches!(notice, Notice::Position { .. }))
                .collect();
            if told.is_empty() {
                return positions;
            }
            for notice in told {
                let Notice::Position { share, own, offset } = notice else { continue };
                let was = match own {
                    OwnPositions::Only(was) => Some(was),
                    OwnPositions::From(_) | OwnPositions::UpTo => None,
                };
                positions.push((was, offset));
                assert_eq!(self.ask_of(&share, Ask::Committed(offset)), Ok(Response::Done));
            }
        }
    }

    fn told(&mut self, wanted: &Notice) -> bool {
        let is_told = self.notices.contains(wanted);
        self.notices.retain(|notice| notice != wanted);
        is_told
    }
}

fn durable(runtime: &Runtime<InflightShard>) -> BTreeMap<SharePartition, Window> {
    let windows = runtime.shard().windows();
    windows.map(|(share, window)| (share.clone(), window.clone())).collect()
}

fn share(group: &str) -> SharePartition {
    SharePartition { group: group.into(), topic: TopicId([7; 16]), partition: 1 }
}

fn target() -> TopicPartition {
    TopicPartition::new("dead", 0)
}

fn message(offset: i64) -> StoredMessage {
    StoredMessage { timestamp_ms: 5, payload: Bytes::from(offset.to_string()) }
}

fn order(attempt: &str) -> Option<Order> {
    let attempt = Some(attempt).filter(|it| !it.is_empty()).map(Arc::from);
    Some(Order { attempt })
}

#[test]
fn what_is_taken_is_nobody_elses_until_its_time_is_up_and_counts_up() {
    let mut bench = Bench::new();
    assert_eq!(bench.ask(Ask::Plan { count: 1, order: None }), Ok(Response::Plan(None)));
    bench.open(5);
    assert_eq!(bench.take(2), [(5, 1), (6, 1)]);
    assert_eq!(bench.take(2), [(7, 1), (8, 1)]);
    assert_eq!(bench.settle(&[6, 7], 1_000_000), 2);
    assert!(!bench.pass(999), "nothing is early");
    assert_eq!(bench.plan(9).again, []);
    assert!(bench.pass(1) && bench.told(&Notice::Ready(share("g"))));
    assert_eq!(bench.plan(9).again, [(5, 2), (8, 2)]);
    assert_eq!(bench.take(3), [(5, 2), (8, 2), (9, 1)]);
    assert_eq!((bench.window().start(), bench.window().end()), (5, 10));
}

#[test]
fn only_the_last_delivery_is_settled_even_late() {
    let mut bench = Bench::new();
    bench.open(0);
    bench.take(2);
    bench.pass(5_000);
    assert_eq!(bench.settle(&[0], 1_000_000), 1, "late, but nobody else had it since");
    assert_eq!(bench.take(1), [(1, 2)]);
    assert_eq!(bench.settle(&[1], 1_000_000), 0, "somebody else has it now");
    assert_eq!(bench.settle(&[1, 1, 0, 77], 1_005_000), 1);
    assert_eq!((bench.window().start(), bench.window().len()), (2, 0));
}

#[test]
fn a_delay_moves_the_end_and_renames_the_delivery() {
    let mut bench = Bench::new();
    bench.open(0);
    bench.take(1);
    bench.pass(500);
    let lease = bench.lease(10_000);
    let delay = |popped_ms| Ask::Delay { offset: 0, popped_ms, lease };
    assert_eq!(bench.ask(delay(4)), Ok(Response::Delayed(false)));
    assert_eq!(bench.ask(delay(1_000_000)), Ok(Response::Delayed(true)));
    bench.pass(9_999);
    assert_eq!(bench.plan(1).again, []);
    assert_eq!(bench.settle(&[0], 1_000_000), 0);
    let mut bench = bench.restarted();
    assert_eq!(bench.plan(1).again, []);
    bench.pass(1);
    assert_eq!(bench.plan(1).again, [(0, 2)]);
    let now = bench.lease(0);
    let give_back = Ask::Delay { offset: 0, popped_ms: 1_000_500, lease: now };
    assert_eq!(bench.ask(give_back), Ok(Response::Delayed(true)));
    bench.pass(0);
    assert_eq!(bench.plan(1).again, [(0, 2)]);
}

#[test]
fn in_order_nothing_is_given_out_while_something_is_in_hand() {
    let mut bench = Bench::new();
    bench.open(0);
    assert_eq!(bench.take_in(2, order("")), [(0, 1), (1, 1)]);
    assert_eq!(bench.take_in(2, order("")), []);
    bench.settle(&[0], 1_000_000);
    assert!(bench.plan_in(2, order("")).is_blocked);
    bench.notices.clear();
    bench.settle(&[1], 1_000_000);
    assert!(bench.told(&Notice::Ready(share("g"))));
    assert_eq!(bench.take_in(2, order("")), [(2, 1), (3, 1)]);
    bench.settle(&[3], 1_000_000);
    bench.pass(1_000);
    assert_eq!(bench.take_in(3, order("")), [(2, 2), (4, 1), (5, 1)], "3 is done");
}

#[test]
fn an_attempt_that_comes_once_more_gets_the_same() {
    let mut bench = Bench::new();
    bench.open(0);
    assert_eq!(bench.take_in(2, order("a")), [(0, 1), (1, 1)]);
    assert_eq!(bench.take_in(2, order("a")), [(0, 1), (1, 1)], "not counted");
    assert_eq!(bench.take_in(2, order("b")), []);
    bench.pass(1_000);
    assert_eq!(bench.take_in(2, order("b")), [(0, 2), (1, 2)]);
    bench.failure = Some(AppendError::NotEnoughReplicas);
    bench.pass(1_000);
    let plan = bench.plan_in(2, order("c"));
    let take = bench.take_of(&plan, 2, order("c"));
    assert_eq!(bench.ask(Ask::Take(take)), Err(InflightError::NotAvailable));
    assert_eq!(bench.plan_in(2, order("c")).again, [(0, 3), (1, 3)], "c has nothing yet");
}

#[test]
fn a_plan_that_is_not_true_any_more_takes_nothing() {
    let mut bench = Bench::new();
    bench.open(0);
    bench.take(2);
    bench.pass(1_000);
    let plan = bench.plan(4);
    let take = bench.take_of(&plan, 4, None);
    bench.settle(&[1], 1_000_000);
    assert_eq!(bench.ask(Ask::Take(take.clone())), Ok(Response::Taken(false)), "1 is done");
    assert_eq!((bench.window().len(), bench.window().end()), (1, 2));
    let only_fresh = Take { again: Vec::new(), ..take };
    assert_eq!(bench.ask(Ask::Take(only_fresh.clone())), Ok(Response::Taken(true)));
    assert_eq!(bench.ask(Ask::Take(only_fresh)), Ok(Response::Taken(false)), "taken already");
    for offsets in [vec![3], vec![5, 5], vec![9]] {
        let fresh = Some(Fresh { from: 4, next: 9, offsets });
        let take = Take { fresh, ..Take::default() };
        assert_eq!(bench.ask(Ask::Take(take)), Ok(Response::Taken(false)));
    }
}

#[test]
fn what_is_passed_over_or_gone_is_done() {
    let mut bench = Bench::new();
    bench.open(0);
    let fresh = |from, next, offsets: &[i64]| Some(Fresh { from, next, offsets: offsets.to_vec() });
    let lease = bench.lease(1_000);
    let take = Take { fresh: fresh(0, 10, &[]), lease, ..Take::default() };
    assert_eq!(bench.ask(Ask::Take(take)), Ok(Response::Taken(true)));
    assert_eq!((bench.window().start(), bench.window().end()), (10, 10));
    let take =
        Take { fresh: fresh(10, 20, &[12, 15]), lease, deliveries_max: 9, ..Take::default() };
    assert_eq!(bench.ask(Ask::Take(take)), Ok(Response::Taken(true)));
    assert_eq!((bench.window().start(), bench.window().end()), (12, 20));
    bench.pass(1_000);
    let take = Take { gone: vec![12], lease, ..Take::default() };
    assert_eq!(bench.ask(Ask::Take(take)), Ok(Response::Taken(true)));
    assert_eq!(bench.window().start(), 15);
}

#[test]
fn what_was_delivered_too_often_goes_to_the_dead_letters_once() {
    let mut bench = Bench::new();
    bench.open(0);
    for times in 1..=3 {
        assert_eq!(bench.bury(0), Ok(Response::Buried(false)), "still alive");
        assert_eq!(bench.take(1), [(0, times)]);
        bench.pass(1_000);
    }
    assert!(bench.told(&Notice::Dead(share("g"))) && bench.plan(1).again.is_empty());
    let mut bench = bench.restarted();
    bench.pass(0);
    assert!(bench.told(&Notice::Dead(share("g"))), "told again after a start");
    let dead = bench.runtime.shard().dead(&share("g"), bench.now.wall_ms, 9);
    assert_eq!(dead, [(0, 3)]);
    // The copy is in the log, the note is not.
    bench.log.push(
        ShareRecord::Dead { share: share("g"), offset: 0, message: message(0) }.encode().unwrap(),
    );
    let mut bench = bench.restarted();
    assert_eq!(bench.deliver(), [] as [&str; 0]);
    assert_eq!(bench.bury(0), Ok(Response::Buried(true)));
    assert_eq!(bench.bury(0), Ok(Response::Buried(false)), "it is done");
    assert_eq!(bench.window().start(), 1);
    assert!(bench.told(&Notice::Deliver(target())));
    let mut bench = bench.restarted();
    assert!(bench.told(&Notice::Deliver(target())), "what is on its way is told again");
    assert_eq!(bench.deliver(), ["0"]);
    assert_eq!(bench.restarted().deliver(), [] as [&str; 0]);
}

#[test]
fn the_start_is_told_to_be_committed_one_at_a_time() {
    let mut bench = Bench::new();
    bench.open(3);
    assert_eq!(bench.positions(), [(None, 3)]);
    bench.take(4);
    assert_eq!(bench.positions(), [], "nothing is done");
    bench.settle(&[3], 1_000_000);
    bench.settle(&[4, 5], 1_000_000);
    let positions = bench.runtime.shard().positions(&share("g"));
    assert_eq!(positions, Some([Some(3), Some(4)]));
    assert_eq!(bench.positions(), [(Some(3), 4), (Some(4), 6)]);
    assert_eq!(bench.ask(Ask::Committed(77)), Ok(Response::Done), "an old word");
    let mut bench = bench.restarted();
    assert_eq!(bench.runtime.shard().positions(&share("g")), None);
    assert_eq!(bench.positions(), [(None, 6)], "after a start it may not have been");
}

#[test]
fn a_position_that_somebody_else_sets_empties_the_window() {
    let mut bench = Bench::new();
    bench.open(3);
    bench.take(4);
    assert_eq!(bench.positions(), [(None, 3)]);
    assert_eq!(bench.ask(Ask::Reset(1)), Ok(Response::Done));
    assert!(bench.told(&Notice::Ready(share("g"))));
    assert_eq!((bench.positions(), bench.settle(&[3, 4], 1_000_000)), (vec![], 0));
    assert_eq!(bench.take(1), [(1, 1)]);
    let mut bench = bench.restarted();
    assert_eq!((bench.window().start(), bench.window().end()), (1, 2));
    assert_eq!(bench.runtime.shard().flight_count(), 1);
    assert_eq!(bench.ask(Ask::Forget), Ok(Response::Done));
    assert_eq!(bench.ask(Ask::Plan { count: 1, order: None }), Ok(Response::Plan(None)));
    assert_eq!(bench.restarted().runtime.shard().flight_count(), 0);
}

#[test]
fn a_deleted_topic_takes_its_windows_along() {
    let mut bench = Bench::new();
    let other = SharePartition { topic: TopicId([8; 16]), ..share("g") };
    for share in [share("g"), share("h"), other.clone()] {
        assert_eq!(bench.ask_of(&share, Ask::Open(0)), Ok(Response::Done));
    }
    bench.take(3);
    bench.runtime.notify(Event::TopicGone(TopicId([7; 16])), bench.now);
    bench.perform();
    let left: Vec<_> = durable(&bench.restarted().runtime).into_keys().collect();
    assert_eq!(left, [other]);
}

#[test]
fn there_is_a_limit_to_what_is_in_hand_and_room_is_told() {
    let mut bench = Bench::new();
    bench.open(0);
    assert_eq!(bench.take(WINDOW_FLIGHTS_MAX + 5).len(), WINDOW_FLIGHTS_MAX);
    assert_eq!(bench.plan(5).room, 0);
    assert_eq!(bench.take(5), []);
    bench.notices.clear();
    bench.settle(&[17], 1_000_000);
    assert!(bench.told(&Notice::Ready(share("g"))));
    assert_eq!(bench.take(5), [(WINDOW_FLIGHTS_MAX as i64, 1)]);
    let whole = ShareRecord::Snapshot {
        share: share("g"),
        epoch: 0,
        start: 0,
        created_ms: 0,
        written_ms: 0,
        batches: (0..WINDOW_FLIGHTS_MAX as i64)
            .map(|offset| StateBatch {
                first: 2 * offset,
                last: 2 * offset,
                state: DeliveryState::Available,
                deliveries: 1,
                lease: Some(Lease::default()),
            })
            .collect(),
        deliveries_max: 3,
        committed: Some(i64::MAX),
    };
    let bytes = whole.encode().unwrap().value.expect("a value").len();
    assert!(bytes < WINDOW_FLIGHTS_MAX * crate::limits::FLIGHT_BYTES_MAX, "{bytes}");
}

#[test]
fn there_is_a_limit_to_windows() {
    let mut bench = Bench::new();
    for number in 0..SHARD_WINDOWS_MAX {
        let share = share(&number.to_string());
        assert_eq!(bench.ask_of(&share, Ask::Open(0)), Ok(Response::Done));
    }
    assert_eq!(bench.ask(Ask::Open(0)), Err(InflightError::TooMany));
}

#[test]
fn old_snapshots_are_written_anew_and_the_log_is_trimmed() {
    let mut bench = Bench::new();
    for group in ["idle", "busy"] {
        assert_eq!(bench.ask_of(&share(group), Ask::Open(0)), Ok(Response::Done));
        let fresh = Some(Fresh { from: 0, next: 2, offsets: vec![1] });
        let take = Take { fresh, lease: bench.lease(1_000_000), ..Take::default() };
        assert_eq!(bench.ask_of(&share(group), Ask::Take(take)), Ok(Response::Taken(true)));
    }
    let state = DeliveryState::Acknowledged;
    let settle = Ask::Settle { offsets: set(&[1]), popped_ms: 1_000_000, state };
    assert_eq!(bench.ask_of(&share("idle"), settle), Ok(Response::Settled(1)));
    bench.open(0);
    bench.positions();
    for _ in 0..5_000 {
        bench.take(1);
        let next = bench.window().end();
        bench.settle(&[next - 1], 1_000_000);
        bench.positions();
    }
    let trims: Vec<_> = bench
        .notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::Trim(offset) => Some(offset.0),
            _ => None,
        })
        .collect();
    assert!(trims.len() >= 2 && trims.is_sorted(), "{trims:?}");
    let windows: Vec<String> =
        durable(&bench.runtime).into_keys().map(|share| share.group.to_string()).collect();
    assert_eq!(windows, ["busy", "g"], "what says no more than the position is forgotten");
    // What is left of the log says the same.
    let first = *trims.last().expect("a trim");
    let mut runtime = Runtime::loading(InflightShard::new());
    for (offset, record) in bench.log.iter().enumerate().skip(first as usize) {
        let loaded = runtime.load(Offset(offset as i64), Some(&record.key), record.value.as_ref());
        assert_eq!(loaded, Ok(true));
    }
    assert_eq!(durable(&runtime), durable(&bench.runtime));
}
