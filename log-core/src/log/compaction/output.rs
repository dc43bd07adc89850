//! The segments that compaction writes, under names that a start removes.

use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::log::{AbortedTxn, LogConfig};
use crate::record::BatchHeader;
use crate::storage::append_times::{APPEND_TIMES, AppendTimeEntry};
use crate::storage::disk::{Disk, DiskFile, DiskResult, OpenMode};
use crate::storage::index;
use crate::storage::names::{CLEANED_SUFFIX, FileKind, SegmentPaths, with_suffix};
use crate::storage::segment::{LogHeads, Segment};
use crate::storage::side_file::{self, SideContent};

/// Bytes that wait before they are written.
const PENDING_BYTES_MAX: usize = 1 << 20;

/// One written segment that is not part of the log yet.
#[derive(Debug)]
pub(super) struct CleanedSegment {
    pub(super) base_offset: i64,
    pub(super) size: u64,
    pub(super) log: Arc<dyn DiskFile>,
    /// Its files beside the log file.
    pub(super) kinds: Vec<FileKind>,
}

/// Writes one such segment.
#[derive(Debug)]
pub(super) struct Output {
    disk: Arc<dyn Disk>,
    paths: SegmentPaths,
    base_offset: i64,
    log: Arc<dyn DiskFile>,
    heads: LogHeads,
    aborted: Vec<AbortedTxn>,
    pending: Vec<Bytes>,
    pending_bytes: usize,
    written: u64,
}

impl Output {
    /// Creates its log file.
    pub(super) fn create(
        disk: &Arc<dyn Disk>,
        dir: &Arc<Path>,
        base_offset: i64,
        config: &LogConfig,
    ) -> DiskResult<Self> {
        let paths = SegmentPaths::new(Arc::clone(dir), base_offset);
        let path = with_suffix(&paths.of(FileKind::Log), CLEANED_SUFFIX);
        Ok(Self {
            disk: Arc::clone(disk),
            log: disk.open(&path, OpenMode::CreateEmpty)?,
            paths,
            base_offset,
            heads: LogHeads::new(base_offset, config.index_interval_bytes),
            aborted: Vec::new(),
            pending: Vec::new(),
            pending_bytes: 0,
            written: 0,
        })
    }

    /// Its first offset.
    pub(super) const fn base_offset(&self) -> i64 {
        self.base_offset
    }

    /// What is only good for being removed.
    pub(super) fn given_up(self) -> CleanedSegment {
        let (base_offset, size) = (self.base_offset, self.written);
        CleanedSegment { base_offset, size, log: self.log, kinds: Vec::new() }
    }

    /// Bytes so far.
    pub(super) const fn size(&self) -> u64 {
        self.written + self.pending_bytes as u64
    }

    /// Adds a batch behind the others.
    pub(super) fn push(&mut self, header: &BatchHeader, bytes: Bytes) -> DiskResult<()> {
        self.heads.observe(header, self.size());
        self.pending_bytes += bytes.len();
        self.pending.push(bytes);
        if self.pending_bytes >= PENDING_BYTES_MAX { self.write() } else { Ok(()) }
    }

    /// Adds an aborted transaction, whose marker was added last.
    pub(super) fn push_aborted(&mut self, txn: AbortedTxn) {
        self.aborted.push(txn);
    }

    fn write(&mut self) -> DiskResult<()> {
        let pieces: Vec<IoSlice<'_>> = self.pending.iter().map(|b| IoSlice::new(b)).collect();
        self.log.write_at(self.written, &pieces)?;
        self.written += self.pending_bytes as u64;
        self.pending.clear();
        self.pending_bytes = 0;
        Ok(())
    }

    /// Writes what waits, and the indexes; all content is synced. `times` are the append times of the
    /// offsets from the base offset to `end_offset`, exclusive.
    pub(super) fn finish(mut self, times: Bytes, end_offset: i64) -> DiskResult<CleanedSegment> {
        self.write()?;
        self.log.sync()?;
        self.heads.times.extend(self.heads.indexer.time_entry());
        let mut kinds = vec![FileKind::OffsetIndex, FileKind::TimeIndex];
        let offsets = index::encode_all(self.heads.offsets.iter().copied());
        self.write_file(FileKind::OffsetIndex, &offsets)?;
        let index = index::encode_all(self.heads.times.iter().copied());
        self.write_file(FileKind::TimeIndex, &index)?;
        if !self.aborted.is_empty() {
            let aborted = index::encode_all(self.aborted.iter().copied());
            self.write_file(FileKind::TxnIndex, &aborted)?;
            kinds.push(FileKind::TxnIndex);
        }
        if !times.is_empty() {
            let covered_from = self.base_offset;
            let content = SideContent { covered_from, covered_to: end_offset, entries: times };
            let content = side_file::encode(APPEND_TIMES, &content);
            self.write_file(FileKind::AppendTimeIndex, &content)?;
            kinds.push(FileKind::AppendTimeIndex);
        }
        Ok(CleanedSegment {
            base_offset: self.base_offset,
            size: self.written,
            log: self.log,
            kinds,
        })
    }

    fn write_file(&self, kind: FileKind, content: &[u8]) -> DiskResult<()> {
        let path = with_suffix(&self.paths.of(kind), CLEANED_SUFFIX);
        let file = self.disk.open(&path, OpenMode::CreateEmpty)?;
        file.write_at(0, &[IoSlice::new(content)])?;
        file.sync()
    }
}

/// Where a file of a cleaned segment is.
pub(super) fn cleaned_path(dir: &Arc<Path>, base_offset: i64, kind: FileKind) -> PathBuf {
    with_suffix(&SegmentPaths::new(Arc::clone(dir), base_offset).of(kind), CLEANED_SUFFIX)
}

/// The append times of `segments`, which follow each other, as those of one segment that holds the
/// offsets from `base_offset` to `end`, exclusive. Times never fall.
pub(super) fn append_times(
    segments: &[Arc<Segment>],
    base_offset: i64,
    end: i64,
) -> DiskResult<Bytes> {
    let mut entries: Vec<AppendTimeEntry> = Vec::new();
    let mut before: Option<i64> = None;
    for segment in segments {
        let times = segment.append_times()?;
        for entry in index::Entries::<AppendTimeEntry>::Sealed(times.earlier.clone()).iter() {
            let offset = segment.base_offset.saturating_add(i64::from(entry.relative_offset));
            if offset >= end {
                break;
            }
            let time_ms = entry.time_ms.max(before.unwrap_or(i64::MIN));
            before = Some(time_ms);
            let Ok(relative_offset) =
                u32::try_from(offset.max(base_offset).saturating_sub(base_offset))
            else {
                continue;
            };
            let entry = AppendTimeEntry { time_ms, relative_offset };
            match entries.last_mut() {
                // Of what lies before, the newest time counts.
                Some(last) if last.relative_offset == relative_offset => *last = entry,
                Some(last) if last.time_ms >= time_ms => {}
                _ => entries.push(entry),
            }
        }
    }
    Ok(Bytes::from(index::encode_all(entries)))
}
