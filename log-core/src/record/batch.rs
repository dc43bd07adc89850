//! Record batches one after the other, and what a log writes into them.

use bytes::Bytes;

use self::header::{LEADER_EPOCH_AT, LENGTH_MIN, MAX_TIMESTAMP_AT};
use super::compression::Compression;
use super::error::RecordError;
use super::record::Records;
use crate::ids::LeaderEpoch;

mod header;

pub(super) use self::header::{ATTRIBUTES_AT, CRC_AT};
pub use self::header::{
    Attributes, BatchHeader, HEADER_BYTES, LOG_OVERHEAD_BYTES, MAGIC, NO_SEQUENCE, NO_TIMESTAMP,
    TimestampType, sequence_plus,
};

/// Records in batches that lie end to end, by their headers alone; counts up to the first that is not whole.
#[must_use]
pub fn record_count(mut batches: &[u8]) -> u64 {
    const LENGTH_AT: usize = 8;
    const COUNT_AT: usize = HEADER_BYTES - 4;
    let mut records = 0;
    loop {
        let field = |at: usize| batches.get(at..).and_then(|bytes| bytes.first_chunk());
        let (Some(length), Some(count)) = (field(LENGTH_AT), field(COUNT_AT)) else {
            return records;
        };
        let length = i32::from_be_bytes(*length);
        let next = usize::try_from(length).ok().filter(|_| length >= LENGTH_MIN);
        let next = next.and_then(|length| batches.get(LOG_OVERHEAD_BYTES + length..));
        let Some(next) = next else { return records };
        records += u64::from(i32::from_be_bytes(*count).max(0).unsigned_abs());
        batches = next;
    }
}

/// One whole batch in borrowed bytes.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    header: BatchHeader,
    bytes: &'a [u8],
}

impl<'a> Batch<'a> {
    /// The batch at the front of `bytes`; what follows it is left out. The CRC is not checked.
    /// Errors: `Truncated`, `InvalidLength`, `UnsupportedMagic`.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, RecordError> {
        Self::parse_at(bytes, 0)
    }

    fn parse_at(bytes: &'a [u8], position: usize) -> Result<Self, RecordError> {
        let header = BatchHeader::parse_at(bytes, position)?;
        let expected = header.size_in_bytes();
        let bytes = bytes.get(..expected).ok_or(RecordError::Truncated {
            position,
            expected,
            actual: bytes.len(),
        })?;
        Ok(Self { header, bytes })
    }

    #[must_use]
    pub const fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// Header and records.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// All after the header, still compressed.
    #[must_use]
    pub fn records_region(&self) -> &'a [u8] {
        self.bytes.get(HEADER_BYTES..).unwrap_or_default()
    }

    /// Errors: `CrcMismatch`.
    pub fn verify_crc(&self) -> Result<(), RecordError> {
        let computed = crc32c::crc32c(self.bytes.get(ATTRIBUTES_AT..).unwrap_or_default());
        if computed == self.header.crc {
            Ok(())
        } else {
            Err(RecordError::CrcMismatch { stored: self.header.crc, computed })
        }
    }

    /// The records of an uncompressed batch; None if it is compressed.
    #[must_use]
    pub fn records(&self) -> Option<Records<'a>> {
        match self.header.compression() {
            Ok(Compression::None) => Some(Records::new(&self.header, self.records_region())),
            _ => None,
        }
    }
}

/// The batches in `bytes`, front to back, in borrowed form. Ends after the first error; see
/// [`Self::position`] for how much before it was whole.
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    bytes: &'a [u8],
    position: usize,
    failed: bool,
}

impl<'a> Batches<'a> {
    /// Positions in errors count from the start of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0, failed: false }
    }

    /// The end of the batches yielded so far, in bytes.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.position
    }
}

impl<'a> Iterator for Batches<'a> {
    /// Errors: `Truncated` for a torn tail, `InvalidLength`, `UnsupportedMagic`.
    type Item = Result<Batch<'a>, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.bytes.get(self.position..).filter(|rest| !rest.is_empty())?;
        if self.failed {
            return None;
        }
        let batch = Batch::parse_at(rest, self.position);
        match &batch {
            Ok(batch) => self.position += batch.bytes.len(),
            Err(_) => self.failed = true,
        }
        Some(batch)
    }
}

/// As [`Batches`], each batch a shared slice of the one buffer.
#[derive(Clone, Debug)]
pub struct SharedBatches {
    bytes: Bytes,
    position: usize,
    failed: bool,
}

impl SharedBatches {
    /// Positions in errors count from the start of `bytes`.
    #[must_use]
    pub const fn new(bytes: Bytes) -> Self {
        Self { bytes, position: 0, failed: false }
    }

    /// The end of the batches yielded so far, in bytes.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.position
    }
}

impl Iterator for SharedBatches {
    type Item = Result<(BatchHeader, Bytes), RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.bytes.get(self.position..).filter(|rest| !rest.is_empty())?;
        if self.failed {
            return None;
        }
        match Batch::parse_at(rest, self.position) {
            Ok(batch) => {
                let start = self.position;
                self.position += batch.bytes.len();
                Some(Ok((batch.header, self.bytes.slice(start..self.position))))
            }
            Err(error) => {
                self.failed = true;
                Some(Err(error))
            }
        }
    }
}

/// Gives a batch its place in the log: base offset and leader epoch, both outside the CRC.
/// Changes nothing unless `batch` starts with a batch header.
/// Errors: as [`BatchHeader::parse`].
pub fn assign_offset(
    batch: &mut [u8],
    base_offset: i64,
    leader_epoch: LeaderEpoch,
) -> Result<(), RecordError> {
    BatchHeader::parse(batch)?;
    put(batch, 0, &base_offset.to_be_bytes());
    put(batch, LEADER_EPOCH_AT, &leader_epoch.0.to_be_bytes());
    Ok(())
}

/// Sets timestamp type and greatest timestamp of one whole batch and, if that changed anything,
/// computes its CRC anew. Returns whether it did.
///
/// For `LogAppendTime`, `max_timestamp` is the time of every record. For `CreateTime` it is the
/// greatest that was found in the records: a producer may have put something else into the
/// header, and time lookups trust it (LogValidator does the same).
/// Errors: as [`Batch::parse`].
pub fn stamp(
    batch: &mut [u8],
    timestamp_type: TimestampType,
    max_timestamp: i64,
) -> Result<bool, RecordError> {
    let header = *Batch::parse(batch)?.header();
    if header.timestamp_type() == timestamp_type && header.max_timestamp == max_timestamp {
        return Ok(false);
    }
    let attributes = header.attributes.with_timestamp_type(timestamp_type);
    put(batch, ATTRIBUTES_AT, &attributes.0.to_be_bytes());
    put(batch, MAX_TIMESTAMP_AT, &max_timestamp.to_be_bytes());
    let covered = batch.get(ATTRIBUTES_AT..header.size_in_bytes()).unwrap_or_default();
    let crc = crc32c::crc32c(covered);
    put(batch, CRC_AT, &crc.to_be_bytes());
    Ok(true)
}

fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + field.len()) {
        place.copy_from_slice(field);
    }
}

#[cfg(test)]
mod tests;
