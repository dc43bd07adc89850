//! Control records: what brokers write between the records of clients.
//!
//! Key, big endian: version i16, type i16. Value of an end-of-transaction marker: version i16,
//! coordinator epoch i32. A higher version may add fields behind these (EndTransactionMarker,
//! ControlRecordType).

use bytes::BytesMut;

use super::batch::NO_SEQUENCE;
use super::builder::{BatchBuilder, BatchKind, BatchParams, NewRecord, ProducerSequence};
use super::error::RecordError;
use super::record::Record;
use crate::ids::{LeaderEpoch, ProducerEpoch, ProducerId};

const KEY_VERSION: i16 = 0;
const MARKER_VERSION: i16 = 0;

/// What a control record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlType {
    /// The producer's transaction is aborted.
    Abort,
    /// The producer's transaction is committed.
    Commit,
    /// A quorum's new leader, in `KRaft` logs.
    LeaderChange,
    SnapshotHeader,
    SnapshotFooter,
    KRaftVersion,
    KRaftVoters,
    /// A type of a later version: readers pass over it.
    Unknown(i16),
}

impl ControlType {
    /// The number in the key.
    #[must_use]
    pub const fn id(self) -> i16 {
        match self {
            Self::Abort => 0,
            Self::Commit => 1,
            Self::LeaderChange => 2,
            Self::SnapshotHeader => 3,
            Self::SnapshotFooter => 4,
            Self::KRaftVersion => 5,
            Self::KRaftVoters => 6,
            Self::Unknown(id) => id,
        }
    }

    #[must_use]
    pub const fn from_id(id: i16) -> Self {
        match id {
            0 => Self::Abort,
            1 => Self::Commit,
            2 => Self::LeaderChange,
            3 => Self::SnapshotHeader,
            4 => Self::SnapshotFooter,
            5 => Self::KRaftVersion,
            6 => Self::KRaftVoters,
            id => Self::Unknown(id),
        }
    }

    /// Reads the key of a control record.
    /// Errors: `InvalidControlRecord`.
    pub fn parse(key: Option<&[u8]>) -> Result<Self, RecordError> {
        let key = key.ok_or(RecordError::InvalidControlRecord("the key is null"))?;
        let &[v0, v1, t0, t1, ..] = key else {
            return Err(RecordError::InvalidControlRecord("the key is shorter than 4 bytes"));
        };
        if i16::from_be_bytes([v0, v1]) < 0 {
            return Err(RecordError::InvalidControlRecord("the key's version is negative"));
        }
        Ok(Self::from_id(i16::from_be_bytes([t0, t1])))
    }

    const fn key(self) -> [u8; 4] {
        let [v0, v1] = KEY_VERSION.to_be_bytes();
        let [t0, t1] = self.id().to_be_bytes();
        [v0, v1, t0, t1]
    }
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionOutcome {
    Commit,
    Abort,
}

/// A marker that ends a producer's transaction in one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndTransactionMarker {
    pub outcome: TransactionOutcome,
    /// Of the coordinator that decided; fences an older one.
    pub coordinator_epoch: i32,
}

impl EndTransactionMarker {
    /// Reads a record of a control batch; None if it is another kind of control record.
    /// Errors: `InvalidControlRecord`.
    pub fn parse(record: &Record<'_>) -> Result<Option<Self>, RecordError> {
        let outcome = match ControlType::parse(record.key)? {
            ControlType::Commit => TransactionOutcome::Commit,
            ControlType::Abort => TransactionOutcome::Abort,
            _ => return Ok(None),
        };
        let value = record.value.ok_or(RecordError::InvalidControlRecord("the value is null"))?;
        let &[v0, v1, e0, e1, e2, e3, ..] = value else {
            return Err(RecordError::InvalidControlRecord("the value is shorter than 6 bytes"));
        };
        if i16::from_be_bytes([v0, v1]) < 0 {
            return Err(RecordError::InvalidControlRecord("the value's version is negative"));
        }
        let coordinator_epoch = i32::from_be_bytes([e0, e1, e2, e3]);
        Ok(Some(Self { outcome, coordinator_epoch }))
    }

    /// The control batch that carries this marker: one record, no sequence.
    /// `timestamp` in ms. Base offset and leader epoch are the log's to give.
    /// Errors: none that this input can cause; see [`BatchBuilder::append`].
    pub fn batch(
        &self,
        producer_id: ProducerId,
        producer_epoch: ProducerEpoch,
        timestamp: i64,
    ) -> Result<BytesMut, RecordError> {
        let control_type = match self.outcome {
            TransactionOutcome::Commit => ControlType::Commit,
            TransactionOutcome::Abort => ControlType::Abort,
        };
        let [v0, v1] = MARKER_VERSION.to_be_bytes();
        let [e0, e1, e2, e3] = self.coordinator_epoch.to_be_bytes();
        let mut builder = BatchBuilder::new(BatchParams {
            leader_epoch: LeaderEpoch::UNKNOWN,
            producer: Some(ProducerSequence {
                id: producer_id,
                epoch: producer_epoch,
                base_sequence: NO_SEQUENCE,
            }),
            kind: BatchKind::TransactionalControl,
            ..BatchParams::default()
        });
        builder.append(&NewRecord {
            timestamp,
            key: Some(&control_type.key()),
            value: Some(&[v0, v1, e0, e1, e2, e3]),
            headers: &[],
        })?;
        builder.finish_uncompressed()
    }
}

#[cfg(test)]
mod tests;
