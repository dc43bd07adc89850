//! One run: an ordered queue of things to happen, and virtual time.

use std::collections::BTreeMap;
use std::fmt;

use duolog_log_core::event::EventKind;
use duolog_log_core::ids::NodeId;
use duolog_log_core::replication::election::PartitionState;

use crate::chaos::Halt;
use crate::checker::{Checker, Stop};
use crate::clients::{Client, Turn};
use crate::coordinator::{Coordinator, Round};
use crate::coverage::Coverage;
use crate::message::{Address, Envelope, Message};
use crate::network::Network;
use crate::node::{Node, Step};
use crate::observer::Observer;
use crate::plan::{Plan, Planted, timing};
use crate::random::Random;
use crate::storage;
use crate::trace::{Line, Recording, Trace};

/// What to run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Builder {
    /// Everything follows from it.
    pub seed: u64,
    /// A fault in the rules, to see that it is found.
    pub planted: Option<Planted>,
    /// Whether the events are kept.
    pub recording: Recording,
}

/// How a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Something promised was not kept: when and what.
    Broken(String),
    /// Long after the last fault the replicas are not well again.
    NotHealed(String),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(what) => f.write_str(what),
            Self::NotHealed(state) => write!(f, "not well again: {state}"),
        }
    }
}

/// What a run was.
#[derive(Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// What it decided.
    pub plan: Plan,
    /// `None` if every promise was kept.
    pub violation: Option<Violation>,
    /// Of all events: equal for equal runs.
    pub trace_hash: u64,
    /// The events, if they were kept.
    pub lines: Vec<Line>,
    /// What it exercised.
    pub coverage: Coverage,
}

/// Something that will happen.
#[derive(Debug)]
enum Job {
    Deliver(Envelope),
    Upkeep(NodeId),
    Poll(NodeId),
    Start(NodeId),
    Client(usize),
    CoordinatorTick,
    Strike,
}

/// See the module.
pub struct Simulation {
    pub(crate) plan: Plan,
    pub(crate) now_ms: i64,
    pub(crate) random: Random,
    pub(crate) nodes: BTreeMap<NodeId, Node>,
    pub(crate) coordinator: Coordinator,
    pub(crate) network: Network,
    pub(crate) seen: Observer,
    pub(crate) halts: BTreeMap<NodeId, Halt>,
    pub(crate) full_until: BTreeMap<NodeId, i64>,
    clients: Vec<Client>,
    jobs: BTreeMap<(i64, u64), Job>,
    next_job: u64,
    out: Vec<Envelope>,
    chaos_until_ms: i64,
    not_healed: Option<String>,
}

impl Builder {
    /// Runs to the end, or to the first broken promise.
    #[must_use]
    pub fn run(self) -> Report {
        let mut random = Random::new(self.seed);
        let plan = Plan::draw(&mut random, self.planted);
        let mut simulation = Simulation::new(plan, random, self.recording);
        simulation.run();
        simulation.report(self.seed)
    }
}

impl Simulation {
    fn new(plan: Plan, random: Random, recording: Recording) -> Self {
        let mut state = PartitionState::created(plan.replicas.clone(), plan.min_insync_replicas);
        // Nobody is there yet: the first leader is elected like any other.
        state.leader = None;
        let first = plan.replicas.first().copied().unwrap_or_default();
        let mut simulation = Self {
            now_ms: 0,
            nodes: plan.replicas.iter().map(|id| (*id, Node::new(*id, &plan))).collect(),
            coordinator: Coordinator::new(state.clone(), plan.unclean),
            network: Network::new(&plan),
            seen: Observer {
                trace: Trace::new(recording),
                checker: Checker::new(state),
                coverage: Coverage::default(),
            },
            halts: BTreeMap::new(),
            full_until: BTreeMap::new(),
            clients: Client::all(first),
            jobs: BTreeMap::new(),
            next_job: 0,
            out: Vec::new(),
            chaos_until_ms: timing::CHAOS_MS,
            not_healed: None,
            random,
            plan,
        };
        simulation.plan_first_jobs();
        simulation
    }

    fn plan_first_jobs(&mut self) {
        for id in self.plan.replicas.clone() {
            let (starts, looks) = (self.random.between(0, 20), self.random.between(20, 70));
            self.later(starts, Job::Start(id));
            self.later(looks, Job::Upkeep(id));
            self.later(looks, Job::Poll(id));
            if let Some(node) = self.nodes.get_mut(&id) {
                node.starting = true;
            }
        }
        for client in 0..self.clients.len() {
            let begins = self.random.between(50, 150);
            self.later(begins, Job::Client(client));
        }
        self.later(timing::UPKEEP_MS, Job::CoordinatorTick);
        self.later(300, Job::Strike);
    }

    fn later(&mut self, in_ms: i64, job: Job) {
        self.next_job += 1;
        self.jobs.insert((self.now_ms + in_ms.max(0), self.next_job), job);
    }

