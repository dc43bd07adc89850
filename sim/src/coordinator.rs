//! The coordinator in memory: what ZooKeeper or a metadata log will be. It never fails, but its answers may be late or
//! lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use duolog_log_core::event::EventKind;
use duolog_log_core::ids::{BrokerEpoch, NodeId};
use duolog_log_core::replication::effect::IsrProposal;
use duolog_log_core::replication::election::{
    Election, LiveNodes, LogTip, PartitionState, Restart, UncleanElection,
};
use duolog_log_core::replication::reassignment::ReassignmentRefusal;

use crate::message::{Address, Envelope, Message};
use crate::observer::Observer;
use crate::plan::{Planted, timing};

/// Events of the coordinator carry this id.
pub const COORDINATOR: NodeId = NodeId(-1);

struct Session {
    broker_epoch: BrokerEpoch,
    nonce: u64,
    heard_ms: i64,
}

/// See the module.
pub struct Coordinator {
    pub state: Arc<PartitionState>,
    pub unclean: UncleanElection,
    /// Until then it answers nobody.
    pub stalled_until_ms: i64,
    planted: Option<Planted>,
    sessions: BTreeMap<NodeId, Session>,
    next_broker_epoch: i64,
    /// As told on this version of the state.
    tips: BTreeMap<NodeId, LogTip>,
    leaderless_since_ms: i64,
}

/// What the coordinator works with during one step.
pub struct Round<'a> {
    pub now_ms: i64,
    pub out: &'a mut Vec<Envelope>,
    pub seen: &'a mut Observer,
}

impl Round<'_> {
    fn send(&mut self, node: NodeId, message: Message) {
        let (from, to) = (Address::Coordinator, Address::Node(node));
        self.out.push(Envelope { from, to, message });
    }
}

impl Coordinator {
    pub fn new(state: PartitionState, unclean: UncleanElection, planted: Option<Planted>) -> Self {
        Self {
            state: Arc::new(state),
            unclean,
            stalled_until_ms: 0,
            planted,
            sessions: BTreeMap::new(),
            next_broker_epoch: 1,
            tips: BTreeMap::new(),
            leaderless_since_ms: 0,
        }
    }

    pub fn handle(&mut self, from: NodeId, message: Message, round: &mut Round<'_>) {
        match message {
            Message::Register { nonce, restart } => {
                let known = self.sessions.get(&from).filter(|session| session.nonce == nonce);
                if known.is_none() {
                    let broker_epoch = BrokerEpoch(self.next_broker_epoch);
                    self.next_broker_epoch += 1;
                    let session = Session { broker_epoch, nonce, heard_ms: round.now_ms };
                    self.sessions.insert(from, session);
                    self.change(self.state.restarted(from, restart), None, round);
                    if restart == Restart::LogInDoubt {
                        round.seen.checker.doubt_told(from);
                    }
                }
                if let Some(session) = self.sessions.get(&from) {
                    let (broker_epoch, state) = (session.broker_epoch, Arc::clone(&self.state));
                    round.send(from, Message::Registered { nonce, broker_epoch, state });
                }
            }
            Message::Heartbeat { broker_epoch, seen, tip } => {
                let session = self.sessions.get_mut(&from);
                let Some(session) = session.filter(|s| s.broker_epoch == broker_epoch) else {
                    return round.send(from, Message::SessionOver(broker_epoch));
                };
                session.heard_ms = round.now_ms;
                if seen == self.state.partition_epoch {
                    self.tips.insert(from, tip);
                } else {
                    round.send(from, Message::State(Arc::clone(&self.state)));
                }
            }
            Message::Propose(proposal) => self.alter_isr(from, &proposal, round),
            _ => {}
        }
        self.settle(round);
    }

    /// Ends sessions that are silent, and looks for a leader.
    pub fn tick(&mut self, round: &mut Round<'_>) {
        let silent = |session: &Session| round.now_ms - session.heard_ms > timing::SESSION_MS;
        let dead: Vec<_> =
            self.sessions.iter().filter(|(_, s)| silent(s)).map(|(node, _)| *node).collect();
        for node in dead {
            self.expire(node, round);
        }
        self.settle(round);
    }

