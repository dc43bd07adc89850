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

mod codec;

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
                value.as_ref().map(codec::encode_epoch)
            }
            Self::Member(id, value) => {
                member(key, 5, id)?;
                value.as_ref().map(codec::encode_member)
            }
            Self::TargetEpoch(value) => {
                key.i16(6);
                key.string("group", group)?;
                value.as_ref().map(codec::encode_target_epoch)
            }
            Self::Target(id, value) => {
                member(key, 7, id)?;
                value.as_ref().map(codec::encode_target)
            }
            Self::Current(id, value) => {
                member(key, 8, id)?;
                value.as_ref().map(codec::encode_current)
            }
            Self::Regex(regex, value) => {
                key.i16(16);
                key.string("group", group)?;
                key.string("regular expression", regex)?;
                value.as_ref().map(codec::encode_regex)
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
            3 => Self::Epoch(value.map(codec::decode_epoch).transpose()?),
            5 => {
                Self::Member(key.string("member id")?, value.map(codec::decode_member).transpose()?)
            }
            6 => Self::TargetEpoch(value.map(codec::decode_target_epoch).transpose()?),
            7 => {
                Self::Target(key.string("member id")?, value.map(codec::decode_target).transpose()?)
            }
            8 => Self::Current(
                key.string("member id")?,
                value.map(codec::decode_current).transpose()?,
            ),
            16 => Self::Regex(
                key.string("regular expression")?,
                value.map(codec::decode_regex).transpose()?,
            ),
            _ => return Ok(None),
        }))
    }
}

#[cfg(test)]
mod tests;
