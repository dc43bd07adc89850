//! What is damaged or missing below the offset up to which the log was whole and on disk.
//!
//! Damage between whole batches stays in its file: readers are told where they meet it, and find
//! what lies behind it. Where a whole segment is missing readers step over it, as over what compaction
//! took. Damage at the end is moved to a file of its own, and the log goes on where it had ended, so
//! that no offset is given twice. What is dropped above that offset, though it was committed, is set
//! aside.

use std::io::IoSlice;
use std::path::PathBuf;
use std::sync::Arc;

use super::Recovery;
use crate::log::{Damage, LogError, OnLoss};
use crate::storage::disk::{DiskResult, OpenMode};
use crate::storage::names::{FileKind, with_suffix};
use crate::storage::segment::{LogHeads, Segment};
use crate::storage::walk::{Step, Walk, offsets_from};

/// Bytes that are moved at a time.
const BLOCK_BYTES: usize = 1 << 20;

impl Recovery {
    /// Passes damage at `position`, where the last whole batch of `heads` ends: a walk from the next
    /// whole batch on. `None` when nothing proves that the log went on, or nothing whole follows.
    pub(super) fn pass_damage(
        &mut self,
        segment: &Segment,
        heads: &mut LogHeads,
        position: u64,
    ) -> Result<Option<Walk>, LogError> {
        let from = heads.end_offset;
        if from >= self.hint.proven_end {
            return Ok(None);
        }
        let mut walk = segment.walk_from(position);
        let Some(next) = walk.skip_damage(&offsets_from(from, segment.base_offset), u64::MAX)?
        else {
            return Ok(None);
        };
        let (to, bytes) = (next.header.base_offset, next.position - position);
        let segment = segment.base_offset;
        self.found(Damage { from, to, segment, position, bytes, set_aside: None })?;
        heads.skip_to(to, next.position);
        Ok(Some(walk))
    }

    /// When the log was longer than `heads`, of which the last whole batch ends at `size`: takes note
    /// of it and sets aside what lies behind.
    pub(super) fn ended_early(
        &mut self,
        segment: &Segment,
        heads: &mut LogHeads,
        size: u64,
    ) -> Result<(), LogError> {
        let (from, to) = (heads.end_offset, self.hint.proven_end);
        if from >= to {
            return Ok(());
        }
        let (base_offset, bytes) = (segment.base_offset, segment.size() - size);
        let mut damage =
            Damage { from, to, segment: base_offset, position: size, bytes, set_aside: None };
        if self.hint.on_loss == OnLoss::KeepRest && bytes > 0 {
            damage.set_aside = Some(self.set_aside(segment, size)?);
        }
        self.found(damage)?;
        let relative =
            to.checked_sub(base_offset).and_then(|relative| i32::try_from(relative).ok());
        if relative.is_some() {
            heads.end_offset = to;
        }
        Ok(())
    }

    /// Where a log starts of which no segment is left, and would start at `log_start` otherwise.
    pub(super) fn nothing_left(&mut self, log_start: i64) -> Result<i64, LogError> {
        let to = self.hint.proven_end;
        if log_start >= to {
            return Ok(log_start);
        }
        let (from, segment) = (log_start, log_start);
        self.found(Damage { from, to, segment, position: 0, bytes: 0, set_aside: None })?;
        Ok(to)
    }

    /// The records from `from` (inclusive) to `to` (exclusive) are not there, though later segments
    /// that were synced after them are: the end of the segment `before`, or whole ones behind it.
    pub(super) fn segments_missing(
        &mut self,
        before: Option<&Segment>,
        from: i64,
        to: i64,
    ) -> Result<(), LogError> {
        let (mut segment, mut position, mut bytes) = (from, 0, 0);
        if let Some(before) = before {
            let mut walk = before.walk_from(before.position_before(from)?);
            while let Step::Batch(_) = walk.next_header()? {}
            let torn = before.size() - walk.position();
            if torn > 0 {
                (segment, position, bytes) = (before.base_offset, walk.position(), torn);
            }
        }
        self.found(Damage { from, to, segment, position, bytes, set_aside: None })
    }

