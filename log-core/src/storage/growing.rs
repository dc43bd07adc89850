//! A list that one thread extends while others read it, without locks and without moving entries.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Entries of the first chunk; each next one has four times as many.
const FIRST_CHUNK: usize = 8;
/// Together 44 million entries: more than an index of `segment.index.bytes` at its greatest useful
/// size holds, since a segment has at most 2^31 bytes and an entry stands for a batch of 61 or more.
const CHUNKS: usize = 12;

/// Room for some entries.
type Chunk<T> = OnceLock<Box<[OnceLock<T>]>>;

/// See the module. An empty list, of which an idle log has several, takes three words.
pub(crate) struct GrowingList<T> {
    first: Chunk<T>,
    more: OnceLock<Box<[Chunk<T>; CHUNKS - 1]>>,
    len: AtomicUsize,
}

impl<T> GrowingList<T> {
    pub(crate) const fn new() -> Self {
        Self { first: OnceLock::new(), more: OnceLock::new(), len: AtomicUsize::new(0) }
    }

    /// Entries that may be read.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// The entry at `index`, once [`Self::len`] is above it.
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        if index >= self.len() {
            return None;
        }
        let (chunk, at) = place(index);
        let chunk = match chunk.checked_sub(1) {
            None => &self.first,
            Some(chunk) => self.more.get()?.get(chunk)?,
        };
        chunk.get()?.get(at)?.get()
    }

    /// Adds an entry; only the owner of the list calls this. False when the list can grow no more.
    pub(crate) fn push(&self, value: T) -> bool {
        let index = self.len.load(Ordering::Relaxed);
        let (chunk, at) = place(index);
        let chunk_cell = match chunk.checked_sub(1) {
            None => Some(&self.first),
            Some(chunk) => {
                let more = || Box::new([const { OnceLock::new() }; CHUNKS - 1]);
                self.more.get_or_init(more).get(chunk)
            }
        };
        let Some(chunk_cell) = chunk_cell else { return false };
        let cells = chunk_cell
            .get_or_init(|| (0..FIRST_CHUNK << (2 * chunk)).map(|_| OnceLock::new()).collect());
        if cells.get(at).is_none_or(|cell| cell.set(value).is_err()) {
            return false;
        }
        self.len.store(index + 1, Ordering::Release);
        true
    }
}

impl<T: Copy> GrowingList<T> {
    /// A list with these entries.
    pub(crate) fn from_entries(entries: impl IntoIterator<Item = T>) -> Self {
        let list = Self::new();
        for entry in entries {
            list.push(entry);
        }
        list
    }

    /// Copies of the entries from `start` on.
    pub(crate) fn iter_from(&self, start: usize) -> impl Iterator<Item = T> + '_ {
        (start..self.len()).map_while(|index| self.get(index).copied())
    }
}

/// Chunk k begins at entry 8 (4^k - 1) / 3.
const fn place(index: usize) -> (usize, usize) {
    let chunk = ((3 * index) / FIRST_CHUNK + 1).ilog2() as usize / 2;
    let start = FIRST_CHUNK * ((1 << (2 * chunk)) - 1) / 3;
    (chunk, index - start)
}

impl<T> fmt::Debug for GrowingList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrowingList").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
