//! What a leader checks before it takes a client's batch.
//!
//! The order of checks and what each one refuses follow ProduceRequest.validateRecords,
//! UnifiedLog.analyzeAndValidateRecords and LogValidator for record format 2 where
//! `compression.type` is `producer`; a 4.3.1 broker was asked about each oddity. Stricter than
//! Kafka where other readers of the same bytes would suffer:
//! - offset deltas must be 0, 1, 2 and so on: Kafka keeps gaps in an uncompressed batch;
//! - nothing may follow the batch: Kafka cuts off what is no whole second one;
//! - a batch that claims LogAppendTime is refused everywhere: Kafka clears the bit;
//! - what is decompressed is bounded;
//! - data that no codec reads and unknown codecs are a client's error: Kafka fails unexpectedly.

use super::batch::{Batch, BatchHeader, NO_TIMESTAMP, TimestampType};
use super::compression::{Compression, Decompressor};
use super::error::{
    BatchCount, InvalidBatch, RecordError, RejectCause, RejectKind, RejectedRecord, RejectedRecords,
};
use super::record::{Record, Records};

/// A topic's rules for what is produced to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProduceRules {
    /// `max.message.bytes`: of the whole batch as sent, inclusive.
    pub batch_bytes_max: usize,
    /// The records of one batch once decompressed, inclusive.
    pub decompressed_bytes_max: usize,
    pub timestamps: TimestampRule,
    pub keys: KeyRule,
    pub zstd: ZstdRule,
}

/// `message.timestamp.type`, and what it asks of the records' own times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampRule {
    /// Times may lie `before_max_ms` before `now` to `after_max_ms` after it, both inclusive;
    /// a record without a time is taken.
    CreateTime { now: i64, before_max_ms: i64, after_max_ms: i64 },
    /// All records get the time `now`.
    LogAppendTime { now: i64 },
}

/// Whether `cleanup.policy` contains `compact`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyRule {
    #[default]
    Optional,
    /// Compaction knows a record by its key.
    Required,
}

/// Whether this request may carry zstd: from Produce version 7 on (KIP-110).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZstdRule {
    #[default]
    Accepted,
    Refused,
}

/// A batch that may be appended, and what was learnt on the way so that the log need not decode
/// it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validated {
    pub header: BatchHeader,
    /// What [`super::batch::stamp`] is to be called with before the append; it changes nothing
    /// when the producer's header is right already.
    pub timestamp_type: TimestampType,
    /// The greatest timestamp of the batch as it will be stored, ms; [`NO_TIMESTAMP`] if no record
    /// has one.
    pub max_timestamp: i64,
    /// The first record that has it; None without one. Under `LogAppendTime` the first of all.
    pub max_timestamp_offset_delta: Option<i32>,
    /// At least 1; equal to the last offset delta plus 1.
    pub record_count: i32,
    /// The records' size uncompressed.
    pub records_bytes: usize,
}

/// Checks the records that a produce request carries for one partition. `records` is not changed;
/// see [`Validated`] for what remains to be done before the append.
///
/// Errors: every variant of [`RecordError`] but `InvalidControlRecord`, the first that applies in
/// Kafka's order; `RejectedRecords` lists the single records that break the topic's rules.
pub fn validate(
    records: &[u8],
    rules: &ProduceRules,
    decompressor: &mut Decompressor,
) -> Result<Validated, RecordError> {
    let batch = only_batch(records)?;
    let header = *batch.header();
    let compression = header.compression()?;
    if compression == Compression::Zstd && rules.zstd == ZstdRule::Refused {
        return Err(RecordError::UnsupportedCompression { id: compression.id() });
    }
    if header.base_offset != 0 {
        return Err(InvalidBatch::BaseOffset(header.base_offset).into());
    }
    let size = header.size_in_bytes();
    if size > rules.batch_bytes_max {
        return Err(RecordError::BatchTooLarge { size, maximum: rules.batch_bytes_max });
    }
    batch.verify_crc()?;
    check_header(&header)?;
    let limit = match compression {
        // Its size was checked already.
        Compression::None => usize::MAX,
        _ => rules.decompressed_bytes_max,
    };
    let region = decompressor.decompress(compression, batch.records_region(), limit)?;
    check_records(&header, region, rules)
}

/// What is judged of a partition's records before all else, from the batch's header alone: that it is
/// one whole batch, in a format and with a codec that the request may carry.
///
/// Bytes behind it that are no batch are told by [`validate`].
pub fn check_structure(records: &[u8], zstd: ZstdRule) -> Result<(), RecordError> {
    let batch = match only_batch(records) {
        Err(RecordError::InvalidBatch(InvalidBatch::BytesAfterBatch(_))) => Batch::parse(records)?,
        batch => batch?,
    };
    if zstd == ZstdRule::Refused && batch.header().compression()? == Compression::Zstd {
        return Err(RecordError::UnsupportedCompression { id: Compression::Zstd.id() });
    }
    Ok(())
}

