//! Producers that try again, with transactions and without, and consumers that read up to the HW or the LSO.

use std::collections::BTreeMap;

use duolog_log_core::ids::NodeId;
use duolog_log_core::record::TransactionOutcome;
use duolog_log_core::replication::partition::Acks;

use crate::checker::Entry;
use crate::message::{Address, Envelope, Isolation, Kind, Message, Outcome, ProduceRequest};
use crate::plan::timing;
use crate::random::Random;
use crate::values;

/// What a client may look at when it acts.
pub struct Turn<'a> {
    pub now_ms: i64,
    /// Who leads, as the coordinator says.
    pub leader: Option<NodeId>,
    pub nodes: &'a [NodeId],
    pub random: &'a mut Random,
    pub out: &'a mut Vec<Envelope>,
}

/// One client.
pub struct Client {
    index: usize,
    target: NodeId,
    work: Work,
}

enum Work {
    Produce(Producer),
    Consume { offset: i64, isolation: Isolation, asked_ms: Option<i64> },
}

/// What a producer asks of the broker beside storing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Idempotent,
    Transactional,
}

/// A producer with one batch under way at a time.
pub struct Producer {
    index: u64,
    acks: Acks,
    identity: Option<Identity>,
    transactions: Option<Transactions>,
    next_value: u64,
    sent: Option<Sent>,
    attempts: u64,
    acknowledged: Vec<u64>,
}

/// An idempotent producer.
struct Identity {
    id: i64,
    epoch: i16,
    next_sequence: i32,
}

/// The transactions of a producer, one after the other. Its coordinator is part of it.
#[derive(Default)]
struct Transactions {
    /// Of the present one.
    number: i32,
    /// Sent in it so far.
    batches: u32,
    /// How it is to end, once that is decided.
    ending: Option<TransactionOutcome>,
}

struct Sent {
    values: Vec<u64>,
    kind: Kind,
    attempt: u64,
    sent_ms: i64,
    tries: u32,
}

/// A transaction has at most so many batches.
const BATCHES_MAX: u32 = 4;
/// A producer without idempotence gives up after so many tries.
const TRIES_MAX: u32 = 4;

impl Client {
    /// The clients of a run: producers of each kind, and a consumer of each.
    pub fn all(first: NodeId) -> Vec<Self> {
        let producers = [
            (Acks::All, Style::Idempotent),
            (Acks::All, Style::Idempotent),
            (Acks::All, Style::Plain),
            (Acks::Leader, Style::Plain),
            (Acks::None, Style::Plain),
            (Acks::All, Style::Transactional),
        ];
        let produce = |(index, (acks, style))| Work::Produce(Producer::new(index, acks, style));
        let consume = |isolation| Work::Consume { offset: 0, isolation, asked_ms: None };
        let consumers = [Isolation::ReadUncommitted, Isolation::ReadCommitted];
        let work = (0..).zip(producers).map(produce).chain(consumers.map(consume));
        work.enumerate().map(|(index, work)| Self { index, target: first, work }).collect()
    }

    /// Sends what is due; `may_begin` new work.
    pub fn act(&mut self, may_begin: bool, turn: &mut Turn<'_>) {
        let message = match &mut self.work {
            Work::Produce(producer) => producer.act(may_begin, turn).map(Message::Produce),
            Work::Consume { offset, isolation, asked_ms } => {
                let waits =
                    asked_ms.is_some_and(|at| turn.now_ms - at < timing::REQUEST_TIMEOUT_MS);
                (!waits).then(|| {
                    if asked_ms.is_some() {
                        self.target = find_leader(self.target, turn);
                    }
                    *asked_ms = Some(turn.now_ms);
                    Message::Read { offset: *offset, isolation: *isolation }
                })
            }
        };
        let Some(message) = message else { return };
        if let Work::Produce(producer) = &self.work
            && producer.tries() > 1
        {
            self.target = find_leader(self.target, turn);
        }
        let (from, to) = (Address::Client(self.index), Address::Node(self.target));
        turn.out.push(Envelope { from, to, message });
    }

    /// Takes an answer.
    pub fn handle(&mut self, message: &Message, turn: &mut Turn<'_>) {
        match (&mut self.work, message) {
            (Work::Produce(producer), Message::Produced { attempt, outcome }) => {
                producer.answered(*attempt, *outcome);
            }
            (
                Work::Consume { offset, asked_ms, .. },
                Message::WasRead { offset: at, next_offset },
            ) if offset == at => {
                *asked_ms = None;
                match next_offset {
                    Some(next) => *offset = *next,
                    None => self.target = find_leader(self.target, turn),
                }
            }
            _ => {}
        }
    }

    /// Whether an answer is still waited for, or a transaction is open.
    pub fn is_waiting(&self) -> bool {
        match &self.work {
            Work::Produce(producer) => producer.sent.is_some() || producer.is_in_transaction(),
            Work::Consume { .. } => false,
        }
    }

    /// What is wrong with the final log in the eyes of this producer, if it is idempotent and kept its epoch.
    pub fn missing_or_doubled(&self, log: &[Entry]) -> Option<String> {
        let Work::Produce(producer) = &self.work else { return None };
        let identity = producer.identity.as_ref().filter(|identity| identity.epoch == 0)?;
        let mut counts = BTreeMap::new();
        for entry in log {
            *counts.entry(entry.value).or_insert(0) += 1;
        }
        let is_own = |value: &u64| {
            values::producer_of(*value) == producer.index && values::outcome_of(*value).is_none()
        };
        let doubled = counts.iter().find(|(value, count)| is_own(value) && **count > 1);
        let missing = producer.acknowledged.iter().find(|value| !counts.contains_key(value));
        let id = identity.id;
        match (doubled, missing) {
            (Some((value, count)), _) => {
                Some(format!("m{value} of producer {id} is there {count} times"))
            }
            (_, Some(value)) => {
                Some(format!("m{value} of producer {id} was acknowledged and is lost"))
            }
            _ => None,
        }
    }
}

