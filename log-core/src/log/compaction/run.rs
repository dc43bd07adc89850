//! One run over a log: the map of its dirty keys, then one group of segments after the other.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use super::CompactionPlan;
use super::filter::{Filter, Kept, Rules, take_keys};
use super::offset_map::{MapMemory, OffsetMap, Put};
use super::output::{CleanedSegment, Output, append_times};
use super::swap::CompactedGroup;
use super::transactions::{Fate, Transactions};
use crate::log::LogError;
use crate::record::{Batch, BatchHeader, Decompressor};
use crate::storage::disk::DiskResult;
use crate::storage::index::{Entry, OffsetEntry, TimeEntry};
use crate::storage::segment::Segment;
use crate::storage::walk::{Located, Step};

/// Read and written between two looks at the pace.
const PACED_BYTES: u64 = 256 << 10;

/// Sets how fast a run goes, and whether it goes on.
pub trait Pace {
    /// So many bytes were read or written since the last call; may wait before it returns.
    ///
    /// Errors: the run is to end without a result.
    fn passed(&mut self, bytes: u64) -> Result<(), Stopped>;
}

/// See [`Pace::passed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

/// Why a run ended early. The log is whole; groups that were installed stay.
#[derive(Debug, thiserror::Error)]
pub enum CompactionError {
    /// A segment cannot be read, or nothing can be written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The [`Pace`] said so.
    #[error("stopped")]
    Stopped,
}

impl From<Stopped> for CompactionError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// What a run has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactionStats {
    /// Keys of the dirty part.
    pub keys: usize,
    /// Bytes of segments that were read, once for the keys and once for the copy.
    pub bytes_read: u64,
    /// Bytes of the segments before.
    pub bytes_before: u64,
    /// Bytes of the segments that take their place.
    pub bytes_after: u64,
    /// Records in the segments that take their place.
    pub records_after: u64,
}

/// See the module. Drop it after the last group was installed, or at any time before.
#[derive(Debug)]
pub struct Compaction {
    plan: CompactionPlan,
    rules: Rules,
    txns: Transactions,
    filter: Filter,
    groups: VecDeque<Vec<Arc<Segment>>>,
    stats: CompactionStats,
    unpaced: u64,
}

impl Compaction {
    /// Reads the dirty part's keys. Blocks for as long as that takes.
    ///
    /// Errors: `Corrupt` for a batch that is not whole or has another CRC; `Storage`; stopped.
    pub fn start(
        mut plan: CompactionPlan,
        memory: MapMemory,
        pace: &mut dyn Pace,
    ) -> Result<Self, CompactionError> {
        let offsets = plan.end.saturating_sub(plan.first_dirty);
        let keys = u64::try_from(offsets).unwrap_or_default();
        let map = OffsetMap::new(memory, keys, plan.first_dirty.saturating_sub(1));
        let rules = Rules {
            map,
            last_records: std::mem::take(&mut plan.last_records),
            end_offset: plan.end,
            now_ms: plan.now_ms,
            delete_retention_ms: plan.config.delete_retention_ms,
        };
        let mut run = Self {
            plan,
            rules,
            txns: Transactions::default(),
            filter: Filter::default(),
            groups: VecDeque::new(),
            stats: CompactionStats::default(),
            unpaced: 0,
        };
        run.read_keys(pace)?;
        run.stats.keys = run.rules.map.len();
        run.groups = run.group()?;
        Ok(run)
    }

    /// Up to here, exclusive, the log is compacted once all groups are installed: the next run's
    /// checkpoint. Below the plan's end when the map had no room for all keys.
    #[must_use]
    pub fn end_offset(&self) -> i64 {
        self.rules.map.latest().saturating_add(1)
    }

    /// What was done so far.
    #[must_use]
    pub const fn stats(&self) -> CompactionStats {
        self.stats
    }

    /// Writes the next group, synced, for [`crate::log::Log::install`]; `None` after the last.
    /// Segments of which everything stays are passed over. Blocks for as long as that takes.
    ///
    /// Errors: as [`Self::start`]; `StorageFull`. What was written of the group is removed.
    pub fn next_group(
        &mut self,
        pace: &mut dyn Pace,
    ) -> Result<Option<CompactedGroup>, CompactionError> {
        while let Some(old) = self.groups.pop_front() {
            let mut written = Vec::new();
            let outcome = self.clean(&old, &mut written, pace);
            let changed = match outcome {
                Ok(changed) => changed,
                Err(error) => {
                    self.compacted(old, written).discard();
                    return Err(error);
                }
            };
            let before: u64 = old.iter().map(|segment| segment.size()).sum();
            let after: u64 = written.iter().map(|segment: &CleanedSegment| segment.size).sum();
            self.stats.bytes_before += before;
            self.stats.bytes_after += if changed == Changed::Yes { after } else { before };
            let group = self.compacted(old, written);
            if changed == Changed::Yes {
                return Ok(Some(group));
            }
            group.discard();
        }
        Ok(None)
    }

