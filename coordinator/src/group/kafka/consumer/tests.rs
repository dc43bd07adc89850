//! Rows "heartbeat, answer, state" of consumer groups, through the runtime.

use std::sync::Arc;

use crate::error::{AppendError, GroupError};
use crate::group::config::{GroupConfig, MigrationPolicy};
use crate::group::event::*;
use crate::group::metadata::GroupSettings;
use crate::group::response::*;
use crate::group::testing::consumers::*;
use crate::group::testing::*;
use crate::record::Record;
use crate::record::consumer::ConsumerFact;

mod admission;
mod migration;
mod scripts;
mod subscriptions;

/// A bench whose groups are assigned anew as often as need be, with topic `t` of three partitions.
fn bench() -> Bench {
    let mut bench = Bench::with(|config| config.consumer.assignment_interval_ms = 0);
    bench.topics(&[("t", 3)]);
    bench
}

fn state(bench: &mut Bench) -> GroupState {
    bench.consumers("g").state
}

/// The kinds of records from `from` on.
fn kinds(bench: &Bench, from: usize) -> Vec<String> {
    let kind = |record| match record {
        Record::Consumer { fact, .. } => {
            let gone = if fact.is_tombstone() { " gone" } else { "" };
            let name = match fact {
                ConsumerFact::Epoch(_) => "epoch".to_owned(),
                ConsumerFact::Member(id, _) => format!("member {id}"),
                ConsumerFact::TargetEpoch(_) => "target epoch".to_owned(),
                ConsumerFact::Target(id, _) => format!("target {id}"),
                ConsumerFact::Current(id, _) => format!("current {id}"),
                ConsumerFact::Regex(regex, _) => format!("regex {regex}"),
            };
            format!("{name}{gone}")
        }
        Record::Group { value, .. } => {
            format!("classic{}", if value.is_none() { " gone" } else { "" })
        }
        other => panic!("unexpected: {other:?}"),
    };
    bench.records(from).into_iter().map(kind).collect()
}

#[test]
fn the_first_member_gets_all_and_everything_is_recorded() {
    let mut bench = bench();
    let told = bench.consume(consumer_join("a", &["t"])).expect("a member");
    assert_eq!((&*told.member, told.epoch, told.heartbeat_interval_ms), ("a", 2, 5_000));
    assert_eq!(show_assignment(&told.assignment.expect("told")), "t:0,1,2");
    assert_eq!(state(&mut bench), GroupState::Stable);
    assert_eq!(bench.listed(&[], &["Consumer"]), ["g Stable \"consumer\""]);
    assert!(bench.listed(&[], &["classic"]).is_empty());
    let all = ["member a", "epoch", "target a", "target epoch", "current a"];
    assert_eq!(kinds(&bench, 0), all);
    // Nothing new: nothing is told, nothing recorded.
    assert_eq!(bench.told(consumer_beat("a", 2)), (2, "-".to_owned()));
    assert_eq!(bench.log.len(), all.len());
    // A full heartbeat is told all.
    let full = ConsumerGroupHeartbeat {
        owned: owning("t", &[0, 1, 2]),
        epoch: 2,
        ..consumer_join("a", &["t"])
    };
    assert_eq!(bench.told(full), (2, "t:0,1,2".to_owned()));
}

#[test]
fn a_partition_is_given_up_before_somebody_else_gets_it() {
    let mut bench = bench();
    bench.told(consumer_join("a", &["t"]));
    assert_eq!(bench.told(consumer_join("b", &["t"])), (3, String::new()), "still a's");
    assert_eq!(state(&mut bench), GroupState::Reconciling);
    assert_eq!(bench.told(consumer_beat("a", 2)), (2, "t:0,1".to_owned()), "to give up 2");
    assert_eq!(bench.told(consumer_beat("b", 3)), (3, "-".to_owned()));
    let still = ConsumerGroupHeartbeat { owned: owning("t", &[0, 1, 2]), ..consumer_beat("a", 2) };
    assert_eq!(bench.told(still), (2, "-".to_owned()), "not given up yet");
    let given_up = ConsumerGroupHeartbeat { owned: owning("t", &[0, 1]), ..consumer_beat("a", 2) };
    assert_eq!(bench.told(given_up), (3, "-".to_owned()));
    assert_eq!(bench.told(consumer_beat("b", 3)), (3, "t:2".to_owned()));
    assert_eq!(state(&mut bench), GroupState::Stable);
    let described = bench.consumers("g");
    assert_eq!((described.epoch, described.target_epoch, &*described.assignor), (3, 3, "uniform"));
    let of = |at: usize| &described.members[at].member.current;
    assert_eq!(of(0).assigned[&topic_id("t")], [(0, 2), (1, 2)].into());
    assert_eq!(of(1).assigned[&topic_id("t")], [(2, 3)].into(), "got in epoch 3");
}

