//! The writer's side of the active segment.

use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;

use super::{AbortedTxn, LogConfig, LogError};
use crate::record::BatchHeader;
use crate::record::batch::NO_TIMESTAMP;
use crate::storage::append_times::{APPEND_TIMES, AppendTimeEntry, RecordedTimes};
use crate::storage::checkpoint::{self, Durability};
use crate::storage::disk::{Disk, DiskResult, OpenMode};
use crate::storage::growing::GrowingList;
use crate::storage::index::{Entry, OffsetEntry, TimeEntry, encode_all};
use crate::storage::names::{FileKind, SegmentPaths};
use crate::storage::segment::{GrowingIndexes, LogHeads, Segment, SegmentParts};
use crate::storage::side_file;
use crate::storage::sparse::SparseIndexer;

/// Index entries that wait in memory before they are written: index files follow the log, since
/// they can be made anew from it.
const PENDING_ENTRIES_MAX: usize = 512;

/// Append times that wait before a flush writes them.
const PENDING_TIMES_MAX: usize = 64;

/// See the module.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) segment: Arc<Segment>,
    pub(super) indexer: SparseIndexer,
    /// Greatest timestamp of the first batch: what `segment.ms` counts from.
    pub(super) first_timestamp: Option<i64>,
    pub(super) created_ms: i64,
    written: WrittenEntries,
}

/// How many entries each index file holds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WrittenEntries {
    pub(super) offsets: usize,
    pub(super) times: usize,
    pub(super) aborted: usize,
    pub(super) append_times: usize,
    /// CRC-32C of the append times that are written.
    pub(super) append_times_crc: u32,
}

impl Active {
    /// Creates the files of an empty segment, replacing leftovers of the same name. On an error none
    /// of them is left.
    pub(super) fn create(
        disk: &Arc<dyn Disk>,
        dir: &Arc<Path>,
        base_offset: i64,
        config: &LogConfig,
        now_ms: i64,
    ) -> DiskResult<Self> {
        let interval = config.index_interval_bytes;
        let paths = SegmentPaths::new(Arc::clone(dir), base_offset);
        remove_files(&**disk, &paths)?;
        // The log file last: a start takes every log file for a segment, and removes indexes
        // without one.
        let created = create_indexes(&**disk, &paths).and_then(|()| {
            SegmentParts::open(disk, dir, base_offset, interval, OpenMode::CreateEmpty)
        });
        let parts = created.inspect_err(|_| {
            // What cannot be removed either is known for a stray by its emptiness.
            _ = remove_files(&**disk, &paths);
        })?;
        Ok(Self {
            segment: Arc::new(Segment::growing(parts, GrowingIndexes::new(base_offset))),
            indexer: SparseIndexer::new(base_offset, interval),
            first_timestamp: None,
            created_ms: now_ms,
            written: WrittenEntries::default(),
        })
    }

    /// Goes on writing a segment of which everything is known.
    pub(super) fn resume(
        parts: SegmentParts,
        heads: LogHeads,
        aborted: Vec<AbortedTxn>,
        append_times: RecordedTimes,
        created_ms: i64,
        written: WrittenEntries,
    ) -> Self {
        let mut indexes = GrowingIndexes::new(heads.end_offset);
        indexes.append_times = append_times;
        indexes.offsets = GrowingList::from_entries(heads.offsets);
        indexes.times = GrowingList::from_entries(heads.times);
        indexes.aborted = GrowingList::from_entries(aborted);
        indexes.set_greatest(heads.indexer.greatest());
        Self {
            segment: Arc::new(Segment::growing(parts, indexes)),
            indexer: heads.indexer,
            first_timestamp: heads.first_timestamp,
            created_ms,
            written,
        }
    }

