//! What both families, tools, time and topics do to groups, through the runtime.

use std::sync::Arc;

use bytes::Bytes;
use duolog_log_core::ids::{NodeId, TopicId};

use super::*;
use crate::error::AppendError;
use crate::group::config::RocketMqListing;
use crate::group::event::*;
use crate::group::response::*;
use crate::group::testing::*;
use crate::record::{FamilyValue, GroupValue, MemberValue, OffsetValue};

mod commits;
mod deletion;
mod families;
mod told;
mod transactions;

fn committed(error: Option<GroupError>) -> Answer {
    Ok(Response::OffsetCommit(vec![CommittedTopic {
        topic: "t".into(),
        topic_id: TopicId::ZERO,
        partitions: vec![PartitionResult { partition: 0, error }],
    }]))
}

fn queue_commit(group: &str, offset: i64) -> Event {
    Event::CommitQueueOffset(CommitQueueOffset {
        group: group.into(),
        topic: "t".into(),
        queue: 0,
        offset,
    })
}

fn queue_query(group: &str, topic: &str) -> Event {
    let (group, topic) = (group.into(), topic.into());
    Event::QueryQueueOffset(QueryQueueOffset { group, topic, queue: 0 })
}

fn delete(group: &str) -> Event {
    Event::DeleteGroup(DeleteGroup { group: group.into() })
}

fn consumer_leave(id: &str) -> Event {
    let notices = MemberNotices::On;
    Event::ConsumerLeave(ConsumerLeave { group: "g".into(), client: id.into(), notices })
}

const DAY_MS: i64 = 86_400_000;

mod fetches {
    use super::*;

    fn fetch(bench: &mut Bench, group: &str, topic: &str, topic_id: TopicId) -> (i64, i32, String) {
        let topic = TopicFetch { topic: topic.into(), topic_id, partitions: vec![0] };
        let fetch = OffsetFetch { group: group.into(), member: None, topics: Some(vec![topic]) };
        let answer = bench.ask(Event::OffsetFetch(fetch));
        let Ok(Response::OffsetFetch(topics)) = answer else { panic!("{answer:?}") };
        assert_eq!(topics[0].topic_id, topic_id);
        let found = &topics[0].partitions[0];
        (found.offset, found.leader_epoch, found.metadata.to_string())
    }

    #[test]
    fn what_was_never_committed_is_minus_one_not_an_error() {
        let mut bench = Bench::new();
        let none = (-1, -1, String::new());
        assert_eq!(fetch(&mut bench, "g", "t", TopicId::ZERO), none, "no group");
        bench.ask(Event::OffsetCommit(commit("g", "", -1, 5))).expect("committed");
        assert_eq!(fetch(&mut bench, "g", "u", TopicId::ZERO), none, "no topic");
        assert_eq!(fetch(&mut bench, "g", "t", TopicId::ZERO), (5, -1, String::new()));
        assert_eq!(bench.positions("h"), [""; 0]);
    }

    #[test]
    fn a_position_of_another_topic_of_that_name_is_none() {
        let (old, new) = (TopicId([1; 16]), TopicId([2; 16]));
        // Committed by id, asked by id, found.
        let rows = [
            (old, old, true),
            (old, new, false),
            (old, TopicId::ZERO, true),
            (TopicId::ZERO, new, true),
        ];
        for (stored, asked, found) in rows {
            let mut bench = Bench::new();
            let mut request = commit("g", "", -1, 5);
            request.topics[0].topic_id = stored;
            bench.ask(Event::OffsetCommit(request)).expect("committed");
            assert_eq!(fetch(&mut bench, "g", "t", asked).0 == 5, found, "{stored} {asked}");
        }
    }

