//! The state machine of [`crate::inflight`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use duolog_log_core::ids::{Offset, TopicPartition};

use super::error::InflightError;
use super::event::{Ask, Event, Key, Moved, Notice, Order, Response};
use super::upkeep::{Alarm, Upkeep};
use super::window::{Batches, Flight, Window};
use crate::delivery::{Deliveries, Delivers, Note, Noted, StoredMessage};
use crate::group::event::OwnPositions;
use crate::limits::SHARD_WINDOWS_MAX;
use crate::record::RecordError;
use crate::record::delivery::DeliveryRecord;
use crate::record::share::{DeliveryState, SharePartition, ShareRecord, StateBatch};
use crate::shard::{self, RecordBytes, RequestId, Shard};
use crate::time::Now;

pub(super) type Outcome = shard::Outcome<InflightShard>;

/// Messages in hand, of one partition of `__share_group_state`.
#[derive(Debug, Default)]
pub struct InflightShard {
    pub(super) windows: BTreeMap<SharePartition, Held>,
    /// Messages that are not done, in all windows.
    pub(super) flights: usize,
    pub(super) deliveries: Deliveries,
    /// The offset after the last record.
    pub(super) end: Offset,
    /// Where copies for the dead letters stand that are not noted yet. Live.
    pub(super) copies: BTreeMap<(SharePartition, i64), Offset>,
    /// Windows that found no room because of what others have. Live.
    pub(super) crowded_out: BTreeSet<SharePartition>,
    /// What is to be done when. Live.
    pub(super) upkeep: Upkeep,
}

/// A window, with what is known of it beside.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) window: Window,
    /// Where its last snapshot stands.
    pub(super) snapshot_at: Offset,
    pub(super) live: Live,
}

/// What dies with the process.
#[derive(Debug)]
pub(super) struct Live {
    /// All that was due then has been told.
    pub(super) told_ms: i64,
    /// Its time in [`Upkeep`].
    pub(super) listed_ms: Option<i64>,
    /// By whose word it was last taken from in order.
    pub(super) attempt: Option<Arc<str>>,
    /// Somebody who takes in order found something in hand.
    pub(super) is_awaited: bool,
    /// The position that it was last known to be.
    pub(super) committed: Option<i64>,
    /// As long as `committed` is not known: no earlier one was the window's own.
    pub(super) own_from: Option<i64>,
    pub(super) committing: Option<i64>,
}

impl Default for Live {
    fn default() -> Self {
        Self {
            told_ms: i64::MIN,
            listed_ms: None,
            attempt: None,
            is_awaited: false,
            committed: None,
            own_from: None,
            committing: None,
        }
    }
}

impl Live {
    /// The positions that nobody else set, beside the one that is being committed.
    pub(super) fn own(&self) -> OwnPositions {
        match (self.committed, self.own_from) {
            (Some(committed), _) => OwnPositions::Only(committed),
            (None, Some(from)) => OwnPositions::From(from),
            // An earlier build did not say, or a crash came before it was known.
            (None, None) => OwnPositions::UpTo,
        }
    }
}

impl Held {
    /// Whether it is an attempt that comes once more.
    pub(super) fn is_repeated(&self, order: Option<&Order>) -> bool {
        let attempt = order.and_then(|order| order.attempt.as_ref());
        attempt.is_some() && attempt == self.live.attempt.as_ref()
    }

    pub(super) fn is_blocked(&self, order: Option<&Order>, now_ms: i64) -> bool {
        order.is_some() && self.window.has_in_hand(now_ms) && !self.is_repeated(order)
    }
}

impl InflightShard {
    /// One that has read nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Messages that were taken and are not done.
    #[must_use]
    pub fn flight_count(&self) -> usize {
        self.flights
    }

    /// A group's window.
    #[must_use]
    pub fn window(&self, share: &SharePartition) -> Option<&Window> {
        self.windows.get(share).map(|held| &held.window)
    }

    /// All windows.
    pub fn windows(&self) -> impl Iterator<Item = (&SharePartition, &Window)> {
        self.windows.iter().map(|(share, held)| (share, &held.window))
    }

