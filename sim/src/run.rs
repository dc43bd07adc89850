//! One run: an ordered queue of things to happen, and virtual time.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use duolog_log_core::event::EventKind;
use duolog_log_core::ids::NodeId;
use duolog_log_core::replication::election::PartitionState;
use duolog_log_core::replication::partition::Role;

use crate::chaos::Halt;
use crate::checker::{Checker, Stop};
use crate::clients::{Client, Turn};
use crate::coordinator::{Coordinator, Round};
use crate::coverage::Coverage;
use crate::message::{Address, Envelope, Message};
use crate::network::Network;
use crate::node::{Node, Step};
use crate::observer::Observer;
use crate::plan::{Blow, Plan, Planted, timing};
use crate::random::Random;
use crate::trace::{Line, Recording, Trace};

mod end;

/// What to run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Builder {
    /// Everything follows from it.
    pub seed: u64,
    /// A fault in the rules, to see that it is found.
    pub planted: Option<Planted>,
    /// One thing that goes wrong in a short run, instead of many in a long one.
    pub blow: Option<Blow>,
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
    /// With its number: a later one was sent later.
    Deliver(Envelope, u64),
    Upkeep(NodeId),
    Poll(NodeId),
    Start(NodeId),
    Client(usize),
    CoordinatorTick,
    Strike,
    /// `min.insync.replicas` is to be this.
    SetMinimum(usize),
    /// These are to be the replicas.
    Reassign(Vec<NodeId>),
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
    /// Nodes that left the ISR with a full disk.
    left_full: BTreeSet<NodeId>,
    /// The newest message that came on each link.
    newest: BTreeMap<(Address, Address), u64>,
    overtaken: u64,
    clients: Vec<Client>,
    jobs: BTreeMap<(i64, u64), Job>,
    next_job: u64,
    out: Vec<Envelope>,
    chaos_until_ms: i64,
    not_healed: Option<String>,
}

impl Builder {
    /// Runs to the end, or to the first broken promise. An assertion of the core that fails is told like one.
    #[must_use]
    pub fn run(self) -> Report {
        let mut random = Random::new(self.seed);
        let mut plan = Plan::draw(&mut random, self.planted);
        if let Some(blow) = self.blow {
            plan = plan.calm_but_for(blow);
        }
        let mut simulation = Simulation::new(plan, random, self.recording);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| simulation.run())) {
            simulation.seen.checker.violate(|| format!("asserted: {}", words_of(&*panic)));
        }
        simulation.report(self.seed)
    }
}

fn words_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("something that is not text")
}

impl Simulation {
    fn new(plan: Plan, random: Random, recording: Recording) -> Self {
        let mut state = PartitionState::created(plan.replicas.clone(), plan.min_insync_replicas);
        // Nobody is there yet: the first leader is elected like any other.
        state.leader = None;
        let first = plan.replicas.first().copied().unwrap_or_default();
        let mut simulation = Self {
            now_ms: 0,
            nodes: plan.nodes.iter().map(|id| (*id, Node::new(*id, &plan))).collect(),
            coordinator: Coordinator::new(state.clone(), plan.unclean, plan.planted),
            network: Network::new(&plan),
            seen: Observer {
                trace: Trace::new(recording),
                checker: Checker::new(state),
                coverage: Coverage::default(),
            },
            halts: BTreeMap::new(),
            full_until: BTreeMap::new(),
            left_full: BTreeSet::new(),
            newest: BTreeMap::new(),
            overtaken: 0,
            clients: Client::all(first),
            jobs: BTreeMap::new(),
            next_job: 0,
            out: Vec::new(),
            chaos_until_ms: plan.chaos_ms,
            not_healed: None,
            random,
            plan,
        };
        simulation.plan_first_jobs();
        simulation
    }

