use super::*;
use crate::replication::partition::PartitionRules;
use crate::replication::testing::{LAG_MS, assignment, leader, log, nodes, partition};

fn question(node: i32, offset: i64) -> FetchQuestion {
    FetchQuestion {
        replica: NodeId(node),
        broker_epoch: BrokerEpoch(1),
        leader_epoch: LeaderEpoch(1),
        fetch_offset: Offset(offset),
        last_fetched_epoch: None,
    }
}

fn fetch(partition: &mut Partition, node: i32, offset: i64, now_ms: i64) {
    let question = question(node, offset);
    partition.answer_fetch(&question, &LeaderEpochs::default(), now_ms).unwrap();
}

fn proposal(partition: &mut Partition) -> Option<BTreeSet<NodeId>> {
    partition.drain_effects().find_map(|effect| match effect {
        Effect::ProposeIsr(proposal) => Some(proposal.isr.into_keys().collect()),
        _ => None,
    })
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
    two.isr_committed(LeaderEpoch(1), &nodes(&[1]), 1);
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
    two.isr_refused(LeaderEpoch(1), 0);
    assert_eq!(proposal(&mut two), Some(nodes(&[1])), "the committed ISR, for a newer version");
    two.appended(Offset(7), None);
    assert_eq!(two.high_watermark().0, 5, "a copy of what was refused may still be written");
    two.isr_committed(LeaderEpoch(1), &nodes(&[1]), 1);
    assert_eq!(two.high_watermark().0, 7, "now it cannot");
}

#[test]
fn growth_needs_what_earlier_leaders_left() {
    let mut partition = partition(1, 10, 4);
    let assignment = assignment(1, &[1, 2, 3], &[1, 3]);
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
    three.isr_committed(LeaderEpoch(1), &nodes(&[1]), 1);
    let refused = ReplicationError::NotEnoughReplicas { in_sync: 1, required: 2 };
    assert_eq!(three.admit(Acks::All), Err(refused));
    assert_eq!(three.admit(Acks::Leader), Ok(()));
    assert_eq!(three.high_watermark().0, 1, "below the minimum nothing new is committed");
    let late = three.ack_state(Offset(1), LeaderEpoch(1));
    assert_eq!(late, AckState::NotEnoughReplicasAfterAppend);
}

fn epochs(entries: &[(i32, i64)]) -> LeaderEpochs {
    let entry = |&(epoch, start): &(i32, i64)| EpochEntry {
        epoch: LeaderEpoch(epoch),
        start_offset: Offset(start),
    };
    LeaderEpochs::from_entries(entries.iter().map(entry))
}

/// A leader of epoch 5 that begins at 20, after epochs 1 (from 0) and 3 (from 10), and has written up to 25.
fn leader_of_epoch_5() -> (Partition, LeaderEpochs) {
    let mut partition = partition(1, 20, 0);
    partition.become_leader(LeaderEpoch(5), assignment(1, &[1, 2], &[1, 2]), 0).unwrap();
    partition.appended(Offset(25), None);
    (partition, epochs(&[(1, 0), (3, 10), (5, 20)]))
}

fn diverging(epoch: i32, end_offset: i64) -> FetchAnswer {
    let end_offset = Offset(end_offset);
    FetchAnswer::Diverging(EpochEnd { epoch: LeaderEpoch(epoch), end_offset })
}

