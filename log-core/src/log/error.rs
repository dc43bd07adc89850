//! Why a log refuses.

use crate::storage::disk::{DiskError, DiskErrorKind};

/// An append, read or other call on one log that was refused. A refused call changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The sequence is neither the expected one nor that of a batch still remembered.
    #[error(
        "out of order sequence for producer {producer_id} at offset {offset}: {incoming} \
         (incoming), {expected} (expected)"
    )]
    OutOfOrderSequence { producer_id: i64, offset: i64, incoming: i32, expected: i32 },
    /// An older epoch of the producer than the one known (KIP-98, KIP-360).
    #[error("epoch {incoming} of producer {producer_id} is older than the current epoch {current}")]
    InvalidProducerEpoch { producer_id: i64, incoming: i16, current: i16 },
    /// A transaction marker from a coordinator that another one has replaced.
    #[error("marker of coordinator epoch {incoming}, expected at least {current}")]
    CoordinatorFenced { producer_id: i64, incoming: i32, current: i32 },
    /// A plain batch of a producer that is inside a transaction.
    #[error("producer {producer_id} is inside a transaction, expected a transactional batch")]
    InvalidTxnState { producer_id: i64 },
    /// A transactional batch that would begin a transaction here, of which its coordinator does not
    /// know (any more).
    #[error("record of producer {producer_id} was not part of an ongoing transaction")]
    UnverifiedTxn { producer_id: i64 },
    /// A leader epoch below one that already wrote to this log.
    #[error("leader epoch {incoming} is older than {current}, which already wrote")]
    FencedLeaderEpoch { incoming: i32, current: i32 },
    /// The offset lies before the log start or after the log end.
    #[error("offset {offset} is out of range, the log has {log_start_offset} to {log_end_offset}")]
    OffsetOutOfRange { offset: i64, log_start_offset: i64, log_end_offset: i64 },
    /// A replicated batch does not follow the log end.
    #[error("batch starts at offset {offset}, expected at least {expected}")]
    UnexpectedAppendOffset { offset: i64, expected: i64 },
    /// Larger than a segment may be.
    #[error("batch of {size} bytes, a segment takes {maximum}")]
    BatchLargerThanSegment { size: usize, maximum: u32 },
    /// Bytes that do not hold one whole record batch; the caller validates before it appends.
    #[error("invalid record batch: {0}")]
    InvalidBatch(String),
    /// The disk is full: retriable, reads go on.
    #[error("storage is full: {0}")]
    StorageFull(String),
    /// No file could be opened, since no descriptor is free: retriable, nothing was written.
    #[error("out of file descriptors: {0}")]
    OutOfFiles(String),
    /// The disk failed. Reads go on; once a sync failed, or a file could not be cut back, the log
    /// takes no write until it is opened again.
    #[error("storage failed: {0}")]
    Storage(String),
    /// A stored batch that is not whole, or whose CRC does not fit.
    #[error("corrupt record batch at offset {offset} or after: {reason}")]
    Corrupt { offset: i64, reason: String },
    /// The folder belongs to another topic id than the one asked for.
    #[error("folder of topic id {found}, expected {expected}")]
    InconsistentTopicId { expected: crate::ids::TopicId, found: crate::ids::TopicId },
    /// The log was closed or deleted.
    #[error("log is closed")]
    Closed,
}

impl LogError {
    /// Whether nothing is lost and the same call may succeed later.
    #[must_use]
    pub const fn is_retriable(&self) -> bool {
        matches!(self, Self::StorageFull(_) | Self::OutOfFiles(_))
    }
}

impl From<DiskError> for LogError {
    fn from(error: DiskError) -> Self {
        match error.kind {
            DiskErrorKind::Full => Self::StorageFull(error.to_string()),
            DiskErrorKind::OutOfFiles => Self::OutOfFiles(error.to_string()),
            DiskErrorKind::NotFound
            | DiskErrorKind::SyncFailed
            | DiskErrorKind::Locked
            | DiskErrorKind::Io => Self::Storage(error.to_string()),
        }
    }
}
