//! Group APIs in each of their versions, over a node of their own.

mod positions;

use duolog_coordinator::group::event::{
    ChannelId, Client, ConsumeFromWhere, ConsumeType, ConsumerHeartbeat, Event, MemberNotices,
    MessageModel,
};
use duolog_log_core::ids::TopicId;

use self::positions::{commit, fetch, topic};
use crate::config::topic::Overrides;
use crate::controller::topics::{Door, IfExists, NewTopic};
use crate::kafka::codec::Str;
use crate::kafka::codec::messages::join_group_request::JoinGroupRequestProtocol;
use crate::kafka::codec::messages::leave_group_request::MemberIdentity;
use crate::kafka::codec::messages::sync_group_request::SyncGroupRequestAssignment;
use crate::kafka::codec::messages::{
    DeleteGroupsRequest, DeleteGroupsResponse, DescribeGroupsRequest, DescribeGroupsResponse,
    FindCoordinatorRequest, FindCoordinatorResponse, HeartbeatRequest, HeartbeatResponse,
    JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, LeaveGroupResponse, ListGroupsRequest,
    ListGroupsResponse, OffsetCommitResponse, SyncGroupRequest, SyncGroupResponse,
};
use crate::kafka::errors::ErrorCode;
use crate::kafka::operations;
use crate::testing::{Bench, coordinator_of};

fn bench() -> (Bench, TopicId) {
    let bench = Bench::with(&[
        "group.initial.rebalance.delay.ms=0",
        "group.min.session.timeout.ms=50",
        "offsets.topic.num.partitions=3",
    ]);
    let topic = create(&bench, "t");
    bench.run(coordinator_of("g", &bench.node));
    bench.until("all groups are read", |bench| {
        let listed: ListGroupsResponse = bench.call(0, &ListGroupsRequest::default());
        (listed.error_code == 0).then_some(())
    });
    (bench, topic)
}

fn create(bench: &Bench, name: &str) -> TopicId {
    let topic = NewTopic {
        name: name.into(),
        partitions: 3,
        overrides: Overrides::new(),
        door: Door::Kafka,
    };
    let created = bench.run(bench.node.controller.create_topic(topic, IfExists::Refuse));
    created.expect("a topic").id
}

#[test]
fn the_coordinator_of_a_group_is_this_node_and_of_other_things_nobody() {
    let (bench, _) = bench();
    for version in 0..=6 {
        let keys = vec!["g".into(), "h".into()];
        let request = if version < 4 {
            FindCoordinatorRequest { key: "g".into(), ..Default::default() }
        } else {
            FindCoordinatorRequest { coordinator_keys: keys, ..Default::default() }
        };
        let found: FindCoordinatorResponse = bench.call(version, &request);
        if version < 4 {
            assert_eq!((found.error_code, found.node_id, found.port), (0, 1, 9092));
            let text = if version == 0 { "" } else { "NONE" };
            assert_eq!(found.error_message.as_deref(), Some(text));
        } else {
            let keys: Vec<_> = found.coordinators.iter().map(|one| &*one.key).collect();
            assert_eq!(keys, ["g", "h"]);
            assert!(found.coordinators.iter().all(|one| (one.node_id, one.port) == (1, 9092)));
        }
    }
    for (version, key_type) in [(6, 2), (6, 9), (2, -1)] {
        let keys = vec!["x".into()];
        let request = if version < 4 {
            FindCoordinatorRequest { key: "x".into(), key_type, ..Default::default() }
        } else {
            FindCoordinatorRequest { coordinator_keys: keys, key_type, ..Default::default() }
        };
        let found: FindCoordinatorResponse = bench.call(version, &request);
        let one = found.coordinators.first();
        let code = one.map_or(found.error_code, |one| one.error_code);
        let text = one.map_or(found.error_message.clone(), |one| one.error_message.clone());
        assert_eq!(code, ErrorCode::InvalidRequest.code(), "type {key_type} in v{version}");
        assert!(text.expect("a text").contains("not supported"));
    }
}

fn join(version: i16, group: &str, member: &str) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: group.into(),
        session_timeout_ms: 30_000,
        rebalance_timeout_ms: if version == 0 { -1 } else { 30_000 },
        member_id: member.into(),
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupRequestProtocol {
            name: "range".into(),
            metadata: bytes::Bytes::from_static(b"meta"),
        }],
        ..JoinGroupRequest::default()
    }
}

