use super::*;
use crate::replication::epochs::EpochEntry;
use crate::replication::partition::{LogPosition, PartitionRules};

const RUN: BrokerEpoch = BrokerEpoch(7);

fn epochs(entries: &[(i32, i64)]) -> LeaderEpochs {
    let entry = |&(epoch, start): &(i32, i64)| EpochEntry {
        epoch: LeaderEpoch(epoch),
        start_offset: Offset(start),
    };
    LeaderEpochs::from_entries(entries.iter().map(entry))
}

/// A follower of node 2 in epoch 9, with a log of `start` to `end` and this HW.
fn follower(
    rule: TruncationRule,
    (start, high_watermark, end): (i64, i64, i64),
    epochs: &LeaderEpochs,
) -> Partition {
    let rules = PartitionRules { min_insync_replicas: 1, replica_lag_time_max_ms: 1000 };
    let log = LogPosition {
        log_start_offset: Offset(start),
        log_end_offset: Offset(end),
        first_unstable_offset: None,
    };
    let partition = Partition::new(NodeId(1), rules, log, Offset(high_watermark));
    let mut partition = partition.truncating_by(rule);
    let last_epoch = epochs.latest().map(|entry| entry.epoch);
    partition.become_follower(LeaderEpoch(9), NodeId(2), last_epoch).unwrap();
    partition
}

fn question(partition: &Partition, epochs: &LeaderEpochs) -> FetchQuestion {
    match partition.follower_step(RUN, epochs) {
        Some(FollowerStep::Fetch(question)) => question,
        other => panic!("a fetch is next, not {other:?}"),
    }
}

fn step(partition: &Partition, epochs: &LeaderEpochs) -> FollowerStep {
    partition.follower_step(RUN, epochs).unwrap()
}

fn end(epoch: i32, end_offset: i64) -> EpochEnd {
    EpochEnd { epoch: LeaderEpoch(epoch), end_offset: Offset(end_offset) }
}

#[test]
fn it_asks_from_its_end_in_the_epoch_of_its_last_record() {
    let epochs = epochs(&[(1, 0), (3, 10)]);
    let question = question(&follower(TruncationRule::OnFetch, (0, 4, 15), &epochs), &epochs);
    let expected = FetchQuestion {
        replica: NodeId(1),
        broker_epoch: RUN,
        leader_epoch: LeaderEpoch(9),
        fetch_offset: Offset(15),
        last_fetched_epoch: Some(LeaderEpoch(3)),
    };
    assert_eq!(question, expected);
}

/// KIP-101, KIP-279, case B63: cut to where the last common epoch ends, by what either log knows.
#[test]
fn a_diverging_log_is_cut_to_the_end_of_the_last_common_epoch() {
    let own = epochs(&[(1, 0), (3, 10), (6, 20)]);
    let rows = [
        ("the leader has less of our last epoch", end(6, 25), FollowerStep::TruncateTo(Offset(25))),
        ("the leader has more of an older one", end(3, 28), FollowerStep::TruncateTo(Offset(20))),
        ("the leader has less of an older one", end(3, 14), FollowerStep::TruncateTo(Offset(14))),
        ("an epoch that we never saw", end(5, 40), FollowerStep::TruncateTo(Offset(20))),
        ("one before all that we know", end(0, 2), FollowerStep::TruncateTo(Offset(2))),
        ("and longer than our log", end(0, 90), FollowerStep::StartAnewAt(Offset(0))),
    ];
    for (what, answer, expected) in rows {
        let mut partition = follower(TruncationRule::OnFetch, (0, 4, 30), &own);
        let question = question(&partition, &own);
        let taken = partition.fetch_answered(&question, FetchAnswer::Diverging(answer), &own);
        assert_eq!((taken, step(&partition, &own)), (Fetched::Nothing, expected), "{what}");
    }
}

