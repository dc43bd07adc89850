//! Positions: OffsetCommit and OffsetFetch.

use duolog_log_core::ids::TopicId;

use super::{bench, create, join_all};
use crate::kafka::codec::Str;
use crate::kafka::codec::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use crate::kafka::codec::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use crate::kafka::codec::messages::{
    DeleteGroupsRequest, DeleteGroupsResponse, OffsetCommitRequest, OffsetCommitResponse,
    OffsetFetchRequest, OffsetFetchResponse,
};
use crate::kafka::errors::ErrorCode;
use crate::testing::{Bench, coordinator_of};

const NOBODY: TopicId = TopicId([7; 16]);

pub(super) fn commit(group: &str, topics: Vec<OffsetCommitRequestTopic>) -> OffsetCommitRequest {
    OffsetCommitRequest {
        group_id: group.into(),
        generation_id_or_member_epoch: -1,
        topics,
        ..OffsetCommitRequest::default()
    }
}

pub(super) fn topic(
    version: i16,
    name: &str,
    id: TopicId,
    at: &[(i32, i64)],
) -> OffsetCommitRequestTopic {
    let by_id = version >= 10;
    OffsetCommitRequestTopic {
        name: if by_id { "".into() } else { name.into() },
        topic_id: if by_id { id } else { TopicId::ZERO },
        partitions: at
            .iter()
            .map(|&(partition_index, committed_offset)| OffsetCommitRequestPartition {
                partition_index,
                committed_offset,
                committed_leader_epoch: if version >= 6 { 3 } else { -1 },
                committed_metadata: Some("m".into()),
            })
            .collect(),
    }
}

fn codes(response: &OffsetCommitResponse) -> Vec<Vec<(i32, i16)>> {
    let of = |partitions: &[_]| -> Vec<(i32, i16)> {
        let partitions: &[crate::kafka::codec::messages::offset_commit_response::OffsetCommitResponsePartition] = partitions;
        partitions.iter().map(|one| (one.partition_index, one.error_code)).collect()
    };
    response.topics.iter().map(|topic| of(&topic.partitions)).collect()
}

/// Offset, epoch, metadata and error of each partition asked for, and the error of all.
pub(super) type Fetched = (Vec<(i32, i64, i32, Option<Str>, i16)>, i16);

pub(super) fn fetch(
    bench: &Bench,
    version: i16,
    group: &str,
    topic: Option<(&str, TopicId)>,
) -> Fetched {
    let partition_indexes = vec![0, 1];
    let request = if version < 8 {
        let asked = topic.map(|(name, _)| {
            vec![OffsetFetchRequestTopic { name: name.into(), partition_indexes }]
        });
        OffsetFetchRequest { group_id: group.into(), topics: asked, ..Default::default() }
    } else {
        let asked = topic.map(|(name, topic_id)| {
            let by_id = version >= 10;
            vec![OffsetFetchRequestTopics {
                name: if by_id { "".into() } else { name.into() },
                topic_id: if by_id { topic_id } else { TopicId::ZERO },
                partition_indexes,
            }]
        });
        let group =
            OffsetFetchRequestGroup { group_id: group.into(), topics: asked, ..Default::default() };
        OffsetFetchRequest { groups: vec![group], ..Default::default() }
    };
    let response: OffsetFetchResponse = bench.call(version, &request);
    if version < 8 {
        let all = response.topics.into_iter().flat_map(|topic| topic.partitions);
        let all = all.map(|at| {
            let place = (at.partition_index, at.committed_offset);
            (place.0, place.1, at.committed_leader_epoch, at.metadata, at.error_code)
        });
        (all.collect(), response.error_code)
    } else {
        let [group] = &response.groups[..] else { panic!("one group") };
        let all = group.topics.iter().flat_map(|topic| &topic.partitions);
        let all = all.map(|at| {
            let place = (at.partition_index, at.committed_offset);
            (place.0, place.1, at.committed_leader_epoch, at.metadata.clone(), at.error_code)
        });
        (all.collect(), group.error_code)
    }
}

#[test]
fn positions_are_kept_and_fetched_in_every_version() {
    let (bench, id) = bench();
    for version in 2..=10 {
        let group = format!("g{version}");
        let asked = vec![
            topic(version, "t", id, &[(0, 5), (3, 1), (1, 6)]),
            topic(version, "t", id, &[]),
            topic(version, "missing", NOBODY, &[(0, 1)]),
        ];
        let response: OffsetCommitResponse = bench.call(version, &commit(&group, asked));
        let unknown = if version < 10 { 3 } else { 100 };
        assert_eq!(codes(&response), [vec![(0, 0), (3, 3), (1, 0)], vec![(0, unknown)]]);
        for fetching in 1..=10 {
            let epoch = if version >= 6 && fetching >= 5 { 3 } else { -1 };
            let metadata = Some("m".into());
            let expected =
                (vec![(0, 5, epoch, metadata.clone(), 0), (1, 6, epoch, metadata, 0)], 0);
            let case = format!("v{version} read by v{fetching}");
            assert_eq!(fetch(&bench, fetching, &group, Some(("t", id))), expected, "{case}");
            if fetching >= 2 {
                assert_eq!(fetch(&bench, fetching, &group, None), expected, "all, {case}");
            }
        }
    }
}