/// Members of a new group, with the generation they are in, before any of them syncs.
fn join_all(bench: &Bench, group: &str, count: usize) -> Vec<JoinGroupResponse> {
    let ids: Vec<Str> = (0..count)
        .map(|_| {
            let refused: JoinGroupResponse = bench.call(9, &join(9, group, ""));
            assert_eq!(refused.error_code, ErrorCode::MemberIdRequired.code());
            refused.member_id
        })
        .collect();
    let ask = |id: &Str| bench.spawn(bench.ask::<_, JoinGroupResponse>(9, &join(9, group, id)));
    let mut asked: Vec<_> = ids.iter().map(ask).collect();
    bench.until("one generation of all", |bench| {
        // Whoever has an answer while others wait is in an old generation: it comes again.
        let finished: Vec<bool> = asked.iter().map(|join| join.is_finished()).collect();
        if finished.iter().all(|finished| *finished) {
            let joined = asked.drain(..).map(|join| bench.run(join).expect("an answer"));
            return Some(joined.collect::<Vec<_>>());
        }
        for ((join, id), _) in asked.iter_mut().zip(&ids).zip(finished).filter(|(_, is)| *is) {
            *join = ask(id);
        }
        None
    })
}

fn sync(version: i16, group: &str, member: &JoinGroupResponse) -> SyncGroupRequest {
    let named = version >= 5;
    let assignments = member.members.iter().map(|other| SyncGroupRequestAssignment {
        member_id: other.member_id.clone(),
        assignment: bytes::Bytes::from(format!("for {}", other.member_id)),
    });
    SyncGroupRequest {
        group_id: group.into(),
        generation_id: member.generation_id,
        member_id: member.member_id.clone(),
        protocol_type: named.then(|| "consumer".into()),
        protocol_name: named.then(|| "range".into()),
        assignments: assignments.collect(),
        ..SyncGroupRequest::default()
    }
}

#[test]
fn a_group_of_one_lives_and_ends_in_every_version() {
    let (bench, _) = bench();
    for version in 0..=9 {
        let group = format!("one-{version}");
        let mut joined: JoinGroupResponse = bench.call(version, &join(version, &group, ""));
        if version >= 4 {
            assert_eq!(joined.error_code, ErrorCode::MemberIdRequired.code(), "KIP-394");
            joined = bench.call(version, &join(version, &group, &joined.member_id));
        }
        assert_eq!((joined.error_code, joined.generation_id), (0, 1), "v{version}");
        assert_eq!(joined.leader, joined.member_id);
        assert!(joined.member_id.starts_with("bench-"), "{}", joined.member_id);
        assert_eq!(joined.protocol_name.as_deref(), Some("range"));
        assert_eq!(joined.members.len(), 1);
        let at = version.min(5);
        let synced: SyncGroupResponse = bench.call(at, &sync(at, &group, &joined));
        assert_eq!(synced.error_code, 0, "v{at}");
        assert_eq!(synced.assignment, format!("for {}", joined.member_id));
        let at = version.min(4);
        let beat = HeartbeatRequest {
            group_id: group.as_str().into(),
            generation_id: 1,
            member_id: joined.member_id.clone(),
            ..HeartbeatRequest::default()
        };
        let alive: HeartbeatResponse = bench.call(at, &beat);
        assert_eq!(alive.error_code, 0, "v{at}");
        let stale: HeartbeatResponse =
            bench.call(at, &HeartbeatRequest { generation_id: 0, ..beat.clone() });
        assert_eq!(stale.error_code, ErrorCode::IllegalGeneration.code());
        leave(&bench, version.min(5), &group, &joined.member_id);
        let gone: HeartbeatResponse = bench.call(at, &beat);
        assert_eq!(gone.error_code, ErrorCode::UnknownMemberId.code());
    }
}

fn leave(bench: &Bench, version: i16, group: &str, member: &Str) {
    let many = version >= 3;
    let member_id = member.clone();
    let request = LeaveGroupRequest {
        group_id: group.into(),
        member_id: if many { "".into() } else { member_id.clone() },
        members: if many {
            let stranger = MemberIdentity { member_id: "stranger".into(), ..Default::default() };
            vec![MemberIdentity { member_id, ..Default::default() }, stranger]
        } else {
            Vec::new()
        },
    };
    let left: LeaveGroupResponse = bench.call(version, &request);
    assert_eq!(left.error_code, 0, "v{version}");
    if many {
        let codes: Vec<_> = left.members.iter().map(|one| one.error_code).collect();
        assert_eq!(codes, [0, ErrorCode::UnknownMemberId.code()]);
    }
    let again: LeaveGroupResponse = bench.call(version, &request);
    let code = again.members.first().map_or(again.error_code, |one| one.error_code);
    assert_eq!(code, ErrorCode::UnknownMemberId.code(), "v{version}");
}

