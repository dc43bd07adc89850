//! What consumers say in the classic protocol's bytes: their subscriptions and assignments.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use crate::record::reader::Reader;
use crate::record::{GroupValue, RecordError};

/// Protocol type of the groups whose members' metadata Kafka understands.
pub(in crate::group) const CONSUMER: &str = "consumer";

/// The topics that the members of `group` subscribe to; `None` if they are not consumers or say
/// it in a way that cannot be read. An empty group subscribes to none.
/// Source: `ClassicGroup.computeSubscribedTopics`.
pub(super) fn subscribed_topics(group: &GroupValue) -> Option<BTreeSet<Arc<str>>> {
    if &*group.protocol_type != CONSUMER {
        return None;
    }
    let mut topics = BTreeSet::new();
    if !group.members.is_empty() {
        group.protocol.as_ref()?;
    }
    for member in &group.members {
        collect_topics(&member.subscription, &mut topics).ok()?;
    }
    Some(topics)
}

/// Reads the part of a `ConsumerProtocolSubscription` that all its versions begin with: version,
/// topics.
fn collect_topics(
    subscription: &Bytes,
    topics: &mut BTreeSet<Arc<str>>,
) -> Result<(), RecordError> {
    let mut from = Reader::new(subscription);
    from.i16("version")?;
    for _ in 0..from.any_count("topics", 2)? {
        topics.insert(from.string("topic")?);
    }
    Ok(())
}

/// Partitions by topic.
pub(super) type Partitions = BTreeMap<Arc<str>, BTreeSet<i32>>;

/// The partitions of an assignment; `None` if it cannot be read. Nothing at all is an assignment of
/// nothing: what members get that the leader has forgotten.
pub(super) fn assigned_partitions(assignment: &Bytes) -> Option<Partitions> {
    let mut partitions = Partitions::new();
    if !assignment.is_empty() {
        collect_partitions(assignment, &mut partitions).ok()?;
    }
    Some(partitions)
}

/// Reads the part of a `ConsumerProtocolAssignment` that all its versions begin with: version,
/// partitions by topic.
fn collect_partitions(assignment: &Bytes, partitions: &mut Partitions) -> Result<(), RecordError> {
    let mut from = Reader::new(assignment);
    from.i16("version")?;
    for _ in 0..from.any_count("topics", 6)? {
        let topic = partitions.entry(from.string("topic")?).or_default();
        for _ in 0..from.any_count("partitions", 4)? {
            topic.insert(from.i32("partition")?);
        }
    }
    Ok(())
}