#[test]
fn a_cut_goes_on_until_the_logs_are_one() {
    let mut own = epochs(&[(1, 0), (4, 10), (6, 20)]);
    let mut partition = follower(TruncationRule::OnFetch, (0, 4, 30), &own);
    for (answer, cut) in [(end(5, 40), 20), (end(3, 12), 10)] {
        let question = question(&partition, &own);
        partition.fetch_answered(&question, FetchAnswer::Diverging(answer), &own);
        assert_eq!(step(&partition, &own), FollowerStep::TruncateTo(Offset(cut)));
        own.truncate_from_end(Offset(cut));
        partition.truncated(Offset(cut), None);
    }
    assert_eq!(question(&partition, &own).last_fetched_epoch, Some(LeaderEpoch(1)));
}

#[test]
fn asking_first_settles_before_it_fetches() {
    let mut own = epochs(&[(1, 0), (4, 10)]);
    let mut partition = follower(TruncationRule::AskFirst, (0, 4, 15), &own);
    let ask = |epoch| EpochQuestion { leader_epoch: LeaderEpoch(9), epoch: LeaderEpoch(epoch) };
    assert_eq!(step(&partition, &own), FollowerStep::AskEpochEnd(ask(4)));
    partition.epoch_end_answered(ask(4), Some(end(2, 30)), &own);
    assert_eq!(step(&partition, &own), FollowerStep::TruncateTo(Offset(10)));
    own.truncate_from_end(Offset(10));
    partition.truncated(Offset(10), None);
    partition.epoch_end_answered(ask(4), Some(end(4, 1)), &own);
    assert_eq!(step(&partition, &own), FollowerStep::AskEpochEnd(ask(1)), "a late answer is void");
    partition.epoch_end_answered(ask(1), Some(end(1, 30)), &own);
    assert_eq!(question(&partition, &own).last_fetched_epoch, None);
}

#[test]
fn what_a_leader_cannot_place_is_left_to_the_fetch() {
    let own = epochs(&[(4, 0)]);
    let mut partition = follower(TruncationRule::AskFirst, (0, 4, 15), &own);
    let ask = EpochQuestion { leader_epoch: LeaderEpoch(9), epoch: LeaderEpoch(4) };
    partition.epoch_end_answered(ask, None, &own);
    let fetch = question(&partition, &own);
    assert_eq!(fetch.last_fetched_epoch, Some(LeaderEpoch(4)));
    let answer =
        FetchAnswer::OutOfRange { log_start_offset: Offset(2), log_end_offset: Offset(30) };
    partition.fetch_answered(&fetch, answer, &own);
    assert_eq!(step(&partition, &own), FollowerStep::StartAnewAt(Offset(2)), "below the HW too");
}

/// Before KIP-101, and still where a log knows no epochs.
#[test]
fn without_epochs_the_high_watermark_is_all_there_is() {
    let own = epochs(&[(1, 0)]);
    let rows = [
        (TruncationRule::HighWatermark, own.clone()),
        (TruncationRule::OnFetch, LeaderEpochs::default()),
        (TruncationRule::AskFirst, LeaderEpochs::default()),
    ];
    for (rule, known) in rows {
        let mut partition = follower(rule, (0, 4, 7), &known);
        assert_eq!(step(&partition, &known), FollowerStep::TruncateTo(Offset(4)), "{rule:?}");
        partition.truncated(Offset(4), None);
        assert_eq!(question(&partition, &known).last_fetched_epoch, None);
    }
    let partition = follower(TruncationRule::HighWatermark, (0, 7, 7), &own);
    assert_eq!(question(&partition, &own).fetch_offset, Offset(7), "nothing to cut");
}