#[test]
fn what_has_no_position_is_minus_one_and_an_unknown_id_an_error() {
    let (bench, id) = bench();
    for version in 1..=10 {
        let none = |code: i16| {
            let empty: Option<Str> = Some("".into());
            let of = |partition| (partition, -1_i64, -1, empty.clone(), code);
            (vec![of(0), of(1)], 0)
        };
        assert_eq!(fetch(&bench, version, "nobody", Some(("t", id))), none(0), "v{version}");
        let unknown = if version < 10 { 0 } else { ErrorCode::UnknownTopicId.code() };
        assert_eq!(fetch(&bench, version, "g", Some(("x", NOBODY))), none(unknown), "v{version}");
    }
}

#[test]
fn the_same_partition_twice_is_answered_twice() {
    let (bench, id) = bench();
    let asked = vec![topic(9, "t", id, &[(0, 5), (9, 1), (0, 6)]), topic(9, "t", id, &[(0, 7)])];
    let response: OffsetCommitResponse = bench.call(9, &commit("g", asked));
    assert_eq!(codes(&response), [vec![(0, 0), (9, 3), (0, 0)], vec![(0, 0)]]);
    assert_eq!(fetch(&bench, 9, "g", Some(("t", id))).0[0].1, 7, "the last one counts");
}

#[test]
fn too_long_metadata_is_refused_by_itself() {
    let (bench, id) = bench();
    let mut asked = topic(8, "t", id, &[(0, 5), (1, 6)]);
    asked.partitions[0].committed_metadata = Some("x".repeat(5000).into());
    let response: OffsetCommitResponse = bench.call(8, &commit("g", vec![asked]));
    assert_eq!(codes(&response), [vec![(0, 12), (1, 0)]], "case B40");
    let deleted: DeleteGroupsResponse =
        bench.call(2, &DeleteGroupsRequest { groups_names: vec!["g".into()] });
    assert_eq!(deleted.results[0].error_code, 0);
}

#[test]
fn an_answer_before_the_log_is_read_says_so_where_its_version_has_the_place() {
    let (bench, id) = bench();
    let asked = vec![topic(8, "t", id, &[(0, 42), (1, 43)])];
    let _: OffsetCommitResponse = bench.call(8, &commit("g", asked));
    let mut bench = bench;
    for version in 1..=10 {
        bench = bench.restart();
        let loading = ErrorCode::CoordinatorLoadInProgress.code();
        let (partitions, code) = fetch(&bench, version, "g", Some(("t", id)));
        if version == 1 {
            let codes: Vec<_> = partitions.iter().map(|at| (at.0, at.1, at.4)).collect();
            assert_eq!(codes, [(0, -1, loading), (1, -1, loading)], "case B25");
        } else {
            assert_eq!((partitions, code), (Vec::new(), loading), "case B25, v{version}");
        }
        let (partitions, _) = bench.until("the log is read", |bench| {
            let fetched = fetch(bench, version, "g", Some(("t", id)));
            let failed = fetched.1 != 0 || fetched.0.iter().any(|at| at.4 != 0);
            (!failed).then_some(fetched)
        });
        assert_eq!((partitions[0].1, partitions[1].1), (42, 43), "v{version}");
    }
}

#[test]
fn a_commit_without_a_generation_needs_a_group_without_members() {
    let (bench, id) = bench();
    // Case B58.
    for version in 7..=10 {
        let group = format!("b58-{version}");
        let attempt = |generation: i32, member: &str, instance: Option<&str>| {
            let mut request = commit(&group, vec![topic(version, "t", id, &[(0, 5)])]);
            request.generation_id_or_member_epoch = generation;
            request.member_id = member.into();
            request.group_instance_id = instance.map(Into::into);
            let response: OffsetCommitResponse = bench.call(version, &request);
            response.topics[0].partitions[0].error_code
        };
        let missing = if version < 9 { 22 } else { 69 };
        assert_eq!(attempt(5, "", None), missing, "a generation of a missing group");
        assert_eq!(attempt(5, "", Some("i1")), missing);
        assert_eq!(attempt(-1, "", Some("i1")), 0, "a missing group");
        assert_eq!(attempt(-1, "", Some("i1")), 0, "an empty group");
        join_all(&bench, &group, 1);
        assert_eq!(attempt(-1, "", Some("i1")), 25, "an active group");
        assert_eq!(attempt(-1, "", None), 25, "an active group");
    }
}

#[test]
fn an_explicit_retention_time_counts_and_minus_one_does_not() {
    let bench = Bench::with(&["offsets.retention.check.interval.ms=5"]);
    let id = create(&bench, "t");
    bench.run(coordinator_of("g", &bench.node));
    // Case B53.
    for (group, retention_time_ms) in [("short", 1), ("default", -1)] {
        let mut request = commit(group, vec![topic(2, "t", id, &[(0, 5)])]);
        request.retention_time_ms = retention_time_ms;
        bench.until("a commit", |bench| {
            let response: OffsetCommitResponse = bench.call(2, &request);
            (response.topics[0].partitions[0].error_code == 0).then_some(())
        });
    }
    bench.until("the short one's end", |bench| {
        let fetched = fetch(bench, 5, "short", Some(("t", id)));
        (fetched.0[0].1 == -1).then_some(())
    });
    assert_eq!(fetch(&bench, 5, "default", Some(("t", id))).0[0].1, 5);
}
