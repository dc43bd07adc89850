//! The APIs of consumer groups, and OffsetDelete, over a node of their own.

use duolog_log_core::ids::TopicId;

use crate::config::topic::Overrides;
use crate::controller::topics::{Door, IfExists, NewTopic};
use crate::kafka::codec::messages::consumer_group_heartbeat_request::TopicPartitions;
use crate::kafka::codec::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use crate::kafka::codec::messages::offset_delete_request::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use crate::kafka::codec::messages::offset_fetch_request::OffsetFetchRequestGroup;
use crate::kafka::codec::messages::{
    ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse, ListGroupsRequest, ListGroupsResponse, OffsetCommitRequest,
    OffsetCommitResponse, OffsetDeleteRequest, OffsetDeleteResponse, OffsetFetchRequest,
    OffsetFetchResponse,
};
use crate::kafka::errors::ErrorCode;
use crate::testing::{Bench, coordinator_of};

fn bench() -> (Bench, TopicId) {
    let bench = Bench::with(&["offsets.topic.num.partitions=3"]);
    let topic = create(&bench, "t", 3);
    bench.run(coordinator_of("g", &bench.node));
    bench.until("all groups are read", |bench| {
        let listed: ListGroupsResponse = bench.call(0, &ListGroupsRequest::default());
        (listed.error_code == 0).then_some(())
    });
    (bench, topic)
}

fn create(bench: &Bench, name: &str, partitions: i32) -> TopicId {
    let overrides = Overrides::new();
    let topic = NewTopic { name: name.into(), partitions, overrides, door: Door::Kafka };
    let created = bench.run(bench.node.controller.create_topic(topic, IfExists::Refuse));
    created.expect("a topic").id
}

fn join(member: &str, topics: &[&str]) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        group_id: "g".into(),
        member_id: member.into(),
        rebalance_timeout_ms: 60_000,
        subscribed_topic_names: Some(topics.iter().map(|&name| name.into()).collect()),
        topic_partitions: Some(Vec::new()),
        ..ConsumerGroupHeartbeatRequest::default()
    }
}

fn beat(bench: &Bench, member: &str, epoch: i32) -> ConsumerGroupHeartbeatResponse {
    let request = ConsumerGroupHeartbeatRequest {
        group_id: "g".into(),
        member_id: member.into(),
        member_epoch: epoch,
        ..ConsumerGroupHeartbeatRequest::default()
    };
    bench.call(1, &request)
}

/// The partitions that an answer assigns, by topic.
fn assigned(answer: &ConsumerGroupHeartbeatResponse) -> Option<Vec<(TopicId, Vec<i32>)>> {
    let topics = &answer.assignment.as_ref()?.topic_partitions;
    Some(topics.iter().map(|topic| (topic.topic_id, topic.partitions.clone())).collect())
}

fn commit(version: i16, member: &str, epoch: i32) -> OffsetCommitRequest {
    let partition = OffsetCommitRequestPartition {
        partition_index: 0,
        committed_offset: 7,
        ..OffsetCommitRequestPartition::default()
    };
    assert!(version < 10);
    OffsetCommitRequest {
        group_id: "g".into(),
        member_id: member.into(),
        generation_id_or_member_epoch: epoch,
        topics: vec![OffsetCommitRequestTopic {
            name: "t".into(),
            partitions: vec![partition],
            ..OffsetCommitRequestTopic::default()
        }],
        ..OffsetCommitRequest::default()
    }
}

#[test]
fn a_member_joins_hears_of_new_partitions_and_leaves() {
    let (bench, topic) = bench();
    let told: ConsumerGroupHeartbeatResponse = bench.call(0, &join("", &["t", "later"]));
    assert_eq!((told.error_code, told.member_epoch, told.heartbeat_interval_ms), (0, 2, 5000));
    assert_eq!(assigned(&told), Some(vec![(topic, vec![0, 1, 2])]));
    let member = told.member_id.expect("made by the server");
    assert_eq!(assigned(&beat(&bench, &member, 2)), None, "nothing new");
    let later = create(&bench, "later", 1);
    let told = bench.until("the second assignment", |bench| {
        let told = beat(bench, &member, 2);
        assigned(&told).map(|topics| (told.error_code, told.member_epoch, topics))
    });
    let mut expected = vec![(later, vec![0]), (topic, vec![0, 1, 2])];
    expected.sort();
    assert_eq!(told, (0, 3, expected));

    let asked = ConsumerGroupDescribeRequest {
        group_ids: vec!["g".into(), "x".into(), "".into()],
        include_authorized_operations: true,
    };
    let described: ConsumerGroupDescribeResponse = bench.call(1, &asked);
    let [group, missing, nameless] = &described.groups[..] else { panic!("three groups") };
    assert_eq!(
        (group.error_code, &*group.group_state, &*group.assignor_name),
        (0, "Stable", "uniform")
    );
    assert_eq!((group.group_epoch, group.assignment_epoch, group.members.len()), (3, 3, 1));
    let one = &group.members[0];
    assert_eq!((one.member_epoch, one.member_type, &*one.client_host), (3, 1, "/127.0.0.1"));
    let names: Vec<&str> = one.subscribed_topic_names.iter().map(|name| &**name).collect();
    assert_eq!(names, ["later", "t"]);
    assert_eq!(one.assignment.topic_partitions.len(), 2);
    assert_eq!(one.assignment, one.target_assignment);
    assert_eq!(missing.error_code, ErrorCode::GroupIdNotFound.code());
    assert_eq!(missing.error_message.as_deref(), Some("Group x not found."));
    assert_eq!(nameless.error_code, ErrorCode::InvalidGroupId.code());

    let left = beat(&bench, &member, -1);
    assert_eq!((left.error_code, left.member_epoch), (0, -1));
    let gone = beat(&bench, &member, 3);
    assert_eq!(gone.error_code, ErrorCode::UnknownMemberId.code());
}

