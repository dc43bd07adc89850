//! Asking producers how their half messages ended.
//!
//! ```text
//! round ─▶ some that are due ─▶ read from the log ─▶ noted: asked once more ─▶ to a live member of
//!   ▲                │                               the group, the sender if it is one
//!   │                └─▶ asked too often or too old ─▶ to TRANS_CHECK_MAX_TIME_TOPIC
//!   └─ until there are no more
//! ```
//! Where a group has no live member nobody is asked, and that does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use duolog_bridge::backend::{
    Backend, Member, NewRecord, PERM_READ, PERM_WRITE, Passage, TopicSpec,
};
use duolog_bridge::dispatch::Dispatcher;
use duolog_bridge::remoting::RemotingCommand;
use duolog_bridge::session::{SessionId, Sessions};
use duolog_bridge::translate::half::{self, GIVEN_UP_TOPIC, HalfPlace};
use duolog_bridge::translate::names;
use duolog_coordinator::delivery::StoredMessage;
use duolog_coordinator::record::half::HalfMessage;
use duolog_coordinator::txn::rocketmq::check_back::Verdict;
use duolog_coordinator::txn::rocketmq::event::Due;
use duolog_log_core::event::EventKind;
use duolog_log_core::gate::{GatePoint, GateSubject};
use duolog_log_core::ids::{Offset, TopicPartition};
use parking_lot::Mutex;

use super::{BridgeBackend, tell};
use crate::coordinators::halves::CheckSink;
use crate::limits::HALVES_AT_ONCE;
use crate::node::Node;

/// How long a connection may take to have room for a question, once in a round; then another member
/// is asked.
const PATIENCE: Duration = Duration::from_secs(3);

/// Members that are tried for one question.
const MEMBERS_TRIED: usize = 3;

/// Asks about what is open, one round of each coordinator at a time.
pub(in crate::bridge_backend) struct CheckBack {
    node: Arc<Node>,
    dispatcher: OnceLock<Dispatcher<BridgeBackend>>,
    /// Coordinators whose round is under way.
    rounds: Mutex<BTreeSet<i32>>,
    /// Whose turn it is, of a group's members.
    turn: AtomicUsize,
    this: std::sync::Weak<Self>,
}

impl CheckBack {
    pub(in crate::bridge_backend) fn new(node: Arc<Node>) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            node,
            dispatcher: OnceLock::new(),
            rounds: Mutex::default(),
            turn: AtomicUsize::new(0),
            this: this.clone(),
        })
    }

    /// Says, once, through whom producers are reached.
    pub(in crate::bridge_backend) fn connect(&self, dispatcher: Dispatcher<BridgeBackend>) {
        // There is one bridge.
        let _ = self.dispatcher.set(dispatcher);
    }
}

impl CheckSink for CheckBack {
    fn round(&self, index: i32) {
        let (Some(dispatcher), Some(this)) = (self.dispatcher.get(), self.this.upgrade()) else {
            return;
        };
        if !self.rounds.lock().insert(index) {
            return;
        }
        let dispatcher = dispatcher.clone();
        self.node.background.spawn(async move {
            let stopping = this.node.stopping.clone();
            tokio::select! {
                () = stopping.cancelled() => {}
                () = this.ask_all(&dispatcher, index) => {}
            }
            this.rounds.lock().remove(&index);
        });
    }
}

/// The live members of producer groups, as they were in one step of a round.
type Members = BTreeMap<Arc<str>, Vec<Member>>;

impl CheckBack {
    async fn ask_all(&self, dispatcher: &Dispatcher<BridgeBackend>, index: i32) {
        let halves = &self.node.halves;
        let Some(number) = halves.number_of(index) else { return };
        let patience = Patience::within(PATIENCE);
        let mut after = Offset(-1);
        loop {
            let due = match halves.due(index, after, HALVES_AT_ONCE).await {
                Ok(due) => due,
                Err(error) => {
                    return tracing::debug!(index, %error, "half messages are looked at later");
                }
            };
            let Some(last) = due.last() else { return };
            after = last.half;
            let offsets: Vec<i64> = due.iter().map(|due| due.half.0).collect();
            let found = match halves.find(index, &offsets).await {
                Ok(found) => found,
                Err(error) => {
                    return tracing::debug!(index, %error, "half messages are looked at later");
                }
            };
            let members = self.members(dispatcher, &found).await;
            let (members, patience) = (&members, &patience);
            let step = Step { checks: self, dispatcher, members, patience, index, number };
            let all = due.iter().zip(&found).filter_map(|(due, half)| Some((due, half.as_ref()?)));
            let work = all.map(|(due, half)| step.settle(due, half));
            futures_util::future::join_all(work).await;
        }
    }

    async fn members(
        &self,
        dispatcher: &Dispatcher<BridgeBackend>,
        found: &[Option<HalfMessage>],
    ) -> Members {
        let mut members = Members::new();
        for half in found.iter().flatten() {
            if !members.contains_key(&half.group) {
                let group = dispatcher.backend().producer_group(&half.group).await;
                members.insert(half.group.clone(), group.unwrap_or_default());
            }
        }
        members
    }

    /// The sender first, then the others in turn.
    pub(super) fn in_turn<'a>(&self, half: &HalfMessage, members: &'a [Member]) -> Vec<&'a Member> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % members.len().max(1);
        let (before, behind) = members.split_at(turn.min(members.len()));
        let mut all: Vec<&Member> = behind.iter().chain(before).collect();
        all.sort_by_key(|member| member.client.client_id != half.client);
        all.truncate(MEMBERS_TRIED);
        all
    }
}