    /// Case B25: while loading there is no answer that looks like «nothing committed».
    #[test]
    fn b25_while_loading_all_but_heartbeats_are_refused() {
        let events = Arc::new(Events::silent(NodeId(1)));
        let mut runtime =
            crate::runtime::Runtime::loading(GroupShard::new(GroupConfig::default(), events));
        let fetch =
            |topics| Event::OffsetFetch(OffsetFetch { group: "g".into(), member: None, topics });
        let asked = [
            fetch(None),
            fetch(Some(Vec::new())),
            queue_query("g", "t"),
            Event::OffsetCommit(commit("g", "", -1, 1)),
            join("").event(),
            sync("m", 1, Vec::new()),
            Event::ListGroups(ListGroups::default()),
            heartbeat("m", None, 1),
        ];
        let count = asked.len();
        for (n, event) in asked.into_iter().enumerate() {
            runtime.submit(RequestId(n as u64), event, Now::default());
        }
        for n in 0..count {
            let Some(crate::runtime::Effect::Reply { request, answer }) = runtime.poll_effect()
            else {
                panic!("a reply for each");
            };
            assert_eq!(request, RequestId(n as u64));
            let expected = if n + 1 == count {
                Ok(Response::Heartbeat)
            } else {
                Err(GroupError::CoordinatorLoadInProgress)
            };
            assert_eq!(answer, expected);
        }
    }
}

mod expiry {
    use super::*;

    #[test]
    fn positions_of_a_group_that_stays_empty_go_after_seven_days_and_the_group_with_them() {
        let mut bench = Bench::new();
        let request = bench.send(join("").but(|join| join.session_timeout_ms = 1_800_000).event());
        bench.pass(3_000);
        let members = bench.sync_all(vec![request]);
        bench.ask(Event::OffsetCommit(commit("g", &members[0], 1, 5))).expect("committed");
        for _ in 0..10 * DAY_MS / 1_000_000 {
            bench.pass(1_000_000);
            bench.heartbeat(&members[0], 1).expect("alive");
        }
        assert_eq!(bench.positions("g"), ["t-0@5"], "a subscribed topic's position stays");
        bench.ask(leave(&[(&members[0], "")])).expect("left");
        bench.pass(7 * DAY_MS - 600_000);
        assert_eq!(bench.positions("g"), ["t-0@5"], "the days count from the end of membership");
        bench.pass(1_200_000);
        assert_eq!(bench.positions("g"), [""; 0]);
        assert_eq!(bench.state("g"), GroupState::Dead);
    }

    /// Case B53: −1 is the server's default, and nothing else is.
    #[test]
    fn b53_a_retention_time_of_its_own_counts_from_the_commit() {
        let mut bench = Bench::with(|c| c.offsets_retention_check_interval_ms = 500);
        let with = |group, retention_ms| {
            let mut request = commit(group, "", -1, 5);
            request.retention_ms = retention_ms;
            Event::OffsetCommit(request)
        };
        bench.ask(with("default", None)).expect("committed");
        bench.ask(with("a second", Some(1_000))).expect("committed");
        bench.ask(with("ever", Some(i64::MAX))).expect("committed");
        bench.pass(999);
        assert_eq!(bench.positions("a second"), ["t-0@5"]);
        bench.pass(501);
        assert_eq!(bench.positions("a second"), [""; 0]);
        let config = GroupConfig { offsets_retention_check_interval_ms: 500, ..Default::default() };
        let mut bench = bench.restarted(config);
        assert_eq!(bench.positions("default"), ["t-0@5"]);
        bench.pass(1_500);
        assert_eq!(bench.positions("default"), ["t-0@5"]);
        assert_eq!(bench.positions("ever"), ["t-0@5"]);
    }

    /// Pitfall 18.
    #[test]
    fn positions_of_rocketmq_groups_do_not_expire() {
        let mut bench = Bench::new();
        bench.ask(queue_commit("g", 5)).expect("committed");
        bench.pass(30 * DAY_MS);
        assert_eq!(bench.positions("g"), ["t-0@5"]);
        let mut bench = bench.restarted(Default::default());
        bench.pass(30 * DAY_MS);
        assert_eq!(bench.positions("g"), ["t-0@5"]);
    }

