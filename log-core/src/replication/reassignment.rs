//! Which nodes hold a replica, and how a partition moves to others (KIP-455): the coordinator's side, as pure functions.
//!
//! ```text
//! settled ──reassigned_to(target)──▶ moving    replicas = target + who is to leave; who is to come has nothing yet
//! moving ──reassigned_to(another)──▶ moving    who was to come and is not wanted any more leaves at once
//! moving ──reassignment_cancelled──▶ settled   who was to come leaves
//! moving ──reassignment_completed──▶ settled   once the ISR holds the whole target: who is to leave leaves
//! ```
//!
//! Nobody leaves as long as none of those who stay is in sync: only they are known to have what is committed.
//!
//! Whoever leaves, leaves under a new leader epoch. It drops its log; should it be added again, what is still under way
//! of its fetches names the old epoch and counts no more. The leader stays, unless it is the one that leaves: then it is
//! for an election to find another among those who stayed.
//! Sources: KIP-455; PartitionReassignmentReplicas, PartitionChangeBuilder.

use std::collections::BTreeSet;

use super::election::PartitionState;
use crate::ids::NodeId;

/// Why replicas are not moved; nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReassignmentRefusal {
    /// The target is no list of replicas.
    #[error("a partition needs one replica at least, and each once, not {0:?}")]
    InvalidTarget(Vec<NodeId>),
    /// What is committed would be lost with those who leave.
    #[error("none of the replicas that would stay is in sync")]
    NobodyInSync,
    /// There is nothing to cancel.
    #[error("no reassignment is in progress")]
    NoneInProgress,
}

impl PartitionState {
    /// Whether a reassignment is in progress.
    #[must_use]
    pub fn is_moving(&self) -> bool {
        !self.adding.is_empty() || !self.removing.is_empty()
    }

    /// The replicas that there are to be in the end, the preferred leader first.
    pub fn target_replicas(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.replicas.iter().copied().filter(|node| !self.removing.contains(node))
    }

    /// Begins to move the partition to `target`, the preferred leader first; one that is in progress is replaced.
    ///
    /// A target that is there already changes the order only, or ends the move that is in progress.
    pub fn reassigned_to(&self, target: &[NodeId]) -> Result<Self, ReassignmentRefusal> {
        let wanted: BTreeSet<_> = target.iter().copied().collect();
        if target.is_empty() || wanted.len() < target.len() {
            return Err(ReassignmentRefusal::InvalidTarget(target.to_vec()));
        }
        let original: BTreeSet<_> = self.original_replicas().collect();
        let adding = wanted.difference(&original).copied().collect();
        let removing: BTreeSet<_> = original.difference(&wanted).copied().collect();
        let replicas = target.iter().chain(&removing).copied().collect();
        self.with_replicas(replicas, adding, removing)
    }

    /// Ends a move without having moved: who was to come leaves, who was to leave stays.
    pub fn reassignment_cancelled(&self) -> Result<Self, ReassignmentRefusal> {
        if !self.is_moving() {
            return Err(ReassignmentRefusal::NoneInProgress);
        }
        let replicas = self.original_replicas().collect();
        self.with_replicas(replicas, BTreeSet::new(), BTreeSet::new())
    }

    /// The state after a move, once the whole target is in sync; `None` before, and when nothing moves.
    #[must_use]
    pub fn reassignment_completed(&self) -> Option<Self> {
        let is_complete =
            self.is_moving() && self.target_replicas().all(|node| self.isr.contains(&node));
        if !is_complete {
            return None;
        }
        let replicas = self.target_replicas().collect();
        self.with_replicas(replicas, BTreeSet::new(), BTreeSet::new()).ok()
    }

    /// Who had a replica before the move began.
    fn original_replicas(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.replicas.iter().copied().filter(|node| !self.adding.contains(node))
    }

    fn with_replicas(
        &self,
        replicas: Vec<NodeId>,
        adding: BTreeSet<NodeId>,
        removing: BTreeSet<NodeId>,
    ) -> Result<Self, ReassignmentRefusal> {
        let stays = |node: &NodeId| replicas.contains(node);
        let somebody_leaves = !self.replicas.iter().all(stays);
        let isr: BTreeSet<_> = self.isr.iter().copied().filter(stays).collect();
        if somebody_leaves && isr.is_empty() {
            return Err(ReassignmentRefusal::NobodyInSync);
        }
        let mut next = self.next_version();
        next.leader = self.leader.filter(stays);
        if somebody_leaves && next.leader.is_some() {
            next.begin_epoch();
        }
        next.eligible.retain(stays);
        next.last_known.retain(stays);
        (next.adding, next.removing) = (adding, removing);
        next.replicas = replicas;
        if somebody_leaves {
            next.set_isr(isr);
            let replicas = &next.replicas;
            next.eligible.retain(|node| replicas.contains(node));
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests;
