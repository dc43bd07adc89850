//! A map whose copies share what they do not change.
//!
//! A change of the metadata makes a new image of it all. With ten thousand topics a copy of every name for each change
//! would be most of the work, so the entries lie in shards: a copy counts references to these, a change copies one.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;

/// A hundred thousand entries are some four hundred in a shard.
const SHARDS: usize = 256;

/// See the module. In no order.
#[derive(Debug)]
pub(super) struct SharedMap<K, V> {
    hasher: RandomState,
    shards: Vec<Arc<HashMap<K, V>>>,
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        Self { hasher: RandomState::new(), shards: vec![Arc::default(); SHARDS] }
    }
}

impl<K, V> Clone for SharedMap<K, V> {
    fn clone(&self) -> Self {
        Self { hasher: self.hasher.clone(), shards: self.shards.clone() }
    }
}

impl<K: Eq + Hash, V> SharedMap<K, V> {
    fn place<Q: Hash + ?Sized>(&self, key: &Q) -> usize {
        let hash = self.hasher.hash_one(key);
        usize::try_from(hash % SHARDS as u64).unwrap_or_default()
    }

    pub(super) fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.shards.get(self.place(key))?.get(key)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.shards.iter().flat_map(|shard| shard.values())
    }
}

impl<K: Clone + Eq + Hash, V: Clone> SharedMap<K, V> {
    pub(super) fn insert(&mut self, key: K, value: V) {
        let place = self.place(&key);
        if let Some(shard) = self.shards.get_mut(place) {
            Arc::make_mut(shard).insert(key, value);
        }
    }

    pub(super) fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let place = self.place(key);
        let shard = self.shards.get_mut(place).filter(|shard| shard.contains_key(key))?;
        Arc::make_mut(shard).remove(key)
    }
}

#[cfg(test)]
mod tests;
