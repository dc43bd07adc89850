//! Transactions through the runtime, and a crash at every record of random runs.

use std::collections::BTreeMap;

use duolog_log_core::record::TransactionOutcome::{self, Abort, Commit};
use proptest::prelude::*;

use super::error::TxnError;
use super::event::*;
use super::response::*;
use super::testing::*;
use crate::error::AppendError;
use crate::record::transaction::{
    ProducerIdAndEpoch, TransactionalId, TxnState, TxnValue, TxnVersion,
};

mod exhaustion;

const V1: TxnVersion = TxnVersion::V1;
const V2: TxnVersion = TxnVersion::V2;

#[test]
fn a_transaction_of_v1_keeps_its_epoch_and_of_v2_raises_it() {
    for (version, after) in [(V1, 0), (V2, 1)] {
        let mut bench = Bench::new();
        let first = bench.init("a");
        assert_eq!(first, producer(100, 0));
        assert_eq!(bench.add("a", first, 0, version), Ok(Response::Added));
        assert_eq!(bench.add("a", first, 1, version), Ok(Response::Added));
        let stored = bench.log.len();
        assert_eq!(bench.add("a", first, 1, version), Ok(Response::Added));
        assert_eq!(bench.log.len(), stored, "what is in already is not stored again");
        assert_eq!(bench.end("a", first, Commit, version), Ok(producer(100, after)));
        assert_eq!(bench.state("a"), TxnState::PrepareCommit);
        let expected = Markers {
            id: "a".into(),
            producer: producer(100, after),
            coordinator_epoch: COORDINATOR_EPOCH,
            outcome: Commit,
            version,
            partitions: partitions([0, 1]),
        };
        assert_eq!(bench.markers(), [expected]);
        let concurrent = Err(TxnError::ConcurrentTransactions);
        assert_eq!(bench.init_as("a", None), concurrent, "while markers are written");
        assert_eq!(bench.end("a", first, Commit, version), concurrent);
        assert_eq!(bench.end("a", first, Abort, version), Err(TxnError::InvalidTxnState));
        bench.write_markers();
        assert_eq!(bench.state("a"), TxnState::CompleteCommit);
        assert_eq!(bench.end("a", first, Commit, version), Ok(producer(100, after)), "a retry");
        assert_eq!(bench.end("a", first, Abort, version), Err(TxnError::InvalidTxnState));
        assert_eq!(bench.add("a", producer(100, after), 0, version), Ok(Response::Added));
        assert_eq!(bench.state("a"), TxnState::Ongoing);
    }
}

/// As a 4.3.1 broker answers: the end of transactions v1 leaves the epoch, yet v2 takes the one before it for a retry.
#[test]
fn the_epoch_before_asks_again_whatever_version_ended_the_transaction() {
    let mut bench = Bench::new();
    let first = bench.init("a");
    let second = bench.init("a");
    assert_eq!((first, second), (producer(100, 0), producer(100, 1)));
    assert_eq!(bench.add("a", second, 0, V1), Ok(Response::Added));
    assert_eq!(bench.end("a", second, Commit, V1), Ok(second));
    bench.write_markers();
    assert_eq!(bench.end("a", first, Commit, V2), Ok(second));
    assert_eq!(bench.end("a", first, Abort, V2), Err(TxnError::InvalidTxnState));
}

#[test]
fn who_is_not_the_producer_is_refused() {
    let mut bench = Bench::new();
    let first = bench.init("a");
    let mapping = TxnError::InvalidProducerIdMapping;
    for (id, sent, error) in [
        ("b", first, mapping),
        ("a", producer(99, 0), mapping),
        ("a", producer(100, 1), TxnError::ProducerFenced),
        ("", first, TxnError::InvalidRequest),
    ] {
        assert_eq!(bench.add(id, sent, 0, V1), Err(error));
        assert_eq!(bench.end(id, sent, Commit, V1), Err(error));
        assert_eq!(bench.end(id, sent, Commit, V2), Err(error));
        let verify = Event::VerifyPartitions(adding(id, sent, 0, V1));
        assert_eq!(bench.request(verify), Err(error));
    }
    assert_eq!(bench.end("a", first, Commit, V1), Err(TxnError::InvalidTxnState), "nothing begun");
    assert_eq!(bench.end("a", first, Commit, V2), Err(TxnError::InvalidTxnState));
    assert_eq!(bench.end("a", first, Abort, V1), Err(TxnError::InvalidTxnState));
}

