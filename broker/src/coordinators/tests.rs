//! Coordinators of groups in a node.

mod rocketmq;

use std::sync::{Arc, Mutex};

use duolog_coordinator::error::GroupError;
use duolog_coordinator::group::event::{
    ChannelId, Client, CommitForm, CommitQueueOffset, ConsumeFromWhere, ConsumeType,
    ConsumerHeartbeat, DeletedTopic, DescribeGroup, Event, FirstJoin, JoinGroup, LeaderReturn,
    ListGroups, MemberNotices, MessageModel, MissingGroup, OffsetCommit, OffsetFetch,
    PartitionCommit, Protocol, QueryQueueOffset, Subscription, TopicCommit, TopicFetch,
    UnknownGroup,
};
use duolog_coordinator::group::response::{GroupState, Notice, Response};
use duolog_coordinator::record::{OffsetValue, Record};
use duolog_coordinator::runtime::AppendId;
use duolog_coordinator::shard::BatchForm;
use duolog_log_core::event::EventKind;
use duolog_log_core::gate::{GateAction, GateFilter, GatePoint};
use duolog_log_core::ids::TopicId;

use super::NoticeSink;
use super::append::{self, OpenAppend};
use super::service::partition_of;
use crate::config::topic::Overrides;
use crate::controller::names;
use crate::controller::topics::{Door, IfExists, NewTopic};
use crate::partitions::append::Flush;
use crate::testing::{Bench, coordinator_of};

const OFFSETS_TOPIC: &str = names::OFFSETS_TOPIC;

impl Bench {
    /// With topic `t` and the coordinators of group `g` ready.
    fn with_groups(settings: &[&str]) -> Self {
        let bench = Self::with(settings);
        bench.create("t");
        bench.run(coordinator_of("g", &bench.node));
        bench
    }

    fn create(&self, name: &str) -> TopicId {
        let topic = NewTopic {
            name: name.into(),
            partitions: 2,
            overrides: Overrides::new(),
            door: Door::Kafka,
        };
        let created = self.run(self.node.controller.create_topic(topic, IfExists::Refuse));
        created.expect("a topic").id
    }

    fn commit(&self, group: &str, topic: &str, offset: i64) -> Result<(), GroupError> {
        self.run(self.node.coordinators.commit_offsets("bench", commit(group, topic, offset)))
            .map(|topics| assert!(topics[0].partitions[0].error.is_none(), "{topics:?}"))
    }

    fn position(&self, group: &str, topic: &str) -> Result<i64, GroupError> {
        self.run(self.node.coordinators.fetch_offsets(fetch(group, topic)))
            .map(|topics| topics[0].partitions[0].offset)
    }

    fn settled_position(&self, group: &str, topic: &str) -> i64 {
        self.until("a position", |bench| bench.position(group, topic).ok())
    }

    fn state(&self, group: &str) -> GroupState {
        let asked = DescribeGroup { group: group.into(), missing: MissingGroup::Dead };
        self.run(self.node.coordinators.describe_group(asked)).expect("described").state
    }

    fn arm(&self, point: GatePoint, topic: &str, action: GateAction) -> ArmedGate<'_> {
        let filter = GateFilter { topic: Some(topic.to_owned()), ..GateFilter::default() };
        let id = self.node.instruments.gates.arm(point, filter, action).expect("a gate");
        ArmedGate { bench: self, id }
    }
}

struct ArmedGate<'a> {
    bench: &'a Bench,
    id: duolog_log_core::gate::GateId,
}

impl ArmedGate<'_> {
    fn hits(&self) -> u64 {
        let gates = self.bench.node.instruments.gates.list();
        gates.iter().find(|gate| gate.id == self.id).expect("armed").hits
    }

    fn release(self) {
        assert!(self.bench.node.instruments.release(self.id));
    }
}

pub(crate) fn commit(group: &str, topic: &str, offset: i64) -> OffsetCommit {
    let position = PartitionCommit { partition: 0, offset, leader_epoch: -1, metadata: None };
    OffsetCommit {
        group: group.into(),
        member: "".into(),
        instance: None,
        generation: -1,
        retention_ms: None,
        form: CommitForm::Generation,
        unknown_group: UnknownGroup::NotFound,
        topics: vec![TopicCommit {
            topic: topic.into(),
            topic_id: TopicId::ZERO,
            partitions: vec![position],
        }],
    }
}

pub(crate) fn fetch(group: &str, topic: &str) -> OffsetFetch {
    let topic = TopicFetch { topic: topic.into(), topic_id: TopicId::ZERO, partitions: vec![0] };
    OffsetFetch { group: group.into(), member: None, topics: Some(vec![topic]) }
}

