use super::*;
use crate::ids::{BrokerEpoch, LeaderEpoch};
use crate::replication::effect::IsrProposal;
use crate::replication::election::{LiveNodes, Restart};

const A: NodeId = NodeId(1);
const B: NodeId = NodeId(2);
const C: NodeId = NodeId(3);
const D: NodeId = NodeId(4);
const E: NodeId = NodeId(5);

fn set(nodes: &[NodeId]) -> BTreeSet<NodeId> {
    nodes.iter().copied().collect()
}

/// Led by A, all in sync, two of them required.
fn three() -> PartitionState {
    PartitionState::created(vec![A, B, C], 2)
}

/// The leader's wish for this ISR, written.
fn with_isr(state: &PartitionState, isr: &[NodeId]) -> PartitionState {
    let live: LiveNodes = [A, B, C, D, E].map(|node| (node, BrokerEpoch(1))).into();
    let isr = isr.iter().map(|node| (*node, BrokerEpoch(1))).collect();
    let IsrProposal { leader, leader_epoch, partition_epoch, .. } = IsrProposal {
        leader: state.leader.unwrap(),
        leader_epoch: state.leader_epoch,
        partition_epoch: state.partition_epoch,
        isr: LiveNodes::new(),
    };
    state.alter_isr(&IsrProposal { leader, leader_epoch, partition_epoch, isr }, &live).unwrap()
}

fn sets(state: &PartitionState) -> (Vec<NodeId>, BTreeSet<NodeId>, BTreeSet<NodeId>) {
    (state.replicas.clone(), state.adding.clone(), state.removing.clone())
}

#[test]
fn a_move_first_grows_and_shrinks_when_all_of_the_target_are_in_sync() {
    let moving = three().reassigned_to(&[D, B, C]).unwrap();
    assert_eq!(sets(&moving), (vec![D, B, C, A], set(&[D]), set(&[A])));
    assert_eq!((moving.leader, moving.leader_epoch), (Some(A), LeaderEpoch(0)), "nobody has left");
    assert_eq!(moving.isr, set(&[A, B, C]), "who comes is not in sync");
    assert_eq!(moving.partition_epoch, 1);
    assert_eq!(moving.reassignment_completed(), None);
    let moving = with_isr(&moving, &[A, B, D]);
    assert_eq!(moving.reassignment_completed(), None, "C is not in sync");
    let moving = with_isr(&moving, &[A, B, C, D]);
    let moved = moving.reassignment_completed().unwrap();
    assert_eq!(sets(&moved), (vec![D, B, C], set(&[]), set(&[])));
    assert_eq!(moved.isr, set(&[B, C, D]));
    assert_eq!(moved.leader, None, "the leader has left");
    assert_eq!(moved.preferred_leader(), Some(D));
    assert_eq!(moved.reassignment_completed(), None);
}

/// A late fetch of who left must not count for the empty log with which it may come back.
#[test]
fn who_leaves_leaves_under_a_new_epoch_and_the_leader_stays() {
    let moving = with_isr(&three().reassigned_to(&[A, B, D]).unwrap(), &[A, B, C, D]);
    let moved = moving.reassignment_completed().unwrap();
    assert_eq!((moved.leader, moved.leader_epoch), (Some(A), LeaderEpoch(1)));
    assert_eq!(moved.isr, set(&[A, B, D]));
    let grown = with_isr(&moved.reassigned_to(&[A, B, D, C]).unwrap(), &[A, B, C, D]);
    let grown = grown.reassignment_completed().unwrap();
    assert_eq!((grown.leader, grown.leader_epoch), (Some(A), LeaderEpoch(1)), "nobody left");
    assert_eq!(sets(&grown), (vec![A, B, D, C], set(&[]), set(&[])));
}

#[test]
fn another_target_replaces_a_move_and_cancelling_takes_it_back() {
    let moving = three().reassigned_to(&[D, B, C]).unwrap();
    let other = moving.reassigned_to(&[A, B, E]).unwrap();
    assert_eq!(sets(&other), (vec![A, B, E, C], set(&[E]), set(&[C])));
    assert_eq!(other.leader_epoch, LeaderEpoch(1), "D has left");
    let back = moving.reassigned_to(&[A, B, C]).unwrap();
    assert_eq!(sets(&back), (vec![A, B, C], set(&[]), set(&[])));
    let cancelled = moving.reassignment_cancelled().unwrap();
    assert_eq!(sets(&cancelled), (vec![B, C, A], set(&[]), set(&[])));
    assert_eq!((cancelled.leader, cancelled.leader_epoch), (Some(A), LeaderEpoch(1)));
    let none = Err(ReassignmentRefusal::NoneInProgress);
    assert_eq!(cancelled.reassignment_cancelled(), none);
}

#[test]
fn nobody_leaves_while_no_one_who_stays_is_in_sync() {
    let moving = three().reassigned_to(&[D]).unwrap();
    let moving = with_isr(&moving, &[A, D]);
    let alone = moving.stopped(A).unwrap();
    assert_eq!(alone.isr, set(&[D]));
    let refused = Err(ReassignmentRefusal::NobodyInSync);
    assert_eq!(alone.reassignment_cancelled(), refused, "only D has what is committed");
    assert_eq!(alone.reassigned_to(&[A, B]), refused);
    assert_eq!(alone.reassignment_completed().unwrap().replicas, [D]);
    let in_doubt = three().restarted(A, Restart::LogInDoubt).unwrap();
    let removed = with_isr(&three(), &[A]).reassigned_to(&[B, C]).unwrap();
    assert_eq!(removed.reassignment_completed(), None, "A leaves when B and C have caught up");
    assert!(in_doubt.reassigned_to(&[A, B]).is_ok(), "B and C are in sync");
}

/// What counts as enough follows the number of replicas: see `PartitionState::min_insync_replicas`.
#[test]
fn who_left_is_neither_eligible_nor_known_any_more() {
    let state = with_isr(&three(), &[A]);
    assert_eq!(state.eligible, set(&[B, C]));
    let moving = state.reassigned_to(&[A, B]).unwrap();
    assert_eq!(moving.eligible, set(&[B, C]), "nobody has left");
    let moved = with_isr(&moving, &[A, B]).reassignment_completed().unwrap();
    assert_eq!((moved.eligible, moved.last_known), (set(&[]), set(&[])));
    let grown = state.reassigned_to(&[A, B, C, D]).unwrap();
    let cancelled = with_isr(&grown, &[A]).reassignment_cancelled().unwrap();
    assert_eq!(cancelled.eligible, set(&[B, C]));
}

#[test]
fn a_target_names_each_replica_once() {
    for target in [&[][..], &[A, A], &[A, B, A]] {
        let refused = Err(ReassignmentRefusal::InvalidTarget(target.to_vec()));
        assert_eq!(three().reassigned_to(target), refused);
    }
    let reordered = three().reassigned_to(&[C, A, B]).unwrap();
    assert_eq!(sets(&reordered), (vec![C, A, B], set(&[]), set(&[])));
    assert_eq!((reordered.leader, reordered.leader_epoch), (Some(A), LeaderEpoch(0)));
}
