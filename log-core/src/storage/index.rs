//! Entries of a segment's index files and how they are searched.
//!
//! All are big endian and of fixed length, so that the file is an array:
//!
//! | file | entry |
//! |---|---|
//! | `.index` | offset of a batch's last record less the base offset i32, position of the batch i32 |
//! | `.timeindex` | greatest timestamp so far i64, last offset of the batch that has it less the base offset i32 |
//! | `.txnindex` | version i16 (0), producer id i64, first offset i64, last offset i64, last stable offset i64 |
//!
//! Source: OffsetIndex, TimeIndex, AbortedTxn.

use bytes::Bytes;

use super::growing::GrowingList;
use crate::log::AbortedTxn;

/// A fixed-length entry. Offsets in it are relative to the segment's base offset where so stored.
pub(crate) trait Entry: Copy {
    /// Encoded length.
    const BYTES: usize;

    /// Reads exactly [`Self::BYTES`]; `None` for anything that is no entry.
    fn decode(bytes: &[u8]) -> Option<Self>;

    fn encode(&self, out: &mut Vec<u8>);

    /// Whether this may stand behind `previous` in one file; of the first entry, whether it may be
    /// the first.
    fn follows(&self, previous: Option<&Self>) -> bool;
}

/// Where the batch starts whose last offset this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OffsetEntry {
    /// Less the base offset.
    pub(crate) relative_offset: u32,
    pub(crate) position: u32,
}

impl Entry for OffsetEntry {
    const BYTES: usize = 8;

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (offset, position) = bytes.split_first_chunk()?;
        let relative_offset = not_negative(i32::from_be_bytes(*offset))?;
        let position = not_negative(i32::from_be_bytes(position.try_into().ok()?))?;
        Some(Self { relative_offset, position })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.relative_offset.to_be_bytes());
        out.extend_from_slice(&self.position.to_be_bytes());
    }

    fn follows(&self, previous: Option<&Self>) -> bool {
        match previous {
            Some(previous) => {
                self.relative_offset > previous.relative_offset && self.position > previous.position
            }
            // The first batch of a segment gets no entry.
            None => self.position > 0,
        }
    }
}

/// All records up to this offset have at most this timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeEntry {
    /// In ms.
    pub(crate) timestamp: i64,
    /// Less the base offset.
    pub(crate) relative_offset: u32,
}

impl Entry for TimeEntry {
    const BYTES: usize = 12;

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (timestamp, offset) = bytes.split_first_chunk()?;
        let relative_offset = not_negative(i32::from_be_bytes(offset.try_into().ok()?))?;
        Some(Self { timestamp: i64::from_be_bytes(*timestamp), relative_offset })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.timestamp.to_be_bytes());
        out.extend_from_slice(&self.relative_offset.to_be_bytes());
    }

    fn follows(&self, previous: Option<&Self>) -> bool {
        match previous {
            // Also keeps zero padding out: it would claim the time 0 after a later one (case B75).
            Some(previous) => {
                self.timestamp > previous.timestamp
                    && self.relative_offset >= previous.relative_offset
            }
            None => self.timestamp >= 0,
        }
    }
}

impl Entry for AbortedTxn {
    const BYTES: usize = 34;

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (version, rest) = bytes.split_first_chunk()?;
        if i16::from_be_bytes(*version) < 0 {
            return None;
        }
        let (producer_id, rest) = rest.split_first_chunk()?;
        let (first_offset, rest) = rest.split_first_chunk()?;
        let (last_offset, rest) = rest.split_first_chunk()?;
        Some(Self {
            producer_id: i64::from_be_bytes(*producer_id),
            first_offset: i64::from_be_bytes(*first_offset),
            last_offset: i64::from_be_bytes(*last_offset),
            last_stable_offset: i64::from_be_bytes(rest.try_into().ok()?),
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&0_i16.to_be_bytes());
        out.extend_from_slice(&self.producer_id.to_be_bytes());
        out.extend_from_slice(&self.first_offset.to_be_bytes());
        out.extend_from_slice(&self.last_offset.to_be_bytes());
        out.extend_from_slice(&self.last_stable_offset.to_be_bytes());
    }

    fn follows(&self, previous: Option<&Self>) -> bool {
        self.first_offset >= 0
            && self.first_offset < self.last_offset
            && self.producer_id >= 0
            && previous.is_none_or(|previous| self.last_offset > previous.last_offset)
    }
}

const fn not_negative(value: i32) -> Option<u32> {
    if value < 0 { None } else { Some(value as u32) }
}

/// The entries of one index at one moment.
#[derive(Debug)]
pub(crate) enum Entries<'a, E> {
    /// Of the active segment; may grow while being read.
    Growing(&'a GrowingList<E>),
    /// The content of a sealed file.
    Sealed(Bytes),
}

impl<E: Entry> Entries<'_, E> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Growing(list) => list.len(),
            Self::Sealed(bytes) => bytes.len() / E::BYTES,
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<E> {
        match self {
            Self::Growing(list) => list.get(index).copied(),
            Self::Sealed(bytes) => {
                let start = index.checked_mul(E::BYTES)?;
                E::decode(bytes.get(start..start.checked_add(E::BYTES)?)?)
            }
        }
    }

    pub(crate) fn last(&self) -> Option<E> {
        self.get(self.len().checked_sub(1)?)
    }

    /// How many entries `holds` for, which must be a prefix of them.
    pub(crate) fn count_where(&self, holds: impl Fn(&E) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle).is_some_and(|entry| holds(&entry)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The last entry for which `holds`; see [`Self::count_where`].
    pub(crate) fn last_where(&self, holds: impl Fn(&E) -> bool) -> Option<E> {
        self.get(self.count_where(holds).checked_sub(1)?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = E> + '_ {
        (0..self.len()).map_while(|index| self.get(index))
    }
}

/// All entries of a file; `None` unless each is one and follows the one before it, up to the end of
/// the file.
pub(crate) fn decode_all<E: Entry>(bytes: &[u8]) -> Option<Vec<E>> {
    let mut entries: Vec<E> = Vec::with_capacity(bytes.len() / E::BYTES);
    for chunk in bytes.chunks(E::BYTES) {
        let entry = E::decode(chunk).filter(|entry| entry.follows(entries.last()))?;
        entries.push(entry);
    }
    Some(entries)
}

/// Whether [`decode_all`] would take `bytes`.
pub(crate) fn is_sound<E: Entry>(bytes: &[u8]) -> bool {
    let mut previous: Option<E> = None;
    bytes.chunks(E::BYTES).all(|chunk| {
        let entry = E::decode(chunk).filter(|entry| entry.follows(previous.as_ref()));
        previous = entry;
        entry.is_some()
    })
}

/// The entries as the file holds them.
pub(crate) fn encode_all<E: Entry>(entries: impl IntoIterator<Item = E>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in entries {
        entry.encode(&mut bytes);
    }
    bytes
}

#[cfg(test)]
mod tests;