fn join(group: &str, session_timeout_ms: i32) -> JoinGroup {
    JoinGroup {
        group: group.into(),
        member: "".into(),
        instance: None,
        client_id: "c".into(),
        client_host: "/127.0.0.1".into(),
        rebalance_timeout_ms: 60_000,
        session_timeout_ms,
        protocol_type: "consumer".into(),
        protocols: vec![Protocol { name: "range".into(), metadata: bytes::Bytes::new() }],
        reason: None,
        first_join: FirstJoin::Direct,
        leader_return: LeaderReturn::SkipAssignment,
        uuid: [1; 16],
    }
}

#[test]
fn groups_are_spread_as_in_kafka() {
    for (group, hash) in [("", 0), ("a", 97), ("ab", 97 * 31 + 98), ("é", 233)] {
        assert_eq!(partition_of(group, 50), hash % 50, "{group}");
    }
    // Its hash is Integer.MIN_VALUE, of which Utils.abs makes 0.
    assert_eq!(partition_of("polygenelubricants", 50), 0);
    assert_eq!(partition_of("any", 0), 0);
}

#[test]
fn a_position_is_kept_over_a_restart_and_never_missed_while_loading() {
    let mut bench = Bench::with_groups(&[]);
    bench.commit("g", "t", 41).expect("committed");
    for round in 0..3 {
        bench.commit("g", "t", 42 + round).expect("committed");
        bench = bench.restart();
        // Case B25: the log is not read yet, and the first answer says so.
        assert_eq!(bench.position("g", "t"), Err(GroupError::CoordinatorLoadInProgress));
        let listed = bench.run(bench.node.coordinators.list_groups(ListGroups::default()));
        assert_eq!(listed, Err(GroupError::CoordinatorLoadInProgress));
        assert_eq!(bench.settled_position("g", "t"), 42 + round);
    }
}

#[test]
fn only_the_partitions_that_were_written_have_a_log() {
    let bench = Bench::with_groups(&["offsets.topic.num.partitions=7"]);
    let of_offsets = |bench: &Bench| {
        let folders = bench.folders().into_iter();
        folders.filter(|name| name.starts_with(OFFSETS_TOPIC)).collect::<Vec<_>>()
    };
    let listed = bench.until("all logs are read", |bench| {
        bench.run(bench.node.coordinators.list_groups(ListGroups::default())).ok()
    });
    assert_eq!(listed, Vec::new());
    assert_eq!(of_offsets(&bench), [""; 0]);
    bench.commit("g", "t", 1).expect("committed");
    assert_eq!(of_offsets(&bench), [format!("{OFFSETS_TOPIC}-{}", partition_of("g", 7))]);
}

#[test]
fn the_topic_is_created_with_kafkas_settings() {
    let settings = ["offsets.topic.num.partitions=7", "offsets.topic.segment.bytes=1000000"];
    let bench = Bench::with_groups(&settings);
    let topic = bench.node.controller.image().topic(OFFSETS_TOPIC).cloned().expect("a topic");
    assert_eq!((topic.internal, topic.partition_count()), (true, 7));
    let overrides: Vec<_> = topic.overrides.iter().map(|(key, value)| (&**key, &**value)).collect();
    let expected = [
        ("cleanup.policy", "compact"),
        ("compression.type", "producer"),
        ("segment.bytes", "1000000"),
    ];
    assert_eq!(overrides, expected);
}

#[test]
fn without_its_topic_there_is_no_coordinator() {
    let bench = Bench::new();
    assert_eq!(bench.position("g", "t"), Err(GroupError::NotCoordinator));
    assert!(!bench.node.coordinators.exist());
    let listed = bench.run(bench.node.coordinators.list_groups(ListGroups::default()));
    assert_eq!(listed, Ok(Vec::new()), "no group either");
}

#[test]
fn a_refused_append_is_told_and_changes_nothing() {
    let bench = Bench::with_groups(&[]);
    bench.commit("g", "t", 1).expect("committed");
    let gate = bench.arm(GatePoint::ProduceAppendBefore, OFFSETS_TOPIC, GateAction::Fail);
    assert_eq!(bench.commit("g", "t", 2), Err(GroupError::NotCoordinator));
    assert_eq!(bench.position("g", "t"), Ok(1));
    gate.release();
    bench.commit("g", "t", 3).expect("committed");
    assert_eq!(bench.restart().settled_position("g", "t"), 3);
}

