//! One segment as readers see it: a log file and the indexes that lead into it.
//!
//! The active segment grows under its readers: bytes, entries and size are published in this order,
//! so that whoever sees a size finds the rest. A sealed segment never changes; its indexes are
//! mapped when first asked for, and made anew from the log when what is found is spoilt.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use bytes::Bytes;

use super::append_times::RecordedTimes;
use super::disk::{Disk, DiskError, DiskFile, DiskResult, MappedFile, OpenMode};
use super::growing::GrowingList;
use super::index::{Entries, Entry, OffsetEntry, TimeEntry};
use super::names::{DELETED_SUFFIX, FileKind, SegmentPaths, with_suffix};
use super::sparse::Greatest;
use super::walk::{Step, Walk};
use crate::log::{AbortedTxn, LogError};
use crate::record::batch::NO_TIMESTAMP;

mod keys;
mod read;
mod rebuild;
mod retire;
mod side_run;
mod tags;
mod times;

use keys::SegmentKeys;
pub(crate) use read::{ReadBounds, SegmentEnd};
pub(crate) use rebuild::LogHeads;
use tags::SegmentTags;
use times::SideEntries;

/// See the module.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) paths: SegmentPaths,
    pub(crate) base_offset: i64,
    pub(crate) log: Arc<dyn DiskFile>,
    disk: Arc<dyn Disk>,
    index_interval_bytes: u32,
    size: AtomicU64,
    indexes: Indexes,
    tags: SegmentTags,
    keys: SegmentKeys,
    /// Held while a file is looked up by its name, so that none is taken for that of a segment which
    /// has the name next.
    naming: RwLock<Naming>,
}

/// Under which names a segment's files are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Naming {
    /// Their own.
    Own,
    /// Those of files that wait for their removal: only readers of older views still use them.
    Deleted,
}

#[derive(Debug)]
enum Indexes {
    /// Boxed: it is many times the size of the other.
    Growing(Box<GrowingIndexes>),
    Sealed(SealedIndexes),
}

/// Of the active segment, extended by the log's writer alone.
#[derive(Debug)]
pub(crate) struct GrowingIndexes {
    pub(crate) offsets: GrowingList<OffsetEntry>,
    pub(crate) times: GrowingList<TimeEntry>,
    pub(crate) aborted: GrowingList<AbortedTxn>,
    pub(crate) append_times: RecordedTimes,
    /// Append times of what was there before they were recorded, made up when first asked for.
    earlier_times: OnceLock<Bytes>,
    /// Last offset of the first batch with the greatest timestamp; below the base offset when no
    /// batch has one.
    greatest_offset: AtomicI64,
    greatest_timestamp: AtomicI64,
}

impl GrowingIndexes {
    /// Empty, for a segment whose appends are recorded from `end_offset` on.
    pub(crate) const fn new(end_offset: i64) -> Self {
        Self {
            offsets: GrowingList::new(),
            times: GrowingList::new(),
            aborted: GrowingList::new(),
            append_times: RecordedTimes::starting_at(end_offset),
            earlier_times: OnceLock::new(),
            greatest_offset: AtomicI64::new(-1),
            greatest_timestamp: AtomicI64::new(NO_TIMESTAMP),
        }
    }

    /// Publishes the greatest timestamp so far.
    pub(crate) fn set_greatest(&self, greatest: Greatest) {
        self.greatest_offset.store(greatest.offset, Ordering::Release);
        self.greatest_timestamp.store(greatest.timestamp, Ordering::Release);
    }
}

#[derive(Debug, Default)]
struct SealedIndexes {
    offsets: OnceLock<Arc<dyn MappedFile>>,
    times: OnceLock<Arc<dyn MappedFile>>,
    aborted: OnceLock<Option<Arc<dyn MappedFile>>>,
    append_times: OnceLock<SideEntries>,
    /// Held while index files are checked, made anew and mapped, so that this happens once and to the
    /// files of this segment.
    rebuilding: Mutex<()>,
    /// The same for side indexes, whose making reads the others: taken before it.
    completing: Mutex<()>,
}