/// Connections that had no room in a round. Nobody waits for them again in that round: a producer that
/// takes nothing would keep those of other groups waiting, step by step.
struct Patience {
    limit: Duration,
    worn_out: Mutex<BTreeSet<SessionId>>,
}

impl Patience {
    fn within(limit: Duration) -> Self {
        Self { limit, worn_out: Mutex::default() }
    }

    /// Hands a question to a connection; `false` if it is closed or has no room.
    async fn hand(&self, sessions: &Sessions, to: SessionId, question: RemotingCommand) -> bool {
        if self.worn_out.lock().contains(&to) {
            return sessions.tell(to, question);
        }
        let sent = tokio::time::timeout(self.limit, sessions.send(to, question)).await;
        if sent.is_err() {
            self.worn_out.lock().insert(to);
        }
        matches!(sent, Ok(true))
    }
}

/// Some half messages of one coordinator.
struct Step<'a> {
    checks: &'a CheckBack,
    dispatcher: &'a Dispatcher<BridgeBackend>,
    members: &'a Members,
    patience: &'a Patience,
    index: i32,
    /// Of the coordinator's partition.
    number: u32,
}

impl Step<'_> {
    async fn settle(&self, due: &Due, half: &HalfMessage) {
        let done = match due.verdict {
            Verdict::Ask => self.ask(due, half).await,
            Verdict::AskedTooOften => self.give_up(due, half, "asked too often").await,
            Verdict::TooOld => self.give_up(due, half, "too old").await,
        };
        if let Err(error) = done {
            let (topic, offset) = (&half.target.topic, due.half.0);
            tracing::debug!(%topic, offset, error, "a half message is looked at later");
        }
    }

    /// Errors are in words.
    async fn ask(&self, due: &Due, half: &HalfMessage) -> Result<(), String> {
        let node = &self.checks.node;
        let members = self.members.get(&half.group).map(Vec::as_slice).unwrap_or_default();
        let members = self.checks.in_turn(half, members);
        let Some(first) = members.first() else {
            return Err(format!("no member of producer group {} is there", half.group));
        };
        let backend = self.dispatcher.backend();
        let subject = GateSubject {
            topic: Some(&half.target.topic),
            partition: Some(half.target.partition),
            offset: Some(due.half),
            client: Some(&first.client.client_id),
        };
        let passage = backend.pass_gate(GatePoint::CheckDispatch, subject).await;
        let times = node.halves.check(self.index, due.half).await;
        let Some(times) = times.map_err(|error| error.to_string())? else { return Ok(()) };
        if !matches!(passage, Passage::Go) {
            return Err("a gate kept the question".to_owned());
        }
        let topic = names::shown_topic(&half.target.topic);
        let place = HalfPlace {
            topic: &topic,
            queue_id: half.target.partition,
            partition_number: self.number,
            offset: due.half.0,
            times,
        };
        let record = record(half);
        let question = half::question(&record, &place, &backend.config());
        let question = question.map_err(|error| error.to_string())?;
        for member in members {
            let (sessions, session) = (self.dispatcher.sessions(), member.client.session);
            if self.patience.hand(sessions, session, question.clone()).await {
                let told = (EventKind::HalfCheck, &half.target, due.half.0);
                let client = member.client.client_id.clone();
                tell(node, told, client, || format!("group {}: {times}", half.group));
                return Ok(());
            }
        }
        Err("no member takes the question".to_owned())
    }

    /// Errors are in words.
    async fn give_up(&self, due: &Due, half: &HalfMessage, why: &str) -> Result<(), String> {
        let node = &self.checks.node;
        let stored = names::stored_topic(GIVEN_UP_TOPIC).map_err(|error| error.to_string())?;
        let spec = TopicSpec {
            name: stored.into(),
            read_queues: 1,
            write_queues: 1,
            perm: PERM_READ | PERM_WRITE,
            sys_flag: 0,
            order: false,
            attributes: BTreeMap::new(),
        };
        let topic = self.dispatcher.backend().create_topic(spec).await;
        let topic = topic.map_err(|error| error.to_string())?;
        let shown = names::shown_topic(&half.target.topic);
        let copy = half::given_up(&record(half), &shown, half.target.partition, due.times);
        let copy = copy.ok_or_else(|| "it cannot be read".to_owned())?;
        let message = StoredMessage { timestamp_ms: copy.timestamp_ms, payload: copy.payload };
        let target = TopicPartition::new(&*topic.name, 0);
        let given_up = node.halves.give_up(self.index, due.half, target, message).await;
        if given_up.map_err(|error| error.to_string())? {
            let (topic, offset, group) = (&half.target.topic, due.half.0, &half.group);
            tracing::warn!(%topic, offset, %group, times = due.times,
                "a half message is given up, {why}: it goes to {GIVEN_UP_TOPIC}");
            let told = (EventKind::HalfDiscard, &half.target, due.half.0);
            tell(node, told, half.client.clone(), || format!("group {group}: {why}"));
        }
        Ok(())
    }
}

fn record(half: &HalfMessage) -> NewRecord {
    let StoredMessage { timestamp_ms, payload } = &half.message;
    NewRecord { timestamp_ms: *timestamp_ms, payload: payload.clone() }
}

#[cfg(test)]
mod tests;
