//! One partition's log: append, read, roll, flush, truncate, retain.
//!
//! [`Log`] is the single writer and belongs to one owner; [`LogReader`]s are many and wait for
//! nobody. Segments are Kafka's files; the active one grows, the others never change. A batch is
//! admitted, numbered, written and published in this order, so what readers see is whole, and what
//! fails to be written never was there. Source: UnifiedLog, LocalLog.

use std::path::Path;
use std::sync::Arc;

use crate::ids::LeaderEpoch;
use crate::producers::Producers;
use crate::replication::epochs::LeaderEpochs;
use crate::storage::disk::Disk;
use crate::storage::segment::Segment;

mod active;
mod append;
mod append_time;
pub mod compaction;
pub mod config;
mod epoch_file;
pub mod error;
mod flush;
mod keys;
mod marker;
pub mod outcome;
mod reader;
mod recovery;
pub mod relocation;
mod retention;
mod roll;
mod search;
mod tags;
mod tail;
mod takeover;
mod truncate;
pub mod verification;
mod view;

pub use append_time::TimeBoundary;
pub use config::{CleanupPolicy, Compacted, LogConfig, LogIdentity, OnLoss, OpenHint, Shutdown};
pub use error::LogError;
pub use flush::FlushPoint;
pub use outcome::{
    AbortedTxn, AppendBatch, AppendOrigin, Appended, Damage, Novelty, ReadBatches, ReadMinimum,
    RecoveryReport, TimestampOffset,
};
pub use reader::LogReader;
pub use retention::Retained;
pub use tail::TailBudget;
pub use takeover::{Traces, each_batch};
pub use verification::{TxnEpochs, Verification, VerificationGuard, Verified};

use active::Active;
use epoch_file::EpochFile;
use retention::Deletion;
use tail::{ChunksChanged, TailWriter};
use verification::Verifications;
use view::{Shared, ViewParts};

/// The writer of one log.
#[derive(Debug)]
pub struct Log {
    disk: Arc<dyn Disk>,
    dir: Arc<Path>,
    identity: LogIdentity,
    config: Arc<LogConfig>,
    health: Health,
    shared: Arc<Shared>,
    /// By base offset; the last one is `active`'s.
    segments: Vec<Arc<Segment>>,
    active: Active,
    tail: TailWriter,
    producers: Producers,
    epochs: LeaderEpochs,
    /// Inclusive.
    log_start: i64,
    /// Exclusive.
    log_end: i64,
    /// Below it all is synced.
    recovery_point: i64,
    /// Sealed segments with unsynced bytes, oldest first.
    unsynced: Vec<Arc<Segment>>,
    /// Offsets of snapshots that are not synced, in the order of writing.
    unsynced_snapshots: Vec<i64>,
    /// Changes of names in the folder since it was last synced.
    names_changed: u64,
    /// Whether the folder itself is a name that may not be synced yet.
    folder_is_new: bool,
    /// Changes of the leader epochs since the log was opened.
    epochs_changed: u64,
    /// Of these, how many are in the file and synced.
    epochs_synced: u64,
    epoch_file: Arc<EpochFile>,
    last_flush_ms: i64,
    first_unflushed_ms: Option<i64>,
    deletions: Vec<Deletion>,
    verifications: Verifications,
    /// How often the set of open transactions may have changed since the log was opened.
    transactions_changed: u64,
    /// Dropped segments whose files still bear their names, since renaming them failed: in the order in which they go.
    undeleted: Vec<Arc<Segment>>,
}

/// Whether a log takes writes.
#[derive(Clone, Debug)]
enum Health {
    Writable,
    /// A file may hold other bytes than the log believes.
    Failed(String),
    Closed,
}

