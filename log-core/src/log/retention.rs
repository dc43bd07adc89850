//! Which segments go, and how: renamed first, removed later, so that reads under way go on.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::config::CleanupPolicy;
use super::{Log, LogError};
use crate::ids::Offset;
use crate::storage::disk::DiskResult;
use crate::storage::names::{DELETED_SUFFIX, FileKind, FileName, SegmentPaths, parse, with_suffix};
use crate::storage::segment::Segment;

/// Files that were renamed and wait for their removal.
#[derive(Debug)]
pub(super) struct Deletion {
    due_ms: i64,
    paths: Vec<PathBuf>,
}

/// What a retention run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retained {
    /// Segments that went.
    pub segments_deleted: usize,
    /// Their bytes.
    pub bytes_deleted: u64,
}

impl Retained {
    /// Both together.
    const fn and(self, more: Self) -> Self {
        Self {
            segments_deleted: self.segments_deleted + more.segments_deleted,
            bytes_deleted: self.bytes_deleted + more.bytes_deleted,
        }
    }
}

impl Log {
    /// Drops segments that lie wholly below `high_watermark` and are too old (`retention.ms`), too
    /// many (`retention.bytes`) or below the log start. The log start moves with them.
    ///
    /// A segment's age is `now_ms` less its greatest record timestamp, or less the time of its last
    /// write when no record has one. An active segment that is due is rolled before it goes, once the
    /// others are gone; the last, empty one stays. Source: UnifiedLog.deleteOldSegments. Errors: `StorageFull`,
    /// `Storage`.
    pub fn apply_retention(
        &mut self,
        high_watermark: i64,
        now_ms: i64,
    ) -> Result<Retained, LogError> {
        self.check_writable()?;
        let deletes = match self.config.cleanup_policy {
            CleanupPolicy::Delete | CleanupPolicy::CompactAndDelete => true,
            CleanupPolicy::Compact | CleanupPolicy::Unlimited => false,
        };
        let mut count = self.count_below_log_start();
        if deletes {
            count = count.max(self.count_expired(now_ms)?).max(self.count_oversize());
        }
        count = count.min(self.count_replicated(high_watermark));
        if count == 0 {
            return Ok(Retained::default());
        }
        if count < self.segments.len() {
            return Ok(self.drop_oldest(count, now_ms));
        }
        // Sealed segments first: a roll needs room on the disk, which they may give back.
        let sealed =
            if count > 1 { self.drop_oldest(count - 1, now_ms) } else { Retained::default() };
        match self.roll_to(self.log_end, now_ms) {
            Ok(()) => Ok(sealed.and(self.drop_oldest(1, now_ms))),
            // The next run tries the rest again.
            Err(_) if sealed.segments_deleted > 0 => Ok(sealed),
            Err(error) => Err(error),
        }
    }

    /// Removes files that were dropped `file.delete.delay.ms` ago or earlier; returns how many.
    /// One that cannot be removed is tried again at the next call. None waits longer than that delay
    /// from now on, should the clock have been set back.
    pub fn remove_deleted(&mut self, now_ms: i64) -> usize {
        let mut removed = 0;
        let disk = &self.disk;
        let latest_ms = now_ms.saturating_add(self.config.file_delete_delay_ms);
        self.deletions.retain_mut(|deletion| {
            deletion.due_ms = deletion.due_ms.min(latest_ms);
            if deletion.due_ms > now_ms {
                return true;
            }
            deletion.paths.retain(|path| match disk.remove(path) {
                Ok(()) => {
                    removed += 1;
                    false
                }
                Err(error) => !error.is_not_found(),
            });
            !deletion.paths.is_empty()
        });
        removed
    }

    /// Removes the log files of a deletion that a stop interrupted, once the file of the epochs says where the log starts.
    /// On a full disk it cannot, and their room counts more.
    pub(super) fn finish_deletions(&mut self, deleted: &BTreeSet<i64>) -> DiskResult<()> {
        if deleted.is_empty() {
            return Ok(());
        }
        let changes = self.epochs_changed;
        let written = self.epoch_file.write(&*self.disk, &self.dir, &self.epochs, changes);
        if written.is_ok() {
            self.epochs_synced = changes;
        }
        for base_offset in deleted {
            let log = SegmentPaths::new(Arc::clone(&self.dir), *base_offset).of(FileKind::Log);
            self.disk.remove(&with_suffix(&log, DELETED_SUFFIX))?;
        }
        Ok(())
    }

    /// Drops the first `count` segments, of which the active one is none.
    fn drop_oldest(&mut self, count: usize, now_ms: i64) -> Retained {
        let dropped: Vec<Arc<Segment>> = self.segments.drain(..count).collect();
        let bytes_deleted = dropped.iter().map(|segment| segment.size()).sum();
        let first = self.segments.first().map_or(self.log_end, |segment| segment.base_offset);
        if first > self.log_start {
            self.log_start = first;
            if self.epochs.truncate_from_start(Offset(first)) {
                self.epochs_changed += 1;
            }
        }
        self.publish();
        self.delete_unneeded(&dropped, now_ms);
        Retained { segments_deleted: dropped.len(), bytes_deleted }
    }

    /// Segments that end at or below the log start; never the last.
    fn count_below_log_start(&self) -> usize {
        let ends = self.segments.iter().skip(1).map(|next| next.base_offset);
        ends.take_while(|end| *end <= self.log_start).count()
    }

