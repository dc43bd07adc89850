//! The committed ISR, and what has been proposed on its version.
//!
//! ```text
//! Settled ──propose──▶ Proposed ──committed(newer version)──▶ Settled
//!                      Proposed ──refused──▶ Proposed (the committed set itself, to get a newer version)
//! ```

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{BrokerEpoch, NodeId};

/// The ISR of a partition that this node leads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IsrState {
    committed: BTreeSet<NodeId>,
    partition_epoch: i32,
    /// The newest proposal on this version, each member with the run of its process that was in sync then. What a
    /// later run has is another matter, also when the proposal is sent again (KIP-903).
    proposed: Option<BTreeMap<NodeId, BrokerEpoch>>,
    /// Whoever is in any proposal on this version. A proposal that was refused once may still be on its way a second
    /// time and be written then; only a newer version rules that out.
    perhaps: BTreeSet<NodeId>,
}

impl IsrState {
    /// The set that the coordinator holds as version `partition_epoch`.
    #[must_use]
    pub fn committed(isr: BTreeSet<NodeId>, partition_epoch: i32) -> Self {
        Self { committed: isr, partition_epoch, proposed: None, perhaps: BTreeSet::new() }
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

    /// The version of the committed set.
    #[must_use]
    pub const fn partition_epoch(&self) -> i32 {
        self.partition_epoch
    }

    /// Whether the committed set holds `node`.
    #[must_use]
    pub fn contains(&self, node: NodeId) -> bool {
        self.committed.contains(&node)
    }

    /// The maximal ISR: whoever is in the committed set or in one that the coordinator may have written by now. Each of
    /// them must have a record before it counts as committed, for each may be elected (KIP-497).
    pub fn maximal_ids(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.committed.union(&self.perhaps).copied()
    }

    /// The change under way.
    #[must_use]
    pub const fn proposed(&self) -> Option<&BTreeMap<NodeId, BrokerEpoch>> {
        self.proposed.as_ref()
    }

    /// Notes `isr` as the change under way.
    pub fn propose(&mut self, isr: BTreeMap<NodeId, BrokerEpoch>) {
        self.perhaps.extend(isr.keys().copied());
        self.proposed = Some(isr);
    }

    /// The coordinator holds `isr` as version `partition_epoch`; returns whether that is news. Proposals on an older
    /// version can be written no more.
    pub fn commit(&mut self, isr: BTreeSet<NodeId>, partition_epoch: i32) -> bool {
        let is_newer = partition_epoch > self.partition_epoch;
        if is_newer {
            *self = Self::committed(isr, partition_epoch);
        }
        is_newer
    }
}