/// What a segment is made of.
#[derive(Clone, Debug)]
pub(crate) struct SegmentParts {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) paths: SegmentPaths,
    pub(crate) base_offset: i64,
    pub(crate) log: Arc<dyn DiskFile>,
    pub(crate) size: u64,
    pub(crate) index_interval_bytes: u32,
}

impl SegmentParts {
    /// Opens the log file in `dir` with this base offset.
    pub(crate) fn open(
        disk: &Arc<dyn Disk>,
        dir: &Arc<Path>,
        base_offset: i64,
        index_interval_bytes: u32,
        mode: OpenMode,
    ) -> DiskResult<Self> {
        let paths = SegmentPaths::new(Arc::clone(dir), base_offset);
        let log = disk.open(&paths.of(FileKind::Log), mode)?;
        let size = log.len()?;
        Ok(Self { disk: Arc::clone(disk), paths, base_offset, log, size, index_interval_bytes })
    }
}

impl Segment {
    /// A segment that only readers use.
    pub(crate) fn sealed(parts: SegmentParts) -> Self {
        Self::new(parts, Indexes::Sealed(SealedIndexes::default()))
    }

    /// A segment that is being written.
    pub(crate) fn growing(parts: SegmentParts, indexes: GrowingIndexes) -> Self {
        Self::new(parts, Indexes::Growing(Box::new(indexes)))
    }

    fn new(parts: SegmentParts, indexes: Indexes) -> Self {
        Self {
            paths: parts.paths,
            base_offset: parts.base_offset,
            log: parts.log,
            disk: parts.disk,
            index_interval_bytes: parts.index_interval_bytes,
            size: AtomicU64::new(parts.size),
            indexes,
            tags: SegmentTags::default(),
            keys: SegmentKeys::default(),
            naming: RwLock::new(Naming::Own),
        }
    }

    /// Calls `with` with the name that a file has now, and keeps it from being renamed meanwhile.
    fn named<T>(&self, kind: FileKind, with: impl FnOnce(&Path) -> T) -> T {
        let naming = self.naming.read().unwrap_or_else(PoisonError::into_inner);
        with(&self.path_under(*naming, kind))
    }

    fn path_under(&self, naming: Naming, kind: FileKind) -> PathBuf {
        let path = self.paths.of(kind);
        match naming {
            Naming::Own => path,
            Naming::Deleted => with_suffix(&path, DELETED_SUFFIX),
        }
    }

    fn map(&self, kind: FileKind) -> DiskResult<Arc<dyn MappedFile>> {
        self.named(kind, |path| self.disk.map(path))
    }

    /// Greatest timestamp of the first batch; `None` for a segment without one.
    pub(crate) fn first_timestamp(&self) -> DiskResult<Option<i64>> {
        Ok(match self.walk_from(0).next_header()? {
            Step::Batch(first) => Some(first.header.max_timestamp),
            Step::End | Step::Broken { .. } => None,
        })
    }

    /// The same files as a new segment object may use them, of the size they have now.
    pub(crate) fn parts(&self) -> SegmentParts {
        SegmentParts {
            disk: Arc::clone(&self.disk),
            paths: self.paths.clone(),
            base_offset: self.base_offset,
            log: Arc::clone(&self.log),
            size: self.size(),
            index_interval_bytes: self.index_interval_bytes,
        }
    }

    /// Bytes of whole batches.
    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    /// Publishes what was written up to `size`; the writer's.
    pub(crate) fn set_size(&self, size: u64) {
        self.size.store(size, Ordering::Release);
    }

    /// The writer's side, of the active segment only.
    pub(crate) fn growing_indexes(&self) -> Option<&GrowingIndexes> {
        match &self.indexes {
            Indexes::Growing(indexes) => Some(indexes),
            Indexes::Sealed(_) => None,
        }
    }

