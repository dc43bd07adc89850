//! Opening a partition's log: recovery, then leadership of the only replica.

use std::collections::BTreeSet;
use std::sync::Arc;

use duolog_log_core::ids::Offset;
use duolog_log_core::log::{CleanupPolicy, Log, LogConfig, LogError, LogIdentity};
use duolog_log_core::replication::partition::{
    Assignment, LogPosition, Partition as Replica, PartitionRules,
};
use parking_lot::Mutex;

use super::append::AppendError;
use super::task::Owner;
use super::{Partition, Shared};
use crate::clock;
use crate::config::topic::TopicConfig;
use crate::limits::TAIL_CACHE_BYTES;

/// Opens the log on a thread that may block, for recovery may read a lot.
pub(super) async fn open(partition: &Arc<Partition>) -> Result<Box<Owner>, AppendError> {
    open_and_lead(partition).await.inspect_err(|error| partition.tell_unopened(error))
}

async fn open_and_lead(partition: &Arc<Partition>) -> Result<Box<Owner>, AppendError> {
    if partition.is_offline() {
        return Err(partition.offline_error());
    }
    let opening = partition.clone();
    let joined = tokio::task::spawn_blocking(move || open_log(&opening)).await;
    let log = joined.map_err(|error| LogError::Storage(error.to_string()))??;
    let replica = lead(partition, &log)?;
    let mut owner = Box::new(Owner::new(log, replica));
    partition.published.set_synced(owner.log.recovery_point());
    partition.published.set_checkpointed_log_start(owner.log.checkpointed_log_start());
    partition.published.set_bytes(owner.log.reader().size_in_bytes());
    owner.advance(partition);
    // What recovery has read through is not read again after the next crash.
    owner.flush_next(partition);
    partition.reader.store(Some(Arc::new(owner.log.reader())));
    partition.set_opened();
    Ok(owner)
}

fn open_log(partition: &Partition) -> Result<Log, LogError> {
    let (shared, dir) = (&partition.shared, partition.log_dir());
    partition.set_has_folder();
    let identity = partition.identity();
    let config = shared.log_config(&partition.config());
    let hint =
        if partition.was_opened() { partition.reopen_hint() } else { dir.hints().of(partition) };
    let disk = shared.log_dirs.disk().clone();
    let (log, report) = Log::open(disk, &partition.dir(), identity, config, hint, clock::now_ms())?;
    partition.tell_recovery(&report, dir.hints().high_watermark(partition));
    Ok(log)
}

impl Partition {
    /// Whose log it is.
    pub(super) fn identity(&self) -> LogIdentity {
        LogIdentity { topic: self.topic.clone(), partition: self.index, topic_id: self.topic_id }
    }
}

/// Begins to lead: this node is every replica there is.
fn lead(partition: &Partition, log: &Log) -> Result<Replica, AppendError> {
    let shared = &partition.shared;
    let config = partition.config();
    let position = LogPosition {
        log_start_offset: Offset(log.log_start_offset()),
        log_end_offset: Offset(log.log_end_offset()),
        first_unstable_offset: log.first_unstable_offset().map(Offset),
    };
    let high_watermark = Offset(partition.log_dir().hints().high_watermark(partition));
    let rules = rules(&config);
    let mut replica = Replica::new(shared.node, rules, position, high_watermark);
    let all = BTreeSet::from([shared.node]);
    let assignment = Assignment {
        replicas: all.clone(),
        isr: all,
        partition_epoch: 0,
        min_insync_replicas: rules.min_insync_replicas,
    };
    replica.become_leader(shared.leader_epoch(), assignment, clock::now_ms())?;
    Ok(replica)
}

/// The rules of replication that a topic sets.
pub(super) fn rules(config: &TopicConfig) -> PartitionRules {
    /// Nobody lags where there is one replica.
    const REPLICA_LAG_TIME_MAX_MS: i64 = 30_000;
    PartitionRules {
        min_insync_replicas: usize::try_from(config.min_insync_replicas).unwrap_or(1),
        replica_lag_time_max_ms: REPLICA_LAG_TIME_MAX_MS,
    }
}

/// The newest settings that were put into the log's terms, and both forms of them.
pub(super) type LastConfig = Mutex<Option<(Arc<TopicConfig>, Arc<LogConfig>)>>;

impl Shared {
    /// A topic's settings in the log's terms: the same for all partitions of a topic, which are
    /// mostly opened one after the other.
    pub(super) fn log_config(&self, config: &Arc<TopicConfig>) -> Arc<LogConfig> {
        let mut last = self.last_config.lock();
        if let Some((topic, log)) = &*last
            && Arc::ptr_eq(topic, config)
        {
            return log.clone();
        }
        let log = Arc::new(log_config(config, self));
        *last = Some((config.clone(), log.clone()));
        log
    }
}

fn log_config(config: &TopicConfig, shared: &Shared) -> LogConfig {
    let unsigned = |value: i32| u32::try_from(value).unwrap_or_default();
    LogConfig {
        segment_bytes: unsigned(config.segment_bytes),
        segment_ms: config.segment_ms,
        segment_index_bytes: unsigned(config.segment_index_bytes),
        index_interval_bytes: unsigned(config.index_interval_bytes),
        retention_ms: config.retention_ms,
        retention_bytes: config.retention_bytes,
        cleanup_policy: match (config.cleanup.delete, config.cleanup.compact) {
            (true, false) => CleanupPolicy::Delete,
            (false, true) => CleanupPolicy::Compact,
            (true, true) => CleanupPolicy::CompactAndDelete,
            (false, false) => CleanupPolicy::Unlimited,
        },
        min_cleanable_dirty_ratio: config.min_cleanable_dirty_ratio,
        min_compaction_lag_ms: config.min_compaction_lag_ms,
        max_compaction_lag_ms: config.max_compaction_lag_ms,
        delete_retention_ms: config.delete_retention_ms,
        file_delete_delay_ms: config.file_delete_delay_ms,
        flush_messages: config.flush_messages,
        flush_ms: config.flush_ms,
        producer_id_expiration_ms: config.producer_id_expiration_ms,
        tail_cache_bytes: TAIL_CACHE_BYTES,
        tail_budget: shared.tail_budget.clone(),
        tag_budget: shared.tag_budget.clone(),
        key_budget: shared.key_budget.clone(),
    }
}

#[cfg(test)]
mod tests;
