//! The newest offset of each key, in bounded memory.
//!
//! A key is known by 128 bits of a seeded hash, so that an entry takes 24 bytes whatever the key's
//! length, as in Kafka's SkimpyOffsetMap. Of two keys with the same hash the older one's record would
//! be taken for overwritten; the seed is the caller's, so nobody outside can look for such keys.

use twox_hash::XxHash3_128;

/// Bytes of one entry.
const ENTRY_BYTES: usize = 24;

/// How much memory a map may take, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MapMemory {
    /// `log.cleaner.dedupe.buffer.size`, of one cleaner.
    pub bytes: usize,
    /// `log.cleaner.io.buffer.load.factor`: the part of its entries that are used at most.
    pub load_factor: f64,
    /// Of the hash: from a source of randomness.
    pub seed: u64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct OffsetMap {
    entries: Vec<Entry>,
    used: usize,
    used_max: usize,
    seed: u64,
    latest: i64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    high: u64,
    low: u64,
    /// 0 for an empty entry.
    offset_plus_one: u64,
}

/// Whether a key found room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    Kept,
    /// The map holds as many keys as it may.
    Full,
}

impl OffsetMap {
    /// For at most `keys` keys, or as many as there is memory for; at least for one. `before` is the
    /// offset before the first that it will be told of.
    pub(super) fn new(memory: MapMemory, keys: u64, before: i64) -> Self {
        let load_factor = memory.load_factor.clamp(0.01, 0.95);
        let affordable = (memory.bytes / ENTRY_BYTES).max(2);
        let wanted = (keys as f64 / load_factor).ceil();
        let wanted = if wanted < affordable as f64 { wanted as usize + 1 } else { affordable };
        let slots = wanted.clamp(2, affordable);
        let used_max = ((slots as f64 * load_factor) as usize).clamp(1, slots - 1);
        let entries = vec![Entry::default(); slots];
        Self { entries, used: 0, used_max, seed: memory.seed, latest: before }
    }

    /// Up to here, inclusive, all records are taken in.
    pub(super) const fn latest(&self) -> i64 {
        self.latest
    }

    /// Notes that records up to `offset`, inclusive, need no entry.
    pub(super) fn advance(&mut self, offset: i64) {
        self.latest = self.latest.max(offset);
    }

    /// Takes in the record of `key` at `offset`, above all offsets before.
    pub(super) fn put(&mut self, key: &[u8], offset: i64) -> Put {
        let (high, low) = self.hash(key);
        let offset_plus_one = offset.unsigned_abs().saturating_add(1);
        let at = self.find(high, low);
        let used = self.used;
        let Some(entry) = self.entries.get_mut(at) else { return Put::Full };
        if entry.offset_plus_one == 0 {
            if used >= self.used_max {
                return Put::Full;
            }
            self.used += 1;
        }
        *entry = Entry { high, low, offset_plus_one };
        self.latest = offset;
        Put::Kept
    }

    /// The newest offset of `key`.
    pub(super) fn newest(&self, key: &[u8]) -> Option<i64> {
        let (high, low) = self.hash(key);
        let entry = self.entries.get(self.find(high, low))?;
        i64::try_from(entry.offset_plus_one.checked_sub(1)?).ok()
    }

    /// How many keys it holds.
    pub(super) const fn len(&self) -> usize {
        self.used
    }

    fn hash(&self, key: &[u8]) -> (u64, u64) {
        let hash = XxHash3_128::oneshot_with_seed(self.seed, key);
        ((hash >> 64) as u64, hash as u64)
    }

    /// The place of a key, or the empty one where it would go; there is always an empty one.
    fn find(&self, high: u64, low: u64) -> usize {
        let slots = self.entries.len();
        let mut at = ((u128::from(high) * slots as u128) >> 64) as usize;
        loop {
            match self.entries.get(at) {
                Some(entry) if entry.offset_plus_one == 0 => return at,
                Some(entry) if entry.high == high && entry.low == low => return at,
                Some(_) => at = if at + 1 == slots { 0 } else { at + 1 },
                None => at = 0,
            }
        }
    }
}

#[cfg(test)]
mod tests;