    /// Ends a reassignment that is complete, and finds a leader where there is none.
    fn settle(&mut self, round: &mut Round<'_>) {
        if let Some(next) = self.state.reassignment_completed() {
            round.seen.coverage.reassignments_completed += 1;
            self.change(Some(next), None, round);
        }
        self.elect(round);
    }

    /// Takes `node` for dead.
    pub fn expire(&mut self, node: NodeId, round: &mut Round<'_>) {
        if self.sessions.remove(&node).is_some() {
            round.seen.coverage.sessions_expired += 1;
            let at = (round.now_ms, COORDINATOR);
            round
                .seen
                .fault(at, EventKind::FaultSession, || format!("node {node} is taken for dead"));
            self.change(self.state.stopped(node), None, round);
            self.settle(round);
        }
    }

    /// Lets `node` lead if it may.
    pub fn move_to(&mut self, node: NodeId, round: &mut Round<'_>) {
        if let Some(next) = self.state.moved_to(node, &self.live()) {
            let is_preferred = self.state.preferred_leader() == Some(node);
            round.seen.coverage.moves += 1;
            round.seen.coverage.preferred_elections += u64::from(is_preferred);
            self.change(Some(next), Some(Election::Clean), round);
        }
    }

    /// Moves the partition to these replicas.
    pub fn reassign(&mut self, target: &[NodeId], round: &mut Round<'_>) {
        let replaces = self.state.is_moving();
        let next = self.state.reassigned_to(target);
        let is_begun = self.change_replicas(next, round);
        round.seen.coverage.reassignments += u64::from(is_begun);
        round.seen.coverage.reassignments_replaced += u64::from(is_begun && replaces);
        if self.planted == Some(Planted::LeavesBeforeInSync) {
            let isr = self.state.isr.union(&self.state.adding).copied().collect();
            let believed = PartitionState { isr, ..PartitionState::clone(&self.state) };
            self.change(believed.reassignment_completed(), None, round);
        }
        self.settle(round);
    }

    /// Takes a reassignment back.
    pub fn cancel_reassignment(&mut self, round: &mut Round<'_>) {
        if self.state.is_moving() {
            let next = self.state.reassignment_cancelled();
            let is_cancelled = self.change_replicas(next, round);
            round.seen.coverage.reassignments_cancelled += u64::from(is_cancelled);
            self.settle(round);
        }
    }

    fn change_replicas(
        &mut self,
        next: Result<PartitionState, ReassignmentRefusal>,
        round: &mut Round<'_>,
    ) -> bool {
        round.seen.coverage.reassignments_refused += u64::from(next.is_err());
        let is_written = next.is_ok();
        self.change(next.ok(), None, round);
        is_written
    }

    /// `min.insync.replicas` is this from now on.
    pub fn set_minimum(&mut self, min_insync_replicas: usize, round: &mut Round<'_>) {
        if self.state.min_insync_replicas != min_insync_replicas {
            round.seen.coverage.minimum_changes += 1;
            let next = self.state.with_min_insync_replicas(min_insync_replicas);
            self.change(Some(next), None, round);
        }
    }

    fn live(&self) -> LiveNodes {
        self.sessions.iter().map(|(node, session)| (*node, session.broker_epoch)).collect()
    }

    fn alter_isr(&mut self, from: NodeId, proposal: &IsrProposal, round: &mut Round<'_>) {
        match self.state.alter_isr(proposal, &self.live()) {
            Ok(next) => self.change(Some(next), None, round),
            Err(_) => {
                round.seen.coverage.isr_refusals += 1;
                let IsrProposal { leader_epoch, partition_epoch, .. } = *proposal;
                round.send(from, Message::ProposalRefused { leader_epoch, partition_epoch });
                round.send(from, Message::State(Arc::clone(&self.state)));
            }
        }
    }