#[test]
fn verification_names_what_is_in_the_transaction() {
    let mut bench = Bench::new();
    let first = bench.init("a");
    bench.add("a", first, 1, V1).expect("added");
    let asked = AddPartitions { partitions: partitions([0, 1]), ..adding("a", first, 0, V1) };
    assert_eq!(
        bench.request(Event::VerifyPartitions(asked)),
        Ok(Response::Verified(partitions([1])))
    );
    bench.end("a", first, Abort, V1).expect("ended");
    let asked = adding("a", first, 1, V1);
    let answer = bench.request(Event::VerifyPartitions(asked.clone()));
    assert_eq!(answer, Err(TxnError::ConcurrentTransactions));
    bench.write_markers();
    let nothing = crate::record::transaction::Partitions::new();
    assert_eq!(bench.request(Event::VerifyPartitions(asked)), Ok(Response::Verified(nothing)));
}

#[test]
fn a_second_producer_aborts_what_the_first_left_open_and_fences_it() {
    let mut bench = Bench::new();
    let first = bench.init("a");
    bench.add("a", first, 0, V1).expect("added");
    assert_eq!(bench.init_as("a", None), Err(TxnError::ConcurrentTransactions));
    assert_eq!(bench.state("a"), TxnState::PrepareAbort);
    assert_eq!(bench.markers()[0].producer, producer(100, 1), "an epoch that nobody has");
    assert_eq!(bench.add("a", first, 1, V1), Err(TxnError::ProducerFenced));
    assert_eq!(bench.init_as("a", None), Err(TxnError::ConcurrentTransactions));
    bench.write_markers();
    assert_eq!(bench.init_as("a", None), Ok(producer(100, 2)));
    assert_eq!(bench.end("a", first, Commit, V1), Err(TxnError::ProducerFenced));
    assert_eq!(bench.add("a", first, 0, V2), Err(TxnError::ProducerFenced));
}

/// Case B45.
#[test]
fn b45_a_transaction_that_lasts_too_long_is_aborted_and_its_producer_learns_of_it() {
    let mut bench = Bench::new();
    let first = bench.init("a");
    bench.add("a", first, 0, V1).expect("added");
    bench.pass_timers(59_999);
    assert_eq!(bench.state("a"), TxnState::Ongoing);
    bench.pass_timers(10_001);
    assert_eq!(bench.state("a"), TxnState::PrepareAbort);
    bench.write_markers();
    assert_eq!(bench.state("a"), TxnState::CompleteAbort);
    assert_eq!(bench.end("a", first, Commit, V1), Err(TxnError::ProducerFenced));
    assert_eq!(bench.add("a", first, 0, V1), Err(TxnError::ProducerFenced));
    // As in Kafka: to a producer of v2 it looks like its own abort.
    assert_eq!(bench.end("a", first, Commit, V2), Err(TxnError::InvalidTxnState));
    assert_eq!(bench.end("a", first, Abort, V2), Ok(producer(100, 1)));
    assert_eq!(bench.init_as("a", Some(first)), Ok(producer(100, 1)), "and it may go on");
    assert_eq!(bench.init_as("a", Some(producer(100, 1))), Ok(producer(100, 2)));
}