    #[test]
    fn many_expired_positions_go_in_steps() {
        let mut bench = Bench::new();
        let mut request = commit("g", "", -1, 1);
        let one = request.topics[0].partitions[0].clone();
        request.topics[0].partitions =
            (0..2_500).map(|partition| PartitionCommit { partition, ..one.clone() }).collect();
        bench.ask(Event::OffsetCommit(request)).expect("committed");
        bench.pass(8 * DAY_MS);
        assert_eq!(bench.log.len(), 5_000);
        assert_eq!(bench.state("g"), GroupState::Dead);
    }
}

mod listing {
    use super::*;

    #[test]
    fn groups_of_all_kinds_are_listed_and_filtered_without_regard_to_case() {
        let mut bench = Bench::new();
        bench.stable(1);
        bench.ask(Event::OffsetCommit(commit("simple", "", -1, 1))).expect("committed");
        bench.ask(queue_commit("rocketmq", 1)).expect("committed");
        let mut live = consumer("c@1", 1, &["t"]);
        live.group = "rocketmq-live".into();
        bench.ask(beat(live)).expect("live");
        bench.send(join("").but(|join| join.group = "young".into()).event());
        let all = [
            "g Stable \"consumer\"",
            "rocketmq Empty \"\"",
            "rocketmq-live Stable \"\"",
            "simple Empty \"\"",
            "young PreparingRebalance \"consumer\"",
        ];
        assert_eq!(bench.listed(&[], &[]), all);
        assert_eq!(bench.listed(&["stable"], &[]), [all[0], all[2]]);
        assert_eq!(bench.listed(&[" EMPTY ", "preparingrebalance"], &[]), [all[1], all[3], all[4]]);
        assert_eq!(bench.listed(&["nonsense"], &[]), [""; 0]);
        assert_eq!(bench.listed(&[], &["classic"]), all);
        assert_eq!(bench.listed(&[], &["consumer", "share"]), [""; 0]);
        assert_eq!(bench.listed(&["Empty"], &["Classic"]), [all[1], all[3]]);
    }

    #[test]
    fn rocketmq_groups_have_neither_type_nor_members_for_kafka_tools_unless_asked_for() {
        for (listing, name) in
            [(RocketMqListing::Untyped, ""), (RocketMqListing::Typed, "rocketmq")]
        {
            let mut bench = Bench::with(|config| config.rocketmq_listing = listing);
            bench.ask(beat(consumer("c@1", 1, &["t"]))).expect("live");
            let live = bench.described("g");
            assert_eq!((live.state, &*live.protocol_type), (GroupState::Stable, name));
            assert!(live.members.is_empty() && live.error.is_none() && live.protocol.is_empty());
            bench.ask(consumer_leave("c@1")).expect("left");
            let idle = bench.described("g");
            assert_eq!((idle.state, &*idle.protocol_type), (GroupState::Empty, name));
            let mut bench = bench
                .restarted(GroupConfig { rocketmq_listing: listing, ..GroupConfig::default() });
            assert_eq!(bench.described("g"), idle);
        }
    }

    #[test]
    fn a_missing_group_is_dead_and_from_version_6_on_not_found() {
        let mut bench = Bench::new();
        let dead = bench.described("g");
        assert_eq!((dead.state, dead.error, dead.error_message), (GroupState::Dead, None, None));
        let missing = MissingGroup::NotFound;
        let event = Event::DescribeGroup(DescribeGroup { group: "g".into(), missing });
        let Ok(Response::DescribeGroup(found)) = bench.ask(event) else { panic!("described") };
        assert_eq!(found.state, GroupState::Dead);
        assert_eq!(found.error, Some(GroupError::GroupIdNotFound));
        assert_eq!(found.error_message.as_deref(), Some("Group g not found."));
    }

    #[test]
    fn members_are_described_with_metadata_only_while_stable() {
        let mut bench = Bench::new();
        let members = bench.stable(1);
        let stable = bench.described("g");
        assert_eq!(&*stable.protocol, "range");
        assert_eq!(
            stable.members,
            [DescribedMember {
                member: members[0].clone(),
                instance: None,
                client_id: "c".into(),
                client_host: "/127.0.0.1".into(),
                metadata: subscription(&["t"]),
                assignment: Bytes::from(format!("for {}", members[0])),
            }]
        );
        bench.send(join("").uuid(9).event());
        let preparing = bench.described("g");
        assert_eq!(&*preparing.protocol, "");
        assert!(preparing.members.iter().all(|member| member.metadata.is_empty()));
    }
}