/// The one batch that a client may send to a partition at a time.
fn only_batch(records: &[u8]) -> Result<Batch<'_>, RecordError> {
    let batch = match Batch::parse(records) {
        Ok(batch) => batch,
        Err(RecordError::Truncated { .. }) => {
            return Err(RecordError::BatchCount { found: BatchCount::Zero });
        }
        Err(error) => return Err(error),
    };
    let rest = records.get(batch.bytes().len()..).unwrap_or_default();
    if rest.is_empty() {
        return Ok(batch);
    }
    match Batch::parse(rest) {
        Ok(_) => Err(RecordError::BatchCount { found: BatchCount::MoreThanOne }),
        Err(_) => Err(InvalidBatch::BytesAfterBatch(rest.len()).into()),
    }
}

fn check_header(header: &BatchHeader) -> Result<(), InvalidBatch> {
    let &BatchHeader { last_offset_delta, record_count, base_sequence, .. } = header;
    if last_offset_delta < 0 {
        return Err(InvalidBatch::OffsetRange { last_offset_delta, record_count });
    }
    if record_count <= 0 {
        return Err(InvalidBatch::RecordCount(record_count));
    }
    if i64::from(last_offset_delta) + 1 != i64::from(record_count) {
        return Err(InvalidBatch::OffsetRange { last_offset_delta, record_count });
    }
    if header.is_control() {
        return Err(InvalidBatch::Control);
    }
    if header.has_producer_id() && base_sequence < 0 {
        let producer_id = header.producer_id.0;
        return Err(InvalidBatch::Sequence { producer_id, base_sequence });
    }
    Ok(())
}

fn check_records(
    header: &BatchHeader,
    region: &[u8],
    rules: &ProduceRules,
) -> Result<Validated, RecordError> {
    let mut rejected = Rejected::default();
    let mut max_timestamp = NO_TIMESTAMP;
    let mut max_timestamp_offset_delta = None;
    for (index, record) in (0..).zip(Records::new(header, region)) {
        let record = record?;
        if record.offset_delta != index {
            let offset_delta = record.offset_delta;
            return Err(InvalidBatch::OffsetDelta { index, offset_delta }.into());
        }
        if let Some(cause) = rules.reject(header, &record) {
            rejected.add(RejectedRecord { index, cause });
        }
        if record.timestamp > max_timestamp {
            max_timestamp = record.timestamp;
            max_timestamp_offset_delta = Some(index);
        }
    }
    rejected.into_result()?;
    let timestamp_type = match rules.timestamps {
        TimestampRule::CreateTime { .. } => TimestampType::CreateTime,
        TimestampRule::LogAppendTime { now } => {
            max_timestamp = now;
            max_timestamp_offset_delta = Some(0);
            TimestampType::LogAppendTime
        }
    };
    Ok(Validated {
        header: *header,
        timestamp_type,
        max_timestamp,
        max_timestamp_offset_delta,
        record_count: header.record_count,
        records_bytes: region.len(),
    })
}

impl ProduceRules {
    #[inline]
    fn reject(&self, header: &BatchHeader, record: &Record<'_>) -> Option<RejectCause> {
        if self.keys == KeyRule::Required && record.key.is_none() {
            return Some(RejectCause::MissingKey);
        }
        if header.timestamp_type() == TimestampType::LogAppendTime {
            return Some(RejectCause::TimestampType);
        }
        let TimestampRule::CreateTime { now, before_max_ms, after_max_ms } = self.timestamps else {
            return None;
        };
        let timestamp = record.timestamp;
        let earliest = now.saturating_sub(before_max_ms);
        let latest = now.saturating_add(after_max_ms);
        if timestamp == NO_TIMESTAMP || (earliest..=latest).contains(&timestamp) {
            return None;
        }
        Some(RejectCause::TimestampOutOfRange { timestamp, earliest, latest })
    }
}

#[derive(Default)]
struct Rejected {
    listed: Vec<RejectedRecord>,
    total: usize,
    has_timestamp: bool,
}

impl Rejected {
    #[cold]
    fn add(&mut self, record: RejectedRecord) {
        self.total += 1;
        self.has_timestamp |= record.cause != RejectCause::MissingKey;
        if self.listed.len() < RejectedRecords::LISTED_MAX {
            self.listed.push(record);
        }
    }

    fn into_result(self) -> Result<(), RecordError> {
        if self.total == 0 {
            return Ok(());
        }
        // As in Kafka, one bad timestamp decides the code for the batch.
        let kind = if self.has_timestamp { RejectKind::Timestamp } else { RejectKind::Record };
        Err(RecordError::RejectedRecords(RejectedRecords {
            listed: self.listed,
            total: self.total,
            kind,
        }))
    }
}

#[cfg(test)]
mod tests;
