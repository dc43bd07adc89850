//! The state machine of one `__transaction_state` partition: its transactional ids.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use duolog_log_core::event::{Event as Observed, EventKind, Events, Protocol};
use duolog_log_core::ids::Offset;
use duolog_log_core::record::TransactionOutcome;

use super::config::TxnConfig;
use super::error::TxnError;
use super::event::{Event, ListTransactions, MarkersWritten, Timer};
use super::response::{Described, Listed, Markers, Notice, Response};
use crate::record::RecordError;
use crate::record::transaction::{
    NO_PRODUCER_ID, Partitions, ProducerIdAndEpoch, Record, TransactionalId, TxnState, TxnValue,
    TxnVersion,
};
use crate::shard::{self, RecordBytes, RequestId, Shard, TimerChange};
use crate::time::Now;

mod add;
mod end;
mod expire;
mod init;

/// What follows from an event here.
pub(super) type Outcome = shard::Outcome<TxnShard>;

/// What becomes of an event: a new value to store with the answer, or an answer alone.
enum Decision {
    /// Store, then answer.
    Store(TxnValue, Response),
    /// Nothing to store.
    Answer(Response),
}

/// The epoch that a producer had before its last bump, so that a repeated request is recognized.
/// Not stored, in Kafka neither: a retry that meets a new coordinator is fenced.
#[derive(Clone, Copy, Debug)]
struct LastEpoch {
    /// What it was bumped to.
    now: ProducerIdAndEpoch,
    /// What it was.
    before: i16,
}

/// The transactional ids of one partition.
#[derive(Debug)]
pub struct TxnShard {
    config: TxnConfig,
    events: Arc<Events>,
    /// The epoch in which this partition is led.
    coordinator_epoch: i32,
    ids: BTreeMap<TransactionalId, TxnValue>,
    last_epochs: BTreeMap<TransactionalId, LastEpoch>,
    /// Why transactions are about to be aborted, for whoever listens.
    causes: BTreeMap<TransactionalId, &'static str>,
    /// Replayed records are news from here on.
    is_loaded: bool,
    looks_for_expired: bool,
}

impl TxnShard {
    /// A shard without transactional ids, to be filled from the log; tells state changes to
    /// `events`.
    #[must_use]
    pub fn new(config: TxnConfig, coordinator_epoch: i32, events: Arc<Events>) -> Self {
        Self {
            config,
            events,
            coordinator_epoch,
            ids: BTreeMap::new(),
            last_epochs: BTreeMap::new(),
            causes: BTreeMap::new(),
            is_loaded: false,
            looks_for_expired: false,
        }
    }

    /// What the log has of each transactional id, in order.
    pub fn values(&self) -> impl Iterator<Item = (&TransactionalId, &TxnValue)> {
        self.ids.iter()
    }

    /// The id's value, if it belongs to this producer.
    fn of_producer(&self, id: &str, producer_id: i64) -> Result<&TxnValue, TxnError> {
        if id.is_empty() {
            return Err(TxnError::InvalidRequest);
        }
        let value = self.ids.get(id).ok_or(TxnError::InvalidProducerIdMapping)?;
        await_next_producer(value, producer_id)?;
        if value.producer.id != producer_id {
            return Err(TxnError::InvalidProducerIdMapping);
        }
        Ok(value)
    }

    /// Turns a decision about `id` into what follows.
    fn settle(
        &mut self,
        request: Option<RequestId>,
        id: &TransactionalId,
        decision: Result<Decision, TxnError>,
        now: Now,
        out: &mut Outcome,
    ) {
        match decision {
            Ok(Decision::Store(value, response)) => {
                self.store(id, value, now, out);
                out.respond(request, Ok(response));
            }
            Ok(Decision::Answer(response)) => out.respond(request, Ok(response)),
            Err(error) => {
                if error == TxnError::ProducerFenced {
                    self.tell(EventKind::TxnFence, id, now, "an older producer was refused");
                }
                out.respond(request, Err(error));
            }
        }
    }

