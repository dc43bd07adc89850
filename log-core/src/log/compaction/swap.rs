//! Puts compacted segments in the place of those that they stand for, so that a crash at any step
//! leaves the old ones or the new.
//!
//! | step | on disk | a start then |
//! |---|---|---|
//! | written, synced | old, `.cleaned` | removes `.cleaned` |
//! | renamed, the last offsets first, the log file of each segment last | old, `.cleaned`, `.swap` | removes both, from the least `.cleaned` on |
//! | all renamed | old, `.swap` | removes the old ones between first and last offset, gives `.swap` their names |
//! | old ones renamed to `.deleted`, the first first | fewer old, `.swap` | as before |
//! | `.swap` gets the final name, the log file first; an empty one goes | new | gives the other files their names |
//!
//! Source: LocalLog.replaceSegments, LogLoader.removeTempFilesAndCollectSwapFiles.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::output::{CleanedSegment, cleaned_path};
use crate::log::{Log, LogError, RecoveryReport};
use crate::storage::disk::{Disk, DiskResult, EntryKind, OpenMode};
use crate::storage::names::{
    CLEANED_SUFFIX, FileKind, FileName, SWAP_SUFFIX, SegmentPaths, parse, parse_suffixed,
    with_suffix,
};
use crate::storage::segment::{Segment, SegmentParts};
use crate::storage::walk::{Step, Walk};

/// Segments that are written, and those that they stand for.
#[derive(Debug)]
pub struct CompactedGroup {
    disk: Arc<dyn Disk>,
    dir: Arc<Path>,
    old: Vec<Arc<Segment>>,
    new: Vec<CleanedSegment>,
}

/// What became of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Installed {
    /// It is part of the log.
    Yes,
    /// The log has changed where it would have gone: it was thrown away.
    Superseded,
}

impl CompactedGroup {
    pub(super) const fn new(
        disk: Arc<dyn Disk>,
        dir: Arc<Path>,
        old: Vec<Arc<Segment>>,
        new: Vec<CleanedSegment>,
    ) -> Self {
        Self { disk, dir, old, new }
    }

    /// Removes what was written.
    pub fn discard(self) {
        for segment in &self.new {
            for kind in FileKind::ALL {
                // What cannot be removed goes at the next opening.
                _ = self.disk.remove(&cleaned_path(&self.dir, segment.base_offset, kind));
            }
        }
    }

    /// Gives what was written the names that let a start finish the swap.
    fn name_for_swap(&self) -> DiskResult<()> {
        // What is renamed must be there after a power cut.
        self.disk.sync_dir(&self.dir)?;
        for segment in self.new.iter().rev() {
            for kind in &segment.kinds {
                let paths = SegmentPaths::new(Arc::clone(&self.dir), segment.base_offset);
                let swap = with_suffix(&paths.of(*kind), SWAP_SUFFIX);
                self.disk.rename(&cleaned_path(&self.dir, segment.base_offset, *kind), &swap)?;
            }
            segment.log.rename(&swap_path(&self.dir, segment.base_offset, FileKind::Log))?;
        }
        Ok(())
    }

    /// Undoes [`Self::name_for_swap`] as far as it came: all of it goes.
    fn unname(self) {
        for segment in &self.new {
            for kind in FileKind::ALL {
                _ = self.disk.remove(&swap_path(&self.dir, segment.base_offset, kind));
            }
        }
        self.discard();
    }

    /// Gives what was written its final names. An empty segment goes; only the first of a log stays,
    /// since its name says where the log starts.
    fn name_finally(&self, is_first: bool) -> DiskResult<()> {
        for (index, segment) in self.new.iter().enumerate() {
            if segment.size == 0 && !(is_first && index == 0) {
                for kind in [FileKind::Log].iter().chain(&segment.kinds) {
                    self.disk.remove(&swap_path(&self.dir, segment.base_offset, *kind))?;
                }
                continue;
            }
            let paths = SegmentPaths::new(Arc::clone(&self.dir), segment.base_offset);
            segment.log.rename(&paths.of(FileKind::Log))?;
            for kind in &segment.kinds {
                self.disk
                    .rename(&swap_path(&self.dir, segment.base_offset, *kind), &paths.of(*kind))?;
            }
        }
        Ok(())
    }
}

impl Log {
    /// Lets a written group take the place of its segments, if the log still has them all. Whoever
    /// reads the old ones goes on; their files go `file.delete.delay.ms` later. What memory holds of
    /// them goes at once: aborted records there would outlive the index entry that says so.
    ///
    /// Errors: `StorageFull`, `OutOfFiles`, `Storage`: before the old segments were touched the group
    /// is thrown away and the log goes on; after that it takes no writes until it is opened again,
    /// which finishes the swap.
    pub fn install(&mut self, group: CompactedGroup, now_ms: i64) -> Result<Installed, LogError> {
        if let Err(error) = self.check_writable() {
            group.discard();
            return Err(error);
        }
        let Some(at) = self.place_of(&group) else {
            group.discard();
            return Ok(Installed::Superseded);
        };
        if let Err(error) = group.name_for_swap() {
            group.unname();
            return Err(error.into());
        }
        let deleted = self.swap(&group, at == 0).inspect_err(|error| self.fail(error))?;
        self.schedule_deletion(deleted, now_ms);
        let new = self.new_segments(&group, at == 0);
        let behind = self.segments.get(at + group.old.len());
        let end = behind.map_or(self.log_end, |behind| behind.base_offset);
        self.unsynced.retain(|held| !group.old.iter().any(|old| Arc::ptr_eq(old, held)));
        self.segments.splice(at..at + group.old.len(), new);
        self.tail.drop_below(end);
        self.publish();
        self.names_changed += 1;
        Ok(Installed::Yes)
    }