/// KIP-595: only a fetch whose epoch ends here at or beyond its offset is a claim.
#[test]
fn a_fetch_is_answered_with_records_or_with_where_the_logs_part() {
    let records = |high_watermark| FetchAnswer::Records {
        high_watermark: Offset(high_watermark),
        log_start_offset: Offset(0),
    };
    let out_of_range =
        FetchAnswer::OutOfRange { log_start_offset: Offset(0), log_end_offset: Offset(25) };
    let rows = [
        (25, Some(5), records(25)),
        (20, Some(3), records(20)),
        (15, Some(3), records(15)),
        (21, Some(3), diverging(3, 20)),
        (12, Some(2), diverging(1, 10)),
        (10, Some(2), diverging(1, 10)),
        (26, Some(5), diverging(5, 25)),
        (22, Some(4), diverging(3, 20)),
        (10, Some(0), diverging(0, 0)),
        (25, Some(6), out_of_range),
        (0, None, records(0)),
        (26, None, out_of_range),
        (-1, None, out_of_range),
    ];
    for (offset, epoch, expected) in rows {
        let (mut partition, epochs) = leader_of_epoch_5();
        let last_fetched_epoch = epoch.map(LeaderEpoch);
        let question = FetchQuestion {
            leader_epoch: LeaderEpoch(5),
            last_fetched_epoch,
            ..question(2, offset)
        };
        let answer = partition.answer_fetch(&question, &epochs, 1).unwrap();
        assert_eq!(answer, expected, "offset {offset}, epoch {epoch:?}");
        let counted = matches!(answer, FetchAnswer::Records { .. });
        let high_watermark = if counted { offset } else { 0 };
        assert_eq!(partition.high_watermark().0, high_watermark, "offset {offset}");
    }
}

/// A leader that has not written yet has an epoch all the same: an earlier one ended where its own began.
#[test]
fn a_new_leader_ends_earlier_epochs_before_it_writes() {
    let mut partition = partition(1, 20, 0);
    partition.become_leader(LeaderEpoch(5), assignment(1, &[1, 2], &[1, 2]), 0).unwrap();
    let epochs = epochs(&[(1, 0), (3, 10)]);
    let last_fetched_epoch = Some(LeaderEpoch(4));
    let question =
        FetchQuestion { leader_epoch: LeaderEpoch(5), last_fetched_epoch, ..question(2, 18) };
    assert_eq!(partition.answer_fetch(&question, &epochs, 1), Ok(diverging(3, 20)));
}

/// Its records may be back after a power cut while its entry is not: a follower that copied them goes on.
#[test]
fn an_epoch_before_the_first_known_ends_where_that_begins() {
    let (mut partition, _) = leader_of_epoch_5();
    let epochs = epochs(&[(3, 10), (5, 20)]);
    let ask = |offset| FetchQuestion {
        leader_epoch: LeaderEpoch(5),
        last_fetched_epoch: Some(LeaderEpoch(1)),
        ..question(2, offset)
    };
    let answer = partition.answer_fetch(&ask(8), &epochs, 1).unwrap();
    assert!(matches!(answer, FetchAnswer::Records { .. }), "{answer:?}");
    assert_eq!(partition.answer_fetch(&ask(12), &epochs, 1), Ok(diverging(1, 10)));
}

/// Nothing of such a log is in the leader's: its producers are not to count either.
#[test]
fn who_has_only_deleted_records_of_an_older_epoch_begins_anew() {
    let (mut partition, _) = leader_of_epoch_5();
    partition.log_start_moved(Offset(10));
    let epochs = epochs(&[(3, 10), (5, 20)]);
    let ask = |offset, last| FetchQuestion {
        leader_epoch: LeaderEpoch(5),
        last_fetched_epoch: Some(LeaderEpoch(last)),
        ..question(2, offset)
    };
    let answer = partition.answer_fetch(&ask(10, 1), &epochs, 1).unwrap();
    assert!(matches!(answer, FetchAnswer::OutOfRange { .. }), "{answer:?}");
    let answer = partition.answer_fetch(&ask(10, 3), &epochs, 1).unwrap();
    assert!(matches!(answer, FetchAnswer::Records { .. }), "{answer:?}");
}

