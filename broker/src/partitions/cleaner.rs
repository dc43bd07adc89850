//! Compacts logs in the background, the dirtiest first.
//!
//! As many logs at a time as `log.cleaner.threads` says, each on a thread that may block, all together
//! at `log.cleaner.io.max.bytes.per.second` at most, with `log.cleaner.dedupe.buffer.size` for their
//! maps. These settings are read anew for each log. A log that cannot be read is told of and left alone
//! until the next start; the others go on (case B32). Source: LogCleaner, LogCleanerManager.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use duolog_log_core::event::EventKind;
use duolog_log_core::log::compaction::{
    CompactedGroup, Compaction, CompactionError, CompactionPlan, CompactionStats, Installed,
    MapMemory, Pace, Stopped,
};
use duolog_log_core::log::{Compacted, LogError};
use duolog_log_core::storage::disk::DiskResult;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::append::AppendError;
use super::checkpoints::Checkpoint;
use super::task::Command;
use super::{Partition, Partitions};
use crate::config::values::Values;
use crate::limits::BLOCKING_THREADS_MAX;
use crate::node::Node;
use crate::random;

/// A pause is cut into pieces, so that a stop need not wait for its end.
const PAUSE_MAX: Duration = Duration::from_millis(50);

impl Partition {
    /// Up to here, exclusive, compaction has worked; `None` before it ever did.
    pub(super) fn cleaned_to(&self) -> Option<i64> {
        Some(self.cleaned_to.load(Ordering::Acquire)).filter(|offset| *offset >= 0)
    }

    pub(super) fn compacted(&self) -> Compacted {
        if self.cleaned_to().is_some() { Compacted::Once } else { Compacted::Never }
    }

    /// Whether there may be something to compact; asks nobody.
    fn may_be_dirty(&self) -> bool {
        let sealed = || self.open_reader().is_some_and(|reader| reader.segment_count() > 1);
        self.config().cleanup.compact
            && !self.is_moving()
            && self.was_opened()
            && !self.uncleanable.load(Ordering::Acquire)
            && sealed()
    }

    async fn plan_compaction(self: &Arc<Self>) -> Result<Option<CompactionPlan>, AppendError> {
        self.ask(Command::PlanCompaction).await
    }

    async fn install(self: &Arc<Self>, group: CompactedGroup) -> Result<Installed, AppendError> {
        self.ask(|reply| Command::Install(Box::new(group), reply)).await
    }
}

/// How cleaners work, by the settings in force.
#[derive(Clone, Copy, Debug)]
struct Settings {
    threads: usize,
    backoff: Duration,
    memory_bytes: usize,
    load_factor: f64,
    bytes_per_second: f64,
}

impl Settings {
    /// A value that cannot be read is what it is by default.
    fn of(values: &Values) -> Self {
        let threads: usize = values.parse("log.cleaner.threads").unwrap_or(1);
        // The others are for those that open and close logs.
        let threads = threads.min(BLOCKING_THREADS_MAX / 2);
        let backoff_ms: u64 = values.parse("log.cleaner.backoff.ms").unwrap_or(15_000);
        let memory_bytes: usize = values.parse("log.cleaner.dedupe.buffer.size").unwrap_or(1 << 27);
        Self {
            threads,
            // Never a loop without a pause.
            backoff: Duration::from_millis(backoff_ms.max(10)),
            memory_bytes: memory_bytes / threads.max(1),
            load_factor: values.parse("log.cleaner.io.buffer.load.factor").unwrap_or(0.9),
            bytes_per_second: values
                .parse("log.cleaner.io.max.bytes.per.second")
                .unwrap_or(f64::INFINITY),
        }
    }
}

/// Compacts what is dirty until the node stops.
pub(super) async fn run(node: Arc<Node>) {
    let throttle = Arc::new(Throttle::default());
    while !node.stopping.is_cancelled() {
        let settings = Settings::of(node.controller.image().values());
        let cleaned = clean_dirtiest(&node, settings, &throttle).await;
        if cleaned == 0 {
            tokio::select! {
                () = node.stopping.cancelled() => return,
                () = tokio::time::sleep(settings.backoff) => {}
            }
        }
    }
}

/// Compacts as many logs as there are threads; returns how many were compacted to some purpose.
async fn clean_dirtiest(node: &Node, settings: Settings, throttle: &Arc<Throttle>) -> usize {
    let mut plans = Vec::new();
    for partition in node.partitions.all().into_iter().chain(node.partitions.metadata()) {
        if !partition.may_be_dirty() {
            continue;
        }
        match partition.plan_compaction().await {
            Ok(Some(plan)) => plans.push((partition, plan)),
            Ok(None) => {}
            Err(error) => tracing::debug!(topic = %partition.topic, %error, "not compacted"),
        }
    }
    plans.sort_by(|(_, a), (_, b)| b.dirty_ratio().total_cmp(&a.dirty_ratio()));
    let mut cleaners = JoinSet::new();
    for (partition, plan) in plans.into_iter().take(settings.threads) {
        let cleaner = Cleaner {
            partition,
            partitions: node.partitions.clone(),
            settings,
            pace: Throttled {
                throttle: throttle.clone(),
                stopping: node.stopping.clone(),
                settings,
            },
        };
        cleaners.spawn(cleaner.clean(plan));
    }
    let outcomes = cleaners.join_all().await;
    outcomes.into_iter().filter(|progress| *progress == Progress::Made).count()
}

/// Whether a run has changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Made,
    None,
}

