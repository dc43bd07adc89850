use super::*;
use crate::record::Family;

fn family(since_ms: Option<i64>) -> Record {
    let value = since_ms.map(|since_ms| FamilyValue { family: Family::RocketMq, since_ms });
    Record::Family { group: "g".into(), value }
}
#[test]
fn kafka_members_keep_rocketmq_out_until_the_group_is_empty_then_positions_carry_over() {
    let mut bench = Bench::new();
    let held = Err(GroupError::HeldByKafka);
    let asked = bench.send(join("").uuid(1).given_id().event());
    let given = bench.joined(asked).member;
    assert_eq!(bench.ask(beat(consumer("c@1", 1, &["t"]))), held, "an id is given");
    let joining = bench.send(join(&given).event());
    assert_eq!(bench.ask(beat(consumer("c@1", 1, &["t"]))), held, "joining");
    bench.pass(3_000);
    bench.sync_all(vec![joining]);
    assert_eq!(bench.ask(beat(consumer("c@1", 1, &["t"]))), held, "stable");
    assert_eq!(bench.ask(queue_commit("g", 9)), held);
    assert_eq!(bench.ask(queue_query("g", "t")), Ok(Response::QueryQueueOffset(None)));
    bench.ask(Event::OffsetCommit(commit("g", &given, 1, 5))).expect("committed");
    bench.ask(leave(&[(&given, "")])).expect("left");
    let before = bench.log.len();
    bench.ask(beat(consumer("c@1", 1, &["t"]))).expect("live");
    let since = bench.now.wall_ms;
    let gone = Record::Group { group: "g".into(), value: None };
    assert_eq!(bench.records(before), [gone, family(Some(since))]);
    assert_eq!(bench.ask(queue_query("g", "t")), Ok(Response::QueryQueueOffset(Some(5))));
    bench.ask(beat(consumer("c@1", 1, &["t"]))).expect("renewed");
    assert_eq!(bench.log.len(), before + 2, "recorded once");
}

#[test]
fn kafka_members_keep_pops_out_until_the_group_is_empty_then_positions_carry_over() {
    let mut bench = Bench::new();
    let (group, topic) = ("g".into(), "t".into());
    let pop = Event::PopQueueOffset(QueryQueueOffset { group, topic, queue: 0 });
    assert_eq!(bench.ask(pop.clone()), Ok(Response::QueryQueueOffset(None)));
    let members = bench.stable(1);
    assert_eq!(bench.ask(pop.clone()), Err(GroupError::HeldByKafka));
    bench.ask(Event::OffsetCommit(commit("g", &members[0], 1, 5))).expect("committed");
    assert_eq!(bench.ask(pop.clone()), Err(GroupError::HeldByKafka));
    bench.ask(leave(&[(&members[0], "")])).expect("left");
    assert_eq!(bench.ask(pop.clone()), Ok(Response::QueryQueueOffset(Some(5))));
    bench.ask(beat(consumer("c@1", 1, &["t"]))).expect("live");
    assert_eq!(bench.ask(pop), Ok(Response::QueryQueueOffset(Some(5))));
}

#[test]
fn rocketmq_members_keep_kafka_out_until_the_group_is_empty_then_positions_carry_over() {
    let mut bench = Bench::new();
    bench.ask(beat(consumer("c@1", 1, &["t"]))).expect("live");
    bench.ask(queue_commit("g", 5)).expect("committed");
    let request = bench.send(join("").event());
    assert_eq!(bench.refused(request), GroupError::HeldByRocketMq);
    assert_eq!(bench.heartbeat("m", 1), Err(GroupError::UnknownMemberId));
    assert_eq!(bench.ask(sync("m", 1, vec![])), Err(GroupError::UnknownMemberId));
    assert_eq!(bench.ask(delete("g")), Err(GroupError::NonEmptyGroup));
    bench.pass(120_000);
    assert_eq!(bench.state("g"), GroupState::Empty, "silent for two minutes");
    let before = bench.log.len();
    bench.notices.clear();
    let members = bench.stable(1);
    let records = bench.records(before);
    assert!(matches!(&records[0], Record::Group { value: Some(value), .. }
        if value.members[0].member_id == members[0]));
    assert_eq!(records[1..], [family(None)]);
    assert_eq!(bench.notices, [Notice::ConsumerGroup { group: "g".into(), view: None }]);
    assert_eq!(bench.positions("g"), ["t-0@5"]);
    assert_eq!(bench.ask(beat(consumer("c@1", 1, &["t"]))), Err(GroupError::HeldByKafka));
    bench.ask(leave(&[(&members[0], "")])).expect("left");
    assert!(!bench.runtime.shard().image("g").expect("a group").is_rocketmq());
}

#[test]
fn a_kafka_join_that_comes_to_nothing_leaves_a_rocketmq_group() {
    let mut bench = Bench::new();
    bench.ask(queue_commit("g", 5)).expect("committed");
    let request = bench.send(join("").uuid(1).event());
    bench.ask(leave(&[(&id("c", 1), "")])).expect("left");
    assert_eq!(bench.refused(request), GroupError::UnknownMemberId);
    let mut bench = bench.restarted(Default::default());
    assert!(bench.runtime.shard().image("g").expect("a group").is_rocketmq());
    bench.ask(beat(consumer("c@1", 1, &["t"]))).expect("live");
}

#[test]
fn commits_without_membership_change_no_family() {
    let mut bench = Bench::new();
    bench.ask(queue_commit("g", 5)).expect("committed");
    bench.ask(Event::OffsetCommit(commit("g", "", -1, 7))).expect("a tool may reset it");
    assert!(bench.runtime.shard().image("g").expect("a group").is_rocketmq());
    assert_eq!(bench.ask(queue_query("g", "t")), Ok(Response::QueryQueueOffset(Some(7))));
    let mut bench = Bench::new();
    bench.ask(Event::OffsetCommit(commit("g", "", -1, 7))).expect("committed");
    bench.ask(queue_commit("g", 8)).expect("a tool may reset it");
    assert!(!bench.runtime.shard().image("g").expect("a group").is_rocketmq());
    assert_eq!(bench.positions("g"), ["t-0@8"]);
}

#[test]
fn a_refused_family_record_leaves_no_member() {
    let mut bench = Bench::new();
    bench.failure = Some(AppendError::NotEnoughReplicas);
    let refused = bench.ask(beat(consumer("c@1", 1, &["t"])));
    assert_eq!(refused, Err(GroupError::CoordinatorNotAvailable));
    assert_eq!(bench.state("g"), GroupState::Dead);
    let last = bench.notices.last().expect("a notice");
    assert_eq!(*last, Notice::ConsumerGroup { group: "g".into(), view: None });
    bench.ask(beat(consumer("c@1", 1, &["t"]))).expect("live");
    assert_eq!(bench.state("g"), GroupState::Stable);
}

#[test]
fn a_deleted_rocketmq_group_leaves_no_record() {
    let mut bench = Bench::new();
    bench.ask(beat(consumer("c@1", 1, &["t"]))).expect("live");
    bench.ask(queue_commit("g", 5)).expect("committed");
    bench.ask(consumer_leave("c@1")).expect("left");
    bench.notices.clear();
    assert_eq!(bench.ask(delete("g")), Ok(Response::DeleteGroup));
    assert_eq!(bench.notices, [Notice::ConsumerGroup { group: "g".into(), view: None }]);
    assert_eq!(bench.restarted(Default::default()).runtime.shard().images().count(), 0);
}
