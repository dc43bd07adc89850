//! The tags of a segment, made batch by batch as filters ask for them.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;

use super::side_run::{HeldBytes, decode};
use super::times::SideEntries;
use super::{Indexes, Segment};
use crate::limits;
use crate::log::{LogError, TailBudget};
use crate::record::{Decompressor, Record};
use crate::storage::names::FileKind;
use crate::storage::side_file::SideContent;
use crate::storage::tags::{TAGS, TagRun, Tags, slice_of};
use crate::storage::walk::Step;

/// What is known of a segment's tags.
#[derive(Debug, Default)]
pub(super) struct SegmentTags {
    /// Of the whole segment, once it is sealed and was read through.
    whole: OnceLock<SideEntries>,
    run: Mutex<Option<HeldRun>>,
}

impl SegmentTags {
    pub(super) fn whole(&self) -> Option<&SideEntries> {
        self.whole.get()
    }
}

/// A run in memory that counts against the node's budget.
#[derive(Debug)]
struct HeldRun {
    run: TagRun,
    held: HeldBytes,
}

impl HeldRun {
    /// Takes `bytes` more from the budget; false when it is used up or the run is long enough.
    fn grow(&mut self, bytes: usize) -> bool {
        self.run.memory_bytes().saturating_add(bytes) <= limits::TAG_RUN_BYTES_MAX
            && self.held.take(bytes)
    }
}

impl Segment {
    /// The tags from `start`, which lies in this segment, up to `end`; fewer, or none, when they
    /// would take more memory than there is for them.
    pub(crate) fn tags(
        &self,
        start: i64,
        end: i64,
        budget: &Arc<TailBudget>,
        tag_of: &dyn Fn(&Record<'_>) -> Option<i32>,
    ) -> Result<Tags, LogError> {
        if let Some(entries) = self.whole_tags()? {
            return Ok(slice_of(&entries, self.base_offset, start, end));
        }
        let mut held = self.tags.run.lock().unwrap_or_else(PoisonError::into_inner);
        let continues = held.as_ref().is_some_and(|h| (h.run.from()..=h.run.to()).contains(&start));
        if !continues {
            *held = None;
        }
        let mut run = match held.take() {
            Some(run) => run,
            None => match self.batch_at(start)? {
                Some(batch) => HeldRun {
                    run: TagRun::starting_at(batch.header.base_offset.min(start)),
                    held: HeldBytes::of(budget),
                },
                None => return Ok(Tags::new(start, Bytes::new())),
            },
        };
        self.extend(&mut run, end, tag_of)?;
        let tags = run.run.slice(start, end);
        if !self.keep_whole(&run)? {
            *held = Some(run);
        }
        Ok(tags)
    }

    /// The tags of the whole segment, from memory or file.
    fn whole_tags(&self) -> Result<Option<Bytes>, LogError> {
        if let Some(whole) = self.tags.whole.get() {
            return Ok(Some(whole.content()?));
        }
        let Some(found) = self.whole_side(FileKind::TagIndex, TAGS)? else { return Ok(None) };
        let whole = self.tags.whole.get_or_init(|| found);
        Ok(Some(whole.content()?))
    }

    /// Takes in batches until the run reaches `end`, or may not grow any more.
    fn extend(
        &self,
        held: &mut HeldRun,
        end: i64,
        tag_of: &dyn Fn(&Record<'_>) -> Option<i32>,
    ) -> Result<(), LogError> {
        let mut decompressor = Decompressor::new();
        let mut walk = self.walk_from(self.position_of(held.run.to())?);
        while held.run.to() < end {
            let Step::Batch(batch) = walk.next_batch()? else { break };
            let cost = held.run.cost(&batch.header);
            if !cost.is_some_and(|bytes| held.grow(bytes)) {
                break;
            }
            let decoded = decode(&batch, &mut decompressor)?;
            held.run.push(&decoded, tag_of);
        }
        Ok(())
    }

    /// Writes the tags of a sealed segment once the run holds all of them; false before.
    fn keep_whole(&self, held: &HeldRun) -> Result<bool, LogError> {
        let Indexes::Sealed(indexes) = &self.indexes else { return Ok(false) };
        if held.run.from() > self.base_offset {
            return Ok(false);
        }
        let _alone = indexes.completing.lock().unwrap_or_else(PoisonError::into_inner);
        let covered_to = self.end_offset()?;
        if held.run.to() < covered_to {
            return Ok(false);
        }
        let covered_from = self.base_offset;
        let entries = held.run.entries();
        let content = SideContent { covered_from, covered_to, entries };
        _ = self.tags.whole.set(self.keep_side(FileKind::TagIndex, TAGS, content));
        Ok(true)
    }
}