/// One run over one log.
struct Cleaner {
    partition: Arc<Partition>,
    partitions: Arc<Partitions>,
    settings: Settings,
    pace: Throttled,
}

impl Cleaner {
    async fn clean(self, plan: CompactionPlan) -> Progress {
        let started = Instant::now();
        let (first_dirty, _) = plan.dirty_range();
        let dir = self.partition.log_dir();
        match self.compact(plan).await {
            Ok((end, stats)) => {
                self.tell(end, stats, started);
                if end > first_dirty { Progress::Made } else { Progress::None }
            }
            Err(CompactionError::Stopped) => Progress::None,
            // Its files went with a move to another directory.
            Err(CompactionError::Log(_)) if !Arc::ptr_eq(&dir, &self.partition.log_dir()) => {
                Progress::None
            }
            Err(CompactionError::Log(error)) => {
                self.tell_failure(&error);
                Progress::None
            }
        }
    }

    /// Reads and writes on threads that may block, and lets the owner put what was written in place.
    async fn compact(
        &self,
        plan: CompactionPlan,
    ) -> Result<(i64, CompactionStats), CompactionError> {
        let partition = &self.partition;
        if partition.cleaned_to().is_none() {
            // From now on a gap in this log is no sign of a loss.
            self.checkpoint(plan.dirty_range().0).await?;
        }
        let seed = random::bytes::<8>().map(u64::from_be_bytes).unwrap_or_default();
        let memory = MapMemory {
            bytes: self.settings.memory_bytes,
            load_factor: self.settings.load_factor,
            seed,
        };
        let mut pace = self.pace.clone();
        let mut run = blocking(move || Compaction::start(plan, memory, &mut pace)).await??;
        loop {
            let mut pace = self.pace.clone();
            let (group, back) = blocking(move || (run.next_group(&mut pace), run)).await?;
            run = back;
            let Some(group) = group? else { break };
            match partition.install(group).await {
                Ok(Installed::Yes) => {}
                // Something else has changed the log: it is looked at again.
                Ok(Installed::Superseded) => return Err(CompactionError::Stopped),
                Err(AppendError::Log(error)) => return Err(error.into()),
                Err(_) => return Err(CompactionError::Stopped),
            }
        }
        self.checkpoint(run.end_offset()).await?;
        Ok((run.end_offset(), run.stats()))
    }

    /// Takes note, on disk too, of how far the log is compacted.
    async fn checkpoint(&self, offset: i64) -> Result<(), CompactionError> {
        let (partition, partitions) = (self.partition.clone(), self.partitions.clone());
        let write = move || -> DiskResult<()> {
            // Without the new segments the checkpoint would lie about the old ones.
            partition.shared.log_dirs.disk().sync_dir(&partition.dir())?;
            partition.cleaned_to.store(offset, Ordering::Release);
            Checkpoint::Cleaned.write_in(&partition.log_dir(), &partitions)
        };
        Ok(blocking(write).await?.map_err(LogError::from)?)
    }

    fn tell(&self, end: i64, stats: CompactionStats, started: Instant) {
        let partition = &self.partition;
        tracing::info!(
            topic = %partition.topic,
            partition = partition.index,
            up_to = end,
            keys = stats.keys,
            bytes_before = stats.bytes_before,
            bytes_after = stats.bytes_after,
            ms = started.elapsed().as_millis() as u64,
            "log compacted"
        );
        partition.emit(EventKind::LogCompact, Some(end), None);
    }

    fn tell_failure(&self, error: &LogError) {
        let partition = &self.partition;
        let is_over = !error.is_retriable();
        partition.uncleanable.store(is_over, Ordering::Release);
        if partition.is_gone() {
            return;
        }
        if is_over {
            tracing::error!(topic = %partition.topic, partition = partition.index, %error,
                "the log cannot be compacted and is left as it is until the next start");
        } else {
            tracing::warn!(topic = %partition.topic, partition = partition.index, %error,
                "compaction is tried again later");
        }
    }
}

/// Runs `work` on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CompactionError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| CompactionError::Stopped)
}

/// What all cleaners together have read and written.
#[derive(Debug, Default)]
struct Throttle(Mutex<Option<Budget>>);

#[derive(Clone, Copy, Debug)]
struct Budget {
    /// Until when all that was passed has been paid for.
    paid_until: Instant,
}

impl Throttle {
    /// How long to wait after `bytes` more.
    fn wait(&self, bytes: u64, bytes_per_second: f64, now: Instant) -> Duration {
        let cost = Duration::try_from_secs_f64(bytes as f64 / bytes_per_second.max(1.0));
        let cost = cost.unwrap_or(Duration::from_secs(3600));
        let mut held = self.0.lock();
        let from = held.map_or(now, |budget| budget.paid_until.max(now));
        let paid_until = from + cost;
        *held = Some(Budget { paid_until });
        paid_until.saturating_duration_since(now)
    }
}

/// A run at the pace that the settings allow, until the node stops.
#[derive(Clone)]
struct Throttled {
    throttle: Arc<Throttle>,
    stopping: CancellationToken,
    settings: Settings,
}

impl Pace for Throttled {
    fn passed(&mut self, bytes: u64) -> Result<(), Stopped> {
        let mut left = self.throttle.wait(bytes, self.settings.bytes_per_second, Instant::now());
        loop {
            if self.stopping.is_cancelled() {
                return Err(Stopped);
            }
            if left.is_zero() {
                return Ok(());
            }
            let pause = left.min(PAUSE_MAX);
            std::thread::sleep(pause);
            left -= pause;
        }
    }
}

#[cfg(test)]
mod tests;
