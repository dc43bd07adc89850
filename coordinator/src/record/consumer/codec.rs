//! How the parts of a consumer group are written and read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use duolog_log_core::ids::TopicId;

use super::{
    Assignment, ClassicMetadata, CurrentAssignment, EpochValue, MemberMetadata, MemberState,
    OwnedPartitions, ResolvedRegex, StoredProtocol, TargetEpochValue,
};
use crate::record::RecordError;
use crate::record::reader::Reader;
use crate::record::writer::Writer;

/// A value of version 0.
fn begin() -> Writer {
    let mut out = Writer::new();
    out.i16(0);
    out
}

/// A reader behind the value's version, which must be 0.
fn open<'a>((key, value): (i16, &'a Bytes)) -> Result<Reader<'a>, RecordError> {
    let mut from = Reader::new(value);
    let version = from.i16("value version")?;
    if version != 0 {
        return Err(RecordError::ValueVersion { key, value: version });
    }
    from.flexible = true;
    Ok(from)
}

/// One tagged 64-bit number, left out at 0.
fn tagged_i64(out: &mut Writer, value: i64) {
    if value == 0 {
        out.uvarint(0);
    } else {
        out.uvarint(1);
        out.tag(0, &value.to_be_bytes());
    }
}

fn read_tagged_i64(from: &mut Reader<'_>) -> Result<i64, RecordError> {
    let mut value = 0;
    from.tags(|tag, bytes| {
        if let (0, Ok(bytes)) = (tag, <[u8; 8]>::try_from(bytes)) {
            value = i64::from_be_bytes(bytes);
        }
    })?;
    Ok(value)
}

pub(super) fn encode_epoch(value: &EpochValue) -> Bytes {
    let mut out = begin();
    out.i32(value.epoch);
    tagged_i64(&mut out, value.metadata_hash);
    out.finish()
}

pub(super) fn decode_epoch(value: (i16, &Bytes)) -> Result<EpochValue, RecordError> {
    let mut from = open(value)?;
    let epoch = from.i32("epoch")?;
    Ok(EpochValue { epoch, metadata_hash: read_tagged_i64(&mut from)? })
}

pub(super) fn encode_target_epoch(value: &TargetEpochValue) -> Bytes {
    let mut out = begin();
    out.i32(value.epoch);
    tagged_i64(&mut out, value.assigned_ms);
    out.finish()
}

pub(super) fn decode_target_epoch(value: (i16, &Bytes)) -> Result<TargetEpochValue, RecordError> {
    let mut from = open(value)?;
    let epoch = from.i32("assignment epoch")?;
    Ok(TargetEpochValue { epoch, assigned_ms: read_tagged_i64(&mut from)? })
}

pub(super) fn encode_member(value: &MemberMetadata) -> Bytes {
    let mut out = begin();
    out.compact_nullable_string(value.instance.as_deref());
    out.compact_nullable_string(value.rack.as_deref());
    out.compact_string(&value.client_id);
    out.compact_string(&value.client_host);
    out.compact_count(value.topics.len());
    value.topics.iter().for_each(|topic| out.compact_string(topic));
    out.compact_nullable_string(Some(&value.regex));
    out.i32(value.rebalance_timeout_ms);
    out.compact_nullable_string(value.assignor.as_deref());
    match &value.classic {
        None => out.uvarint(0),
        Some(classic) => {
            out.uvarint(1);
            out.tag(0, &encode_classic(classic));
        }
    }
    out.finish()
}

/// A struct that may be null is written behind a byte that says it is not.
fn encode_classic(classic: &ClassicMetadata) -> Bytes {
    let mut out = Writer::new();
    out.u8(1);
    out.i32(classic.session_timeout_ms);
    out.compact_count(classic.protocols.len());
    for protocol in &classic.protocols {
        out.compact_string(&protocol.name);
        out.compact_bytes(&protocol.metadata);
        out.uvarint(0);
    }
    out.uvarint(0);
    out.finish()
}

pub(super) fn decode_member(value: (i16, &Bytes)) -> Result<MemberMetadata, RecordError> {
    let mut from = open(value)?;
    let instance = from.any_nullable_string("instance id")?;
    let rack = from.any_nullable_string("rack id")?;
    let client_id = from.any_string("client id")?;
    let client_host = from.any_string("client host")?;
    let topics = read_strings(&mut from, "subscribed topic names")?;
    let regex = from.any_nullable_string("subscribed topic regex")?;
    let rebalance_timeout_ms = from.i32("rebalance timeout")?;
    let assignor = from.any_nullable_string("server assignor")?;
    let mut classic = Ok(None);
    from.tags(|tag, bytes| {
        if tag == 0 {
            classic = decode_classic(bytes);
        }
    })?;
    Ok(MemberMetadata {
        instance,
        rack,
        client_id,
        client_host,
        topics,
        regex: regex.unwrap_or_else(|| Arc::from("")),
        rebalance_timeout_ms,
        assignor,
        classic: classic?,
    })
}

