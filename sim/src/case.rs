//! Scripted runs for lessons: a few steps whose outcome can be told beforehand.
//!
//! `hw-truncation` is one story in four settings: three replicas, m1 to m4 everywhere, then m5 to m7 and a leader that
//! dies. What the producer was told, and what is left, depends on `acks` and on how a follower finds where logs part.

use std::collections::BTreeMap;
use std::sync::Arc;

use duolog_log_core::event::EventKind;
use duolog_log_core::ids::{BrokerEpoch, LeaderEpoch, NodeId};
use duolog_log_core::replication::election::{LiveNodes, PartitionState, Restart, UncleanElection};
use duolog_log_core::replication::partition::{Acks, Role, TruncationRule};

use crate::checker::{Checker, Stop};
use crate::coordinator::COORDINATOR;
use crate::coverage::Coverage;
use crate::message::{Address, Envelope, Kind, Message, Outcome, ProduceRequest};
use crate::node::{Node, Step};
use crate::observer::Observer;
use crate::plan::{FlushPolicy, Plan};
use crate::trace::{Line, Recording, Trace};

/// One setting of a case, and how it went.
#[derive(Debug)]
pub struct Scene {
    /// What is different in this one.
    pub title: &'static str,
    /// What to see in it.
    pub moral: &'static str,
    /// Its events.
    pub lines: Vec<Line>,
    /// What the producer was told is stored.
    pub acknowledged: Vec<u64>,
    /// What the last leader has in the end.
    pub kept: Vec<u64>,
    /// What the checker says of it.
    pub violation: Option<String>,
}

impl Scene {
    /// Acknowledged, and gone.
    #[must_use]
    pub fn lost(&self) -> Vec<u64> {
        self.acknowledged.iter().copied().filter(|value| !self.kept.contains(value)).collect()
    }
}

/// When the leader dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Story {
    /// Before anybody has copied m5 to m7.
    LeaderDiesFirst,
    /// When all have them, but do not know yet that they are committed; and the next leader has just restarted.
    HighWatermarkIsLate,
}

/// The course example: m5 to m7 are acknowledged and lost, or not.
#[must_use]
pub fn hw_truncation() -> Vec<Scene> {
    let (by_hw, by_epoch) = (TruncationRule::HighWatermark, TruncationRule::OnFetch);
    let scenes = [
        (
            "acks=1: the leader answers alone, and dies",
            "m5 to m7 were acknowledged by node 1 alone. Node 2 leads without them, and node 1 cuts them off \
             when it comes back: the replicas agree, but what the producer was told is not true.",
            Story::LeaderDiesFirst,
            Acks::Leader,
            by_hw,
        ),
        (
            "the same with acks=all",
            "m5 to m7 wait for the ISR and are not acknowledged when node 1 dies. The producer sends them \
             again, to node 2. Nothing that was acknowledged is lost.",
            Story::LeaderDiesFirst,
            Acks::All,
            by_hw,
        ),
        (
            "acks=all, and a follower cuts to its high watermark",
            "All three replicas had m5 to m7, and they were acknowledged. But nodes 2 and 3 had not heard yet \
             that the HW is 7. Node 2 restarts, cuts to the HW that it knows, is elected, and takes them from \
             all.",
            Story::HighWatermarkIsLate,
            Acks::All,
            by_hw,
        ),
        (
            "the same with leader epochs (KIP-101)",
            "Node 2 asks where its last epoch ends instead of cutting to its HW. It keeps m5 to m7, and leads \
             with them.",
            Story::HighWatermarkIsLate,
            Acks::All,
            by_epoch,
        ),
    ];
    scenes.map(|(title, moral, story, acks, rule)| play(title, moral, story, acks, rule)).into()
}

fn play(
    title: &'static str,
    moral: &'static str,
    story: Story,
    acks: Acks,
    rule: TruncationRule,
) -> Scene {
    let [one, two, three] = [1, 2, 3].map(NodeId);
    let mut stage = Stage::new(rule);
    stage.elect();
    for value in 1..=4 {
        stage.produce(one, value, acks);
    }
    stage.let_catch_up(&[two, three]);
    stage.write_checkpoints();
    for value in 5..=7 {
        stage.produce(one, value, acks);
    }
    if story == Story::HighWatermarkIsLate {
        // They copy, and tell so with the next fetch; its answer, with the new HW, is lost.
        stage.fetch(two, Answer::Arrives);
        stage.fetch(three, Answer::Arrives);
        stage.fetch(two, Answer::IsLost);
        stage.fetch(three, Answer::IsLost);
        stage.kill(two);
        stage.start(two);
    }
    stage.kill(one);
    stage.elect();
    stage.resend(two);
    stage.let_catch_up(&[three]);
    stage.produce(two, 8, acks);
    stage.let_catch_up(&[three]);
    stage.start(one);
    stage.let_catch_up(&[one, three]);
    stage.scene(title, moral, two)
}

