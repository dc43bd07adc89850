//! Reading a log, by offset and by what it says about itself.

use std::sync::Arc;

use super::LogError;
use super::outcome::{AbortedTxn, ReadBatches, ReadMinimum};
use super::tail::{Tail, TailBudget};
use super::view::{Shared, View, ViewParts};
use crate::ids::{LeaderEpoch, Offset};
use crate::replication::epochs::{EpochEnd, EpochEntry, LeaderEpochs};
use crate::storage::segment::{ReadBounds, SegmentEnd};

/// Reads one log. Cheap to clone; calls read files but wait for no lock that a writer holds during
/// a write.
#[derive(Clone, Debug)]
pub struct LogReader {
    pub(super) shared: Arc<Shared>,
}

impl LogReader {
    /// Reads a log that holds nothing, begins at 0, and has no files.
    #[must_use]
    pub fn empty() -> Self {
        let nothing = ViewParts {
            segments: Arc::default(),
            tail: Tail::default(),
            log_start: 0,
            log_end: 0,
            epochs: Arc::default(),
        };
        let none = || Arc::new(TailBudget::new(0));
        Self { shared: Arc::new(Shared::new(nothing, none(), none())) }
    }

    /// The first offset that may be read: inclusive.
    #[must_use]
    pub fn log_start_offset(&self) -> i64 {
        self.shared.load().log_start
    }

    /// The offset of the next append: exclusive end of what may be read.
    #[must_use]
    pub fn log_end_offset(&self) -> i64 {
        self.shared.load().log_end()
    }

    /// Bytes of all segments' batches.
    #[must_use]
    pub fn size_in_bytes(&self) -> u64 {
        self.shared.load().segments.iter().map(|segment| segment.size()).sum()
    }

    /// Segments, the active one included.
    #[must_use]
    pub fn segment_count(&self) -> usize {
        self.shared.load().segments.len()
    }

    /// Reads whole batches from the one that holds `start_offset` (or the first after it) on, all
    /// of whose records lie below `end_offset`: `max_bytes` of them, or less at the end.
    ///
    /// What the log keeps in memory is shared, the rest read from files. Errors: `OffsetOutOfRange`
    /// unless `start_offset` lies from the log start to the log end; `Corrupt`; `Storage`.
    pub fn read(
        &self,
        start_offset: i64,
        max_bytes: usize,
        end_offset: i64,
        minimum: ReadMinimum,
    ) -> Result<ReadBatches, LogError> {
        self.shared.read(|view| view.read(start_offset, max_bytes, end_offset, minimum))
    }

    /// As [`Self::read`], with [`Self::aborted_transactions`] up to what was read: both of one moment. What compaction or
    /// retention takes in between would let aborted records seem committed.
    pub fn read_with_aborted(
        &self,
        start_offset: i64,
        max_bytes: usize,
        end_offset: i64,
        minimum: ReadMinimum,
    ) -> Result<(ReadBatches, Vec<AbortedTxn>), LogError> {
        self.shared.read(|view| {
            let batches = view.read(start_offset, max_bytes, end_offset, minimum)?;
            let aborted = view.aborted_transactions(start_offset, batches.next_offset)?;
            Ok((batches, aborted))
        })
    }

    /// The aborted transactions that a reader of `start_offset` (inclusive) to `end_offset`
    /// (exclusive) must know. Source: LogSegment.collectAbortedTxns.
    pub fn aborted_transactions(
        &self,
        start_offset: i64,
        end_offset: i64,
    ) -> Result<Vec<AbortedTxn>, LogError> {
        self.shared.read(|view| view.aborted_transactions(start_offset, end_offset))
    }

    /// The leader epochs of the log.
    #[must_use]
    pub fn leader_epochs(&self) -> Arc<LeaderEpochs> {
        Arc::clone(&self.shared.load().epochs)
    }

    /// Where `epoch` ends in this log, led since `current`; see [`LeaderEpochs::end_offset_for_leader`].
    #[must_use]
    pub fn end_offset_for_epoch(
        &self,
        epoch: LeaderEpoch,
        current: EpochEntry,
    ) -> Option<EpochEnd> {
        let view = self.shared.load();
        // Records may have been deleted since, or the log opened anew in the same epoch.
        let written = view.epochs.latest().filter(|latest| latest.epoch == current.epoch);
        let current = written.unwrap_or(current);
        view.epochs.end_offset_for_leader(epoch, current, Offset(view.log_end()))
    }
}

impl View {
    pub(super) fn read(
        &self,
        start_offset: i64,
        max_bytes: usize,
        end_offset: i64,
        minimum: ReadMinimum,
    ) -> Result<ReadBatches, LogError> {
        self.check_range(start_offset)?;
        let log_end = self.log_end();
        let end_offset = end_offset.min(log_end);
        let bounds = ReadBounds { max_bytes: max_bytes as u64, end_offset, log_end, minimum };
        match self.read_tail(start_offset, bounds) {
            Some(batches) => Ok(batches),
            None => self.read_files(start_offset, bounds),
        }
    }

    pub(super) fn aborted_transactions(
        &self,
        start_offset: i64,
        end_offset: i64,
    ) -> Result<Vec<AbortedTxn>, LogError> {
        let mut found = Vec::new();
        let from = self.segment_index(start_offset);
        for segment in self.segments.get(from..).unwrap_or_default() {
            for txn in segment.aborted()?.iter() {
                if txn.last_offset >= start_offset && txn.first_offset < end_offset {
                    found.push(txn);
                }
                if txn.last_stable_offset >= end_offset {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    /// Batches that are kept in memory; `None` when `start_offset` lies before them.
    fn read_tail(&self, start_offset: i64, bounds: ReadBounds) -> Option<ReadBatches> {
        let mut read = ReadBatches { next_offset: start_offset, ..ReadBatches::default() };
        if start_offset >= bounds.end_offset {
            return Some(read);
        }
        for batch in self.tail.iter_from(start_offset)? {
            let size = read.size + batch.bytes.len();
            let first_alone = read.size == 0 && bounds.minimum == ReadMinimum::OneBatch;
            if batch.next_offset > bounds.end_offset
                || (size as u64 > bounds.max_bytes && !first_alone)
            {
                break;
            }
            read.pieces.push(batch.bytes.clone());
            read.size = size;
            read.next_offset = batch.next_offset;
        }
        Some(read)
    }

    fn read_files(&self, start_offset: i64, bounds: ReadBounds) -> Result<ReadBatches, LogError> {
        let mut read = ReadBatches { next_offset: start_offset, ..ReadBatches::default() };
        let from = self.segment_index(start_offset);
        for segment in self.segments.get(from..).unwrap_or_default() {
            if segment.base_offset >= bounds.end_offset {
                break;
            }
            let minimum = if read.size == 0 { bounds.minimum } else { ReadMinimum::Nothing };
            let max_bytes = bounds.max_bytes.saturating_sub(read.size as u64);
            let found =
                segment.read(read.next_offset, ReadBounds { max_bytes, minimum, ..bounds })?;
            read.size += found.bytes.len();
            read.next_offset = found.next_offset;
            if !found.bytes.is_empty() {
                read.pieces.push(found.bytes);
            }
            if found.end == SegmentEnd::NotReached || read.size as u64 >= bounds.max_bytes {
                return Ok(read);
            }
        }
        if read.size == 0 {
            // Nothing is left of the offsets up to there.
            read.next_offset = read.next_offset.max(bounds.end_offset);
        }
        Ok(read)
    }
}