    /// The positions of a window that may be the committed one if nobody else sets it: the one that
    /// was, and the one that is being committed. None is known before the first was committed.
    #[must_use]
    pub fn positions(&self, share: &SharePartition) -> Option<[Option<i64>; 2]> {
        let live = &self.windows.get(share)?.live;
        live.committed.map(|committed| [Some(committed), live.committing])
    }

    /// Whether `position` may stand though nobody else set it; also if there is no window.
    #[must_use]
    pub fn is_own(&self, share: &SharePartition, position: Option<i64>) -> bool {
        let Some(Held { window, live, .. }) = self.windows.get(share) else { return true };
        let next = live.committing.or(live.committed).unwrap_or(window.start());
        live.own().has(position, next)
    }

    /// Whether this start of a window was told to be committed, and not yet how that went.
    #[must_use]
    pub fn is_committing(&self, share: &SharePartition, offset: i64) -> bool {
        self.windows.get(share).is_some_and(|held| held.live.committing == Some(offset))
    }

    /// Messages of a window that were delivered too often.
    #[must_use]
    pub fn dead(&self, share: &SharePartition, now_ms: i64, count: usize) -> Vec<(i64, u16)> {
        let Some(window) = self.window(share) else { return Vec::new() };
        let dead = window.available(now_ms).filter(|(_, flight)| window.is_spent(*flight));
        dead.map(|(offset, flight)| (offset, flight.deliveries)).take(count).collect()
    }

    fn of(&mut self, request: Option<RequestId>, key: Key, ask: Ask, now: Now) -> Outcome {
        let mut out = Outcome::default();
        let Key::Window(share) = &key else { return out };
        match ask {
            Ask::Open(start) => return self.open(request, key, start, now),
            Ask::Plan { count, order } => {
                self.look_at_clock(share, now, &mut out);
                let plan = self.plan(share, count, order.as_ref(), now);
                out.respond(request, Ok(Response::Plan(plan)));
            }
            Ask::Take(take) => return self.take(request, key, &take, now),
            Ask::Settle { offsets, popped_ms, state } => {
                let batches = self.settled(share, &offsets, popped_ms, state);
                let count = batches.iter().map(|batch| batch.last - batch.first + 1).sum::<i64>();
                let count = usize::try_from(count).unwrap_or_default();
                self.change(key, batches, None, &mut out);
                out.respond(request, Ok(Response::Settled(count)));
            }
            Ask::Delay { offset, popped_ms, lease } => {
                let flight = self.in_hand(share, offset, popped_ms);
                let mut batches = Batches::default();
                if let Some(flight) = flight {
                    batches.flight(offset, Flight { lease, ..flight });
                }
                self.change(key, batches.0, None, &mut out);
                out.respond(request, Ok(Response::Delayed(flight.is_some())));
            }
            Ask::Reset(start) => {
                self.reset(key, start, now, &mut out);
                out.respond(request, Ok(Response::Done));
            }
            Ask::Forget => {
                self.end(key, &mut out);
                out.respond(request, Ok(Response::Done));
            }
            Ask::Overruled { offset, by } => {
                // Else another word came in between.
                if self.is_committing(share, offset) {
                    match by {
                        Some(by) => self.reset(key, by, now, &mut out),
                        None => self.end(key, &mut out),
                    }
                }
                out.respond(request, Ok(Response::Done));
            }
            Ask::Refresh => self.refresh(key, now, &mut out),
            Ask::Bury { offset, copy } => return self.bury(request, key, offset, copy, now),
            Ask::Buried { offset, target } => return self.buried(request, key, offset, target),
            Ask::Moved(moved) => self.moved(share, moved, now, &mut out),
            Ask::Committed(offset) => self.committed(request, key, offset, &mut out),
        }
        out
    }

    fn open(&self, request: Option<RequestId>, key: Key, start: i64, now: Now) -> Outcome {
        let mut out = Outcome::default();
        let Key::Window(share) = &key else { return out };
        if self.windows.contains_key(share) {
            out.respond(request, Ok(Response::Done));
            return out;
        }
        if self.windows.len() >= SHARD_WINDOWS_MAX {
            out.respond(request, Err(InflightError::TooMany));
            return out;
        }
        let window = Window::new(start, 0, now.wall_ms);
        out.records.push(snapshot(share, &window, now));
        out.respond(request, Ok(Response::Done));
        let moved = Moved { opened: Some(start), ..Moved::default() };
        out.follow_ups.push((None, Event::Of { key, ask: Ask::Moved(moved) }));
        out
    }

