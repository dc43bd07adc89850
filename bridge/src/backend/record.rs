//! What is written to a partition, read from it and told of it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::{SharedBatch, Topic};

/// One record to append. Offset and batch are the node's to choose.
#[derive(Clone, Debug)]
pub struct NewRecord {
    /// CreateTime in milliseconds since 1970 (RocketMQ's born timestamp).
    pub timestamp_ms: i64,
    /// What [`duolog_log_core::record::NewRecord::encode_payload`] writes: the record from its
    /// key's length to its last header. The node's batch builder copies it as it is.
    pub payload: Bytes,
}

/// Records that get successive offsets, all or none.
#[derive(Clone, Debug)]
pub enum NewRecords {
    /// The usual send; spares the list.
    One(NewRecord),
    /// A batch send; never empty.
    Many(Vec<NewRecord>),
}

impl NewRecords {
    /// The records in order.
    #[must_use]
    pub fn as_slice(&self) -> &[NewRecord] {
        match self {
            Self::One(record) => std::slice::from_ref(record),
            Self::Many(records) => records,
        }
    }
}

/// A record that waits for its time.
#[derive(Clone, Debug)]
pub struct TimedRecord {
    /// When it is due, milliseconds since 1970.
    pub due_ms: i64,
    /// The message's own id, by which it is recalled.
    pub id: Arc<str>,
    /// Its last header is `__rmq` in version 1.
    pub record: NewRecord,
}

/// What is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recall<'a> {
    /// The message's own id.
    pub id: &'a str,
    /// When it is due at the earliest, inclusive.
    pub from_ms: i64,
    /// Exclusive.
    pub to_ms: i64,
}

/// What an append's answer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// What the node is configured for: `flushDiskType`, `brokerRole`, `flush.messages`.
    Configured,
    /// The leader's log alone (property `WAIT=false`).
    Written,
}

/// How a stored append ended. In every case the records are in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// As safe as was asked for.
    Ok,
    /// The disk did not confirm within `syncFlushTimeout`.
    FlushDiskTimeout,
    /// The in-sync replicas did not confirm in time.
    FlushReplicaTimeout,
    /// Fewer replicas are in sync than are needed.
    ReplicaNotAvailable,
}

/// The answer to an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Offset of the first record; the others follow without a gap.
    pub base_offset: i64,
    /// The append time given to the batch, in milliseconds since 1970.
    pub append_time_ms: i64,
    /// The partition's cluster-wide number.
    pub partition_number: u32,
    /// What was waited for and did it come.
    pub stored: Stored,
}

/// A partition at one moment. `log_start_offset <= last_stable_offset`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionView {
    /// Earliest readable offset; inclusive.
    pub log_start_offset: i64,
    /// Readers see what is below; exclusive.
    pub last_stable_offset: i64,
    /// Bytes of all segments.
    pub bytes: u64,
    /// This partition's cluster-wide number, below 2^23 and never given twice.
    pub number: u32,
}

/// What to read of a partition.
#[derive(Clone, Copy, Debug)]
pub struct ReadRequest<'a> {
    /// The topic as looked up; reading one deleted since is [`super::BackendError::UnknownTopic`].
    pub topic: &'a Topic,
    /// 0-based.
    pub partition: i32,
    /// First offset wanted; inclusive.
    pub offset: i64,
    /// Stop after this many bytes of batches; one whole batch comes anyway.
    pub bytes_max: usize,
    /// Stop after this many matching records; one whole batch comes anyway.
    pub records_max: usize,
    /// Java hashes of the tags wanted. The node may leave out batches that hold none of them, and
    /// need not.
    pub tags: Option<&'a [i32]>,
}

/// Whole batches below the LSO, without control batches and aborted data.
#[derive(Clone, Debug)]
pub struct ReadAnswer {
    /// In order of their offsets. The first may begin before the offset asked for.
    pub batches: Vec<Arc<SharedBatch>>,
    /// Everything from the asked offset up to this one, exclusive, is in `batches` or is nothing
    /// for this reader. Beyond the asked offset unless that was the LSO.
    pub next_offset: i64,
    /// The partition when it was read.
    pub view: PartitionView,
}

/// Which end of a run of equal times (field `boundaryType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// The first offset whose time is at or after the one asked for.
    Lower,
    /// The last offset whose time is at or before the one asked for.
    Upper,
}

/// When to look anew for a topic that is not there yet: nobody tells when it comes.
pub const LOOK_FOR_TOPIC: Duration = Duration::from_secs(1);

/// Why [`super::Backend::wait_beyond`] came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The LSO is now above the offset given.
    Advanced,
    /// The partition is no longer served here: topic deleted, or leadership moved.
    Gone,
    /// The node is stopping.
    Stopping,
}

/// A committed position, as `__consumer_offsets` keeps it: the next offset to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedOffset {
    /// Stored name of the topic.
    pub topic: Arc<str>,
    /// 0-based.
    pub partition: i32,
    /// Next offset to read.
    pub offset: i64,
}
