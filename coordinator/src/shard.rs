//! What one partition of an internal topic decides: the state machine under [`crate::runtime`].

use std::fmt::Debug;

use bytes::Bytes;
use duolog_log_core::ids::Offset;
use duolog_log_core::log::Verified;
use duolog_log_core::record::TransactionOutcome;

use crate::error::AppendError;
use crate::record::RecordError;
use crate::record::transaction::{ProducerIdAndEpoch, TxnVersion};
use crate::time::Now;

/// Names one request towards the caller, who chose it; answered exactly once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A record as the log has it. No value: a tombstone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordBytes {
    /// Record key: a 16-bit key version, then the key.
    pub key: Bytes,
    /// Record value: a 16-bit value version, then the value.
    pub value: Option<Bytes>,
}

/// One timer to set anew or to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimerChange<T> {
    /// Fire at this time of the steady clock; replaces an earlier setting of the same timer.
    Set(T, i64),
    /// Do not fire.
    Cancel(T),
}

/// In what kind of batch a decision is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BatchForm {
    /// Facts from now on, together with those of other decisions.
    #[default]
    Plain,
    /// Facts once the producer's transaction commits.
    InTransaction {
        /// Whose transaction.
        producer: ProducerIdAndEpoch,
        /// Why it may be written.
        verified: Verified,
    },
    /// No record, but the marker that ends a producer's transaction in this partition.
    End(TransactionEnd),
}

/// The end of a transaction in one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionEnd {
    /// Whose; the epoch that the marker carries.
    pub producer: ProducerIdAndEpoch,
    /// How.
    pub outcome: TransactionOutcome,
    /// Of the transaction coordinator that decided.
    pub coordinator_epoch: i32,
    /// The protocol under which it ends.
    pub version: TxnVersion,
}

/// What becomes of the live state of a decision's group if the log refuses its records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Undo {
    /// Nothing to undo: the decision changed no live state that matters.
    #[default]
    Nothing,
    /// [`Shard::revert`] the group.
    Group,
}

/// What a request is answered.
pub type Answer<S> = Result<<S as Shard>::Response, <S as Shard>::Error>;

/// What follows from one event.
#[derive(Debug)]
pub struct Outcome<S: Shard> {
    /// To be appended, all or none. Only events with a key may yield records.
    pub records: Vec<S::Record>,
    /// How; an end is appended though there are no records.
    pub batch: BatchForm,
    /// Answers, to this request or to earlier ones. With `records`, they are given when those are
    /// committed; if they fail, the error is given in their place.
    pub responses: Vec<(RequestId, Answer<S>)>,
    /// Timers to set or stop, now.
    pub timers: Vec<TimerChange<S::Timer>>,
    /// Told to the caller, now.
    pub notices: Vec<S::Notice>,
    /// Handled next, each under its own key. With `records`: once those are in the log; if they
    /// fail, not at all. A request that goes on in a follow-up is answered there.
    pub follow_ups: Vec<(Option<RequestId>, S::Event)>,
    /// If the records fail.
    pub undo: Undo,
}

impl<S: Shard> Default for Outcome<S> {
    fn default() -> Self {
        Self {
            records: Vec::new(),
            batch: BatchForm::Plain,
            responses: Vec::new(),
            timers: Vec::new(),
            notices: Vec::new(),
            follow_ups: Vec::new(),
            undo: Undo::Nothing,
        }
    }
}

impl<S: Shard> Outcome<S> {
    /// Whether anything is to be appended.
    pub(crate) fn writes(&self) -> bool {
        !self.records.is_empty() || matches!(self.batch, BatchForm::End(_))
    }

    /// Adds an answer; one-way requests have no id and get none.
    pub fn respond(&mut self, request: Option<RequestId>, answer: Answer<S>) {
        if let Some(request) = request {
            self.responses.push((request, answer));
        }
    }
}

/// A deterministic state machine whose durable half is the replay of a log.
///
/// Decide, write, replay: [`Self::handle`] may change live state at once but leaves durable state
/// alone; only [`Self::replay`] changes that, live and at load alike. Source: Kafka's
/// `CoordinatorShard`, `CoordinatorResult`.
pub trait Shard: Sized {
    /// What a decision concerns: a group. Events of one key are decided one after another.
    type Key: Clone + Ord + Debug;
    /// Requests, fired timers and news from the node.
    type Event: Debug;
    /// Answers.
    type Response: Debug;
    /// Refusals of a whole request.
    type Error: Clone + Debug + From<AppendError>;
    /// Durable facts.
    type Record: Clone + Debug;
    /// Names a timer.
    type Timer: Clone + Ord + Debug;
    /// News for the caller that answer no request.
    type Notice: Debug;

    /// Bytes gathered into one batch; a single decision may be larger.
    const APPEND_BYTES_MAX: usize = crate::limits::APPEND_BYTES_MAX;

    /// The key of `event`; `None` for what concerns the whole shard and so may write nothing.
    fn key(event: &Self::Event) -> Option<&Self::Key>;

    /// The event of a fired timer.
    fn fired(timer: Self::Timer) -> Self::Event;

    /// Decides. `request` is to be answered, now or in a later outcome, unless it is `None`.
    fn handle(&mut self, request: Option<RequestId>, event: Self::Event, now: Now)
    -> Outcome<Self>;

    /// Applies a record that stands in the log at `offset`.
    fn replay(&mut self, record: Self::Record, offset: Offset);

    /// Keeps a record that stands in the log at `offset` until its producer's transaction ends.
    /// A shard that decides nothing of the kind has none.
    fn replay_in_transaction(&mut self, _producer_id: i64, _record: Self::Record, _offset: Offset) {
    }

    /// The producer's transaction ended: applies what was kept of it, or forgets it.
    fn replay_end(&mut self, _producer_id: i64, _outcome: TransactionOutcome) {}

    /// All records of the log were replayed: rebuild live state. May yield no records.
    fn loaded(&mut self, now: Now) -> Outcome<Self>;

    /// The log refused records of `key`: rebuild its live state from its durable state, and answer
    /// whoever waits in it with `error`. May yield no records.
    fn revert(&mut self, key: &Self::Key, error: &Self::Error, now: Now) -> Outcome<Self>;

    /// The answer to `event` while the log is still being read.
    fn while_loading(event: &Self::Event) -> Result<Self::Response, Self::Error>;

    /// The refusal when this node does not lead the partition any more.
    fn resigned() -> Self::Error;

    /// The refusal when too much waits already.
    fn overloaded() -> Self::Error;

    /// Key and value as they are stored.
    /// Errors: something in the record cannot be stored.
    fn encode(record: &Self::Record) -> Result<RecordBytes, Self::Error>;

    /// Reads a stored record; `None` for a kind this shard does not know, which stays in the log.
    /// Errors: a known kind that cannot be read.
    fn decode(key: &Bytes, value: Option<&Bytes>) -> Result<Option<Self::Record>, RecordError>;
}
