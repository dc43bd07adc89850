//! Who is let in, and with which epoch.

use super::*;

fn refused(bench: &mut Bench, heartbeat: ConsumerGroupHeartbeat) -> (GroupError, String) {
    let refusal = bench.consume(heartbeat).expect_err("a refusal");
    (refusal.error, refusal.text)
}

/// Case B57: heartbeats that say too little, or to nobody.
#[test]
fn b57_incomplete_and_misplaced_heartbeats_are_refused() {
    let mut bench = bench();
    let join = || consumer_join("a", &["t"]);
    let rows: [(&str, ConsumerGroupHeartbeat); 11] = [
        ("GroupId", ConsumerGroupHeartbeat { group: " ".into(), ..join() }),
        ("InstanceId", ConsumerGroupHeartbeat { instance: Some("".into()), ..join() }),
        ("RackId", ConsumerGroupHeartbeat { rack: Some("".into()), ..join() }),
        ("MemberId", ConsumerGroupHeartbeat { member: "".into(), ..join() }),
        ("RebalanceTimeoutMs", ConsumerGroupHeartbeat { rebalance_timeout_ms: None, ..join() }),
        ("TopicPartitions", ConsumerGroupHeartbeat { owned: None, ..join() }),
        ("TopicPartitions", ConsumerGroupHeartbeat { owned: owning("t", &[0]), ..join() }),
        ("Either SubscribedTopicNames", ConsumerGroupHeartbeat { topics: None, ..join() }),
        ("MemberEpoch", consumer_beat("a", -3)),
        ("InstanceId", consumer_beat("a", LEAVE_FOR_NOW_EPOCH)),
        ("MemberId", consumer_beat("", 2)),
    ];
    for (about, heartbeat) in rows {
        let (error, text) = refused(&mut bench, heartbeat);
        assert_eq!(error, GroupError::InvalidRequest, "{about}");
        assert!(text.starts_with(about), "{about}: {text}");
    }
    assert!(bench.log.is_empty(), "refused requests change nothing");
    let assignor = ConsumerGroupHeartbeat { assignor: Some("x".into()), ..join() };
    let (error, text) = refused(&mut bench, assignor);
    assert_eq!(error, GroupError::UnsupportedAssignor);
    assert_eq!(text, "ServerAssignor x is not supported. Supported assignors: uniform, range.");
    for epoch in [-1, 1] {
        let (error, text) = refused(&mut bench, consumer_beat("a", epoch));
        assert_eq!((error, &*text), (GroupError::GroupIdNotFound, "Group g not found."));
    }
    bench.told(join());
    for epoch in [-1, 5] {
        let (error, _) = refused(&mut bench, consumer_beat("b", epoch));
        assert_eq!(error, GroupError::UnknownMemberId);
    }
}

/// Case B57: a wrong epoch fences, the one before does not if the answer may be lost.
#[test]
fn b57_wrong_epochs_are_fenced() {
    let mut bench = bench();
    bench.told(consumer_join("a", &["t"]));
    bench.told(consumer_join("b", &["t"]));
    bench.told(consumer_beat("a", 2));
    let given_up = ConsumerGroupHeartbeat { owned: owning("t", &[0, 1]), ..consumer_beat("a", 2) };
    assert_eq!(bench.told(given_up.clone()).0, 3);
    assert_eq!(bench.told(given_up).0, 3, "the answer was lost");
    for (epoch, owned) in [(2, None), (2, owning("t", &[2])), (4, None), (9, owning("t", &[0]))] {
        let heartbeat = ConsumerGroupHeartbeat { owned, ..consumer_beat("a", epoch) };
        assert_eq!(refused(&mut bench, heartbeat).0, GroupError::FencedMemberEpoch, "{epoch}");
    }
    // Who was fenced joins anew, and gets what it has still.
    assert_eq!(bench.told(consumer_join("a", &["t"])), (3, "t:0,1".to_owned()));
}

#[test]
fn ids_are_made_by_the_server_for_the_first_version_only() {
    let mut bench = bench();
    let join =
        ConsumerGroupHeartbeat { id_maker: MemberIdMaker::Server, ..consumer_join("", &["t"]) };
    let told = bench.consume(join).expect("a member");
    assert_eq!(told.member.len(), 22, "a UUID in Base64: {}", told.member);
    assert_eq!(bench.told(consumer_beat(&told.member, 2)).0, 2);
}

#[test]
fn a_full_group_takes_its_own_members_only() {
    let mut bench = Bench::with(|config| config.consumer.group_size_max = 1);
    bench.topics(&[("t", 3)]);
    bench.told(consumer_join("a", &["t"]));
    let (error, text) = refused(&mut bench, consumer_join("b", &["t"]));
    assert_eq!(error, GroupError::GroupMaxSizeReached);
    assert_eq!(text, "The consumer group has reached its maximum capacity of 1 members.");
    bench.told(consumer_join("a", &["t"]));
}

