//! When the batches of a segment were appended: `.appendtime`, see docs/formats.md.

use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;

use super::disk::DiskResult;
use super::growing::GrowingList;
use super::index::{Entries, Entry};
use super::side_file::{SideContent, SideKind};
use super::walk::{Step, Walk};
use crate::record::BatchHeader;
use crate::record::batch::NO_TIMESTAMP;

pub(crate) const APPEND_TIMES: SideKind =
    SideKind { magic: *b"DLAT", entry_bytes: AppendTimeEntry::BYTES };

/// After so many entries the next ones stand for twice the time.
const ENTRIES_PER_RESOLUTION: usize = 16_384;

/// The records from this offset on were appended at this time or later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AppendTimeEntry {
    /// In ms.
    pub(crate) time_ms: i64,
    /// Less the base offset.
    pub(crate) relative_offset: u32,
}

impl Entry for AppendTimeEntry {
    const BYTES: usize = 12;

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (time_ms, offset) = bytes.split_first_chunk()?;
        let relative_offset = u32::from_be_bytes(offset.try_into().ok()?);
        Some(Self { time_ms: i64::from_be_bytes(*time_ms), relative_offset })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.time_ms.to_be_bytes());
        out.extend_from_slice(&self.relative_offset.to_be_bytes());
    }

    fn follows(&self, previous: Option<&Self>) -> bool {
        previous.is_none_or(|previous| {
            self.time_ms > previous.time_ms && self.relative_offset > previous.relative_offset
        })
    }
}

/// Decides which batches get an entry.
#[derive(Clone, Copy, Debug, Default)]
struct Sampler {
    entries: usize,
    last_ms: Option<i64>,
}

impl Sampler {
    /// Whether a batch appended at `time_ms` gets one.
    fn takes(&mut self, time_ms: i64) -> bool {
        let resolution_ms = 1_i64 << (self.entries / ENTRIES_PER_RESOLUTION).min(40);
        let takes = self.last_ms.is_none_or(|last| time_ms >= last.saturating_add(resolution_ms));
        if takes {
            self.entries += 1;
            self.last_ms = Some(time_ms);
        }
        takes
    }
}

/// Of the active segment: what was appended since it was opened, extended by the writer alone.
#[derive(Debug)]
pub(crate) struct RecordedTimes {
    /// From this offset on every append is recorded.
    pub(crate) covered_from: i64,
    pub(crate) entries: GrowingList<AppendTimeEntry>,
    last_ms: AtomicI64,
}

impl RecordedTimes {
    pub(crate) const fn starting_at(covered_from: i64) -> Self {
        Self { covered_from, entries: GrowingList::new(), last_ms: AtomicI64::new(i64::MIN) }
    }

    /// Lets no append be recorded earlier than the segment before ended.
    pub(crate) fn set_floor(&self, newest_ms: i64) {
        self.last_ms.fetch_max(newest_ms, Ordering::AcqRel);
    }

    /// Goes on where a file ends.
    pub(crate) fn resume(content: &SideContent) -> Self {
        let recorded = Self::starting_at(content.covered_from);
        for entry in Entries::<AppendTimeEntry>::Sealed(content.entries.clone()).iter() {
            recorded.push(entry);
        }
        recorded
    }

    fn push(&self, entry: AppendTimeEntry) {
        self.last_ms.store(entry.time_ms, Ordering::Release);
        self.entries.push(entry);
    }

    /// Those of them that lie before `end_offset`, in a segment with this base offset.
    pub(crate) fn cut(&self, base_offset: i64, end_offset: i64) -> Self {
        let kept = Self::starting_at(self.covered_from.min(end_offset));
        let relative = end_offset.saturating_sub(base_offset);
        let entries = self.entries.iter_from(0);
        for entry in entries.take_while(|entry| i64::from(entry.relative_offset) < relative) {
            kept.push(entry);
        }
        kept
    }

    /// Time of the newest append, `None` before the first.
    pub(crate) fn last_ms(&self) -> Option<i64> {
        Some(self.last_ms.load(Ordering::Acquire)).filter(|last| *last > i64::MIN)
    }

    /// Takes note of a batch appended at `now_ms`, or at the time of the one before it if the clock
    /// went back.
    pub(crate) fn record(&self, relative_offset: u32, now_ms: i64) {
        let time_ms = now_ms.max(self.last_ms.load(Ordering::Relaxed));
        self.last_ms.store(time_ms, Ordering::Release);
        let len = self.entries.len();
        let last = len.checked_sub(1).and_then(|last| self.entries.get(last));
        let mut sampler = Sampler { entries: len, last_ms: last.map(|last| last.time_ms) };
        if sampler.takes(time_ms) {
            self.entries.push(AppendTimeEntry { time_ms, relative_offset });
        }
    }
}

