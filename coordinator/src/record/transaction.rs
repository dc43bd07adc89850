//! What `__transaction_state` holds, byte for byte as Kafka 4.3.1.
//!
//! | key version | key | value |
//! | --- | --- | --- |
//! | 0 | transactional id | [`TxnValue`] v0, v1; written: v1 |
//!
//! A record without a value is a tombstone. Layouts: docs/formats.md. Source: `TransactionLog` and
//! the message schemas of kafka-transaction-coordinator 4.3.1.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use duolog_log_core::record::TransactionOutcome;

use super::reader::Reader;
use super::writer::Writer;
use super::{RecordError, TooLong};
use crate::shard::RecordBytes;

/// A transactional id.
pub type TransactionalId = Arc<str>;

/// Partitions by topic; no topic is without.
pub type Partitions = BTreeMap<Arc<str>, BTreeSet<i32>>;

/// A producer id with its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerIdAndEpoch {
    /// The producer id.
    pub id: i64,
    /// Its epoch.
    pub epoch: i16,
}

/// No producer id, as it is stored.
pub const NO_PRODUCER_ID: i64 = -1;

/// Where a transactional id stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TxnState {
    /// No transaction since the producer was initialized.
    Empty,
    /// Partitions were added.
    Ongoing,
    /// It will be committed.
    PrepareCommit,
    /// It will be aborted.
    PrepareAbort,
    /// It is committed everywhere.
    CompleteCommit,
    /// It is aborted everywhere.
    CompleteAbort,
}

impl TxnState {
    const ALL: [Self; 6] = [
        Self::Empty,
        Self::Ongoing,
        Self::PrepareCommit,
        Self::PrepareAbort,
        Self::CompleteCommit,
        Self::CompleteAbort,
    ];

    /// As it is stored.
    const fn id(self) -> i8 {
        self as i8
    }

    fn from_id(id: i8) -> Option<Self> {
        Self::ALL.get(usize::try_from(id).ok()?).copied()
    }

    /// As Kafka's tools print it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Ongoing => "Ongoing",
            Self::PrepareCommit => "PrepareCommit",
            Self::PrepareAbort => "PrepareAbort",
            Self::CompleteCommit => "CompleteCommit",
            Self::CompleteAbort => "CompleteAbort",
        }
    }

    /// Whether Kafka has a state of this name; two of them are never stored.
    #[must_use]
    pub fn is_known(name: &str) -> bool {
        Self::ALL.iter().any(|state| state.name() == name)
            || matches!(name, "Dead" | "PrepareEpochFence")
    }

    /// How the transaction ends, while that is decided and not done.
    #[must_use]
    pub const fn prepared(self) -> Option<TransactionOutcome> {
        match self {
            Self::PrepareCommit => Some(TransactionOutcome::Commit),
            Self::PrepareAbort => Some(TransactionOutcome::Abort),
            Self::Empty | Self::Ongoing | Self::CompleteCommit | Self::CompleteAbort => None,
        }
    }

    /// Whether no transaction is under way.
    #[must_use]
    pub const fn is_idle(self) -> bool {
        matches!(self, Self::Empty | Self::CompleteCommit | Self::CompleteAbort)
    }
}

/// The transaction protocol that a client speaks, as a level of the feature `transaction.version`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TxnVersion(pub i16);

impl TxnVersion {
    /// Clients before 4.0. Kafka stores 0 for them, though level 1 is what they get.
    pub const V1: Self = Self(0);
    /// Every end of a transaction raises the epoch (KIP-890).
    pub const V2: Self = Self(2);

    /// Whether every end of a transaction raises the epoch.
    #[must_use]
    pub const fn bumps_epoch(self) -> bool {
        self.0 >= Self::V2.0
    }
}

/// A transactional id as the log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxnValue {
    /// Producer id and epoch now.
    pub producer: ProducerIdAndEpoch,
    /// The producer id before the last change of this value.
    pub previous_producer_id: i64,
    /// The producer id from the completion on, if the epochs of the present one are used up.
    pub next_producer_id: i64,
    /// How long a transaction may last.
    pub timeout_ms: i32,
    /// Where it stands.
    pub state: TxnState,
    /// What the present transaction has written to.
    pub partitions: Partitions,
    /// When this was written, milliseconds since 1970.
    pub updated_ms: i64,
    /// When the transaction began, milliseconds since 1970; -1 for none.
    pub started_ms: i64,
    /// The protocol of the client that last changed this.
    pub version: TxnVersion,
}

/// A durable fact about a transactional id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The transactional id.
    pub id: TransactionalId,
    /// `None`: forgotten.
    pub value: Option<TxnValue>,
}