    /// Has the log say so, if there is anything to say.
    pub(super) fn change(
        &self,
        key: Key,
        batches: Vec<StateBatch>,
        deliveries_max: Option<u16>,
        out: &mut Outcome,
    ) {
        let Key::Window(share) = &key else { return };
        let Some(window) = self.window(share).filter(|_| !batches.is_empty()) else { return };
        out.records.push(ShareRecord::Update {
            share: share.clone(),
            epoch: window.epoch,
            batches,
            deliveries_max: deliveries_max.unwrap_or(window.deliveries_max),
            committed: None,
        });
        let moved = Moved { made_room: self.room(window) == 0, ..Moved::default() };
        out.follow_ups.push((None, Event::Of { key, ask: Ask::Moved(moved) }));
    }

    fn bury(
        &self,
        request: Option<RequestId>,
        key: Key,
        offset: i64,
        copy: Option<(TopicPartition, StoredMessage)>,
        now: Now,
    ) -> Outcome {
        let mut out = Outcome::default();
        let Key::Window(share) = &key else { return out };
        let window = self.window(share);
        let is_dead = window.is_some_and(|window| {
            let flight = window.get(offset);
            flight.is_some_and(|it| window.is_spent(it) && it.lease.until_ms <= now.wall_ms)
        });
        match copy.filter(|_| is_dead) {
            Some((target, message)) => {
                let share = share.clone();
                out.records.push(ShareRecord::Dead { share, offset, message });
                let ask = Ask::Buried { offset, target };
                out.follow_ups.push((request, Event::Of { key, ask }));
            }
            None => {
                if is_dead {
                    self.change(key, archived(offset), None, &mut out);
                }
                out.respond(request, Ok(Response::Buried(is_dead)));
            }
        }
        out
    }

    fn buried(
        &self,
        request: Option<RequestId>,
        key: Key,
        offset: i64,
        target: TopicPartition,
    ) -> Outcome {
        let mut out = Outcome::default();
        let Key::Window(share) = &key else { return out };
        let is_there = self.window(share).is_some_and(|window| window.get(offset).is_some());
        let copy = self.copies.get(&(share.clone(), offset)).copied().filter(|_| is_there);
        if let Some(copy) = copy {
            self.change(key, archived(offset), None, &mut out);
            let messages = vec![Noted { offset: copy, tag: offset }];
            let note = Note { target: target.clone(), messages };
            out.records.push(ShareRecord::Delivery(DeliveryRecord::Note(note)));
            out.follow_ups.push((None, Event::Noted(target)));
        }
        out.respond(request, Ok(Response::Buried(copy.is_some())));
        out
    }

    fn done(
        &self,
        request: Option<RequestId>,
        target: &TopicPartition,
        through: Offset,
    ) -> Outcome {
        let mut out = Outcome::default();
        if let Some(record) = self.deliveries.done(target, through) {
            out.records.push(ShareRecord::Delivery(record));
            out.follow_ups.push((None, Event::Trim));
        }
        out.respond(request, Ok(Response::Done));
        out
    }
}

pub(super) fn snapshot(share: &SharePartition, window: &Window, now: Now) -> ShareRecord {
    ShareRecord::Snapshot {
        share: share.clone(),
        epoch: window.epoch,
        start: window.start(),
        created_ms: window.created_ms,
        written_ms: now.wall_ms,
        batches: window.batches(),
        deliveries_max: window.deliveries_max,
        committed: window.committed,
    }
}

fn archived(offset: i64) -> Vec<StateBatch> {
    let mut batches = Batches::default();
    batches.done(offset, offset.saturating_add(1), DeliveryState::Archived);
    batches.0
}

impl Shard for InflightShard {
    type Key = Key;
    type Event = Event;
    type Response = Response;
    type Error = InflightError;
    type Record = ShareRecord;
    type Timer = Alarm;
    type Notice = Notice;