    fn elect(&mut self, round: &mut Round<'_>) {
        if self.state.leader.is_some() {
            self.leaderless_since_ms = round.now_ms;
            return;
        }
        let waited_ms = round.now_ms - self.leaderless_since_ms;
        let unclean = match self.unclean {
            UncleanElection::Allowed if waited_ms >= timing::UNCLEAN_AFTER_MS => self.unclean,
            _ => UncleanElection::Refused,
        };
        let Some((next, election)) = self.state.elect(&self.live(), &self.tips, unclean) else {
            return;
        };
        let coverage = &mut round.seen.coverage;
        let leader = next.leader.unwrap_or(COORDINATOR);
        match election {
            Election::Unclean => coverage.unclean_elections += 1,
            Election::Clean if self.state.isr.contains(&leader) => coverage.clean_elections += 1,
            Election::Clean if self.state.eligible.contains(&leader) => {
                coverage.eligible_elections += 1;
            }
            Election::Clean => coverage.doubtful_elections += 1,
        }
        self.change(Some(next), Some(election), round);
    }

    /// Writes `next` and tells everybody.
    fn change(
        &mut self,
        next: Option<PartitionState>,
        election: Option<Election>,
        round: &mut Round<'_>,
    ) {
        let Some(next) = next else { return };
        self.tell_isr(&next, round);
        self.tell_replicas(&next, round);
        if let Some(election) = election {
            let (leader, epoch) = (next.leader.unwrap_or(COORDINATOR), next.leader_epoch);
            let at = (round.now_ms, COORDINATOR);
            round.seen.event(at, EventKind::LeaderElect, (-1, epoch), || {
                let how = if election == Election::Unclean { ", uncleanly" } else { "" };
                format!("node {leader} is to lead{how}")
            });
        }
        self.state = Arc::new(next);
        self.tips.clear();
        round.seen.checker.state_changed(&self.state, election);
        let mut hearers: BTreeSet<_> = self.sessions.keys().copied().collect();
        hearers.extend(&self.state.replicas);
        for node in hearers {
            round.send(node, Message::State(Arc::clone(&self.state)));
        }
    }

    fn tell_isr(&self, next: &PartitionState, round: &mut Round<'_>) {
        let (before, after) = (&self.state.isr, &next.isr);
        let left = before.difference(after).count() as u64;
        let joined = after.difference(before).count() as u64;
        round.seen.coverage.isr_shrinks += left;
        round.seen.coverage.isr_growths += joined;
        let came = after.difference(before).filter(|node| self.state.adding.contains(node));
        round.seen.coverage.caught_up_from_nothing += came.count() as u64;
        let at = (round.now_ms, COORDINATOR);
        let words = || {
            let ids: Vec<_> = after.iter().map(ToString::to_string).collect();
            format!("ISR is {}", if ids.is_empty() { "empty".to_owned() } else { ids.join(",") })
        };
        if left > 0 {
            round.seen.event(at, EventKind::IsrShrink, (-1, next.leader_epoch), words);
        }
        if joined > 0 {
            round.seen.event(at, EventKind::IsrExpand, (-1, next.leader_epoch), words);
        }
    }

    fn tell_replicas(&self, next: &PartitionState, round: &mut Round<'_>) {
        let now = (&self.state.replicas, &self.state.adding, &self.state.removing);
        let then = (&next.replicas, &next.adding, &next.removing);
        let minimum = next.min_insync_replicas;
        if now == then && self.state.min_insync_replicas == minimum {
            return;
        }
        let left = now.0.iter().filter(|node| !next.replicas.contains(node));
        let coverage = &mut round.seen.coverage;
        for node in left {
            coverage.replicas_removed += 1;
            coverage.leaders_removed += u64::from(self.state.leader == Some(*node));
        }
        let at = (round.now_ms, COORDINATOR);
        let sign = |nodes: &BTreeSet<NodeId>, sign| {
            nodes.iter().map(|node| format!(" {sign}{node}")).collect::<String>()
        };
        round.seen.event(at, EventKind::ReplicaAssign, (-1, next.leader_epoch), || {
            let ids: Vec<_> = next.replicas.iter().map(ToString::to_string).collect();
            let moving = sign(&next.adding, '+') + &sign(&next.removing, '-');
            format!("replicas {}{moving}, min ISR {minimum}", ids.join(","))
        });
    }
}
