//! Positions of groups, as RocketMQ asks for them: the coordinators keep one store for both protocols.

use std::sync::Arc;

use duolog_bridge::backend::{BackendError, CommittedOffset, Result, Topic};
use duolog_coordinator::error::GroupError;
use duolog_coordinator::group::event::{
    CommitQueueOffset, DeleteGroup, Event, OffsetFetch, OwnPositions, QueryQueueOffset,
    ReplaceQueueOffset,
};
use duolog_coordinator::group::image::GroupImage;
use duolog_coordinator::group::response::Response;

use super::error::of_group;
use crate::node::Node;

/// A group's position in one queue.
pub(super) async fn committed(
    node: &Node,
    group: &str,
    topic: &Topic,
    queue: i32,
) -> Result<Option<i64>> {
    queried(node, group, Event::QueryQueueOffset(query_of(group, topic, queue))).await
}

/// A group's position in one queue, from which messages are popped.
///
/// Errors: `GroupKindConflict`: Kafka members hold the group.
pub(super) async fn to_pop_from(
    node: &Node,
    group: &str,
    topic: &Topic,
    queue: i32,
) -> Result<Option<i64>> {
    queried(node, group, Event::PopQueueOffset(query_of(group, topic, queue))).await
}

/// Commits a queue's offset in the place of a position of the asker's own; the position from then on.
pub(super) async fn replace(
    node: &Node,
    group: &str,
    topic: &Topic,
    position: (i32, i64),
    own: OwnPositions,
) -> Result<Option<i64>> {
    let commit = commit_of(group, topic, position);
    self::position(node, group, Event::ReplaceQueueOffset(ReplaceQueueOffset { commit, own })).await
}

async fn queried(node: &Node, group: &str, event: Event) -> Result<Option<i64>> {
    if !node.coordinators.exist() {
        return Ok(None);
    }
    position(node, group, event).await
}

async fn position(node: &Node, group: &str, event: Event) -> Result<Option<i64>> {
    match node.coordinators.request(group, event).await {
        Ok(Response::QueryQueueOffset(offset)) => Ok(offset),
        Ok(_) => Err(BackendError::CoordinatorNotReady { group: group.to_owned() }),
        Err(error) => Err(of_group(group, &error)),
    }
}

/// All positions of a group, sorted by topic and partition.
pub(super) async fn all(node: &Node, group: &str) -> Result<Vec<CommittedOffset>> {
    if !node.coordinators.exist() {
        return Ok(Vec::new());
    }
    let event = Event::OffsetFetch(OffsetFetch { group: group.into(), member: None, topics: None });
    let topics = match node.coordinators.request(group, event).await {
        Ok(Response::OffsetFetch(topics)) => topics,
        Ok(_) => return Err(BackendError::CoordinatorNotReady { group: group.to_owned() }),
        Err(error) => return Err(of_group(group, &error)),
    };
    let mut offsets: Vec<CommittedOffset> = topics
        .into_iter()
        .flat_map(|topic| {
            let name = topic.topic;
            topic.partitions.into_iter().map(move |committed| CommittedOffset {
                topic: name.clone(),
                partition: committed.partition,
                offset: committed.offset,
            })
        })
        .filter(|committed| committed.offset >= 0)
        .collect();
    offsets.sort_by(|a, b| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)));
    Ok(offsets)
}

/// The groups that `is_wanted`, sorted.
pub(super) fn groups(node: &Node, is_wanted: impl Fn(&GroupImage) -> bool) -> Vec<String> {
    let mut groups = Vec::new();
    node.coordinators.for_each_group(|group, image| {
        if is_wanted(image) {
            groups.push(group.to_owned());
        }
    });
    groups.sort();
    groups
}

/// Deletes a group's positions.
pub(super) async fn delete(node: &Node, group: &str) -> Result<()> {
    if !node.coordinators.exist() {
        return Ok(());
    }
    match node.delete_group(DeleteGroup { group: group.into() }).await {
        Ok(()) | Err(GroupError::GroupIdNotFound) => Ok(()),
        Err(GroupError::NonEmptyGroup) => {
            Err(BackendError::GroupKindConflict { group: group.to_owned(), kind: "live" })
        }
        Err(error) => Err(of_group(group, &error)),
    }
}

/// Waits until a group's positions, as they are now, are on disk; for so long in the hope that they
/// come to that by themselves.
pub(super) async fn on_disk(node: &Node, group: &str, patience_ms: i64) -> Result<()> {
    let on_disk = node.coordinators.on_disk(group, patience_ms).await;
    on_disk.map_err(|error| of_group(group, &error))
}

/// Commits a queue's offset.
pub(super) async fn commit(
    node: &Node,
    group: &str,
    topic: &Topic,
    position: (i32, i64),
) -> Result<()> {
    let event = Event::CommitQueueOffset(commit_of(group, topic, position));
    let answer = node.coordinators.request(group, event).await;
    answer.map(|_| ()).map_err(|error| of_group(group, &error))
}

/// Commits a queue's offset; nobody waits for it.
pub(super) fn commit_unanswered(
    node: &Arc<Node>,
    group: &str,
    topic: &Topic,
    position: (i32, i64),
) {
    let event = Event::CommitQueueOffset(commit_of(group, topic, position));
    if node.coordinators.exist() {
        return node.coordinators.notify(group, event);
    }
    let (node, group) = (node.clone(), group.to_owned());
    tokio::spawn(async move {
        match node.open_coordinators().await {
            Ok(()) => node.coordinators.notify(&group, event),
            Err(error) => tracing::debug!(%group, %error, "position dropped"),
        }
    });
}

fn commit_of(group: &str, topic: &Topic, (queue, offset): (i32, i64)) -> CommitQueueOffset {
    CommitQueueOffset { group: group.into(), topic: topic.name.clone(), queue, offset }
}

fn query_of(group: &str, topic: &Topic, queue: i32) -> QueryQueueOffset {
    QueryQueueOffset { group: group.into(), topic: topic.name.clone(), queue }
}