    fn compacted(&self, old: Vec<Arc<Segment>>, new: Vec<CleanedSegment>) -> CompactedGroup {
        let (disk, dir) = (Arc::clone(&self.plan.disk), Arc::clone(&self.plan.dir));
        CompactedGroup::new(disk, dir, old, new)
    }

    /// Fills the map with the dirty part's keys, or with as many as it takes.
    fn read_keys(&mut self, pace: &mut dyn Pace) -> Result<(), CompactionError> {
        let (first, end) = (self.plan.first_dirty, self.plan.end);
        let mut txns = Transactions::default();
        txns.expect(self.plan.reader.aborted_transactions(first, end)?);
        let mut decompressor = Decompressor::new();
        let segments = self.plan.segments.clone();
        let from = segments.partition_point(|s| s.base_offset <= first).saturating_sub(1);
        for segment in segments.iter().skip(from).take_while(|s| s.base_offset < end) {
            let from = segment.position_before(first).map_err(LogError::from)?;
            let mut walk = segment.walk_from(from);
            while let Some(batch) = whole(walk.next_batch(), segment)? {
                let Located { header, content, .. } = batch;
                if header.base_offset >= end {
                    break;
                }
                self.passed(content.len(), pace)?;
                if header.last_offset() < first {
                    continue;
                }
                if take_in(&header, &content, first, &mut txns, &mut self.rules, &mut decompressor)
                    .map_err(|error| corrupt(&header, error))?
                    == Put::Full
                {
                    return Ok(());
                }
            }
        }
        self.rules.map.advance(end.saturating_sub(1));
        Ok(())
    }

    /// Segments that begin below the end of the map, so many together as fit one segment.
    ///
    /// Source: Cleaner.groupSegmentsBySize.
    fn group(&self) -> Result<VecDeque<Vec<Arc<Segment>>>, LogError> {
        let end_offset = self.end_offset();
        let (bytes_max, index_bytes_max) = (
            u64::from(self.plan.config.segment_bytes),
            self.plan.config.segment_index_bytes as usize,
        );
        let mut groups: VecDeque<Vec<Arc<Segment>>> = VecDeque::new();
        let (mut bytes, mut offset_bytes, mut time_bytes) = (0_u64, 0_usize, 0_usize);
        for (index, segment) in self.plan.segments.iter().enumerate() {
            if segment.base_offset >= end_offset {
                break;
            }
            let size = segment.size();
            let offsets = segment.offsets()?.len() * OffsetEntry::BYTES;
            let times = segment.times()?.len() * TimeEntry::BYTES;
            let last = self.next_base(index).saturating_sub(1);
            let fits = |first: &Arc<Segment>| {
                bytes + size <= bytes_max
                    && offset_bytes + offsets <= index_bytes_max
                    && time_bytes + times <= index_bytes_max
                    && last.saturating_sub(first.base_offset) <= i64::from(i32::MAX)
            };
            match groups.back_mut() {
                Some(group) if group.first().is_some_and(fits) => group.push(Arc::clone(segment)),
                _ => {
                    (bytes, offset_bytes, time_bytes) = (0, 0, 0);
                    groups.push_back(vec![Arc::clone(segment)]);
                }
            }
            bytes += size;
            offset_bytes += offsets;
            time_bytes += times;
        }
        Ok(groups)
    }

    /// The base offset of what follows the plan's segment at `index`.
    fn next_base(&self, index: usize) -> i64 {
        self.plan.segments.get(index + 1).map_or(self.plan.sealed_end, |next| next.base_offset)
    }

    fn base_after(&self, segment: &Segment) -> i64 {
        let index = self.plan.segments.partition_point(|s| s.base_offset < segment.base_offset);
        self.next_base(index)
    }