/// Nor of a log that ends where its leader's empty one begins: what that leader deleted may have been other records.
#[test]
fn who_ends_where_an_empty_leader_begins_begins_anew() {
    let rules = PartitionRules { min_insync_replicas: 1, replica_lag_time_max_ms: LAG_MS };
    let mut empty = Partition::new(NodeId(1), rules, log(20, 20), Offset(20));
    empty.become_leader(LeaderEpoch(5), assignment(1, &[1, 2], &[1]), 0).unwrap();
    empty.drain_effects();
    let ask = |last| FetchQuestion {
        leader_epoch: LeaderEpoch(5),
        last_fetched_epoch: last,
        ..question(2, 20)
    };
    let none = LeaderEpochs::default();
    let answer = empty.answer_fetch(&ask(Some(LeaderEpoch(3))), &none, 1).unwrap();
    assert!(matches!(answer, FetchAnswer::OutOfRange { .. }), "{answer:?}");
    assert_eq!(proposal(&mut empty), None, "what it has below is not known to be committed");
    let answer = empty.answer_fetch(&ask(None), &none, 2).unwrap();
    assert!(matches!(answer, FetchAnswer::Records { .. }), "{answer:?}");
    assert_eq!(proposal(&mut empty), Some(nodes(&[1, 2])), "it has begun anew");
}

/// Cases B63, B66: past, present, missing and future epochs, fenced both ways.
#[test]
fn the_end_of_an_epoch_is_told_to_who_knows_this_leader() {
    let (partition, epochs) = leader_of_epoch_5();
    let ask = |current, epoch| {
        let question =
            EpochQuestion { leader_epoch: LeaderEpoch(current), epoch: LeaderEpoch(epoch) };
        let end = partition.answer_epoch_end(question, &epochs);
        end.map(|end| end.map(|end| (end.epoch.0, end.end_offset.0)))
    };
    let rows = [
        (-1, None),
        (0, Some((0, 0))),
        (1, Some((1, 10))),
        (2, Some((1, 10))),
        (3, Some((3, 20))),
        (4, Some((3, 20))),
        (5, Some((5, 25))),
        (6, None),
        (1000, None),
    ];
    for (epoch, expected) in rows {
        assert_eq!(ask(5, epoch), Ok(expected), "epoch {epoch}");
    }
    assert!(matches!(ask(4, 3), Err(ReplicationError::FencedLeaderEpoch { .. })));
    assert!(matches!(ask(6, 3), Err(ReplicationError::UnknownLeaderEpoch { .. })));
}

/// Case B71: neither a stranger nor a made-up offset moves anything, nor is it remembered.
#[test]
fn a_fetch_of_a_stranger_or_from_another_epoch_changes_nothing() {
    let mut two = leader(1, &[1, 2], &[1, 2], 0);
    two.appended(Offset(5), None);
    let before = format!("{two:?}");
    let strangers = [
        (question(99, 5), ReplicationError::UnknownReplica(NodeId(99))),
        (question(-1, 5), ReplicationError::UnknownReplica(NodeId(-1))),
    ];
    for (question, refusal) in strangers {
        assert_eq!(two.answer_fetch(&question, &LeaderEpochs::default(), 1), Err(refusal));
    }
    for leader_epoch in [0, 2].map(LeaderEpoch) {
        let question = FetchQuestion { leader_epoch, ..question(2, 5) };
        assert!(two.answer_fetch(&question, &LeaderEpochs::default(), 1).is_err());
    }
    for offset in [6, 1_000_000_000, i64::MAX, i64::MIN] {
        let answer = two.answer_fetch(&question(2, offset), &LeaderEpochs::default(), 1).unwrap();
        assert!(matches!(answer, FetchAnswer::OutOfRange { .. }), "{offset}: {answer:?}");
    }
    assert_eq!(format!("{two:?}"), before);
}

/// KIP-903: what an earlier run of a node claimed is void once its next run has spoken.
#[test]
fn a_late_fetch_of_an_earlier_run_does_not_count() {
    let mut two = leader(1, &[1, 2], &[1, 2], 0);
    two.appended(Offset(9), None);
    let restarted = FetchQuestion { broker_epoch: BrokerEpoch(8), ..question(2, 3) };
    two.answer_fetch(&restarted, &LeaderEpochs::default(), 1).unwrap();
    let late = FetchQuestion { broker_epoch: BrokerEpoch(7), ..question(2, 9) };
    let refusal =
        ReplicationError::StaleBrokerEpoch { given: BrokerEpoch(7), current: BrokerEpoch(8) };
    assert_eq!(two.answer_fetch(&late, &LeaderEpochs::default(), 1), Err(refusal));
    assert_eq!(two.high_watermark(), Offset(3));
}