    /// Has `value` stored, and sees to what has to follow.
    fn store(&mut self, id: &TransactionalId, value: TxnValue, now: Now, out: &mut Outcome) {
        let held = self.ids.get(id);
        let was_ongoing = held.is_some_and(|held| held.state == TxnState::Ongoing);
        if value.state == TxnState::Ongoing && !was_ongoing {
            out.timers.push(self.timeout(id, &value, now));
        }
        if value.state.prepared().is_some() {
            out.follow_ups.push((None, Event::Prepared(id.clone())));
            // Counts only for the producer and epoch that it names, so it may go ahead.
            let before = held.map(|held| held.producer.epoch);
            if let Some(before) = before.filter(|before| *before < value.producer.epoch) {
                let last = LastEpoch { now: producer_after(&value), before };
                self.last_epochs.insert(id.clone(), last);
            }
        }
        out.records.push(Record { id: id.clone(), value: Some(value) });
    }

    /// The timeout of an ongoing transaction, at a multiple of Kafka's interval.
    fn timeout(&self, id: &TransactionalId, value: &TxnValue, now: Now) -> TimerChange<Timer> {
        let since_ms = now.wall_ms.saturating_sub(value.started_ms).max(0);
        let left_ms = i64::from(value.timeout_ms).saturating_sub(since_ms);
        let interval = self.config.abort_interval_ms.max(1);
        let due = now.after(left_ms);
        let due = due.saturating_add((interval - due.rem_euclid(interval)) % interval);
        TimerChange::Set(Timer::Timeout(id.clone()), due)
    }

    /// The markers of a transaction that is prepared.
    fn markers(&self, id: &TransactionalId) -> Option<Notice> {
        let value = self.ids.get(id)?;
        Some(Notice::WriteMarkers(Markers {
            id: id.clone(),
            producer: value.producer,
            coordinator_epoch: self.coordinator_epoch,
            outcome: value.state.prepared()?,
            version: marker_version(value),
            partitions: value.partitions.clone(),
        }))
    }

    fn markers_written(&self, written: &MarkersWritten, now: Now) -> Result<Decision, TxnError> {
        let value = self.ids.get(&written.id).ok_or(TxnError::TransactionalIdNotFound)?;
        if value.producer != written.producer {
            return Err(TxnError::InvalidProducerIdMapping);
        }
        let complete = completed(value, now).ok_or(TxnError::InvalidTxnState)?;
        Ok(Decision::Store(complete, Response::Noted))
    }

    fn describe(&self, id: &TransactionalId) -> Result<Response, TxnError> {
        if id.is_empty() {
            return Err(TxnError::InvalidRequest);
        }
        let value = self.ids.get(id).ok_or(TxnError::TransactionalIdNotFound)?;
        Ok(Response::Described(Described {
            state: value.state,
            timeout_ms: value.timeout_ms,
            started_ms: value.started_ms,
            producer: value.producer,
            partitions: value.partitions.clone(),
        }))
    }

    fn list(&self, asked: &ListTransactions, now: Now) -> Vec<Listed> {
        let is_asked = |value: &TxnValue| {
            (asked.states.is_empty() || asked.states.iter().any(|it| it == value.state.name()))
                && (asked.producer_ids.is_empty()
                    || asked.producer_ids.contains(&value.producer.id))
                && (asked.longer_than_ms < 0
                    || now.wall_ms.saturating_sub(value.started_ms) > asked.longer_than_ms)
        };
        let listed = self.ids.iter().filter(|(_, value)| is_asked(value));
        let one = |(id, value): (&TransactionalId, &TxnValue)| Listed {
            id: id.clone(),
            producer_id: value.producer.id,
            state: value.state,
        };
        listed.map(one).collect()
    }

    fn tell(&self, kind: EventKind, id: &TransactionalId, now: Now, cause: &str) {
        self.events.emit(|| observed(kind, id, now.wall_ms, cause.to_owned()));
    }

