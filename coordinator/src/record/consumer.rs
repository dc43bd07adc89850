//! Records of consumer groups (KIP-848): what of a group and its members is kept, in parts that
//! change apart from each other.
//!
//! | key version | key | value |
//! | --- | --- | --- |
//! | 3 | group | [`EpochValue`] |
//! | 5 | group, member | [`MemberMetadata`] |
//! | 6 | group | [`TargetEpochValue`] |
//! | 7 | group, member | [`Assignment`]: the target |
//! | 8 | group, member | [`CurrentAssignment`] |
//! | 16 | group, regular expression | [`ResolvedRegex`] |
//!
//! Every value has version 0 with tagged fields. Key version 4 (what was subscribed to, before
//! Kafka 4.1) is not read: the hash in the epoch's record has taken its place (KIP-1101).
//! Source: `ConsumerGroup*` message schemas of kafka-group-coordinator 4.3.1.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use duolog_log_core::ids::TopicId;

use super::reader::Reader;
use super::writer::Writer;
use super::{RecordError, TooLong};

/// Partitions by topic; no topic is empty.
pub type Assignment = BTreeMap<TopicId, BTreeSet<i32>>;

/// Partitions by topic, each with the epoch in which its owner got it (KIP-1251).
pub type OwnedPartitions = BTreeMap<TopicId, BTreeMap<i32, i32>>;

/// One part of a consumer group; no value: it is no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConsumerFact {
    /// The group itself.
    Epoch(Option<EpochValue>),
    /// Who a member is and what it wants.
    Member(Arc<str>, Option<MemberMetadata>),
    /// Which epoch of the group the targets are for.
    TargetEpoch(Option<TargetEpochValue>),
    /// What a member shall have.
    Target(Arc<str>, Option<Assignment>),
    /// What a member has.
    Current(Arc<str>, Option<CurrentAssignment>),
    /// What a regular expression means.
    Regex(Arc<str>, Option<ResolvedRegex>),
}

/// The group's epoch: it grows with every change that calls for another assignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EpochValue {
    /// From 1.
    pub epoch: i32,
    /// Hash of the subscribed topics, 0 for none: another one calls for another assignment.
    pub metadata_hash: i64,
}

/// For which epoch the targets were computed, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TargetEpochValue {
    /// The group's epoch then.
    pub epoch: i32,
    /// Milliseconds since 1970, 0 if not known (KIP-1263).
    pub assigned_ms: i64,
}

/// A protocol of a member that speaks the classic protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredProtocol {
    /// `range`, `cooperative-sticky`…
    pub name: Arc<str>,
    /// A `ConsumerProtocolSubscription`.
    pub metadata: Bytes,
}

/// What only members of the classic protocol have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassicMetadata {
    /// How long it may stay silent.
    pub session_timeout_ms: i32,
    /// In order of its preference; never empty.
    pub protocols: Vec<StoredProtocol>,
}

/// Who a member is and what it wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberMetadata {
    /// `group.instance.id` (KIP-345).
    pub instance: Option<Arc<str>>,
    /// Where it runs.
    pub rack: Option<Arc<str>>,
    /// Its client id.
    pub client_id: Arc<str>,
    /// Its address, as `/127.0.0.1`.
    pub client_host: Arc<str>,
    /// Names of the topics it wants, whether they exist or not.
    pub topics: BTreeSet<Arc<str>>,
    /// Regular expression of the topics it wants besides, empty for none.
    pub regex: Arc<str>,
    /// How long it may take to give up partitions, milliseconds; −1 if never told.
    pub rebalance_timeout_ms: i32,
    /// The assignor that it asks for.
    pub assignor: Option<Arc<str>>,
    /// Of a member that speaks the classic protocol.
    pub classic: Option<ClassicMetadata>,
}

impl Default for MemberMetadata {
    fn default() -> Self {
        Self {
            instance: None,
            rack: None,
            client_id: Arc::from(""),
            client_host: Arc::from(""),
            topics: BTreeSet::new(),
            regex: Arc::from(""),
            rebalance_timeout_ms: -1,
            assignor: None,
            classic: None,
        }
    }
}

/// How far a member is on its way to its target (`MemberState`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemberState {
    /// It has its target of the epoch it is in.
    #[default]
    Stable,
    /// It has to give up partitions before it goes on.
    UnrevokedPartitions,
    /// Others have not given up yet what it shall have.
    UnreleasedPartitions,
    /// Of a later program: the member must join anew.
    Unknown,
}

impl MemberState {
    const fn code(self) -> u8 {
        match self {
            Self::Stable => 0,
            Self::UnrevokedPartitions => 1,
            Self::UnreleasedPartitions => 2,
            Self::Unknown => 127,
        }
    }

    const fn of(code: u8) -> Self {
        match code {
            0 => Self::Stable,
            1 => Self::UnrevokedPartitions,
            2 => Self::UnreleasedPartitions,
            _ => Self::Unknown,
        }
    }
}

/// What a member has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrentAssignment {
    /// The epoch that its next heartbeat must name; −2 for a static member that is away.
    pub epoch: i32,
    /// The epoch before, which it may name still if an answer was lost; −1 for none.
    pub previous_epoch: i32,
    /// How far it is.
    pub state: MemberState,
    /// What it may consume.
    pub assigned: OwnedPartitions,
    /// What it has to give up.
    pub revoking: OwnedPartitions,
}

