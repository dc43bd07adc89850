use super::*;

fn replace(own: OwnPositions, offset: i64) -> Event {
    let (group, topic) = ("g".into(), "t".into());
    let commit = CommitQueueOffset { group, topic, queue: 0, offset };
    Event::ReplaceQueueOffset(ReplaceQueueOffset { commit, own })
}

/// In one step: whatever comes between a question and a commit is not overwritten.
#[test]
fn a_commit_replaces_only_what_is_its_own() {
    use OwnPositions::{From, Only, UpTo};
    // What is there, what is the asker's own, what is there then; 10 is to be committed.
    let rows = [
        (None, UpTo, Some(10)),
        (Some(3), UpTo, Some(10)),
        (Some(11), UpTo, Some(11)),
        (None, From(3), None),
        (Some(2), From(3), Some(2)),
        (Some(3), From(3), Some(10)),
        (Some(9), From(3), Some(10)),
        (Some(11), From(3), Some(11)),
        (None, Only(3), None),
        (Some(3), Only(3), Some(10)),
        (Some(4), Only(3), Some(4)),
        (Some(10), Only(3), Some(10)),
    ];
    for (before, own, after) in rows {
        let mut bench = Bench::new();
        if let Some(before) = before {
            bench.ask(queue_commit("g", before)).expect("committed");
        }
        let answer = Ok(Response::QueryQueueOffset(after));
        assert_eq!(bench.ask(replace(own, 10)), answer, "{before:?} {own:?}");
        assert_eq!(bench.ask(queue_query("g", "t")), answer, "{before:?} {own:?}");
    }
}

#[test]
fn a_commit_in_the_place_of_its_own_waits_for_kafkas_members_but_hears_of_anothers_position() {
    let mut bench = Bench::new();
    bench.ask(Event::OffsetCommit(commit("g", "", -1, 7))).expect("committed");
    bench.stable(1);
    assert_eq!(bench.ask(replace(OwnPositions::Only(7), 10)), Err(GroupError::HeldByKafka));
    let others = Ok(Response::QueryQueueOffset(Some(7)));
    assert_eq!(bench.ask(replace(OwnPositions::Only(6), 10)), others);
}

#[test]
fn a_first_commit_without_membership_founds_a_group_and_is_stored_whole() {
    let mut bench = Bench::new();
    let mut request = commit("g", "", -1, 42);
    request.topics[0].topic_id = TopicId([7; 16]);
    request.topics[0].partitions[0].leader_epoch = 3;
    request.topics[0].partitions[0].metadata = Some("note".into());
    bench.ask(Event::OffsetCommit(request)).expect("committed");
    let value = OffsetValue {
        offset: 42,
        leader_epoch: 3,
        metadata: "note".into(),
        commit_ms: 1_000_000,
        expire_ms: None,
        topic_id: TopicId([7; 16]),
    };
    let (group, topic) = ("g".into(), "t".into());
    let record = Record::Offset { group, topic, partition: 0, value: Some(value) };
    assert_eq!(bench.records(0), [record]);
    assert_eq!(bench.positions("g"), ["t-0@42"]);
    assert_eq!(bench.listed(&[], &[]), ["g Empty \"\""]);
    let mut bench = bench.restarted(Default::default());
    assert_eq!(bench.positions("g"), ["t-0@42"]);
}

/// Case B58.
#[test]
fn b58_commits_by_generation_member_and_instance_on_each_kind_of_group() {
    let unknown = Err(GroupError::UnknownMemberId);
    let illegal = Err(GroupError::IllegalGeneration);
    let done = committed(None);
    // Group, member, instance, generation, answer.
    let rows: [(&str, &str, &str, i32, Answer); 18] = [
        ("missing", "", "", -1, done.clone()),
        ("missing", "", "i1", -1, done.clone()),
        ("missing", "m", "", -1, done.clone()),
        ("missing", "", "", 5, Err(GroupError::GroupIdNotFound)),
        ("missing, old", "", "", 5, illegal.clone()),
        ("missing", "m", "i1", 0, Err(GroupError::GroupIdNotFound)),
        ("empty", "", "", -1, done.clone()),
        ("empty", "", "i1", -1, done.clone()),
        ("empty", "m", "", -1, done.clone()),
        ("empty", "", "", 5, unknown.clone()),
        ("active", "", "", -1, unknown.clone()),
        ("active", "", "i1", -1, unknown.clone()),
        ("active", "m", "", 1, unknown.clone()),
        ("active", "member", "", -1, illegal.clone()),
        ("active", "member", "", 0, illegal),
        ("active", "member", "i1", 1, unknown.clone()),
        ("active", "member", "", 1, done),
        ("rocketmq", "", "", -1, unknown),
    ];
    for (kind, member, instance, generation, answer) in rows {
        let mut bench = Bench::new();
        let members = match kind {
            "empty" => {
                let members = bench.stable(1);
                bench.ask(leave(&[(&members[0], "")])).expect("left");
                members
            }
            "active" => bench.stable(1),
            "rocketmq" => {
                bench.ask(beat(consumer("c@1", 1, &["t"]))).expect("live");
                Vec::new()
            }
            _ => Vec::new(),
        };
        let before = bench.log.len();
        let member = if member == "member" { &members[0] } else { member };
        let mut request = commit("g", member, generation, 7);
        request.instance = Some(instance).filter(|text| !text.is_empty()).map(Arc::from);
        if kind == "missing, old" {
            request.unknown_group = UnknownGroup::IllegalGeneration;
        }
        let row = format!("{kind} {member:?} {instance:?} {generation}");
        assert_eq!(bench.ask(Event::OffsetCommit(request)), answer, "{row}");
        assert_eq!(bench.log.len() - before, usize::from(answer.is_ok()), "{row}");
    }
}

