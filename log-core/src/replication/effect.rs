//! What a replication machine asks its owner to perform, before it gives the next input.

use std::collections::BTreeSet;

use crate::ids::{LeaderEpoch, NodeId, Offset};

/// One thing to do. Offsets are exclusive ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A new epoch begins at the log end: note it in `leader-epoch-checkpoint` before the first append.
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
    /// Ask the coordinator to write this ISR if its version is still `partition_epoch` and its leader
    /// `leader_epoch`; tell the machine the outcome.
    ProposeIsr {
        /// The whole proposed set.
        isr: BTreeSet<NodeId>,
        /// The version it replaces.
        partition_epoch: i32,
        /// The proposer's epoch: an old leader is refused.
        leader_epoch: LeaderEpoch,
    },
    /// Readers beyond this offset are to be told that it is gone.
    Truncated {
        /// The LEO now.
        log_end_offset: Offset,
    },
}