#[test]
fn a_timeout_is_looked_for_again_when_the_log_refused_and_after_a_crash() {
    let mut bench = Bench::new();
    let first = bench.init("a");
    bench.add("a", first, 0, V2).expect("added");
    bench.failure = Some(AppendError::NotEnoughReplicas);
    bench.pass_timers(60_000);
    assert_eq!(bench.state("a"), TxnState::Ongoing);
    bench.pass_timers(10_000);
    assert_eq!(bench.state("a"), TxnState::PrepareAbort);
    bench.write_markers();
    let second = bench.init("a");
    bench.add("a", second, 0, V2).expect("added");
    bench.pass_timers(30_000);
    let mut bench = bench.restarted();
    bench.pass_timers(29_000);
    assert_eq!(bench.state("a"), TxnState::Ongoing);
    bench.pass_timers(11_000);
    assert_eq!(bench.state("a"), TxnState::PrepareAbort);
}

/// KIP-360.
#[test]
fn a_producer_that_recovers_gets_the_next_epoch_once() {
    let mut bench = Bench::new();
    let first = bench.init("a");
    let second = bench.init_as("a", Some(first)).expect("bumped");
    assert_eq!(second, producer(100, 1));
    assert_eq!(bench.init_as("a", Some(first)), Ok(second), "the answer was lost");
    assert_eq!(bench.init_as("a", Some(producer(7, 0))), Err(TxnError::ProducerFenced));
    let third = bench.init("a");
    assert_eq!(third, producer(100, 2));
    assert_eq!(bench.init_as("a", Some(second)), Err(TxnError::ProducerFenced), "another came");
    assert_eq!(bench.init_as("b", Some(producer(5, 5))), Ok(producer(101, 0)), "forgotten here");
}

#[test]
fn a_bump_that_was_not_stored_is_not_taken_for_one() {
    let mut bench = Bench::new();
    let first = bench.init("a");
    bench.failure = Some(AppendError::Storage);
    let unavailable = Err(TxnError::CoordinatorNotAvailable);
    assert_eq!(bench.init_as("a", Some(first)), unavailable);
    assert_eq!(bench.init_as("a", Some(first)), Ok(producer(100, 1)));
}

#[test]
fn timeouts_outside_the_bounds_are_refused() {
    let mut bench = Bench::new();
    for timeout_ms in [0, -1, 900_001, i32::MAX] {
        let init = InitProducerId { id: "a".into(), timeout_ms, expected: None, fresh: Some(1) };
        let refused = Err(TxnError::InvalidTransactionTimeout);
        assert_eq!(bench.request(Event::InitProducerId(init)), refused);
    }
    assert!(bench.log.is_empty());
}

#[test]
fn an_abort_of_nothing_raises_the_epoch_under_v2() {
    let mut bench = Bench::new();
    let first = bench.init("a");
    assert_eq!(bench.end("a", first, Abort, V2), Ok(producer(100, 1)));
    assert!(bench.markers()[0].partitions.is_empty());
    assert_eq!(bench.value("a").started_ms, bench.now.wall_ms);
    bench.write_markers();
    assert_eq!(bench.state("a"), TxnState::CompleteAbort);
    assert_eq!(bench.end("a", first, Abort, V2), Ok(producer(100, 1)), "a retry");
    assert_eq!(bench.end("a", producer(100, 1), Abort, V2), Ok(producer(100, 2)), "another");
}

#[test]
fn a_refused_append_changes_nothing() {
    let mut bench = Bench::new();
    let first = bench.init("a");
    let errors = [
        (AppendError::NotLeader, TxnError::NotCoordinator),
        (AppendError::NotEnoughReplicas, TxnError::CoordinatorNotAvailable),
        (AppendError::TooLarge, TxnError::TooLarge),
        (AppendError::Storage, TxnError::CoordinatorNotAvailable),
    ];
    for (failure, told) in errors {
        bench.failure = Some(failure);
        assert_eq!(bench.add("a", first, 0, V1), Err(told));
        assert_eq!(bench.state("a"), TxnState::Empty);
    }
    bench.add("a", first, 0, V1).expect("added");
    bench.failure = Some(AppendError::Storage);
    assert_eq!(bench.end("a", first, Commit, V1), Err(TxnError::CoordinatorNotAvailable));
    assert_eq!((bench.state("a"), bench.markers().len()), (TxnState::Ongoing, 0));
    bench.end("a", first, Commit, V1).expect("ended");
}

