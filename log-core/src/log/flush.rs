//! Making a log durable, off the thread that writes it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::epoch_file::EpochFile;
use super::{Log, LogError};
use crate::replication::epochs::LeaderEpochs;
use crate::storage::disk::{Disk, DiskError, DiskFile, OpenMode};
use crate::storage::names::{FileKind, SegmentPaths};
use crate::storage::segment::Segment;

/// What must be synced so that the log is durable up to an offset.
///
/// Any thread may call [`Self::sync`]; the log's owner then calls [`Log::mark_synced`].
#[derive(Clone, Debug)]
pub struct FlushPoint {
    offset: i64,
    disk: Arc<dyn Disk>,
    dir: Arc<Path>,
    /// Log files that were written to since the last flush.
    logs: Vec<Arc<dyn DiskFile>>,
    /// Small files beside them, opened for the sync alone.
    others: Vec<PathBuf>,
    /// Written anew and synced, when they changed.
    epochs: Option<LeaderEpochs>,
    /// Also tells whose flush point this is.
    epoch_file: Arc<EpochFile>,
    /// Where the log's own folder is a new name.
    parent: Option<PathBuf>,
    covered: Covered,
}

/// The state of a log that a flush point covers.
#[derive(Clone, Debug)]
struct Covered {
    generation: u64,
    names_changed: u64,
    /// Changes since the log was opened.
    epochs_changed: u64,
    /// The sealed segments are those that begin below this offset.
    sealed_below: i64,
    snapshots: usize,
}

impl FlushPoint {
    /// Up to where the log will be durable: exclusive.
    #[must_use]
    pub const fn offset(&self) -> i64 {
        self.offset
    }

    /// Whether it leaves out the active segment, which answers wait for: see
    /// [`Log::sealed_flush_point`].
    #[must_use]
    pub const fn is_of_sealed_only(&self) -> bool {
        self.offset <= self.covered.sealed_below
    }