    fn run(&mut self) {
        while let Some(((at_ms, _), job)) = self.jobs.pop_first() {
            self.now_ms = at_ms;
            self.perform(job);
            self.after_step();
            if self.seen.checker.violation().is_some() {
                return;
            }
            if self.now_ms >= self.chaos_until_ms && self.is_healed() {
                return self.check_end();
            }
            if self.now_ms >= self.chaos_until_ms + timing::HEAL_MS {
                self.not_healed = Some(format!("{:?}", self.coordinator.state));
                return;
            }
        }
    }

    fn perform(&mut self, job: Job) {
        self.seen.coverage.steps += 1;
        match job {
            Job::Deliver(envelope) => self.deliver(envelope),
            Job::Upkeep(id) => {
                self.with_node(id, Node::upkeep);
                let next = timing::UPKEEP_MS + self.random.between(-5, 5);
                self.later(next, Job::Upkeep(id));
            }
            Job::Poll(id) => {
                self.with_node(id, Node::poll);
                let next = timing::FETCH_WAIT_MS + self.random.between(-10, 10);
                self.later(next, Job::Poll(id));
            }
            Job::Start(id) => self.start(id),
            Job::Client(index) => self.let_client_act(index),
            Job::CoordinatorTick => {
                self.with_coordinator(Coordinator::tick);
                self.later(timing::UPKEEP_MS, Job::CoordinatorTick);
            }
            Job::Strike if self.now_ms < self.chaos_until_ms => {
                self.strike();
                let next = self.random.between(1, 2 * self.plan.fault_every_ms);
                self.later(next, Job::Strike);
            }
            Job::Strike => self.heal(),
        }
    }

    fn deliver(&mut self, envelope: Envelope) {
        let Envelope { from, to, message } = envelope;
        match (from, to) {
            (_, Address::Node(id)) => {
                let slow_until_ms = self.nodes.get(&id).map_or(0, |node| node.slow_until_ms);
                if slow_until_ms > self.now_ms {
                    let waits = (slow_until_ms - self.now_ms).min(60);
                    return self.later(waits, Job::Deliver(Envelope { from, to, message }));
                }
                self.with_node(id, |node, step| node.handle(from, message, step));
            }
            (Address::Node(id), Address::Coordinator) => {
                self.with_coordinator(|coordinator, round| coordinator.handle(id, message, round));
            }
            (_, Address::Client(index)) => self.answer_client(index, &message),
            _ => {}
        }
    }

    fn start(&mut self, id: NodeId) {
        let nonce = self.random.number() >> 32;
        let now_ms = self.now_ms;
        let Some(node) = self.nodes.get_mut(&id) else { return };
        node.starting = false;
        if node.process.is_some() {
            return;
        }
        let mut step = Step { now_ms, node: id, out: &mut self.out, seen: &mut self.seen };
        if let Err(error) = node.start(nonce, &mut step) {
            // A full or broken disk: tried again later.
            self.seen.fault((now_ms, id), EventKind::FaultDisk, || error.to_string());
            node.stopped(match node.stop {
                Stop::Power { synced } => Stop::Power { synced },
                Stop::Clean | Stop::Process | Stop::InsideCall => Stop::InsideCall,
            });
            if !node.disk.is_halted() {
                node.disk = node.disk.kill();
            }
        }
    }

