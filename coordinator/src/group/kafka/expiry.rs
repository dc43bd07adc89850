//! Positions that nobody has needed for `offsets.retention.minutes` (KIP-211).
//!
//! | group | a position's age counts from |
//! | --- | --- |
//! | none but positions (a consumer that manages its partitions itself) | its commit |
//! | classic, empty | the group becoming empty; its commit if that is not known |
//! | classic, stable, consumers, topic not subscribed | its commit |
//! | of the consumer protocol, topic not subscribed | its commit |
//! | any other | it does not expire |
//! | RocketMQ | it does not expire: its clients would read from the start again |
//!
//! A position committed with a retention time of its own goes at that time, in the same groups. One
//! that an open transaction would replace does not expire, and keeps its group (KIP-98).
//! Source: `ClassicGroup.offsetExpirationCondition`, `OffsetExpirationConditionImpl`.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::pending::PendingPositions;
use super::subscription::{CONSUMER, subscribed_topics};
use crate::group::event::GroupId;
use crate::group::image::GroupImage;
use crate::group::response::GroupState;
use crate::limits::TOMBSTONES_MAX;
use crate::record::{OffsetValue, Record};

/// What may go of one group.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::group) struct Expired {
    /// Tombstones, at most [`TOMBSTONES_MAX`].
    pub(in crate::group) records: Vec<Record>,
    /// There may be more.
    pub(in crate::group) more: bool,
}

enum Age {
    /// Since this time, or since the commit if that is not known.
    SinceEmpty(Option<i64>),
    SinceCommit,
}

/// What has expired of `group` at `wall_ms`. A group that is empty and has no position left goes
/// as a whole.
pub(in crate::group) fn expired(
    group: &GroupId,
    image: &GroupImage,
    state: GroupState,
    pending: &PendingPositions,
    retention_ms: i64,
    wall_ms: i64,
) -> Expired {
    let mut expired = Expired { records: Vec::new(), more: false };
    if image.is_rocketmq() {
        return expired;
    }
    let mut left = 0_usize;
    if !image.offsets.is_empty() {
        let Some((age, subscribed)) = rule(image, state) else { return expired };
        let is_old = |value: &OffsetValue| match (value.expire_ms, &age) {
            (Some(expire_ms), _) => wall_ms >= expire_ms,
            (None, Age::SinceEmpty(Some(since_ms))) => wall_ms - since_ms >= retention_ms,
            (None, _) => wall_ms - value.commit_ms >= retention_ms,
        };
        for (topic, partitions) in &image.offsets {
            for (&partition, value) in partitions {
                let is_waited_for = pending.has(group, topic, partition);
                if subscribed.contains(topic) || !is_old(value) || is_waited_for {
                    left += 1;
                } else if expired.records.len() < TOMBSTONES_MAX {
                    let (group, topic) = (group.clone(), topic.clone());
                    expired.records.push(Record::Offset { group, topic, partition, value: None });
                } else {
                    expired.more = true;
                }
            }
        }
    }
    let rests = state == GroupState::Empty && !pending.has_group(group);
    let is_over = left == 0 && !expired.more && rests;
    if is_over && image.classic.is_some() {
        expired.records.push(Record::Group { group: group.clone(), value: None });
    }
    if let Some(image) = image.consumer.as_ref().filter(|_| is_over) {
        let ends = image.tombstones().into_iter();
        let ends = ends.map(|fact| Record::Consumer { group: group.clone(), fact });
        expired.records.extend(ends);
    }
    expired
}

/// How old positions count, and the topics that are spared; `None`: nothing expires.
fn rule(image: &GroupImage, state: GroupState) -> Option<(Age, BTreeSet<Arc<str>>)> {
    if let Some(consumers) = &image.consumer {
        return Some((Age::SinceCommit, consumers.subscribed_topics()));
    }
    let Some(classic) = image.classic.as_ref().filter(|value| !value.protocol_type.is_empty())
    else {
        return Some((Age::SinceCommit, BTreeSet::new()));
    };
    match state {
        GroupState::Empty => {
            let since_ms = Some(classic.state_ms).filter(|&at| at != -1);
            Some((Age::SinceEmpty(since_ms), BTreeSet::new()))
        }
        GroupState::Stable if &*classic.protocol_type == CONSUMER => {
            Some((Age::SinceCommit, subscribed_topics(classic)?))
        }
        _ => None,
    }
}

/// Whether the group wants positions on `topic`: such are not deleted by OffsetDelete (KIP-496).
/// A live consumer group whose subscription cannot be read wants all.
pub(in crate::group) fn is_subscribed(image: &GroupImage, topic: &Arc<str>) -> bool {
    if let Some(consumers) = &image.consumer {
        return consumers.subscribed_topics().contains(topic);
    }
    let Some(classic) = &image.classic else { return false };
    if &*classic.protocol_type != CONSUMER {
        return false;
    }
    subscribed_topics(classic).is_none_or(|topics| topics.contains(topic))
}

/// As [`is_subscribed`], for consumers whose first generation may not be stored yet.
pub(in crate::group) fn is_subscribed_or_new(image: &GroupImage, topic: &Arc<str>) -> bool {
    image.classic.is_none() || is_subscribed(image, topic)
}

#[cfg(test)]
mod tests;