    /// The first `size` bytes of a segment as the active one, and the log end that results. The
    /// files are not cut yet: see [`Self::cut_files`].
    pub(super) fn cut(
        segment: &Segment,
        size: u64,
        config: &LogConfig,
        now_ms: i64,
    ) -> Result<(Self, i64), LogError> {
        let (base_offset, interval) = (segment.base_offset, config.index_interval_bytes);
        let heads = LogHeads::read(&segment.log, base_offset, size, interval)?;
        let log_end = heads.end_offset;
        let aborted = segment.aborted()?;
        let aborted = aborted.iter().filter(|txn| txn.last_offset < log_end).collect();
        let parts = SegmentParts { size, ..segment.parts() };
        let times = match segment.growing_indexes() {
            Some(indexes) => indexes.append_times.cut(base_offset, log_end),
            None => RecordedTimes::starting_at(log_end),
        };
        let active = Self::resume(parts, heads, aborted, times, now_ms, WrittenEntries::default());
        Ok((active, log_end))
    }

    /// Cuts the log file to the segment's size and writes its indexes anew.
    pub(super) fn cut_files(&mut self, disk: &dyn Disk) -> DiskResult<()> {
        self.segment.log.truncate(self.size())?;
        for kind in
            [FileKind::TxnIndex, FileKind::AppendTimeIndex, FileKind::TagIndex, FileKind::KeyIndex]
        {
            match disk.remove(&self.segment.paths.of(kind)) {
                Err(error) if !error.is_not_found() => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        // New files: the old ones may be mapped by readers of older views.
        for kind in [FileKind::OffsetIndex, FileKind::TimeIndex] {
            checkpoint::write(disk, &self.segment.paths.of(kind), &[], Durability::Unsynced)?;
        }
        self.written = WrittenEntries::default();
        self.write_indexes(disk)
    }

    pub(super) fn size(&self) -> u64 {
        self.segment.size()
    }

    pub(super) fn base_offset(&self) -> i64 {
        self.segment.base_offset
    }

    /// Takes in a batch that was written at `position` at `now_ms`; not yet published.
    pub(super) fn observe(&mut self, header: &BatchHeader, position: u64, now_ms: i64) {
        let (offset, time) = self.indexer.observe(header, position);
        let Some(indexes) = self.segment.growing_indexes() else { return };
        if let Some(entry) = offset {
            indexes.offsets.push(entry);
        }
        if let Some(entry) = time {
            indexes.times.push(entry);
        }
        indexes.set_greatest(self.indexer.greatest());
        let relative = header.base_offset.saturating_sub(self.segment.base_offset);
        if let Ok(relative_offset) = u32::try_from(relative) {
            indexes.append_times.record(relative_offset, now_ms);
        }
        self.first_timestamp.get_or_insert(header.max_timestamp);
    }

    /// Takes in an aborted transaction whose marker was written.
    pub(super) fn observe_aborted(&self, txn: AbortedTxn) {
        if let Some(indexes) = self.segment.growing_indexes() {
            indexes.aborted.push(txn);
        }
    }

    /// Adds the last time entry, as sealing and closing demand.
    pub(super) fn finish_times(&mut self) {
        let entry = self.indexer.time_entry();
        if let (Some(entry), Some(indexes)) = (entry, self.segment.growing_indexes()) {
            indexes.times.push(entry);
        }
    }

    /// How long the segment has been filling, as `segment.ms` counts: from its first record's time
    /// to `newest_timestamp`, or by the clock when its records have none.
    pub(super) fn waited_ms(&self, newest_timestamp: i64, now_ms: i64) -> i64 {
        match self.first_timestamp {
            Some(first) if first > NO_TIMESTAMP => newest_timestamp.saturating_sub(first),
            _ => now_ms.saturating_sub(self.created_ms),
        }
    }

    /// Whether an index holds as many entries as `segment.index.bytes` allows; the last place of
    /// the time index is kept for the entry at sealing.
    pub(super) fn indexes_are_full(&self, config: &LogConfig) -> bool {
        let Some(indexes) = self.segment.growing_indexes() else { return true };
        let max = config.segment_index_bytes as usize;
        indexes.offsets.len() >= max / OffsetEntry::BYTES
            || indexes.times.len() + 1 >= max / TimeEntry::BYTES
    }

    /// Whether so many entries wait that they should be written.
    pub(super) fn has_many_pending(&self) -> bool {
        self.segment
            .growing_indexes()
            .is_some_and(|i| i.offsets.len() - self.written.offsets >= PENDING_ENTRIES_MAX)
    }

    /// Writes the entries that wait.
    pub(super) fn write_indexes(&mut self, disk: &dyn Disk) -> DiskResult<()> {
        let segment = Arc::clone(&self.segment);
        let Some(indexes) = segment.growing_indexes() else { return Ok(()) };
        let path = |kind| segment.paths.of(kind);
        let written = &mut self.written;
        let (offsets, times) = (FileKind::OffsetIndex, FileKind::TimeIndex);
        write_pending(disk, &path(offsets), &indexes.offsets, &mut written.offsets)?;
        write_pending(disk, &path(times), &indexes.times, &mut written.times)?;
        let aborted = path(FileKind::TxnIndex);
        write_pending(disk, &aborted, &indexes.aborted, &mut written.aborted)
    }
}

impl Active {
    /// Whether so many append times wait that a flush should write them.
    pub(super) fn has_many_times_pending(&self) -> bool {
        self.segment.growing_indexes().is_some_and(|indexes| {
            let recorded = indexes.append_times.entries.len();
            recorded - self.written.append_times >= PENDING_TIMES_MAX
        })
    }

    /// Lets no append be recorded earlier than in the segment before.
    pub(super) fn follow_times(&self, before: &Self) {
        let newest = before.segment.growing_indexes().and_then(|i| i.append_times.last_ms());
        if let (Some(newest_ms), Some(indexes)) = (newest, self.segment.growing_indexes()) {
            indexes.append_times.set_floor(newest_ms);
        }
    }

    /// Writes the append times that wait, for a segment that ends at `end_offset`. What is lost of
    /// them is made up from the batches.
    pub(super) fn write_append_times(
        &mut self,
        disk: &dyn Disk,
        end_offset: i64,
    ) -> DiskResult<()> {
        let segment = Arc::clone(&self.segment);
        let Some(indexes) = segment.growing_indexes() else { return Ok(()) };
        let (recorded, written) = (&indexes.append_times, &mut self.written);
        let len = recorded.entries.len();
        if len == 0 {
            return Ok(());
        }
        let path = segment.paths.of(FileKind::AppendTimeIndex);
        let file = disk.open(&path, OpenMode::CreateIfMissing)?;
        let pending = encode_all(recorded.entries.iter_from(written.append_times));
        let at = side_file::HEADER_BYTES + written.append_times * AppendTimeEntry::BYTES;
        file.write_at(at as u64, &[IoSlice::new(&pending)])?;
        let crc = crc32c::crc32c_append(written.append_times_crc, &pending);
        let covered = recorded.covered_from..end_offset;
        let count = u32::try_from(len).unwrap_or(u32::MAX);
        let header = side_file::header(APPEND_TIMES, covered, count, crc);
        file.write_at(0, &[IoSlice::new(&header)])?;
        written.append_times = len;
        written.append_times_crc = crc;
        Ok(())
    }
}

/// Removes the files of a segment, the log file first; the snapshot of the same offset stays.
fn remove_files(disk: &dyn Disk, paths: &SegmentPaths) -> DiskResult<()> {
    let others = FileKind::ALL.into_iter().filter(|kind| *kind != FileKind::Log);
    for kind in [FileKind::Log].into_iter().chain(others) {
        if kind == FileKind::Snapshot {
            continue;
        }
        match disk.remove(&paths.of(kind)) {
            Err(error) if !error.is_not_found() => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

fn create_indexes(disk: &dyn Disk, paths: &SegmentPaths) -> DiskResult<()> {
    for kind in [FileKind::OffsetIndex, FileKind::TimeIndex] {
        disk.open(&paths.of(kind), OpenMode::CreateEmpty)?;
    }
    Ok(())
}

/// Appends the entries behind the first `written` to their file.
fn write_pending<E: Entry>(
    disk: &dyn Disk,
    path: &Path,
    entries: &GrowingList<E>,
    written: &mut usize,
) -> DiskResult<()> {
    let len = entries.len();
    if len == *written {
        return Ok(());
    }
    let file = disk.open(path, OpenMode::CreateIfMissing)?;
    let pending = encode_all(entries.iter_from(*written));
    // After a failed write the same place is written again.
    file.write_at((*written * E::BYTES) as u64, &[IoSlice::new(&pending)])?;
    *written = len;
    Ok(())
}
