use super::*;

const A: NodeId = NodeId(1);
const B: NodeId = NodeId(2);
const C: NodeId = NodeId(3);

fn set(nodes: &[NodeId]) -> BTreeSet<NodeId> {
    nodes.iter().copied().collect()
}

fn live(nodes: &[NodeId]) -> LiveNodes {
    nodes.iter().map(|node| (*node, BrokerEpoch(i64::from(node.0)))).collect()
}

fn tips(tips: &[(NodeId, i32, i64)]) -> BTreeMap<NodeId, LogTip> {
    let tip = |&(node, epoch, end): &(NodeId, i32, i64)| {
        (node, LogTip { last_epoch: LeaderEpoch(epoch), log_end_offset: Offset(end) })
    };
    tips.iter().map(tip).collect()
}

fn three() -> PartitionState {
    PartitionState::created(vec![A, B, C], 2)
}

fn wish(state: &PartitionState, isr: &[NodeId]) -> IsrProposal {
    IsrProposal {
        leader: state.leader.unwrap(),
        leader_epoch: state.leader_epoch,
        partition_epoch: state.partition_epoch,
        isr: live(isr),
    }
}

fn elected(
    state: &PartitionState,
    nodes: &[NodeId],
    unclean: UncleanElection,
) -> Option<(NodeId, Election)> {
    let tips = tips(&[(A, 3, 10), (B, 3, 12), (C, 2, 99)]);
    let (next, how) = state.elect(&live(nodes), &tips, unclean)?;
    assert_eq!(next.leader_epoch.0, state.leader_epoch.0 + 1);
    assert_eq!(next.partition_epoch, state.partition_epoch + 1);
    assert!(next.isr.contains(&next.leader.unwrap()));
    Some((next.leader.unwrap(), how))
}

#[test]
fn the_first_replica_in_sync_that_is_there_leads() {
    let state = three().stopped(A).unwrap();
    assert_eq!(state.leader, None);
    let rows: [(&[NodeId], _); 4] = [
        (&[A, B, C], Some((B, Election::Clean))),
        (&[B, C], Some((B, Election::Clean))),
        (&[C], Some((C, Election::Clean))),
        (&[A], None),
    ];
    for (nodes, expected) in rows {
        assert_eq!(elected(&state, nodes, UncleanElection::Refused), expected, "{nodes:?}");
    }
    assert_eq!(elected(&state, &[A], UncleanElection::Allowed), Some((A, Election::Unclean)));
    assert_eq!(elected(&three(), &[B], UncleanElection::Allowed), None, "there is a leader");
}

/// KIP-966: who left an ISR that became too small may lead, until something can be committed without it.
#[test]
fn who_left_a_too_small_isr_is_eligible() {
    let state = three();
    let state = state.alter_isr(&wish(&state, &[A, B]), &live(&[A, B, C])).unwrap();
    assert_eq!(state.eligible, set(&[]), "two can still commit");
    let state = state.alter_isr(&wish(&state, &[A]), &live(&[A, B, C])).unwrap();
    assert_eq!(state.eligible, set(&[B]));
    let without_a = state.stopped(A).unwrap();
    assert_eq!(without_a.isr, set(&[A]), "the last one stays");
    assert_eq!(elected(&without_a, &[C], UncleanElection::Refused), None);
    let by_b = elected(&without_a, &[B, C], UncleanElection::Refused);
    assert_eq!(by_b, Some((B, Election::Clean)));
    let with_c = state.alter_isr(&wish(&state, &[A, C]), &live(&[A, B, C])).unwrap();
    assert_eq!(with_c.eligible, set(&[]), "A and C commit without B now");
}

/// Case B74: the last replica comes back with a lost tail while another has everything.
#[test]
fn in_doubt_the_most_complete_log_leads_once_all_are_there() {
    let state = three();
    let state = state.alter_isr(&wish(&state, &[A, B]), &live(&[A, B])).unwrap();
    let state = state.restarted(A, Restart::LogInDoubt).unwrap();
    assert_eq!((state.leader, &state.isr, &state.last_known), (None, &set(&[B]), &set(&[A])));
    assert_eq!(elected(&state, &[A], UncleanElection::Refused), None, "B has everything");
    let state = state.restarted(B, Restart::LogInDoubt).unwrap();
    assert_eq!((&state.isr, &state.last_known), (&set(&[]), &set(&[A, B])));
    assert_eq!(elected(&state, &[A, C], UncleanElection::Refused), None, "B is not there yet");
    let by_tip = elected(&state, &[A, B, C], UncleanElection::Refused);
    assert_eq!(by_tip, Some((B, Election::Clean)), "12 beats 10; C was not in sync");
    let unclean = elected(&state, &[A, C], UncleanElection::Allowed);
    assert_eq!(unclean, Some((A, Election::Unclean)), "the later epoch beats the longer log");
}