    /// Tells what a record that was stored just now has changed.
    fn tell_change(&self, id: &TransactionalId, value: &TxnValue, before: Option<&TxnValue>) {
        let producer = value.producer;
        let whose = format_args!("producer {} epoch {}", producer.id, producer.epoch).to_string();
        let at_ms = value.updated_ms;
        match value.state {
            TxnState::Empty => {}
            TxnState::Ongoing => {
                let before = before.filter(|before| before.state == TxnState::Ongoing);
                if before.is_none() {
                    self.events.emit(|| observed(EventKind::TxnBegin, id, at_ms, whose));
                }
                for (topic, partitions) in &value.partitions {
                    let held = before.and_then(|before| before.partitions.get(topic));
                    for partition in partitions {
                        if held.is_none_or(|held| !held.contains(partition)) {
                            let added = observed(EventKind::TxnAdd, id, at_ms, String::new());
                            self.events.emit(|| added.at(topic, *partition));
                        }
                    }
                }
            }
            TxnState::PrepareCommit | TxnState::PrepareAbort => {
                let how = value.state.name();
                let why = self.causes.get(id).map(|why| format!(", {why}")).unwrap_or_default();
                let cause = format!("{how}: {whose}{why}");
                self.events.emit(|| observed(EventKind::TxnPrepare, id, at_ms, cause));
            }
            TxnState::CompleteCommit | TxnState::CompleteAbort => {
                let cause = format!("{}: {whose}", value.state.name());
                self.events.emit(|| observed(EventKind::TxnComplete, id, at_ms, cause));
            }
        }
    }

    fn begin_to_look_for_expired(&mut self, now: Now, out: &mut Outcome) {
        if !self.looks_for_expired {
            self.looks_for_expired = true;
            let next = now.after(self.config.expiration_interval_ms);
            out.timers.push(TimerChange::Set(Timer::Expiration, next));
        }
    }
}

/// An event about a transactional id, which stands where a client would.
fn observed(kind: EventKind, id: &TransactionalId, at_ms: i64, cause: String) -> Observed {
    let event = Observed::new(kind, at_ms).protocol(Protocol::Kafka).client(id.clone());
    if cause.is_empty() { event } else { event.cause(cause) }
}

/// A prepared transaction once its markers are everywhere; `None` for one that is not prepared.
fn completed(value: &TxnValue, now: Now) -> Option<TxnValue> {
    let state = match value.state.prepared()? {
        TransactionOutcome::Commit => TxnState::CompleteCommit,
        TransactionOutcome::Abort => TxnState::CompleteAbort,
    };
    Some(TxnValue {
        producer: producer_after(value),
        previous_producer_id: value.producer.id,
        next_producer_id: NO_PRODUCER_ID,
        partitions: Partitions::new(),
        state,
        updated_ms: now.wall_ms,
        ..value.clone()
    })
}

/// What the producer of a prepared transaction goes on with: the next producer id, if the epochs
/// of the present one are used up.
fn producer_after(value: &TxnValue) -> ProducerIdAndEpoch {
    if value.version.bumps_epoch() && value.next_producer_id != NO_PRODUCER_ID {
        return ProducerIdAndEpoch { id: value.next_producer_id, epoch: 0 };
    }
    value.producer
}

/// A producer of transactions v2 is told its next producer id before the markers are written, and
/// may come with it before they are: it is to ask again, as in Kafka's `TransactionCoordinator`,
/// which looks at the transition under way before it looks at the producer id.
///
/// Errors: `ConcurrentTransactions`.
fn await_next_producer(value: &TxnValue, sent_id: i64) -> Result<(), TxnError> {
    if value.state.prepared().is_some()
        && value.producer.id != sent_id
        && producer_after(value).id == sent_id
    {
        return Err(TxnError::ConcurrentTransactions);
    }
    Ok(())
}

/// Whether no epoch is left that a producer may be given: the last one is kept for fencing.
const fn is_exhausted(epoch: i16) -> bool {
    epoch >= FENCING_EPOCH - 1
}

/// Only markers carry this epoch. A producer that had it could not be fenced, nor could a marker of
/// transactions v2 be above it.
const FENCING_EPOCH: i16 = i16::MAX;

/// The protocol under which the markers of a prepared transaction are judged. Of the last epoch
/// nothing can be asked to lie below: it may be that an earlier version gave it to a producer.
fn marker_version(value: &TxnValue) -> TxnVersion {
    if value.producer.epoch == FENCING_EPOCH { TxnVersion::V1 } else { value.version }
}

impl Shard for TxnShard {
    type Key = TransactionalId;
    type Event = Event;
    type Response = Response;
    type Error = TxnError;
    type Record = Record;
    type Timer = Timer;
    type Notice = Notice;