#[test]
fn after_a_crash_prepared_transactions_are_completed() {
    let mut bench = Bench::new();
    for (id, outcome) in [("a", Commit), ("b", Abort)] {
        let first = bench.init(id);
        bench.add(id, first, 0, V2).expect("added");
        bench.end(id, first, outcome, V2).expect("ended");
    }
    let markers = bench.markers().clone();
    let mut bench = bench.restarted();
    assert_eq!(bench.markers(), markers, "asked for again");
    bench.write_markers();
    assert_eq!(bench.state("a"), TxnState::CompleteCommit);
    assert_eq!(bench.state("b"), TxnState::CompleteAbort);
    let mut bench = bench.restarted();
    assert_eq!(bench.markers(), []);
    let late = MarkersWritten { id: "a".into(), producer: producer(100, 1) };
    assert_eq!(bench.request(Event::MarkersWritten(late)), Err(TxnError::InvalidTxnState));
    let other = MarkersWritten { id: "a".into(), producer: producer(100, 0) };
    assert_eq!(
        bench.request(Event::MarkersWritten(other)),
        Err(TxnError::InvalidProducerIdMapping)
    );
}

#[test]
fn an_id_that_nobody_uses_for_seven_days_is_forgotten() {
    const DAY_MS: i64 = 86_400_000;
    let mut bench = Bench::new();
    let first = bench.init("a");
    bench.init("b");
    bench.add("a", first, 0, V1).expect("added");
    bench.pass_timers(6 * DAY_MS);
    assert_eq!(bench.state("a"), TxnState::PrepareAbort, "the timeout, whose markers wait");
    bench.pass_timers(2 * DAY_MS);
    assert_eq!(bench.runtime.shard().values().count(), 1, "what is under way stays");
    assert_eq!(bench.request(Event::Describe("b".into())), Err(TxnError::TransactionalIdNotFound));
    bench.write_markers();
    let mut bench = bench.restarted();
    bench.pass_timers(8 * DAY_MS);
    assert_eq!(bench.runtime.shard().values().count(), 0);
    assert_eq!(bench.runtime.next_deadline(), None, "nothing is left to wait for");
    assert_eq!(bench.init("b"), producer(102, 0));
}