/// The append times of a whole segment, those that were not recorded by the batches' own times.
#[derive(Debug)]
pub(crate) struct Estimator {
    sampler: Sampler,
    base_offset: i64,
    newest_ms: i64,
    not_after_ms: i64,
    entries: Vec<u8>,
}

impl Estimator {
    /// For a segment whose file was last written to at `modified_ms`; 0 when that is not known.
    pub(crate) const fn new(base_offset: i64, modified_ms: i64) -> Self {
        Self {
            sampler: Sampler { entries: 0, last_ms: None },
            base_offset,
            newest_ms: i64::MIN,
            not_after_ms: if modified_ms > 0 { modified_ms } else { i64::MAX },
            entries: Vec::new(),
        }
    }

    /// Takes in a batch whose append was not recorded.
    pub(crate) fn estimate(&mut self, header: &BatchHeader) {
        if let Some(time_ms) = self.time_of(header) {
            let relative = header.base_offset.saturating_sub(self.base_offset);
            self.add(time_ms, relative);
        }
    }

    /// The time to take for a batch whose append was not recorded; `None` for one that has no time,
    /// which counts with the batch before it.
    pub(crate) fn time_of(&self, header: &BatchHeader) -> Option<i64> {
        let time_ms = header.max_timestamp.min(self.not_after_ms).max(self.newest_ms);
        (header.max_timestamp > NO_TIMESTAMP).then_some(time_ms)
    }

    /// Takes in entries that were recorded.
    pub(crate) fn recorded(&mut self, entries: impl Iterator<Item = AppendTimeEntry>) {
        for entry in entries {
            // Recorded times win over estimates, which may only have come out too late.
            self.add(entry.time_ms.max(self.newest_ms), i64::from(entry.relative_offset));
        }
    }

    /// Takes in the batches of `walk` up to `end_offset`.
    pub(crate) fn walk(&mut self, mut walk: Walk, end_offset: i64) -> DiskResult<()> {
        while let Step::Batch(batch) = walk.next_header()? {
            if batch.header.base_offset >= end_offset {
                break;
            }
            self.estimate(&batch.header);
        }
        Ok(())
    }

    /// All entries, encoded.
    pub(crate) fn finish(self) -> Bytes {
        Bytes::from(self.entries)
    }

    fn add(&mut self, time_ms: i64, relative_offset: i64) {
        self.newest_ms = time_ms;
        if let Ok(relative_offset) = u32::try_from(relative_offset)
            && self.sampler.takes(time_ms)
        {
            AppendTimeEntry { time_ms, relative_offset }.encode(&mut self.entries);
        }
    }
}

/// The append times of one segment at one moment: those made up first, then those recorded since.
#[derive(Debug)]
pub(crate) struct AppendTimes<'a> {
    pub(crate) earlier: Bytes,
    pub(crate) recorded: Option<&'a RecordedTimes>,
}

impl AppendTimes<'_> {
    /// The first entry at or after `time_ms`. Between two entries the earlier one stands for what
    /// the resolution left out at the end of the log.
    pub(crate) fn first_at_or_after(&self, time_ms: i64) -> Option<AppendTimeEntry> {
        let parts = self.parts();
        let found = parts.iter().find_map(|part| {
            let before = part.count_where(|entry| entry.time_ms < time_ms);
            part.get(before)
        });
        found.or_else(|| {
            let newest = self.recorded.and_then(RecordedTimes::last_ms);
            self.last().filter(|_| newest.is_some_and(|newest| newest >= time_ms))
        })
    }

    /// The entry that speaks for the record at `relative_offset`.
    pub(crate) fn at(&self, relative_offset: i64) -> Option<AppendTimeEntry> {
        let holds = |e: &AppendTimeEntry| i64::from(e.relative_offset) <= relative_offset;
        self.parts().iter().rev().find_map(|part| part.last_where(holds))
    }

    pub(crate) fn last(&self) -> Option<AppendTimeEntry> {
        self.parts().iter().rev().find_map(Entries::last)
    }

    /// Time of the newest append, as far as it is known.
    pub(crate) fn newest_ms(&self) -> Option<i64> {
        let recorded = self.recorded.and_then(RecordedTimes::last_ms);
        recorded.or_else(|| self.last().map(|last| last.time_ms))
    }

    fn parts(&self) -> [Entries<'_, AppendTimeEntry>; 2] {
        let recorded = match self.recorded {
            Some(recorded) => Entries::Growing(&recorded.entries),
            None => Entries::Sealed(Bytes::new()),
        };
        [Entries::Sealed(self.earlier.clone()), recorded]
    }
}

#[cfg(test)]
mod tests;