/// Whether a fetch's answer gets back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Arrives,
    IsLost,
}

/// Nodes whose messages are carried by hand.
struct Stage {
    now_ms: i64,
    nodes: BTreeMap<NodeId, Node>,
    state: PartitionState,
    live: LiveNodes,
    seen: Observer,
    out: Vec<Envelope>,
    runs: i64,
    /// Sent and not answered yet.
    sent: BTreeMap<u64, Acks>,
    acknowledged: Vec<u64>,
}

impl Stage {
    fn new(truncation: TruncationRule) -> Self {
        let plan = Plan {
            replicas: [1, 2, 3].map(NodeId).to_vec(),
            nodes: [1, 2, 3].map(NodeId).to_vec(),
            min_insync_replicas: 2,
            truncation,
            unclean: UncleanElection::Refused,
            flips_unclean: false,
            flush: FlushPolicy::WithCheckpoints,
            knows_boots: true,
            lost_per_mille: 0,
            doubled_per_mille: 0,
            late_per_mille: 0,
            fault_every_ms: i64::MAX,
            segment_bytes: 1 << 20,
            retention_bytes: -1,
            chaos_ms: 0,
            blow: None,
            planted: None,
        };
        let mut state = PartitionState::created(plan.replicas.clone(), plan.min_insync_replicas);
        state.leader = None;
        let mut stage = Self {
            now_ms: 0,
            nodes: plan.replicas.iter().map(|id| (*id, Node::new(*id, &plan))).collect(),
            live: LiveNodes::new(),
            seen: Observer {
                trace: Trace::new(Recording::On),
                checker: Checker::new(state.clone()),
                coverage: Coverage::default(),
            },
            state,
            out: Vec::new(),
            runs: 0,
            sent: BTreeMap::new(),
            acknowledged: Vec::new(),
        };
        for node in plan.replicas {
            stage.start(node);
        }
        stage
    }