#[test]
fn from_version_5_on_a_sync_names_its_protocol() {
    let (bench, _) = bench();
    let joined = join_all(&bench, "g", 1).remove(0);
    let unnamed = SyncGroupRequest { protocol_name: None, ..sync(5, "g", &joined) };
    let refused: SyncGroupResponse = bench.call(5, &unnamed);
    assert_eq!(refused.error_code, ErrorCode::InconsistentGroupProtocol.code(), "KIP-559");
    let synced: SyncGroupResponse = bench.call(4, &sync(4, "g", &joined));
    assert_eq!(synced.error_code, 0);
}

#[test]
fn refusals_have_their_members_id_and_no_generation() {
    let (bench, _) = bench();
    for version in 0..=9 {
        let mut request = join(version, "g", "stranger");
        let refused: JoinGroupResponse = bench.call(version, &request);
        let code = ErrorCode::UnknownMemberId.code();
        assert_eq!((refused.error_code, refused.generation_id), (code, -1), "v{version}");
        assert_eq!(&*refused.member_id, "stranger");
        request.session_timeout_ms = 1;
        let refused: JoinGroupResponse = bench.call(version, &request);
        assert_eq!(refused.error_code, ErrorCode::InvalidSessionTimeout.code());
        request.group_id = "".into();
        let refused: JoinGroupResponse = bench.call(version, &request);
        assert_eq!(refused.error_code, ErrorCode::InvalidGroupId.code());
    }
}

#[test]
fn nobody_waits_for_who_left_or_never_came_back() {
    let (bench, _) = bench();
    // Case B54, first: A and B stable, C comes, A comes again, B leaves.
    let stable = join_all(&bench, "g", 2);
    for member in &stable {
        let sync = bench.ask::<_, SyncGroupResponse>(5, &sync(5, "g", member));
        drop(bench.spawn(sync));
    }
    bench.until("a stable group", |bench| {
        let described = describe(bench, 5, "g");
        (&*described.group_state == "Stable").then_some(())
    });
    let given: JoinGroupResponse = bench.call(9, &join(9, "g", ""));
    let joining = |id: &Str| bench.spawn(bench.ask::<_, JoinGroupResponse>(9, &join(9, "g", id)));
    let c = joining(&given.member_id);
    let a = joining(&stable[0].member_id);
    bench.until("a rebalance", |bench| {
        let described = describe(bench, 5, "g");
        let waiting = &*described.group_state == "PreparingRebalance";
        (waiting && described.members.len() == 3).then_some(())
    });
    assert!(!a.is_finished() && !c.is_finished());
    leave(&bench, 5, "g", &stable[1].member_id);
    for join in [a, c] {
        let joined = bench.run(join).expect("an answer");
        assert_eq!((joined.error_code, joined.generation_id), (0, stable[0].generation_id + 1));
    }
    // Third: ids that were given hold up nobody, and are not listed.
    for _ in 0..100 {
        let mut request = join(9, "pending", "");
        request.session_timeout_ms = 50;
        let given: JoinGroupResponse = bench.call(9, &request);
        assert_eq!(given.error_code, ErrorCode::MemberIdRequired.code());
    }
    assert_eq!(describe(&bench, 5, "pending").members, []);
    let joined = join_all(&bench, "pending", 1);
    assert_eq!(joined[0].members.len(), 1);
    bench.until("the given ids' end", |bench| {
        leave_if_there(bench, "pending", &joined[0].member_id);
        let dead = &*describe(bench, 5, "pending").group_state != "Stable";
        dead.then_some(())
    });
}

fn leave_if_there(bench: &Bench, group: &str, member: &Str) {
    let member = MemberIdentity { member_id: member.clone(), ..Default::default() };
    let request = LeaveGroupRequest {
        group_id: group.into(),
        members: vec![member],
        ..LeaveGroupRequest::default()
    };
    let left: LeaveGroupResponse = bench.call(5, &request);
    assert_eq!(left.error_code, 0);
}

fn describe(
    bench: &Bench,
    version: i16,
    group: &str,
) -> crate::kafka::codec::messages::describe_groups_response::DescribedGroup {
    let request = DescribeGroupsRequest {
        groups: vec![group.into()],
        include_authorized_operations: version >= 3,
    };
    let mut described: DescribeGroupsResponse = bench.call(version, &request);
    assert_eq!(described.groups.len(), 1);
    described.groups.remove(0)
}

