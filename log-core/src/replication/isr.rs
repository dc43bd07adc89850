//! The committed ISR and the one change that may be under way.

use std::collections::BTreeSet;

use crate::ids::NodeId;

/// A change of the ISR that the coordinator has not confirmed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IsrChange {
    /// This replica joins.
    Grow(NodeId),
    /// These replicas leave.
    Shrink(BTreeSet<NodeId>),
}

/// The ISR of a partition that this node leads; empty on a follower.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IsrState {
    committed: BTreeSet<NodeId>,
    partition_epoch: i32,
    pending: Option<IsrChange>,
}

impl IsrState {
    /// The set that the coordinator holds as version `partition_epoch`.
    #[must_use]
    pub fn committed(isr: BTreeSet<NodeId>, partition_epoch: i32) -> Self {
        Self { committed: isr, partition_epoch, pending: None }
    }

    /// Size of the committed set: what `min.insync.replicas` is held against.
    #[must_use]
    pub fn committed_len(&self) -> usize {
        self.committed.len()
    }

    /// The committed set, in order.
    pub fn committed_ids(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.committed.iter().copied()
    }

    /// Whether the committed set holds `node`.
    #[must_use]
    pub fn contains(&self, node: NodeId) -> bool {
        self.committed.contains(&node)
    }

    /// The larger of the committed and the proposed set: whoever is in either must have a record before it counts as
    /// committed, since the coordinator may already have written the proposal (KIP-497).
    pub fn maximal_ids(&self) -> impl Iterator<Item = NodeId> + '_ {
        let joining = match &self.pending {
            Some(IsrChange::Grow(node)) => Some(*node),
            Some(IsrChange::Shrink(_)) | None => None,
        };
        self.committed.iter().copied().chain(joining)
    }

    /// The change under way.
    #[must_use]
    pub const fn pending(&self) -> Option<&IsrChange> {
        self.pending.as_ref()
    }

    /// Notes `change` as under way; returns the whole proposed set and the version it is based on.
    pub fn propose(&mut self, change: IsrChange) -> (BTreeSet<NodeId>, i32) {
        assert!(self.pending.is_none(), "one ISR change at a time: {self:?}");
        let isr = self.with(&change);
        self.pending = Some(change);
        (isr, self.partition_epoch)
    }

    /// The proposal is now the committed set; returns whether there was one.
    pub fn confirm(&mut self, partition_epoch: i32) -> bool {
        let Some(change) = self.pending.take() else { return false };
        assert!(partition_epoch > self.partition_epoch, "an ISR version never goes back");
        self.committed = self.with(&change);
        self.partition_epoch = partition_epoch;
        true
    }

    /// The proposal is void.
    pub fn refuse(&mut self) {
        self.pending = None;
    }

    fn with(&self, change: &IsrChange) -> BTreeSet<NodeId> {
        let mut isr = self.committed.clone();
        match change {
            IsrChange::Grow(node) => {
                isr.insert(*node);
            }
            IsrChange::Shrink(nodes) => isr.retain(|node| !nodes.contains(node)),
        }
        isr
    }
}
