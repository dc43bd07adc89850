//! The newest batches of a log in memory, shared with those who read the tail.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use crate::record::BatchHeader;
use crate::storage::growing::GrowingList;

/// Batches in one chunk at most. Chunks come and go as a whole.
const CHUNK_BATCHES: usize = 64;
/// A chunk is closed at this part of what the log may keep.
const CHUNKS_PER_CACHE: usize = 8;

/// Bounds what all logs of a node keep in memory together.
#[derive(Debug)]
pub struct TailBudget {
    max_bytes: usize,
    used: AtomicUsize,
}

impl TailBudget {
    /// For at most `max_bytes`.
    #[must_use]
    pub const fn new(max_bytes: usize) -> Self {
        Self { max_bytes, used: AtomicUsize::new(0) }
    }

    /// Bytes kept now.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Takes `bytes`, unless that is more than is left.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.max_bytes);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    /// Gives back what was taken.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl PartialEq for TailBudget {
    /// A budget equals only itself.
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

#[derive(Debug)]
pub(super) struct TailBatch {
    pub(super) next_offset: i64,
    pub(super) bytes: Bytes,
}

/// A run of batches without gaps; grows while it is the newest.
#[derive(Debug)]
pub(super) struct TailChunk {
    pub(super) base_offset: i64,
    pub(super) batches: GrowingList<TailBatch>,
}

/// The chunks as readers see them, oldest first; the last one reaches to the log end.
#[derive(Clone, Debug, Default)]
pub(super) struct Tail(Arc<[Arc<TailChunk>]>);

impl Tail {
    /// The batches from the one that holds `offset` on; `None` when the tail starts later.
    pub(super) fn iter_from(&self, offset: i64) -> Option<impl Iterator<Item = &TailBatch>> {
        let chunk = self.0.partition_point(|chunk| chunk.base_offset <= offset).checked_sub(1)?;
        let chunks = self.0.get(chunk..)?;
        let batches = chunks
            .iter()
            .flat_map(|chunk| (0..chunk.batches.len()).filter_map(|i| chunk.batches.get(i)));
        Some(batches.skip_while(move |batch| batch.next_offset <= offset))
    }
}

/// The writer's side.
#[derive(Debug)]
pub(super) struct TailWriter {
    chunks: VecDeque<(Arc<TailChunk>, usize)>,
    bytes: usize,
    budget: Arc<TailBudget>,
}

/// Whether the chunks that readers should see are others than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunksChanged {
    Yes,
    No,
}

impl TailWriter {
    pub(super) const fn new(budget: Arc<TailBudget>) -> Self {
        Self { chunks: VecDeque::new(), bytes: 0, budget }
    }

    /// What readers should see.
    pub(super) fn published(&self) -> Tail {
        Tail(self.chunks.iter().map(|(chunk, _)| Arc::clone(chunk)).collect())
    }

    /// Adds the batch that was written at the log end; keeps the log's part below `max_bytes`.
    pub(super) fn push(
        &mut self,
        header: &BatchHeader,
        bytes: Bytes,
        max_bytes: usize,
    ) -> ChunksChanged {
        let (before, len) = (self.chunks.len(), bytes.len());
        if !self.make_room(len, max_bytes) {
            // The tail must reach the log end or not exist.
            self.clear();
            return ChunksChanged::from(before > 0);
        }
        self.bytes += len;
        let is_closed = |(chunk, bytes): &(Arc<TailChunk>, usize)| {
            chunk.batches.len() >= CHUNK_BATCHES || *bytes >= max_bytes / CHUNKS_PER_CACHE
        };
        let opens = self.chunks.back().is_none_or(is_closed);
        let changed = ChunksChanged::from(opens || self.chunks.len() < before);
        if opens {
            let base_offset = header.base_offset;
            let chunk = Arc::new(TailChunk { base_offset, batches: GrowingList::new() });
            self.chunks.push_back((chunk, 0));
        }
        if let Some((chunk, bytes_of_chunk)) = self.chunks.back_mut() {
            *bytes_of_chunk += len;
            chunk.batches.push(TailBatch { next_offset: header.next_offset(), bytes });
        }
        changed
    }

    /// Drops the oldest chunks until at most `max_bytes` are kept.
    pub(super) fn shrink(&mut self, max_bytes: usize) -> ChunksChanged {
        let before = self.chunks.len();
        while self.bytes > max_bytes && self.drop_oldest() {}
        ChunksChanged::from(self.chunks.len() < before)
    }

    /// Drops all chunks that begin below `offset`, where the files hold other batches by now.
    pub(super) fn drop_below(&mut self, offset: i64) {
        let begins_below = |(chunk, _): &(Arc<TailChunk>, usize)| chunk.base_offset < offset;
        while self.chunks.front().is_some_and(begins_below) && self.drop_oldest() {}
    }

    /// Drops all.
    pub(super) fn clear(&mut self) {
        while self.drop_oldest() {}
    }

    /// Takes `len` bytes from both bounds, dropping old chunks for it; false when that is not enough.
    fn make_room(&mut self, len: usize, max_bytes: usize) -> bool {
        while self.bytes + len > max_bytes {
            if !self.drop_oldest() {
                return false;
            }
        }
        while !self.budget.take(len) {
            if !self.drop_oldest() {
                return false;
            }
        }
        true
    }

    fn drop_oldest(&mut self) -> bool {
        let Some((_, bytes)) = self.chunks.pop_front() else { return false };
        self.bytes -= bytes;
        self.budget.give_back(bytes);
        true
    }
}

impl Drop for TailWriter {
    fn drop(&mut self) {
        self.clear();
    }
}

impl From<bool> for ChunksChanged {
    fn from(changed: bool) -> Self {
        if changed { Self::Yes } else { Self::No }
    }
}
