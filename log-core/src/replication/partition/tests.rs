use super::*;

const LAG_MS: i64 = 30_000;

fn nodes(ids: &[i32]) -> BTreeSet<NodeId> {
    ids.iter().map(|&id| NodeId(id)).collect()
}

fn log(start: i64, end: i64) -> LogPosition {
    LogPosition {
        log_start_offset: Offset(start),
        log_end_offset: Offset(end),
        first_unstable_offset: None,
    }
}

fn partition(min_insync_replicas: usize, end: i64, high_watermark: i64) -> Partition {
    let rules = PartitionRules { min_insync_replicas, replica_lag_time_max_ms: LAG_MS };
    Partition::new(NodeId(1), rules, log(0, end), Offset(high_watermark))
}

fn leader(min_insync_replicas: usize, replicas: &[i32], isr: &[i32], end: i64) -> Partition {
    let mut partition = partition(min_insync_replicas, end, 0);
    let assignment = Assignment { replicas: nodes(replicas), isr: nodes(isr), partition_epoch: 0 };
    partition.become_leader(LeaderEpoch(1), assignment, 0).unwrap();
    partition.drain_effects();
    partition
}

fn fetch(partition: &mut Partition, node: i32, offset: i64, now_ms: i64) {
    partition.follower_fetched(NodeId(node), LeaderEpoch(1), Offset(offset), now_ms).unwrap();
}

fn offsets(partition: &Partition) -> [i64; 3] {
    [partition.last_stable_offset().0, partition.high_watermark().0, partition.log_end_offset().0]
}

fn proposal(partition: &mut Partition) -> Option<BTreeSet<NodeId>> {
    partition.drain_effects().find_map(|effect| match effect {
        Effect::ProposeIsr { isr, .. } => Some(isr),
        _ => None,
    })
}

#[test]
fn one_replica_commits_what_it_appends() {
    let mut alone = leader(1, &[1], &[1], 5);
    assert_eq!(offsets(&alone), [5, 5, 5]);
    alone.appended(Offset(8), None);
    assert_eq!(offsets(&alone), [8, 8, 8]);
    assert_eq!(
        alone.drain_effects().collect::<Vec<_>>(),
        [
            Effect::HighWatermarkAdvanced { from: Offset(5), to: Offset(8) },
            Effect::LastStableOffsetAdvanced { from: Offset(5), to: Offset(8) },
        ]
    );
    assert_eq!(alone.ack_state(Offset(8), LeaderEpoch(1)), AckState::Acknowledged);
    assert_eq!(alone.admit(Acks::All), Ok(()));
}

#[test]
fn a_minimum_above_the_replica_count_is_the_replica_count() {
    let mut alone = leader(2, &[1], &[1], 0);
    assert_eq!(alone.admit(Acks::All), Ok(()));
    alone.appended(Offset(1), None);
    assert_eq!(offsets(&alone), [1, 1, 1]);
}

#[test]
fn the_high_watermark_is_the_smallest_log_end_of_the_isr() {
    let mut three = leader(1, &[1, 2, 3], &[1, 2, 3], 0);
    three.appended(Offset(10), None);
    let rows = [(2, 4, 0), (3, 7, 4), (2, 9, 7), (3, 10, 9), (2, 10, 10)];
    for (node, offset, high_watermark) in rows {
        fetch(&mut three, node, offset, 1);
        assert_eq!(three.high_watermark().0, high_watermark, "node {node} at {offset}");
    }
}

#[test]
fn a_follower_ahead_of_the_leader_moves_nothing() {
    let mut two = leader(1, &[1, 2], &[1, 2], 0);
    two.appended(Offset(5), None);
    fetch(&mut two, 2, i64::MAX, 1);
    assert_eq!(two.high_watermark().0, 0, "case B71");
}

#[test]
fn a_shrink_counts_only_when_confirmed() {
    let mut two = leader(1, &[1, 2], &[1, 2], 0);
    two.appended(Offset(5), None);
    two.tick(LAG_MS);
    assert_eq!(proposal(&mut two), None, "the limit itself is not beyond it");
    two.tick(LAG_MS + 1);
    assert_eq!(proposal(&mut two), Some(nodes(&[1])));
    assert_eq!(two.high_watermark().0, 0, "proposed is not committed");
    two.isr_confirmed(1);
    assert_eq!(two.high_watermark().0, 5);
    assert_eq!(two.in_sync_replicas().collect::<Vec<_>>(), [NodeId(1)]);
}

#[test]
fn a_growth_counts_already_when_proposed() {
    let mut two = leader(1, &[1, 2], &[1], 0);
    two.appended(Offset(5), None);
    fetch(&mut two, 2, 5, 1);
    assert_eq!(proposal(&mut two), Some(nodes(&[1, 2])));
    two.appended(Offset(6), None);
    assert_eq!(two.high_watermark().0, 5, "the maximal ISR holds node 2 already");
    two.isr_refused();
    two.appended(Offset(7), None);
    assert_eq!(two.high_watermark().0, 7, "the committed ISR stands");
}

#[test]
fn growth_needs_what_earlier_leaders_left() {
    let mut partition = partition(1, 10, 4);
    let assignment =
        Assignment { replicas: nodes(&[1, 2, 3]), isr: nodes(&[1, 3]), partition_epoch: 0 };
    partition.become_leader(LeaderEpoch(1), assignment, 0).unwrap();
    partition.drain_effects();
    fetch(&mut partition, 2, 4, 1);
    assert_eq!(proposal(&mut partition), None, "at the HW, below the epoch's start");
    fetch(&mut partition, 2, 10, 2);
    assert_eq!(proposal(&mut partition), Some(nodes(&[1, 2, 3])));
}