mod queue_offsets {
    use super::*;

    #[test]
    fn a_position_is_the_same_for_both_protocols() {
        let mut bench = Bench::new();
        assert_eq!(bench.ask(queue_query("g", "t")), Ok(Response::QueryQueueOffset(None)));
        assert_eq!(bench.ask(queue_commit("g", 5)), Ok(Response::Done));
        let (group, topic): (Arc<str>, _) = ("g".into(), "t".into());
        let value = Some(offset_value(5, 1_000_000));
        assert_eq!(
            bench.records(0)[0],
            Record::Offset { group, topic, partition: 0, value },
            "leader epoch −1, no metadata, no expiry"
        );
        assert_eq!(bench.positions("g"), ["t-0@5"]);
        assert_eq!(bench.ask(queue_query("g", "t")), Ok(Response::QueryQueueOffset(Some(5))));
        assert_eq!(bench.ask(queue_query("g", "u")), Ok(Response::QueryQueueOffset(None)));
        assert_eq!(bench.ask(queue_commit("", 5)), Err(GroupError::InvalidGroupId));
    }

    #[test]
    fn a_position_that_has_not_moved_is_not_written_again() {
        let mut bench = Bench::new();
        bench.ask(queue_commit("g", 5)).expect("committed");
        let before = bench.log.len();
        bench.notify(queue_commit("g", 5));
        assert_eq!(bench.log.len(), before);
        bench.notify(queue_commit("g", 4));
        assert_eq!(bench.log.len(), before + 1, "backwards is a reset");
    }

    #[test]
    fn a_commit_that_would_expire_is_made_lasting() {
        let mut bench = Bench::new();
        let mut request = commit("g", "", -1, 5);
        request.retention_ms = Some(1_000);
        bench.ask(Event::OffsetCommit(request)).expect("committed");
        bench.ask(queue_commit("g", 5)).expect("committed");
        assert_eq!(bench.log.len(), 2);
    }

    #[test]
    fn broadcast_groups_do_not_touch_shared_positions() {
        let mut bench = Bench::new();
        let mut heartbeat = consumer("c@1", 1, &["t"]);
        heartbeat.message_model = MessageModel::Broadcasting;
        bench.ask(beat(heartbeat)).expect("live");
        let before = bench.log.len();
        assert_eq!(bench.ask(queue_commit("g", 5)), Err(GroupError::BroadcastGroup));
        assert_eq!(bench.log.len(), before);
        bench.ask(consumer_leave("c@1")).expect("left");
        assert_eq!(bench.ask(queue_commit("g", 5)), Ok(Response::Done), "it may change its model");
    }
}

#[test]
fn one_way_joins_and_syncs_do_nothing() {
    let mut bench = Bench::new();
    bench.notify(join("").event());
    bench.notify(sync("m", 1, Vec::new()));
    assert_eq!(bench.listed(&[], &[]), [""; 0]);
}

#[test]
fn a_foreign_record_of_a_group_without_protocol_still_loads() {
    let value = GroupValue {
        protocol_type: "consumer".into(),
        generation: 3,
        leader: Some("nobody".into()),
        members: vec![MemberValue {
            member_id: "m".into(),
            rebalance_timeout_ms: -1,
            session_timeout_ms: 10_000,
            ..Default::default()
        }],
        ..Default::default()
    };
    let record = Record::Group { group: "g".into(), value: Some(value) };
    let log = vec![record.encode().expect("storable")];
    let mut bench = Bench::on(GroupConfig::default(), log, Now::default());
    assert_eq!(bench.state("g"), GroupState::Stable);
    assert_eq!(bench.heartbeat("m", 3), Ok(Response::Heartbeat));
    let request = bench.send(join("m").event());
    assert_eq!(bench.refused(request), GroupError::InconsistentGroupProtocol);
    bench.pass(10_000);
    assert_eq!(bench.state("g"), GroupState::Empty);
}