/// As seed 592 of the simulator: A's log is longer and of a later epoch, but what B committed since is not in it.
#[test]
fn who_is_in_doubt_counts_no_more_once_others_commit() {
    let all = live(&[A, B, C]);
    let state = PartitionState::created(vec![A, B], 1);
    let state = state.restarted(A, Restart::LogInDoubt).unwrap();
    assert_eq!((state.leader, &state.last_known), (None, &set(&[A])), "nobody commits");
    let tips = tips(&[(A, 3, 12), (B, 2, 10)]);
    let (state, how) = state.elect(&all, &tips, UncleanElection::Refused).unwrap();
    assert_eq!((state.leader, how), (Some(B), Election::Clean));
    assert_eq!(
        state.last_known,
        set(&[]),
        "B commits alone, and need not write in its epoch for that"
    );
    let state = state.restarted(B, Restart::LogInDoubt).unwrap();
    let (state, _) = state.elect(&all, &tips, UncleanElection::Refused).unwrap();
    assert_eq!(state.leader, Some(B));
    let follower_in_doubt =
        PartitionState::created(vec![A, B], 1).restarted(B, Restart::LogInDoubt);
    assert_eq!(follower_in_doubt.unwrap().last_known, set(&[]), "A goes on");
}

#[test]
fn a_log_that_was_kept_keeps_its_place_but_not_the_lead() {
    let state = three().restarted(A, Restart::LogKept).unwrap();
    assert_eq!((state.leader, &state.isr), (None, &set(&[A, B, C])));
    let again = elected(&state, &[A, B, C], UncleanElection::Refused);
    assert_eq!(again, Some((A, Election::Clean)), "under a new epoch");
    assert_eq!(three().restarted(B, Restart::LogKept), None);
}

/// KIP-497, KIP-903, mapping pitfall 21: each wish names its leader, its version and the runs of who joins.
#[test]
fn a_wish_is_written_only_as_it_was_meant() {
    let all = live(&[A, B, C]);
    let state = three();
    let state = state.alter_isr(&wish(&state, &[A, B]), &all).unwrap();
    let grow = wish(&state, &[A, B, C]);
    let old_leader = IsrProposal { leader_epoch: LeaderEpoch(-1), ..grow.clone() };
    let other_leader = IsrProposal { leader: B, ..grow.clone() };
    let old_version = IsrProposal { partition_epoch: 0, ..grow.clone() };
    let not_leader = Err(IsrRefusal::NotLeader { current: state.leader_epoch });
    assert_eq!(state.alter_isr(&old_leader, &all), not_leader);
    assert_eq!(state.alter_isr(&other_leader, &all), not_leader);
    let other_version = Err(IsrRefusal::OtherVersion { current: 1 });
    assert_eq!(state.alter_isr(&old_version, &all), other_version);
    let mut restarted = all.clone();
    restarted.insert(C, BrokerEpoch(77));
    assert_eq!(state.alter_isr(&grow, &restarted), Err(IsrRefusal::Ineligible(C)));
    assert_eq!(state.alter_isr(&grow, &live(&[A, B])), Err(IsrRefusal::Ineligible(C)));
    assert_eq!(state.alter_isr(&grow, &all).unwrap().isr, set(&[A, B, C]));
    let without_itself = IsrProposal { isr: live(&[B]), ..grow };
    assert_eq!(state.alter_isr(&without_itself, &all), Err(IsrRefusal::Ineligible(A)));
}

#[test]
fn the_lead_moves_only_to_who_is_in_sync_and_there() {
    let all = live(&[A, B, C]);
    let state = three();
    let state = state.alter_isr(&wish(&state, &[A, B]), &all).unwrap();
    let moved = state.moved_to(B, &all).unwrap();
    assert_eq!((moved.leader, moved.leader_epoch), (Some(B), LeaderEpoch(1)));
    assert_eq!(moved.preferred_leader(), Some(A));
    assert_eq!(state.moved_to(C, &all), None);
    assert_eq!(state.moved_to(B, &live(&[A])), None);
    assert_eq!(state.moved_to(A, &all), None, "it leads already");
}

#[test]
fn a_lower_minimum_ends_eligibility() {
    let state = three();
    let state = state.alter_isr(&wish(&state, &[A]), &live(&[A, B, C])).unwrap();
    assert_eq!(state.eligible, set(&[B, C]));
    assert_eq!(state.with_min_insync_replicas(1).eligible, set(&[]));
}
