//! Who may lead: the coordinator's side, as pure functions from one state of a partition to the next.
//!
//! A replica may be elected without loss as long as it has every committed record. Three sets say who has:
//!
//! ```text
//! isr         has all that is committed, by the leader's rule for the HW
//! eligible    left the ISR when that fell below min.insync.replicas; nothing has been committed since (KIP-966: ELR)
//! last_known  was in one of these and restarted in doubt: of these, the one with the most complete log has what any has,
//!             as long as nothing has been committed without them. A leader may commit records of an older epoch and
//!             write none in its own: then a longer log of an epoch between says nothing
//! ```
//!
//! Every change makes a new version (`partition_epoch`); every election a new leader epoch. A leader's proposal is
//! written only on the version it names.
//!
//! What is promised without fsync: a committed record survives as long as one replica of these sets keeps it. A process
//! that dies leaves what it wrote to the operating system; a power cut forgets what was not synced. When all of them
//! forget, or an unclean election is allowed and happens, committed records are lost.
//! Sources: KIP-497, KIP-841, KIP-903, KIP-966; PartitionChangeBuilder.

use std::collections::{BTreeMap, BTreeSet};

use super::effect::IsrProposal;
use super::terms::Assignment;
use crate::ids::{BrokerEpoch, LeaderEpoch, NodeId, Offset};

/// What the coordinator holds of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionState {
    /// The preferred leader first. During a move these are the old and the new ones: see `reassignment`.
    pub replicas: Vec<NodeId>,
    /// Of these, who is still to come.
    pub adding: BTreeSet<NodeId>,
    /// Of these, who is to leave once all others are in sync.
    pub removing: BTreeSet<NodeId>,
    /// In sync.
    pub isr: BTreeSet<NodeId>,
    /// Eligible leader replicas outside the ISR.
    pub eligible: BTreeSet<NodeId>,
    /// Were in sync or eligible until they restarted in doubt.
    pub last_known: BTreeSet<NodeId>,
    /// `None` while nobody leads.
    pub leader: Option<NodeId>,
    /// Of the leader, or of the last one.
    pub leader_epoch: LeaderEpoch,
    /// Version of this state.
    pub partition_epoch: i32,
    /// `min.insync.replicas`; at most the number of replicas counts.
    pub min_insync_replicas: usize,
}

/// The nodes that are there, each with the run of its process.
pub type LiveNodes = BTreeMap<NodeId, BrokerEpoch>;

/// Where a replica's log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogTip {
    /// Of its last record: compared first, for a later leader had all that was committed before it.
    pub last_epoch: LeaderEpoch,
    /// LEO: exclusive.
    pub log_end_offset: Offset,
}

/// What a node that comes back knows of its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// It was stopped cleanly, or only its process died.
    LogKept,
    /// The machine may have stopped: what was not synced may be gone.
    LogInDoubt,
}

/// `unclean.leader.election.enable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UncleanElection {
    /// Rather no leader than a loss.
    Refused,
    /// Rather a loss than no leader.
    Allowed,
}

/// How a leader was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Election {
    /// It has every committed record that any replica kept.
    Clean,
    /// Committed records may be lost.
    Unclean,
}

/// Why a proposal was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IsrRefusal {
    /// The proposer does not lead in the epoch that it names.
    #[error("the proposer is not the leader, whose epoch is {current}")]
    NotLeader {
        /// The partition's epoch.
        current: LeaderEpoch,
    },
    /// It is based on another version.
    #[error("the state has version {current}")]
    OtherVersion {
        /// The version now.
        current: i32,
    },
    /// A node that would join is not there, or has restarted since it fetched.
    #[error("node {0} may not join the ISR")]
    Ineligible(NodeId),
}

impl PartitionState {
    /// A new partition led by its preferred replica, with every replica in sync.
    #[must_use]
    pub fn created(replicas: Vec<NodeId>, min_insync_replicas: usize) -> Self {
        Self {
            adding: BTreeSet::new(),
            removing: BTreeSet::new(),
            isr: replicas.iter().copied().collect(),
            eligible: BTreeSet::new(),
            last_known: BTreeSet::new(),
            leader: replicas.first().copied(),
            leader_epoch: LeaderEpoch(0),
            partition_epoch: 0,
            min_insync_replicas,
            replicas,
        }
    }

