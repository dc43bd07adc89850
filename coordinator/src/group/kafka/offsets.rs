//! OffsetCommit (key 8), OffsetFetch (key 9), OffsetDelete (key 47): the positions themselves. Who
//! may commit is the group's to say.

use std::sync::Arc;

use duolog_log_core::ids::TopicId;

use crate::error::GroupError;
use crate::group::event::{GroupId, OffsetCommit, PartitionCommit, TopicFetch};
use crate::group::image::GroupImage;
use crate::group::response::{CommittedTopic, FetchedOffset, FetchedTopic, PartitionResult};
use crate::record::{OffsetValue, Record};

/// The records of a commit, and the answer to it. A position whose metadata are too long is
/// refused by itself (case B40).
pub(in crate::group) fn commit(
    commit: OffsetCommit,
    metadata_max: usize,
    wall_ms: i64,
) -> (Vec<Record>, Vec<CommittedTopic>) {
    let expire_ms = commit.retention_ms.map(|kept_ms| wall_ms.saturating_add(kept_ms));
    let mut records = Vec::new();
    let mut answer = Vec::with_capacity(commit.topics.len());
    for asked in commit.topics {
        let mut partitions = Vec::with_capacity(asked.partitions.len());
        for PartitionCommit { partition, offset, leader_epoch, metadata } in asked.partitions {
            let metadata = metadata.unwrap_or_default();
            let fits = metadata.encode_utf16().nth(metadata_max).is_none();
            let error = (!fits).then_some(GroupError::OffsetMetadataTooLarge);
            partitions.push(PartitionResult { partition, error });
            if fits {
                let topic_id = asked.topic_id;
                records.push(Record::Offset {
                    group: commit.group.clone(),
                    topic: asked.topic.clone(),
                    partition,
                    value: Some(OffsetValue {
                        offset,
                        leader_epoch,
                        metadata,
                        commit_ms: wall_ms,
                        expire_ms,
                        topic_id,
                    }),
                });
            }
        }
        answer.push(CommittedTopic { topic: asked.topic, topic_id: asked.topic_id, partitions });
    }
    (records, answer)
}

/// The positions asked for, −1 where there is none or it belongs to another topic of that name; or
/// all there are.
pub(in crate::group) fn fetch(
    image: Option<&GroupImage>,
    topics: Option<Vec<TopicFetch>>,
) -> Vec<FetchedTopic> {
    let Some(topics) = topics else { return image.map(fetch_all).unwrap_or_default() };
    let one = |asked: &TopicFetch, partition: i32| {
        let found = image
            .and_then(|image| image.offset(&asked.topic, partition))
            .filter(|value| is_of(value, asked.topic_id));
        match found {
            Some(value) => fetched(partition, value),
            None => {
                FetchedOffset { partition, offset: -1, leader_epoch: -1, metadata: Arc::from("") }
            }
        }
    };
    topics
        .into_iter()
        .map(|asked| FetchedTopic {
            partitions: asked.partitions.iter().map(|&index| one(&asked, index)).collect(),
            topic: asked.topic,
            topic_id: asked.topic_id,
        })
        .collect()
}

fn fetch_all(image: &GroupImage) -> Vec<FetchedTopic> {
    let topic = |(topic, partitions): (&Arc<str>, &std::collections::BTreeMap<i32, _>)| {
        let partitions = partitions.iter().map(|(&index, value)| fetched(index, value)).collect();
        FetchedTopic { topic: topic.clone(), topic_id: TopicId::ZERO, partitions }
    };
    image.offsets.iter().map(topic).collect()
}

fn fetched(partition: i32, value: &OffsetValue) -> FetchedOffset {
    FetchedOffset {
        partition,
        offset: value.offset,
        leader_epoch: value.leader_epoch,
        metadata: value.metadata.clone(),
    }
}

/// Whether a position was committed for this topic; one of the two may not know the id (KIP-516).
fn is_of(value: &OffsetValue, topic_id: TopicId) -> bool {
    value.topic_id == topic_id || value.topic_id == TopicId::ZERO || topic_id == TopicId::ZERO
}

/// Tombstones of the positions on a deleted topic, at most `max`, and whether there are more.
/// Positions committed for another topic of that name stay.
pub(in crate::group) fn forget(
    group: &GroupId,
    image: &GroupImage,
    topic: &Arc<str>,
    topic_id: TopicId,
    max: usize,
) -> (Vec<Record>, bool) {
    let partitions = image.offsets.get(topic).into_iter().flatten();
    let mut gone = partitions
        .filter(|(_, value)| is_of(value, topic_id))
        .map(|(&partition, _)| tombstone(group, topic, partition));
    let records: Vec<_> = gone.by_ref().take(max).collect();
    (records, gone.next().is_some())
}

/// Tombstones of the first `max` positions of a group, and whether there are more.
pub(in crate::group) fn forget_all(
    group: &GroupId,
    image: &GroupImage,
    max: usize,
) -> (Vec<Record>, bool) {
    let mut gone = image.offsets.iter().flat_map(|(topic, partitions)| {
        partitions.keys().map(|&partition| tombstone(group, topic, partition))
    });
    let records: Vec<_> = gone.by_ref().take(max).collect();
    (records, gone.next().is_some())
}

/// The record that a position is no more.
pub(in crate::group) fn tombstone(group: &GroupId, topic: &Arc<str>, partition: i32) -> Record {
    Record::Offset { group: group.clone(), topic: topic.clone(), partition, value: None }
}