/// Both ways out of range, and in range but of a forgotten epoch.
#[test]
fn out_of_range_it_goes_where_the_leader_is() {
    let rows = [
        ((0, 5, 20), (30, 40), FollowerStep::StartAnewAt(Offset(30))),
        ((0, 5, 20), (0, 12), FollowerStep::TruncateTo(Offset(12))),
        ((0, 5, 20), (10, 40), FollowerStep::StartAnewAt(Offset(10))),
    ];
    let own = epochs(&[(1, 0)]);
    for (position, (start, end), expected) in rows {
        let mut partition = follower(TruncationRule::OnFetch, position, &own);
        let question = question(&partition, &own);
        let (log_start_offset, log_end_offset) = (Offset(start), Offset(end));
        let answer = FetchAnswer::OutOfRange { log_start_offset, log_end_offset };
        partition.fetch_answered(&question, answer, &own);
        assert_eq!(step(&partition, &own), expected, "leader has {start} to {end}");
    }
}

#[test]
fn starting_anew_moves_all_offsets_there() {
    let mut partition = follower(TruncationRule::OnFetch, (0, 5, 20), &epochs(&[(1, 0)]));
    partition.restarted_at(Offset(30));
    assert_eq!(partition.log_start_offset(), Offset(30));
    assert_eq!(partition.log_end_offset(), Offset(30));
    assert_eq!(partition.high_watermark(), Offset(30));
}

#[test]
fn late_and_doubled_answers_change_nothing() {
    let own = epochs(&[(1, 0)]);
    let mut partition = follower(TruncationRule::OnFetch, (0, 5, 20), &own);
    let asked = question(&partition, &own);
    partition.appended(Offset(25), None);
    let before = format!("{partition:?}");
    let records = FetchAnswer::Records { high_watermark: Offset(25), log_start_offset: Offset(0) };
    for answer in [records, FetchAnswer::Diverging(end(1, 7))] {
        assert_eq!(partition.fetch_answered(&asked, answer, &own), Fetched::Nothing);
        assert_eq!(format!("{partition:?}"), before);
    }
    let asked = question(&partition, &own);
    partition.become_follower(LeaderEpoch(10), NodeId(3), Some(LeaderEpoch(1))).unwrap();
    assert_eq!(partition.fetch_answered(&asked, records, &own), Fetched::Nothing, "another leader");
}

#[test]
fn the_log_start_follows_the_leader_up_to_the_high_watermark() {
    let mut partition = follower(TruncationRule::OnFetch, (0, 5, 20), &epochs(&[(1, 0)]));
    partition.leader_told(Offset(12), Offset(15));
    let raised = Effect::RaiseLogStart { to: Offset(12) };
    assert_eq!(
        partition.drain_effects().next(),
        Some(raised),
        "before the high watermark: what is below was never compared with the leader's log"
    );
    partition.log_start_moved(Offset(12));
    partition.leader_told(Offset(12), Offset(3));
    assert_eq!(partition.drain_effects().next(), None, "never back");
}

/// Case B28: a leader's log may start inside a batch.
#[test]
fn an_empty_log_takes_the_whole_batch_in_which_the_leader_starts() {
    let mut partition = follower(TruncationRule::OnFetch, (0, 0, 0), &LeaderEpochs::default());
    partition.restarted_at(Offset(4));
    let plan = |base, last| partition.plan_append(Offset(base), Offset(last));
    assert_eq!(plan(0, 9), AppendPlan::AfterStartAnewAt(Offset(0)));
    assert_eq!(plan(4, 9), AppendPlan::AtLogEnd);
    assert_eq!(plan(0, 3), AppendPlan::AtLogEnd, "it does not reach the log's end");
}

/// As seed 1929 of the simulator: without an epoch in the fetch nobody notices that all it has was deleted there.
#[test]
fn a_log_that_ends_inside_a_batch_of_its_leader_begins_anew_there() {
    let epochs = LeaderEpochs::default();
    let partition = follower(TruncationRule::AskFirst, (0, 0, 2), &epochs);
    let plan = |base, last| partition.plan_append(Offset(base), Offset(last));
    assert_eq!(plan(1, 3), AppendPlan::AfterStartAnewAt(Offset(1)));
    assert_eq!(plan(2, 3), AppendPlan::AtLogEnd);
}