    /// The state with the ISR that its leader wishes.
    pub fn alter_isr(&self, proposal: &IsrProposal, live: &LiveNodes) -> Result<Self, IsrRefusal> {
        if self.leader != Some(proposal.leader) || self.leader_epoch != proposal.leader_epoch {
            return Err(IsrRefusal::NotLeader { current: self.leader_epoch });
        }
        if self.partition_epoch != proposal.partition_epoch {
            return Err(IsrRefusal::OtherVersion { current: self.partition_epoch });
        }
        for (node, broker_epoch) in &proposal.isr {
            let joins_as_it_fetched =
                self.replicas.contains(node) && live.get(node) == Some(broker_epoch);
            if !self.isr.contains(node) && !joins_as_it_fetched {
                return Err(IsrRefusal::Ineligible(*node));
            }
        }
        if !proposal.isr.contains_key(&proposal.leader) {
            return Err(IsrRefusal::Ineligible(proposal.leader));
        }
        let mut next = self.next_version();
        next.set_isr(proposal.isr.keys().copied().collect());
        Ok(next)
    }

    /// `node` is not there any more; `None` when that changes nothing.
    ///
    /// The last replica of the ISR stays in it: only it has everything.
    #[must_use]
    pub fn stopped(&self, node: NodeId) -> Option<Self> {
        let mut next = self.next_version();
        next.leader = self.leader.filter(|leader| *leader != node);
        if self.isr.len() > 1 && self.isr.contains(&node) {
            next.set_isr(self.isr.iter().copied().filter(|member| *member != node).collect());
        }
        self.if_changed(next)
    }

    /// `node` is there again, as another run of its process; `None` when that changes nothing.
    ///
    /// It leads no more: what it promised in its epoch it does not remember. In doubt about its log it has to earn its
    /// place again, or to be the best of those in doubt (case B74).
    #[must_use]
    pub fn restarted(&self, node: NodeId, restart: Restart) -> Option<Self> {
        let mut next = self.next_version();
        next.leader = self.leader.filter(|leader| *leader != node);
        let was_trusted = self.isr.contains(&node) || self.eligible.contains(&node);
        if restart == Restart::LogInDoubt && was_trusted {
            next.last_known.insert(node);
            next.set_isr(self.isr.iter().copied().filter(|member| *member != node).collect());
            next.eligible.remove(&node);
        }
        self.if_changed(next)
    }

    /// Finds a leader where there is none: from the ISR, from those eligible, from those in doubt once all of them are
    /// there, and if `unclean` allows it from all. In order of preference; in doubt, by the most complete log.
    ///
    /// `tips` must have been taken on this version of the state: only then do logs stand still.
    #[must_use]
    pub fn elect(
        &self,
        live: &LiveNodes,
        tips: &BTreeMap<NodeId, LogTip>,
        unclean: UncleanElection,
    ) -> Option<(Self, Election)> {
        if self.leader.is_some() {
            return None;
        }
        let first_of = |set: &BTreeSet<NodeId>| {
            self.replicas.iter().copied().find(|n| set.contains(n) && live.contains_key(n))
        };
        if let Some(node) = first_of(&self.isr) {
            return Some((self.led_by(node, self.live_isr(live)), Election::Clean));
        }
        if let Some(node) = first_of(&self.eligible) {
            return Some((self.led_by(node, BTreeSet::from([node])), Election::Clean));
        }
        let best_of = |nodes: &mut dyn Iterator<Item = NodeId>| {
            let known = nodes.filter(|node| live.contains_key(node));
            let known = known.filter_map(|node| Some((*tips.get(&node)?, node)));
            // Of equal ones the first in order of preference.
            known.reduce(|best, other| if other.0 > best.0 { other } else { best })
        };
        let in_doubt = self.isr.is_empty() && self.eligible.is_empty();
        let all_there =
            self.last_known.iter().all(|n| live.contains_key(n) && tips.contains_key(n));
        let mut of_last_known =
            self.replicas.iter().copied().filter(|n| self.last_known.contains(n));
        if in_doubt
            && all_there
            && let Some((_, node)) = best_of(&mut of_last_known)
        {
            return Some((self.led_alone_by(node), Election::Clean));
        }
        if unclean == UncleanElection::Refused {
            return None;
        }
        let (_, node) = best_of(&mut self.replicas.iter().copied())?;
        Some((self.led_alone_by(node), Election::Unclean))
    }

