use super::*;
use crate::replication::testing::{LAG_MS, leader, log, partition};

fn offsets(partition: &Partition) -> [i64; 3] {
    [partition.last_stable_offset().0, partition.high_watermark().0, partition.log_end_offset().0]
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

/// Case B65: refused before the append when the ISR is too small, told after it when it shrank meanwhile.
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
    assert!(two.become_follower(LeaderEpoch(1), NodeId(2), None).is_err());
    assert_eq!(format!("{two:?}"), before);
    two.become_follower(LeaderEpoch(2), NodeId(2), None).unwrap();
    assert_eq!(two.admit(Acks::None), Err(ReplicationError::NotLeader { local: NodeId(1) }));
    assert_eq!(two.ack_state(Offset(3), LeaderEpoch(1)), AckState::NotLeader);
}

#[test]
fn a_follower_takes_the_leaders_watermark_up_to_its_own_end() {
    let mut follower = partition(1, 5, 2);
    follower.become_follower(LeaderEpoch(1), NodeId(2), Some(LeaderEpoch(0))).unwrap();
    follower.leader_told(Offset(9), Offset(0));
    assert_eq!(offsets(&follower), [5, 5, 5]);
    follower.leader_told(Offset(1), Offset(0));
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
