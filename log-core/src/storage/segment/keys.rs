//! The keys of a segment, made batch by batch as somebody asks for one.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::side_run::{HeldBytes, decode};
use super::times::SideEntries;
use super::{Indexes, Segment};
use crate::limits;
use crate::log::{LogError, TailBudget};
use crate::record::{DecodedBatch, Decompressor};
use crate::storage::disk::MappedFile;
use crate::storage::keys::{KeyHits, KeyRule, KeyRun, find_in, side_kind};
use crate::storage::names::FileKind;
use crate::storage::side_file::SideContent;
use crate::storage::walk::Step;

/// What is known of a segment's keys, by the rule that was asked for last.
#[derive(Debug, Default)]
pub(super) struct SegmentKeys {
    /// Of the whole segment, once it is sealed and was read through, with the rule's letter.
    whole: Mutex<Option<(u8, SideEntries)>>,
    run: Mutex<Option<HeldRun>>,
}

impl SegmentKeys {
    /// The file of the whole segment's keys, if it is in use.
    pub(super) fn mapped(&self) -> Option<Arc<dyn MappedFile>> {
        match &*self.whole.lock().unwrap_or_else(PoisonError::into_inner) {
            Some((_, SideEntries::Mapped { file, .. })) => Some(Arc::clone(file)),
            Some((_, SideEntries::Memory(_))) | None => None,
        }
    }

    /// Those of the whole segment by a rule.
    fn whole(&self, rule: u8) -> Result<Option<Bytes>, LogError> {
        let whole = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        let known = whole.as_ref().filter(|(known, _)| *known == rule);
        Ok(known.map(|(_, entries)| entries.content()).transpose()?)
    }

    fn set_whole(&self, rule: u8, entries: SideEntries) {
        *self.whole.lock().unwrap_or_else(PoisonError::into_inner) = Some((rule, entries));
    }
}

/// A run in memory that counts against the node's budget.
#[derive(Debug)]
struct HeldRun {
    rule: u8,
    run: KeyRun,
    held: HeldBytes,
}

impl HeldRun {
    /// Takes in the next batch; false when there is no memory for its keys.
    fn push(&mut self, batch: &DecodedBatch, rule: KeyRule<'_>) -> bool {
        let (in_memory, held) = (self.run.memory_bytes(), &mut self.held);
        self.run.push(batch, rule, |bytes| {
            in_memory.saturating_add(bytes) <= limits::KEY_RUN_BYTES_MAX && held.take(bytes)
        })
    }
}

impl Segment {
    /// Where records with a key of this hash may be, from `start`, which lies in this segment, up to
    /// `end`; looked at less far, or not at all, when the index is not made yet, of which each call
    /// does a part, or would take more memory than there is, or more reading than it spares.
    pub(crate) fn keys(
        &self,
        hash: u32,
        (start, end): (i64, i64),
        budget: &Arc<TailBudget>,
        rule: KeyRule<'_>,
    ) -> Result<KeyHits, LogError> {
        if let Some(entries) = self.whole_keys(rule.id)? {
            let end = end.min(self.end_offset()?).max(start);
            return Ok(find_in(&entries, self.base_offset, hash, start, end));
        }
        let mut held = self.keys.run.lock().unwrap_or_else(PoisonError::into_inner);
        let mut run = held.take().filter(|run| run.rule == rule.id).unwrap_or_else(|| HeldRun {
            rule: rule.id,
            run: KeyRun::starting_at(self.base_offset),
            held: HeldBytes::of(budget),
        });
        let before = run.run.to();
        let is_far = start.saturating_sub(before) > end.saturating_sub(start);
        let extended = if is_far { Ok(()) } else { self.extend_keys(&mut run, end, rule) };
        let mut hits = run.run.find(hash, start, end);
        hits.grows = run.run.to() > before;
        // What lies before a damaged batch is good.
        if extended.is_err() || !self.keep_whole_keys(&run)? {
            *held = Some(run);
        }
        extended.map(|()| hits)
    }

    /// The keys of the whole segment, from memory or file.
    fn whole_keys(&self, rule: u8) -> Result<Option<Bytes>, LogError> {
        if let Some(whole) = self.keys.whole(rule)? {
            return Ok(Some(whole));
        }
        let Some(found) = self.whole_side(FileKind::KeyIndex, side_kind(rule))? else {
            return Ok(None);
        };
        self.keys.set_whole(rule, found);
        self.keys.whole(rule)
    }

    /// Takes in some batches, until the run reaches `end` or may not grow any more.
    fn extend_keys(&self, held: &mut HeldRun, end: i64, rule: KeyRule<'_>) -> Result<(), LogError> {
        let mut decompressor = Decompressor::new();
        let mut walk = self.walk_from(self.position_of(held.run.to())?);
        let enough = held.run.to().saturating_add(limits::KEY_STEP_OFFSETS).min(end);
        let mut bytes_left = limits::KEY_STEP_BYTES;
        while held.run.to() < enough && bytes_left > 0 {
            let Step::Batch(batch) = walk.next_batch()? else { break };
            bytes_left = bytes_left.saturating_sub(batch.content.len());
            let decoded = decode(&batch, &mut decompressor)?;
            if !held.push(&decoded, rule) {
                break;
            }
        }
        Ok(())
    }

    /// Writes the keys of a sealed segment once the run holds all of them; false before.
    fn keep_whole_keys(&self, held: &HeldRun) -> Result<bool, LogError> {
        let Indexes::Sealed(indexes) = &self.indexes else { return Ok(false) };
        let _alone = indexes.completing.lock().unwrap_or_else(PoisonError::into_inner);
        let covered_to = self.end_offset()?;
        if held.run.to() < covered_to {
            return Ok(false);
        }
        let covered_from = self.base_offset;
        let entries = held.run.sorted();
        let content = SideContent { covered_from, covered_to, entries };
        let kept = self.keep_side(FileKind::KeyIndex, side_kind(held.rule), content);
        self.keys.set_whole(held.rule, kept);
        Ok(true)
    }
}