    fn key(event: &Event) -> Option<&Key> {
        match event {
            Event::Of { key, .. } | Event::Done { key, .. } => Some(key),
            Event::Due
            | Event::Noted(_)
            | Event::TopicGone(_)
            | Event::GroupGone(_)
            | Event::Trim => None,
        }
    }

    fn fired(_: Alarm) -> Event {
        Event::Due
    }

    fn handle(&mut self, request: Option<RequestId>, event: Event, now: Now) -> Outcome {
        match event {
            Event::Of { key, ask } => self.of(request, key, ask, now),
            Event::Due => self.due(now),
            Event::Noted(target) => {
                Outcome { notices: vec![Notice::Deliver(target)], ..Outcome::default() }
            }
            Event::Done { target, through, .. } => self.done(request, &target, through),
            Event::TopicGone(topic) => self.forget_all(|share| share.topic == topic),
            Event::GroupGone(group) => self.forget_all(|share| share.group == group),
            Event::Trim => self.trim(),
        }
    }

    fn replay(&mut self, record: ShareRecord, offset: Offset) {
        self.end = offset.plus(1);
        match record {
            ShareRecord::Snapshot {
                share,
                epoch,
                start,
                created_ms,
                batches,
                deliveries_max,
                committed,
                ..
            } => {
                let mut window = Window::new(start, epoch, created_ms);
                (window.deliveries_max, window.committed) = (deliveries_max, committed);
                batches.iter().for_each(|batch| window.apply(batch));
                self.replace(share, window, offset);
            }
            ShareRecord::Update { share, batches, deliveries_max, committed, .. } => {
                if let (Some(held), Some(_)) = (self.windows.get_mut(&share), committed) {
                    held.window.committed = committed;
                }
                self.update(&share, &batches, deliveries_max);
            }
            ShareRecord::Forgotten(share) => self.forget(&share),
            ShareRecord::Dead { share, offset: dead, .. } => {
                self.copies.insert((share, dead), offset);
            }
            ShareRecord::Delivery(record) => self.deliveries.replay(record, offset),
        }
    }

    fn loaded(&mut self, now: Now) -> Outcome {
        let mut out = Outcome::default();
        // Whoever had them buried is gone; they will be buried again.
        self.copies.clear();
        out.notices.extend(self.deliveries.targets().cloned().map(Notice::Deliver));
        let shares: Vec<SharePartition> = self.windows.keys().cloned().collect();
        for share in shares {
            if let Some(Held { window, live, .. }) = self.windows.get_mut(&share) {
                live.own_from = window.committed;
            }
            self.tell_position(&share, &mut out);
        }
        self.set_alarm(&mut out, now);
        out
    }

    fn revert(&mut self, key: &Key, _: &InflightError, _: Now) -> Outcome {
        if let Key::Window(share) = key
            && let Some(held) = self.windows.get_mut(share)
        {
            held.live.attempt = None;
        }
        Outcome::default()
    }

    fn while_loading(_: &Event) -> Result<Response, InflightError> {
        Err(InflightError::Loading)
    }

    fn resigned() -> InflightError {
        InflightError::NotCoordinator
    }

    fn overloaded() -> InflightError {
        InflightError::NotAvailable
    }

    fn encode(record: &ShareRecord) -> Result<RecordBytes, InflightError> {
        Ok(record.encode()?)
    }

    fn decode(key: &Bytes, value: Option<&Bytes>) -> Result<Option<ShareRecord>, RecordError> {
        ShareRecord::decode(key, value.map(|value| &value[..]))
    }
}

impl Delivers for InflightShard {
    fn deliveries(&self) -> &Deliveries {
        &self.deliveries
    }

    fn done(target: TopicPartition, through: Offset) -> Event {
        Event::Done { key: Key::Target(target.clone()), target, through }
    }

    fn message(key: &[u8], value: &[u8]) -> Option<StoredMessage> {
        match ShareRecord::decode(key, Some(value)) {
            Ok(Some(ShareRecord::Dead { message, .. })) => Some(message),
            _ => None,
        }
    }
}