#[test]
fn positions_gathered_while_an_append_is_open_fit_a_topic_of_small_batches() {
    let bench = Bench::new();
    bench.create("t");
    let overrides = Overrides::from([("max.message.bytes".to_owned(), "400".to_owned())]);
    let name = OFFSETS_TOPIC.into();
    let topic = NewTopic { name, partitions: 1, overrides, door: Door::Node };
    bench.run(bench.node.controller.create_topic(topic, IfExists::Refuse)).expect("a topic");
    bench.run(coordinator_of("g", &bench.node));
    let gate = bench.arm(GatePoint::ProduceAppendBefore, OFFSETS_TOPIC, GateAction::Hold);
    let begin = |n: i64| {
        let coordinators = bench.node.coordinators.clone();
        let commit = commit(&format!("g{n}"), "t", n);
        bench.spawn(async move { coordinators.commit_offsets("bench", commit).await })
    };
    let commits: Vec<_> = (0..50).map(begin).collect();
    bench.until("the first append", |_| (gate.hits() == 1).then_some(()));
    gate.release();
    for commit in commits {
        bench.run(commit).expect("ran").expect("committed");
    }
    assert_eq!(bench.position("g49", "t"), Ok(49));
}

#[test]
fn an_append_that_failed_within_the_log_has_the_groups_read_anew() {
    let bench = Bench::with_groups(&["offsets.topic.num.partitions=1"]);
    bench.commit("g", "t", 1).expect("committed");
    let topic = bench.node.controller.image().topic(OFFSETS_TOPIC).expect("a topic").id;
    let partition = bench.node.partitions.find(topic, 0).expect("a partition");
    // As if the coordinator's own batch had got into the log before it failed.
    let value = OffsetValue {
        offset: 5,
        leader_epoch: -1,
        metadata: "".into(),
        commit_ms: 1,
        expire_ms: None,
        topic_id: TopicId::ZERO,
    };
    let (group, topic) = ("g".into(), "t".into());
    let record = Record::Offset { group, topic, partition: 0, value: Some(value) };
    let records = vec![record.encode().expect("storable")];
    let batch = BatchForm::Plain;
    let stranger = OpenAppend { id: AppendId(0), records, batch, timestamp_ms: 1 };
    bench.run(append::write(&partition, &stranger, Flush::Topic)).expect("appended");
    drop(partition);
    let gate = bench.arm(GatePoint::ProduceAppendBefore, OFFSETS_TOPIC, GateAction::Fail);
    assert_eq!(bench.commit("g", "t", 2), Err(GroupError::NotCoordinator));
    gate.release();
    assert_eq!(bench.settled_position("g", "t"), 5, "only the log knows");
    bench.commit("g", "t", 6).expect("committed");
    assert_eq!(bench.restart().settled_position("g", "t"), 6);
}

#[test]
fn an_answer_waits_for_its_append_and_so_does_its_group() {
    let bench = Bench::with_groups(&["offsets.topic.num.partitions=1"]);
    bench.commit("h", "t", 7).expect("committed");
    let gate = bench.arm(GatePoint::ProduceAppendBefore, OFFSETS_TOPIC, GateAction::Hold);
    let coordinators = bench.node.coordinators.clone();
    let begun = coordinators.clone();
    let committing =
        bench.spawn(async move { begun.commit_offsets("bench", commit("g", "t", 1)).await });
    bench.until("the append", |_| (gate.hits() == 1).then_some(()));
    let begun = coordinators.clone();
    let fetching = bench.spawn(async move { begun.fetch_offsets(fetch("g", "t")).await });
    // Another group of the same log is answered meanwhile: it waits for nothing.
    assert_eq!(bench.position("h", "t"), Ok(7));
    assert!(!committing.is_finished() && !fetching.is_finished());
    gate.release();
    bench.run(committing).expect("ran").expect("committed");
    let fetched = bench.run(fetching).expect("ran").expect("fetched");
    assert_eq!(fetched[0].partitions[0].offset, 1);
}

#[test]
fn gates_stand_before_commits_joins_and_heartbeats() {
    let bench = Bench::with_groups(&[]);
    let gate = bench.arm(GatePoint::OffsetCommitBefore, "t", GateAction::Fail);
    bench.create("u");
    assert_eq!(bench.commit("g", "t", 1), Err(GroupError::CoordinatorNotAvailable));
    bench.commit("g", "u", 1).expect("another topic");
    gate.release();
    bench.commit("g", "t", 1).expect("released");
    let gates = &bench.node.instruments.gates;
    let filter = GateFilter { client: Some("c".to_owned()), ..GateFilter::default() };
    gates.arm(GatePoint::GroupJoin, filter, GateAction::Fail).expect("a gate");
    let joined = bench.run(bench.node.coordinators.join_group(join("g", 10_000)));
    assert_eq!(joined, Err(GroupError::CoordinatorNotAvailable));
}

