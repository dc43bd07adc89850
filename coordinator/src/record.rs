//! What `__consumer_offsets` holds: versioned keys and values, byte for byte as Kafka 4.3.1.
//!
//! | key version | key | value |
//! | --- | --- | --- |
//! | 0, 1 | group, topic, partition | [`OffsetValue`] v0 to v4; written: key 1, value 4 (1: expires) |
//! | 2 | group | [`GroupValue`] v0 to v4; written: v3 |
//! | 3, 5 to 8, 16 | group, and more | parts of a consumer group: [`consumer`] |
//! | [`FAMILY_KEY_VERSION`] | group | [`FamilyValue`] v0; ours, Kafka's tools skip it |
//!
//! A record without a value is a tombstone. Other key versions are left in the log and not read.
//! Layouts: docs/formats.md. Source: `GroupCoordinatorRecordSerde`, `GroupCoordinatorRecordHelpers`
//! and the message schemas of kafka-group-coordinator 4.3.1.

use std::sync::Arc;

use bytes::Bytes;
use duolog_log_core::ids::TopicId;

use crate::shard::RecordBytes;
use consumer::ConsumerFact;
use reader::Reader;
use writer::Writer;

pub mod consumer;
pub mod delivery;
pub mod half;
pub(crate) mod reader;
pub mod share;
pub mod timer;
pub mod transaction;
mod writer;

/// Key version of [`Record::Family`]: "DL", far from Kafka's own, which count up from 0.
pub const FAMILY_KEY_VERSION: i16 = 0x444C;

/// A durable fact about a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A committed position, or that there is none any more.
    Offset {
        /// The group.
        group: Arc<str>,
        /// Stored name of the topic.
        topic: Arc<str>,
        /// 0-based.
        partition: i32,
        /// `None`: forgotten.
        value: Option<OffsetValue>,
    },
    /// A classic group's generation.
    Group {
        /// The group.
        group: Arc<str>,
        /// `None`: no such group any more.
        value: Option<GroupValue>,
    },
    /// A part of a consumer group (KIP-848).
    Consumer {
        /// The group.
        group: Arc<str>,
        /// Which part, and what of it.
        fact: ConsumerFact,
    },
    /// The family that a group belongs to, if not Kafka's.
    Family {
        /// The group.
        group: Arc<str>,
        /// `None`: Kafka's again.
        value: Option<FamilyValue>,
    },
}

/// A committed position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetValue {
    /// Next offset to read.
    pub offset: i64,
    /// Epoch of the last record read, −1 if not told (KIP-320). Not kept beside `expire_ms`.
    pub leader_epoch: i32,
    /// The client's own words.
    pub metadata: Arc<str>,
    /// When it was committed, milliseconds since 1970.
    pub commit_ms: i64,
    /// When it goes, milliseconds since 1970, if the commit asked for a retention time.
    pub expire_ms: Option<i64>,
    /// The topic's id, zero if the commit named the topic only (KIP-516). Not kept beside
    /// `expire_ms`.
    pub topic_id: TopicId,
}

/// A classic group at the end of a rebalance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupValue {
    /// `consumer`, `connect`…; empty for none.
    pub protocol_type: Arc<str>,
    /// Counts rebalances.
    pub generation: i32,
    /// The protocol that the members agreed on; none in an empty group.
    pub protocol: Option<Arc<str>>,
    /// Member id of the leader.
    pub leader: Option<Arc<str>>,
    /// When the group came into its state, milliseconds since 1970, −1 if not known.
    pub state_ms: i64,
    /// Its members.
    pub members: Vec<MemberValue>,
}

/// One member of [`GroupValue`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberValue {
    /// Its id.
    pub member_id: Arc<str>,
    /// `group.instance.id` (KIP-345).
    pub group_instance_id: Option<Arc<str>>,
    /// Its client id.
    pub client_id: Arc<str>,
    /// Its address, as `/127.0.0.1`.
    pub client_host: Arc<str>,
    /// Milliseconds; −1 in version 0 (the session timeout counts then).
    pub rebalance_timeout_ms: i32,
    /// Milliseconds.
    pub session_timeout_ms: i32,
    /// Its metadata for the chosen protocol.
    pub subscription: Bytes,
    /// What the leader gave it.
    pub assignment: Bytes,
}

/// Families other than Kafka's, which needs no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Push, pull and pop consumers of RocketMQ.
    RocketMq,
}