impl Log {
    /// Opens the log in `dir`, creating it when there is none, and recovers it as far as `hint`
    /// says is needed.
    ///
    /// Errors: `InconsistentTopicId` for a folder of another topic, `Corrupt`, `StorageFull`,
    /// `Storage`.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        identity: LogIdentity,
        config: Arc<LogConfig>,
        hint: OpenHint,
        now_ms: i64,
    ) -> Result<(Self, RecoveryReport), LogError> {
        recovery::open(disk, dir, identity, config, hint, now_ms)
    }

    /// Which partition this is.
    #[must_use]
    pub const fn identity(&self) -> &LogIdentity {
        &self.identity
    }

    /// A reader of this log; see also [`LogReader::clone`].
    #[must_use]
    pub fn reader(&self) -> LogReader {
        LogReader { shared: Arc::clone(&self.shared) }
    }

    /// The first offset that may be read: inclusive.
    #[must_use]
    pub const fn log_start_offset(&self) -> i64 {
        self.log_start
    }

    /// The offset of the next append.
    #[must_use]
    pub const fn log_end_offset(&self) -> i64 {
        self.log_end
    }

    /// What `log-start-offset-checkpoint` must hold: the log start, unless the files say it. Those of a dropped segment that
    /// could not be renamed say an earlier one.
    #[must_use]
    pub fn checkpointed_log_start(&self) -> Option<i64> {
        let held = self.segments.first().into_iter().chain(&self.undeleted);
        let first = held.map(|segment| segment.base_offset).min().unwrap_or(self.log_end);
        (self.log_start > first).then_some(self.log_start)
    }

    /// The newest leader epoch that wrote here.
    #[must_use]
    pub fn latest_epoch(&self) -> Option<LeaderEpoch> {
        self.epochs.latest().map(|entry| entry.epoch)
    }

    /// What is known of the producers.
    #[must_use]
    pub const fn producers(&self) -> &Producers {
        &self.producers
    }

    /// Moves on whenever other transactions may be open than before.
    #[must_use]
    pub const fn transactions_changed(&self) -> u64 {
        self.transactions_changed
    }

    /// Where the oldest transaction begins that is open, or whose marker the high watermark has not
    /// passed; readers with isolation must stay below it.
    #[must_use]
    pub fn first_unstable_offset(&self) -> Option<i64> {
        // Of a transaction that began below the log start, nothing before it can be read.
        self.producers.first_unstable_offset().map(|offset| offset.max(self.log_start))
    }

    /// Follows the high watermark; see [`Self::first_unstable_offset`].
    pub fn high_watermark_moved(&mut self, high_watermark: i64) {
        self.producers.high_watermark_moved(high_watermark);
    }

    /// Forgets producers that are silent for `producer.id.expiration.ms`; returns how many.
    pub fn expire_producers(&mut self, now_ms: i64) -> usize {
        let expiration_ms = self.config.producer_id_expiration_ms;
        self.verifications.expire(now_ms, expiration_ms);
        self.producers.expire(now_ms, expiration_ms)
    }

    /// The settings in force.
    #[must_use]
    pub const fn config(&self) -> &Arc<LogConfig> {
        &self.config
    }

    /// Takes other settings; they act from the next call on, those of a segment from the next
    /// segment on.
    pub fn set_config(&mut self, config: Arc<LogConfig>) {
        self.config = config;
        let max_bytes = self.config.tail_cache_bytes;
        self.shrink_tail(max_bytes);
    }

    /// Keeps at most `max_bytes` of the newest batches in memory from now on until the next append:
    /// for a log that nobody writes to or reads from the end.
    pub fn shrink_tail(&mut self, max_bytes: usize) {
        if self.tail.shrink(max_bytes) == ChunksChanged::Yes {
            self.publish_tail();
        }
    }

    /// Writes all that a start needs to find the log without a scan, synced, and refuses everything
    /// from then on. The directory's clean-shutdown marker may follow once all logs are closed.
    ///
    /// Errors: `StorageFull`, `Storage`; the next start must then take the shutdown for unclean.
    pub fn close_clean(&mut self, now_ms: i64) -> Result<(), LogError> {
        self.prepare_close()?;
        self.flush(now_ms)?;
        self.close();
        Ok(())
    }

    /// The part of [`Self::close_clean`] that writes. Returns what is to be synced, by any thread,
    /// before [`Self::mark_synced`] and [`Self::close`]; nothing may be appended in between.
    ///
    /// Errors: as there.
    pub fn prepare_close(&mut self) -> Result<Option<FlushPoint>, LogError> {
        self.write_what_waits()?;
        self.flush_point()
    }

    /// Writes what a start reads instead of a scan, unsynced.
    fn write_what_waits(&mut self) -> Result<(), LogError> {
        self.check_writable()?;
        self.active.finish_times();
        self.active.write_indexes(&*self.disk)?;
        self.active.write_append_times(&*self.disk, self.log_end)?;
        if self.log_end > self.log_start {
            self.write_snapshot(self.log_end)?;
        }
        Ok(())
    }

    /// Lets go of the files without writing anything; readers get `Closed`. A flush that is under way
    /// writes no file from then on.
    pub fn close(&mut self) {
        self.epoch_file.close();
        self.health = Health::Closed;
        self.tail.clear();
        self.shared.close();
    }

    /// Closes the log and renames its folder to `renamed`, for removal at leisure by
    /// [`Disk::remove_dir_all`].
    ///
    /// Errors: `Storage`.
    pub fn delete(mut self, renamed: &Path) -> Result<(), LogError> {
        self.close();
        self.disk.rename(&self.dir, renamed)?;
        if let Some(parent) = self.dir.parent() {
            self.disk.sync_dir(parent)?;
        }
        Ok(())
    }

    fn check_writable(&self) -> Result<(), LogError> {
        match &self.health {
            Health::Writable => Ok(()),
            Health::Failed(reason) => Err(LogError::Storage(reason.clone())),
            Health::Closed => Err(LogError::Closed),
        }
    }

    /// Refuses writes from now on; see [`LogError::Storage`].
    fn fail(&mut self, error: &dyn std::error::Error) {
        tracing::debug!(%error, partition = %self.identity.partition, "log takes no more writes");
        self.health = Health::Failed(error.to_string());
    }

    fn view_parts(&self) -> ViewParts {
        ViewParts {
            segments: self.segments.iter().map(Arc::clone).collect(),
            tail: self.tail.published(),
            log_start: self.log_start,
            log_end: self.log_end,
            epochs: Arc::new(self.epochs.clone()),
        }
    }

    /// Publishes other tail chunks, at the log end as it is now.
    fn publish_tail(&self) {
        let present = self.shared.load();
        self.shared.publish(ViewParts {
            segments: Arc::clone(&present.segments),
            tail: self.tail.published(),
            log_start: self.log_start,
            log_end: self.log_end,
            epochs: Arc::clone(&present.epochs),
        });
    }

    fn publish(&self) {
        self.shared.publish(self.view_parts());
    }

    fn publish_truncation(&self) {
        self.shared.publish_truncation(self.view_parts());
    }
}

#[cfg(test)]
mod tests;
