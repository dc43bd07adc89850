//! What groups were handed lately: how fast, and how far each queue was pulled.
//!
//! The figures of consumerProgress and consumerStatus. Counted since the node started and kept in
//! memory alone, as in the original (`BrokerStatsManager.GROUP_GET_NUMS`, the pull offsets of
//! `ConsumerOffsetManager`).

use std::collections::HashMap;

use duolog_log_core::ids::TopicId;
use parking_lot::Mutex;

use crate::limits::DELIVERIES_MAX;

/// The slot under way and the six whole ones of ten seconds before it: a minute, as the original's.
type Minute = Span<10_000, 7>;
/// In slots of ten minutes.
type Hour = Span<600_000, 7>;
/// In slots of an hour.
type Day = Span<3_600_000, 25>;

/// One answered pull.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery<'a> {
    pub(crate) group: &'a str,
    pub(crate) topic: TopicId,
    pub(crate) queue_id: i32,
    /// Where the next pull is to begin.
    pub(crate) next_offset: i64,
    pub(crate) messages: usize,
}

/// All groups, by name and topic.
#[derive(Debug, Default)]
pub(crate) struct Deliveries(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    groups: HashMap<Box<str>, HashMap<TopicId, OfTopic>>,
    topics: usize,
}

#[derive(Debug, Default)]
struct OfTopic {
    messages: Minute,
    hour: Hour,
    day: Day,
    /// By queue.
    next_offsets: HashMap<i32, i64>,
}

impl Deliveries {
    /// Counts what a pull was answered.
    pub(crate) fn count(&self, delivery: Delivery<'_>, now_ms: i64) {
        let mut state = self.0.lock();
        let state = &mut *state;
        // What is forgotten shows as nothing until the next pull.
        if state.topics >= DELIVERIES_MAX {
            *state = State::default();
        }
        if !state.groups.contains_key(delivery.group) {
            state.groups.insert(delivery.group.into(), HashMap::new());
        }
        let Some(topics) = state.groups.get_mut(delivery.group) else { return };
        let before = topics.len();
        let of_topic = topics.entry(delivery.topic).or_default();
        let messages = delivery.messages as u64;
        of_topic.messages.add(messages, now_ms);
        of_topic.hour.add(messages, now_ms);
        of_topic.day.add(messages, now_ms);
        of_topic.next_offsets.insert(delivery.queue_id, delivery.next_offset);
        state.topics += topics.len() - before;
    }

    /// Messages per second that a group was handed of a topic, over the last minute.
    pub(crate) fn per_second(&self, group: &str, topic: TopicId, now_ms: i64) -> f64 {
        let state = self.0.lock();
        let of_topic = state.groups.get(group).and_then(|topics| topics.get(&topic));
        of_topic.map_or(0.0, |of_topic| of_topic.messages.per_second(now_ms))
    }

    /// Messages that a group was handed of a topic in the last minute, hour and day; `None` if it
    /// never pulled it.
    pub(crate) fn sums(&self, group: &str, topic: TopicId, now_ms: i64) -> Option<[u64; 3]> {
        let state = self.0.lock();
        let of_topic = state.groups.get(group)?.get(&topic)?;
        let minute = of_topic.messages.sum(now_ms);
        Some([minute, of_topic.hour.sum(now_ms), of_topic.day.sum(now_ms)])
    }

    /// Where a group's next pull of a queue is to begin.
    pub(crate) fn next_offset(&self, group: &str, topic: TopicId, queue_id: i32) -> Option<i64> {
        let state = self.0.lock();
        state.groups.get(group)?.get(&topic)?.next_offsets.get(&queue_id).copied()
    }
}

/// A sum over so many slots that forgets the oldest of them.
#[derive(Debug)]
struct Span<const SLOT_MS: i64, const SLOTS: usize> {
    sums: [u64; SLOTS],
    /// Number of the newest slot, counted from 1970.
    newest: i64,
    first_ms: i64,
}

impl<const SLOT_MS: i64, const SLOTS: usize> Default for Span<SLOT_MS, SLOTS> {
    fn default() -> Self {
        Self { sums: [0; SLOTS], newest: 0, first_ms: 0 }
    }
}

impl<const SLOT_MS: i64, const SLOTS: usize> Span<SLOT_MS, SLOTS> {
    fn add(&mut self, count: u64, now_ms: i64) {
        let slot = now_ms.div_euclid(SLOT_MS);
        let passed = slot.saturating_sub(self.newest).clamp(0, SLOTS as i64);
        if passed == SLOTS as i64 {
            self.first_ms = now_ms;
        }
        for empty in (slot - passed + 1)..=slot {
            if let Some(sum) = self.sums.get_mut(Self::place(empty)) {
                *sum = 0;
            }
        }
        self.newest = self.newest.max(slot);
        if let Some(sum) = self.sums.get_mut(Self::place(slot)) {
            *sum = sum.saturating_add(count);
        }
    }

    fn sum(&self, now_ms: i64) -> u64 {
        let slot = now_ms.div_euclid(SLOT_MS);
        let oldest = slot - (SLOTS as i64 - 1);
        let alive = (oldest..=slot).filter(|slot| *slot > self.newest - SLOTS as i64);
        alive
            .filter(|slot| *slot <= self.newest)
            .filter_map(|slot| self.sums.get(Self::place(slot)))
            .sum()
    }

    fn per_second(&self, now_ms: i64) -> f64 {
        let oldest = now_ms.div_euclid(SLOT_MS) - (SLOTS as i64 - 1);
        let begun_ms = self.first_ms.max(oldest * SLOT_MS);
        let span_ms = now_ms.saturating_sub(begun_ms).max(SLOT_MS);
        self.sum(now_ms) as f64 * 1000.0 / span_ms as f64
    }

    fn place(slot: i64) -> usize {
        usize::try_from(slot.rem_euclid(SLOTS as i64)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