/// Case B72: an election and an immediate write throw nobody out.
#[test]
fn a_new_leader_gives_the_isr_time() {
    let mut three = leader(1, &[1, 2, 3], &[1, 2, 3], 5);
    three.appended(Offset(6), None);
    three.tick(LAG_MS);
    assert_eq!(proposal(&mut three), None);
}

/// Case B72: at the HW, but not caught up within the lag time, a replica would be thrown out at the next look.
#[test]
fn a_slow_replica_joins_only_once_it_has_caught_up() {
    let mut three = leader(2, &[1, 2, 3], &[1], 0);
    three.appended(Offset(100), None);
    for step in 0..5 {
        fetch(&mut three, 2, step * 10, step);
        assert_eq!(proposal(&mut three), None, "at the HW, far from the end");
    }
    fetch(&mut three, 2, 100, 9);
    assert_eq!(proposal(&mut three), Some(nodes(&[1, 2])));
}

#[test]
fn a_proposal_names_the_run_of_who_joins() {
    let mut two = leader(1, &[1, 2], &[1], 0);
    fetch(&mut two, 2, 0, 1);
    let pending = two.pending_proposal().unwrap();
    assert_eq!(pending.isr[&NodeId(2)], BrokerEpoch(1));
    // Its next run has less, and has not been proposed.
    let next_run = FetchQuestion { broker_epoch: BrokerEpoch(2), ..question(2, 0) };
    two.answer_fetch(&next_run, &LeaderEpochs::default(), 2).unwrap();
    assert_eq!(two.pending_proposal().unwrap(), pending);
    assert_eq!((pending.leader_epoch, pending.partition_epoch), (LeaderEpoch(1), 0));
    two.isr_committed(LeaderEpoch(1), &nodes(&[1, 2]), 1);
    assert_eq!(two.pending_proposal(), None);
}

/// The coordinator's answers may be late, doubled, or about an earlier epoch.
#[test]
fn only_a_newer_version_of_this_epoch_is_news() {
    let mut two = leader(1, &[1, 2], &[1, 2], 0);
    two.isr_committed(LeaderEpoch(1), &nodes(&[1]), 4);
    two.isr_committed(LeaderEpoch(1), &nodes(&[1, 2]), 4);
    two.isr_committed(LeaderEpoch(1), &nodes(&[1, 2]), 3);
    two.isr_committed(LeaderEpoch(0), &nodes(&[1, 2]), 9);
    two.isr_refused(LeaderEpoch(1), 4);
    assert_eq!(two.in_sync_replicas().collect::<Vec<_>>(), [NodeId(1)]);
    assert_eq!(proposal(&mut two), None, "nothing was proposed");
}

/// KIP-966: below the minimum not even what everybody in the ISR has is committed.
#[test]
fn below_the_minimum_the_high_watermark_stands_still() {
    let mut three = leader(2, &[1, 2, 3], &[1], 0);
    three.appended(Offset(4), None);
    assert_eq!(three.high_watermark(), Offset(0));
    fetch(&mut three, 2, 4, 1);
    assert_eq!(
        three.high_watermark(),
        Offset(0),
        "a proposed growth does not count for the minimum"
    );
    three.isr_committed(LeaderEpoch(1), &nodes(&[1, 2]), 1);
    assert_eq!(three.high_watermark(), Offset(4));
}