#[test]
fn commits_follow_the_phases_of_a_rebalance() {
    let mut bench = Bench::new();
    let members = bench.stable(1);
    let try_commit = |bench: &mut Bench, generation| {
        bench.ask(Event::OffsetCommit(commit("g", &members[0], generation, 1)))
    };
    let newcomer = bench.send(join("").uuid(9).event());
    assert_eq!(try_commit(&mut bench, 1), committed(None), "before it joins again");
    let back = bench.send(join(&members[0]).event());
    assert!(!bench.waits(back) && !bench.waits(newcomer));
    assert_eq!(try_commit(&mut bench, 1), Err(GroupError::IllegalGeneration));
    assert_eq!(try_commit(&mut bench, 2), Err(GroupError::RebalanceInProgress));
}

/// Case B40, its plain part.
#[test]
fn b40_metadata_that_are_too_long_are_refused_alone_and_hold_nothing() {
    let mut bench = Bench::new();
    let mut request = commit("g", "", -1, 1);
    let texts = ["a".repeat(4_096), "a".repeat(4_097), "é".repeat(4_096), "😀".repeat(2_049)];
    request.topics[0].partitions = texts
        .iter()
        .enumerate()
        .map(|(n, text)| PartitionCommit {
            partition: n as i32,
            offset: 1,
            leader_epoch: -1,
            metadata: Some(text.as_str().into()),
        })
        .collect();
    let answer = bench.ask(Event::OffsetCommit(request));
    let Ok(Response::OffsetCommit(topics)) = answer else { panic!("{answer:?}") };
    let errors: Vec<_> = topics[0].partitions.iter().map(|result| result.error).collect();
    let too_large = Some(GroupError::OffsetMetadataTooLarge);
    assert_eq!(errors, [None, too_large, None, too_large], "counted in UTF-16 units");
    assert_eq!(bench.positions("g"), ["t-0@1", "t-2@1"]);
    assert_eq!(bench.ask(delete("g")), Ok(Response::DeleteGroup));
    assert_eq!(bench.state("g"), GroupState::Dead);
}

#[test]
fn a_commit_of_nothing_is_answered_without_a_record() {
    let mut bench = Bench::new();
    let mut request = commit("g", "", -1, 1);
    request.topics.clear();
    assert_eq!(bench.ask(Event::OffsetCommit(request)), Ok(Response::OffsetCommit(vec![])));
    assert!(bench.log.is_empty());
    assert_eq!(bench.listed(&[], &[]), [""; 0]);
}

#[test]
fn a_refused_commit_changes_nothing_and_leaves_the_members_alone() {
    let mut bench = Bench::new();
    let members = bench.stable(1);
    for (failure, error) in [
        (AppendError::NotEnoughReplicas, GroupError::CoordinatorNotAvailable),
        (AppendError::NotLeader, GroupError::NotCoordinator),
        (AppendError::Storage, GroupError::NotCoordinator),
        (AppendError::TooLarge, GroupError::TooLarge),
    ] {
        bench.failure = Some(failure);
        let request = Event::OffsetCommit(commit("g", &members[0], 1, 5));
        assert_eq!(bench.ask(request), Err(error));
    }
    assert_eq!(bench.positions("g"), [""; 0]);
    assert_eq!(bench.heartbeat(&members[0], 1), Ok(Response::Heartbeat));
    let long = "g".repeat(40_000);
    let request = Event::OffsetCommit(commit(&long, "", -1, 5));
    assert_eq!(bench.ask(request), Err(GroupError::TooLarge));
}

#[test]
fn the_empty_group_id_can_commit_but_not_join() {
    let mut bench = Bench::new();
    let request = Event::OffsetCommit(commit("", "", -1, 5));
    assert_eq!(bench.ask(request), committed(None));
    assert_eq!(bench.positions(""), ["t-0@5"]);
    assert_eq!(bench.state(""), GroupState::Empty);
    assert_eq!(bench.ask(delete("")), Ok(Response::DeleteGroup));
}

#[test]
fn a_negative_position_is_kept_for_kafka_and_none_for_a_queue() {
    let mut bench = Bench::new();
    bench.ask(Event::OffsetCommit(commit("g", "", -1, -5))).expect("committed, as by Kafka");
    assert_eq!(bench.positions("g"), ["t-0@-5"]);
    assert_eq!(bench.ask(queue_query("g", "t")), Ok(Response::QueryQueueOffset(None)));
}
