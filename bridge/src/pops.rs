//! Pops: whose turn it is to take from a queue, and who waits for something to take.
//!
//! Of one group, one pop at a time looks at a queue, so that two do not read and lose the same
//! messages to each other; a plan that is not true any more takes nothing in any case. So a pop that
//! does nothing with its turn, since its client takes no answers and nobody polls it, loses it after a
//! while. A pop that found nothing waits in its connection's hands for the logs, its time, and this
//! register, which wakes it when something comes again, and says in which queue. Dropping a turn or a
//! wait ends it.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use duolog_log_core::ids::TopicId;
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use crate::limits::{HELD_POP_WAITS_MAX, HELD_POPS_MAX, HELD_POPS_OF_QUEUE_MAX, POP_TURN_MS_MAX};

/// A turn that others wait for lasts no longer.
const TURN_TIME: Duration = Duration::from_millis(POP_TURN_MS_MAX);

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
    /// When a turn last began.
    since: Instant,
    /// Those who have a turn or wait for one.
    users: usize,
}

impl Default for Turns {
    fn default() -> Self {
        Self { free: Arc::new(Semaphore::new(1)), since: Instant::now(), users: 0 }
    }
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
    /// How often it was said that something may be taken, and for each queue with which word last.
    words: u64,
    last_words: BTreeMap<i32, u64>,
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
    /// Words that it has heard.
    heard: u64,
    ready: Arc<Notify>,
}

impl Pops {
    /// Waits for a turn at a queue.
    pub(crate) async fn turn(&self, group: &str, topic: TopicId, queue: i32) -> Turn<'_> {
        let name: QueueName = (Arc::from(group), topic, queue);
        self.turns.lock().entry(name.clone()).or_default().users += 1;
        let user = User { pops: self, name };
        loop {
            let free = user.free();
            let mut permit = pin!(Arc::clone(&free).acquire_owned());
            while user.may_wait_for(&free) {
                if let Ok(permit) = timeout(TURN_TIME, permit.as_mut()).await {
                    user.begin(&free);
                    // It is never closed.
                    return Turn { _permit: permit.ok(), _user: user };
                }
            }
        }
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
        let (heard, ready) = (waiting.words, Arc::clone(&waiting.ready));
        Some(PopHold { pops: self, key, queue, waits, heard, ready })
    }

    /// How many pops of a group wait that named this queue.
    pub(crate) fn count(&self, group: &str, topic: TopicId, queue: i32) -> usize {
        let state = self.state.lock();
        let waiting = state.groups.get(&(Arc::from(group), topic));
        waiting.and_then(|waiting| waiting.held.get(&queue)).copied().unwrap_or_default()
    }

    /// Something of a queue may be taken.
    pub(crate) fn ready(&self, group: &str, topic: TopicId, queue: i32) {
        if let Some(waiting) = self.state.lock().groups.get_mut(&(Arc::from(group), topic)) {
            waiting.words += 1;
            waiting.last_words.insert(queue, waiting.words);
            waiting.ready.notify_waiters();
        }
    }
}

impl PopHold<'_> {
    /// Resolves once there is something to hear.
    pub(crate) async fn ready(&self) {
        loop {
            // Before the words are counted, so that none falls between.
            let next = self.ready.notified();
            let words = self.pops.state.lock().groups.get(&self.key).map(|waiting| waiting.words);
            if words.is_some_and(|words| words > self.heard) {
                return;
            }
            next.await;
        }
    }

    /// The queues of which something may be taken since the hold began, or since this was called last.
    pub(crate) fn hear(&mut self) -> Vec<i32> {
        let state = self.pops.state.lock();
        let Some(waiting) = state.groups.get(&self.key) else { return Vec::new() };
        let news = waiting.last_words.iter().filter(|(_, word)| **word > self.heard);
        let queues = news.map(|(queue, _)| *queue).collect();
        self.heard = waiting.words;
        queues
    }
}

impl User<'_> {
    /// What whoever has the turn frees.
    fn free(&self) -> Arc<Semaphore> {
        Arc::clone(&self.pops.turns.lock().entry(self.name.clone()).or_default().free)
    }

    /// Whether it is still this one that is to be waited for. Where nobody's turn has begun for too
    /// long, whoever has it does nothing with it, and there is another one from now on.
    fn may_wait_for(&self, free: &Arc<Semaphore>) -> bool {
        let mut turns = self.pops.turns.lock();
        let turns = turns.entry(self.name.clone()).or_default();
        let is_this = Arc::ptr_eq(&turns.free, free);
        let is_stuck = free.available_permits() == 0 && turns.since.elapsed() >= TURN_TIME;
        if is_this && is_stuck {
            turns.free = Arc::new(Semaphore::new(1));
            turns.since = Instant::now();
        }
        is_this && !is_stuck
    }

    fn begin(&self, free: &Arc<Semaphore>) {
        if let Some(turns) = self.pops.turns.lock().get_mut(&self.name)
            && Arc::ptr_eq(&turns.free, free)
        {
            turns.since = Instant::now();
        }
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
