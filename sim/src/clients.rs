//! Producers that try again, and consumers that read up to the HW.

use std::collections::BTreeMap;

use duolog_log_core::ids::NodeId;
use duolog_log_core::replication::partition::Acks;

use crate::checker::Entry;
use crate::message::{Address, Envelope, Message, Outcome, ProduceRequest};
use crate::plan::timing;
use crate::random::Random;

/// What a client may look at when it acts.
pub struct Turn<'a> {
    pub now_ms: i64,
    /// Who leads, as the coordinator says.
    pub leader: Option<NodeId>,
    pub replicas: &'a [NodeId],
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
    Consume { offset: i64, asked_ms: Option<i64> },
}

/// A producer with one batch under way at a time.
pub struct Producer {
    acks: Acks,
    identity: Option<Identity>,
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

struct Sent {
    values: Vec<u64>,
    attempt: u64,
    sent_ms: i64,
    tries: u32,
}

/// Values of one producer are unique in the run: its index and a count.
const VALUES_PER_PRODUCER: u64 = 1_000_000;
/// A producer without idempotence gives up after so many tries.
const TRIES_MAX: u32 = 4;

impl Client {
    /// The clients of a run: producers of each kind, and two consumers.
    pub fn all(first: NodeId) -> Vec<Self> {
        let kinds = [
            Some((Acks::All, true)),
            Some((Acks::All, true)),
            Some((Acks::All, false)),
            Some((Acks::Leader, false)),
            Some((Acks::None, false)),
            None,
            None,
        ];
        let client = |(index, kind)| Self {
            index,
            target: first,
            work: match kind {
                Some((acks, idempotent)) => Work::Produce(Producer::new(index, acks, idempotent)),
                None => Work::Consume { offset: 0, asked_ms: None },
            },
        };
        kinds.into_iter().enumerate().map(client).collect()
    }

    /// Sends what is due; `may_begin` new work.
    pub fn act(&mut self, may_begin: bool, turn: &mut Turn<'_>) {
        let message = match &mut self.work {
            Work::Produce(producer) => producer.act(may_begin, turn).map(Message::Produce),
            Work::Consume { offset, asked_ms } => {
                let waits =
                    asked_ms.is_some_and(|at| turn.now_ms - at < timing::REQUEST_TIMEOUT_MS);
                (!waits).then(|| {
                    if asked_ms.is_some() {
                        self.target = find_leader(self.target, turn);
                    }
                    *asked_ms = Some(turn.now_ms);
                    Message::Read { offset: *offset }
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
            (Work::Consume { offset, asked_ms }, Message::WasRead { offset: at, next_offset })
                if offset == at =>
            {
                *asked_ms = None;
                match next_offset {
                    Some(next) => *offset = *next,
                    None => self.target = find_leader(self.target, turn),
                }
            }
            _ => {}
        }
    }

    /// Whether an answer is still waited for.
    pub fn is_waiting(&self) -> bool {
        match &self.work {
            Work::Produce(producer) => producer.sent.is_some(),
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
        let is_own = |value: &u64| value / VALUES_PER_PRODUCER == self.index as u64;
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
    fn new(index: usize, acks: Acks, idempotent: bool) -> Self {
        let id = i64::try_from(index).unwrap_or(0) + 1000;
        Self {
            acks,
            identity: idempotent.then_some(Identity { id, epoch: 0, next_sequence: 0 }),
            next_value: index as u64 * VALUES_PER_PRODUCER,
            sent: None,
            attempts: 0,
            acknowledged: Vec::new(),
        }
    }

    fn tries(&self) -> u32 {
        self.sent.as_ref().map_or(0, |sent| sent.tries)
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
            if !may_begin {
                return None;
            }
            let count = 1 + turn.random.below(3);
            let values = (self.next_value..self.next_value + count).collect();
            self.next_value += count;
            self.sent = Some(Sent { values, attempt: 0, sent_ms: 0, tries: 0 });
        }
        let sent = self.sent.as_mut()?;
        self.attempts += 1;
        (sent.attempt, sent.sent_ms, sent.tries) = (self.attempts, turn.now_ms, sent.tries + 1);
        let request = ProduceRequest {
            attempt: sent.attempt,
            acks: self.acks,
            values: sent.values.clone(),
            producer: self.identity.as_ref().map(|own| (own.id, own.epoch, own.next_sequence)),
        };
        if self.acks == Acks::None {
            self.sent = None;
        }
        Some(request)
    }

    fn answered(&mut self, attempt: u64, outcome: Outcome) {
        let Some(sent) = self.sent.as_mut().filter(|sent| sent.attempt == attempt) else { return };
        match outcome {
            Outcome::Acknowledged(_) => {
                if let Some(own) = &mut self.identity {
                    own.next_sequence += i32::try_from(sent.values.len()).unwrap_or(0);
                    self.acknowledged.append(&mut sent.values);
                }
                self.sent = None;
            }
            // At the next turn.
            Outcome::Retry => sent.sent_ms = i64::MIN / 2,
            // What came before was lost: begin anew under another epoch (KIP-360).
            Outcome::OutOfSequence => {
                sent.sent_ms = i64::MIN / 2;
                if let Some(own) = &mut self.identity {
                    (own.epoch, own.next_sequence) = (own.epoch.saturating_add(1), 0);
                }
            }
        }
    }
}

/// The leader by the newest metadata, sometimes an outdated or wrong one.
fn find_leader(known: NodeId, turn: &mut Turn<'_>) -> NodeId {
    if turn.random.happens(100) {
        return turn.random.choose(turn.replicas).unwrap_or(known);
    }
    turn.leader.unwrap_or(known)
}
