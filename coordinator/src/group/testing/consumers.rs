//! Topics, and members of consumer groups that do what they are told.

use std::collections::BTreeMap;
use std::sync::Arc;

use duolog_log_core::ids::TopicId;

use super::Bench;
use crate::error::Refusal;
use crate::group::event::*;
use crate::group::metadata::{GroupSettings, Metadata, TopicShape};
use crate::group::response::*;

/// Topics by name, with their partition counts.
#[derive(Clone, Debug, Default)]
pub(in crate::group) struct TestTopics {
    pub(in crate::group) topics: BTreeMap<Arc<str>, TopicShape>,
    pub(in crate::group) settings: GroupSettings,
}

impl TestTopics {
    pub(in crate::group) fn of(topics: &[(&str, i32)]) -> Self {
        let shape = |&(name, partitions): &(&str, i32)| {
            (Arc::from(name), TopicShape { id: topic_id(name), partitions })
        };
        Self { topics: topics.iter().map(shape).collect(), settings: GroupSettings::default() }
    }
}

impl Metadata for TestTopics {
    fn topic(&self, name: &str) -> Option<TopicShape> {
        self.topics.get(name).copied()
    }

    fn topic_name(&self, id: TopicId) -> Option<Arc<str>> {
        self.topics.iter().find(|(_, topic)| topic.id == id).map(|(name, _)| name.clone())
    }

    fn for_each_topic(&self, show: &mut dyn FnMut(&Arc<str>)) {
        self.topics.keys().for_each(show);
    }

    fn group_settings(&self, _: &str) -> GroupSettings {
        self.settings
    }
}

/// The id that a topic of this name has here.
pub(in crate::group) fn topic_id(name: &str) -> TopicId {
    let mut id = [0; 16];
    id.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
    TopicId(id)
}

/// A heartbeat of group `g` in which nothing has changed.
pub(in crate::group) fn consumer_beat(member: &str, epoch: i32) -> ConsumerGroupHeartbeat {
    ConsumerGroupHeartbeat {
        group: "g".into(),
        member: member.into(),
        id_maker: MemberIdMaker::Client,
        epoch,
        instance: None,
        rack: None,
        rebalance_timeout_ms: None,
        topics: None,
        regex: None,
        assignor: None,
        owned: None,
        client_id: "c".into(),
        client_host: "/127.0.0.1".into(),
        uuid: [9; 16],
    }
}

/// A member of group `g` that wants `topics` joins it; it may take a minute to give up partitions.
pub(in crate::group) fn consumer_join(member: &str, topics: &[&str]) -> ConsumerGroupHeartbeat {
    ConsumerGroupHeartbeat {
        rebalance_timeout_ms: Some(60_000),
        topics: Some(topics.iter().map(|&name| Arc::from(name)).collect()),
        owned: Some(Vec::new()),
        ..consumer_beat(member, JOIN_EPOCH)
    }
}

/// What the bench's consumers were told.
pub(in crate::group) type Beaten = Result<HeartbeatResponse, Refusal>;

impl Bench {
    /// The metadata are these from now on.
    pub(in crate::group) fn topics(&mut self, topics: &[(&str, i32)]) {
        self.metadata(TestTopics::of(topics));
    }

    pub(in crate::group) fn metadata(&mut self, topics: TestTopics) {
        self.notify(Event::Metadata(Arc::new(topics)));
    }

    pub(in crate::group) fn consume(&mut self, heartbeat: ConsumerGroupHeartbeat) -> Beaten {
        match self.ask(Event::ConsumerGroupHeartbeat(Box::new(heartbeat))) {
            Ok(Response::ConsumerGroupHeartbeat(answer)) => answer,
            other => panic!("no answer to a heartbeat: {other:?}"),
        }
    }

    /// Epoch and assignment that a heartbeat is told.
    pub(in crate::group) fn told(&mut self, heartbeat: ConsumerGroupHeartbeat) -> (i32, String) {
        let told = self.consume(heartbeat).expect("a member");
        (told.epoch, told.assignment.as_ref().map_or_else(|| "-".to_owned(), show_assignment))
    }

    pub(in crate::group) fn consumers(&mut self, group: &str) -> DescribedConsumerGroup {
        match self.ask(Event::DescribeConsumerGroup(group.into())) {
            Ok(Response::DescribeConsumerGroup(Ok(described))) => described,
            other => panic!("not described: {other:?}"),
        }
    }
}

/// Partitions by the first letters of their topics' ids, which are their names here.
pub(in crate::group) fn show_assignment(
    assignment: &crate::record::consumer::Assignment,
) -> String {
    let name = |id: &TopicId| {
        let bytes: Vec<u8> = id.0.iter().copied().take_while(|byte| *byte != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let topic = assignment.iter().map(|(id, indexes)| {
        let indexes: Vec<String> = indexes.iter().map(ToString::to_string).collect();
        format!("{}:{}", name(id), indexes.join(","))
    });
    topic.collect::<Vec<_>>().join(" ")
}

/// What a member has, as it tells it.
pub(in crate::group) fn owning(topic: &str, indexes: &[i32]) -> Option<Vec<(TopicId, Vec<i32>)>> {
    Some(vec![(topic_id(topic), indexes.to_vec())])
}