/// The family of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FamilyValue {
    /// The protocol whose members may use the group.
    pub family: Family,
    /// Since when, milliseconds since 1970.
    pub since_ms: i64,
}

/// A stored record of a known kind that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// A record without a key.
    #[error("record without a key")]
    NoKey,
    /// The bytes end before the field does, or a length is impossible.
    #[error("record ends inside {0}")]
    Truncated(&'static str),
    /// Not UTF-8.
    #[error("{0} is not UTF-8")]
    NotUtf8(&'static str),
    /// A null where the schema has none.
    #[error("{0} is null")]
    Null(&'static str),
    /// A value version that this program does not know.
    #[error("value version {value} of key version {key} is not known")]
    ValueVersion {
        /// Key version.
        key: i16,
        /// Value version.
        value: i16,
    },
    /// A family that this program does not know.
    #[error("group family {0} is not known")]
    UnknownFamily(u8),
    /// A state of a transaction that is never stored.
    #[error("transaction state {0} is not known")]
    UnknownTxnState(i8),
}

/// A string that does not fit the 16-bit length of its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is too long to store")]
pub struct TooLong(pub &'static str);

impl Record {
    /// The group it is about.
    #[must_use]
    pub fn group(&self) -> &Arc<str> {
        match self {
            Self::Offset { group, .. }
            | Self::Group { group, .. }
            | Self::Consumer { group, .. }
            | Self::Family { group, .. } => group,
        }
    }

    /// Key and value as Kafka 4.3.1 writes them.
    /// Errors: a string longer than 32,767 bytes.
    pub fn encode(&self) -> Result<RecordBytes, TooLong> {
        let mut key = Writer::new();
        let value = match self {
            Self::Offset { group, topic, partition, value } => {
                key.i16(1);
                key.string("group", group)?;
                key.string("topic", topic)?;
                key.i32(*partition);
                value.as_ref().map(encode_offset).transpose()?
            }
            Self::Group { group, value } => {
                key.i16(2);
                key.string("group", group)?;
                value.as_ref().map(encode_group).transpose()?
            }
            Self::Consumer { group, fact } => fact.encode(group, &mut key)?,
            Self::Family { group, value } => {
                key.i16(FAMILY_KEY_VERSION);
                key.string("group", group)?;
                value.as_ref().map(encode_family)
            }
        };
        Ok(RecordBytes { key: key.finish(), value })
    }

    /// Reads a stored record; `None` for a key version that is none of ours.
    /// Errors: a known kind that cannot be read. Bytes after the last field are ignored, as Kafka
    /// does.
    pub fn decode(key: &Bytes, value: Option<&Bytes>) -> Result<Option<Self>, RecordError> {
        let mut key = Reader::new(key);
        let version = key.i16("key version")?;
        let record = match version {
            0 | 1 => Self::Offset {
                group: key.string("group")?,
                topic: key.string("topic")?,
                partition: key.i32("partition")?,
                value: value.map(decode_offset).transpose()?,
            },
            2 => Self::Group {
                group: key.string("group")?,
                value: value.map(decode_group).transpose()?,
            },
            FAMILY_KEY_VERSION => Self::Family {
                group: key.string("group")?,
                value: value.map(decode_family).transpose()?,
            },
            3 | 5..=8 | 16 => {
                let group = key.string("group")?;
                let fact = ConsumerFact::decode(version, &mut key, value)?;
                return Ok(fact.map(|fact| Self::Consumer { group, fact }));
            }
            _ => return Ok(None),
        };
        Ok(Some(record))
    }
}

/// Version 1 if the commit asked for an expiry time, which version 4 cannot say; else version 4.
fn encode_offset(value: &OffsetValue) -> Result<Bytes, TooLong> {
    let mut out = Writer::new();
    if let Some(expire_ms) = value.expire_ms {
        out.i16(1);
        out.i64(value.offset);
        out.string("metadata", &value.metadata)?;
        out.i64(value.commit_ms);
        out.i64(expire_ms);
    } else {
        out.i16(4);
        out.i64(value.offset);
        out.i32(value.leader_epoch);
        out.compact_string(&value.metadata);
        out.i64(value.commit_ms);
        if value.topic_id == TopicId::ZERO {
            out.uvarint(0);
        } else {
            out.uvarint(1);
            out.tag(0, &value.topic_id.0);
        }
    }
    Ok(out.finish())
}

fn decode_offset(value: &Bytes) -> Result<OffsetValue, RecordError> {
    let mut from = Reader::new(value);
    let version = from.i16("value version")?;
    if !(0..=4).contains(&version) {
        return Err(RecordError::ValueVersion { key: 1, value: version });
    }
    let offset = from.i64("offset")?;
    let leader_epoch = if version >= 3 { from.i32("leader epoch")? } else { -1 };
    let metadata =
        if version >= 4 { from.compact_string("metadata")? } else { from.string("metadata")? };
    let commit_ms = from.i64("commit timestamp")?;
    let expire_ms = match version {
        1 => Some(from.i64("expire timestamp")?).filter(|&at| at != -1),
        _ => None,
    };
    let mut topic_id = TopicId::ZERO;
    if version >= 4 {
        from.tags(|tag, bytes| {
            if let (0, Ok(id)) = (tag, <[u8; 16]>::try_from(bytes)) {
                topic_id = TopicId(id);
            }
        })?;
    }
    Ok(OffsetValue { offset, leader_epoch, metadata, commit_ms, expire_ms, topic_id })
}

fn encode_group(value: &GroupValue) -> Result<Bytes, TooLong> {
    let mut out = Writer::new();
    out.i16(3);
    out.string("protocol type", &value.protocol_type)?;
    out.i32(value.generation);
    out.nullable_string("protocol", value.protocol.as_deref())?;
    out.nullable_string("leader", value.leader.as_deref())?;
    out.i64(value.state_ms);
    out.length(value.members.len());
    for member in &value.members {
        out.string("member id", &member.member_id)?;
        out.nullable_string("group instance id", member.group_instance_id.as_deref())?;
        out.string("client id", &member.client_id)?;
        out.string("client host", &member.client_host)?;
        out.i32(member.rebalance_timeout_ms);
        out.i32(member.session_timeout_ms);
        out.bytes(&member.subscription);
        out.bytes(&member.assignment);
    }
    Ok(out.finish())
}

fn decode_group(value: &Bytes) -> Result<GroupValue, RecordError> {
    let mut from = Reader::new(value);
    let version = from.i16("value version")?;
    if !(0..=4).contains(&version) {
        return Err(RecordError::ValueVersion { key: 2, value: version });
    }
    from.flexible = version >= 4;
    let protocol_type = from.any_string("protocol type")?;
    let generation = from.i32("generation")?;
    let protocol = from.any_nullable_string("protocol")?;
    let leader = from.any_nullable_string("leader")?;
    let state_ms = if version >= 2 { from.i64("state timestamp")? } else { -1 };
    let count = from.any_count("members", MEMBER_BYTES_MIN)?;
    let mut members = Vec::with_capacity(count);
    for _ in 0..count {
        members.push(decode_member(&mut from, version)?);
    }
    from.any_tags()?;
    Ok(GroupValue { protocol_type, generation, protocol, leader, state_ms, members })
}

/// Every field of a member empty, in the shortest version.
const MEMBER_BYTES_MIN: usize = 15;

fn decode_member(from: &mut Reader<'_>, version: i16) -> Result<MemberValue, RecordError> {
    let member = MemberValue {
        member_id: from.any_string("member id")?,
        group_instance_id: match version {
            3.. => from.any_nullable_string("group instance id")?,
            _ => None,
        },
        client_id: from.any_string("client id")?,
        client_host: from.any_string("client host")?,
        rebalance_timeout_ms: if version >= 1 { from.i32("rebalance timeout")? } else { -1 },
        session_timeout_ms: from.i32("session timeout")?,
        subscription: from.any_bytes("subscription")?,
        assignment: from.any_bytes("assignment")?,
    };
    from.any_tags()?;
    Ok(member)
}

fn encode_family(value: &FamilyValue) -> Bytes {
    let mut out = Writer::new();
    out.i16(0);
    out.u8(match value.family {
        Family::RocketMq => 1,
    });
    out.i64(value.since_ms);
    out.finish()
}

fn decode_family(value: &Bytes) -> Result<FamilyValue, RecordError> {
    let mut from = Reader::new(value);
    let version = from.i16("value version")?;
    if version != 0 {
        return Err(RecordError::ValueVersion { key: FAMILY_KEY_VERSION, value: version });
    }
    let family = match from.u8("family")? {
        1 => Family::RocketMq,
        other => return Err(RecordError::UnknownFamily(other)),
    };
    Ok(FamilyValue { family, since_ms: from.i64("since")? })
}

#[cfg(test)]
mod tests;
