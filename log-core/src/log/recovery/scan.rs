//! Reads segments through, keeps what is whole, and makes their indexes anew.

use std::sync::Arc;

use super::replay::replay_batches;
use super::{LastSegment, Recovery};
use crate::ids::Offset;
use crate::log::active::WrittenEntries;
use crate::log::config::Compacted;
use crate::log::marker::replay;
use crate::log::{AbortedTxn, LogError};
use crate::producers::Producers;
use crate::storage::append_times::{APPEND_TIMES, AppendTimeEntry, RecordedTimes};
use crate::storage::checkpoint::{self, Durability};
use crate::storage::disk::{DiskResult, OpenMode};
use crate::storage::index::{self, Entry};
use crate::storage::names::FileKind;
use crate::storage::segment::{LogHeads, Segment, SegmentParts};
use crate::storage::sparse::SparseIndexer;
use crate::storage::walk::{Step, is_whole, offsets_from};

/// Segments by base offset.
type Segments = Vec<Arc<Segment>>;

/// A segment that was read from end to end.
#[derive(Debug)]
struct Scanned {
    heads: LogHeads,
    aborted: Vec<AbortedTxn>,
    /// Where the last whole batch ends.
    size: u64,
}

impl Recovery {
    /// Scans `segments`, of which the first begins where `producers` end. Returns those that are
    /// sealed and the last, to be written on; what does not continue the log is dropped.
    pub(super) fn scan(
        &mut self,
        segments: &[Arc<Segment>],
        producers: &mut Producers,
    ) -> Result<(Vec<Arc<Segment>>, Option<LastSegment>), LogError> {
        let mut sealed = Vec::new();
        let mut last = None;
        for (index, segment) in segments.iter().enumerate() {
            let next = segments.get(index + 1);
            let mut scanned = self.scan_segment(segment, producers)?;
            // Between two segments compaction may have left a gap, which proves nothing.
            let is_proven = |next: &&Arc<Segment>| {
                !self.may_have_gaps() && next.base_offset > self.hint.proven_end
            };
            if next.is_none() || next.as_ref().is_some_and(is_proven) {
                self.ended_early(segment, &mut scanned.heads, scanned.size)?;
            }
            let torn = segment.size() - scanned.size;
            if torn > 0 {
                self.keep_committed(segment, scanned.heads.end_offset, scanned.size)?;
                segment.log.truncate(scanned.size)?;
                self.report.bytes_truncated += torn;
            }
            let continues = next.is_some_and(|next| {
                torn == 0 && self.may_follow(next.base_offset, scanned.heads.end_offset)
            });
            if !continues {
                self.drop_segments(segments.get(index + 1..).unwrap_or_default())?;
                last = Some(self.keep_last(segment, scanned)?);
                break;
            }
            sealed.push(self.seal(segment, scanned)?);
        }
        Ok((sealed, last))
    }

    /// Whether a segment may begin at `base_offset` after one that ended at `end_offset`. Where
    /// compaction works, records may be missing before it.
    pub(super) fn may_follow(&self, base_offset: i64, end_offset: i64) -> bool {
        base_offset == end_offset || (self.may_have_gaps() && base_offset > end_offset)
    }

    fn may_have_gaps(&self) -> bool {
        self.config.cleanup_policy.compacts() || self.hint.compacted == Compacted::Once
    }

    fn scan_segment(
        &mut self,
        segment: &Segment,
        producers: &mut Producers,
    ) -> Result<Scanned, LogError> {
        let base_offset = segment.base_offset;
        self.epochs.truncate_from_end(Offset(base_offset));
        let mut heads = LogHeads::new(base_offset, self.config.index_interval_bytes);
        let mut aborted = Vec::new();
        let mut walk = segment.walk_from(0);
        let mut size = 0;
        loop {
            let offsets = offsets_from(heads.end_offset, base_offset);
            let batch = match walk.next_batch()? {
                Step::Batch(batch) if is_whole(&batch.content, &batch.header, &offsets) => batch,
                Step::End => break,
                Step::Batch(_) | Step::Broken { .. } => {
                    let Some(behind) = self.pass_damage(segment, &mut heads, size)? else { break };
                    walk = behind;
                    continue;
                }
            };
            heads.observe(&batch.header, batch.position);
            aborted.extend(replay(producers, &batch.header, &batch.content));
            let (epoch, at) = (batch.header.partition_leader_epoch, batch.header.base_offset);
            self.epochs.assign(epoch, Offset(at));
            size = walk.position();
        }
        self.report.segments_scanned += 1;
        self.report.bytes_scanned += segment.size();
        Ok(Scanned { heads, aborted, size })
    }