fn decode_classic(bytes: &[u8]) -> Result<Option<ClassicMetadata>, RecordError> {
    let mut from = Reader::new(bytes);
    from.flexible = true;
    if from.u8("classic member metadata")? != 1 {
        return Ok(None);
    }
    let session_timeout_ms = from.i32("session timeout")?;
    let count = from.any_count("supported protocols", 3)?;
    let mut protocols = Vec::with_capacity(count);
    for _ in 0..count {
        let name = from.any_string("protocol name")?;
        let metadata = from.any_bytes("protocol metadata")?;
        from.any_tags()?;
        protocols.push(StoredProtocol { name, metadata });
    }
    // One without protocols could not be served as a classic member.
    let metadata = ClassicMetadata { session_timeout_ms, protocols };
    Ok(Some(metadata).filter(|classic| !classic.protocols.is_empty()))
}

fn read_strings(
    from: &mut Reader<'_>,
    field: &'static str,
) -> Result<BTreeSet<Arc<str>>, RecordError> {
    let count = from.any_count(field, 1)?;
    (0..count).map(|_| from.any_string(field)).collect()
}

pub(super) fn encode_target(value: &Assignment) -> Bytes {
    let mut out = begin();
    out.compact_count(value.len());
    for (topic, partitions) in value {
        out.uuid(topic.0);
        out.compact_count(partitions.len());
        partitions.iter().for_each(|partition| out.i32(*partition));
        out.uvarint(0);
    }
    out.uvarint(0);
    out.finish()
}

pub(super) fn decode_target(value: (i16, &Bytes)) -> Result<Assignment, RecordError> {
    let mut from = open(value)?;
    let mut target = Assignment::new();
    for _ in 0..from.any_count("topic partitions", 18)? {
        let topic = TopicId(from.uuid("topic id")?);
        let count = from.any_count("partitions", 4)?;
        let partitions: BTreeSet<i32> =
            (0..count).map(|_| from.i32("partition")).collect::<Result<_, _>>()?;
        from.any_tags()?;
        if !partitions.is_empty() {
            target.insert(topic, partitions);
        }
    }
    Ok(target)
}

pub(super) fn encode_current(value: &CurrentAssignment) -> Bytes {
    let mut out = begin();
    out.i32(value.epoch);
    out.i32(value.previous_epoch);
    out.u8(value.state.code());
    encode_owned(&mut out, &value.assigned);
    encode_owned(&mut out, &value.revoking);
    out.uvarint(0);
    out.finish()
}

fn encode_owned(out: &mut Writer, owned: &OwnedPartitions) {
    out.compact_count(owned.len());
    for (topic, partitions) in owned {
        out.uuid(topic.0);
        out.compact_count(partitions.len());
        partitions.keys().for_each(|partition| out.i32(*partition));
        let mut epochs = Writer::new();
        epochs.compact_count(partitions.len());
        partitions.values().for_each(|epoch| epochs.i32(*epoch));
        out.uvarint(1);
        out.tag(0, &epochs.finish());
    }
}

pub(super) fn decode_current(value: (i16, &Bytes)) -> Result<CurrentAssignment, RecordError> {
    let mut from = open(value)?;
    let epoch = from.i32("member epoch")?;
    Ok(CurrentAssignment {
        epoch,
        previous_epoch: from.i32("previous member epoch")?,
        state: MemberState::of(from.u8("state")?),
        assigned: decode_owned(&mut from, epoch)?,
        revoking: decode_owned(&mut from, epoch)?,
    })
}

/// Partitions without an epoch of their own, as Kafka wrote them before 4.3, have the member's.
fn decode_owned(from: &mut Reader<'_>, epoch: i32) -> Result<OwnedPartitions, RecordError> {
    let mut owned = OwnedPartitions::new();
    for _ in 0..from.any_count("topic partitions", 18)? {
        let topic = TopicId(from.uuid("topic id")?);
        let count = from.any_count("partitions", 4)?;
        let partitions: Vec<i32> =
            (0..count).map(|_| from.i32("partition")).collect::<Result<_, _>>()?;
        let mut epochs = Ok(Vec::new());
        from.tags(|tag, bytes| {
            if tag == 0 {
                epochs = decode_epochs(bytes);
            }
        })?;
        let epochs = epochs?.into_iter().map(Some).chain(std::iter::repeat(None));
        let with_epochs = partitions.into_iter().zip(epochs);
        let partitions: BTreeMap<i32, i32> =
            with_epochs.map(|(partition, of)| (partition, of.unwrap_or(epoch))).collect();
        if !partitions.is_empty() {
            owned.insert(topic, partitions);
        }
    }
    Ok(owned)
}

fn decode_epochs(bytes: &[u8]) -> Result<Vec<i32>, RecordError> {
    let mut from = Reader::new(bytes);
    from.flexible = true;
    let count = from.any_count("assignment epochs", 4)?;
    (0..count).map(|_| from.i32("assignment epoch")).collect()
}

pub(super) fn encode_regex(value: &ResolvedRegex) -> Bytes {
    let mut out = begin();
    out.compact_count(value.topics.len());
    value.topics.iter().for_each(|topic| out.compact_string(topic));
    out.i64(value.version);
    out.i64(value.resolved_ms);
    out.uvarint(0);
    out.finish()
}

pub(super) fn decode_regex(value: (i16, &Bytes)) -> Result<ResolvedRegex, RecordError> {
    let mut from = open(value)?;
    Ok(ResolvedRegex {
        topics: read_strings(&mut from, "topics")?,
        version: from.i64("version")?,
        resolved_ms: from.i64("timestamp")?,
    })
}
