//! The settings of one log, under their topic-level Kafka names, and what is known of it before it is opened.

use std::sync::Arc;

use super::tail::TailBudget;
use crate::ids::TopicId;

/// Settings of one log; defaults are Kafka 4.3's.
#[derive(Clone, Debug, PartialEq)]
pub struct LogConfig {
    /// `segment.bytes`: a segment never grows beyond it.
    pub segment_bytes: u32,
    /// `segment.ms`: a segment is rolled once its first and the newest record time lie further apart.
    pub segment_ms: i64,
    /// `segment.index.bytes`: size at which an index counts as full, which rolls the segment.
    pub segment_index_bytes: u32,
    /// `index.interval.bytes`: at most one index entry for so many bytes of log.
    pub index_interval_bytes: u32,
    /// `retention.ms`: -1 keeps for ever.
    pub retention_ms: i64,
    /// `retention.bytes`: -1 for no bound.
    pub retention_bytes: i64,
    /// `cleanup.policy`.
    pub cleanup_policy: CleanupPolicy,
    /// `min.cleanable.dirty.ratio`: part of the log that must be new since the last compaction.
    pub min_cleanable_dirty_ratio: f64,
    /// `min.compaction.lag.ms`: a record stays as it is for so long.
    pub min_compaction_lag_ms: i64,
    /// `max.compaction.lag.ms`: a record is compacted after so long, however little is new.
    pub max_compaction_lag_ms: i64,
    /// `delete.retention.ms`: tombstones and markers without data stay for so long after their first
    /// compaction.
    pub delete_retention_ms: i64,
    /// `file.delete.delay.ms`: from the renaming of a dropped file to its removal.
    pub file_delete_delay_ms: i64,
    /// `flush.messages`: the owner syncs once so many records are unsynced.
    pub flush_messages: i64,
    /// `flush.ms`: the owner syncs once a record has been unsynced for so long.
    pub flush_ms: i64,
    /// `producer.id.expiration.ms`: idempotence is forgotten after so long without a batch.
    pub producer_id_expiration_ms: i64,
    /// How many bytes of the newest batches this log keeps in memory at most.
    pub tail_cache_bytes: usize,
    /// How many bytes all logs keep together at most.
    pub tail_budget: Arc<TailBudget>,
    /// How many bytes of tags that are in no file yet all logs keep together at most.
    pub tag_budget: Arc<TailBudget>,
    /// The same of keys.
    pub key_budget: Arc<TailBudget>,
}

impl Default for LogConfig {
    fn default() -> Self {
        const DAY_MS: i64 = 24 * 60 * 60 * 1000;
        Self {
            segment_bytes: 1 << 30,
            segment_ms: 7 * DAY_MS,
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 4096,
            retention_ms: 7 * DAY_MS,
            retention_bytes: -1,
            cleanup_policy: CleanupPolicy::Delete,
            min_cleanable_dirty_ratio: 0.5,
            min_compaction_lag_ms: 0,
            max_compaction_lag_ms: i64::MAX,
            delete_retention_ms: DAY_MS,
            file_delete_delay_ms: 60_000,
            flush_messages: i64::MAX,
            flush_ms: i64::MAX,
            producer_id_expiration_ms: DAY_MS,
            tail_cache_bytes: 1 << 20,
            tail_budget: Arc::new(TailBudget::new(64 << 20)),
            tag_budget: Arc::new(TailBudget::new(32 << 20)),
            key_budget: Arc::new(TailBudget::new(32 << 20)),
        }
    }
}

impl LogConfig {
    /// How long a segment may fill: `segment.ms`, or less where compaction may not wait so long
    /// (KIP-354).
    #[must_use]
    pub fn segment_ms_max(&self) -> i64 {
        if self.cleanup_policy.compacts() && self.max_compaction_lag_ms > 0 {
            self.segment_ms.min(self.max_compaction_lag_ms)
        } else {
            self.segment_ms
        }
    }
}

/// `cleanup.policy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanupPolicy {
    /// Old segments go by time and size.
    Delete,
    /// Only the newest record of a key stays.
    Compact,
    /// Both.
    CompactAndDelete,
    /// Neither (KIP-1161): the log is kept for ever.
    Unlimited,
}

impl CleanupPolicy {
    /// Whether only the newest record of a key stays.
    #[must_use]
    pub const fn compacts(self) -> bool {
        matches!(self, Self::Compact | Self::CompactAndDelete)
    }
}

/// Which partition a folder holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogIdentity {
    /// Topic name.
    pub topic: Arc<str>,
    /// Partition number.
    pub partition: i32,
    /// Written to `partition.metadata`; a folder of another id is refused.
    pub topic_id: TopicId,
}

/// What the checkpoints of the log directory say of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenHint {
    /// How the directory was left.
    pub shutdown: Shutdown,
    /// `recovery-point-offset-checkpoint`: below it all was synced. Without it the whole log is scanned.
    pub recovery_point: Option<i64>,
    /// `log-start-offset-checkpoint`: inclusive; the first segment's base offset when absent.
    pub log_start_offset: Option<i64>,
    /// Up to here, exclusive, the log was whole and on disk, by all that is known. What is damaged
    /// below it is kept and told, not cut off.
    pub proven_end: i64,
    /// `replication-offset-checkpoint`: records below it were committed. What recovery drops of them
    /// is set aside.
    pub high_watermark: i64,
    /// What becomes of a log that lacks some of that.
    pub on_loss: OnLoss,
    /// Whether compaction was ever at work here: `cleaner-offset-checkpoint` names the log.
    pub compacted: Compacted,
}

/// See [`OpenHint::compacted`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compacted {
    /// Each segment begins where the one before it ends, unless the policy says otherwise.
    #[default]
    Never,
    /// Records may be missing before a segment, whatever the policy says now.
    Once,
}

/// See [`OpenHint::on_loss`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLoss {
    /// It is opened with what is left.
    #[default]
    KeepRest,
    /// It is not opened, and its files stay as they are.
    Refuse,
}

/// Whether `.kafka_cleanshutdown` was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shutdown {
    /// All logs were closed: nothing is scanned.
    Clean,
    /// The process or machine stopped at once: scan from the recovery point.
    #[default]
    Unclean,
}
