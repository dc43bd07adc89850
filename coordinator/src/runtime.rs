//! Drives one partition of an internal topic: decides, has the log append, replays, and answers
//! once the high watermark has passed.
//!
//! ```text
//! loading --finish_load--> active --resign--> resigned
//! ```
//!
//! **The rule.** A decision is replayed when the log has appended its records, not before. Until
//! then its group takes no further event: they wait in order. Other groups go on, and what they
//! decide is gathered into the next batch, so one append is under way at a time and carries what
//! came meanwhile. Hence no decision ever rests on records that may still fail, and a refused
//! append leaves nothing in the durable state to take back; only the groups of the refused
//! decisions get their live state rebuilt from the durable one ([`Shard::revert`]). Kafka's `CoordinatorRuntime`
//! instead replays before it appends and keeps snapshots to go back to; that saves the wait for one
//! local append inside one group, and costs a versioned form of every collection.
//!
//! Every answer, also of a request that wrote nothing, waits until the high watermark has passed
//! all that was appended when it was decided: what a client is told was committed.
//!
//! The caller performs the [`Effect`]s in order and reports appends; it wakes the runtime at
//! [`Runtime::next_deadline`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;

use bytes::Bytes;
use duolog_log_core::ids::Offset;
use duolog_log_core::record::TransactionOutcome;

use crate::error::AppendError;
use crate::limits::WAITING_MAX;
use crate::record::RecordError;
use crate::shard::{Answer, BatchForm, Outcome, RecordBytes, RequestId, Shard, TimerChange, Undo};
use crate::time::Now;
use batches::Decision;
use timers::{Firing, Timers};

mod batches;
mod timers;

/// Names one append; the caller reports how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AppendId(pub u64);

/// What the caller is to perform.
#[derive(Debug)]
pub enum Effect<S: Shard> {
    /// Append these records as one batch with acks = all, then call [`Runtime::appended`] or
    /// [`Runtime::append_failed`]. At most one is open at a time.
    Append {
        /// Names it.
        id: AppendId,
        /// Empty only for a marker.
        records: Vec<RecordBytes>,
        /// What they are, or which marker it is.
        batch: BatchForm,
        /// CreateTime of the records, milliseconds since 1970.
        timestamp_ms: i64,
    },
    /// Answer a request.
    Reply {
        /// The request as it was given to the runtime.
        request: RequestId,
        /// With what.
        answer: Answer<S>,
    },
    /// News that answer no request.
    Notice(S::Notice),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Loading,
    Active,
    Resigned,
}

/// An answer that waits for the high watermark to reach `required`.
struct Held<S: Shard> {
    required: Offset,
    request: RequestId,
    answer: Answer<S>,
}

type Queued<S> = (Option<RequestId>, <S as Shard>::Event);

/// What is to be decided once its key is free.
enum Input<S: Shard> {
    Event(Queued<S>),
    /// Nothing any more if the timer is set anew or stopped first: a member that was heard of while
    /// its group had records under way is not silent.
    Fired(Firing<S::Timer>),
}

/// One partition's coordinator.
pub struct Runtime<S: Shard> {
    shard: S,
    phase: Phase,
    timers: Timers<S::Timer>,
    /// Requests not answered yet.
    open: BTreeSet<RequestId>,
    /// What waits for each key that has records under way; the key of such a one is always here.
    waiting: BTreeMap<S::Key, VecDeque<Input<S>>>,
    waiting_count: usize,
    gathered: VecDeque<Decision<S>>,
    appending: Option<(AppendId, Vec<Decision<S>>)>,
    next_append: u64,
    batch_bytes_max: usize,
    /// In order of `required`.
    held: VecDeque<Held<S>>,
    log_end_offset: Offset,
    high_watermark: Offset,
    effects: VecDeque<Effect<S>>,
}

impl<S: Shard> Runtime<S> {
    /// A coordinator whose partition's log is about to be read with [`Self::load`].
    pub fn loading(shard: S) -> Self {
        Self {
            shard,
            phase: Phase::Loading,
            timers: Timers::default(),
            open: BTreeSet::new(),
            waiting: BTreeMap::new(),
            waiting_count: 0,
            gathered: VecDeque::new(),
            appending: None,
            next_append: 0,
            batch_bytes_max: usize::MAX,
            held: VecDeque::new(),
            log_end_offset: Offset::ZERO,
            high_watermark: Offset::ZERO,
            effects: VecDeque::new(),
        }
    }

    /// Replays one record of the log; call in offset order, with the data records only.
    /// Returns whether the record was of a known kind.
    /// Errors: a record of a known kind that cannot be read; it is skipped.
    pub fn load(
        &mut self,
        offset: Offset,
        key: Option<&Bytes>,
        value: Option<&Bytes>,
    ) -> Result<bool, RecordError> {
        assert_eq!(self.phase, Phase::Loading, "records are loaded before the partition serves");
        let Some(record) = S::decode(key.ok_or(RecordError::NoKey)?, value)? else {
            return Ok(false);
        };
        self.shard.replay(record, offset);
        Ok(true)
    }

