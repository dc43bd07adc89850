//! A new active segment: when, and what is written at the seam.

use std::sync::Arc;

use super::active::Active;
use super::{Log, LogError};
use crate::record::BatchHeader;
use crate::storage::checkpoint::{self, Durability};
use crate::storage::names::{FileKind, SegmentPaths};
use crate::storage::segment::Segment;
use crate::storage::snapshot;

impl Log {
    /// Seals the active segment and goes on in a new one that starts at the log end. An empty
    /// active segment stays, for its name says where the next record goes.
    ///
    /// Errors: `StorageFull`, `Storage`; then the log goes on in its old segment, of which more index
    /// entries and a snapshot may have been written.
    pub fn roll(&mut self, now_ms: i64) -> Result<(), LogError> {
        self.check_writable()?;
        self.roll_to(self.log_end, now_ms)
    }

    /// Rolls when `segment.ms` has passed for a segment whose records have no time, or when a clock
    /// is all that can tell; appends roll by themselves.
    pub fn roll_if_due(&mut self, now_ms: i64) -> Result<bool, LogError> {
        self.check_writable()?;
        let due = self.active.size() > 0
            && self.active.waited_ms(now_ms, now_ms) > self.config.segment_ms_max();
        if due {
            self.roll_to(self.log_end, now_ms)?;
        }
        Ok(due)
    }

    /// Whether `next`, to be written after `group_bytes` more bytes, belongs into a new segment.
    /// Source: LogSegment.shouldRoll.
    pub(super) fn must_roll(
        &self,
        next: &BatchHeader,
        end_offset: i64,
        group: GroupSoFar,
        now_ms: i64,
    ) -> bool {
        let config = &*self.config;
        let size = self.active.size() + group.bytes;
        let first_timestamp = self.active.first_timestamp.or(group.first_timestamp);
        let waited_ms = match first_timestamp {
            Some(first) if first >= 0 => next.max_timestamp.saturating_sub(first),
            _ => self.active.waited_ms(next.max_timestamp, now_ms),
        };
        let base_offset = end_offset.max(next.base_offset);
        let last_offset = base_offset.saturating_add(i64::from(next.last_offset_delta));
        let relative = last_offset.saturating_sub(self.active.base_offset());
        size + next.size_in_bytes() as u64 > u64::from(config.segment_bytes)
            || (size > 0 && waited_ms > config.segment_ms_max())
            || self.active.indexes_are_full(config)
            || relative > i64::from(i32::MAX)
    }

    /// Goes on in a new segment that starts at `base_offset`, at or above the log end.
    pub(super) fn roll_to(&mut self, base_offset: i64, now_ms: i64) -> Result<(), LogError> {
        if self.active.size() == 0 && self.active.base_offset() == base_offset {
            return Ok(());
        }
        self.active.finish_times();
        self.active.write_indexes(&*self.disk)?;
        self.active.write_append_times(&*self.disk, self.log_end)?;
        self.write_snapshot(base_offset)?;
        let created = Active::create(&self.disk, &self.dir, base_offset, &self.config, now_ms)?;
        created.follow_times(&self.active);
        let sealed = std::mem::replace(&mut self.active, created);
        self.names_changed += 1;
        if sealed.size() == 0 {
            // Only a follower that jumps ahead leaves an empty segment; its name is not needed.
            self.segments.pop();
            self.delete_unneeded(&[sealed.segment], now_ms);
        } else {
            let sealed = Arc::new(Segment::sealed(sealed.segment.parts()));
            self.unsynced.push(Arc::clone(&sealed));
            self.segments.pop();
            self.segments.push(sealed);
        }
        self.segments.push(Arc::clone(&self.active.segment));
        self.publish();
        Ok(())
    }

    /// Writes the producers as they are at the log end, under the name of `offset`.
    pub(super) fn write_snapshot(&mut self, offset: i64) -> Result<(), LogError> {
        let path = SegmentPaths::new(Arc::clone(&self.dir), offset).of(FileKind::Snapshot);
        let content = snapshot::encode(&self.producers);
        checkpoint::write(&*self.disk, &path, &content, Durability::Unsynced)?;
        self.names_changed += 1;
        self.unsynced_snapshots.push(offset);
        Ok(())
    }
}

/// What already waits to be written before a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupSoFar {
    pub(super) bytes: u64,
    pub(super) first_timestamp: Option<i64>,
}
