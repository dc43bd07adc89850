//! Which offsets of a segment have records with a key: `.keys`, see docs/formats.md.

use bytes::Bytes;

use super::side_file::SideKind;
use crate::limits::KEY_HITS_MAX;
use crate::record::{DecodedBatch, Record};

const ENTRY_BYTES: usize = 8;

/// Gives the hash of each key of a record to the function.
pub type KeysOf<'a> = dyn Fn(&Record<'_>, &mut dyn FnMut(u32)) + Sync + 'a;

/// What keys a record has.
#[derive(Clone, Copy)]
pub struct KeyRule<'a> {
    /// A letter, one for each rule: what was made by another one is made anew.
    pub id: u8,
    /// Finds the same ones every time: they are kept.
    pub keys_of: &'a KeysOf<'a>,
}

/// The kind of a file that was made by the rule with this letter.
pub(crate) const fn side_kind(rule: u8) -> SideKind {
    SideKind { magic: [b'D', b'L', b'K', rule], entry_bytes: ENTRY_BYTES }
}

/// Where records with a key may be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyHits {
    /// Offsets in order. Others have the same hash now and then; aborted records are among them.
    pub offsets: Vec<i64>,
    /// Everything below was looked at; where the search began when nothing could be. With
    /// [`KEY_HITS_MAX`] offsets it ends behind the last of them.
    pub end_offset: i64,
    /// The index was made further meanwhile: asked again, it may say more.
    pub grows: bool,
}

/// The keys of a run of offsets, while it is being made.
#[derive(Debug)]
pub(crate) struct KeyRun {
    base_offset: i64,
    to: i64,
    /// Hash and offset less the base offset, in the order of offsets.
    entries: Vec<(u32, u32)>,
}

impl KeyRun {
    /// Nothing yet; the first batch taken in is the first of the segment at `base_offset`.
    pub(crate) const fn starting_at(base_offset: i64) -> Self {
        Self { base_offset, to: base_offset, entries: Vec::new() }
    }

    pub(crate) const fn to(&self) -> i64 {
        self.to
    }

    /// Takes in the next batch, if `has_room` for so many bytes more; returns whether it did.
    pub(crate) fn push(
        &mut self,
        batch: &DecodedBatch,
        rule: KeyRule<'_>,
        has_room: impl FnOnce(usize) -> bool,
    ) -> bool {
        let before = self.entries.len();
        if !batch.header().is_control() {
            for record in batch {
                let relative = record.offset.saturating_sub(self.base_offset);
                let Ok(relative) = u32::try_from(relative) else { continue };
                (rule.keys_of)(&record, &mut |hash| self.entries.push((hash, relative)));
            }
        }
        let added = self.entries.len() - before;
        if added > 0 && !has_room(added * ENTRY_BYTES) {
            self.entries.truncate(before);
            return false;
        }
        self.to = batch.header().next_offset();
        true
    }

    /// The offsets from `start` up to `end` with this hash, as far as they are there.
    pub(crate) fn find(&self, hash: u32, start: i64, end: i64) -> KeyHits {
        let offset_of = |relative: u32| self.base_offset.saturating_add(relative.into());
        let first = self.entries.partition_point(|(_, relative)| offset_of(*relative) < start);
        let entries = self.entries.get(first..).unwrap_or_default();
        let wanted = entries.iter().filter(|(known, _)| *known == hash);
        let offsets = wanted.map(|(_, relative)| offset_of(*relative));
        first_hits(offsets.take_while(|offset| *offset < end), end.min(self.to).max(start))
    }

    /// As a file has them: sorted by hash, then by offset, each once.
    pub(crate) fn sorted(&self) -> Bytes {
        let mut entries = self.entries.clone();
        entries.sort_unstable();
        entries.dedup();
        let bytes = entries.iter().flat_map(|(hash, relative)| {
            hash.to_be_bytes().into_iter().chain(relative.to_be_bytes())
        });
        bytes.collect::<Vec<u8>>().into()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.entries.len() * ENTRY_BYTES
    }
}

/// What a whole segment's entries say of a hash, from `start` up to `end`.
pub(crate) fn find_in(
    entries: &Bytes,
    base_offset: i64,
    hash: u32,
    start: i64,
    end: i64,
) -> KeyHits {
    let entry = |index: usize| -> Option<(u32, u32)> {
        let entry = entries.get(index.checked_mul(ENTRY_BYTES)?..)?;
        let (hash, rest) = entry.split_first_chunk()?;
        let (relative, _) = rest.split_first_chunk()?;
        Some((u32::from_be_bytes(*hash), u32::from_be_bytes(*relative)))
    };
    let first = u32::try_from(start.saturating_sub(base_offset).max(0)).unwrap_or(u32::MAX);
    let (mut low, mut high) = (0, entries.len() / ENTRY_BYTES);
    while low < high {
        let middle = low + (high - low) / 2;
        if entry(middle).is_some_and(|entry| entry < (hash, first)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let offsets = (low..)
        .map_while(entry)
        .take_while(|(known, _)| *known == hash)
        .map(|(_, relative)| base_offset.saturating_add(relative.into()))
        .filter(|offset| *offset >= start)
        .take_while(|offset| *offset < end);
    first_hits(offsets, end)
}

/// The first of these offsets, each once; `end_offset` if that is all of them.
fn first_hits(offsets: impl Iterator<Item = i64>, end_offset: i64) -> KeyHits {
    let mut hits = KeyHits { offsets: Vec::new(), end_offset, grows: false };
    for offset in offsets {
        if hits.offsets.last() == Some(&offset) {
            continue;
        }
        if hits.offsets.len() == KEY_HITS_MAX {
            hits.end_offset = hits.offsets.last().map_or(end_offset, |last| last.saturating_add(1));
            break;
        }
        hits.offsets.push(offset);
    }
    hits
}