    /// Lets `node` lead instead of the present leader: a preferred election, or a planned move. `None` unless it is
    /// there and in sync.
    #[must_use]
    pub fn moved_to(&self, node: NodeId, live: &LiveNodes) -> Option<Self> {
        let may_lead = self.leader.is_some_and(|leader| leader != node)
            && self.isr.contains(&node)
            && live.contains_key(&node);
        may_lead.then(|| self.led_by(node, self.isr.clone()))
    }

    /// How many replicas must be in sync before anything is committed: a minimum above their number could never be met.
    #[must_use]
    pub fn required_replicas(&self) -> usize {
        self.min_insync_replicas.min(self.replicas.len())
    }

    /// What a replica needs of this state in order to lead.
    #[must_use]
    pub fn assignment(&self) -> Assignment {
        Assignment {
            replicas: self.replicas.iter().copied().collect(),
            isr: self.isr.clone(),
            partition_epoch: self.partition_epoch,
            min_insync_replicas: self.min_insync_replicas,
        }
    }

    /// Who leads when everybody is well.
    #[must_use]
    pub fn preferred_leader(&self) -> Option<NodeId> {
        self.replicas.first().copied()
    }

    /// `min.insync.replicas` is another one now.
    ///
    /// Must be written before any leader acts on a lower one: it then commits without those who were eligible. And who
    /// leads learns it with this version or a newer one, together with the ISR (see `Partition::assignment_committed`):
    /// a leader of an older epoch would commit alone what its successor does not have.
    #[must_use]
    pub fn with_min_insync_replicas(&self, min_insync_replicas: usize) -> Self {
        let mut next = self.next_version();
        next.min_insync_replicas = min_insync_replicas;
        next.set_isr(self.isr.clone());
        next
    }

    pub(super) fn next_version(&self) -> Self {
        Self { partition_epoch: self.partition_epoch.saturating_add(1), ..self.clone() }
    }

    fn if_changed(&self, next: Self) -> Option<Self> {
        let unchanged = Self { partition_epoch: self.partition_epoch, ..next.clone() } == *self;
        (!unchanged).then_some(next)
    }

    /// Who leaves an ISR that is then too small to commit anything still has all that is committed.
    pub(super) fn set_isr(&mut self, isr: BTreeSet<NodeId>) {
        if isr.len() >= self.required_replicas() {
            self.eligible.clear();
        } else {
            self.eligible.extend(self.isr.difference(&isr));
            self.eligible.retain(|node| !isr.contains(node));
        }
        self.last_known.retain(|node| !isr.contains(node));
        if self.leader.is_some() && isr.len() >= self.required_replicas() {
            // From now on commits need only these: what the others have may become too little.
            self.last_known.clear();
        }
        self.isr = isr;
    }

    /// Members that are not there leave the ISR, so that the new leader need not wait for them.
    fn live_isr(&self, live: &LiveNodes) -> BTreeSet<NodeId> {
        self.isr.iter().copied().filter(|node| live.contains_key(node)).collect()
    }

    fn led_by(&self, node: NodeId, isr: BTreeSet<NodeId>) -> Self {
        let mut next = self.next_version();
        next.leader = Some(node);
        next.begin_epoch();
        next.set_isr(isr);
        next
    }

    pub(super) fn begin_epoch(&mut self) {
        self.leader_epoch = LeaderEpoch(self.leader_epoch.0.saturating_add(1));
    }

    /// The others may lack what this one has.
    fn led_alone_by(&self, node: NodeId) -> Self {
        let mut next = self.led_by(node, BTreeSet::from([node]));
        next.eligible.clear();
        next.last_known.clear();
        next
    }
}

#[cfg(test)]
mod tests;