impl Producer {
    fn new(index: u64, acks: Acks, style: Style) -> Self {
        let identity = Identity { id: values::producer_id(index), epoch: 0, next_sequence: 0 };
        Self {
            index,
            acks,
            identity: (style != Style::Plain).then_some(identity),
            transactions: (style == Style::Transactional).then(Transactions::default),
            next_value: values::first_of(index),
            sent: None,
            attempts: 0,
            acknowledged: Vec::new(),
        }
    }

    fn tries(&self) -> u32 {
        self.sent.as_ref().map_or(0, |sent| sent.tries)
    }

    fn is_in_transaction(&self) -> bool {
        self.transactions.as_ref().is_some_and(|txn| txn.batches > 0 || txn.ending.is_some())
    }

    fn act(&mut self, may_begin: bool, turn: &mut Turn<'_>) -> Option<ProduceRequest> {
        match &self.sent {
            Some(sent) if turn.now_ms - sent.sent_ms < 2 * timing::REQUEST_TIMEOUT_MS => {
                return None;
            }
            Some(sent) if sent.tries >= TRIES_MAX && self.identity.is_none() => self.sent = None,
            _ => {}
        }
        if self.sent.is_none() {
            self.sent = self.next(may_begin, turn.random);
        }
        let sent = self.sent.as_mut()?;
        self.attempts += 1;
        (sent.attempt, sent.sent_ms, sent.tries) = (self.attempts, turn.now_ms, sent.tries + 1);
        let request = ProduceRequest {
            attempt: sent.attempt,
            acks: self.acks,
            values: sent.values.clone(),
            producer: self.identity.as_ref().map(|own| (own.id, own.epoch, own.next_sequence)),
            kind: sent.kind,
        };
        if self.acks == Acks::None {
            self.sent = None;
        }
        Some(request)
    }

    /// What to send next: the end of a transaction, or new records if it `may_begin` any.
    fn next(&mut self, may_begin: bool, random: &mut Random) -> Option<Sent> {
        let mut kind = Kind::Plain;
        if let Some(txn) = &mut self.transactions {
            if let Some(outcome) = txn.due_end(may_begin, random) {
                let values = vec![values::marker(self.index, txn.number, outcome)];
                let kind = Kind::Marker { outcome, coordinator_epoch: txn.number };
                return Some(Sent { values, kind, attempt: 0, sent_ms: 0, tries: 0 });
            }
            kind = Kind::Transactional;
        }
        if !may_begin {
            return None;
        }
        if let Some(txn) = &mut self.transactions {
            txn.batches += 1;
        }
        let count = 1 + random.below(3);
        let values = (self.next_value..self.next_value + count).collect();
        self.next_value += count;
        Some(Sent { values, kind, attempt: 0, sent_ms: 0, tries: 0 })
    }

    fn answered(&mut self, attempt: u64, outcome: Outcome) {
        let Some(sent) = self.sent.as_mut().filter(|sent| sent.attempt == attempt) else { return };
        match (outcome, sent.kind, &mut self.identity) {
            (Outcome::Acknowledged(_), Kind::Marker { coordinator_epoch, .. }, _) => {
                let number = coordinator_epoch.saturating_add(1);
                self.transactions = Some(Transactions { number, ..Transactions::default() });
                self.sent = None;
            }
            (Outcome::Acknowledged(_), _, identity) => {
                if let Some(own) = identity {
                    own.next_sequence += i32::try_from(sent.values.len()).unwrap_or(0);
                    self.acknowledged.append(&mut sent.values);
                }
                self.sent = None;
            }
            // At the next turn.
            (Outcome::Retry, ..) => sent.sent_ms = i64::MIN / 2,
            // What came before was lost: begin anew under another epoch (KIP-360).
            (Outcome::OutOfSequence, _, identity) => {
                sent.sent_ms = i64::MIN / 2;
                if let Some(own) = identity {
                    (own.epoch, own.next_sequence) = (own.epoch.saturating_add(1), 0);
                }
                if let Some(txn) = &mut self.transactions {
                    txn.ending = Some(TransactionOutcome::Abort);
                    self.sent = None;
                }
            }
        }
    }
}

impl Transactions {
    /// How the transaction is to end now; `None` while it is to go on, or has not begun.
    fn due_end(&mut self, may_go_on: bool, random: &mut Random) -> Option<TransactionOutcome> {
        let is_due =
            self.batches > 0 && (!may_go_on || self.batches >= BATCHES_MAX || random.happens(300));
        if self.ending.is_none() && is_due {
            let aborts = random.happens(300);
            let outcome =
                if aborts { TransactionOutcome::Abort } else { TransactionOutcome::Commit };
            self.ending = Some(outcome);
        }
        self.ending
    }
}

/// The leader by the newest metadata, sometimes an outdated or wrong one.
fn find_leader(known: NodeId, turn: &mut Turn<'_>) -> NodeId {
    if turn.random.happens(100) {
        return turn.random.choose(turn.nodes).unwrap_or(known);
    }
    turn.leader.unwrap_or(known)
}
