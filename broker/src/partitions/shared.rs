//! What all partitions of a node have in common.

use std::collections::HashSet;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};

use duolog_log_core::ids::{LeaderEpoch, NodeId, TopicId};
use duolog_log_core::log::{LogReader, TailBudget};
use duolog_log_core::storage::disk::{DiskError, DiskResult};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

use super::flusher::Flusher;
use super::open::LastConfig;
use super::timer::Timer;
use crate::instruments::Instruments;
use crate::limits::{KEY_BUDGET_BYTES, TAG_BUDGET_BYTES, TAIL_BUDGET_BYTES};
use crate::log_dirs::LogDirs;
use crate::metrics::Metrics;

/// What all partitions of a node have in common.
#[derive(Debug)]
pub struct Shared {
    /// Where the folders are.
    pub log_dirs: LogDirs,
    /// This node.
    pub node: NodeId,
    pub(super) leader_epoch: AtomicI32,
    pub(super) flusher: Flusher,
    pub(super) timer: Timer,
    pub(super) instruments: Arc<Instruments>,
    pub(super) metrics: Arc<Metrics>,
    /// Those that the checkpoints mean by their names.
    pub(super) topics_at_start: OnceLock<HashSet<TopicId>>,
    /// Held by the thread that writes a checkpoint.
    pub(super) checkpoint_writer: Mutex<()>,
    /// Held by moves to other log directories: as many at a time as there are directories.
    pub(super) movers: Semaphore,
    /// A sealed segment was synced: the recovery point is worth being written.
    pub(super) seal_synced: Notify,
    pub(super) tail_budget: Arc<TailBudget>,
    pub(super) tag_budget: Arc<TailBudget>,
    pub(super) key_budget: Arc<TailBudget>,
    pub(super) last_config: LastConfig,
    /// Of every log that there is not yet.
    pub(super) empty_reader: Arc<LogReader>,
    /// Where owners run: the flusher's thread is outside of it.
    pub(super) runtime: tokio::runtime::Handle,
    pub(super) stopping: CancellationToken,
}

impl Shared {
    /// For the partitions in `log_dirs`; call it inside the runtime that their owners shall run on.
    ///
    /// Errors: the flusher's thread cannot be started.
    pub fn new(
        log_dirs: LogDirs,
        node: NodeId,
        instruments: Arc<Instruments>,
        metrics: Arc<Metrics>,
        stopping: CancellationToken,
    ) -> DiskResult<Self> {
        let no_thread =
            |error| DiskError::new("start a flusher for", log_dirs.metadata().path(), error);
        Ok(Self {
            node,
            leader_epoch: AtomicI32::new(0),
            flusher: Flusher::start().map_err(no_thread)?,
            timer: Timer::default(),
            instruments,
            metrics,
            topics_at_start: OnceLock::new(),
            checkpoint_writer: Mutex::new(()),
            seal_synced: Notify::new(),
            movers: Semaphore::new(log_dirs.all().len()),
            tail_budget: Arc::new(TailBudget::new(TAIL_BUDGET_BYTES)),
            tag_budget: Arc::new(TailBudget::new(TAG_BUDGET_BYTES)),
            key_budget: Arc::new(TailBudget::new(KEY_BUDGET_BYTES)),
            last_config: LastConfig::default(),
            empty_reader: Arc::new(LogReader::empty()),
            runtime: tokio::runtime::Handle::current(),
            stopping,
            log_dirs,
        })
    }

    /// The epoch in which this run of the node leads all its partitions.
    pub fn leader_epoch(&self) -> LeaderEpoch {
        LeaderEpoch(self.leader_epoch.load(Ordering::Acquire))
    }

    /// Begins an epoch, before the first partition of clients is opened.
    pub(crate) fn set_leader_epoch(&self, epoch: LeaderEpoch) {
        self.leader_epoch.store(epoch.0, Ordering::Release);
    }
}
