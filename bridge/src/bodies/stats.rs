//! Offsets of queues and groups.

use super::{BodyError, encode};
use crate::json::{JsonOut, ToJson, Value};

/// A queue's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageQueue {
    /// RocketMQ's name of the topic.
    pub topic: String,
    /// The broker's name.
    pub broker_name: String,
    /// 0-based.
    pub queue_id: i32,
}

impl MessageQueue {
    pub(super) fn from_value(value: &Value<'_>) -> Result<Self, BodyError> {
        Ok(Self {
            topic: value.text("topic")?.unwrap_or_default(),
            broker_name: value.text("brokerName")?.unwrap_or_default(),
            queue_id: value.number("queueId")?.unwrap_or_default(),
        })
    }
}

impl ToJson for MessageQueue {
    fn write(&self, out: &mut JsonOut) {
        out.object()
            .field("brokerName", &self.broker_name)
            .field("queueId", &self.queue_id)
            .field("topic", &self.topic)
            .end();
    }
}

/// A table whose keys are queues, written as objects.
pub(super) struct ByQueue<'a, T>(pub(super) &'a [(MessageQueue, T)]);

impl<T: ToJson> ToJson for ByQueue<'_, T> {
    fn write(&self, out: &mut JsonOut) {
        let mut object = out.object();
        for (queue, value) in self.0 {
            object.entry(queue, value);
        }
        object.end();
    }
}

/// A queue's offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicOffset {
    /// Earliest; inclusive.
    pub min_offset: i64,
    /// End; exclusive.
    pub max_offset: i64,
    /// Store time of the last message, milliseconds since 1970.
    pub last_update_timestamp: i64,
}

impl ToJson for TopicOffset {
    fn write(&self, out: &mut JsonOut) {
        out.object()
            .field("lastUpdateTimestamp", &self.last_update_timestamp)
            .field("maxOffset", &self.max_offset)
            .field("minOffset", &self.min_offset)
            .end();
    }
}

/// Body of the answer to GET_TOPIC_STATS_INFO (202).
#[derive(Clone, Debug, PartialEq)]
pub struct TopicStatsTable {
    /// Messages stored per second.
    pub topic_put_tps: f64,
    /// By queue.
    pub offsets: Vec<(MessageQueue, TopicOffset)>,
}

impl ToJson for TopicStatsTable {
    fn write(&self, out: &mut JsonOut) {
        out.object()
            .field("offsetTable", &ByQueue(&self.offsets))
            .field("topicPutTps", &self.topic_put_tps)
            .end();
    }
}

/// A group's position in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetWrapper {
    /// The queue's end; exclusive.
    pub broker_offset: i64,
    /// Next offset to consume.
    pub consumer_offset: i64,
    /// Next offset to pull.
    pub pull_offset: i64,
    /// Store time of the last message consumed, milliseconds since 1970.
    pub last_timestamp: i64,
}

impl ToJson for OffsetWrapper {
    fn write(&self, out: &mut JsonOut) {
        out.object()
            .field("brokerOffset", &self.broker_offset)
            .field("consumerOffset", &self.consumer_offset)
            .field("lastTimestamp", &self.last_timestamp)
            .field("pullOffset", &self.pull_offset)
            .end();
    }
}

/// Body of the answer to GET_CONSUME_STATS (208).
#[derive(Clone, Debug, PartialEq)]
pub struct ConsumeStats {
    /// Messages consumed per second.
    pub consume_tps: f64,
    /// By queue.
    pub offsets: Vec<(MessageQueue, OffsetWrapper)>,
}

impl ToJson for ConsumeStats {
    fn write(&self, out: &mut JsonOut) {
        out.object()
            .field("consumeTps", &self.consume_tps)
            .field("offsetTable", &ByQueue(&self.offsets))
            .end();
    }
}

encode! { TopicStatsTable ConsumeStats }