#[test]
fn tools_see_each_id_with_its_state_and_may_filter() {
    let mut bench = Bench::new();
    let a = bench.init("a");
    bench.add("a", a, 3, V2).expect("added");
    bench.pass_timers(1_000);
    bench.init("b");
    let described = bench.request(Event::Describe("a".into()));
    let expected = Described {
        state: TxnState::Ongoing,
        timeout_ms: 60_000,
        started_ms: 1_000_000,
        producer: a,
        partitions: partitions([3]),
    };
    assert_eq!(described, Ok(Response::Described(expected)));
    let mut listed = |list: ListTransactions| match bench.request(Event::List(list)) {
        Ok(Response::Listed(listed)) => {
            listed.into_iter().map(|one| one.id.to_string()).collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    let all = ListTransactions { longer_than_ms: -1, ..ListTransactions::default() };
    let states = |names: &[&str]| ListTransactions {
        states: names.iter().map(|name| (*name).to_owned()).collect(),
        ..all.clone()
    };
    assert_eq!(listed(all.clone()), ["a", "b"]);
    assert_eq!(listed(states(&["Ongoing"])), ["a"]);
    assert_eq!(listed(states(&["Dead"])), [""; 0]);
    assert_eq!(listed(states(&["Nonsense"])), [""; 0], "none is in a state that there is not");
    assert_eq!(listed(states(&["Nonsense", "Ongoing"])), ["a"]);
    assert_eq!(listed(ListTransactions { producer_ids: vec![101], ..all.clone() }), ["b"]);
    let longer = |longer_than_ms| ListTransactions { longer_than_ms, ..all.clone() };
    assert_eq!(listed(longer(999)), ["a", "b"], "what has not begun is old");
    assert_eq!(listed(longer(1_000)), ["b"]);
}

#[derive(Clone, Debug)]
enum Act {
    Init(u8, bool),
    Add(u8, i32, bool),
    End(u8, bool, bool),
    Markers,
    Pass(i64),
    Fail,
}

fn act() -> impl Strategy<Value = Act> {
    let id = 0_u8..3;
    prop_oneof![
        2 => (id.clone(), any::<bool>()).prop_map(|(id, known)| Act::Init(id, known)),
        4 => (id.clone(), 0..3, any::<bool>()).prop_map(|(id, at, v2)| Act::Add(id, at, v2)),
        4 => (id, any::<bool>(), any::<bool>()).prop_map(|(id, ok, v2)| Act::End(id, ok, v2)),
        3 => Just(Act::Markers),
        1 => (0_i64..200_000).prop_map(Act::Pass),
        1 => Just(Act::Fail),
    ]
}

/// Clients that believe what they were told last.
struct World {
    bench: Bench,
    told: BTreeMap<u8, ProducerIdAndEpoch>,
}

impl World {
    fn perform(&mut self, act: Act) {
        let version = |v2| if v2 { V2 } else { V1 };
        match act {
            Act::Init(id, known) => {
                let expected = self.told.get(&id).copied().filter(|_| known);
                if let Ok(producer) = self.bench.init_as(&id.to_string(), expected) {
                    self.told.insert(id, producer);
                }
            }
            Act::Add(id, partition, v2) => {
                let Some(producer) = self.told.get(&id).copied() else { return };
                let _ = self.bench.add(&id.to_string(), producer, partition, version(v2));
            }
            Act::End(id, commit, v2) => {
                let Some(producer) = self.told.get(&id).copied() else { return };
                let outcome = if commit { Commit } else { Abort };
                let ended = self.bench.end(&id.to_string(), producer, outcome, version(v2));
                if let Ok(producer) = ended {
                    self.told.insert(id, producer);
                }
            }
            Act::Markers => self.bench.write_markers(),
            Act::Pass(ms) => self.bench.pass_timers(ms),
            Act::Fail => self.bench.failure = Some(AppendError::NotEnoughReplicas),
        }
    }
}

fn values(bench: &Bench) -> BTreeMap<TransactionalId, TxnValue> {
    let values = bench.runtime.shard().values();
    values.map(|(id, value)| (id.clone(), value.clone())).collect()
}

/// What decides whether a transaction may be seen: per id its epochs never go back, and nothing
/// that is prepared is ever decided otherwise.
fn assert_follows(before: &TxnValue, after: &TxnValue) {
    if before.producer.id == after.producer.id {
        assert!(before.producer.epoch <= after.producer.epoch, "{before:?} {after:?}");
    }
    let completes = |outcome| match outcome {
        TransactionOutcome::Commit => TxnState::CompleteCommit,
        TransactionOutcome::Abort => TxnState::CompleteAbort,
    };
    if let Some(outcome) = before.state.prepared() {
        assert_eq!(after.state, completes(outcome), "{before:?} {after:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_crash_at_every_record_leaves_what_was_stored(acts in prop::collection::vec(act(), 1..60)) {
        let mut world = World { bench: Bench::new(), told: BTreeMap::new() };
        for act in acts {
            world.perform(act);
            let twin = Bench::on(world.bench.log.clone(), world.bench.now);
            prop_assert_eq!(values(&twin), values(&world.bench));
        }
        let log = world.bench.log.clone();
        let mut before = BTreeMap::new();
        for end in 0..=log.len() {
            let mut crashed = Bench::on(log[..end].to_vec(), world.bench.now);
            let now = values(&crashed);
            for (id, value) in &now {
                if let Some(before) = before.get(id).filter(|before| *before != value) {
                    assert_follows(before, value);
                }
            }
            before = now;
            // Whatever was prepared comes to its end.
            crashed.write_markers();
            prop_assert!(values(&crashed).values().all(|value| value.state.prepared().is_none()));
        }
    }
}
