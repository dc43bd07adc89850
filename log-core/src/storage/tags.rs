//! What each offset of a segment holds for a filter by tag: `.tags`, see docs/formats.md.

use bytes::Bytes;

use super::side_file::SideKind;
use crate::record::{BatchHeader, DecodedBatch, Record};

const ENTRY_BYTES: usize = 5;
const HOLE: u8 = 0;
const CONTROL: u8 = 1;
const UNTAGGED: u8 = 2;
const TAGGED: u8 = 3;

pub(crate) const TAGS: SideKind = SideKind { magic: *b"DLTG", entry_bytes: ENTRY_BYTES };

/// What is at one offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordTag {
    /// No record: compaction took it, or none was ever written there.
    Hole,
    /// A control record.
    Control,
    /// A record without a tag.
    Untagged,
    /// A record with a tag, by its code.
    Tagged(i32),
}

impl RecordTag {
    fn decode(entry: &[u8]) -> Self {
        match entry.split_first_chunk() {
            Some((&[CONTROL], _)) => Self::Control,
            Some((&[UNTAGGED], _)) => Self::Untagged,
            Some((&[TAGGED], code)) => {
                Self::Tagged(i32::from_be_bytes(code.try_into().unwrap_or_default()))
            }
            _ => Self::Hole,
        }
    }

    fn encode(self, out: &mut Vec<u8>) {
        let (kind, code) = match self {
            Self::Hole => (HOLE, 0),
            Self::Control => (CONTROL, 0),
            Self::Untagged => (UNTAGGED, 0),
            Self::Tagged(code) => (TAGGED, code),
        };
        out.push(kind);
        out.extend_from_slice(&code.to_be_bytes());
    }
}

/// The tags of a run of offsets. Aborted records are among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags {
    first_offset: i64,
    entries: Bytes,
}

impl Tags {
    pub(crate) const fn new(first_offset: i64, entries: Bytes) -> Self {
        Self { first_offset, entries }
    }

    /// The offset after the run; the first one when there is none.
    #[must_use]
    pub const fn end_offset(&self) -> i64 {
        self.first_offset.saturating_add((self.entries.len() / ENTRY_BYTES) as i64)
    }

    /// Offsets with what they hold, in order.
    pub fn iter(&self) -> impl Iterator<Item = (i64, RecordTag)> + '_ {
        let tags = self.entries.chunks_exact(ENTRY_BYTES).map(RecordTag::decode);
        tags.enumerate().map(|(index, tag)| (self.first_offset.saturating_add(index as i64), tag))
    }

    /// The first offset of a record with one of these codes.
    #[must_use]
    pub fn first_of(&self, codes: &[i32]) -> Option<i64> {
        let mut tags = self.iter();
        tags.find_map(|(offset, tag)| match tag {
            RecordTag::Tagged(code) if codes.contains(&code) => Some(offset),
            _ => None,
        })
    }
}

/// A run that is being made.
#[derive(Debug)]
pub(crate) struct TagRun {
    from: i64,
    entries: Vec<u8>,
}

impl TagRun {
    /// Nothing yet; the first batch taken in begins at `from`.
    pub(crate) const fn starting_at(from: i64) -> Self {
        Self { from, entries: Vec::new() }
    }

    pub(crate) const fn from(&self) -> i64 {
        self.from
    }

    pub(crate) const fn to(&self) -> i64 {
        self.from.saturating_add((self.entries.len() / ENTRY_BYTES) as i64)
    }

    /// Bytes of memory that taking in a batch would add.
    pub(crate) fn cost(&self, header: &BatchHeader) -> Option<usize> {
        let offsets = header.next_offset().checked_sub(self.to())?;
        usize::try_from(offsets).ok()?.checked_mul(ENTRY_BYTES)
    }

    /// Takes in the next batch; offsets that it leaves out hold no record.
    pub(crate) fn push(
        &mut self,
        batch: &DecodedBatch,
        tag_of: &dyn Fn(&Record<'_>) -> Option<i32>,
    ) {
        let is_control = batch.header().is_control();
        for record in batch {
            self.fill_to(record.offset);
            let tag = match tag_of(&record) {
                _ if is_control => RecordTag::Control,
                Some(code) => RecordTag::Tagged(code),
                None => RecordTag::Untagged,
            };
            tag.encode(&mut self.entries);
        }
        self.fill_to(batch.header().next_offset());
    }

    /// The tags from `start` up to `end` as far as they are there.
    pub(crate) fn slice(&self, start: i64, end: i64) -> Tags {
        let at = |offset: i64| {
            let index = offset.clamp(self.from, self.to()).saturating_sub(self.from);
            usize::try_from(index).unwrap_or(0).saturating_mul(ENTRY_BYTES)
        };
        let entries = self.entries.get(at(start)..at(end)).unwrap_or_default();
        Tags::new(start, Bytes::copy_from_slice(entries))
    }

    /// All of them, copied.
    pub(crate) fn entries(&self) -> Bytes {
        Bytes::copy_from_slice(&self.entries)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.entries.len()
    }

    fn fill_to(&mut self, offset: i64) {
        while self.to() < offset {
            RecordTag::Hole.encode(&mut self.entries);
        }
    }
}

/// The part of a whole segment's entries from `start` to `end`.
pub(crate) fn slice_of(entries: &Bytes, base_offset: i64, start: i64, end: i64) -> Tags {
    let at = |offset: i64| {
        let index = usize::try_from(offset.saturating_sub(base_offset)).unwrap_or(0);
        index.saturating_mul(ENTRY_BYTES).min(entries.len())
    };
    let (from, to) = (at(start), at(end));
    Tags::new(start, entries.slice(from..to.max(from)))
}