    pub(crate) fn offsets(&self) -> DiskResult<Entries<'_, OffsetEntry>> {
        match &self.indexes {
            Indexes::Growing(indexes) => Ok(Entries::Growing(&indexes.offsets)),
            Indexes::Sealed(indexes) => {
                self.sealed_entries(FileKind::OffsetIndex, &indexes.offsets)
            }
        }
    }

    pub(crate) fn times(&self) -> DiskResult<Entries<'_, TimeEntry>> {
        match &self.indexes {
            Indexes::Growing(indexes) => Ok(Entries::Growing(&indexes.times)),
            Indexes::Sealed(indexes) => self.sealed_entries(FileKind::TimeIndex, &indexes.times),
        }
    }

    pub(crate) fn aborted(&self) -> Result<Entries<'_, AbortedTxn>, LogError> {
        let indexes = match &self.indexes {
            Indexes::Growing(indexes) => return Ok(Entries::Growing(&indexes.aborted)),
            Indexes::Sealed(indexes) => indexes,
        };
        if let Some(found) = indexes.aborted.get() {
            let content = found.as_ref().map(|file| file.content()).transpose()?;
            return Ok(Entries::Sealed(content.unwrap_or_default()));
        }
        let _alone = indexes.rebuilding.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match self.map(FileKind::TxnIndex) {
            Ok(file) => Some(file),
            // A segment without aborted transactions has no such file.
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error.into()),
        };
        let content = file.as_ref().map(|file| file.content()).transpose()?.unwrap_or_default();
        if !super::index::is_sound::<AbortedTxn>(&content) {
            let reason = "transaction index is spoilt".to_owned();
            return Err(LogError::Corrupt { offset: self.base_offset, reason });
        }
        _ = indexes.aborted.set(file);
        Ok(Entries::Sealed(content))
    }

    /// The greatest timestamp, `None` when no record has one.
    pub(crate) fn greatest(&self) -> DiskResult<Option<Greatest>> {
        let greatest = match &self.indexes {
            Indexes::Growing(indexes) => {
                // Timestamp first: an offset that is newer than it only leads to a greater one.
                let timestamp = indexes.greatest_timestamp.load(Ordering::Acquire);
                let offset = indexes.greatest_offset.load(Ordering::Acquire);
                Some(Greatest { timestamp, offset })
            }
            Indexes::Sealed(_) => self.times()?.last().map(|last| Greatest {
                timestamp: last.timestamp,
                offset: self.base_offset.saturating_add(i64::from(last.relative_offset)),
            }),
        };
        Ok(greatest.filter(|greatest| greatest.timestamp > NO_TIMESTAMP))
    }

    /// Walks over the batches from a batch start on.
    pub(crate) fn walk_from(&self, position: u64) -> Walk {
        Walk::new(Arc::clone(&self.log), position, self.size())
    }

    /// A batch start at or before the batch that holds `offset`.
    pub(crate) fn position_before(&self, offset: i64) -> DiskResult<u64> {
        let relative = offset.saturating_sub(self.base_offset);
        let found = self
            .offsets()?
            .last_where(|entry| i64::from(entry.relative_offset) <= relative)
            .map_or(0, |entry| u64::from(entry.position));
        Ok(found)
    }

    /// An offset from whose batch on all batches lie that have a timestamp of `timestamp` or later.
    pub(crate) fn offset_before_time(&self, timestamp: i64) -> DiskResult<i64> {
        let found = self.times()?.last_where(|entry| entry.timestamp <= timestamp);
        let relative = found.map_or(0, |entry| entry.relative_offset);
        Ok(self.base_offset.saturating_add(i64::from(relative)))
    }

    /// Time of last change of the log file, in ms.
    pub(crate) fn modified_ms(&self) -> DiskResult<i64> {
        Ok(self.named(FileKind::Log, |path| self.disk.stat(path))?.modified_ms)
    }

    fn sealed_entries<'a, E: Entry>(
        &'a self,
        kind: FileKind,
        cell: &OnceLock<Arc<dyn MappedFile>>,
    ) -> DiskResult<Entries<'a, E>> {
        if let Some(file) = cell.get() {
            return Ok(Entries::Sealed(file.content()?));
        }
        let Indexes::Sealed(indexes) = &self.indexes else {
            return Err(DiskError::invalid("map", &self.paths.of(kind), "not sealed"));
        };
        let _alone = indexes.rebuilding.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = cell.get() {
            return Ok(Entries::Sealed(file.content()?));
        }
        let file = self.sound_index(kind)?;
        let content = file.content()?;
        _ = cell.set(file);
        Ok(Entries::Sealed(content))
    }
}
