//! Cutting a log's end, and moving its start.

use std::sync::Arc;

use super::active::Active;
use super::recovery::{Inventory, Snapshots};
use super::{Log, LogError};
use crate::ids::Offset;
use crate::producers::Producers;
use crate::replication::epochs::LeaderEpochs;
use crate::storage::segment::Segment;

impl Log {
    /// Drops all records at `offset` and above; batches go as a whole, so the log may end below
    /// `offset`. Returns the log end.
    ///
    /// The recovery point falls with it: write its checkpoint before the next append, or a power
    /// cut leaves one that vouches for bytes it never saw. Errors: `StorageFull`, `Storage`; once
    /// the cut has begun the log refuses writes from then on, until it is opened again.
    pub fn truncate_to(&mut self, offset: i64, now_ms: i64) -> Result<i64, LogError> {
        self.check_writable()?;
        if offset >= self.log_end {
            return Ok(self.log_end);
        }
        if offset <= self.first_base_offset() || offset <= self.log_start {
            self.truncate_fully_and_start_at(offset, now_ms)?;
            return Ok(offset);
        }
        let kept = self.segments.partition_point(|segment| segment.base_offset < offset).max(1);
        let Some(last) = self.segments.get(kept - 1).cloned() else { return Err(LogError::Closed) };
        let position = last.position_of(offset)?;
        let (active, log_end) = Active::cut(&last, position, &self.config, now_ms)?;
        self.active = active;
        self.log_end = log_end;
        let mut dropped = self.segments.split_off(kept);
        self.segments.pop();
        self.segments.push(Arc::clone(&self.active.segment));
        self.tail.clear();
        self.epochs.truncate_from_end(Offset(log_end));
        self.forget_flushes_from(log_end);
        // Readers let go of what is cut before it is.
        self.publish_truncation();
        self.epochs_changed += 1;
        dropped.reverse();
        self.cut_files(&dropped, now_ms).inspect_err(|error| self.fail(error))?;
        Ok(log_end)
    }

    /// The part of a truncation that changes files: removes those of `dropped`, newest first, then cuts
    /// the active segment's, and builds the producers anew.
    ///
    /// A crash at any point, also one that forgets what was not synced, leaves a log that ends early
    /// or late and has no gap: names go in their order, and the cut is made when they are gone for
    /// good. So a gap below the recovery point is damage, and what lies behind it is kept
    /// (`recovery.rs`).
    fn cut_files(&mut self, dropped: &[Arc<Segment>], now_ms: i64) -> Result<(), LogError> {
        self.delete_segments(dropped, now_ms)?;
        self.delete_snapshots_from(self.log_end + 1, now_ms)?;
        if !dropped.is_empty() {
            self.disk.sync_dir(&self.dir)?;
        }
        self.active.cut_files(&*self.disk)?;
        // Before anything is written behind the cut: a power cut that kept the new bytes but not the cut would find old
        // batches after new ones, each of them whole.
        self.active.segment.log.sync()?;
        self.disk.sync_dir(&self.dir)?;
        self.reload_producers(now_ms)
    }

    /// Drops everything and starts anew at `offset`. See [`Self::truncate_to`] for the recovery
    /// point.
    ///
    /// Errors: `StorageFull`, `Storage`; the log then refuses writes until it is opened again.
    pub fn truncate_fully_and_start_at(
        &mut self,
        offset: i64,
        now_ms: i64,
    ) -> Result<(), LogError> {
        self.check_writable()?;
        let mut dropped = std::mem::take(&mut self.segments);
        self.log_start = offset;
        self.log_end = offset;
        self.tail.clear();
        self.epochs = LeaderEpochs::default();
        self.producers = Producers::starting_at(offset);
        self.forget_flushes_from(offset);
        self.publish_truncation();
        self.epochs_changed += 1;
        dropped.reverse();
        // What retention could not remove must not be found behind what begins now.
        dropped.extend(std::mem::take(&mut self.undeleted).into_iter().rev());
        self.start_anew(&dropped, now_ms).inspect_err(|error| self.fail(error))?;
        self.names_changed += 1;
        self.segments.push(Arc::clone(&self.active.segment));
        self.publish();
        Ok(())
    }

    /// Removes all files but those of an empty segment at the log end.
    fn start_anew(&mut self, dropped: &[Arc<Segment>], now_ms: i64) -> Result<(), LogError> {
        self.delete_segments(dropped, now_ms)?;
        self.delete_snapshots_from(i64::MIN, now_ms)?;
        self.active = Active::create(&self.disk, &self.dir, self.log_end, &self.config, now_ms)?;
        self.disk.sync_dir(&self.dir)?;
        Ok(())
    }

    /// Lets the log start at `offset`, which may lie inside a batch; a lower one changes nothing.
    /// Whole segments below it go at the next retention run. Returns whether it moved.
    ///
    /// Errors: `OffsetOutOfRange` above the log end.
    pub fn set_log_start_offset(&mut self, offset: i64) -> Result<bool, LogError> {
        self.check_writable()?;
        if offset > self.log_end {
            let (log_start_offset, log_end_offset) = (self.log_start, self.log_end);
            return Err(LogError::OffsetOutOfRange { offset, log_start_offset, log_end_offset });
        }
        if offset <= self.log_start {
            return Ok(false);
        }
        self.log_start = offset;
        if self.epochs.truncate_from_start(Offset(offset)) {
            self.epochs_changed += 1;
        }
        self.publish();
        Ok(true)
    }

    /// Tells a log that was just opened how far it was known to be replicated: a transaction that ended is unstable
    /// until its marker is. What the files say of the producers leaves that out when they are newer.
    ///
    /// Errors: `Storage`.
    pub fn opened_at_high_watermark(
        &mut self,
        high_watermark: i64,
        now_ms: i64,
    ) -> Result<(), LogError> {
        if high_watermark < self.log_end && self.producers.has_ended_transactions() {
            self.producers = self.load_producers(high_watermark, now_ms)?;
        }
        self.high_watermark_moved(high_watermark);
        Ok(())
    }

    /// Builds the producers anew for a log that was cut.
    fn reload_producers(&mut self, now_ms: i64) -> Result<(), LogError> {
        let mut producers = self.load_producers(self.log_end, now_ms)?;
        producers.take_unreplicated_of(&self.producers);
        self.producers = producers;
        Ok(())
    }

    /// The producers at the log end, from the newest snapshot at or below `limit` and what was written after it.
    fn load_producers(&self, limit: i64, now_ms: i64) -> Result<Producers, LogError> {
        let mut offsets = Inventory::snapshots(&*self.disk, &self.dir)?;
        drop(offsets.split_off(&limit.saturating_add(1)));
        let mut snapshots = Snapshots {
            disk: &*self.disk,
            dir: &self.dir,
            offsets: &mut offsets,
            now_ms,
            expiration_ms: self.config.producer_id_expiration_ms,
        };
        Ok(snapshots.load(&self.segments, self.log_end)?.producers)
    }

    fn first_base_offset(&self) -> i64 {
        self.segments.first().map_or(self.log_end, |segment| segment.base_offset)
    }

    /// What was flushed of the part from `offset` on is gone.
    fn forget_flushes_from(&mut self, offset: i64) {
        self.recovery_point = self.recovery_point.min(offset);
        self.unsynced.retain(|segment| segment.base_offset < offset);
        self.unsynced_snapshots.retain(|snapshot| *snapshot <= offset);
    }
}
