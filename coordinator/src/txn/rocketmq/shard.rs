//! The state machine of [`crate::txn::rocketmq`].

use std::collections::BTreeMap;

use bytes::Bytes;
use duolog_log_core::ids::{Offset, TopicPartition};

use super::check_back::{CheckConfig, verdict};
use super::error::HalfError;
use super::event::{Alarm, Due, Ending, Event, Key, Notice, Response};
use super::half::{Half, OpenHalves};
use crate::delivery::{Deliveries, Delivers, DeliveryRecord, Note, Noted, StoredMessage};
use crate::limits::{HALF_BATCH_BYTES_MAX, HALVES_MAX};
use crate::record::RecordError;
use crate::record::half::{HalfMessage, Record};
use crate::shard::{self, RecordBytes, RequestId, Shard, TimerChange};
use crate::time::Now;

/// The log's start is raised by so many offsets at least.
const TRIM_STEP: i64 = 4_096;

type Outcome = shard::Outcome<HalfShard>;

/// The half messages of one partition.
#[derive(Debug, Default)]
pub struct HalfShard {
    config: CheckConfig,
    halves: OpenHalves,
    deliveries: Deliveries,
    /// The offset after the last record.
    end: Offset,
    /// Of messages that are in the log and whose requests are not answered yet. Live.
    stored: BTreeMap<Key, Offset>,
    /// Where what is given up stands as it goes on, until that is noted. Live.
    given_up: BTreeMap<Offset, Offset>,
    /// The alarm is set. Live.
    has_alarm: bool,
    /// Below it nothing was needed when that was last told. Live.
    trimmed: Offset,
}

impl HalfShard {
    /// One that has read nothing yet.
    #[must_use]
    pub fn new(config: CheckConfig) -> Self {
        Self { config, ..Self::default() }
    }

    /// Messages whose end is not decided.
    #[must_use]
    pub fn open_count(&self) -> usize {
        self.halves.len()
    }

    /// Those, in the order in which they were stored.
    pub fn open(&self) -> impl Iterator<Item = &Half> {
        self.halves.behind(Offset(-1))
    }

    fn store(&self, request: Option<RequestId>, key: Key, half: HalfMessage) -> Outcome {
        let mut out = Outcome::default();
        if self.halves.len() >= HALVES_MAX {
            out.respond(request, Err(HalfError::TooMany));
            return out;
        }
        let number = match &key {
            Key::New(number) => Some(*number),
            Key::Half(_) | Key::Target(_) => None,
        };
        out.records.push(Record::Half { half, number });
        out.follow_ups.push((request, Event::Stored { key }));
        out
    }

    fn stored(&mut self, request: Option<RequestId>, key: &Key, now: Now) -> Outcome {
        let mut out = Outcome::default();
        let offset = self.stored.remove(key).ok_or(HalfError::NotCoordinator);
        out.respond(request, offset.map(Response::Stored));
        self.set_alarm(&mut out, now);
        out
    }

    fn end(&self, request: Option<RequestId>, key: &Key, ending: Ending) -> Outcome {
        let mut out = Outcome::default();
        let half = self.of(key);
        if let Some(half) = half {
            let offset = half.offset;
            match ending {
                Ending::Commit(target) => note(offset, offset, target, &mut out),
                Ending::Rollback => {
                    out.records.push(Record::RolledBack { half: offset });
                    out.follow_ups.push((None, Event::Trim));
                }
            }
        }
        out.respond(request, Ok(Response::Ended { now: half.is_some() }));
        out
    }

    fn check(&self, request: Option<RequestId>, key: &Key, now: Now) -> Outcome {
        let mut out = Outcome::default();
        let times = self.of(key).map(|half| {
            let times = half.times.saturating_add(1);
            out.records.push(Record::Checked { half: half.offset, times, at_ms: now.wall_ms });
            times
        });
        out.respond(request, Ok(Response::Checked(times)));
        out
    }

    fn give_up(
        &self,
        request: Option<RequestId>,
        key: Key,
        target: TopicPartition,
        message: StoredMessage,
    ) -> Outcome {
        let mut out = Outcome::default();
        match self.of(&key) {
            Some(half) => {
                out.records.push(Record::GivenUp { half: half.offset, message });
                out.follow_ups.push((request, Event::GivenUp { key, target }));
            }
            None => out.respond(request, Ok(Response::Ended { now: false })),
        }
        out
    }

    fn given_up(&self, request: Option<RequestId>, key: &Key, target: TopicPartition) -> Outcome {
        let mut out = Outcome::default();
        let half = self.of(key).map(|half| half.offset);
        let copy = half.and_then(|half| Some((half, *self.given_up.get(&half)?)));
        if let Some((half, copy)) = copy {
            note(copy, half, target, &mut out);
        }
        out.respond(request, Ok(Response::Ended { now: copy.is_some() }));
        out
    }

    /// The open message that a key names.
    fn of(&self, key: &Key) -> Option<&Half> {
        match key {
            Key::Half(offset) => self.halves.get(*offset),
            Key::New(_) | Key::Target(_) => None,
        }
    }

    fn done(
        &self,
        request: Option<RequestId>,
        target: &TopicPartition,
        through: Offset,
    ) -> Outcome {
        let mut out = Outcome::default();
        if let Some(record) = self.deliveries.done(target, through) {
            out.records.push(Record::Delivery(record));
            out.follow_ups.push((None, Event::Trim));
        }
        out.respond(request, Ok(Response::Done));
        out
    }

    fn round(&mut self, now: Now) -> Outcome {
        let mut out = Outcome::default();
        self.has_alarm = false;
        if !self.halves.is_empty() {
            out.notices.push(Notice::Round);
            self.set_alarm(&mut out, now);
        }
        out
    }

