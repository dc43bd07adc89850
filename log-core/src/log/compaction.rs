//! Compaction: of each key only the newest record stays.
//!
//! 1. The log's owner makes a [`CompactionPlan`]: sealed segments below the last stable offset, and
//!    which of them are dirty, that is, not compacted since they were written.
//! 2. A [`Compaction`] does the work on any thread, while the log is written and read: it reads the
//!    keys of the dirty part into a map of bounded size ([`offset_map`]; what does not fit waits for
//!    the next run), and copies all segments up to there, in groups that fit one segment, without the
//!    records that the map knows newer ones of ([`filter`], [`transactions`]).
//! 3. The owner puts each written group in the place of its segments ([`Log::install`], [`swap`]).
//!
//! Offsets never change, and the last record of the log never goes. Readers keep the segments that
//! they read. Source: LogCleanerManager, Cleaner.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::reader::LogReader;
use super::{Log, LogConfig, LogError};
use crate::storage::disk::Disk;
use crate::storage::segment::Segment;

mod filter;
mod offset_map;
mod output;
mod run;
mod swap;
mod transactions;

pub use offset_map::MapMemory;
pub use run::{Compaction, CompactionError, CompactionStats, Pace, Stopped};
pub use swap::{CompactedGroup, Installed};

use filter::LastRecord;
pub(super) use swap::finish_swaps;

/// What is to be compacted of a log, at one moment.
#[derive(Debug)]
pub struct CompactionPlan {
    disk: Arc<dyn Disk>,
    dir: Arc<Path>,
    config: Arc<LogConfig>,
    reader: LogReader,
    /// All sealed segments, oldest first, and behind them the base offset of what follows.
    segments: Vec<Arc<Segment>>,
    sealed_end: i64,
    last_records: BTreeMap<i64, LastRecord>,
    /// Inclusive.
    first_dirty: i64,
    /// Exclusive.
    end: i64,
    dirty_ratio: f64,
    dirty_bytes: u64,
    now_ms: i64,
}

impl CompactionPlan {
    /// Dirty bytes of all that can be compacted: from 0 to 1.
    #[must_use]
    pub const fn dirty_ratio(&self) -> f64 {
        self.dirty_ratio
    }

    /// Bytes that were not compacted yet.
    #[must_use]
    pub const fn dirty_bytes(&self) -> u64 {
        self.dirty_bytes
    }

    /// The dirty offsets: `from` inclusive, `to` exclusive.
    #[must_use]
    pub const fn dirty_range(&self) -> (i64, i64) {
        (self.first_dirty, self.end)
    }
}

/// Offsets and sizes of a log's dirty part.
struct Dirty {
    first: i64,
    end: i64,
    clean_bytes: u64,
    dirty_bytes: u64,
}

impl Log {
    /// What there is to compact, if it is due: the policy says so, and more than
    /// `min.cleanable.dirty.ratio` of the log is dirty, or a record has waited `max.compaction.lag.ms`.
    ///
    /// `checkpoint` is where the last run ended, exclusive; one that does not fit this log counts as
    /// none. Nothing at `last_stable_offset` or above is compacted, nothing in the active segment, and
    /// nothing younger than `min.compaction.lag.ms`. Errors: `Storage`, `Closed`.
    pub fn plan_compaction(
        &self,
        checkpoint: Option<i64>,
        last_stable_offset: i64,
        now_ms: i64,
    ) -> Result<Option<CompactionPlan>, LogError> {
        self.check_writable()?;
        if !self.config.cleanup_policy.compacts() {
            return Ok(None);
        }
        let dirty = self.dirty(checkpoint, last_stable_offset, now_ms)?;
        if dirty.dirty_bytes == 0 || dirty.end <= dirty.first {
            return Ok(None);
        }
        let total = dirty.clean_bytes.saturating_add(dirty.dirty_bytes);
        let dirty_ratio = dirty.dirty_bytes as f64 / total.max(1) as f64;
        let is_due = dirty_ratio > self.config.min_cleanable_dirty_ratio
            || self.has_waited_too_long(dirty.first, now_ms)?;
        if !is_due {
            return Ok(None);
        }
        let sealed = self.segments.len().saturating_sub(1);
        let last_records = self.producers.iter().map(|(id, producer)| {
            let data_offset = producer.last_batch().map(|batch| batch.last_offset);
            (id, LastRecord { data_offset, epoch: producer.epoch })
        });
        Ok(Some(CompactionPlan {
            disk: Arc::clone(&self.disk),
            dir: Arc::clone(&self.dir),
            config: Arc::clone(&self.config),
            reader: self.reader(),
            segments: self.segments.iter().take(sealed).map(Arc::clone).collect(),
            sealed_end: self.active.base_offset(),
            last_records: last_records.collect(),
            first_dirty: dirty.first,
            end: dirty.end,
            dirty_ratio,
            dirty_bytes: dirty.dirty_bytes,
            now_ms,
        }))
    }

    /// Source: LogCleanerManager.cleanableOffsets, LogToClean.
    fn dirty(
        &self,
        checkpoint: Option<i64>,
        last_stable_offset: i64,
        now_ms: i64,
    ) -> Result<Dirty, LogError> {
        let (start, sealed_end) = (self.log_start, self.active.base_offset());
        let fits = |offset: &i64| (start..=sealed_end).contains(offset);
        let first = checkpoint.filter(fits).unwrap_or(start);
        let mut end = last_stable_offset.min(sealed_end);
        let lag_ms = self.config.min_compaction_lag_ms;
        let sealed = self.segments.len().saturating_sub(1);
        let from = self.segments.partition_point(|s| s.base_offset <= first).saturating_sub(1);
        if lag_ms > 0 {
            for segment in self.segments.iter().take(sealed).skip(from) {
                let newest = match segment.greatest()? {
                    Some(greatest) => greatest.timestamp,
                    None => segment.modified_ms()?,
                };
                if newest > now_ms.saturating_sub(lag_ms) {
                    end = end.min(segment.base_offset);
                    break;
                }
            }
        }
        let (mut clean_bytes, mut dirty_bytes) = (0_u64, 0_u64);
        for (index, segment) in self.segments.iter().enumerate().take(sealed) {
            if segment.base_offset >= end {
                break;
            }
            let bytes = if index >= from && first > segment.base_offset {
                // A run that found no room for all keys ended inside of it.
                let position = segment.position_before(first)?;
                clean_bytes += position;
                segment.size().saturating_sub(position)
            } else {
                segment.size()
            };
            let next = self.segments.get(index + 1).map_or(sealed_end, |next| next.base_offset);
            if next <= first {
                clean_bytes += bytes;
            } else {
                dirty_bytes += bytes;
            }
        }
        Ok(Dirty { first, end, clean_bytes, dirty_bytes })
    }

    /// Source: LogCleanerManager.maxCompactionDelay.
    fn has_waited_too_long(&self, first_dirty: i64, now_ms: i64) -> Result<bool, LogError> {
        let lag_ms = self.config.max_compaction_lag_ms.max(0);
        let Some(until) = now_ms.checked_sub(lag_ms).filter(|until| *until > 0) else {
            return Ok(false);
        };
        let sealed = self.segments.len().saturating_sub(1);
        let from =
            self.segments.partition_point(|s| s.base_offset <= first_dirty).saturating_sub(1);
        for segment in self.segments.iter().take(sealed).skip(from) {
            if segment.first_timestamp()?.is_some_and(|first| first > 0 && first < until) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
