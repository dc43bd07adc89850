//! Positions that an administrator set and that the group's members have not heard of yet.
//!
//! A member knows its position itself and would go on from there, and commit it. So the next pull of
//! the queue is answered with the new one, and until then nobody else's commit counts; the next pop of
//! it begins there, whatever the group has in hand. Kept in memory alone, as in the original: the
//! position itself is committed, and a member that comes later reads it.
//! Source: ConsumerOffsetManager.assignResetOffset, queryThenEraseResetOffset.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use duolog_log_core::ids::TopicId;
use parking_lot::Mutex;

use crate::limits::OFFSET_RESETS_MAX;

type Queues = HashMap<(TopicId, i32), i64>;

/// All that wait.
#[derive(Debug, Default)]
pub(crate) struct OffsetResets {
    /// None is most often all there is, and pulls ask each time.
    count: AtomicUsize,
    groups: Mutex<HashMap<Box<str>, Queues>>,
}

impl OffsetResets {
    /// The next pull or pop of the queue shall begin at `offset`; `false` if too many wait.
    pub(crate) fn assign(&self, group: &str, topic: TopicId, queue_id: i32, offset: i64) -> bool {
        let mut groups = self.groups.lock();
        if self.count.load(Ordering::Relaxed) >= OFFSET_RESETS_MAX {
            return false;
        }
        let queues = groups.entry(group.into()).or_default();
        if queues.insert((topic, queue_id), offset).is_none() {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
        true
    }

    /// The reset of the queue that waits.
    pub(crate) fn waiting(&self, group: &str, topic: TopicId, queue_id: i32) -> Option<i64> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.groups.lock().get(group)?.get(&(topic, queue_id)).copied()
    }

    /// The reset that waits, which then waits no longer.
    pub(crate) fn take(&self, group: &str, topic: TopicId, queue_id: i32) -> Option<i64> {
        let offset = self.waiting(group, topic, queue_id)?;
        self.done(group, topic, queue_id, offset).then_some(offset)
    }

    /// The reset to `offset` waits no longer; returns whether it did.
    pub(crate) fn done(&self, group: &str, topic: TopicId, queue_id: i32, offset: i64) -> bool {
        let mut groups = self.groups.lock();
        let Some(queues) = groups.get_mut(group) else { return false };
        if queues.get(&(topic, queue_id)) != Some(&offset) {
            return false;
        }
        queues.remove(&(topic, queue_id));
        if queues.is_empty() {
            groups.remove(group);
        }
        self.count.fetch_sub(1, Ordering::Relaxed);
        true
    }

    /// Keeps those alone whose group and topic are still there.
    pub(crate) fn retain(&self, is_there: impl Fn(&str, TopicId) -> bool) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut groups = self.groups.lock();
        groups.retain(|group, queues| {
            queues.retain(|(topic, _), _| is_there(group, *topic));
            !queues.is_empty()
        });
        let count = groups.values().map(HashMap::len).sum();
        self.count.store(count, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
