//! The state machine of [`crate::timer`].

use std::collections::BTreeMap;

use bytes::Bytes;
use duolog_log_core::ids::{Offset, TopicPartition};

use super::error::TimerError;
use super::event::{Event, Key, Notice, Response, Waiting};
use super::wheel::Wheel;
use crate::delivery::{Deliveries, Delivers, NOTED_MAX, Note, Noted, StoredMessage};
use crate::limits::{DUE_AT_ONCE_MAX, ON_THEIR_WAY_MAX, TIMED_BATCH_BYTES_MAX, TIMERS_MAX};
use crate::record::RecordError;
use crate::record::delivery::DeliveryRecord;
use crate::record::timer::TimerRecord;
use crate::shard::{Outcome, RecordBytes, RequestId, Shard, TimerChange, Undo};
use crate::time::Now;

/// However far the first message's time is, the clock is looked at so often: it may be set.
const LOOK_EVERY_MS: i64 = 1_000;

/// The log's start is raised by so many offsets at least.
const TRIM_STEP: i64 = 4_096;

/// Timers of one partition.
#[derive(Debug, Default)]
pub struct TimerShard {
    waiting: Wheel,
    deliveries: Deliveries,
    /// The offset after the last record.
    end: Offset,
    /// Of messages that are in the log and whose requests are not answered yet. Live.
    stored: BTreeMap<Key, Offset>,
    /// When the alarm rings, on the steady clock. Live.
    alarm: Option<i64>,
    /// Below it nothing was needed when that was last told. Live.
    trimmed: Offset,
}

/// The one alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Alarm;

impl TimerShard {
    /// One that has read nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Messages that wait for their time.
    #[must_use]
    pub fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    fn store(
        &self,
        request: Option<RequestId>,
        key: Key,
        timed: crate::record::timer::TimedMessage,
    ) -> Outcome<Self> {
        let mut outcome = Outcome::default();
        if self.waiting.len() + self.deliveries.message_count() >= TIMERS_MAX {
            outcome.respond(request, Err(TimerError::TooMany));
            return outcome;
        }
        let number = match &key {
            Key::Message(number) => Some(*number),
            Key::Waiting | Key::Target(_) => None,
        };
        outcome.records.push(TimerRecord::Timed { timed, number });
        outcome.follow_ups.push((request, Event::Stored { key }));
        outcome
    }

    fn stored(&mut self, request: Option<RequestId>, key: &Key, now: Now) -> Outcome<Self> {
        let mut outcome = Outcome::default();
        let offset = self.stored.remove(key).ok_or(TimerError::NotCoordinator);
        outcome.respond(request, offset.map(Response::Stored));
        self.set_alarm(&mut outcome, now);
        outcome
    }

    fn recall(&self, request: Option<RequestId>, waiting: Waiting) -> Outcome<Self> {
        let mut outcome = Outcome::default();
        let is_there = self.waiting.has(waiting);
        if is_there {
            let Waiting { due_ms, offset } = waiting;
            outcome.records.push(TimerRecord::Recalled { due_ms, offset });
            outcome.follow_ups.push((None, Event::Trim));
        }
        outcome.respond(request, Ok(Response::Recalled(is_there)));
        outcome
    }

    fn due(&mut self, now: Now) -> Outcome<Self> {
        let mut outcome = Outcome::default();
        self.alarm = None;
        let mut targets: BTreeMap<u32, Vec<Noted>> = BTreeMap::new();
        let deliveries = &self.deliveries;
        let room = |target: &TopicPartition| room(deliveries, target);
        for entry in self.waiting.due(now.wall_ms, DUE_AT_ONCE_MAX, room) {
            let noted = Noted { offset: Offset(entry.offset), tag: entry.due_ms };
            targets.entry(entry.target).or_default().push(noted);
        }
        let mut told = Vec::new();
        for (number, messages) in targets {
            let Some(target) = self.waiting.target(number) else { continue };
            told.push(target.clone());
            for messages in messages.chunks(NOTED_MAX) {
                let note = Note { target: target.clone(), messages: messages.to_vec() };
                outcome.records.push(TimerRecord::Delivery(DeliveryRecord::Note(note)));
            }
        }
        if told.is_empty() {
            self.set_alarm(&mut outcome, now);
        } else {
            // In case the log refuses the notes.
            self.set_alarm_at(&mut outcome, now.after(LOOK_EVERY_MS));
            outcome.follow_ups.push((None, Event::Noted(told)));
        }
        outcome
    }

    fn noted(&mut self, targets: Vec<TopicPartition>, now: Now) -> Outcome<Self> {
        let mut outcome = Outcome::default();
        outcome.notices.extend(targets.into_iter().map(Notice::Deliver));
        // The one that was set in case the log refused the notes.
        if self.alarm.take().is_some() {
            outcome.timers.push(TimerChange::Cancel(Alarm));
        }
        if self.waiting.held_back().any(|target| room(&self.deliveries, target) > 0) {
            self.set_alarm_at(&mut outcome, now.after(0));
        }
        self.set_alarm(&mut outcome, now);
        outcome
    }

    fn done(
        &self,
        request: Option<RequestId>,
        target: &TopicPartition,
        through: Offset,
    ) -> Outcome<Self> {
        let mut outcome = Outcome::default();
        if let Some(record) = self.deliveries.done(target, through) {
            outcome.records.push(TimerRecord::Delivery(record));
            if self.waiting.holds_back(target) {
                outcome.follow_ups.push((None, Event::Due));
            }
            outcome.follow_ups.push((None, Event::Trim));
        }
        outcome.respond(request, Ok(Response::Done));
        outcome
    }

