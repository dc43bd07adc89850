//! Groups that have positions in open transactions, or nothing else.

use duolog_log_core::log::Verified;

use super::*;
use crate::record::transaction::{ProducerIdAndEpoch, TxnVersion};
use crate::shard::TransactionEnd;

const PRODUCER: ProducerIdAndEpoch = ProducerIdAndEpoch { id: 7, epoch: 0 };

fn in_transaction(group: &str, topic: &str, offset: i64) -> Event {
    let mut commit = commit(group, "", -1, offset);
    commit.topics[0].topic = topic.into();
    let verified = Verified::Unasked;
    Event::TxnOffsetCommit(TxnOffsetCommit { commit, producer: PRODUCER, verified })
}

fn end(bench: &mut Bench, outcome: TransactionOutcome) {
    let (coordinator_epoch, version) = (0, TxnVersion::V2);
    let end = TransactionEnd { producer: PRODUCER, outcome, coordinator_epoch, version };
    bench.ask(Event::EndTransaction(end)).expect("ended");
}

fn unstable(bench: &Bench, group: &str) -> usize {
    bench.runtime.shard().unstable_positions(group).count()
}

#[test]
fn a_group_of_pending_positions_alone_is_there_until_its_transaction_ends() {
    for outcome in [TransactionOutcome::Commit, TransactionOutcome::Abort] {
        let mut bench = Bench::new();
        bench.ask(in_transaction("g", "t", 5)).expect("pending");
        assert_eq!(bench.listed(&[], &[]), ["g Empty \"\""]);
        assert_eq!(bench.state("g"), GroupState::Empty);
        assert_eq!(bench.positions("g"), [""; 0]);
        let by_member = Event::OffsetCommit(commit("g", "m", 3, 5));
        assert_eq!(bench.ask(by_member), Err(GroupError::UnknownMemberId), "the group is known");
        let check_ms = GroupConfig::default().offsets_retention_check_interval_ms;
        bench.pass(8 * DAY_MS + check_ms);
        assert_eq!(bench.state("g"), GroupState::Empty, "it does not expire");
        end(&mut bench, outcome);
        let committed = outcome == TransactionOutcome::Commit;
        let (state, positions) = match committed {
            true => (GroupState::Empty, vec!["t-0@5".to_owned()]),
            false => (GroupState::Dead, vec![]),
        };
        assert_eq!((bench.state("g"), bench.positions("g")), (state, positions));
    }
}

#[test]
fn deleting_a_group_of_pending_positions_leaves_nothing_to_come_back() {
    let mut bench = Bench::new();
    bench.ask(in_transaction("g", "t", 5)).expect("pending");
    bench.ask(Event::OffsetCommit(commit("g", "", -1, 3))).expect("committed");
    bench.ask(in_transaction("g", "u", 6)).expect("pending");
    let before = bench.log.len();
    assert_eq!(bench.ask(delete("g")), Ok(Response::DeleteGroup));
    assert_eq!(bench.log.len() - before, 2, "one tombstone for each position");
    assert_eq!(bench.state("g"), GroupState::Dead);
    end(&mut bench, TransactionOutcome::Commit);
    assert_eq!(bench.state("g"), GroupState::Dead);
    assert_eq!(bench.positions("g"), [""; 0]);
}

#[test]
fn a_deleted_topic_takes_its_pending_positions_along() {
    let mut bench = Bench::new();
    for group in ["alone", "both"] {
        bench.ask(in_transaction(group, "t", 5)).expect("pending");
    }
    bench.ask(in_transaction("both", "u", 6)).expect("pending");
    bench.ask(Event::OffsetCommit(commit("both", "", -1, 3))).expect("committed");
    bench.notify(Event::TopicDeleted(DeletedTopic { name: "t".into(), id: TopicId([1; 16]) }));
    assert_eq!(bench.state("alone"), GroupState::Dead);
    assert_eq!(unstable(&bench, "both"), 1, "the other topic's");
    end(&mut bench, TransactionOutcome::Commit);
    assert_eq!(bench.positions("alone"), [""; 0]);
    assert_eq!(bench.positions("both"), ["u-0@6"]);
}

#[test]
fn pending_positions_can_be_deleted_and_stay_unstable_behind_a_plain_commit() {
    let mut bench = Bench::new();
    bench.ask(in_transaction("g", "t", 5)).expect("pending");
    bench.ask(Event::OffsetCommit(commit("g", "", -1, 9))).expect("committed");
    assert_eq!(unstable(&bench, "g"), 1, "until the transaction has ended");
    end(&mut bench, TransactionOutcome::Commit);
    assert_eq!(bench.positions("g"), ["t-0@9"], "it stands behind the transaction's");
    assert_eq!(unstable(&bench, "g"), 0);

    bench.ask(in_transaction("h", "t", 5)).expect("pending");
    let topics = vec![("t".into(), vec![0, 1])];
    let before = bench.log.len();
    bench.ask(Event::OffsetDelete(OffsetDelete { group: "h".into(), topics })).expect("deleted");
    assert_eq!(bench.log.len() - before, 1, "there is none on the other partition");
    assert_eq!(bench.state("h"), GroupState::Dead);
    end(&mut bench, TransactionOutcome::Commit);
    assert_eq!(bench.positions("h"), [""; 0]);
}
