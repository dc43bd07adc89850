//! The durable half of a group: what a replay of its records gives.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::record::consumer::ConsumerFact;
use crate::record::{Family, FamilyValue, GroupValue, OffsetValue, Record};
use consumer::ConsumerImage;

pub mod consumer;

/// Positions by topic and partition.
pub type Offsets = BTreeMap<Arc<str>, BTreeMap<i32, OffsetValue>>;

/// One group as the log has it. Changed by [`Self::apply`] and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupImage {
    /// The family, if not Kafka's.
    pub family: Option<FamilyValue>,
    /// The last generation written, if there was one.
    pub classic: Option<GroupValue>,
    /// The consumer group, if it is one (KIP-848); then `classic` is none.
    pub consumer: Option<ConsumerImage>,
    /// Committed positions; no topic is empty.
    pub offsets: Offsets,
}

impl GroupImage {
    /// Applies one record of this group.
    pub fn apply(&mut self, record: Record) {
        match record {
            Record::Offset { topic, partition, value: Some(value), .. } => {
                self.offsets.entry(topic).or_default().insert(partition, value);
            }
            Record::Offset { topic, partition, value: None, .. } => {
                if let Some(partitions) = self.offsets.get_mut(&topic) {
                    partitions.remove(&partition);
                    if partitions.is_empty() {
                        self.offsets.remove(&topic);
                    }
                }
            }
            Record::Group { value, .. } => self.classic = value,
            Record::Consumer { fact, .. } => self.apply_consumer(fact),
            Record::Family { value, .. } => self.family = value,
        }
    }

    /// A part of a group that is gone, as compaction may leave one, makes no group.
    fn apply_consumer(&mut self, fact: ConsumerFact) {
        if self.consumer.is_none() && fact.is_tombstone() {
            return;
        }
        if !self.consumer.get_or_insert_default().apply(fact) {
            self.consumer = None;
        }
    }

    /// Whether nothing of the group is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.family.is_none()
            && self.classic.is_none()
            && self.consumer.is_none()
            && self.offsets.is_empty()
    }

    /// Whether it is a RocketMQ group.
    #[must_use]
    pub fn is_rocketmq(&self) -> bool {
        self.family.is_some_and(|value| value.family == Family::RocketMq)
    }

    /// A committed position.
    #[must_use]
    pub fn offset(&self, topic: &str, partition: i32) -> Option<&OffsetValue> {
        self.offsets.get(topic)?.get(&partition)
    }

    /// The classic group's protocol type, if it ever had one.
    #[must_use]
    pub fn protocol_type(&self) -> Option<&Arc<str>> {
        self.classic.as_ref().map(|value| &value.protocol_type).filter(|text| !text.is_empty())
    }
}
