//! Groups that go over to the other protocol while their members go on.

use bytes::{BufMut, Bytes};

use super::*;

/// A `ConsumerProtocolAssignment` v1 of partitions of topic `t`.
fn assigned(indexes: &[i32]) -> Bytes {
    let mut bytes = vec![0, 1];
    bytes.put_i32(1);
    bytes.put_i16(1);
    bytes.put_slice(b"t");
    bytes.put_i32(indexes.len() as i32);
    indexes.iter().for_each(|index| bytes.put_i32(*index));
    bytes.put_i32(-1);
    bytes.into()
}

/// A stable classic group of one member that has all of `t`; its id.
fn classic(bench: &mut Bench) -> MemberId {
    let request = bench.send(join("").uuid(1).protocols(&["range", "roundrobin"]).event());
    bench.pass(3_000);
    let joined = bench.joined(request);
    let given = vec![(joined.member.clone(), assigned(&[0, 1, 2]))];
    bench.send(sync(&joined.member, joined.generation, given));
    joined.member
}

/// Joins again and syncs: generation and assignment.
fn rejoin(bench: &mut Bench, id: &MemberId, owned: &[i32]) -> (i32, Bytes) {
    let mut metadata = vec![0, 1];
    metadata.put_i32(1);
    metadata.put_slice(b"\0\x01t");
    metadata.put_i32(-1);
    metadata.put_i32(1);
    metadata.put_slice(b"\0\x01t");
    metadata.put_i32(owned.len() as i32);
    owned.iter().for_each(|index| metadata.put_i32(*index));
    let protocol = Protocol { name: "range".into(), metadata: metadata.into() };
    let request = bench.send(join(id).but(|join| join.protocols = vec![protocol]).event());
    let joined = bench.joined(request);
    assert_eq!(joined.error, None);
    let request = bench.send(sync(id, joined.generation, Vec::new()));
    (joined.generation, bench.synced(request))
}

#[test]
fn a_classic_group_is_upgraded_by_the_first_consumer_and_downgraded_by_the_last() {
    let mut bench = bench();
    let old = classic(&mut bench);
    let before = bench.log.len();
    assert_eq!(bench.told(consumer_join("new", &["t"])), (2, String::new()));
    assert_eq!(kinds(&bench, before)[..2], ["classic gone", &format!("member {old}")]);
    assert_eq!(bench.listed(&[], &[]), ["g Reconciling \"consumer\""]);
    assert!(bench.consumers("g").members.iter().any(|member| member.member.is_classic()));
    // The old member hears of it by its heartbeat, and gives up by joining again.
    assert_eq!(bench.heartbeat(&old, 1), Err(GroupError::RebalanceInProgress));
    let (generation, has) = rejoin(&mut bench, &old, &[0, 1, 2]);
    assert_eq!((generation, has), (1, assigned(&[0, 1])));
    assert_eq!(bench.heartbeat(&old, 1), Err(GroupError::RebalanceInProgress), "not given up yet");
    assert_eq!(rejoin(&mut bench, &old, &[0, 1]), (2, assigned(&[0, 1])));
    assert_eq!(bench.heartbeat(&old, 2), Ok(Response::Heartbeat));
    assert_eq!(bench.told(consumer_beat("new", 2)), (2, "t:2".to_owned()));
    let of = |error| vec![PartitionResult { partition: 0, error }];
    let answer = bench.ask(Event::OffsetCommit(commit("g", &old, 2, 7)));
    let expected = CommittedTopic {
        topic: "t".into(),
        topic_id: duolog_log_core::ids::TopicId::ZERO,
        partitions: of(None),
    };
    assert_eq!(answer, Ok(Response::OffsetCommit(vec![expected])));
    let stale = bench.ask(Event::OffsetCommit(commit("g", &old, 1, 7)));
    assert_eq!(stale, Err(GroupError::IllegalGeneration));

    // The last consumer leaves: a classic group again, which rebalances.
    bench.consume(consumer_beat("new", LEAVE_EPOCH)).expect("left");
    assert_eq!(bench.listed(&[], &[]), ["g PreparingRebalance \"consumer\""]);
    assert_eq!(bench.listed(&[], &["classic"]).len(), 1);
    assert_eq!(bench.positions("g"), ["t-0@7"]);
    assert_eq!(bench.heartbeat(&old, 2), Err(GroupError::RebalanceInProgress));
    let request = bench.send(join(&old).protocols(&["range"]).event());
    let joined = bench.joined(request);
    assert_eq!((joined.generation, joined.leader), (3, old));
}

