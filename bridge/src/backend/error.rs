//! What a node may answer instead.

/// A refused or failed call. Nothing was changed, unless a variant says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BackendError {
    /// No such topic, or it was deleted since it was looked up.
    #[error("topic {topic} does not exist")]
    UnknownTopic {
        /// Stored name.
        topic: String,
    },
    /// The topic has fewer partitions.
    #[error("topic {topic} has no partition {partition}")]
    UnknownPartition {
        /// Stored name.
        topic: String,
        /// The one asked for.
        partition: i32,
    },
    /// Another node leads the partition and cannot be reached.
    #[error("this node does not lead partition {partition} of topic {topic}")]
    NotLeader {
        /// Stored name.
        topic: String,
        /// The one asked for.
        partition: i32,
    },
    /// The name, its configuration or its counts are refused.
    #[error("{reason}")]
    InvalidTopic {
        /// For people; ends the remark.
        reason: String,
    },
    /// Below the log start or above the LSO.
    #[error("offset {offset} is outside {log_start_offset}..={last_stable_offset}")]
    OffsetOutOfRange {
        /// The one asked for.
        offset: i64,
        /// Earliest readable offset.
        log_start_offset: i64,
        /// Exclusive end for readers.
        last_stable_offset: i64,
    },
    /// One record does not fit into a batch of the size allowed.
    #[error("record of {bytes} bytes exceeds {bytes_max}")]
    RecordTooLarge {
        /// Size of the batch with this record alone.
        bytes: usize,
        /// The bound.
        bytes_max: usize,
    },
    /// A stored batch cannot be read. Other offsets may be.
    #[error("batch at offset {offset} cannot be read: {reason}")]
    CorruptBatch {
        /// The first offset that cannot be read.
        offset: i64,
        /// What is wrong.
        reason: String,
    },
    /// Disk full or failed, or the node is stopping. A write under way may have been stored.
    #[error("not writable: {reason}")]
    NotWritable {
        /// What is wrong.
        reason: String,
    },
    /// Not enough in-sync replicas to begin the write.
    #[error("not enough in-sync replicas")]
    NotEnoughReplicas,
    /// The partition's queue of waiting appends is full.
    #[error("too many requests are waiting")]
    Busy,
    /// The group's coordinator is loading or not here.
    #[error("coordinator of group {group} is not ready")]
    CoordinatorNotReady {
        /// The group.
        group: String,
    },
    /// The group has live members of another protocol.
    #[error("group {group} is in use by {kind} members")]
    GroupKindConflict {
        /// The group.
        group: String,
        /// What it is now.
        kind: &'static str,
    },
    /// A setting that is unknown, fixed while the node runs, or of a value that nothing acts on.
    #[error("{reason}")]
    InvalidSetting {
        /// For people.
        reason: String,
    },
    /// A limit of groups, members or subscriptions is reached.
    #[error("{reason}")]
    LimitReached {
        /// The limit and its value, for people.
        reason: String,
    },
}

/// What a call to the node gives.
pub type Result<T> = std::result::Result<T, BackendError>;