/// KIP-455: replicas come and go under the leader, which learns it in one piece.
#[test]
fn replicas_come_and_go_under_a_leader() {
    let mut two = leader(2, &[1, 2], &[1, 2], 0);
    two.appended(Offset(5), None);
    fetch(&mut two, 2, 5, 1);
    let stranger = two.answer_fetch(&question(3, 0), &LeaderEpochs::default(), 1);
    assert_eq!(stranger, Err(ReplicationError::UnknownReplica(NodeId(3))));
    let grown = Assignment { partition_epoch: 1, ..assignment(2, &[1, 2, 3], &[1, 2]) };
    two.assignment_committed(LeaderEpoch(1), &grown);
    fetch(&mut two, 3, 0, 2);
    assert_eq!(two.high_watermark(), Offset(5), "who comes holds nobody back");
    assert_eq!(proposal(&mut two), None, "nor is it in sync with an empty log");
    fetch(&mut two, 3, 5, 3);
    assert_eq!(proposal(&mut two), Some(nodes(&[1, 2, 3])));
    let shrunk = Assignment { partition_epoch: 2, ..assignment(2, &[1, 3], &[1, 3]) };
    two.assignment_committed(LeaderEpoch(1), &shrunk);
    let left = two.answer_fetch(&question(2, 5), &LeaderEpochs::default(), 4);
    assert_eq!(left, Err(ReplicationError::UnknownReplica(NodeId(2))));
    two.appended(Offset(6), None);
    fetch(&mut two, 3, 6, 5);
    assert_eq!(two.high_watermark(), Offset(6), "who left holds nobody back");
    two.removed();
    assert_eq!(two.ack_state(Offset(6), LeaderEpoch(1)), AckState::NotLeader);
    assert!(two.check_leader().is_err());
}

/// Else a leader would commit alone while another may be elected, or what its successor does not have.
#[test]
fn an_isr_and_its_minimum_count_from_one_moment_on() {
    let mut three = leader(1, &[1, 2, 3], &[1, 2], 0);
    three.appended(Offset(5), None);
    let both = Assignment { partition_epoch: 2, ..assignment(2, &[1, 2, 3], &[1]) };
    three.assignment_committed(LeaderEpoch(1), &both);
    assert_eq!(three.high_watermark(), Offset(0), "alone, and two are required");
    let older = Assignment { partition_epoch: 1, ..assignment(1, &[1, 2, 3], &[1]) };
    three.assignment_committed(LeaderEpoch(1), &older);
    let next_epoch = Assignment { partition_epoch: 3, ..assignment(1, &[1, 2, 3], &[2]) };
    three.assignment_committed(LeaderEpoch(2), &next_epoch);
    assert_eq!((three.high_watermark(), three.min_insync_replicas()), (Offset(0), 2));
    let lower = Assignment { partition_epoch: 3, ..assignment(1, &[1, 2, 3], &[1]) };
    three.assignment_committed(LeaderEpoch(1), &lower);
    assert_eq!(three.high_watermark(), Offset(5), "alone, and one is required");
    assert_eq!(three.partition_epoch(), Some(3));
}

/// A clock that is set forward, or a leader that did not run: nobody could have fetched meanwhile.
#[test]
fn a_clock_that_leaps_throws_nobody_out() {
    let mut two = leader(1, &[1, 2], &[1, 2], 0);
    two.appended(Offset(5), None);
    two.tick(1_000);
    two.tick(10 * LAG_MS);
    assert_eq!(proposal(&mut two), None, "it stood at 1 s a moment ago");
    two.tick(10 * LAG_MS + LAG_MS - 1_000);
    assert_eq!(proposal(&mut two), None, "behind for the lag time itself");
    two.tick(10 * LAG_MS + LAG_MS);
    assert_eq!(proposal(&mut two), Some(nodes(&[1])));
}

/// Else a dead replica would hold acks=all back until the clock is where it was.
#[test]
fn a_clock_that_goes_back_keeps_nobody_in() {
    let mut two = leader(1, &[1, 2], &[1, 2], 0);
    for now_ms in [0, LAG_MS, 2 * LAG_MS] {
        fetch(&mut two, 2, 0, now_ms);
    }
    two.appended(Offset(5), None);
    two.tick(5_000);
    two.tick(5_000 + LAG_MS);
    assert_eq!(proposal(&mut two), None);
    two.tick(5_000 + LAG_MS + 1);
    assert_eq!(proposal(&mut two), Some(nodes(&[1])));
}
