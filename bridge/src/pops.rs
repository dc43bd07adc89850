//! Pops: whose turn it is to take from a queue, and who waits for something to take.
//!
//! Of one group, one pop at a time looks at a queue, so that two do not read and lose the same
//! messages to each other. A pop that found nothing waits in its connection's hands for the logs, its
//! time, and this register, which wakes it when something comes again. Dropping a turn or a wait ends
//! it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use duolog_log_core::ids::TopicId;
use parking_lot::Mutex;
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::limits::{HELD_POP_WAITS_MAX, HELD_POPS_MAX, HELD_POPS_OF_QUEUE_MAX};

type QueueName = (Arc<str>, TopicId, i32);
type GroupTopic = (Arc<str>, TopicId);

/// All pops of a node.
#[derive(Debug, Default)]
pub(crate) struct Pops {
    turns: Mutex<HashMap<QueueName, Turns>>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct Turns {
    /// Has one permit.
    free: Arc<Semaphore>,
    /// Those who have a turn or wait for one.
    users: usize,
}

#[derive(Debug, Default)]
struct State {
    held: usize,
    /// Queues whose logs are waited for.
    waits: usize,
    groups: HashMap<GroupTopic, Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// By the queue that was named; −1 is all.
    held: HashMap<i32, usize>,
    ready: Arc<Notify>,
}

/// Somebody has, or waits for, a turn.
#[derive(Debug)]
struct User<'a> {
    pops: &'a Pops,
    name: QueueName,
}

/// One turn.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    // In this order: whoever is next is there to be seen until it has been told.
    _permit: Option<OwnedSemaphorePermit>,
    _user: User<'a>,
}

/// A pop that waits.
#[derive(Debug)]
pub(crate) struct PopHold<'a> {
    pops: &'a Pops,
    key: GroupTopic,
    queue: i32,
    waits: usize,
    ready: Arc<Notify>,
}

impl Pops {
    /// Waits for a turn at a queue.
    pub(crate) async fn turn(&self, group: &str, topic: TopicId, queue: i32) -> Turn<'_> {
        let name: QueueName = (Arc::from(group), topic, queue);
        let free = {
            let mut turns = self.turns.lock();
            let new = || Turns { free: Arc::new(Semaphore::new(1)), users: 0 };
            let turns = turns.entry(name.clone()).or_insert_with(new);
            turns.users += 1;
            turns.free.clone()
        };
        let user = User { pops: self, name };
        // It is never closed.
        let permit = free.acquire_owned().await.ok();
        Turn { _permit: permit, _user: user }
    }

    /// Registers a pop that waits for `waits` logs; `None` when there are too many.
    pub(crate) fn hold(
        &self,
        group: &str,
        topic: TopicId,
        queue: i32,
        waits: usize,
    ) -> Option<PopHold<'_>> {
        let mut state = self.state.lock();
        let all_waits = state.waits.checked_add(waits)?;
        if state.held >= HELD_POPS_MAX || all_waits > HELD_POP_WAITS_MAX {
            return None;
        }
        let key: GroupTopic = (Arc::from(group), topic);
        if let Some(waiting) = state.groups.get(&key)
            && waiting.held.get(&queue).is_some_and(|held| *held > HELD_POPS_OF_QUEUE_MAX)
        {
            return None;
        }
        state.held += 1;
        state.waits = all_waits;
        let waiting = state.groups.entry(key.clone()).or_default();
        *waiting.held.entry(queue).or_default() += 1;
        let ready = Arc::clone(&waiting.ready);
        Some(PopHold { pops: self, key, queue, waits, ready })
    }

    /// How many pops of a group wait that named this queue.
    pub(crate) fn count(&self, group: &str, topic: TopicId, queue: i32) -> usize {
        let state = self.state.lock();
        let waiting = state.groups.get(&(Arc::from(group), topic));
        waiting.and_then(|waiting| waiting.held.get(&queue)).copied().unwrap_or_default()
    }

    /// Something may be taken.
    pub(crate) fn ready(&self, group: &str, topic: TopicId) {
        if let Some(waiting) = self.state.lock().groups.get(&(Arc::from(group), topic)) {
            waiting.ready.notify_waiters();
        }
    }
}

impl PopHold<'_> {
    /// Resolves when something may be taken after this call.
    pub(crate) fn ready(&self) -> Notified<'_> {
        self.ready.notified()
    }
}

impl Drop for User<'_> {
    fn drop(&mut self) {
        let mut turns = self.pops.turns.lock();
        if let Entry::Occupied(mut entry) = turns.entry(self.name.clone()) {
            entry.get_mut().users -= 1;
            if entry.get().users == 0 {
                entry.remove();
            }
        }
    }
}

impl Drop for PopHold<'_> {
    fn drop(&mut self) {
        let mut state = self.pops.state.lock();
        state.held = state.held.saturating_sub(1);
        state.waits = state.waits.saturating_sub(self.waits);
        if let Entry::Occupied(mut entry) = state.groups.entry(self.key.clone()) {
            let held = &mut entry.get_mut().held;
            if let Entry::Occupied(mut of_queue) = held.entry(self.queue) {
                *of_queue.get_mut() -= 1;
                if *of_queue.get() == 0 {
                    of_queue.remove();
                }
            }
            if held.is_empty() {
                entry.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests;
