//! What members of the classic protocol say to each other, and here to the server
//! (`ConsumerProtocolSubscription`, `ConsumerProtocolAssignment`, v0 to v3).

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use duolog_log_core::ids::TopicId;

use crate::group::metadata::Metadata;
use crate::record::RecordError;
use crate::record::consumer::{Assignment, OwnedPartitions};
use crate::record::reader::Reader;

/// Partitions by the names of their topics.
pub(super) type NamedPartitions = Vec<(Arc<str>, Vec<i32>)>;

/// What a member wants and has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Subscription {
    pub(super) topics: BTreeSet<Arc<str>>,
    /// By names; none before v1.
    pub(super) owned: NamedPartitions,
    /// None before v3.
    pub(super) rack: Option<Arc<str>>,
}

/// Errors: bytes that are no subscription. Later versions are read as v3, as Kafka does.
pub(super) fn subscription(bytes: &Bytes) -> Result<Subscription, RecordError> {
    let mut from = Reader::new(bytes);
    let version = from.i16("version")?;
    let mut read = Subscription::default();
    for _ in 0..from.any_count("topics", 2)? {
        read.topics.insert(from.string("topic")?);
    }
    skip_user_data(&mut from)?;
    if version >= 1 {
        read.owned = topic_partitions(&mut from)?;
    }
    if version >= 2 {
        from.i32("generation id")?;
    }
    if version >= 3 {
        read.rack = from.any_nullable_string("rack id")?;
    }
    Ok(read)
}

/// What a member was assigned, by names; empty bytes are no partitions.
///
/// Errors: bytes that are no assignment.
pub(super) fn assignment(bytes: &Bytes) -> Result<NamedPartitions, RecordError> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let mut from = Reader::new(bytes);
    from.i16("version")?;
    topic_partitions(&mut from)
}

fn skip_user_data(from: &mut Reader<'_>) -> Result<(), RecordError> {
    match from.i32("user data length")? {
        length @ 1.. => from.skip(usize::try_from(length).unwrap_or(usize::MAX), "user data"),
        _ => Ok(()),
    }
}

fn topic_partitions(from: &mut Reader<'_>) -> Result<NamedPartitions, RecordError> {
    let count = from.any_count("topic partitions", 6)?;
    let mut topics = Vec::with_capacity(count);
    for _ in 0..count {
        let topic = from.string("topic")?;
        let count = from.any_count("partitions", 4)?;
        let partitions = (0..count).map(|_| from.i32("partition")).collect::<Result<_, _>>()?;
        topics.push((topic, partitions));
    }
    Ok(topics)
}

/// The same by ids, without topics that do not exist.
pub(super) fn by_ids(
    topics: &[(Arc<str>, Vec<i32>)],
    metadata: &dyn Metadata,
) -> Vec<(TopicId, Vec<i32>)> {
    let by_id = |(name, of): &(Arc<str>, Vec<i32>)| Some((metadata.topic(name)?.id, of.clone()));
    topics.iter().filter_map(by_id).collect()
}

/// An assignment in the version of the member's own subscription.
pub(super) fn to_bytes(
    partitions: &Assignment,
    subscription: &Bytes,
    metadata: &dyn Metadata,
) -> Bytes {
    let version = Reader::new(subscription).i16("version").unwrap_or(0).clamp(0, 3);
    let named: Vec<_> =
        partitions.iter().filter_map(|(id, of)| Some((metadata.topic_name(*id)?, of))).collect();
    let mut out = BytesMut::new();
    out.put_i16(version);
    put_count(&mut out, named.len());
    for (name, of) in named {
        // Names of topics have 249 bytes at most.
        out.put_i16(i16::try_from(name.len()).unwrap_or(i16::MAX));
        out.put_slice(name.as_bytes());
        put_count(&mut out, of.len());
        of.iter().for_each(|index| out.put_i32(*index));
    }
    out.put_i32(-1);
    out.freeze()
}

fn put_count(out: &mut BytesMut, count: usize) {
    out.put_i32(i32::try_from(count).unwrap_or(i32::MAX));
}

/// Partitions that somebody got in epoch `epoch`.
pub(super) fn owned_since(partitions: &Assignment, epoch: i32) -> OwnedPartitions {
    let since = |of: &BTreeSet<i32>| of.iter().map(|index| (*index, epoch)).collect();
    partitions.iter().map(|(topic, of)| (*topic, since(of))).collect()
}
