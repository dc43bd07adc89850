//! What is appended, and what becomes of it: the inputs and answers of a partition's owner.

use bytes::BytesMut;
use duolog_bridge::backend::NewRecords;
use duolog_log_core::ids::LeaderEpoch;
use duolog_log_core::log::{AppendOrigin, LogError};
use duolog_log_core::record::RecordError;
use duolog_log_core::record::batch::TimestampType;
use duolog_log_core::replication::partition::{Acks, ReplicationError};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// Records in one of the two forms in which they come.
#[derive(Debug)]
pub enum Payload {
    /// One validated record batch, as a Kafka client or a coordinator made it.
    Batch {
        /// Exactly one batch.
        bytes: BytesMut,
        /// How many records it holds.
        record_count: i32,
        /// Whose time its records carry.
        timestamp_type: TimestampType,
        /// The greatest timestamp it is to be stored with.
        max_timestamp: i64,
        /// Who sent it.
        origin: AppendOrigin,
    },
    /// Records that the owner gathers into a batch with others that wait.
    Records(NewRecords),
}

/// How safe a RocketMQ-written record has to become, beyond what the topic asks of every record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// What `flush.messages` and `flush.ms` say.
    Topic,
    /// On disk within this many milliseconds, though nobody waits for it.
    Within(i64),
    /// On disk as soon as can be: somebody waits for it.
    Now,
}

impl Flush {
    /// The one of two that is satisfied first.
    pub(super) fn sooner(self, other: Self) -> Self {
        match (self, other) {
            (Self::Now, _) | (_, Self::Now) => Self::Now,
            (Self::Within(a), Self::Within(b)) => Self::Within(a.min(b)),
            (Self::Within(ms), Self::Topic) | (Self::Topic, Self::Within(ms)) => Self::Within(ms),
            (Self::Topic, Self::Topic) => Self::Topic,
        }
    }
}

/// One append.
#[derive(Debug)]
pub struct Append {
    /// A batch as sent, or records to be put into one.
    pub payload: Payload,
    /// Which replicas must have it before the answer.
    pub acks: Acks,
    /// When it has to be on disk.
    pub flush: Flush,
    /// Where the answer goes.
    pub reply: oneshot::Sender<AppendResult>,
    /// Its room in the partition's queue, given back when it is dropped.
    pub room: OwnedSemaphorePermit,
}

/// The answer to an append.
pub type AppendResult = Result<Appended, AppendError>;

/// Records that are in the log and as widely replicated as was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Offset of the first record.
    pub base_offset: i64,
    /// Offset of the last record: inclusive.
    pub last_offset: i64,
    /// The log's own time under `message.timestamp.type=LogAppendTime`, else -1.
    pub log_append_time_ms: i64,
    /// The wall clock when it was written.
    pub append_time_ms: i64,
    /// The log's start at that moment.
    pub log_start_offset: i64,
    /// The epoch it was written in.
    pub leader_epoch: LeaderEpoch,
}

/// Why an append, or another request to a partition's owner, failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The log refused; nothing was appended.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The replica refused; nothing was appended.
    #[error(transparent)]
    Replication(#[from] ReplicationError),
    /// It is in the log, but fewer replicas are in sync than are needed.
    #[error("not enough replicas in sync after the append")]
    NotEnoughReplicasAfterAppend,
    /// One record does not fit into the largest batch.
    #[error("record makes a batch of {bytes} bytes, the maximum is {maximum}")]
    RecordTooLarge {
        /// The batch with this record alone.
        bytes: usize,
        /// The bound.
        maximum: usize,
    },
    /// Too much waits already.
    #[error("too many appends are waiting")]
    Busy,
    /// The topic was deleted.
    #[error("the partition is deleted")]
    Deleted,
    /// The node is stopping.
    #[error("the node is stopping")]
    Stopping,
    /// A gate said so.
    #[error("failed by a gate")]
    Gate,
}

impl AppendError {
    /// Bytes that are no batch, though they were checked before.
    pub(super) fn invalid(error: &RecordError) -> Self {
        Self::Log(LogError::InvalidBatch(error.to_string()))
    }
}