#[test]
fn an_idle_follower_stays_in_sync() {
    let mut two = leader(1, &[1, 2], &[1, 2], 5);
    fetch(&mut two, 2, 5, 1);
    two.tick(10 * LAG_MS);
    assert_eq!(proposal(&mut two), None, "at the LEO a replica is never behind");
}

#[test]
fn a_follower_that_keeps_up_with_the_previous_fetch_is_caught_up_then() {
    let mut two = leader(1, &[1, 2], &[1, 2], 0);
    two.appended(Offset(5), None);
    fetch(&mut two, 2, 0, 20_000);
    two.appended(Offset(9), None);
    fetch(&mut two, 2, 5, 25_000);
    two.tick(20_000 + LAG_MS);
    assert_eq!(proposal(&mut two), None);
    two.tick(20_000 + LAG_MS + 1);
    assert_eq!(proposal(&mut two), Some(nodes(&[1])));
}

/// Case B65: refused before the append when the ISR is too small, told after it when it shrank meanwhile.
#[test]
fn acks_all_needs_the_minimum_before_and_after_the_append() {
    let mut three = leader(2, &[1, 2, 3], &[1, 2], 0);
    assert_eq!(three.admit(Acks::All), Ok(()));
    three.appended(Offset(1), None);
    assert_eq!(three.ack_state(Offset(1), LeaderEpoch(1)), AckState::Waiting);
    fetch(&mut three, 2, 1, 1);
    assert_eq!(three.ack_state(Offset(1), LeaderEpoch(1)), AckState::Acknowledged);

    three.appended(Offset(2), None);
    three.tick(LAG_MS + 2);
    three.isr_confirmed(1);
    let refused = ReplicationError::NotEnoughReplicas { in_sync: 1, required: 2 };
    assert_eq!(three.admit(Acks::All), Err(refused));
    assert_eq!(three.admit(Acks::Leader), Ok(()));
    assert_eq!(three.high_watermark().0, 1, "below the minimum nothing new is committed");
    let late = three.ack_state(Offset(1), LeaderEpoch(1));
    assert_eq!(late, AckState::NotEnoughReplicasAfterAppend);
}

#[test]
fn the_stable_offset_stops_at_the_oldest_open_transaction() {
    let mut alone = leader(1, &[1], &[1], 0);
    alone.appended(Offset(4), Some(Offset(2)));
    assert_eq!(offsets(&alone), [2, 4, 4]);
    alone.appended(Offset(6), Some(Offset(2)));
    assert_eq!(offsets(&alone), [2, 6, 6]);
    alone.drain_effects();
    alone.unstable_changed(None);
    assert_eq!(offsets(&alone), [6, 6, 6]);
    assert_eq!(
        alone.drain_effects().collect::<Vec<_>>(),
        [Effect::LastStableOffsetAdvanced { from: Offset(2), to: Offset(6) }],
        "a marker alone wakes readers of stable data"
    );
}

#[test]
fn epochs_fence_both_ways() {
    let two = leader(1, &[1, 2], &[1, 2], 0);
    let current = LeaderEpoch(1);
    let rows = [
        (None, Ok(())),
        (Some(1), Ok(())),
        (Some(0), Err(ReplicationError::FencedLeaderEpoch { given: LeaderEpoch(0), current })),
        (Some(2), Err(ReplicationError::UnknownLeaderEpoch { given: LeaderEpoch(2), current })),
    ];
    for (given, expected) in rows {
        assert_eq!(two.check_epoch(given.map(LeaderEpoch)), expected, "{given:?}");
    }
}

#[test]
fn an_old_election_changes_nothing() {
    let mut two = leader(1, &[1, 2], &[1, 2], 3);
    let before = format!("{two:?}");
    assert!(two.become_follower(LeaderEpoch(1), NodeId(2)).is_err());
    assert_eq!(format!("{two:?}"), before);
    two.become_follower(LeaderEpoch(2), NodeId(2)).unwrap();
    assert_eq!(two.admit(Acks::None), Err(ReplicationError::NotLeader { local: NodeId(1) }));
    assert_eq!(two.ack_state(Offset(3), LeaderEpoch(1)), AckState::NotLeader);
}

#[test]
fn a_follower_takes_the_leaders_watermark_up_to_its_own_end() {
    let mut follower = partition(1, 5, 2);
    follower.become_follower(LeaderEpoch(1), NodeId(2)).unwrap();
    follower.leader_told(Offset(9));
    assert_eq!(offsets(&follower), [5, 5, 5]);
    follower.leader_told(Offset(1));
    assert_eq!(offsets(&follower), [5, 5, 5], "a late answer lowers nothing");
    follower.truncated(Offset(3), None);
    assert_eq!(offsets(&follower), [3, 3, 3]);
}

#[test]
fn recovery_brings_the_watermark_into_the_log() {
    assert_eq!(offsets(&partition(1, 5, 9)), [5, 5, 5]);
    let rules = PartitionRules { min_insync_replicas: 1, replica_lag_time_max_ms: LAG_MS };
    let restarted = Partition::new(NodeId(1), rules, log(3, 5), Offset(0));
    assert_eq!(offsets(&restarted), [3, 3, 5]);
}

#[test]
fn the_log_start_lifts_the_others() {
    let mut alone = leader(1, &[1], &[1], 0);
    alone.appended(Offset(4), Some(Offset(1)));
    alone.log_start_moved(Offset(3));
    assert_eq!(alone.log_start_offset(), Offset(3));
    assert_eq!(offsets(&alone), [3, 4, 4]);
}