#[test]
fn a_static_member_comes_back_to_what_it_had() {
    let mut bench = bench();
    let of = |member: &str, epoch| ConsumerGroupHeartbeat {
        instance: Some("i".into()),
        ..if epoch == JOIN_EPOCH {
            consumer_join(member, &["t"])
        } else {
            consumer_beat(member, epoch)
        }
    };
    assert_eq!(bench.told(of("a", 0)), (2, "t:0,1,2".to_owned()));
    let (error, _) = refused(&mut bench, of("b", 0));
    assert_eq!(error, GroupError::UnreleasedInstanceId, "a is still there");
    assert_eq!(refused(&mut bench, of("b", 2)).0, GroupError::FencedInstanceId);
    let unknown = ConsumerGroupHeartbeat { instance: Some("j".into()), ..consumer_beat("a", 2) };
    assert_eq!(refused(&mut bench, unknown).0, GroupError::UnknownMemberId);
    let left = bench.consume(of("a", LEAVE_FOR_NOW_EPOCH)).expect("away");
    assert_eq!(left.epoch, LEAVE_FOR_NOW_EPOCH);
    bench.pass(44_000);
    let before = bench.log.len();
    assert_eq!(bench.told(of("b", 0)), (2, "t:0,1,2".to_owned()), "no rebalance");
    let gone = ["current a gone", "target a gone", "member a gone"];
    assert_eq!(kinds(&bench, before)[..3], gone);
    assert_eq!(refused(&mut bench, of("a", 2)).0, GroupError::FencedInstanceId);
    // Who stays away too long is out.
    bench.consume(of("b", LEAVE_FOR_NOW_EPOCH)).expect("away");
    bench.pass(45_000);
    assert_eq!(state(&mut bench), GroupState::Empty);
}

/// Case B57: commits of members that have gone on count for what they had then and have.
#[test]
fn b57_commits_name_the_members_epoch() {
    let mut bench = bench();
    let commit_at = |bench: &mut Bench, member: &str, epoch, partition, form| {
        let mut commit = commit("g", member, epoch, 7);
        commit.form = form;
        commit.topics[0].partitions[0].partition = partition;
        bench.ask(Event::OffsetCommit(commit)).map(drop)
    };
    let form = CommitForm::MemberEpoch;
    bench.told(consumer_join("a", &["t"]));
    assert_eq!(commit_at(&mut bench, "a", 2, 0, form), Ok(()));
    let old = commit_at(&mut bench, "a", 2, 0, CommitForm::Generation);
    assert_eq!(old, Err(GroupError::UnsupportedVersion));
    assert_eq!(commit_at(&mut bench, "b", 2, 0, form), Err(GroupError::UnknownMemberId));
    assert_eq!(commit_at(&mut bench, "", -1, 0, form), Err(GroupError::UnknownMemberId));
    assert_eq!(commit_at(&mut bench, "a", 3, 0, form), Err(GroupError::StaleMemberEpoch));
    bench.told(consumer_join("b", &["t"]));
    bench.told(consumer_beat("a", 2));
    let given_up = ConsumerGroupHeartbeat { owned: owning("t", &[0, 1]), ..consumer_beat("a", 2) };
    assert_eq!(bench.told(given_up).0, 3);
    assert_eq!(commit_at(&mut bench, "a", 2, 0, form), Ok(()), "it had it in epoch 2 and has");
    let before = bench.log.len();
    assert_eq!(commit_at(&mut bench, "a", 2, 2, form), Err(GroupError::StaleMemberEpoch), "b's");
    assert_eq!(commit_at(&mut bench, "a", -1, 0, form), Err(GroupError::StaleMemberEpoch));
    assert_eq!(bench.log.len(), before, "nothing is stored");
    let mut fetch = |member: Option<(MemberId, i32)>| {
        let fetch = OffsetFetch { group: "g".into(), member, topics: None };
        bench.ask(Event::OffsetFetch(fetch)).map(drop)
    };
    assert_eq!(fetch(None), Ok(()), "an administrator");
    assert_eq!(fetch(Some(("a".into(), 3))), Ok(()));
    assert_eq!(fetch(Some(("a".into(), 2))), Err(GroupError::StaleMemberEpoch));
    assert_eq!(fetch(Some(("x".into(), 1))), Err(GroupError::UnknownMemberId));
}

#[test]
fn rocketmq_and_consumer_groups_keep_each_other_out_until_empty() {
    let mut bench = bench();
    bench.told(consumer_join("a", &["t"]));
    let rocketmq = || beat(crate::group::testing::consumer("c@1", 1, &["t"]));
    assert_eq!(bench.ask(rocketmq()), Err(GroupError::HeldByKafka));
    let mut commit = commit("g", "a", 2, 7);
    commit.form = CommitForm::MemberEpoch;
    bench.ask(Event::OffsetCommit(commit)).expect("committed");
    bench.consume(consumer_beat("a", LEAVE_EPOCH)).expect("left");
    bench.ask(rocketmq()).expect("live");
    assert_eq!(bench.listed(&[], &[]), ["g Stable \"\""]);
    assert_eq!(refused(&mut bench, consumer_join("a", &["t"])).0, GroupError::HeldByRocketMq);
    bench.pass(120_000);
    assert_eq!(bench.told(consumer_join("a", &["t"])), (2, "t:0,1,2".to_owned()));
    assert_eq!(bench.positions("g"), ["t-0@7"], "positions carry over both ways");
    assert!(!bench.runtime.shard().image("g").expect("a group").is_rocketmq());
    assert_eq!(bench.ask(rocketmq()), Err(GroupError::HeldByKafka));
}
