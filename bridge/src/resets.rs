//! Positions that an administrator set and that the group's members have not heard of yet.
//!
//! A member knows its position itself and would go on from there, and commit it. So the next pull of
//! the queue is answered with the new one, and until then nobody else's commit counts. Kept in
//! memory alone, as in the original: the position itself is committed, and a member that comes later
//! reads it. Source: ConsumerOffsetManager.assignResetOffset, queryThenEraseResetOffset.

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
    /// The next pull of the queue shall begin at `offset`; `false` if too many wait.
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

    /// Whether a reset of the queue waits.
    pub(crate) fn waits(&self, group: &str, topic: TopicId, queue_id: i32) -> bool {
        if self.count.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let groups = self.groups.lock();
        groups.get(group).is_some_and(|queues| queues.contains_key(&(topic, queue_id)))
    }

    /// The reset that waits, which then waits no longer.
    pub(crate) fn take(&self, group: &str, topic: TopicId, queue_id: i32) -> Option<i64> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut groups = self.groups.lock();
        let queues = groups.get_mut(group)?;
        let offset = queues.remove(&(topic, queue_id))?;
        if queues.is_empty() {
            groups.remove(group);
        }
        self.count.fetch_sub(1, Ordering::Relaxed);
        Some(offset)
    }

    /// The group is gone.
    pub(crate) fn forget(&self, group: &str) {
        let mut groups = self.groups.lock();
        let queues = groups.remove(group).map_or(0, |queues| queues.len());
        self.count.fetch_sub(queues, Ordering::Relaxed);
    }
}
