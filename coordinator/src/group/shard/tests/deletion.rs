use super::*;

fn delete_offset(topic: &str) -> Event {
    let topics = vec![(Arc::from(topic), vec![0])];
    Event::OffsetDelete(OffsetDelete { group: "g".into(), topics })
}

fn deleted(topic: &str, error: Option<GroupError>) -> Answer {
    let results = vec![PartitionResult { partition: 0, error }];
    Ok(Response::OffsetDelete(vec![(topic.into(), results)]))
}

#[test]
fn a_group_goes_with_all_its_records() {
    let mut bench = Bench::new();
    assert_eq!(bench.ask(delete("g")), Err(GroupError::GroupIdNotFound));
    let members = bench.stable(1);
    bench.ask(Event::OffsetCommit(commit("g", &members[0], 1, 5))).expect("committed");
    assert_eq!(bench.ask(delete("g")), Err(GroupError::NonEmptyGroup));
    bench.ask(leave(&[(&members[0], "")])).expect("left");
    let before = bench.log.len();
    assert_eq!(bench.ask(delete("g")), Ok(Response::DeleteGroup));
    let (group, topic): (Arc<str>, _) = ("g".into(), "t".into());
    assert_eq!(
        bench.records(before),
        [
            Record::Offset { group: group.clone(), topic, partition: 0, value: None },
            Record::Group { group, value: None },
        ]
    );
    assert_eq!(bench.state("g"), GroupState::Dead);
    assert_eq!(bench.runtime.shard().image("g"), None);
    let bench = bench.restarted(Default::default());
    assert_eq!(bench.runtime.shard().images().count(), 0);
}

#[test]
fn a_rebalancing_group_is_not_deleted_given_ids_are() {
    let mut bench = Bench::new();
    let joining = bench.send(join("").uuid(1).event());
    assert_eq!(bench.ask(delete("g")), Err(GroupError::NonEmptyGroup));
    bench.pass(3_000);
    bench.joined(joining);
    assert_eq!(bench.ask(delete("g")), Err(GroupError::NonEmptyGroup));
    let mut bench = Bench::new();
    let given = bench.send(join("").uuid(1).given_id().event());
    let given = bench.joined(given).member;
    assert_eq!(bench.ask(delete("g")), Ok(Response::DeleteGroup));
    let back = bench.send(join(&given).event());
    assert_eq!(bench.refused(back), GroupError::UnknownMemberId);
}

#[test]
fn a_large_group_goes_in_steps_answered_by_the_last() {
    let mut bench = Bench::new();
    let mut request = commit("g", "", -1, 1);
    let one = request.topics[0].partitions[0].clone();
    request.topics[0].partitions =
        (0..2_500).map(|partition| PartitionCommit { partition, ..one.clone() }).collect();
    bench.ask(Event::OffsetCommit(request)).expect("committed");
    bench.ask(delete("g")).expect("deleted");
    assert_eq!(bench.log.len(), 5_000);
    assert_eq!(bench.state("g"), GroupState::Dead);
}

#[test]
fn positions_are_deleted_unless_members_want_them() {
    let mut bench = Bench::new();
    assert_eq!(bench.ask(delete_offset("t")), Err(GroupError::GroupIdNotFound));
    let members = bench.stable(1);
    let mut both = commit("g", &members[0], 1, 5);
    both.topics.push(TopicCommit { topic: "u".into(), ..both.topics[0].clone() });
    bench.ask(Event::OffsetCommit(both)).expect("committed");
    let wanted = Some(GroupError::GroupSubscribedToTopic);
    assert_eq!(bench.ask(delete_offset("t")), deleted("t", wanted));
    assert_eq!(bench.ask(delete_offset("u")), deleted("u", None));
    assert_eq!(bench.positions("g"), ["t-0@5"]);
    let before = bench.log.len();
    assert_eq!(bench.ask(delete_offset("u")), deleted("u", None), "no such position");
    assert_eq!(bench.log.len(), before);
    bench.ask(leave(&[(&members[0], "")])).expect("left");
    assert_eq!(bench.ask(delete_offset("t")), deleted("t", None));
}

/// `ClassicGroup.validateOffsetDelete` asks for the state, in which an id that was given is nothing.
#[test]
fn positions_of_a_group_that_has_only_given_ids_out_are_deleted() {
    for protocol_type in ["connect", "consumer"] {
        let mut bench = Bench::new();
        bench.ask(Event::OffsetCommit(commit("g", "", -1, 5))).expect("committed");
        let join = join("").given_id().but(|join| join.protocol_type = protocol_type.into());
        let request = bench.send(join.event());
        assert_eq!(bench.refused(request), GroupError::MemberIdRequired);
        assert_eq!(bench.ask(delete_offset("t")), deleted("t", None), "{protocol_type}");
        assert_eq!(bench.positions("g"), [""; 0]);
    }
}

#[test]
fn positions_of_live_groups_that_are_no_consumers_are_kept() {
    let mut bench = Bench::new();
    bench.send(join("").but(|join| join.protocol_type = "connect".into()).event());
    assert_eq!(bench.ask(delete_offset("t")), Err(GroupError::NonEmptyGroup));
    let mut bench = Bench::new();
    bench.send(join("").event());
    let wanted = Some(GroupError::GroupSubscribedToTopic);
    assert_eq!(bench.ask(delete_offset("t")), deleted("t", wanted), "not known yet");
    let mut bench = Bench::new();
    bench.ask(beat(consumer("c@1", 1, &["t"]))).expect("live");
    assert_eq!(bench.ask(delete_offset("t")), Err(GroupError::NonEmptyGroup));
}

#[test]
fn a_deleted_topic_takes_its_positions_along_but_not_its_successors() {
    let (old, new) = (TopicId([1; 16]), TopicId([2; 16]));
    let mut bench = Bench::new();
    for (group, id) in [("by-old", old), ("by-new", new), ("by-name", TopicId::ZERO)] {
        let mut request = commit(group, "", -1, 5);
        request.topics[0].topic_id = id;
        request.topics.push(TopicCommit { topic: "u".into(), ..request.topics[0].clone() });
        bench.ask(Event::OffsetCommit(request)).expect("committed");
    }
    bench.ask(queue_commit("rocketmq", 5)).expect("committed");
    bench.notify(Event::TopicDeleted(DeletedTopic { name: "t".into(), id: old }));
    assert_eq!(bench.positions("by-old"), ["u-0@5"]);
    assert_eq!(bench.positions("by-new"), ["t-0@5", "u-0@5"]);
    assert_eq!(bench.positions("by-name"), ["u-0@5"]);
    assert_eq!(bench.positions("rocketmq"), [""; 0]);
}

#[test]
fn a_deleted_topic_with_many_positions_is_forgotten_in_steps() {
    let mut bench = Bench::new();
    let mut request = commit("g", "", -1, 1);
    let one = request.topics[0].partitions[0].clone();
    request.topics[0].partitions =
        (0..2_001).map(|partition| PartitionCommit { partition, ..one.clone() }).collect();
    bench.ask(Event::OffsetCommit(request)).expect("committed");
    let topic = DeletedTopic { name: "t".into(), id: TopicId([1; 16]) };
    bench.notify(Event::TopicDeleted(topic));
    assert_eq!(bench.positions("g"), [""; 0]);
    assert_eq!(bench.log.len(), 4_002);
}