    /// After a clean stop, when nothing is scanned: takes note of what is missing between segments,
    /// by where they begin and end.
    pub(super) fn tell_gaps(&mut self, segments: &[Arc<Segment>]) -> Result<(), LogError> {
        for (before, next) in segments.iter().zip(segments.iter().skip(1)) {
            let to = next.base_offset;
            // Read by an object of its own: indexes stay mapped only where they are used.
            let from = Segment::sealed(before.parts()).end_offset()?;
            if from < to && to <= self.hint.proven_end && !self.may_follow(to, from) {
                self.segments_missing(Some(before), from, to)?;
            }
        }
        Ok(())
    }

    /// Takes note of segments that are missing before `first`: retention has the first leader epoch
    /// begin where it lets the log start, so the log had begun earlier when its first epoch did.
    ///
    /// After an unclean stop the file of the epochs may not say yet what retention did; then the files
    /// of the segments that it took are still there under another name (`Log::epochs_wait_to_delete`).
    pub(super) fn tell_missing_start(&mut self, first: i64) -> Result<(), LogError> {
        let epochs = self.epochs_on_file.as_ref();
        let Some(begun) = epochs.and_then(|epochs| epochs.entries().first()) else { return Ok(()) };
        let deleted = self.inventory.deleted.first().copied();
        let (from, to) =
            (begun.start_offset.0, deleted.map_or(first, |deleted| deleted.min(first)));
        if from < to && to <= self.hint.proven_end && !self.may_follow(to, from) {
            self.segments_missing(None, from, to)?;
        }
        Ok(())
    }

    /// Sets aside what is behind the first `size` bytes of a segment that is cut there, if it was
    /// committed and was not set aside as damage.
    pub(super) fn keep_committed(
        &mut self,
        segment: &Segment,
        end_offset: i64,
        size: u64,
    ) -> DiskResult<()> {
        let is_kept = self
            .report
            .damage
            .iter()
            .any(|damage| damage.segment == segment.base_offset && damage.set_aside.is_some());
        if is_kept || end_offset >= self.hint.high_watermark {
            return Ok(());
        }
        let path = self.set_aside(segment, size)?;
        self.report.set_aside.push(path);
        Ok(())
    }

    /// Gives the file of a segment that is dropped another name, if it holds what was
    /// committed.
    pub(super) fn rename_committed(&mut self, segment: &Segment) -> DiskResult<()> {
        if segment.size() == 0 || segment.base_offset >= self.hint.high_watermark {
            return Ok(());
        }
        let log = segment.paths.of(FileKind::Log);
        let path = with_suffix(&log, ".0.damaged");
        self.disk.rename(&log, &path)?;
        self.report.set_aside.push(path);
        Ok(())
    }

    fn found(&mut self, damage: Damage) -> Result<(), LogError> {
        if self.hint.on_loss == OnLoss::Refuse {
            let Damage { from, to, segment, position, .. } = damage;
            let reason = format!(
                "the records before offset {to} were on disk and are damaged or missing, from byte \
                 {position} of segment {segment:020}.log on"
            );
            return Err(LogError::Corrupt { offset: from, reason });
        }
        self.report.damage.push(damage);
        Ok(())
    }

    /// Copies what lies behind the first `size` bytes of a segment into a file of its own.
    fn set_aside(&mut self, segment: &Segment, size: u64) -> DiskResult<PathBuf> {
        let path = with_suffix(&segment.paths.of(FileKind::Log), &format!(".{size}.damaged"));
        let copy = self.disk.open(&path, OpenMode::CreateEmpty)?;
        let mut at = size;
        while at < segment.size() {
            let block = segment.log.read_at(at, BLOCK_BYTES)?;
            if block.is_empty() {
                break;
            }
            copy.write_at(at - size, &[IoSlice::new(&block)])?;
            at += block.len() as u64;
        }
        copy.sync()?;
        self.names_changed += 1;
        Ok(path)
    }
}