#[test]
fn groups_are_described_with_members_and_assignment() {
    let (bench, _) = bench();
    let joined = join_all(&bench, "g", 1).remove(0);
    let _: SyncGroupResponse = bench.call(5, &sync(5, "g", &joined));
    for version in 0..=6 {
        let group = describe(&bench, version, "g");
        assert_eq!((group.error_code, &*group.group_state), (0, "Stable"));
        assert_eq!((&*group.protocol_type, &*group.protocol_data), ("consumer", "range"));
        let [member] = &group.members[..] else { panic!("one member: {group:?}") };
        assert_eq!(member.member_id, joined.member_id);
        assert_eq!((&*member.client_id, &*member.client_host), ("bench", "/127.0.0.1"));
        assert_eq!(&*member.member_metadata, b"meta");
        assert_eq!(member.member_assignment, format!("for {}", joined.member_id));
        let operations = if version >= 3 { operations::GROUP } else { operations::NOT_ASKED };
        assert_eq!(group.authorized_operations, operations);
        let missing = describe(&bench, version, "nobody");
        assert_eq!(&*missing.group_state, "Dead");
        if version < 6 {
            assert_eq!((missing.error_code, missing.authorized_operations), (0, operations));
        } else {
            assert_eq!(missing.error_code, ErrorCode::GroupIdNotFound.code());
            assert_eq!(missing.error_message.as_deref(), Some("Group nobody not found."));
            assert_eq!(missing.authorized_operations, operations::NOT_ASKED);
        }
    }
}

fn heartbeat_of_rocketmq(bench: &Bench, group: &str) {
    let heartbeat = ConsumerHeartbeat {
        group: group.into(),
        client: Client {
            id: "c@1".into(),
            language: 0,
            version: 513,
            address: ([127, 0, 0, 1], 5000).into(),
            channel: ChannelId(1),
        },
        consume_type: ConsumeType::Passively,
        message_model: MessageModel::Clustering,
        consume_from_where: ConsumeFromWhere::FirstOffset,
        subscriptions: Some(Vec::new()),
        notices: MemberNotices::On,
    };
    let event = Event::ConsumerHeartbeat(Box::new(heartbeat));
    bench.run(bench.node.coordinators.request(group, event)).expect("taken");
}

#[test]
fn groups_of_both_families_are_listed_by_state_and_type() {
    let (bench, id) = bench();
    let joined = join_all(&bench, "live", 1).remove(0);
    let _: SyncGroupResponse = bench.call(5, &sync(5, "live", &joined));
    let asked = vec![topic(8, "t", id, &[(0, 5)])];
    let _: OffsetCommitResponse = bench.call(8, &commit("empty", asked));
    heartbeat_of_rocketmq(&bench, "rocket");
    let list = |version: i16, states: &[&str], types: &[&str]| {
        let of = |names: &[&str]| names.iter().map(|&name| name.into()).collect();
        let request = ListGroupsRequest { states_filter: of(states), types_filter: of(types) };
        let listed: ListGroupsResponse = bench.call(version, &request);
        assert_eq!(listed.error_code, 0);
        let shown = listed.groups.iter().map(|group| {
            let (id, kind) = (&group.group_id, &group.protocol_type);
            format!("{id} {kind} {} {}", group.group_state, group.group_type)
        });
        shown.collect::<Vec<_>>()
    };
    assert_eq!(list(3, &[], &[]), ["empty   ", "live consumer  ", "rocket   "]);
    assert_eq!(
        list(5, &[], &[]),
        ["empty  Empty classic", "live consumer Stable classic", "rocket  Stable classic"]
    );
    assert_eq!(list(4, &["empty"], &[]), ["empty  Empty "]);
    assert_eq!(list(5, &["Stable"], &["consumer"]), [""; 0]);
}

#[test]
fn only_groups_without_members_are_deleted() {
    let (bench, id) = bench();
    for version in 0..=2 {
        join_all(&bench, &format!("live{version}"), 1);
        let asked = vec![topic(8, "t", id, &[(0, 5)])];
        let _: OffsetCommitResponse = bench.call(8, &commit("empty", asked));
        let live = format!("live{version}");
        let names = [live.as_str(), "empty", "nobody", "empty"].map(Into::into);
        let request = DeleteGroupsRequest { groups_names: names.to_vec() };
        let deleted: DeleteGroupsResponse = bench.call(version, &request);
        let codes: Vec<_> = deleted.results.iter().map(|one| one.error_code).collect();
        let refusals = [ErrorCode::NonEmptyGroup, ErrorCode::None, ErrorCode::GroupIdNotFound];
        assert_eq!(codes, refusals.map(ErrorCode::code), "v{version}");
        assert_eq!(fetch(&bench, 8, "empty", Some(("t", id))).0[0].1, -1);
    }
}
