//! Which batches of a segment get an index entry: one for every `index.interval.bytes`, and a last
//! time entry when the segment is sealed. Source: LogSegment.append, onBecomeInactiveSegment.

use super::index::{OffsetEntry, TimeEntry};
use crate::record::BatchHeader;
use crate::record::batch::NO_TIMESTAMP;

/// Follows a segment batch by batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SparseIndexer {
    base_offset: i64,
    interval_bytes: u64,
    bytes_since_entry: u64,
    greatest: Greatest,
    last_time_entry: i64,
}

/// The greatest timestamp of a segment, and the last offset of the first batch that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Greatest {
    pub(crate) timestamp: i64,
    pub(crate) offset: i64,
}

impl SparseIndexer {
    /// Of an empty segment.
    pub(crate) fn new(base_offset: i64, interval_bytes: u32) -> Self {
        Self {
            base_offset,
            interval_bytes: u64::from(interval_bytes),
            bytes_since_entry: 0,
            greatest: Greatest { timestamp: NO_TIMESTAMP, offset: base_offset },
            last_time_entry: NO_TIMESTAMP,
        }
    }

    /// Of a segment whose entries are known up to its end.
    pub(crate) fn resume(base_offset: i64, interval_bytes: u32, last: Option<TimeEntry>) -> Self {
        let mut indexer = Self::new(base_offset, interval_bytes);
        if let Some(entry) = last {
            let offset = base_offset.saturating_add(i64::from(entry.relative_offset));
            indexer.greatest = Greatest { timestamp: entry.timestamp, offset };
            indexer.last_time_entry = entry.timestamp;
        }
        indexer
    }

    pub(crate) const fn greatest(&self) -> Greatest {
        self.greatest
    }

    /// Takes in the batch at `position`; returns the entries that the indexes get for it.
    pub(crate) fn observe(
        &mut self,
        header: &BatchHeader,
        position: u64,
    ) -> (Option<OffsetEntry>, Option<TimeEntry>) {
        let last_offset = header.last_offset();
        if header.max_timestamp > self.greatest.timestamp {
            self.greatest = Greatest { timestamp: header.max_timestamp, offset: last_offset };
        }
        let due = self.bytes_since_entry > self.interval_bytes;
        if due {
            self.bytes_since_entry = 0;
        }
        self.bytes_since_entry += header.size_in_bytes() as u64;
        if !due {
            return (None, None);
        }
        (self.entry(last_offset, position), self.time_entry())
    }

    /// The entry that leads from `offset` to `position`, if both fit into one.
    pub(crate) fn entry(&self, offset: i64, position: u64) -> Option<OffsetEntry> {
        let position = u32::try_from(position).ok()?;
        Some(OffsetEntry { relative_offset: self.relative(offset)?, position })
    }

    /// The time entry for all taken in so far, unless the last one says as much.
    pub(crate) fn time_entry(&mut self) -> Option<TimeEntry> {
        let Greatest { timestamp, offset } = self.greatest;
        if timestamp <= self.last_time_entry {
            return None;
        }
        let entry = TimeEntry { timestamp, relative_offset: self.relative(offset)? };
        self.last_time_entry = timestamp;
        Some(entry)
    }

    fn relative(&self, offset: i64) -> Option<u32> {
        u32::try_from(offset.checked_sub(self.base_offset)?).ok()
    }
}