    pub(crate) fn with_node(&mut self, id: NodeId, act: impl FnOnce(&mut Node, &mut Step<'_>)) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        let now_ms = self.now_ms;
        node.disk.set_now_ms(now_ms);
        act(node, &mut Step { now_ms, node: id, out: &mut self.out, seen: &mut self.seen });
    }

    pub(crate) fn with_coordinator(&mut self, act: impl FnOnce(&mut Coordinator, &mut Round<'_>)) {
        let now_ms = self.now_ms;
        act(&mut self.coordinator, &mut Round { now_ms, out: &mut self.out, seen: &mut self.seen });
    }

    fn let_client_act(&mut self, index: usize) {
        let may_begin = self.now_ms < self.chaos_until_ms;
        self.with_client(index, |client, turn| client.act(may_begin, turn));
        let next = self.random.between(10, 60);
        self.later(next, Job::Client(index));
    }

    fn answer_client(&mut self, index: usize, message: &Message) {
        self.with_client(index, |client, turn| client.handle(message, turn));
    }

    fn with_client(&mut self, index: usize, act: impl FnOnce(&mut Client, &mut Turn<'_>)) {
        let Some(client) = self.clients.get_mut(index) else { return };
        let mut turn = Turn {
            now_ms: self.now_ms,
            leader: self.coordinator.state.leader,
            replicas: &self.plan.replicas,
            random: &mut self.random,
            out: &mut self.out,
        };
        act(client, &mut turn);
    }

    /// Sends what the step wrote, ends what it broke, and looks at everybody.
    fn after_step(&mut self) {
        for envelope in std::mem::take(&mut self.out) {
            let link = (envelope.from, envelope.to);
            let coverage = &mut self.seen.coverage;
            let delays = self.network.delays(link, self.now_ms, &mut self.random, coverage);
            for delay in delays {
                self.later(delay, Job::Deliver(envelope.clone()));
            }
        }
        self.end_halted();
        self.free_disks();
        self.plan_starts();
        for (id, node) in &self.nodes {
            if let Some(process) = &node.process {
                self.seen.checker.look(*id, &process.replica, process.log.log_end_offset());
            }
        }
        let nodes = &self.nodes;
        self.seen.trace.settle(|| nodes.values().map(Node::view).collect());
    }

    fn end_halted(&mut self) {
        let halted: Vec<_> =
            self.nodes.values().filter(|n| n.disk.is_halted()).map(|n| n.id).collect();
        for id in halted {
            self.seen.coverage.crashes_in_a_call += 1;
            match self.halts.remove(&id) {
                Some(Halt::Power) => self.cut_power(id),
                Some(Halt::Process) | None => {
                    self.kill(id, Stop::InsideCall);
                    if let Some(node) = self.nodes.get_mut(&id)
                        && node.disk.is_halted()
                    {
                        node.disk = node.disk.kill();
                    }
                }
            }
        }
    }

    fn free_disks(&mut self) {
        let now_ms = self.now_ms;
        let nodes = &mut self.nodes;
        self.full_until.retain(|id, until_ms| {
            let is_over = *until_ms <= now_ms;
            if let (true, Some(node)) = (is_over, nodes.get_mut(id)) {
                node.disk.set_capacity(None);
            }
            !is_over
        });
    }

    fn plan_starts(&mut self) {
        let is_down = |node: &&mut Node| node.process.is_none() && !node.starting;
        let down = self.nodes.values_mut().filter(is_down).map(|node| {
            node.starting = true;
            node.id
        });
        let down: Vec<NodeId> = down.collect();
        for id in down {
            let long = self.random.happens(300);
            let after =
                if long { self.random.between(300, 1_500) } else { self.random.between(5, 150) };
            self.later(after, Job::Start(id));
        }
    }

    /// From now on nothing goes wrong.
    fn heal(&mut self) {
        self.network.heal();
        self.halts.clear();
        self.full_until.clear();
        for node in self.nodes.values_mut() {
            node.disk.clear_faults();
            node.disk.set_capacity(None);
            node.slow_until_ms = 0;
        }
    }

    /// Whether all replicas are in sync with one leader and everything is committed and answered.
    fn is_healed(&self) -> bool {
        let state = &self.coordinator.state;
        let Some(leader) = state.leader.and_then(|leader| self.nodes.get(&leader)) else {
            return false;
        };
        let Some(leader) = &leader.process else { return false };
        let end = leader.log.log_end_offset();
        state.isr.len() == state.replicas.len()
            && leader.replica.leader_epoch() == state.leader_epoch
            && !self.clients.iter().any(Client::is_waiting)
            && self.nodes.values().all(|node| {
                node.process.as_ref().is_some_and(|process| {
                    process.replica.leader_epoch() == state.leader_epoch
                        && process.log.log_end_offset() == end
                        && process.replica.high_watermark().0 == end
                })
            })
    }

    /// Reads every log from its files once more.
    fn check_end(&mut self) {
        let checker = &mut self.seen.checker;
        for (id, node) in &self.nodes {
            let Some(process) = &node.process else { continue };
            let found = storage::read_all(&process.log);
            let differs = match (checker.shadow(*id), &found) {
                (Some(shadow), Some(found)) => shadow.first_difference(found),
                _ => Some(0),
            };
            if let Some(offset) = differs {
                checker.violate(|| format!("the files of node {id} differ at {offset}"));
            }
        }
        checker.check_healed();
        let has_losses = checker.has_losses();
        let first = self.plan.replicas.first();
        let log = first.and_then(|id| checker.shadow(*id)).filter(|log| log.start() == 0);
        let Some(log) = log.filter(|_| !has_losses) else { return };
        let wrong = self.clients.iter().find_map(|c| c.missing_or_doubled(log.entries()));
        if let Some(wrong) = wrong {
            checker.violate(|| wrong);
        }
    }

    fn report(self, seed: u64) -> Report {
        let mut coverage = self.seen.coverage;
        self.seen.checker.count(&mut coverage);
        let now_ms = self.now_ms;
        let broken = self.seen.checker.violation();
        let broken = broken.map(|what| Violation::Broken(format!("at {now_ms} ms: {what}")));
        let violation = broken.or(self.not_healed.map(Violation::NotHealed));
        Report {
            seed,
            plan: self.plan,
            violation,
            trace_hash: self.seen.trace.hash(),
            lines: self.seen.trace.into_lines(),
            coverage,
        }
    }
}