    /// Syncs files and names. Blocks for as long as the device takes.
    ///
    /// After an error that [`DiskError::is_retriable`] nothing is lost: make another flush point
    /// later. Tell the log of any other by [`Log::sync_failed`]: what was written before may be lost
    /// even when a later sync succeeds.
    pub fn sync(&self) -> Result<(), DiskError> {
        for log in &self.logs {
            match log.sync() {
                // Retention removed it meanwhile.
                Err(error) if error.is_not_found() => {}
                result => result?,
            }
        }
        for path in &self.others {
            match self.disk.open(path, OpenMode::Existing) {
                Ok(file) => file.sync()?,
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        if let Some(epochs) = &self.epochs {
            self.epoch_file.write(&*self.disk, &self.dir, epochs, self.covered.epochs_changed)?;
        }
        if self.covered.names_changed > 0 {
            self.disk.sync_dir(&self.dir)?;
        }
        match &self.parent {
            Some(parent) => self.disk.sync_dir(parent),
            None => Ok(()),
        }
    }
}

impl Log {
    /// What to sync so that all that is written now is durable; `None` when it already is.
    ///
    /// Index entries and append times are written first. Where there is no room for them they wait
    /// for the next flush: a start makes those of the active segment anew. Errors: `Storage`,
    /// `Closed`.
    pub fn flush_point(&mut self) -> Result<Option<FlushPoint>, LogError> {
        self.check_writable()?;
        let is_synced = self.log_end == self.recovery_point && self.names_changed == 0;
        if is_synced && !self.epochs_wait() {
            return Ok(None);
        }
        let written = self.active.write_indexes(&*self.disk).and_then(|()| {
            if self.active.has_many_times_pending() {
                self.active.write_append_times(&*self.disk, self.log_end)
            } else {
                Ok(())
            }
        });
        if let Err(error) = written {
            tracing::debug!(%error, partition = %self.identity.partition, "index entries wait");
        }
        Ok(Some(self.point(self.log_end, Some(&self.active.segment))))
    }

    /// What to sync so that all segments but the active one are durable, and where the log starts;
    /// `None` when they are.
    ///
    /// To be asked for after every roll: what is sealed is then neither scanned nor cut after a
    /// crash. And after retention. Source: UnifiedLog.roll, which schedules the flush;
    /// LeaderEpochFileCache.truncateFromStartAsyncFlush. Errors: `Storage`, `Closed`.
    pub fn sealed_flush_point(&self) -> Result<Option<FlushPoint>, LogError> {
        self.check_writable()?;
        let point = || self.point(self.active.base_offset(), None);
        Ok((self.has_unsynced_segments() || self.epochs_wait_to_delete()).then(point))
    }

    /// Whether files wait for their removal that alone say that nothing is missing before the first
    /// segment. Once the epochs are on file that says it.
    fn epochs_wait_to_delete(&self) -> bool {
        !self.deletions.is_empty() && self.epochs_wait()
    }

    /// Whether there are sealed segments that [`Self::sealed_flush_point`] would sync.
    #[must_use]
    pub const fn has_unsynced_segments(&self) -> bool {
        !self.unsynced.is_empty()
    }

    /// Whether the file of the leader epochs is to be written.
    const fn epochs_wait(&self) -> bool {
        self.epochs_changed > self.epochs_synced
    }

    /// A flush of all sealed segments, and of the active one if it is given.
    fn point(&self, offset: i64, active: Option<&Arc<Segment>>) -> FlushPoint {
        let kinds = [
            FileKind::OffsetIndex,
            FileKind::TimeIndex,
            FileKind::TxnIndex,
            FileKind::AppendTimeIndex,
        ];
        let index_paths = |segment: &Arc<Segment>| kinds.map(|kind| segment.paths.of(kind));
        let segments = || self.unsynced.iter().chain(active);
        let mut others: Vec<_> = segments().flat_map(index_paths).collect();
        others.extend(self.unsynced_snapshots.iter().map(|offset| {
            SegmentPaths::new(Arc::clone(&self.dir), *offset).of(FileKind::Snapshot)
        }));
        FlushPoint {
            offset,
            disk: Arc::clone(&self.disk),
            dir: Arc::clone(&self.dir),
            logs: segments().map(|segment| Arc::clone(&segment.log)).collect(),
            others,
            epochs: self.epochs_wait().then(|| self.epochs.clone()),
            epoch_file: Arc::clone(&self.epoch_file),
            parent: self.dir.parent().filter(|_| self.folder_is_new).map(Path::to_owned),
            covered: Covered {
                generation: self.shared.generation(),
                names_changed: self.names_changed,
                epochs_changed: self.epochs_changed,
                sealed_below: self.active.base_offset(),
                snapshots: self.unsynced_snapshots.len(),
            },
        }
    }

    /// Whether this log gave out `point` since it was opened; one of an earlier opening says
    /// nothing about this one.
    #[must_use]
    pub fn has_issued(&self, point: &FlushPoint) -> bool {
        Arc::ptr_eq(&point.epoch_file, &self.epoch_file)
    }

    /// Takes note that [`FlushPoint::sync`] succeeded. A flush from before a truncation says
    /// nothing about what was written after it, nor does one that [`Self::has_issued`] denies.
    pub fn mark_synced(&mut self, point: &FlushPoint, now_ms: i64) {
        let covered = &point.covered;
        if !self.has_issued(point) || covered.generation != self.shared.generation() {
            return;
        }
        let is_further = point.offset > self.recovery_point;
        self.recovery_point = self.recovery_point.max(point.offset);
        // Retention may have dropped some of them meanwhile.
        self.unsynced.retain(|segment| segment.base_offset >= covered.sealed_below);
        self.unsynced_snapshots.drain(..covered.snapshots.min(self.unsynced_snapshots.len()));
        self.names_changed = self.names_changed.saturating_sub(covered.names_changed);
        self.epochs_synced = self.epochs_synced.max(covered.epochs_changed);
        self.folder_is_new &= point.parent.is_none();
        self.last_flush_ms = now_ms;
        if is_further || self.log_end == self.recovery_point {
            self.first_unflushed_ms = (self.log_end > self.recovery_point).then_some(now_ms);
        }
    }

    /// Takes note that a sync failed: the log refuses writes until it is opened again.
    pub fn sync_failed(&mut self, error: &DiskError) {
        self.fail(error);
    }

    /// Flushes on this thread.
    ///
    /// Errors: `StorageFull`, `Storage`.
    pub fn flush(&mut self, now_ms: i64) -> Result<(), LogError> {
        let Some(point) = self.flush_point()? else { return Ok(()) };
        match point.sync() {
            Ok(()) => self.mark_synced(&point, now_ms),
            Err(error) => {
                if !error.is_retriable() {
                    self.sync_failed(&error);
                }
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Up to where the log is durable: exclusive. What `recovery-point-offset-checkpoint` holds.
    #[must_use]
    pub const fn recovery_point(&self) -> i64 {
        self.recovery_point
    }

    /// Records that are written but not synced; `flush.messages` compares with it.
    #[must_use]
    pub const fn unflushed_messages(&self) -> i64 {
        self.log_end - self.recovery_point
    }

    /// When the last flush ended, or the log was opened.
    #[must_use]
    pub const fn last_flush_ms(&self) -> i64 {
        self.last_flush_ms
    }

    /// Since when records have been waiting for a flush; `flush.ms` counts from it.
    #[must_use]
    pub const fn first_unflushed_ms(&self) -> Option<i64> {
        self.first_unflushed_ms
    }
}