    /// A scanned segment that others follow.
    fn seal(&mut self, segment: &Arc<Segment>, mut scanned: Scanned) -> DiskResult<Arc<Segment>> {
        scanned.heads.times.extend(scanned.heads.indexer.time_entry());
        self.write_indexes(segment, &scanned)?;
        let sealed = Arc::new(Segment::sealed(segment.parts()));
        self.unsynced.push(Arc::clone(&sealed));
        Ok(sealed)
    }

    fn keep_last(&mut self, segment: &Arc<Segment>, scanned: Scanned) -> DiskResult<LastSegment> {
        self.write_indexes(segment, &scanned)?;
        let mut parts = segment.parts();
        parts.size = scanned.size;
        Self::last_segment(parts, scanned.heads, scanned.aborted)
    }

    /// Puts the last segment together, with those append times that its side index has.
    fn last_segment(
        parts: SegmentParts,
        heads: LogHeads,
        aborted: Vec<AbortedTxn>,
    ) -> DiskResult<LastSegment> {
        let mut written = WrittenEntries {
            offsets: heads.offsets.len(),
            times: heads.times.len(),
            aborted: aborted.len(),
            ..WrittenEntries::default()
        };
        let segment = Segment::sealed(parts.clone());
        let found = segment.side_content(FileKind::AppendTimeIndex, APPEND_TIMES)?;
        let append_times = match found {
            // Written for this log end: goes on in the same file.
            Some(found) if found.covered_to == heads.end_offset => {
                written.append_times = found.entries.len() / AppendTimeEntry::BYTES;
                written.append_times_crc = crc32c::crc32c(&found.entries);
                RecordedTimes::resume(&found)
            }
            Some(found) => segment.continue_times(&found, heads.end_offset)?,
            None => RecordedTimes::starting_at(heads.end_offset),
        };
        Ok(LastSegment { parts, heads, aborted, append_times, written })
    }

    /// Writes those index files of a segment that do not hold what its batches say. What is known of
    /// its tags and keys may speak of batches that a power cut took: it is made anew when asked for.
    fn write_indexes(&mut self, segment: &Segment, scanned: &Scanned) -> DiskResult<()> {
        self.remove_if_there(segment, FileKind::TagIndex)?;
        self.remove_if_there(segment, FileKind::KeyIndex)?;
        let offsets = index::encode_all(scanned.heads.offsets.iter().copied());
        let times = index::encode_all(scanned.heads.times.iter().copied());
        let aborted = index::encode_all(scanned.aborted.iter().copied());
        self.write_index(segment, FileKind::OffsetIndex, &offsets)?;
        self.write_index(segment, FileKind::TimeIndex, &times)?;
        if aborted.is_empty() {
            return self.remove_if_there(segment, FileKind::TxnIndex);
        }
        self.write_index(segment, FileKind::TxnIndex, &aborted)
    }