    /// Where the old segments of `group` are; `None` unless all of them are there, and sealed.
    fn place_of(&self, group: &CompactedGroup) -> Option<usize> {
        let first = group.old.first()?;
        let at = self.segments.iter().position(|held| Arc::ptr_eq(held, first))?;
        let held = self.segments.get(at..at + group.old.len())?;
        let same = held.iter().zip(&group.old).all(|(held, old)| Arc::ptr_eq(held, old));
        (same && at + group.old.len() < self.segments.len()).then_some(at)
    }

    /// Renames the old files away and the new ones to their names; returns what is to be removed.
    fn swap(&self, group: &CompactedGroup, is_first: bool) -> DiskResult<Vec<PathBuf>> {
        let mut deleted = Vec::new();
        for segment in &group.old {
            deleted.extend(segment.retire()?);
            // The producers at a segment's base are those of any segment that begins there.
            if !group.new.iter().any(|new| new.base_offset == segment.base_offset) {
                deleted.extend(self.rename_deleted(&segment.paths.of(FileKind::Snapshot))?);
            }
        }
        group.name_finally(is_first)?;
        Ok(deleted)
    }

    /// The new segments that [`CompactedGroup::name_finally`] has left.
    fn new_segments(&self, group: &CompactedGroup, is_first: bool) -> Vec<Arc<Segment>> {
        let stays =
            |(index, new): &(usize, &CleanedSegment)| new.size > 0 || is_first && *index == 0;
        let segment = |(_, new): (usize, &CleanedSegment)| {
            Arc::new(Segment::sealed(SegmentParts {
                disk: Arc::clone(&self.disk),
                paths: SegmentPaths::new(Arc::clone(&self.dir), new.base_offset),
                base_offset: new.base_offset,
                log: Arc::clone(&new.log),
                size: new.size,
                index_interval_bytes: self.config.index_interval_bytes,
            }))
        };
        group.new.iter().enumerate().filter(stays).map(segment).collect()
    }
}

fn swap_path(dir: &Arc<Path>, base_offset: i64, kind: FileKind) -> PathBuf {
    with_suffix(&SegmentPaths::new(Arc::clone(dir), base_offset).of(kind), SWAP_SUFFIX)
}

/// Finishes or drops the swap that a stop interrupted in `dir`.
pub(in crate::log) fn finish_swaps(
    disk: &dyn Disk,
    dir: &Path,
    report: &mut RecoveryReport,
) -> DiskResult<()> {
    let entries = disk.list(dir)?.into_iter().filter(|entry| entry.kind == EntryKind::File);
    let names: Vec<String> = entries.map(|entry| entry.name).collect();
    let cleaned = names.iter().filter_map(|name| parse_suffixed(name, CLEANED_SUFFIX));
    let least_cleaned = cleaned.map(|(_, base_offset)| base_offset).min();
    let mut swaps: Vec<(FileKind, i64)> = Vec::new();
    for name in &names {
        let Some((kind, base_offset)) = parse_suffixed(name, SWAP_SUFFIX) else { continue };
        if least_cleaned.is_some_and(|least| base_offset >= least) {
            // Not all was renamed: the old segments are all there.
            disk.remove(&dir.join(name))?;
            report.stray_files_removed += 1;
        } else {
            swaps.push((kind, base_offset));
        }
    }
    for name in names.iter().filter(|name| name.ends_with(CLEANED_SUFFIX)) {
        disk.remove(&dir.join(name))?;
        report.stray_files_removed += 1;
    }
    let dir: Arc<Path> = dir.into();
    let logs: BTreeSet<i64> =
        swaps.iter().filter(|(kind, _)| *kind == FileKind::Log).map(|(_, base)| *base).collect();
    if let (Some(first), Some(last)) = (logs.first(), logs.last()) {
        let end = end_of_swap(disk, &dir, *last)?;
        for name in &names {
            if let FileName::Segment(kind, base_offset) = parse(name)
                && kind != FileKind::Snapshot
                && (logs.contains(&base_offset) || (*first..end).contains(&base_offset))
            {
                disk.remove(&dir.join(name))?;
            }
        }
    }
    // The log file first: a swap that has none is one that came as far as this.
    swaps.sort_by_key(|(kind, base_offset)| (*base_offset, *kind));
    for (kind, base_offset) in &swaps {
        let path = SegmentPaths::new(Arc::clone(&dir), *base_offset).of(*kind);
        disk.rename(&swap_path(&dir, *base_offset, *kind), &path)?;
    }
    let swapped: BTreeSet<i64> = swaps.into_iter().map(|(_, base_offset)| base_offset).collect();
    report.segments_swapped = swapped.len();
    Ok(())
}

/// The offset after the last batch of a segment that is written whole.
fn end_of_swap(disk: &dyn Disk, dir: &Arc<Path>, base_offset: i64) -> DiskResult<i64> {
    let log = disk.open(&swap_path(dir, base_offset, FileKind::Log), OpenMode::Existing)?;
    let len = log.len()?;
    let mut walk = Walk::new(log, 0, len);
    let mut end = base_offset;
    while let Step::Batch(batch) = walk.next_header()? {
        end = batch.header.next_offset();
    }
    Ok(end)
}