impl Default for CurrentAssignment {
    fn default() -> Self {
        Self {
            epoch: 0,
            previous_epoch: -1,
            state: MemberState::Stable,
            assigned: OwnedPartitions::new(),
            revoking: OwnedPartitions::new(),
        }
    }
}

/// The topics that a regular expression means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvedRegex {
    /// Names of existing topics.
    pub topics: BTreeSet<Arc<str>>,
    /// Which state of the metadata was looked at; later ones are greater while a node runs.
    pub version: i64,
    /// When, milliseconds since 1970.
    pub resolved_ms: i64,
}

impl ConsumerFact {
    /// Whether it says that something is no more.
    #[must_use]
    pub fn is_tombstone(&self) -> bool {
        match self {
            Self::Epoch(value) => value.is_none(),
            Self::Member(_, value) => value.is_none(),
            Self::TargetEpoch(value) => value.is_none(),
            Self::Target(_, value) => value.is_none(),
            Self::Current(_, value) => value.is_none(),
            Self::Regex(_, value) => value.is_none(),
        }
    }

    /// Writes the rest of the key after its version, and the value; gives the key version.
    pub(super) fn encode(&self, group: &str, key: &mut Writer) -> Result<Option<Bytes>, TooLong> {
        let member = |key: &mut Writer, version, member: &str| {
            key.i16(version);
            key.string("group", group)?;
            key.string("member id", member)
        };
        Ok(match self {
            Self::Epoch(value) => {
                key.i16(3);
                key.string("group", group)?;
                value.as_ref().map(encode_epoch)
            }
            Self::Member(id, value) => {
                member(key, 5, id)?;
                value.as_ref().map(encode_member)
            }
            Self::TargetEpoch(value) => {
                key.i16(6);
                key.string("group", group)?;
                value.as_ref().map(encode_target_epoch)
            }
            Self::Target(id, value) => {
                member(key, 7, id)?;
                value.as_ref().map(encode_target)
            }
            Self::Current(id, value) => {
                member(key, 8, id)?;
                value.as_ref().map(encode_current)
            }
            Self::Regex(regex, value) => {
                key.i16(16);
                key.string("group", group)?;
                key.string("regular expression", regex)?;
                value.as_ref().map(encode_regex)
            }
        })
    }

    /// Reads a record of one of these key versions, `key` standing behind the group; `None` for
    /// another version.
    pub(super) fn decode(
        version: i16,
        key: &mut Reader<'_>,
        value: Option<&Bytes>,
    ) -> Result<Option<Self>, RecordError> {
        let value = value.map(|value| (version, value));
        Ok(Some(match version {
            3 => Self::Epoch(value.map(decode_epoch).transpose()?),
            5 => Self::Member(key.string("member id")?, value.map(decode_member).transpose()?),
            6 => Self::TargetEpoch(value.map(decode_target_epoch).transpose()?),
            7 => Self::Target(key.string("member id")?, value.map(decode_target).transpose()?),
            8 => Self::Current(key.string("member id")?, value.map(decode_current).transpose()?),
            16 => {
                Self::Regex(key.string("regular expression")?, value.map(decode_regex).transpose()?)
            }
            _ => return Ok(None),
        }))
    }
}

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

fn encode_epoch(value: &EpochValue) -> Bytes {
    let mut out = begin();
    out.i32(value.epoch);
    tagged_i64(&mut out, value.metadata_hash);
    out.finish()
}

fn decode_epoch(value: (i16, &Bytes)) -> Result<EpochValue, RecordError> {
    let mut from = open(value)?;
    let epoch = from.i32("epoch")?;
    Ok(EpochValue { epoch, metadata_hash: read_tagged_i64(&mut from)? })
}

fn encode_target_epoch(value: &TargetEpochValue) -> Bytes {
    let mut out = begin();
    out.i32(value.epoch);
    tagged_i64(&mut out, value.assigned_ms);
    out.finish()
}

fn decode_target_epoch(value: (i16, &Bytes)) -> Result<TargetEpochValue, RecordError> {
    let mut from = open(value)?;
    let epoch = from.i32("assignment epoch")?;
    Ok(TargetEpochValue { epoch, assigned_ms: read_tagged_i64(&mut from)? })
}

fn encode_member(value: &MemberMetadata) -> Bytes {
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

fn decode_member(value: (i16, &Bytes)) -> Result<MemberMetadata, RecordError> {
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

fn encode_target(value: &Assignment) -> Bytes {
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

fn decode_target(value: (i16, &Bytes)) -> Result<Assignment, RecordError> {
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

fn encode_current(value: &CurrentAssignment) -> Bytes {
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

fn decode_current(value: (i16, &Bytes)) -> Result<CurrentAssignment, RecordError> {
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

fn encode_regex(value: &ResolvedRegex) -> Bytes {
    let mut out = begin();
    out.compact_count(value.topics.len());
    value.topics.iter().for_each(|topic| out.compact_string(topic));
    out.i64(value.version);
    out.i64(value.resolved_ms);
    out.uvarint(0);
    out.finish()
}

fn decode_regex(value: (i16, &Bytes)) -> Result<ResolvedRegex, RecordError> {
    let mut from = open(value)?;
    Ok(ResolvedRegex {
        topics: read_strings(&mut from, "topics")?,
        version: from.i64("version")?,
        resolved_ms: from.i64("timestamp")?,
    })
}

#[cfg(test)]
mod tests;