    /// As [`Self::load`], of a record in a producer's transaction.
    pub fn load_in_transaction(
        &mut self,
        offset: Offset,
        producer_id: i64,
        key: Option<&Bytes>,
        value: Option<&Bytes>,
    ) -> Result<bool, RecordError> {
        assert_eq!(self.phase, Phase::Loading, "records are loaded before the partition serves");
        let Some(record) = S::decode(key.ok_or(RecordError::NoKey)?, value)? else {
            return Ok(false);
        };
        self.shard.replay_in_transaction(producer_id, record, offset);
        Ok(true)
    }

    /// As [`Self::load`], of the marker that ends a producer's transaction.
    pub fn load_end(&mut self, producer_id: i64, outcome: TransactionOutcome) {
        assert_eq!(self.phase, Phase::Loading, "markers are loaded before the partition serves");
        self.shard.replay_end(producer_id, outcome);
    }

    /// The log was read up to its end: serve.
    pub fn finish_load(&mut self, log_end_offset: Offset, high_watermark: Offset, now: Now) {
        assert_eq!(self.phase, Phase::Loading, "a partition is loaded once");
        assert!(high_watermark <= log_end_offset, "the HW never passes the log end");
        self.phase = Phase::Active;
        self.log_end_offset = log_end_offset;
        self.high_watermark = high_watermark;
        let outcome = self.shard.loaded(now);
        self.settle(outcome, now);
        self.flush(now);
    }

    /// Whether the partition serves requests.
    pub fn is_active(&self) -> bool {
        self.phase == Phase::Active
    }

    /// The state machine, to be read.
    pub fn shard(&self) -> &S {
        &self.shard
    }

    /// Takes a request, which is answered exactly once by an [`Effect::Reply`]. Ids of unanswered
    /// requests are distinct.
    pub fn submit(&mut self, request: RequestId, event: S::Event, now: Now) {
        let fresh = self.open.insert(request);
        assert!(fresh, "request ids are distinct");
        self.take(Some(request), event, now);
    }

    /// Takes a client's request that nobody waits for; it is dropped when too much waits already.
    pub fn offer(&mut self, event: S::Event, now: Now) {
        self.take(None, event, now);
    }

    /// Takes news from the node, which are not told twice: while the partition serves, they are
    /// never dropped.
    pub fn notify(&mut self, event: S::Event, now: Now) {
        if self.phase == Phase::Active {
            self.dispatch(Input::Event((None, event)), now);
            self.flush(now);
        }
    }

    /// Fires the timers that are due.
    pub fn tick(&mut self, now: Now) {
        if self.phase != Phase::Active {
            return;
        }
        for firing in self.timers.take_due(now.tick_ms) {
            self.dispatch(Input::Fired(firing), now);
        }
        self.flush(now);
    }

    /// When to call [`Self::tick`], on the steady clock. It may have nothing to do then.
    pub fn next_deadline(&self) -> Option<i64> {
        self.timers.next_deadline()
    }

    /// The records of `id` are in the log from `base_offset` on. With one replica, follow with
    /// [`Self::advance_high_watermark`].
    pub fn appended(&mut self, id: AppendId, base_offset: Offset, now: Now) {
        if self.phase != Phase::Active {
            return;
        }
        let decisions = self.end_append(id);
        assert!(base_offset >= self.log_end_offset, "appended offsets only grow");
        let mut offset = base_offset;
        let mut done = Vec::with_capacity(decisions.len());
        let mut responses = Vec::new();
        for decision in decisions {
            offset = self.replay(decision.batch, decision.records, offset);
            responses.extend(decision.responses);
            done.push((decision.key, decision.follow_ups));
        }
        self.log_end_offset = offset;
        for (request, answer) in responses {
            self.hold(request, answer);
        }
        for (key, follow_ups) in done {
            self.resume(key.as_ref(), follow_ups, now);
        }
        self.flush(now);
    }

    /// The log did not take the records of `id`. Whoever waited for them is told `error`; decisions
    /// that are too large together are appended one by one first.
    pub fn append_failed(&mut self, id: AppendId, error: AppendError, now: Now) {
        if self.phase != Phase::Active {
            return;
        }
        let decisions = self.end_append(id);
        if error == AppendError::TooLarge && decisions.len() > 1 {
            self.part(decisions, now);
            return self.flush(now);
        }
        let error = S::Error::from(error);
        for decision in decisions {
            let key = decision.key.clone();
            self.refuse(decision, &error, now);
            self.resume(key.as_ref(), Vec::new(), now);
        }
        self.flush(now);
    }

    /// All below `offset` is committed: releases the answers that waited for it.
    pub fn advance_high_watermark(&mut self, offset: Offset) {
        self.high_watermark = self.high_watermark.max(offset);
        while let Some(held) = self.held.pop_front_if(|held| held.required <= self.high_watermark) {
            self.reply(held.request, held.answer);
        }
    }

