//! The header of a record batch.
//!
//! Layout, big endian (KIP-98; DefaultRecordBatch):
//!
//! | at | bytes | field |
//! |---|---|---|
//! | 0 | 8 | base offset; outside the CRC |
//! | 8 | 4 | length of all that follows this field |
//! | 12 | 4 | partition leader epoch; outside the CRC |
//! | 16 | 1 | magic: 2 |
//! | 17 | 4 | CRC-32C of all that follows this field |
//! | 21 | 2 | attributes, see [`Attributes`] |
//! | 23 | 4 | offset of the last record less the base offset |
//! | 27 | 8 | base timestamp, or the delete horizon of a compacted batch |
//! | 35 | 8 | greatest timestamp |
//! | 43 | 8 | producer id, or -1 |
//! | 51 | 2 | producer epoch, or -1 |
//! | 53 | 4 | sequence of the first record, or -1 |
//! | 57 | 4 | record count |
//! | 61 | | records, compressed as one block |

use crate::ids::{LeaderEpoch, ProducerEpoch, ProducerId};
use crate::record::compression::Compression;
use crate::record::error::RecordError;

/// The bytes before the records.
pub const HEADER_BYTES: usize = 61;
/// Base offset and length: what the length field does not count.
pub const LOG_OVERHEAD_BYTES: usize = 12;
/// The only record format that is stored; older clients are converted by nobody (Kafka 4).
pub const MAGIC: i8 = 2;
/// A record without a time.
pub const NO_TIMESTAMP: i64 = -1;
/// A batch without idempotence.
pub const NO_SEQUENCE: i32 = -1;

pub(super) const LENGTH_MIN: i32 = (HEADER_BYTES - LOG_OVERHEAD_BYTES) as i32;
pub(super) const LEADER_EPOCH_AT: usize = 12;
pub(in crate::record) const CRC_AT: usize = 17;
pub(in crate::record) const ATTRIBUTES_AT: usize = 21;
pub(super) const MAX_TIMESTAMP_AT: usize = 35;

/// Who gave the records their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TimestampType {
    /// The producer, record by record.
    #[default]
    CreateTime,
    /// The log on append: every record of the batch has the batch's greatest timestamp.
    LogAppendTime,
}

/// Bits of the batch: 0-2 compression, 3 timestamp type, 4 transactional, 5 control,
/// 6 delete horizon; the rest is unused and kept as it came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attributes(pub i16);

impl Attributes {
    const COMPRESSION: i16 = 0x07;
    const TIMESTAMP_TYPE: i16 = 0x08;
    const TRANSACTIONAL: i16 = 0x10;
    const CONTROL: i16 = 0x20;
    const DELETE_HORIZON: i16 = 0x40;

    /// Errors: `UnsupportedCompression` for bits that name no codec.
    pub fn compression(self) -> Result<Compression, RecordError> {
        Compression::from_id((self.0 & Self::COMPRESSION) as u8)
    }

    #[must_use]
    pub const fn timestamp_type(self) -> TimestampType {
        if self.0 & Self::TIMESTAMP_TYPE == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    #[must_use]
    pub const fn is_transactional(self) -> bool {
        self.0 & Self::TRANSACTIONAL != 0
    }

    #[must_use]
    pub const fn is_control(self) -> bool {
        self.0 & Self::CONTROL != 0
    }

    #[must_use]
    pub const fn has_delete_horizon(self) -> bool {
        self.0 & Self::DELETE_HORIZON != 0
    }

    #[must_use]
    pub const fn with_compression(self, compression: Compression) -> Self {
        Self((self.0 & !Self::COMPRESSION) | compression.id() as i16)
    }

    #[must_use]
    pub const fn with_timestamp_type(self, timestamp_type: TimestampType) -> Self {
        match timestamp_type {
            TimestampType::CreateTime => Self(self.0 & !Self::TIMESTAMP_TYPE),
            TimestampType::LogAppendTime => Self(self.0 | Self::TIMESTAMP_TYPE),
        }
    }

    #[must_use]
    pub const fn transactional(self) -> Self {
        Self(self.0 | Self::TRANSACTIONAL)
    }

    #[must_use]
    pub const fn control(self) -> Self {
        Self(self.0 | Self::CONTROL)
    }

    #[must_use]
    pub const fn delete_horizon(self) -> Self {
        Self(self.0 | Self::DELETE_HORIZON)
    }
}

/// The fields before the records, as stored: parsing checks length and magic, nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    pub base_offset: i64,
    /// Bytes after the length field: at least 49.
    pub batch_length: i32,
    pub partition_leader_epoch: LeaderEpoch,
    pub crc: u32,
    pub attributes: Attributes,
    pub last_offset_delta: i32,
    pub base_timestamp: i64,
    pub max_timestamp: i64,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub base_sequence: i32,
    pub record_count: i32,
}

impl BatchHeader {
    /// Reads the first [`HEADER_BYTES`] of `bytes`; the records need not be there.
    /// Errors: `Truncated`, `InvalidLength`, `UnsupportedMagic`, with position 0.
    pub fn parse(bytes: &[u8]) -> Result<Self, RecordError> {
        Self::parse_at(bytes, 0)
    }

