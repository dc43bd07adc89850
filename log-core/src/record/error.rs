//! What can be wrong with record bytes that came from outside.

use super::compression::Compression;
use crate::ids::TopicPartition;

/// Why bytes are no record batch, or one that this log does not take.
///
/// The variants are what a caller branches on; each protocol maps them in one place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The bytes end inside a batch: a torn tail on disk, a short field on the wire.
    #[error("batch at byte {position} needs {expected} bytes, only {actual} are there")]
    Truncated { position: usize, expected: usize, actual: usize },
    /// The length field is smaller than the rest of a batch header.
    #[error("batch at byte {position} has length {length}, expected at least {minimum}")]
    InvalidLength { position: usize, length: i32, minimum: i32 },
    /// Not record format 2: an older message set (0, 1), or no batch at all.
    #[error("batch at byte {position} has magic {magic}, expected 2")]
    UnsupportedMagic { position: usize, magic: i8 },
    /// The stored CRC-32C is not that of the bytes it covers.
    #[error("stored crc {stored:#010x}, computed {computed:#010x}")]
    CrcMismatch { stored: u32, computed: u32 },
    /// Compression bits 5 to 7, which no version of Kafka gives a meaning, or a codec that this
    /// build leaves out.
    #[error("compression type {id} is not supported")]
    UnsupportedCompression { id: u8 },
    /// The compressed bytes are not what the codec writes.
    #[error("{compression} data is invalid: {reason}")]
    InvalidCompressedData { compression: Compression, reason: String },
    /// The records are larger than the caller allows once decompressed; decoding stopped there.
    #[error("records decompress to more than {limit} bytes")]
    DecompressedTooLarge { limit: usize },
    /// A record's bytes do not follow the format.
    #[error("record {index}: {reason}")]
    InvalidRecord { index: i32, reason: &'static str },
    /// Record count, offsets, sequence or attributes of the batch contradict each other or are not
    /// a client's to set.
    #[error(transparent)]
    InvalidBatch(#[from] InvalidBatch),
    /// A produce request carried another number of batches than one for a partition.
    #[error("expected exactly one record batch per partition, found {found}")]
    BatchCount { found: BatchCount },
    /// The batch is larger than `max.message.bytes`.
    #[error("batch of {size} bytes, the maximum is {maximum}")]
    BatchTooLarge { size: usize, maximum: usize },
    /// Single records break a rule of the topic; the whole batch is refused.
    #[error("{}", rejected_text(.0))]
    RejectedRecords(RejectedRecords),
    /// A control record has a key or value that does not follow its type.
    #[error("control record is invalid: {0}")]
    InvalidControlRecord(&'static str),
}

/// See [`RecordError::BatchCount`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchCount {
    /// No bytes, or fewer than one whole batch.
    Zero,
    /// A second batch follows the first.
    MoreThanOne,
}

impl std::fmt::Display for BatchCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Zero => "none",
            Self::MoreThanOne => "more than one",
        })
    }
}

/// See [`RecordError::InvalidBatch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBatch {
    /// A client's batch starts at offset 0; the log gives the real one.
    #[error("the base offset of a produced batch must be 0, it is {0}")]
    BaseOffset(i64),
    /// `lastOffsetDelta` below 0 or not the record count less one.
    #[error("last offset delta {last_offset_delta} does not fit {record_count} records")]
    OffsetRange { last_offset_delta: i32, record_count: i32 },
    /// No records, or a negative count.
    #[error("invalid record count {0}")]
    RecordCount(i32),
    /// Bytes follow the last record that the header counts.
    #[error("{0} bytes follow the last of the declared records")]
    TrailingBytes(usize),
    /// Bytes follow a produced batch that are no second one.
    #[error("{0} bytes follow the batch")]
    BytesAfterBatch(usize),
    /// The records end before the header's count is reached.
    #[error("the header declares {declared} records, only {present} are present")]
    MissingRecords { declared: i32, present: i32 },
    /// Offset deltas of a produced batch are 0, 1, 2 and so on.
    #[error("record {index} has offset delta {offset_delta}")]
    OffsetDelta { index: i32, offset_delta: i32 },
    /// Control records are written by the broker alone.
    #[error("clients are not allowed to write control records")]
    Control,
    /// A producer id without a sequence.
    #[error("producer id {producer_id} comes with base sequence {base_sequence}")]
    Sequence { producer_id: i64, base_sequence: i32 },
}

/// See [`RecordError::RejectedRecords`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedRecords {
    /// The first of them, at most [`Self::LISTED_MAX`], in the order of the batch; never empty.
    pub listed: Vec<RejectedRecord>,
    /// How many there are in all.
    pub total: usize,
    /// What the batch as a whole is refused for.
    pub kind: RejectKind,
}

impl RejectedRecords {
    /// More are counted but not listed.
    pub const LISTED_MAX: usize = 100;

    /// What Kafka's clients are told of the batch: LogValidator.processRecordErrors.
    #[must_use]
    pub fn message(&self, partition: &TopicPartition) -> String {
        if self.kind == RejectKind::Timestamp {
            return "One or more records have been rejected due to invalid timestamp".to_owned();
        }
        let listed = self.listed.iter().take(3).map(|record| {
            let (index, message) = (record.index, record.message(partition));
            format!("RecordError(batchIndex={index}, message='{message}')")
        });
        format!(
            "One or more records have been rejected due to {} record errors in total, and only \
             showing the first three errors at most: [{}]",
            self.total,
            listed.collect::<Vec<_>>().join(", ")
        )
    }
}

/// See [`RejectedRecords::kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectKind {
    /// At least one record has a timestamp that is not accepted, whatever the others have.
    Timestamp,
    /// Records break other rules only.
    Record,
}

/// One record that breaks a rule of its topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RejectedRecord {
    /// 0-based place in the batch: `BatchIndex` of a produce response.
    pub index: i32,
    pub cause: RejectCause,
}

impl RejectedRecord {
    /// What Kafka's clients are told of the record: LogValidator.validateRecord.
    #[must_use]
    pub fn message(&self, partition: &TopicPartition) -> String {
        match self.cause {
            RejectCause::MissingKey => format!(
                "Compacted topic cannot accept message without key in topic partition {partition}"
            ),
            RejectCause::TimestampOutOfRange { timestamp, earliest, latest } => format!(
                "Timestamp {timestamp} of message with offset {} is out of range. The timestamp \
                 should be within [{earliest}, {latest}]",
                self.index
            ),
            RejectCause::TimestampType => format!(
                "Invalid timestamp type in message with offset {}. Producer should not set \
                 timestamp type to LogAppendTime.",
                self.index
            ),
        }
    }
}

/// The rule that a record breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RejectCause {
    /// A compacted topic takes no record without a key.
    #[error("compacted topic cannot accept message without key")]
    MissingKey,
    /// Outside `message.timestamp.before.max.ms` and `.after.max.ms`; both bounds inclusive.
    #[error("timestamp {timestamp} is out of range, expected {earliest} to {latest}")]
    TimestampOutOfRange { timestamp: i64, earliest: i64, latest: i64 },
    /// The producer claims the time of the log.
    #[error("producer should not set timestamp type to LogAppendTime")]
    TimestampType,
}

fn rejected_text(rejected: &RejectedRecords) -> String {
    let first = rejected.listed.first().map_or_else(String::new, |record| {
        format!(", the first is record {}: {}", record.index, record.cause)
    });
    format!("{} records are rejected{first}", rejected.total)
}
