//! UPDATE_CONSUMER_OFFSET (code 15) and QUERY_CONSUMER_OFFSET (code 14).
//!
//! The same records as Kafka's commits: next offset to read, leader epoch −1, no metadata, no
//! topic id. They do not expire (`kafka/expiry.rs`).

use duolog_log_core::ids::TopicId;

use crate::group::event::CommitQueueOffset;
use crate::group::image::GroupImage;
use crate::record::{Family, FamilyValue, OffsetValue, Record};

/// The records of a commit. None if the position is there already: clients commit all their queues
/// every five seconds, moved or not.
pub(in crate::group) fn commit(
    commit: &CommitQueueOffset,
    image: &GroupImage,
    wall_ms: i64,
) -> Vec<Record> {
    let known = image.offset(&commit.topic, commit.queue);
    if known.is_some_and(|known| known.offset == commit.offset && known.expire_ms.is_none()) {
        return Vec::new();
    }
    let mut records = vec![Record::Offset {
        group: commit.group.clone(),
        topic: commit.topic.clone(),
        partition: commit.queue,
        value: Some(OffsetValue {
            offset: commit.offset,
            leader_epoch: -1,
            metadata: Default::default(),
            commit_ms: wall_ms,
            expire_ms: None,
            topic_id: TopicId::ZERO,
        }),
    }];
    if image.is_empty() {
        // A group that is known by its positions only: RocketMQ's, so that they do not expire. A
        // Kafka group that a RocketMQ tool resets stays Kafka's.
        records.push(family(&commit.group, wall_ms));
    }
    records
}

/// The record that a group is RocketMQ's.
pub(in crate::group) fn family(group: &crate::group::event::GroupId, wall_ms: i64) -> Record {
    let value = FamilyValue { family: Family::RocketMq, since_ms: wall_ms };
    Record::Family { group: group.clone(), value: Some(value) }
}