#[test]
fn a_member_that_leaves_or_falls_silent_gives_all_to_the_others() {
    let mut bench = bench();
    bench.told(consumer_join("a", &["t"]));
    let before = bench.log.len();
    let left = bench.consume(consumer_beat("a", LEAVE_EPOCH)).expect("left");
    assert_eq!((&*left.member, left.epoch, left.assignment), ("a", -1, None));
    assert_eq!(
        kinds(&bench, before),
        ["current a gone", "target a gone", "member a gone", "epoch"]
    );
    assert_eq!(state(&mut bench), GroupState::Empty);

    bench.told(consumer_join("a", &["t"]));
    bench.told(consumer_join("b", &["t"]));
    bench.pass(40_000);
    bench.told(consumer_beat("b", 5));
    bench.pass(44_999);
    assert_eq!(state(&mut bench), GroupState::Assigning, "a was silent for 45 s");
    assert_eq!(bench.told(consumer_beat("b", 5)), (6, "t:0,1,2".to_owned()));
    bench.pass(45_000);
    assert_eq!(state(&mut bench), GroupState::Empty);
    bench.pass(7 * 86_400_000);
    assert!(bench.listed(&[], &[]).is_empty(), "an empty group without positions goes");
}

#[test]
fn who_does_not_give_up_in_time_is_out() {
    let mut bench = bench();
    bench.told(consumer_join("a", &["t"]));
    bench.told(consumer_join("b", &["t"]));
    bench.told(consumer_beat("a", 2));
    for _ in 0..2 {
        bench.pass(29_999);
        bench.told(consumer_beat("a", 2));
        bench.told(consumer_beat("b", 3));
    }
    bench.pass(2);
    let fenced = bench.consume(consumer_beat("a", 2)).expect_err("a minute is over");
    assert_eq!(fenced.error, GroupError::UnknownMemberId);
    assert_eq!(bench.told(consumer_beat("b", 3)), (4, "t:0,1,2".to_owned()));
}

#[test]
fn targets_are_computed_no_more_often_than_the_assignment_interval_says() {
    let mut bench = Bench::new();
    bench.topics(&[("t", 3)]);
    assert_eq!(
        bench.told(consumer_join("a", &["t"])),
        (2, "t:0,1,2".to_owned()),
        "the first at once"
    );
    assert_eq!(bench.told(consumer_join("b", &["t"])), (2, String::new()), "the first target");
    assert_eq!(state(&mut bench), GroupState::Assigning);
    bench.pass(999);
    assert_eq!(bench.told(consumer_beat("a", 2)), (2, "-".to_owned()));
    bench.pass(1);
    assert_eq!(bench.told(consumer_beat("a", 2)), (2, "t:0,1".to_owned()));
    // A group's own interval counts before the node's.
    let mut topics = TestTopics::of(&[("t", 3)]);
    topics.settings = GroupSettings {
        assignment_interval_ms: Some(0),
        heartbeat_interval_ms: Some(7),
        session_timeout_ms: Some(50),
    };
    bench.metadata(topics);
    let told = bench.consume(consumer_join("c", &["t"])).expect("a member");
    assert_eq!((told.epoch, told.heartbeat_interval_ms), (4, 7));
    bench.pass(50);
    let gone = bench.consume(consumer_beat("c", 4)).expect_err("its session is 50 ms");
    assert_eq!(gone.error, GroupError::UnknownMemberId);
}

#[test]
fn a_restarted_coordinator_goes_on_where_it_was() {
    let mut bench = bench();
    bench.told(consumer_join("a", &["t"]));
    bench.told(consumer_join("b", &["t"]));
    bench.told(consumer_beat("a", 2));
    bench.told(consumer_beat("b", 3));
    let mut config = GroupConfig::default();
    config.consumer.assignment_interval_ms = 0;
    let mut bench = bench.restarted(config);
    bench.topics(&[("t", 3)]);
    let before = bench.log.len();
    assert_eq!(bench.told(consumer_beat("b", 3)), (3, "-".to_owned()));
    assert_eq!(bench.log.len(), before, "nothing has changed");
    let given_up = ConsumerGroupHeartbeat { owned: owning("t", &[0, 1]), ..consumer_beat("a", 2) };
    assert_eq!(bench.told(given_up), (3, "-".to_owned()));
    assert_eq!(bench.told(consumer_beat("b", 3)), (3, "t:2".to_owned()));
    bench.pass(45_000);
    assert_eq!(state(&mut bench), GroupState::Empty, "sessions go on as well");
}

