//! Lives of a consumer group as Kafka's own coordinator led them; see tests/golden/coordinator.

use std::collections::BTreeMap;

use duolog_log_core::ids::TopicId;

use super::*;
use crate::group::config::Assignor;
use crate::record::consumer::Assignment;

const SCRIPTS: &str =
    include_str!("../../../../../../tests/golden/coordinator/consumer-scripts.txt");

/// Partitions by topic, as the scripts tell them.
fn show(topics: &Assignment) -> String {
    match show_assignment(topics).replace(' ', ";") {
        text if text.is_empty() => "none".to_owned(),
        text => text,
    }
}

/// `t:0,1;u:0` taken apart.
fn partitions(text: &str) -> Vec<(TopicId, Vec<i32>)> {
    let topic = |part: &str| {
        let (name, indexes) = part.split_once(':').expect("a topic and its partitions");
        let number = |text: &str| text.parse().expect("a number");
        (topic_id(name), indexes.split(',').map(number).collect())
    };
    text.split(';').filter(|part| *part != "none").map(topic).collect()
}

fn beat(words: &[&str]) -> ConsumerGroupHeartbeat {
    let [member, epoch, instance, topics, owned] = *words else { panic!("{words:?}") };
    let epoch: i32 = epoch.parse().expect("an epoch");
    let told = |text: &&str| *text != "-";
    let names = |text: &str| {
        text.split(',').filter(|name| *name != "none").map(Arc::from).collect::<Vec<_>>()
    };
    ConsumerGroupHeartbeat {
        client_id: member[..1].into(),
        instance: Some(instance).filter(told).map(Arc::from),
        rebalance_timeout_ms: (epoch == JOIN_EPOCH).then_some(30_000),
        topics: Some(topics).filter(told).map(names),
        owned: Some(owned).filter(told).map(partitions),
        ..consumer_beat(member, epoch)
    }
}

/// A refusal as Kafka names its code.
fn code(error: GroupError) -> &'static str {
    match error {
        GroupError::FencedInstanceId => "FENCED_INSTANCE_ID",
        GroupError::FencedMemberEpoch => "FENCED_MEMBER_EPOCH",
        GroupError::GroupIdNotFound => "GROUP_ID_NOT_FOUND",
        GroupError::StaleMemberEpoch => "STALE_MEMBER_EPOCH",
        GroupError::UnknownMemberId => "UNKNOWN_MEMBER_ID",
        GroupError::UnreleasedInstanceId => "UNRELEASED_INSTANCE_ID",
        other => panic!("unexpected: {other}"),
    }
}

fn committed(bench: &mut Bench, words: &[&str]) -> String {
    let [member, epoch, partition] = *words else { panic!("{words:?}") };
    let mut commit = commit("g", member, epoch.parse().expect("an epoch"), 1);
    commit.form = CommitForm::MemberEpoch;
    commit.topics[0].topic_id = topic_id("t");
    commit.topics[0].partitions[0].partition = partition.parse().expect("a number");
    match bench.ask(Event::OffsetCommit(commit)) {
        Ok(_) => "NONE".to_owned(),
        Err(error) => code(error).to_owned(),
    }
}

/// Does one step; the answer to it, if it has one.
fn act(bench: &mut Bench, action: &str) -> Option<String> {
    let words: Vec<&str> = action.split(' ').collect();
    match words[0] {
        "beat" => Some(match bench.consume(beat(&words[1..])) {
            Ok(told) => {
                let assignment = told.assignment.as_ref().map_or("-".to_owned(), show);
                format!("NONE {} {assignment}", told.epoch)
            }
            Err(refusal) => code(refusal.error).to_owned(),
        }),
        "commit" => Some(committed(bench, &words[1..])),
        "topics" => {
            let counts: BTreeMap<&str, i32> = words[1]
                .split(';')
                .map(|part| part.split_once(':').expect("a topic and a count"))
                .map(|(name, count)| (name, count.parse().expect("a number")))
                .collect();
            bench.topics(&counts.into_iter().collect::<Vec<_>>());
            None
        }
        "pass" => {
            bench.pass(words[1].parse().expect("a number"));
            None
        }
        other => panic!("no such step: {other}"),
    }
}

fn describe(bench: &mut Bench, known: &[TopicId]) -> String {
    let group = match bench.ask(Event::DescribeConsumerGroup("g".into())) {
        Ok(Response::DescribeConsumerGroup(Ok(group))) => group,
        Ok(Response::DescribeConsumerGroup(Err(_))) => return "nothing".to_owned(),
        other => panic!("not described: {other:?}"),
    };
    let members = group.members.iter().map(|one| {
        // A topic that is gone has no name to be told by.
        let named = |topics: &Assignment| {
            let there = topics.iter().filter(|(id, _)| known.contains(id));
            there.map(|(id, of)| (*id, of.clone())).collect::<Assignment>()
        };
        let (owned, target) = (named(&one.member.owned()), named(&one.target));
        let epoch = one.member.current.epoch;
        format!("{}:{epoch}:{}:{}", one.id, show(&owned), show(&target))
    });
    let members = members.collect::<Vec<_>>().join(" ");
    let image = bench.runtime.shard().image("g").and_then(|image| image.consumer.as_ref());
    let hash = image.map_or(0, |image| image.epoch.metadata_hash);
    let (state, epoch, target_epoch) = (group.state.name(), group.epoch, group.target_epoch);
    format!("{state} {epoch} {target_epoch} {hash:x} [{members}]")
}

#[test]
fn consumer_groups_live_as_kafkas_do() {
    let mut bench = bench();
    let (mut script, mut step) = ("", "");
    let (mut answer, mut known) = (None, Vec::new());
    let mut played = 0;
    for line in SCRIPTS.lines() {
        let (mark, rest) = line.split_once(' ').expect("a mark");
        match mark {
            "script" => {
                script = rest;
                bench = Bench::with(|config| config.consumer.assignors = vec![Assignor::Range]);
                bench.topics(&[("t", 3)]);
                known = vec![topic_id("t")];
                played += 1;
            }
            ">" => {
                step = rest;
                answer = act(&mut bench, step);
                if let Some(topics) = step.strip_prefix("topics ") {
                    let names = topics.split(';').filter_map(|part| part.split_once(':'));
                    known = names.map(|(name, _)| topic_id(name)).collect();
                }
            }
            "<" => assert_eq!(answer.as_deref(), Some(rest), "script {script}: {step}"),
            "=" => assert_eq!(describe(&mut bench, &known), rest, "script {script}: {step}"),
            other => panic!("no such mark: {other}"),
        }
    }
    assert!(played >= 100, "{played}");
}