    fn trim(&mut self) -> Outcome<Self> {
        let mut outcome = Outcome::default();
        let needed = [self.waiting.first_needed(), self.deliveries.first_needed()];
        let first = needed.into_iter().flatten().min().unwrap_or(self.end);
        if first.0 >= self.trimmed.0.saturating_add(TRIM_STEP) {
            self.trimmed = first;
            outcome.notices.push(Notice::Trim(first));
        }
        outcome
    }

    /// Has the alarm ring when the first message is due, or when the clock is to be looked at; or
    /// whether there is room for what is held back, which may have come while nothing was.
    fn set_alarm(&mut self, outcome: &mut Outcome<Self>, now: Now) {
        let due_ms = self.waiting.first_due_ms();
        let delay_ms = match due_ms.map(|due_ms| due_ms.saturating_sub(now.wall_ms)) {
            Some(delay_ms) => delay_ms.clamp(0, LOOK_EVERY_MS),
            None if self.waiting.held_back().next().is_some() => LOOK_EVERY_MS,
            None => return,
        };
        self.set_alarm_at(outcome, now.after(delay_ms));
    }

    fn set_alarm_at(&mut self, outcome: &mut Outcome<Self>, at_ms: i64) {
        if self.alarm.is_none_or(|alarm| at_ms < alarm) {
            self.alarm = Some(at_ms);
            outcome.timers.push(TimerChange::Set(Alarm, at_ms));
        }
    }
}

/// How many more messages may be on their way to `target`.
fn room(deliveries: &Deliveries, target: &TopicPartition) -> usize {
    ON_THEIR_WAY_MAX.saturating_sub(deliveries.message_count_for(target))
}

impl Shard for TimerShard {
    type Key = Key;
    type Event = Event;
    type Response = Response;
    type Error = TimerError;
    type Record = TimerRecord;
    type Timer = Alarm;
    type Notice = Notice;

    const APPEND_BYTES_MAX: usize = TIMED_BATCH_BYTES_MAX;

    fn key(event: &Event) -> Option<&Key> {
        match event {
            Event::Store { key, .. } | Event::Stored { key } | Event::Done { key, .. } => Some(key),
            Event::Find { .. } | Event::Recall(_) | Event::Due | Event::Noted(_) => {
                Some(&Key::Waiting)
            }
            Event::Trim => None,
        }
    }

    fn fired(_: Alarm) -> Event {
        Event::Due
    }

    fn handle(&mut self, request: Option<RequestId>, event: Event, now: Now) -> Outcome<Self> {
        match event {
            Event::Store { key, timed } => self.store(request, key, timed),
            Event::Stored { key } => self.stored(request, &key, now),
            Event::Find { id, from_ms, to_ms } => {
                let mut outcome = Outcome::default();
                let found = self.waiting.find(&id, from_ms, to_ms);
                outcome.respond(request, Ok(Response::Found(found)));
                outcome
            }
            Event::Recall(waiting) => self.recall(request, waiting),
            Event::Due => self.due(now),
            Event::Noted(targets) => self.noted(targets, now),
            Event::Done { target, through, .. } => self.done(request, &target, through),
            Event::Trim => self.trim(),
        }
    }

    fn replay(&mut self, record: TimerRecord, offset: Offset) {
        self.end = offset.plus(1);
        match record {
            TimerRecord::Timed { timed, number } => {
                self.waiting.insert(&timed, offset);
                if let Some(number) = number {
                    self.stored.insert(Key::Message(number), offset);
                }
            }
            TimerRecord::Recalled { due_ms, offset } => {
                self.waiting.remove(Waiting { due_ms, offset });
            }
            TimerRecord::Delivery(record) => {
                if let DeliveryRecord::Note(note) = &record {
                    for Noted { offset, tag } in &note.messages {
                        self.waiting.remove(Waiting { due_ms: *tag, offset: *offset });
                    }
                }
                self.deliveries.replay(record, offset);
            }
        }
    }

    fn loaded(&mut self, now: Now) -> Outcome<Self> {
        let mut outcome = Outcome::default();
        outcome.notices.extend(self.deliveries.targets().cloned().map(Notice::Deliver));
        self.set_alarm(&mut outcome, now);
        outcome
    }

    fn revert(&mut self, _: &Key, _: &TimerError, _: Now) -> Outcome<Self> {
        Outcome { undo: Undo::Nothing, ..Outcome::default() }
    }

    fn while_loading(_: &Event) -> Result<Response, TimerError> {
        Err(TimerError::Loading)
    }

    fn resigned() -> TimerError {
        TimerError::NotCoordinator
    }

    fn overloaded() -> TimerError {
        TimerError::NotAvailable
    }

    fn encode(record: &TimerRecord) -> Result<RecordBytes, TimerError> {
        Ok(record.encode()?)
    }

    fn decode(key: &Bytes, value: Option<&Bytes>) -> Result<Option<TimerRecord>, RecordError> {
        TimerRecord::decode(key, value.map(|value| &value[..]))
    }
}

impl Delivers for TimerShard {
    fn deliveries(&self) -> &Deliveries {
        &self.deliveries
    }

    fn done(target: TopicPartition, through: Offset) -> Event {
        Event::Done { key: Key::Target(target.clone()), target, through }
    }

    fn message(key: &[u8], value: &[u8]) -> Option<StoredMessage> {
        Some(TimerRecord::message(key, value)?.message)
    }
}