#[test]
fn refused_records_change_nothing() {
    let mut bench = bench();
    bench.failure = Some(AppendError::NotEnoughReplicas);
    let request = bench.send(Event::ConsumerGroupHeartbeat(Box::new(consumer_join("a", &["t"]))));
    assert_eq!(bench.answer(request), Err(GroupError::CoordinatorNotAvailable));
    assert!(bench.listed(&[], &[]).is_empty());
    bench.told(consumer_join("a", &["t"]));
    bench.failure = Some(AppendError::Storage);
    let leave =
        bench.send(Event::ConsumerGroupHeartbeat(Box::new(consumer_beat("a", LEAVE_EPOCH))));
    assert_eq!(bench.answer(leave), Err(GroupError::NotCoordinator));
    assert_eq!(bench.told(consumer_beat("a", 2)), (2, "-".to_owned()), "still a member");
    bench.pass(45_000);
    assert_eq!(state(&mut bench), GroupState::Empty, "with a session");
}

#[test]
fn tools_see_consumer_groups_as_what_they_are() {
    let mut bench = bench();
    bench.told(consumer_join("a", &["t"]));
    let missing = MissingGroup::NotFound;
    let asked = Event::DescribeGroup(DescribeGroup { group: "g".into(), missing });
    let Ok(Response::DescribeGroup(classic)) = bench.ask(asked) else { panic!("described") };
    assert_eq!(
        (classic.state, classic.error),
        (GroupState::Dead, Some(GroupError::GroupIdNotFound))
    );
    assert_eq!(classic.error_message.as_deref(), Some("Group g is not a classic group."));
    assert_eq!(bench.described("g").state, GroupState::Dead);
    let delete = || Event::DeleteGroup(DeleteGroup { group: "g".into() });
    assert_eq!(bench.ask(delete()), Err(GroupError::NonEmptyGroup));
    let mut commit = commit("g", "a", 2, 7);
    commit.form = CommitForm::MemberEpoch;
    bench.ask(Event::OffsetCommit(commit)).expect("committed");
    let topics = vec![("t".into(), vec![0]), ("u".into(), vec![0])];
    let forget = Event::OffsetDelete(OffsetDelete { group: "g".into(), topics });
    let result = |error| vec![PartitionResult { partition: 0, error }];
    let refused = result(Some(GroupError::GroupSubscribedToTopic));
    let expected = vec![(Arc::from("t"), refused), (Arc::from("u"), result(None))];
    assert_eq!(bench.ask(forget), Ok(Response::OffsetDelete(expected)));
    bench.consume(consumer_beat("a", LEAVE_EPOCH)).expect("left");
    assert_eq!(bench.positions("g"), ["t-0@7"], "positions outlive members");
    let before = bench.log.len();
    assert_eq!(bench.ask(delete()), Ok(Response::DeleteGroup));
    let records = bench.records(before);
    assert!(matches!(records[0], Record::Offset { value: None, .. }));
    assert_eq!(kinds(&bench, before + 1), ["target epoch gone", "epoch gone"]);
    assert!(bench.listed(&[], &[]).is_empty());
    let asked = bench.ask(Event::DescribeConsumerGroup("g".into()));
    let Ok(Response::DescribeConsumerGroup(Err(refusal))) = asked else {
        panic!("gone: {asked:?}")
    };
    assert_eq!(refusal.text, "Group g not found.");
}

#[test]
fn positions_of_a_group_expire_by_topic_and_commit() {
    let mut bench = bench();
    bench.told(consumer_join("a", &["t"]));
    for topic in ["t", "u"] {
        let mut commit = commit("g", "a", 2, 7);
        commit.form = CommitForm::MemberEpoch;
        commit.topics[0].topic = topic.into();
        bench.ask(Event::OffsetCommit(commit)).expect("committed");
    }
    for _ in 0..(7 * 24 * 60 + 20) * 2 {
        bench.pass(30_000);
        bench.told(consumer_beat("a", 2));
    }
    assert_eq!(bench.positions("g"), ["t-0@7"], "u is not subscribed to");
}