    fn key(event: &Event) -> Option<&TransactionalId> {
        match event {
            Event::InitProducerId(init) => Some(&init.id),
            Event::AddPartitions(add) | Event::VerifyPartitions(add) => Some(&add.id),
            Event::EndTxn(end) => Some(&end.id),
            Event::MarkersWritten(written) => Some(&written.id),
            Event::Prepared(id) | Event::TimedOut(id) | Event::Expire(id) | Event::Describe(id) => {
                Some(id)
            }
            Event::LookForExpired | Event::List(_) => None,
        }
    }

    fn fired(timer: Timer) -> Event {
        match timer {
            Timer::Timeout(id) => Event::TimedOut(id),
            Timer::Expiration => Event::LookForExpired,
        }
    }

    fn handle(&mut self, request: Option<RequestId>, event: Event, now: Now) -> Outcome {
        let mut out = Outcome::default();
        match event {
            Event::InitProducerId(init) => {
                self.begin_to_look_for_expired(now, &mut out);
                self.init_producer_id(request, &init, now, &mut out);
            }
            Event::AddPartitions(add) => {
                let decision = self.add_partitions(&add, now);
                self.settle(request, &add.id, decision, now, &mut out);
            }
            Event::VerifyPartitions(add) => {
                let decision = self.verify_partitions(&add).map(Decision::Answer);
                self.settle(request, &add.id, decision, now, &mut out);
            }
            Event::EndTxn(end) => {
                let decision = self.end_txn(&end, now);
                self.settle(request, &end.id, decision, now, &mut out);
            }
            Event::Prepared(id) => out.notices.extend(self.markers(&id)),
            Event::MarkersWritten(written) => {
                let decision = self.markers_written(&written, now);
                self.settle(request, &written.id, decision, now, &mut out);
            }
            Event::TimedOut(id) => self.timed_out(&id, now, &mut out),
            Event::LookForExpired => self.look_for_expired(now, &mut out),
            Event::Expire(id) => self.expire(&id, now, &mut out),
            Event::Describe(id) => out.respond(request, self.describe(&id)),
            Event::List(asked) => {
                out.respond(request, Ok(Response::Listed(self.list(&asked, now))))
            }
        }
        out
    }

    fn replay(&mut self, record: Record, _: Offset) {
        let Record { id, value } = record;
        match value {
            Some(value) => {
                let before = self.ids.insert(id.clone(), value);
                if self.is_loaded
                    && let Some(value) = self.ids.get(&id)
                {
                    self.tell_change(&id, value, before.as_ref());
                }
            }
            None => _ = self.ids.remove(&id),
        }
        self.causes.remove(&id);
    }

    fn loaded(&mut self, now: Now) -> Outcome {
        self.is_loaded = true;
        let mut out = Outcome::default();
        if !self.ids.is_empty() {
            self.begin_to_look_for_expired(now, &mut out);
        }
        for (id, value) in &self.ids {
            if value.state == TxnState::Ongoing {
                out.timers.push(self.timeout(id, value, now));
            }
            out.notices.extend(self.markers(id));
        }
        out
    }

    fn revert(&mut self, _: &TransactionalId, _: &TxnError, _: Now) -> Outcome {
        // Live state here never runs ahead of the log: see `LastEpoch::now`.
        Outcome::default()
    }

    fn while_loading(_: &Event) -> Result<Response, TxnError> {
        Err(TxnError::CoordinatorLoadInProgress)
    }

    fn resigned() -> TxnError {
        TxnError::NotCoordinator
    }

    fn overloaded() -> TxnError {
        TxnError::CoordinatorNotAvailable
    }

    fn encode(record: &Record) -> Result<RecordBytes, TxnError> {
        Ok(record.encode()?)
    }

    fn decode(key: &Bytes, value: Option<&Bytes>) -> Result<Option<Record>, RecordError> {
        Record::decode(key, value)
    }
}

/// The value of an id of which nothing was stored yet: its epoch counts from the next one on.
fn fresh(producer_id: i64, timeout_ms: i32, now: Now) -> TxnValue {
    TxnValue {
        producer: ProducerIdAndEpoch { id: producer_id, epoch: -1 },
        previous_producer_id: NO_PRODUCER_ID,
        next_producer_id: NO_PRODUCER_ID,
        timeout_ms,
        state: TxnState::Empty,
        partitions: Partitions::new(),
        updated_ms: now.wall_ms,
        started_ms: -1,
        version: TxnVersion::V1,
    }
}
