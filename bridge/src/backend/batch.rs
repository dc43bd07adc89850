//! A batch decoded once and shared by all that read it.

use bytes::Bytes;

/// One record inside a [`DecodedBatch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodedRecord {
    /// The record's offset.
    pub offset: i64,
    /// CreateTime, or the append time where the topic says so; milliseconds since 1970.
    pub timestamp_ms: i64,
    /// Java's `String.hashCode` of the record's tag, 0 without a tag.
    pub tag_hash: i32,
    /// Where the record's payload begins in the batch's data; inclusive.
    pub start: u32,
    /// Where it ends; exclusive.
    pub end: u32,
}

/// The records of one batch, decompressed. Offsets rise, not always by one (compaction).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedBatch {
    base_offset: i64,
    next_offset: i64,
    append_time_ms: i64,
    data: Bytes,
    records: Vec<DecodedRecord>,
}

/// What is wrong with the parts of a [`DecodedBatch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchFault {
    /// A payload is not inside the data.
    #[error("record {index} lies outside the data of its batch")]
    OutsideData {
        /// Which record, from 0.
        index: usize,
    },
    /// Offsets do not rise, or leave the batch's range.
    #[error("offset of record {index} does not follow the one before it inside the batch's range")]
    OffsetOrder {
        /// Which record, from 0.
        index: usize,
    },
}

impl DecodedBatch {
    /// Joins the parts of a batch that covers `base_offset..next_offset`. `data` holds each
    /// record's payload as [`super::NewRecord::payload`] describes it, with anything between the
    /// payloads.
    /// Errors: [`BatchFault`].
    pub fn new(
        base_offset: i64,
        next_offset: i64,
        append_time_ms: i64,
        data: Bytes,
        records: Vec<DecodedRecord>,
    ) -> Result<Self, BatchFault> {
        let mut lowest = base_offset;
        for (index, record) in records.iter().enumerate() {
            if record.offset < lowest || record.offset >= next_offset {
                return Err(BatchFault::OffsetOrder { index });
            }
            if data.get(record.start as usize..record.end as usize).is_none() {
                return Err(BatchFault::OutsideData { index });
            }
            lowest = record.offset.saturating_add(1);
        }
        Ok(Self { base_offset, next_offset, append_time_ms, data, records })
    }

    /// First offset the batch covers.
    #[must_use]
    pub fn base_offset(&self) -> i64 {
        self.base_offset
    }

    /// One past the last offset the batch covers.
    #[must_use]
    pub fn next_offset(&self) -> i64 {
        self.next_offset
    }

    /// When the batch was appended, milliseconds since 1970.
    #[must_use]
    pub fn append_time_ms(&self) -> i64 {
        self.append_time_ms
    }

    /// The records in order of their offsets.
    #[must_use]
    pub fn records(&self) -> &[DecodedRecord] {
        &self.records
    }

    /// The records from `offset` on; inclusive.
    #[must_use]
    pub fn records_from(&self, offset: i64) -> &[DecodedRecord] {
        let first = self.records.partition_point(|record| record.offset < offset);
        self.records.get(first..).unwrap_or_default()
    }

    /// The payload of one of this batch's records, from its key length to its last header.
    #[must_use]
    pub fn payload(&self, record: &DecodedRecord) -> &[u8] {
        self.data.get(record.start as usize..record.end as usize).unwrap_or_default()
    }

    /// Bytes this batch keeps in memory; what a cache counts.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.data.len() + self.records.len() * size_of::<DecodedRecord>() + size_of::<Self>()
    }
}