#[test]
fn a_stop_answers_held_joins_and_dropped_requests() {
    let bench = Bench::with_groups(&["group.initial.rebalance.delay.ms=60000"]);
    let coordinators = bench.node.coordinators.clone();
    let joining = bench.spawn(async move { coordinators.join_group(join("g", 10_000)).await });
    bench.until("a held join", |bench| {
        (bench.state("g") == GroupState::PreparingRebalance).then_some(())
    });
    let _gate = bench.arm(GatePoint::OffsetCommitBefore, "t", GateAction::Drop);
    let coordinators = bench.node.coordinators.clone();
    let dropped =
        bench.spawn(async move { coordinators.commit_offsets("c", commit("h", "t", 1)).await });
    assert!(!joining.is_finished());
    bench.node.stopping.cancel();
    let joined = bench.run(joining).expect("ran");
    assert_eq!(joined, Err(GroupError::NotCoordinator));
    assert_eq!(bench.run(dropped).expect("ran"), Err(GroupError::NotCoordinator));
    assert_eq!(bench.position("g", "t"), Err(GroupError::NotCoordinator));
}

#[test]
fn a_silent_member_goes_by_the_clock() {
    let settings = ["group.initial.rebalance.delay.ms=0", "group.min.session.timeout.ms=1"];
    let bench = Bench::with_groups(&settings);
    let joined = bench.run(bench.node.coordinators.join_group(join("g", 20))).expect("joined");
    assert_eq!((joined.generation, joined.error), (1, None));
    bench.until("the member's leave", |bench| {
        let events = bench.told.events();
        events.iter().any(|event| event.kind == EventKind::GroupLeave).then_some(())
    });
    bench.until("an empty group", |bench| (bench.state("g") == GroupState::Empty).then_some(()));
}

#[test]
fn positions_on_a_deleted_topic_go_with_it() {
    let bench = Bench::with_groups(&[]);
    let topic = bench.create("gone");
    for (topic, offset) in [("gone", 1), ("t", 2)] {
        bench.commit("g", topic, offset).expect("committed");
    }
    bench.run(bench.node.delete_topic(topic)).expect("deleted");
    bench
        .until("the positions' end", |bench| (bench.position("g", "gone") == Ok(-1)).then_some(()));
    assert_eq!(bench.position("g", "t"), Ok(2));
}

#[test]
fn positions_on_the_namesake_of_a_deleted_topic_stay() {
    let bench = Bench::with_groups(&[]);
    let topic = bench.create("gone");
    bench.commit("g", "gone", 1).expect("committed");
    let node = bench.node.clone();
    let deletion = bench.spawn(async move { node.delete_topic(topic).await });
    bench.until("the topic's end", |bench| {
        bench.node.controller.image().topic("gone").is_none().then_some(())
    });
    bench.create("gone");
    bench.commit("g", "gone", 5).expect("committed");
    bench.run(deletion).expect("joined").expect("deleted");
    assert_eq!(bench.position("g", "gone"), Ok(5));
    assert_eq!(bench.restart().settled_position("g", "gone"), 5);
}

#[test]
fn positions_on_a_topic_that_went_unnoticed_go_at_the_next_start() {
    let bench = Bench::with_groups(&[]);
    let topic = bench.create("gone");
    for (topic, offset) in [("gone", 1), ("t", 2)] {
        bench.commit("g", topic, offset).expect("committed");
    }
    // As a kill between the two halves of a deletion leaves it.
    bench.run(bench.node.controller.delete_topic(topic)).expect("deleted");
    let bench = bench.restart();
    assert_eq!(bench.settled_position("g", "t"), 2);
    bench
        .until("the positions' end", |bench| (bench.position("g", "gone") == Ok(-1)).then_some(()));
    bench.create("gone");
    assert_eq!(bench.restart().settled_position("g", "gone"), -1, "for good");
}

#[test]
fn without_the_topic_of_all_positions_the_groups_begin_anew() {
    let bench = Bench::with_groups(&[]);
    bench.commit("g", "t", 1).expect("committed");
    let topic = bench.node.controller.image().topic(OFFSETS_TOPIC).expect("a topic").id;
    bench.run(bench.node.delete_topic(topic)).expect("deleted");
    assert_eq!(bench.position("g", "t"), Err(GroupError::NotCoordinator));
    bench.run(coordinator_of("g", &bench.node));
    assert_eq!(bench.position("g", "t"), Ok(-1));
    bench.commit("g", "t", 2).expect("committed");
    assert_eq!(bench.restart().settled_position("g", "t"), 2);
}
