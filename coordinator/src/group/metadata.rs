//! What a consumer group needs to know of the topics there are; the caller gives it.

use std::fmt::Debug;
use std::sync::Arc;

use duolog_log_core::ids::TopicId;

/// A topic as a group sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicShape {
    /// Its id.
    pub id: TopicId,
    /// How many partitions it has.
    pub partitions: i32,
}

/// What is set for one group alone, in milliseconds; `None`: as the node has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupSettings {
    /// `consumer.session.timeout.ms`.
    pub session_timeout_ms: Option<i32>,
    /// `consumer.heartbeat.interval.ms`.
    pub heartbeat_interval_ms: Option<i32>,
    /// `consumer.assignment.interval.ms`.
    pub assignment_interval_ms: Option<i32>,
}

/// The cluster's metadata at one moment; never changes.
pub trait Metadata: Debug + Send + Sync {
    /// The topic stored under exactly this name.
    fn topic(&self, name: &str) -> Option<TopicShape>;

    /// The stored name of a topic.
    fn topic_name(&self, id: TopicId) -> Option<Arc<str>>;

    /// Shows the stored name of every topic, in no order.
    fn for_each_topic(&self, show: &mut dyn FnMut(&Arc<str>));

    /// What is set for this group alone.
    fn group_settings(&self, group: &str) -> GroupSettings;
}

/// A cluster without topics.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMetadata;

impl Metadata for NoMetadata {
    fn topic(&self, _: &str) -> Option<TopicShape> {
        None
    }

    fn topic_name(&self, _: TopicId) -> Option<Arc<str>> {
        None
    }

    fn for_each_topic(&self, _: &mut dyn FnMut(&Arc<str>)) {}

    fn group_settings(&self, _: &str) -> GroupSettings {
        GroupSettings::default()
    }
}