/// Case B57: codes and texts of refusals.
#[test]
fn b57_refusals_say_why() {
    let (bench, topic) = bench();
    let refused = |version, request: &ConsumerGroupHeartbeatRequest| {
        let answer: ConsumerGroupHeartbeatResponse = bench.call(version, request);
        (answer.error_code, answer.error_message.unwrap_or_default().to_string())
    };
    let no_timeout =
        ConsumerGroupHeartbeatRequest { rebalance_timeout_ms: -1, ..join("a", &["t"]) };
    let text = "RebalanceTimeoutMs must be provided in first request.";
    assert_eq!(refused(1, &no_timeout), (42, text.to_owned()));
    let (code, text) = refused(1, &join("", &["t"]));
    assert_eq!((code, &*text), (42, "MemberId can't be empty."), "from version 1 on");
    let regex = ConsumerGroupHeartbeatRequest {
        subscribed_topic_regex: Some("(".into()),
        ..join("a", &[])
    };
    assert_eq!(refused(1, &regex).0, ErrorCode::InvalidRegularExpression.code());
    assert_eq!(beat(&bench, "a", 1).error_code, ErrorCode::GroupIdNotFound.code());
    let told: ConsumerGroupHeartbeatResponse = bench.call(1, &join("a", &["t"]));
    assert_eq!(told.error_code, 0);
    assert_eq!(beat(&bench, "a", 9).error_code, ErrorCode::FencedMemberEpoch.code());
    let owning = ConsumerGroupHeartbeatRequest {
        topic_partitions: Some(vec![TopicPartitions { topic_id: topic, partitions: vec![0] }]),
        ..join("a", &["t"])
    };
    assert_eq!(refused(1, &owning).0, 42);

    let committed = |version, member: &str, epoch| {
        let answer: OffsetCommitResponse = bench.call(version, &commit(version, member, epoch));
        answer.topics[0].partitions[0].error_code
    };
    assert_eq!(committed(9, "a", 2), 0);
    assert_eq!(committed(8, "a", 2), ErrorCode::UnsupportedVersion.code());
    assert_eq!(committed(9, "a", 3), ErrorCode::StaleMemberEpoch.code());
    assert_eq!(committed(9, "b", 2), ErrorCode::UnknownMemberId.code());
    let fetched = |member: Option<&str>, epoch| {
        let group = OffsetFetchRequestGroup {
            group_id: "g".into(),
            member_id: member.map(Into::into),
            member_epoch: epoch,
            topics: None,
        };
        let request = OffsetFetchRequest { groups: vec![group], ..OffsetFetchRequest::default() };
        let answer: OffsetFetchResponse = bench.call(9, &request);
        (answer.groups[0].error_code, answer.groups[0].topics.len())
    };
    assert_eq!(fetched(Some("a"), 2), (0, 1));
    assert_eq!(fetched(None, -1), (0, 1), "an administrator");
    assert_eq!(fetched(Some("a"), 0), (ErrorCode::StaleMemberEpoch.code(), 0));
}

#[test]
fn positions_on_topics_that_nobody_subscribes_to_can_be_deleted() {
    let (bench, _) = bench();
    create(&bench, "u", 1);
    let delete = |group: &str, topics: &[(&str, &[i32])]| {
        let partition = |&partition_index: &i32| OffsetDeleteRequestPartition { partition_index };
        let topics = topics.iter().map(|(name, partitions)| OffsetDeleteRequestTopic {
            name: (*name).into(),
            partitions: partitions.iter().map(partition).collect(),
        });
        let request = OffsetDeleteRequest { group_id: group.into(), topics: topics.collect() };
        let answer: OffsetDeleteResponse = bench.call(0, &request);
        let codes = answer.topics.iter().flat_map(|topic| {
            let of = topic.partitions.iter();
            of.map(|one| format!("{}-{} {}", topic.name, one.partition_index, one.error_code))
        });
        (answer.error_code, codes.collect::<Vec<_>>())
    };
    assert_eq!(delete("g", &[("t", &[0])]), (ErrorCode::GroupIdNotFound.code(), Vec::new()));
    let _: ConsumerGroupHeartbeatResponse = bench.call(1, &join("a", &["t"]));
    let _: OffsetCommitResponse = bench.call(9, &commit(9, "a", 2));
    let answer = delete("g", &[("t", &[0, 1]), ("u", &[0]), ("gone", &[3])]);
    assert_eq!(
        answer,
        (
            0,
            vec![
                "gone-3 3".to_owned(),
                "t-0 86".to_owned(),
                "t-1 86".to_owned(),
                "u-0 0".to_owned()
            ]
        )
    );
    assert_eq!(beat(&bench, "a", -1).error_code, 0);
    assert_eq!(delete("g", &[("t", &[0, 1])]), (0, vec!["t-0 0".to_owned(), "t-1 0".to_owned()]));
    let group = OffsetFetchRequestGroup { group_id: "g".into(), ..Default::default() };
    let request = OffsetFetchRequest { groups: vec![group], ..OffsetFetchRequest::default() };
    let left: OffsetFetchResponse = bench.call(9, &request);
    assert!(left.groups[0].topics.is_empty(), "{left:?}");
}
