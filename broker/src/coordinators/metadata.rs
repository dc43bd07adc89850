//! What coordinators are told of the metadata.

use std::sync::Arc;

use duolog_coordinator::group::metadata::{GroupSettings, Metadata, TopicShape};
use duolog_log_core::ids::TopicId;

use crate::controller::image::Image;
use crate::controller::names;
use crate::controller::record::ConfigScope;

impl Metadata for Image {
    fn topic(&self, name: &str) -> Option<TopicShape> {
        let topic = Image::topic(self, name)?;
        Some(TopicShape { id: topic.id, partitions: topic.partition_count() })
    }

    fn topic_name(&self, id: TopicId) -> Option<Arc<str>> {
        Some(self.topic_by_id(id)?.name.clone())
    }

    /// Without RocketMQ's own topics: whoever wants all topics does not mean its retries.
    fn for_each_topic(&self, show: &mut dyn FnMut(&Arc<str>)) {
        let topics = self.topics().map(|topic| &topic.name);
        topics.filter(|name| !name.starts_with(names::ROCKETMQ_PREFIX)).for_each(show);
    }

    fn group_settings(&self, group: &str) -> GroupSettings {
        let own = self.config(ConfigScope::Group, group);
        let number = |name: &str| own?.get(name)?.trim().parse().ok();
        let interval = number("consumer.assignment.interval.ms");
        GroupSettings {
            session_timeout_ms: number("consumer.session.timeout.ms"),
            heartbeat_interval_ms: number("consumer.heartbeat.interval.ms"),
            assignment_interval_ms: interval.or_else(|| self.assignment_interval_ms()),
        }
    }
}