    fn on(&mut self, node: NodeId, act: impl FnOnce(&mut Node, &mut Step<'_>)) {
        let Some(found) = self.nodes.get_mut(&node) else { return };
        let now_ms = self.now_ms;
        let (clock_ms, out, seen) = (now_ms, &mut self.out, &mut self.seen);
        act(found, &mut Step { now_ms, clock_ms, node, out, seen });
        let nodes = &self.nodes;
        self.seen.trace.settle(|| nodes.values().map(Node::view).collect());
    }

    /// Carries what was said, until nobody has anything to say. What nodes ask each other waits for [`Self::fetch`].
    fn carry(&mut self) {
        while !self.out.is_empty() {
            for envelope in std::mem::take(&mut self.out) {
                let Envelope { from, to, message } = envelope;
                match (to, message) {
                    (Address::Node(_), _) if matches!(from, Address::Node(_)) => {}
                    (Address::Node(node), message) => {
                        self.on(node, |node, step| node.handle(from, message, step));
                    }
                    (Address::Coordinator, Message::Register { nonce, .. }) => {
                        self.register(from, nonce);
                    }
                    (
                        Address::Client(_),
                        Message::Produced { attempt, outcome: Outcome::Acknowledged(_) },
                    ) if self.sent.remove(&attempt).is_some() => self.acknowledged.push(attempt),
                    _ => {}
                }
            }
        }
    }

    fn register(&mut self, from: Address, nonce: u64) {
        let Address::Node(node) = from else { return };
        self.runs += 1;
        let broker_epoch = BrokerEpoch(self.runs);
        self.live.insert(node, broker_epoch);
        if let Some(next) = self.state.restarted(node, Restart::LogKept) {
            self.state = next;
        }
        let state = Arc::new(self.state.clone());
        let message = Message::Registered { nonce, broker_epoch, state };
        self.on(node, |node, step| node.handle(Address::Coordinator, message, step));
    }

    fn start(&mut self, node: NodeId) {
        self.now_ms += 100;
        let mut failed = None;
        self.on(node, |node, step| failed = node.start(1, step).err());
        if let Some(error) = failed {
            self.seen.checker.violate(|| error.to_string());
        }
        self.carry();
    }

    fn kill(&mut self, node: NodeId) {
        self.now_ms += 100;
        self.on(node, |node, step| {
            node.stopped(Stop::Process);
            node.disk = node.disk.kill();
            let at = (step.now_ms, step.node);
            step.seen.fault(at, EventKind::FaultCrash, || "the process dies".to_owned());
        });
        self.live.remove(&node);
    }

    /// Takes the dead for dead and elects; tells everybody.
    fn elect(&mut self) {
        self.now_ms += 50;
        for node in self.state.replicas.clone() {
            if !self.live.contains_key(&node)
                && let Some(next) = self.state.stopped(node)
            {
                self.state = next;
            }
        }
        let tips = BTreeMap::new();
        if let Some((next, election)) =
            self.state.elect(&self.live, &tips, UncleanElection::Refused)
        {
            let (leader, epoch) = (next.leader.unwrap_or(COORDINATOR), next.leader_epoch);
            self.state = next;
            let at = (self.now_ms, COORDINATOR);
            self.seen.event(at, EventKind::LeaderElect, (-1, epoch), || {
                format!("node {leader} is to lead")
            });
            self.seen.checker.state_changed(&self.state, Some(election));
        }
        let state = Arc::new(self.state.clone());
        for node in self.live.keys() {
            let (from, to) = (Address::Coordinator, Address::Node(*node));
            self.out.push(Envelope { from, to, message: Message::State(Arc::clone(&state)) });
        }
        self.carry();
    }

    fn produce(&mut self, leader: NodeId, value: u64, acks: Acks) {
        self.now_ms += 10;
        self.sent.insert(value, acks);
        let (values, kind) = (vec![value], Kind::Plain);
        let request = ProduceRequest { attempt: value, acks, values, producer: None, kind };
        let (from, to) = (Address::Client(0), Address::Node(leader));
        self.out.push(Envelope { from, to, message: Message::Produce(request) });
        self.carry();
    }

    /// What was not acknowledged is sent again.
    fn resend(&mut self, leader: NodeId) {
        for (value, acks) in self.sent.clone() {
            self.produce(leader, value, acks);
        }
    }

    fn fetch(&mut self, node: NodeId, answer: Answer) {
        self.now_ms += 40;
        self.forget_question(node);
        self.on(node, Node::poll);
        let is_answer = |envelope: &Envelope| {
            matches!(envelope.message, Message::FetchAnswered(..) | Message::EpochEndAnswered(..))
        };
        let asked = std::mem::take(&mut self.out);
        // Only what this fetch asked; what its answer makes the follower ask next is not sent yet.
        let mut answers = Vec::new();
        for Envelope { from, to, message } in asked {
            if let Address::Node(to) = to {
                self.on(to, |node, step| node.handle(from, message, step));
            }
            answers.append(&mut self.out);
        }
        self.out =
            answers.into_iter().filter(|e| answer == Answer::Arrives || !is_answer(e)).collect();
        let mut told_once = false;
        for envelope in std::mem::take(&mut self.out) {
            let Envelope { from, to, message } = envelope;
            match to {
                Address::Node(node) if !told_once => {
                    told_once = true;
                    self.on(node, |node, step| node.handle(from, message, step));
                    // It will ask again at its next fetch.
                    self.out.retain(|envelope| !matches!(envelope.to, Address::Node(_)));
                    self.forget_question(node);
                }
                _ => self.out.push(Envelope { from, to, message }),
            }
        }
        self.carry();
        self.forget_question(node);
    }

    fn forget_question(&mut self, node: NodeId) {
        if let Some(process) = self.nodes.get_mut(&node).and_then(|node| node.process.as_mut()) {
            process.forget_question();
        }
    }

    fn let_catch_up(&mut self, nodes: &[NodeId]) {
        for _ in 0..3 {
            for node in nodes {
                self.fetch(*node, Answer::Arrives);
            }
        }
    }

    fn write_checkpoints(&mut self) {
        self.now_ms = self.now_ms.max(1_000);
        for node in self.state.replicas.clone() {
            self.on(node, Node::upkeep);
        }
        self.carry();
    }

    fn scene(self, title: &'static str, moral: &'static str, leader: NodeId) -> Scene {
        let log = self.seen.checker.shadow(leader);
        let kept = log.map(|log| log.entries().iter().map(|entry| entry.value).collect());
        let led = self.nodes.get(&leader).and_then(|node| node.process.as_ref());
        debug_assert!(led.is_some_and(|process| process.replica.role() == Role::Leader
            && process.replica.leader_epoch() > LeaderEpoch(0)));
        Scene {
            title,
            moral,
            acknowledged: self.acknowledged,
            kept: kept.unwrap_or_default(),
            violation: self.seen.checker.violation().map(ToOwned::to_owned),
            lines: self.seen.trace.into_lines(),
        }
    }
}
