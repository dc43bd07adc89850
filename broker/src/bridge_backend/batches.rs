//! Decoded batches, kept for the next pull: 32 messages are asked for at a time, of a batch that may
//! hold ten thousand.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use duolog_bridge::backend::SharedBatch;
use duolog_log_core::ids::TopicId;
use parking_lot::Mutex;

/// A partition.
pub(super) type Key = (TopicId, i32);

#[derive(Debug)]
struct Entry {
    batch: Arc<SharedBatch>,
    bytes: usize,
    /// Set by a use since it was last considered for removal.
    used: bool,
}

#[derive(Debug, Default)]
struct Cached {
    partitions: HashMap<Key, BTreeMap<i64, Entry>>,
    /// In order of insertion, a used one goes round once more (second chance).
    order: VecDeque<(Key, i64)>,
    bytes: usize,
}

/// Decoded batches by partition and base offset, of bounded size in memory.
#[derive(Debug)]
pub(super) struct BatchCache {
    cached: Mutex<Cached>,
    bytes_max: usize,
}

impl BatchCache {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { cached: Mutex::default(), bytes_max }
    }

    /// The batch that covers `offset`, if it is here.
    pub(super) fn find(&self, key: Key, offset: i64) -> Option<Arc<SharedBatch>> {
        let mut cached = self.cached.lock();
        let batches = cached.partitions.get_mut(&key)?;
        let (_, entry) = batches.range_mut(..=offset).next_back()?;
        if offset >= entry.batch.next_offset() {
            return None;
        }
        entry.used = true;
        Some(entry.batch.clone())
    }

    /// Keeps a batch, at the cost of others.
    pub(super) fn put(&self, key: Key, batch: &Arc<SharedBatch>) {
        let bytes = batch.memory_bytes();
        if bytes > self.bytes_max {
            return;
        }
        let mut cached = self.cached.lock();
        let base_offset = batch.base_offset();
        let entry = Entry { batch: batch.clone(), bytes, used: false };
        let replaced = cached.partitions.entry(key).or_default().insert(base_offset, entry);
        cached.bytes += bytes;
        match replaced {
            Some(replaced) => cached.bytes -= replaced.bytes,
            None => cached.order.push_back((key, base_offset)),
        }
        while cached.bytes > self.bytes_max && cached.drop_one() {}
    }

    /// Drops all batches of a deleted topic.
    pub(super) fn forget(&self, topic: TopicId) {
        let mut cached = self.cached.lock();
        let gone: usize = cached
            .partitions
            .extract_if(|(id, _), _| *id == topic)
            .flat_map(|(_, batches)| batches.into_values())
            .map(|entry| entry.bytes)
            .sum();
        cached.bytes -= gone;
        cached.order.retain(|((id, _), _)| *id != topic);
    }
}

impl Cached {
    /// Drops the oldest batch that nobody used lately; returns false when there is none.
    fn drop_one(&mut self) -> bool {
        while let Some((key, base_offset)) = self.order.pop_front() {
            let Some(batches) = self.partitions.get_mut(&key) else { continue };
            let Some(entry) = batches.get_mut(&base_offset) else { continue };
            if std::mem::take(&mut entry.used) {
                self.order.push_back((key, base_offset));
                continue;
            }
            self.bytes -= entry.bytes;
            batches.remove(&base_offset);
            if batches.is_empty() {
                self.partitions.remove(&key);
            }
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests;