    /// Copies what stays of a group into new segments.
    fn clean(
        &mut self,
        group: &[Arc<Segment>],
        written: &mut Vec<CleanedSegment>,
        pace: &mut dyn Pace,
    ) -> Result<Changed, CompactionError> {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            return Ok(Changed::No);
        };
        let group_end = self.base_after(last);
        let mut output = self.output(first.base_offset)?;
        let copied = self.copy(group, &mut output, written, pace);
        let changed = match copied {
            // They become one.
            Ok(_) if group.len() > 1 => Ok(Changed::Yes),
            copied => copied,
        };
        let wanted = matches!(changed, Ok(Changed::Yes));
        let finished = self.finish(output, written, group, group_end, wanted);
        let changed = changed?;
        finished?;
        Ok(changed)
    }

    fn copy(
        &mut self,
        group: &[Arc<Segment>],
        output: &mut Output,
        written: &mut Vec<CleanedSegment>,
        pace: &mut dyn Pace,
    ) -> Result<Changed, CompactionError> {
        let mut changed = Changed::No;
        for segment in group {
            let end = self.base_after(segment);
            let aborted = self.plan.reader.aborted_transactions(segment.base_offset, end)?;
            self.txns.expect(aborted);
            let mut walk = segment.walk_from(0);
            while let Some(batch) = whole(walk.next_batch(), segment)? {
                let Located { header, content, .. } = batch;
                let filtered = self.filter.apply(&content, &self.rules, &mut self.txns);
                let filtered = filtered.map_err(|error| corrupt(&header, error))?;
                self.stats.records_after += filtered.records_kept;
                let read = content.len();
                let kept = match filtered.kept {
                    Kept::Whole => Some((header, content)),
                    Kept::Changed(bytes) => {
                        changed = Changed::Yes;
                        Some((BatchHeader::parse(&bytes).map_err(LogError::from)?, bytes))
                    }
                    Kept::Nothing => {
                        changed = Changed::Yes;
                        None
                    }
                };
                let size = kept.as_ref().map_or(0, |(_, bytes)| bytes.len());
                if let Some((header, bytes)) = kept {
                    self.make_room(output, written, &header, group)?;
                    output.push(&header, bytes).map_err(LogError::from)?;
                }
                if let Some(txn) = filtered.aborted {
                    output.push_aborted(txn);
                }
                self.passed(read + size, pace)?;
            }
        }
        Ok(changed)
    }

    fn output(&self, base_offset: i64) -> Result<Output, LogError> {
        let plan = &self.plan;
        Ok(Output::create(&plan.disk, &plan.dir, base_offset, &plan.config)?)
    }

    /// Goes on in another segment where the next batch would not fit: what is compressed anew may
    /// have grown (case B34).
    fn make_room(
        &self,
        output: &mut Output,
        written: &mut Vec<CleanedSegment>,
        next: &BatchHeader,
        group: &[Arc<Segment>],
    ) -> Result<(), LogError> {
        let size = output.size() + next.size_in_bytes() as u64;
        let is_full = size > u64::from(self.plan.config.segment_bytes);
        if output.size() == 0 || !is_full {
            return Ok(());
        }
        let full = std::mem::replace(output, self.output(next.base_offset)?);
        self.finish(full, written, group, next.base_offset, true)
    }

    /// Ends a segment at `end`, exclusive; one that is not `wanted` is only named among the written.
    fn finish(
        &self,
        output: Output,
        written: &mut Vec<CleanedSegment>,
        group: &[Arc<Segment>],
        end: i64,
        wanted: bool,
    ) -> Result<(), LogError> {
        if !wanted {
            written.push(output.given_up());
            return Ok(());
        }
        let base_offset = output.base_offset();
        let times = append_times(group, base_offset, end)?;
        written.push(output.finish(times, end)?);
        Ok(())
    }

    fn passed(&mut self, bytes: usize, pace: &mut dyn Pace) -> Result<(), Stopped> {
        self.unpaced += bytes as u64;
        self.stats.bytes_read += bytes as u64;
        if self.unpaced < PACED_BYTES {
            return Ok(());
        }
        pace.passed(std::mem::take(&mut self.unpaced))
    }
}

/// Whether a group's segments are other ones after compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Changed {
    Yes,
    No,
}

/// Takes one batch of the dirty part into the map.
fn take_in(
    header: &BatchHeader,
    content: &Bytes,
    first: i64,
    txns: &mut Transactions,
    rules: &mut Rules,
    decompressor: &mut Decompressor,
) -> Result<Put, LogError> {
    let is_data = if header.is_control() {
        txns.control(&Batch::parse(content)?)?;
        false
    } else {
        txns.data(header) == Fate::Valid
    };
    if is_data && take_keys(content, first, &mut rules.map, decompressor)? == Put::Full {
        return Ok(Put::Full);
    }
    rules.map.advance(header.last_offset());
    Ok(Put::Kept)
}

/// The batch of a step, `None` at the end of the segment.
fn whole<T>(step: DiskResult<Step<T>>, segment: &Segment) -> Result<Option<Located<T>>, LogError> {
    match step? {
        Step::Batch(batch) => Ok(Some(batch)),
        Step::End => Ok(None),
        Step::Broken { reason } => {
            let reason = reason.to_string();
            Err(LogError::Corrupt { offset: segment.base_offset, reason })
        }
    }
}

/// A stored batch that cannot be read is the log's fault, not that of whoever sent it.
fn corrupt(header: &BatchHeader, error: LogError) -> LogError {
    match error {
        LogError::InvalidBatch(reason) => LogError::Corrupt { offset: header.base_offset, reason },
        other => other,
    }
}
