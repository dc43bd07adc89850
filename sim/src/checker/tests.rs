//! What may be lost and what may not, on the smallest runs.

use std::collections::BTreeMap;

use duolog_log_core::ids::{BrokerEpoch, Offset};
use duolog_log_core::replication::election::{LogTip, Restart, UncleanElection};

use super::*;

const RECORD: Entry = Entry { epoch: LeaderEpoch(0), value: 7 };

/// Nodes 1 and 2 are in sync, one is enough, and node 1 leads.
fn two() -> (Checker, PartitionState) {
    let state = PartitionState::created(vec![NodeId(1), NodeId(2)], 1);
    let mut checker = Checker::new(state.clone());
    for node in [NodeId(1), NodeId(2)] {
        checker.started_anew(node, 0);
    }
    checker.led(NodeId(1), LeaderEpoch(0), 0);
    (checker, state)
}

fn loses_power(checker: &mut Checker, node: i32) {
    checker.reopened(NodeId(node), Stop::Power { synced: 0 }, Shadow::starting_at(0));
}

fn restarts_in_doubt(checker: &mut Checker, state: &mut PartitionState, node: i32) {
    *state = state.restarted(NodeId(node), Restart::LogInDoubt).expect("it was in sync");
    checker.state_changed(state, None);
    checker.doubt_told(NodeId(node));
}

/// Elects `node`, which is all that is there.
fn elects(checker: &mut Checker, state: &mut PartitionState, node: i32) {
    let tip = LogTip { last_epoch: LeaderEpoch(0), log_end_offset: Offset(0) };
    let live = BTreeMap::from([(NodeId(node), BrokerEpoch(1))]);
    let tips = BTreeMap::from([(NodeId(node), tip)]);
    let (next, election) = state.elect(&live, &tips, UncleanElection::Refused).expect("it may");
    *state = next;
    checker.state_changed(state, Some(election));
}

/// Node 2 has fetched it and lost power; the leader, which has not heard of that, commits it by what node 2 had claimed.
/// Then the leader is gone, and the coordinator counts on node 2 before it has heard of that either.
#[test]
fn what_was_forgotten_before_it_was_committed_is_forgotten() {
    let (mut checker, mut state) = two();
    checker.appended(NodeId(1), 0, &[RECORD]);
    checker.appended(NodeId(2), 0, &[RECORD]);
    loses_power(&mut checker, 2);
    checker.commit(NodeId(1), 0, 1);
    restarts_in_doubt(&mut checker, &mut state, 1);
    assert!(!checker.has_losses(), "node 1 has it, and is counted");
    elects(&mut checker, &mut state, 2);
    assert!(checker.has_losses(), "only node 2 is counted now, and it has forgotten it");
    restarts_in_doubt(&mut checker, &mut state, 2);
    elects(&mut checker, &mut state, 2);
    checker.led(NodeId(2), state.leader_epoch, 0);
    assert_eq!((checker.violation(), checker.lost_by_power), (None, 1));
}

#[test]
fn what_was_never_there_is_not_forgotten() {
    let (mut checker, _) = two();
    checker.appended(NodeId(1), 0, &[RECORD]);
    checker.commit(NodeId(1), 0, 1);
    let violation = checker.violation().expect("node 2 may be elected");
    assert!(violation.contains("node 2 may be elected without the committed record at 0"));
}

#[test]
fn who_has_it_again_has_not_forgotten_it() {
    let (mut checker, _) = two();
    checker.appended(NodeId(1), 0, &[RECORD]);
    checker.appended(NodeId(2), 0, &[RECORD]);
    loses_power(&mut checker, 2);
    checker.doubt_told(NodeId(2));
    checker.appended(NodeId(2), 0, &[RECORD]);
    checker.commit(NodeId(1), 0, 1);
    assert_eq!(checker.violation(), None);
    checker.truncated(NodeId(2), 0);
    let violation = checker.violation().expect("it was cut off");
    assert!(violation.contains("node 2 may be elected without the committed record at 0"));
}
