//! The messages that wait, by their time.

use std::collections::{BTreeMap, BTreeSet};

use duolog_log_core::ids::{Offset, TopicPartition};

use super::event::Waiting;
use crate::record::timer::TimedMessage;

/// A message that waits: 24 bytes, for there may be millions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) due_ms: i64,
    pub(super) offset: i64,
    id_hash: u32,
    /// Number of the target.
    pub(super) target: u32,
}

impl Entry {
    fn first_at(due_ms: i64) -> Self {
        Self { due_ms, offset: i64::MIN, id_hash: 0, target: 0 }
    }

    fn waiting(self) -> Waiting {
        Waiting { due_ms: self.due_ms, offset: Offset(self.offset) }
    }
}

/// Offsets that are counted together.
const CHUNK: i64 = 1024;

/// All that wait in one log.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wheel {
    entries: BTreeSet<Entry>,
    /// Those that were due when their target had no room, by its number; none is empty.
    held_back: BTreeMap<u32, BTreeSet<Entry>>,
    held_back_count: usize,
    /// How many wait in each piece of the log, by offset / [`CHUNK`]; none is 0.
    counts: BTreeMap<i64, u32>,
    targets: Vec<TopicPartition>,
    numbers: BTreeMap<TopicPartition, u32>,
}

impl Wheel {
    pub(super) fn len(&self) -> usize {
        self.entries.len() + self.held_back_count
    }

    pub(super) fn insert(&mut self, timed: &TimedMessage, offset: Offset) {
        let target = self.number_of(&timed.target);
        let entry =
            Entry { due_ms: timed.due_ms, offset: offset.0, id_hash: hash(&timed.id), target };
        if self.entries.insert(entry) {
            *self.counts.entry(offset.0 / CHUNK).or_default() += 1;
        }
    }

    pub(super) fn remove(&mut self, waiting: Waiting) {
        let Some(entry) = self.at(waiting) else { return };
        if !self.entries.remove(&entry)
            && let Some(held) = self.held_back.get_mut(&entry.target)
            && held.remove(&entry)
        {
            self.held_back_count -= 1;
            if held.is_empty() {
                self.held_back.remove(&entry.target);
            }
        }
        let chunk = entry.offset / CHUNK;
        if let Some(count) = self.counts.get_mut(&chunk) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&chunk);
            }
        }
        if self.len() == 0 {
            // Most targets have a time; their names need not be kept for ever.
            (self.targets, self.numbers) = (Vec::new(), BTreeMap::new());
        }
    }

    pub(super) fn has(&self, waiting: Waiting) -> bool {
        self.at(waiting).is_some()
    }

    fn at(&self, Waiting { due_ms, offset }: Waiting) -> Option<Entry> {
        let from = Entry { offset: offset.0, ..Entry::first_at(due_ms) };
        self.sets().find_map(|entries| {
            let entry = entries.range(from..).next()?;
            (entry.due_ms == due_ms && entry.offset == offset.0).then_some(*entry)
        })
    }

    fn sets(&self) -> impl Iterator<Item = &BTreeSet<Entry>> {
        std::iter::once(&self.entries).chain(self.held_back.values())
    }

    /// When the first one is due, of those that are not held back.
    pub(super) fn first_due_ms(&self) -> Option<i64> {
        self.entries.first().map(|entry| entry.due_ms)
    }

    /// Those that are due at `now_ms`, of each target in order of their times, the first ones up to
    /// `count` and to the `room` of their target. What finds none is held back until there is some.
    pub(super) fn due(
        &mut self,
        now_ms: i64,
        count: usize,
        room: impl Fn(&TopicPartition) -> usize,
    ) -> Vec<Entry> {
        let mut due: Vec<Entry> = Vec::new();
        for (number, held) in &self.held_back {
            let room = self.target(*number).map_or(0, &room);
            due.extend(held.iter().take(room.min(count - due.len())));
        }
        let mut rooms: BTreeMap<u32, usize> = BTreeMap::new();
        let mut without_room: Vec<Entry> = Vec::new();
        // A bounded step: the rest is looked at in the next one.
        for entry in self.entries.iter().take_while(|entry| entry.due_ms <= now_ms).take(count) {
            let left = rooms.entry(entry.target).or_insert_with(|| {
                let is_in_line = self.held_back.contains_key(&entry.target);
                self.target(entry.target).filter(|_| !is_in_line).map_or(0, &room)
            });
            if *left == 0 {
                without_room.push(*entry);
            } else if due.len() < count {
                *left -= 1;
                due.push(*entry);
            }
        }
        for entry in without_room {
            self.entries.remove(&entry);
            self.held_back.entry(entry.target).or_default().insert(entry);
            self.held_back_count += 1;
        }
        due
    }

    /// Whether something is held back of this target.
    pub(super) fn holds_back(&self, target: &TopicPartition) -> bool {
        self.numbers.get(target).is_some_and(|number| self.held_back.contains_key(number))
    }

    /// The targets of which something is held back.
    pub(super) fn held_back(&self) -> impl Iterator<Item = &TopicPartition> {
        self.held_back.keys().filter_map(|number| self.target(*number))
    }

    /// Those with the hash of this id that are due from `from_ms`, inclusive, to `to_ms`, exclusive.
    pub(super) fn find(&self, id: &str, from_ms: i64, to_ms: i64) -> Vec<Waiting> {
        if from_ms >= to_ms {
            return Vec::new();
        }
        let id_hash = hash(id);
        let range = Entry::first_at(from_ms)..Entry::first_at(to_ms);
        let all = self.sets().flat_map(|entries| entries.range(range.clone()));
        all.filter(|entry| entry.id_hash == id_hash).map(|entry| entry.waiting()).collect()
    }

    /// The target with this number.
    pub(super) fn target(&self, number: u32) -> Option<&TopicPartition> {
        self.targets.get(usize::try_from(number).ok()?)
    }

    /// At or below the first offset that is needed; `None` if none is.
    pub(super) fn first_needed(&self) -> Option<Offset> {
        self.counts.first_key_value().map(|(chunk, _)| Offset(chunk * CHUNK))
    }

    fn number_of(&mut self, target: &TopicPartition) -> u32 {
        if let Some(number) = self.numbers.get(target) {
            return *number;
        }
        // There are fewer targets than messages, and of those fewer than 2^32.
        let number = u32::try_from(self.targets.len()).unwrap_or(u32::MAX);
        self.targets.push(target.clone());
        self.numbers.insert(target.clone(), number);
        number
    }
}

/// FNV-1a.
fn hash(id: &str) -> u32 {
    id.bytes().fold(0x811C_9DC5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