    /// This node does not lead the partition any more: refuses all that is open and will come.
    pub fn resign(&mut self) {
        self.phase = Phase::Resigned;
        self.held.clear();
        self.waiting.clear();
        self.waiting_count = 0;
        self.gathered.clear();
        self.appending = None;
        self.timers = Timers::default();
        for request in mem::take(&mut self.open) {
            self.effects.push_back(Effect::Reply { request, answer: Err(S::resigned()) });
        }
    }

    /// The next thing for the caller to do.
    pub fn poll_effect(&mut self) -> Option<Effect<S>> {
        self.effects.pop_front()
    }

    fn take(&mut self, request: Option<RequestId>, event: S::Event, now: Now) {
        let refusal = match self.phase {
            Phase::Active if self.waiting_count < WAITING_MAX => {
                self.dispatch(Input::Event((request, event)), now);
                self.flush(now);
                return;
            }
            Phase::Active => Err(S::overloaded()),
            Phase::Loading => S::while_loading(&event),
            Phase::Resigned => Err(S::resigned()),
        };
        if let Some(request) = request {
            self.reply(request, refusal);
        }
    }

    /// Decides `input` and all that follows from it, each unless its key has records under way.
    fn dispatch(&mut self, input: Input<S>, now: Now) {
        let mut queue = VecDeque::from([input]);
        while let Some(input) = queue.pop_front() {
            let (firing, (request, event)) = match input {
                Input::Event(queued) => (None, queued),
                Input::Fired(firing) => {
                    let event = S::fired(firing.timer.clone());
                    (Some(firing), (None, event))
                }
            };
            let key = S::key(&event).cloned();
            if let Some(waiting) = key.as_ref().and_then(|key| self.waiting.get_mut(key)) {
                let input = firing.map_or(Input::Event((request, event)), Input::Fired);
                waiting.push_back(input);
                self.waiting_count += 1;
                continue;
            }
            if firing.is_some_and(|firing| !self.timers.deliver(&firing)) {
                continue;
            }
            let mut outcome = self.shard.handle(request, event, now);
            if outcome.writes() {
                self.gather(key, outcome, now);
            } else {
                queue.extend(mem::take(&mut outcome.follow_ups).into_iter().map(Input::Event));
                self.settle(outcome, now);
            }
        }
    }

    /// Performs an outcome without records.
    fn settle(&mut self, outcome: Outcome<S>, now: Now) {
        assert!(!outcome.writes(), "records belong to an event with a key");
        self.perform(outcome.timers, outcome.notices);
        for (request, answer) in outcome.responses {
            self.hold(request, answer);
        }
        for follow_up in outcome.follow_ups {
            self.dispatch(Input::Event(follow_up), now);
        }
    }

    fn perform(&mut self, timers: Vec<TimerChange<S::Timer>>, notices: Vec<S::Notice>) {
        for timer in timers {
            self.timers.change(timer);
        }
        self.effects.extend(notices.into_iter().map(Effect::Notice));
    }

    /// Answers a decision that cannot be stored, and takes its live part back.
    fn refuse(&mut self, decision: Decision<S>, error: &S::Error, now: Now) {
        let answered = decision.responses.into_iter().map(|(request, _)| request);
        let going_on = decision.follow_ups.into_iter().filter_map(|(request, _)| request);
        for request in answered.chain(going_on) {
            self.reply(request, Err(error.clone()));
        }
        if decision.undo == Undo::Group
            && let Some(key) = &decision.key
        {
            let outcome = self.shard.revert(key, error, now);
            self.settle(outcome, now);
        }
    }

    /// Replays what stands in the log from `offset` on; returns the offset after it.
    fn replay(&mut self, batch: BatchForm, records: Vec<S::Record>, mut offset: Offset) -> Offset {
        if let BatchForm::End(end) = batch {
            self.shard.replay_end(end.producer.id, end.outcome);
            return offset.plus(1);
        }
        for record in records {
            match batch {
                BatchForm::InTransaction { producer, .. } => {
                    self.shard.replay_in_transaction(producer.id, record, offset);
                }
                BatchForm::Plain | BatchForm::End(_) => self.shard.replay(record, offset),
            }
            offset = offset.plus(1);
        }
        offset
    }

    /// Goes on with `key`: with what follows from its decision, then with what waited for it.
    fn resume(&mut self, key: Option<&S::Key>, follow_ups: Vec<Queued<S>>, now: Now) {
        let waiting = key.and_then(|key| self.waiting.remove(key)).unwrap_or_default();
        self.waiting_count -= waiting.len();
        for input in follow_ups.into_iter().map(Input::Event).chain(waiting) {
            self.dispatch(input, now);
        }
    }

    fn hold(&mut self, request: RequestId, answer: Answer<S>) {
        if self.log_end_offset <= self.high_watermark {
            self.reply(request, answer);
        } else {
            self.held.push_back(Held { required: self.log_end_offset, request, answer });
        }
    }

    fn reply(&mut self, request: RequestId, answer: Answer<S>) {
        let open = self.open.remove(&request);
        assert!(open, "a request is answered once");
        self.effects.push_back(Effect::Reply { request, answer });
    }
}

#[cfg(test)]
mod tests;