    fn due(&self, after: Offset, count: usize, now: Now) -> Response {
        let due = |half: &Half| {
            let verdict = verdict(half, &self.config, now.wall_ms)?;
            Some(Due { half: half.offset, times: half.times, verdict })
        };
        Response::Due(self.halves.behind(after).filter_map(due).take(count).collect())
    }

    fn trim(&mut self) -> Outcome {
        let mut out = Outcome::default();
        let needed = [self.halves.first(), self.deliveries.first_needed()];
        let first = needed.into_iter().flatten().min().unwrap_or(self.end);
        if first.0 >= self.trimmed.0.saturating_add(TRIM_STEP) {
            self.trimmed = first;
            out.notices.push(Notice::Trim(first));
        }
        out
    }

    fn set_alarm(&mut self, out: &mut Outcome, now: Now) {
        if !self.has_alarm {
            self.has_alarm = true;
            let next = now.after(self.config.interval_ms.max(1));
            out.timers.push(TimerChange::Set(Alarm, next));
        }
    }

    /// What a note says goes on: it is open no more.
    fn replay_note(&mut self, note: &Note) {
        for Noted { tag, .. } in &note.messages {
            self.settle(Offset(*tag));
        }
    }

    fn settle(&mut self, half: Offset) {
        self.halves.remove(half);
        self.given_up.remove(&half);
    }
}

/// The message at `offset`, which is what becomes of the half message at `half`, goes to `target`.
fn note(offset: Offset, half: Offset, target: TopicPartition, out: &mut Outcome) {
    let messages = vec![Noted { offset, tag: half.0 }];
    let note = Note { target: target.clone(), messages };
    out.records.push(Record::Delivery(DeliveryRecord::Note(note)));
    out.follow_ups.push((None, Event::Noted(target)));
}

impl Shard for HalfShard {
    type Key = Key;
    type Event = Event;
    type Response = Response;
    type Error = HalfError;
    type Record = Record;
    type Timer = Alarm;
    type Notice = Notice;

    const APPEND_BYTES_MAX: usize = HALF_BATCH_BYTES_MAX;

    fn key(event: &Event) -> Option<&Key> {
        match event {
            Event::Store { key, .. }
            | Event::Stored { key }
            | Event::End { key, .. }
            | Event::Check { key }
            | Event::GiveUp { key, .. }
            | Event::GivenUp { key, .. }
            | Event::Done { key, .. } => Some(key),
            Event::Noted(_) | Event::Round | Event::Due { .. } | Event::Trim => None,
        }
    }

    fn fired(_: Alarm) -> Event {
        Event::Round
    }

    fn handle(&mut self, request: Option<RequestId>, event: Event, now: Now) -> Outcome {
        match event {
            Event::Store { key, half } => self.store(request, key, half),
            Event::Stored { key } => self.stored(request, &key, now),
            Event::End { key, ending } => self.end(request, &key, ending),
            Event::Check { key } => self.check(request, &key, now),
            Event::GiveUp { key, target, message } => self.give_up(request, key, target, message),
            Event::GivenUp { key, target } => self.given_up(request, &key, target),
            Event::Noted(target) => {
                Outcome { notices: vec![Notice::Deliver(target)], ..Outcome::default() }
            }
            Event::Done { target, through, .. } => self.done(request, &target, through),
            Event::Round => self.round(now),
            Event::Due { after, count } => {
                let mut out = Outcome::default();
                out.respond(request, Ok(self.due(after, count, now)));
                out
            }
            Event::Trim => self.trim(),
        }
    }

    fn replay(&mut self, record: Record, offset: Offset) {
        self.end = offset.plus(1);
        match record {
            Record::Half { half, number } => {
                self.halves.insert(&half, offset);
                if let Some(number) = number {
                    self.stored.insert(Key::New(number), offset);
                }
            }
            Record::Checked { half, times, .. } => self.halves.set_times(half, times),
            Record::RolledBack { half } => self.settle(half),
            Record::GivenUp { half, .. } => _ = self.given_up.insert(half, offset),
            Record::Delivery(record) => {
                if let DeliveryRecord::Note(note) = &record {
                    self.replay_note(note);
                }
                self.deliveries.replay(record, offset);
            }
        }
    }

    fn loaded(&mut self, now: Now) -> Outcome {
        let mut out = Outcome::default();
        // Who had it given up is gone; it will be given up again.
        self.given_up.clear();
        out.notices.extend(self.deliveries.targets().cloned().map(Notice::Deliver));
        if !self.halves.is_empty() {
            self.set_alarm(&mut out, now);
        }
        out
    }

    fn revert(&mut self, _: &Key, _: &HalfError, _: Now) -> Outcome {
        // Live state here never runs ahead of the log.
        Outcome::default()
    }

    fn while_loading(_: &Event) -> Result<Response, HalfError> {
        Err(HalfError::Loading)
    }

    fn resigned() -> HalfError {
        HalfError::NotCoordinator
    }

    fn overloaded() -> HalfError {
        HalfError::NotAvailable
    }

    fn encode(record: &Record) -> Result<RecordBytes, HalfError> {
        Ok(record.encode()?)
    }

    fn decode(key: &Bytes, value: Option<&Bytes>) -> Result<Option<Record>, RecordError> {
        Record::decode(key, value.map(|value| &value[..]))
    }
}

impl Delivers for HalfShard {
    fn deliveries(&self) -> &Deliveries {
        &self.deliveries
    }

    fn done(target: TopicPartition, through: Offset) -> Event {
        Event::Done { key: Key::Target(target.clone()), target, through }
    }

    fn message(key: &[u8], value: &[u8]) -> Option<StoredMessage> {
        Record::message(key, value)
    }
}
