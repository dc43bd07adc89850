use super::*;
use crate::kafka::codec::messages::create_topics_request::CreatableTopic;
use crate::kafka::codec::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use crate::kafka::codec::messages::{
    CreateTopicsRequest, CreateTopicsResponse, OffsetCommitRequest, OffsetCommitResponse,
};
use crate::testing::Bench;

const PARTITIONS: i32 = 1000;

/// A group with a position on each of [`PARTITIONS`].
fn commit(bench: &Bench) {
    let topic = CreatableTopic {
        name: "t".into(),
        num_partitions: PARTITIONS,
        replication_factor: 1,
        ..CreatableTopic::default()
    };
    let request =
        CreateTopicsRequest { topics: vec![topic], timeout_ms: 1000, ..Default::default() };
    let created: CreateTopicsResponse = bench.call(5, &request);
    assert_eq!(created.topics[0].error_code, 0);
    bench.run(bench.node.open_coordinators()).expect("coordinators");
    let position = |partition_index| OffsetCommitRequestPartition {
        partition_index,
        committed_offset: 1,
        ..OffsetCommitRequestPartition::default()
    };
    let topic = OffsetCommitRequestTopic {
        name: "t".into(),
        partitions: (0..PARTITIONS).map(position).collect(),
        ..OffsetCommitRequestTopic::default()
    };
    let request = OffsetCommitRequest {
        group_id: "g".into(),
        topics: vec![topic],
        ..OffsetCommitRequest::default()
    };
    bench.until("the positions are committed", |bench| {
        let answer: OffsetCommitResponse = bench.call(9, &request);
        answer.topics[0].partitions.iter().all(|it| it.error_code == 0).then_some(())
    });
}

/// A group that is named often is answered as often, with all that it has.
#[test]
fn the_positions_of_one_request_are_bounded() {
    let bench = Bench::new();
    commit(&bench);
    let of = |_| OffsetFetchRequestGroup {
        group_id: "g".into(),
        topics: None,
        ..OffsetFetchRequestGroup::default()
    };
    // One more for the topic of each.
    let served = FETCHED_POSITIONS_MAX.div_ceil(PARTITIONS as usize + 1);
    let request = OffsetFetchRequest {
        groups: (0..served + 3).map(of).collect(),
        ..OffsetFetchRequest::default()
    };
    let answer: OffsetFetchResponse = bench.call(9, &request);
    assert_eq!(answer.groups.len(), served + 3);
    for (number, group) in answer.groups.iter().enumerate() {
        let positions: usize = group.topics.iter().map(|topic| topic.partitions.len()).sum();
        let expected = if number < served {
            (ErrorCode::None.code(), PARTITIONS as usize)
        } else {
            (ErrorCode::PolicyViolation.code(), 0)
        };
        assert_eq!((group.error_code, positions), expected, "group {number}");
    }
}

#[test]
fn what_is_settled_is_not_known_before_the_log_is_read() {
    let positions = || Ok(Vec::new());
    let loading = ErrorCode::CoordinatorLoadInProgress;
    assert_eq!(with_unstable(None, positions()), Err(loading), "it was read in between");
    assert_eq!(with_unstable(None, Err(ErrorCode::NotCoordinator)), Err(ErrorCode::NotCoordinator));
    let unstable = Unstable::from([("t".into(), 0)]);
    assert_eq!(with_unstable(Some(unstable.clone()), positions()), Ok((unstable, Vec::new())));
}

#[test]
fn without_a_coordinator_no_position_is_known_to_be_settled() {
    let bench = Bench::new();
    assert_eq!(bench.node.coordinators.unstable_positions("g"), None);
    bench.run(bench.node.open_coordinators()).expect("coordinators");
    bench.until("the log is read", |bench| bench.node.coordinators.unstable_positions("g"));
}