    /// As [`Self::parse`]; errors name `position`.
    pub(super) fn parse_at(bytes: &[u8], position: usize) -> Result<Self, RecordError> {
        let truncated =
            || RecordError::Truncated { position, expected: HEADER_BYTES, actual: bytes.len() };
        let mut fields = Fields(bytes);
        let base_offset = i64::from_be_bytes(fields.array().ok_or_else(truncated)?);
        let batch_length = i32::from_be_bytes(fields.array().ok_or_else(truncated)?);
        if batch_length < LENGTH_MIN {
            return Err(RecordError::InvalidLength {
                position,
                length: batch_length,
                minimum: LENGTH_MIN,
            });
        }
        let partition_leader_epoch = i32::from_be_bytes(fields.array().ok_or_else(truncated)?);
        let [magic] = fields.array().ok_or_else(truncated)?;
        if magic as i8 != MAGIC {
            return Err(RecordError::UnsupportedMagic { position, magic: magic as i8 });
        }
        Ok(Self {
            base_offset,
            batch_length,
            partition_leader_epoch: LeaderEpoch(partition_leader_epoch),
            crc: u32::from_be_bytes(fields.array().ok_or_else(truncated)?),
            attributes: Attributes(i16::from_be_bytes(fields.array().ok_or_else(truncated)?)),
            last_offset_delta: i32::from_be_bytes(fields.array().ok_or_else(truncated)?),
            base_timestamp: i64::from_be_bytes(fields.array().ok_or_else(truncated)?),
            max_timestamp: i64::from_be_bytes(fields.array().ok_or_else(truncated)?),
            producer_id: ProducerId(i64::from_be_bytes(fields.array().ok_or_else(truncated)?)),
            producer_epoch: ProducerEpoch(i16::from_be_bytes(
                fields.array().ok_or_else(truncated)?,
            )),
            base_sequence: i32::from_be_bytes(fields.array().ok_or_else(truncated)?),
            record_count: i32::from_be_bytes(fields.array().ok_or_else(truncated)?),
        })
    }

    /// The header as stored.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let mut rest = bytes.as_mut_slice();
        let mut put = |field: &[u8]| {
            let (head, tail) = std::mem::take(&mut rest).split_at_mut(field.len());
            head.copy_from_slice(field);
            rest = tail;
        };
        put(&self.base_offset.to_be_bytes());
        put(&self.batch_length.to_be_bytes());
        put(&self.partition_leader_epoch.0.to_be_bytes());
        put(&MAGIC.to_be_bytes());
        put(&self.crc.to_be_bytes());
        put(&self.attributes.0.to_be_bytes());
        put(&self.last_offset_delta.to_be_bytes());
        put(&self.base_timestamp.to_be_bytes());
        put(&self.max_timestamp.to_be_bytes());
        put(&self.producer_id.0.to_be_bytes());
        put(&self.producer_epoch.0.to_be_bytes());
        put(&self.base_sequence.to_be_bytes());
        put(&self.record_count.to_be_bytes());
        bytes
    }

    /// A batch of the same offsets, producer and sequences of which no record is left, as compaction
    /// keeps it for what its header says. Source: DefaultRecordBatch.writeEmptyHeader.
    #[must_use]
    pub fn emptied(&self) -> [u8; HEADER_BYTES] {
        let kept = Attributes::TIMESTAMP_TYPE | Attributes::TRANSACTIONAL | Attributes::CONTROL;
        let mut header = Self {
            batch_length: LENGTH_MIN,
            crc: 0,
            attributes: Attributes(self.attributes.0 & kept),
            base_timestamp: NO_TIMESTAMP,
            record_count: 0,
            ..*self
        };
        header.crc = crc32c::crc32c(header.encode().get(ATTRIBUTES_AT..).unwrap_or_default());
        header.encode()
    }

    /// The offset of the last record the batch was written with: inclusive. Compaction may have
    /// removed that record.
    #[must_use]
    pub const fn last_offset(&self) -> i64 {
        self.base_offset.wrapping_add(self.last_offset_delta as i64)
    }

    /// The offset that follows the batch.
    #[must_use]
    pub const fn next_offset(&self) -> i64 {
        self.last_offset().wrapping_add(1)
    }

    /// Header and records together.
    #[must_use]
    pub const fn size_in_bytes(&self) -> usize {
        // At least 49, checked when it was read.
        LOG_OVERHEAD_BYTES + self.batch_length as usize
    }

    /// Errors: `UnsupportedCompression` for bits that name no codec.
    pub fn compression(&self) -> Result<Compression, RecordError> {
        self.attributes.compression()
    }

    #[must_use]
    pub const fn timestamp_type(&self) -> TimestampType {
        self.attributes.timestamp_type()
    }

    #[must_use]
    pub const fn is_transactional(&self) -> bool {
        self.attributes.is_transactional()
    }

    #[must_use]
    pub const fn is_control(&self) -> bool {
        self.attributes.is_control()
    }

    #[must_use]
    pub const fn has_producer_id(&self) -> bool {
        self.producer_id.0 > ProducerId::NONE.0
    }

    /// When tombstones and markers of this batch may go, in ms; None before its first compaction
    /// (KIP-534).
    #[must_use]
    pub const fn delete_horizon_ms(&self) -> Option<i64> {
        if self.attributes.has_delete_horizon() { Some(self.base_timestamp) } else { None }
    }

    /// The sequence of the last record: inclusive; [`NO_SEQUENCE`] without idempotence. Sequences
    /// start again at 0 after `i32::MAX`.
    #[must_use]
    pub const fn last_sequence(&self) -> i32 {
        sequence_plus(self.base_sequence, self.last_offset_delta)
    }
}

/// The sequence `delta` records after `base`: 0 follows `i32::MAX`; [`NO_SEQUENCE`] stays.
#[must_use]
pub const fn sequence_plus(base: i32, delta: i32) -> i32 {
    if base < 0 {
        return NO_SEQUENCE;
    }
    ((base as i64 + delta as i64).rem_euclid(1 << 31)) as i32
}

struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk()?;
        self.0 = tail;
        Some(*head)
    }
}
