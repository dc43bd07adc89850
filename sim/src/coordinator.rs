//! The coordinator in memory: what ZooKeeper or a metadata log will be. It never fails, but its answers may be late or
//! lost.

use std::collections::BTreeMap;
use std::sync::Arc;

use duolog_log_core::event::EventKind;
use duolog_log_core::ids::{BrokerEpoch, NodeId};
use duolog_log_core::replication::effect::IsrProposal;
use duolog_log_core::replication::election::{
    Election, LiveNodes, LogTip, PartitionState, UncleanElection,
};

use crate::message::{Address, Envelope, Message};
use crate::observer::Observer;
use crate::plan::timing;

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
    pub fn new(state: PartitionState, unclean: UncleanElection) -> Self {
        Self {
            state: Arc::new(state),
            unclean,
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
        self.elect(round);
    }

    /// Ends sessions that are silent, and looks for a leader.
    pub fn tick(&mut self, round: &mut Round<'_>) {
        let silent = |session: &Session| round.now_ms - session.heard_ms > timing::SESSION_MS;
        let dead: Vec<_> =
            self.sessions.iter().filter(|(_, s)| silent(s)).map(|(node, _)| *node).collect();
        for node in dead {
            self.expire(node, round);
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
            self.elect(round);
        }
    }

    /// Lets `node` lead if it may.
    pub fn move_to(&mut self, node: NodeId, round: &mut Round<'_>) {
        if let Some(next) = self.state.moved_to(node, &self.live()) {
            round.seen.coverage.moves += 1;
            self.change(Some(next), Some(Election::Clean), round);
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
        for node in self.state.replicas.clone() {
            round.send(node, Message::State(Arc::clone(&self.state)));
        }
    }

    fn tell_isr(&self, next: &PartitionState, round: &mut Round<'_>) {
        let (before, after) = (&self.state.isr, &next.isr);
        let left = before.difference(after).count() as u64;
        let joined = after.difference(before).count() as u64;
        round.seen.coverage.isr_shrinks += left;
        round.seen.coverage.isr_growths += joined;
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
}