    fn plan_first_jobs(&mut self) {
        for id in self.plan.nodes.clone() {
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

    /// Lets `min.insync.replicas` be this after a while.
    pub(crate) fn set_minimum_in(&mut self, in_ms: i64, minimum: usize) {
        self.later(in_ms, Job::SetMinimum(minimum));
    }

    fn later(&mut self, in_ms: i64, job: Job) {
        self.next_job += 1;
        self.jobs.insert((self.now_ms + in_ms.max(0), self.next_job), job);
    }

    /// Lets the partition move to these replicas after a while.
    pub(crate) fn reassign_in(&mut self, in_ms: i64, target: Vec<NodeId>) {
        self.later(in_ms, Job::Reassign(target));
    }

    fn run(&mut self) {
        while let Some(((at_ms, _), job)) = self.jobs.pop_first() {
            self.now_ms = at_ms;
            if let Some(blow) = self.plan.blow
                && blow.step == self.seen.coverage.steps
            {
                self.strike_with(blow.kind);
            }
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
            Job::Deliver(envelope, number) => self.deliver(envelope, number),
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
                if self.coordinator.stalled_until_ms <= self.now_ms {
                    self.with_coordinator(Coordinator::tick);
                }
                self.later(timing::UPKEEP_MS, Job::CoordinatorTick);
            }
            Job::SetMinimum(minimum) => {
                self.with_coordinator(|coordinator, round| coordinator.set_minimum(minimum, round));
            }
            Job::Reassign(target) => self.reassign_to(&target),
            Job::Strike if self.now_ms < self.chaos_until_ms => {
                if self.plan.blow.is_none() {
                    self.strike();
                }
                let next = self.random.between(1, 2 * self.plan.fault_every_ms);
                self.later(next, Job::Strike);
            }
            Job::Strike => self.heal(),
        }
    }

    fn deliver(&mut self, envelope: Envelope, number: u64) {
        let busy_until_ms = match envelope.to {
            Address::Node(id) => self.nodes.get(&id).map_or(0, |node| node.slow_until_ms),
            Address::Coordinator => self.coordinator.stalled_until_ms,
            Address::Client(_) => 0,
        };
        if busy_until_ms > self.now_ms {
            let waits = (busy_until_ms - self.now_ms).min(60);
            return self.later(waits, Job::Deliver(envelope, number));
        }
        let Envelope { from, to, message } = envelope;
        let newest = self.newest.entry((from, to)).or_default();
        self.overtaken += u64::from(number < *newest);
        *newest = number.max(*newest);
        match (from, to) {
            (_, Address::Node(id)) => {
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
        let clock_ms = now_ms + node.clock_ahead_ms;
        let (out, seen) = (&mut self.out, &mut self.seen);
        let mut step = Step { now_ms, clock_ms, node: id, out, seen };
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
        let clock_ms = now_ms + node.clock_ahead_ms;
        let (out, seen) = (&mut self.out, &mut self.seen);
        act(node, &mut Step { now_ms, clock_ms, node: id, out, seen });
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
            nodes: &self.plan.nodes,
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
            let number = self.next_job;
            for delay in delays {
                self.later(delay, Job::Deliver(envelope.clone(), number));
            }
        }
        self.end_halted();
        self.free_disks();
        self.plan_starts();
        for (id, node) in &self.nodes {
            if let Some(process) = &node.process {
                let replica = &process.replica;
                self.seen.checker.look(*id, replica, process.log.log_end_offset());
                let is_unstable = replica.role() == Role::Leader
                    && replica.last_stable_offset() < replica.high_watermark();
                self.seen.coverage.unstable_steps += u64::from(is_unstable);
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
        let (nodes, state) = (&mut self.nodes, &self.coordinator.state);
        let left = &mut self.left_full;
        self.full_until.retain(|id, until_ms| {
            let is_over = *until_ms <= now_ms;
            if let (true, Some(node)) = (is_over, nodes.get_mut(id)) {
                node.disk.set_capacity(None);
                if state.replicas.contains(id) && !state.isr.contains(id) {
                    left.insert(*id);
                }
            }
            !is_over
        });
        let before = left.len();
        left.retain(|id| !state.isr.contains(id));
        self.seen.coverage.full_disks_rejoined += (before - left.len()) as u64;
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
}