    /// A segment that compaction has emptied is as old as its file, which is younger than what was in it: it goes no later
    /// than the one behind it.
    fn count_expired(&self, now_ms: i64) -> Result<usize, LogError> {
        let retention_ms = self.config.retention_ms;
        if retention_ms < 0 {
            return Ok(0);
        }
        let mut count = 0;
        for (segment, going) in self.but_a_last_empty_one().iter().zip(1..) {
            let newest = match segment.greatest()? {
                Some(greatest) => greatest.timestamp,
                None => segment.modified_ms()?,
            };
            if now_ms.saturating_sub(newest) > retention_ms {
                count = going;
            } else if segment.size() > 0 {
                break;
            }
        }
        Ok(count)
    }

    fn count_oversize(&self) -> usize {
        let Ok(retention_bytes) = u64::try_from(self.config.retention_bytes) else { return 0 };
        let total: u64 = self.segments.iter().map(|segment| segment.size()).sum();
        let Some(mut excess) = total.checked_sub(retention_bytes) else { return 0 };
        let goes = |segment: &&Arc<Segment>| {
            let left = excess.checked_sub(segment.size());
            excess = left.unwrap_or(excess);
            left.is_some()
        };
        self.but_a_last_empty_one().iter().take_while(goes).count()
    }

    fn but_a_last_empty_one(&self) -> &[Arc<Segment>] {
        match self.segments.split_last() {
            Some((last, before)) if last.size() == 0 => before,
            _ => &self.segments,
        }
    }

    /// Segments of which all records are replicated.
    fn count_replicated(&self, high_watermark: i64) -> usize {
        let ends = self.segments.iter().skip(1).map(|next| next.base_offset);
        ends.chain([self.log_end]).take_while(|end| *end <= high_watermark).count()
    }

    /// As [`Self::delete_segments`], of segments that do no harm where they stay: they go with the next ones, and before
    /// those. Behind one that stays none may go, or opening the log finds a gap and takes what follows for what a
    /// truncation has left. Until they go they are flushed like the others: what a start finds below the recovery point it
    /// takes for whole.
    pub(super) fn delete_unneeded(&mut self, dropped: &[Arc<Segment>], now_ms: i64) {
        self.undeleted.extend(dropped.iter().map(Arc::clone));
        let waiting = std::mem::take(&mut self.undeleted);
        let (gone, outcome) = self.delete_in_order(&waiting, now_ms);
        if let Err(error) = outcome {
            tracing::debug!(%error, partition = %self.identity.partition, "a segment stays");
        }
        // Nobody keeps the files of what is gone open until a flush.
        let is_gone = |held: &Arc<Segment>| waiting.iter().take(gone).any(|s| Arc::ptr_eq(s, held));
        self.unsynced.retain(|held| !is_gone(held));
        self.undeleted = waiting.into_iter().skip(gone).collect();
    }

    /// Renames the files of segments that no view leads to any more, in the order given: from one
    /// end of the log to its inside, so that a crash meanwhile leaves no gap.
    ///
    /// Errors: a log file could not be renamed. It and those after it stay under their names, where
    /// opening the log finds them again.
    pub(super) fn delete_segments(
        &mut self,
        dropped: &[Arc<Segment>],
        now_ms: i64,
    ) -> DiskResult<()> {
        self.delete_in_order(dropped, now_ms).1
    }

    /// How many are gone, and why not all of them.
    fn delete_in_order(
        &mut self,
        dropped: &[Arc<Segment>],
        now_ms: i64,
    ) -> (usize, DiskResult<()>) {
        let mut paths = Vec::new();
        let mut outcome = Ok(());
        let mut gone = 0;
        for segment in dropped {
            match segment.retire() {
                Ok(renamed) => paths.extend(renamed),
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
            gone += 1;
            // Without its log file it is removed at the next opening.
            let snapshot = self.rename_deleted(&segment.paths.of(FileKind::Snapshot));
            paths.extend(snapshot.unwrap_or_default());
        }
        self.schedule_deletion(paths, now_ms);
        (gone, outcome)
    }

    /// Drops the snapshots at `offset` and above. Errors: one of them is still there.
    pub(super) fn delete_snapshots_from(&mut self, offset: i64, now_ms: i64) -> DiskResult<()> {
        let mut paths = Vec::new();
        let mut outcome = Ok(());
        for entry in self.disk.list(&self.dir)? {
            if let FileName::Segment(FileKind::Snapshot, at) = parse(&entry.name)
                && at >= offset
            {
                let path = SegmentPaths::new(Arc::clone(&self.dir), at).of(FileKind::Snapshot);
                match self.rename_deleted(&path) {
                    Ok(renamed) => paths.extend(renamed),
                    Err(error) => outcome = Err(error),
                }
            }
        }
        self.schedule_deletion(paths, now_ms);
        outcome
    }

    /// The new name; `None` when there was no such file.
    pub(super) fn rename_deleted(&self, path: &std::path::Path) -> DiskResult<Option<PathBuf>> {
        let renamed = with_suffix(path, DELETED_SUFFIX);
        match self.disk.rename(path, &renamed) {
            Ok(()) => Ok(Some(renamed)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn schedule_deletion(&mut self, paths: Vec<PathBuf>, now_ms: i64) {
        if paths.is_empty() {
            return;
        }
        self.names_changed += 1;
        let due_ms = now_ms.saturating_add(self.config.file_delete_delay_ms);
        self.deletions.push(Deletion { due_ms, paths });
    }
}