impl Record {
    /// Key and value as Kafka 4.3.1 writes them.
    /// Errors: a string longer than 32,767 bytes.
    pub fn encode(&self) -> Result<RecordBytes, TooLong> {
        let mut key = Writer::new();
        key.i16(0);
        key.string("transactional id", &self.id)?;
        Ok(RecordBytes { key: key.finish(), value: self.value.as_ref().map(encode_value) })
    }

    /// Reads a stored record; `None` for a key version that is none of ours.
    /// Errors: a known kind that cannot be read.
    pub fn decode(key: &Bytes, value: Option<&Bytes>) -> Result<Option<Self>, RecordError> {
        let mut key = Reader::new(key);
        if key.i16("key version")? != 0 {
            return Ok(None);
        }
        let id = key.string("transactional id")?;
        Ok(Some(Self { id, value: value.map(decode_value).transpose()? }))
    }
}

fn encode_value(value: &TxnValue) -> Bytes {
    let mut out = Writer::new();
    out.i16(1);
    out.i64(value.producer.id);
    out.i16(value.producer.epoch);
    out.i32(value.timeout_ms);
    out.u8(value.state.id() as u8);
    if value.state == TxnState::Empty {
        // Null, not empty (TransactionLog.valueToBytes).
        out.uvarint(0);
    } else {
        out.uvarint(value.partitions.len() as u64 + 1);
        for (topic, partitions) in &value.partitions {
            out.compact_string(topic);
            out.uvarint(partitions.len() as u64 + 1);
            partitions.iter().for_each(|partition| out.i32(*partition));
            out.uvarint(0);
        }
    }
    out.i64(value.updated_ms);
    out.i64(value.started_ms);
    encode_tags(value, &mut out);
    out.finish()
}

/// Fields that are not at their defaults.
fn encode_tags(value: &TxnValue, out: &mut Writer) {
    let previous =
        (value.previous_producer_id != NO_PRODUCER_ID).then_some(value.previous_producer_id);
    let next = (value.next_producer_id != NO_PRODUCER_ID).then_some(value.next_producer_id);
    let version = (value.version.0 != 0).then_some(value.version.0);
    let count = [previous.is_some(), next.is_some(), version.is_some()];
    out.uvarint(count.into_iter().filter(|is_there| *is_there).count() as u64);
    if let Some(previous) = previous {
        out.tag(0, &previous.to_be_bytes());
    }
    if let Some(next) = next {
        out.tag(1, &next.to_be_bytes());
    }
    if let Some(version) = version {
        out.tag(2, &version.to_be_bytes());
    }
}

/// A topic's name of one byte and no partition, in the shortest version.
const TOPIC_BYTES_MIN: usize = 3;

fn decode_value(value: &Bytes) -> Result<TxnValue, RecordError> {
    let mut from = Reader::new(value);
    let version = from.i16("value version")?;
    if !(0..=1).contains(&version) {
        return Err(RecordError::ValueVersion { key: 0, value: version });
    }
    from.flexible = version >= 1;
    let id = from.i64("producer id")?;
    let epoch = from.i16("producer epoch")?;
    let timeout_ms = from.i32("timeout")?;
    let state = from.u8("state")? as i8;
    let state = TxnState::from_id(state).ok_or(RecordError::UnknownTxnState(state))?;
    let partitions = decode_partitions(&mut from)?;
    let updated_ms = from.i64("last update")?;
    let started_ms = from.i64("start")?;
    let (mut previous, mut next, mut client) = (NO_PRODUCER_ID, NO_PRODUCER_ID, 0);
    if from.flexible {
        from.tags(|tag, bytes| match (tag, bytes.len()) {
            (0, 8) => previous = bytes.try_into().map_or(previous, i64::from_be_bytes),
            (1, 8) => next = bytes.try_into().map_or(next, i64::from_be_bytes),
            (2, 2) => client = bytes.try_into().map_or(client, i16::from_be_bytes),
            _ => {}
        })?;
    }
    Ok(TxnValue {
        producer: ProducerIdAndEpoch { id, epoch },
        previous_producer_id: previous,
        next_producer_id: next,
        timeout_ms,
        state,
        partitions,
        updated_ms,
        started_ms,
        version: TxnVersion(client),
    })
}

fn decode_partitions(from: &mut Reader<'_>) -> Result<Partitions, RecordError> {
    let mut partitions = Partitions::new();
    let topics = from.any_nullable_count("partitions", TOPIC_BYTES_MIN)?;
    for _ in 0..topics.unwrap_or_default() {
        let topic = from.any_string("topic")?;
        let count = from.any_count("partition ids", size_of::<i32>())?;
        let mut ids = BTreeSet::new();
        for _ in 0..count {
            ids.insert(from.i32("partition id")?);
        }
        from.any_tags()?;
        if !ids.is_empty() {
            partitions.entry(topic).or_default().append(&mut ids);
        }
    }
    Ok(partitions)
}

#[cfg(test)]
mod tests;