    fn write_index(&mut self, segment: &Segment, kind: FileKind, content: &[u8]) -> DiskResult<()> {
        let path = segment.paths.of(kind);
        let found = match self.disk.open(&path, OpenMode::Existing) {
            Ok(file) => Some(file.read_at(0, content.len() + 1)?),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        if found.is_some_and(|found| found == content) {
            return Ok(());
        }
        self.report.indexes_rebuilt += 1;
        self.names_changed += 1;
        checkpoint::write(&*self.disk, &path, content, Durability::Unsynced)
    }

    fn remove_if_there(&mut self, segment: &Segment, kind: FileKind) -> DiskResult<()> {
        match self.disk.remove(&segment.paths.of(kind)) {
            Ok(()) => {
                self.report.indexes_rebuilt += 1;
                self.names_changed += 1;
                Ok(())
            }
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Removes segments that do not continue the log, the newest first: a crash meanwhile leaves no
    /// gap.
    fn drop_segments(&mut self, segments: &[Arc<Segment>]) -> DiskResult<()> {
        for segment in segments.iter().rev() {
            self.report.segments_dropped += 1;
            self.report.bytes_truncated += segment.size();
            self.names_changed += 1;
            self.inventory.logs.remove(&segment.base_offset);
            self.inventory.snapshots.remove(&segment.base_offset);
            self.rename_committed(segment)?;
            for kind in FileKind::ALL {
                match self.disk.remove(&segment.paths.of(kind)) {
                    Err(error) if !error.is_not_found() => return Err(error),
                    Ok(()) | Err(_) => {}
                }
            }
        }
        Ok(())
    }

    /// Drops empty segments that are not the last, or that begin before the end of the one before.
    pub(super) fn drop_strays(
        &mut self,
        segments: Vec<Arc<Segment>>,
    ) -> Result<Vec<Arc<Segment>>, LogError> {
        let last = segments.len().saturating_sub(1);
        let mut kept: Vec<Arc<Segment>> = Vec::with_capacity(segments.len());
        for (index, segment) in segments.into_iter().enumerate() {
            let is_stray = match kept.last() {
                Some(before) if segment.size() == 0 => {
                    index < last || segment.base_offset < before.end_offset()?
                }
                _ => false,
            };
            if is_stray {
                self.drop_segments(&[segment])?;
            } else {
                kept.push(segment);
            }
        }
        Ok(kept)
    }

    /// Checks the first `scanned_from` segments and drops those, up to the first that is scanned,
    /// that begin before the end of the one before. One that begins behind it stays, and what is
    /// missing is noted: retention and truncation leave no gap, so a segment was taken away that had
    /// been on disk. Returns the trusted ones, and those to scan: at least one.
    pub(super) fn check_all_trusted(
        &mut self,
        segments: &[Arc<Segment>],
        scanned_from: usize,
    ) -> Result<(Segments, Segments), LogError> {
        let mut trusted: Vec<Arc<Segment>> = Vec::with_capacity(scanned_from);
        let recovery_point = self.hint.recovery_point.unwrap_or(i64::MAX);
        // Where the segment before ends; `None` when its last batch does not say it truly.
        let mut end_offset: Option<i64> = None;
        for (index, segment) in segments.iter().enumerate() {
            if end_offset.is_some_and(|end| segment.base_offset < end) {
                self.drop_segments(std::slice::from_ref(segment))?;
                continue;
            }
            if let Some(end) = end_offset
                && !self.may_follow(segment.base_offset, end)
            {
                let before = trusted.last().map(Arc::as_ref);
                self.segments_missing(before, end, segment.base_offset)?;
            }
            if index >= scanned_from {
                return Ok((trusted, segments.get(index..).unwrap_or_default().to_vec()));
            }
            // At the recovery point itself it may have been sealed just before the power cut.
            let next = segments.get(index + 1);
            let may_lack_times = next.is_some_and(|next| next.base_offset == recovery_point);
            self.check_trusted(segment, &trusted, may_lack_times)?;
            // All of it lies below the recovery point: what claims to end above is damaged.
            let claimed = segment.end_offset()?;
            end_offset = (claimed <= recovery_point).then_some(claimed);
            trusted.push(Arc::clone(segment));
        }
        // All that followed began too early and was dropped: the log ends in a trusted segment.
        let last = trusted.pop().into_iter().collect();
        Ok((trusted, last))
    }

    /// Checks what a segment below the recovery point says beside its batches.
    fn check_trusted(
        &mut self,
        segment: &Arc<Segment>,
        earlier: &[Arc<Segment>],
        may_lack_times: bool,
    ) -> Result<(), LogError> {
        let before = self.report.indexes_rebuilt;
        if segment.check_indexes()? || (may_lack_times && segment.complete_times()?) {
            self.report.indexes_rebuilt += 1;
            self.names_changed += 1;
        }
        self.check_aborted(segment, earlier)?;
        if self.report.indexes_rebuilt > before {
            // A second power cut must not take what was made anew.
            self.unsynced.push(Arc::clone(segment));
        }
        Ok(())
    }

    fn check_aborted(
        &mut self,
        segment: &Arc<Segment>,
        earlier: &[Arc<Segment>],
    ) -> Result<(), LogError> {
        // Nobody makes an empty one: its content was lost.
        if !self.is_empty(segment, FileKind::TxnIndex)? && segment.aborted().is_ok() {
            return Ok(());
        }
        // The transaction index is spoilt: replay the segment's transactions.
        let mut producers = self.producers_at(earlier, segment.base_offset)?;
        let aborted = replay_batches(&mut producers, &[Arc::clone(segment)], i64::MAX)?;
        if aborted.is_empty() {
            return Ok(self.remove_if_there(segment, FileKind::TxnIndex)?);
        }
        let content = index::encode_all(aborted);
        Ok(self.write_index(segment, FileKind::TxnIndex, &content)?)
    }

    /// The last segment as a clean stop left it; `None` when its files do not agree after all.
    pub(super) fn trust_last(&self, segment: &Segment) -> Result<Option<LastSegment>, LogError> {
        let Some(offsets) = self.read_index(segment, FileKind::OffsetIndex)? else {
            return Ok(None);
        };
        let Some(times) = self.read_index(segment, FileKind::TimeIndex)? else { return Ok(None) };
        let Ok(aborted) = segment.aborted() else { return Ok(None) };
        let aborted: Vec<AbortedTxn> = aborted.iter().collect();
        let interval = self.config.index_interval_bytes;
        let Some(heads) = heads_by_index(segment, offsets, times, interval)? else {
            return Ok(None);
        };
        if heads.end_offset < self.hint.proven_end {
            return Ok(None);
        }
        Ok(Some(Self::last_segment(segment.parts(), heads, aborted)?))
    }

    fn is_empty(&self, segment: &Segment, kind: FileKind) -> DiskResult<bool> {
        match self.disk.open(&segment.paths.of(kind), OpenMode::Existing) {
            Ok(file) => Ok(file.len()? == 0),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn read_index<E: Entry>(
        &self,
        segment: &Segment,
        kind: FileKind,
    ) -> DiskResult<Option<Vec<E>>> {
        let file = match self.disk.open(&segment.paths.of(kind), OpenMode::Existing) {
            Ok(file) => file,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        let len = usize::try_from(file.len()?).unwrap_or(usize::MAX);
        Ok(index::decode_all(&file.read_at(0, len)?))
    }
}

/// What an active segment needs to know, from its indexes and the batches behind the last entry;
/// `None` when these do not agree.
fn heads_by_index(
    segment: &Segment,
    offsets: Vec<index::OffsetEntry>,
    times: Vec<index::TimeEntry>,
    interval_bytes: u32,
) -> DiskResult<Option<LogHeads>> {
    let base_offset = segment.base_offset;
    let mut heads = LogHeads::new(base_offset, interval_bytes);
    if segment.size() == 0 {
        return Ok((offsets.is_empty() && times.is_empty()).then_some(heads));
    }
    let Step::Batch(first) = segment.walk_from(0).next_header()? else { return Ok(None) };
    heads.first_timestamp = Some(first.header.max_timestamp);
    heads.indexer = SparseIndexer::resume(base_offset, interval_bytes, times.last().copied());
    let last = offsets.last().copied();
    let mut walk = segment.walk_from(last.map_or(0, |entry| u64::from(entry.position)));
    let mut next = None;
    loop {
        match walk.next_header()? {
            Step::Batch(batch) => {
                let (header, entry) = (batch.header, last.filter(|_| next.is_none()));
                let expected = entry.map(|e| base_offset + i64::from(e.relative_offset));
                // An entry behind damage has the first offset.
                let is_other =
                    |offset| offset != header.last_offset() && offset != header.base_offset;
                if expected.is_some_and(is_other)
                    || header.max_timestamp > heads.indexer.greatest().timestamp
                {
                    return Ok(None);
                }
                next = Some(header.next_offset());
            }
            Step::End => break,
            Step::Broken { .. } => return Ok(None),
        }
    }
    heads.end_offset = next.unwrap_or(base_offset);
    (heads.offsets, heads.times) = (offsets, times);
    Ok(Some(heads))
}
