//! What a replication machine asks its owner to perform, before it gives the next input.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{BrokerEpoch, LeaderEpoch, NodeId, Offset};

/// One thing to do. Offsets are exclusive ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A new epoch begins at the log end.
    LeaderElected {
        /// The new leader's epoch.
        epoch: LeaderEpoch,
        /// Where it begins to write: inclusive.
        start_offset: Offset,
    },
    /// Publish the HW; release acknowledgements and reads that waited for it.
    HighWatermarkAdvanced {
        /// The HW before.
        from: Offset,
        /// The HW now.
        to: Offset,
    },
    /// Publish the LSO; release reads of stable data, also when only a marker moved it.
    LastStableOffsetAdvanced {
        /// The LSO before.
        from: Offset,
        /// The LSO now.
        to: Offset,
    },
    /// Ask the coordinator to write this ISR, again until it answers with a newer version or refuses.
    ProposeIsr(IsrProposal),
    /// The ISR that the coordinator holds is another one.
    IsrChanged {
        /// The committed ISR now.
        isr: BTreeSet<NodeId>,
        /// Its version.
        partition_epoch: i32,
    },
    /// The leader's log starts here: move the local one up to it, then tell the machine.
    RaiseLogStart {
        /// The earliest offset to keep: inclusive.
        to: Offset,
    },
    /// Readers beyond this offset are to be told that it is gone.
    Truncated {
        /// The LEO now.
        log_end_offset: Offset,
    },
}

/// A wish for another ISR, written only if the coordinator's state is still the one it is based on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsrProposal {
    /// The proposer.
    pub leader: NodeId,
    /// The proposer's epoch: an old leader is refused.
    pub leader_epoch: LeaderEpoch,
    /// The version it replaces.
    pub partition_epoch: i32,
    /// The whole proposed set. Who joins is named with the broker epoch of its fetch: if that node has restarted since,
    /// its log may be shorter, and the proposal is refused (KIP-903).
    pub isr: BTreeMap<NodeId, BrokerEpoch>,
}