#[test]
fn policies_and_foreign_groups_keep_a_group_as_it_is() {
    let policy = MigrationPolicy::Downgrade;
    let mut bench = Bench::with(|config| config.consumer.migration = policy);
    bench.topics(&[("t", 3)]);
    let old = classic(&mut bench);
    let refusal = bench.consume(consumer_join("new", &["t"])).expect_err("no upgrade");
    assert_eq!(refusal.error, GroupError::GroupIdNotFound);
    assert_eq!(refusal.text, "Group g is not a consumer group.");
    assert_eq!(bench.heartbeat(&old, 1), Ok(Response::Heartbeat), "nothing has changed");
    bench.ask(leave(&[(&old, "")])).expect("left");
    assert_eq!(bench.told(consumer_join("new", &["t"])).0, 2, "an empty group may always");

    let mut bench = self::bench();
    let connect = join("").but(|join| join.protocol_type = "connect".into());
    bench.send(connect.event());
    bench.pass(3_000);
    let refusal = bench.consume(consumer_join("new", &["t"])).expect_err("no consumers");
    assert_eq!(refusal.error, GroupError::GroupIdNotFound);

    let policy = MigrationPolicy::Upgrade;
    let mut bench = Bench::with(|config| config.consumer.migration = policy);
    bench.topics(&[("t", 3)]);
    classic(&mut bench);
    bench.told(consumer_join("new", &["t"]));
    bench.consume(consumer_beat("new", LEAVE_EPOCH)).expect("left");
    assert_eq!(bench.listed(&[], &[]), ["g Assigning \"consumer\""], "no downgrade");
}

#[test]
fn an_empty_group_of_either_kind_becomes_the_other_and_keeps_its_positions() {
    let mut bench = bench();
    let old = classic(&mut bench);
    bench.ask(Event::OffsetCommit(commit("g", &old, 1, 7))).expect("committed");
    bench.ask(leave(&[(&old, "")])).expect("left");
    let before = bench.log.len();
    assert_eq!(bench.told(consumer_join("new", &["t"])), (2, "t:0,1,2".to_owned()));
    assert_eq!(kinds(&bench, before)[0], "classic gone");
    assert_eq!(bench.positions("g"), ["t-0@7"]);
    bench.consume(consumer_beat("new", LEAVE_EPOCH)).expect("left");
    let before = bench.log.len();
    let request = bench.send(join("").uuid(2).event());
    assert_eq!(kinds(&bench, before), ["target epoch gone", "epoch gone"]);
    bench.pass(3_000);
    assert_eq!(bench.joined(request).generation, 1);
    assert_eq!(bench.positions("g"), ["t-0@7"]);
}

#[test]
fn a_classic_member_of_a_consumer_group_is_checked_like_any() {
    let mut bench = bench();
    bench.told(consumer_join("new", &["t"]));
    let request = bench.send(join("").uuid(1).given_id().event());
    let given = bench.joined(request);
    assert_eq!(given.error, Some(GroupError::MemberIdRequired));
    let id = given.member;
    let request = bench.send(join(&id).event());
    assert_eq!(bench.joined(request).generation, 3);
    assert_eq!(bench.heartbeat("x", 3), Err(GroupError::UnknownMemberId));
    assert_eq!(bench.heartbeat("new", 2), Err(GroupError::UnknownMemberId), "the other protocol");
    assert_eq!(bench.heartbeat(&id, 9), Err(GroupError::IllegalGeneration));
    let wrong = |event: Event| match event {
        Event::SyncGroup(mut sync) => {
            sync.protocol = Some("sticky".into());
            Event::SyncGroup(sync)
        }
        other => other,
    };
    let refused = bench.ask(wrong(sync(&id, 3, Vec::new())));
    assert_eq!(refused, Err(GroupError::InconsistentGroupProtocol));
    let other = bench.send(join("").uuid(2).protocols(&["sticky"]).event());
    assert_eq!(bench.refused(other), GroupError::InconsistentGroupProtocol);
    let odd = join("").uuid(3).but(|join| join.protocols[0].metadata = Bytes::from_static(b"x"));
    let odd = bench.send(odd.event());
    assert_eq!(bench.refused(odd), GroupError::InconsistentGroupProtocol);
    // Joined but never synced: out after the rebalance timeout.
    for _ in 0..7 {
        bench.pass(9_000);
        bench.told(consumer_beat("new", 2));
        let _ = bench.heartbeat(&id, 3);
    }
    assert_eq!(bench.heartbeat(&id, 3), Err(GroupError::UnknownMemberId));
    let left = bench.ask(leave(&[(&id, "")])).expect("an answer");
    let unknown = Some(GroupError::UnknownMemberId);
    let expected = LeftMember { member: id, instance: None, error: unknown };
    assert_eq!(left, Response::LeaveGroup(vec![expected]));
}

#[test]
fn the_last_consumer_may_come_back_as_a_static_classic_member() {
    let mut bench = bench();
    let instance = || Some(Arc::from("i"));
    let join_static = ConsumerGroupHeartbeat { instance: instance(), ..consumer_join("a", &["t"]) };
    bench.told(join_static);
    let request = bench.send(join("").uuid(1).instance("i").event());
    let joined = bench.joined(request);
    assert_eq!(joined.error, None);
    assert_eq!(bench.listed(&[], &["classic"]).len(), 1, "nobody speaks the consumer protocol");
    let request = bench.send(match sync(&joined.member, joined.generation, Vec::new()) {
        Event::SyncGroup(mut sync) => {
            sync.instance = instance();
            Event::SyncGroup(sync)
        }
        other => other,
    });
    assert_eq!(bench.synced(request), assigned(&[0, 1, 2]));
    let heartbeat = heartbeat(&joined.member, Some("i"), joined.generation);
    assert_eq!(bench.ask(heartbeat), Ok(Response::Heartbeat));
}
