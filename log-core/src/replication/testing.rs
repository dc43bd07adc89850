//! Replicas for the tests of the rules.

use std::collections::BTreeSet;

use super::partition::{Assignment, LogPosition, Partition, PartitionRules};
use crate::ids::{LeaderEpoch, NodeId, Offset};

/// `replica.lag.time.max.ms`.
pub(super) const LAG_MS: i64 = 30_000;

pub(super) fn nodes(ids: &[i32]) -> BTreeSet<NodeId> {
    ids.iter().map(|&id| NodeId(id)).collect()
}

/// A log of `start` to `end` without transactions.
pub(super) fn log(start: i64, end: i64) -> LogPosition {
    LogPosition {
        log_start_offset: Offset(start),
        log_end_offset: Offset(end),
        first_unstable_offset: None,
    }
}

/// The replica of node 1, which has no role yet.
pub(super) fn partition(min_insync_replicas: usize, end: i64, high_watermark: i64) -> Partition {
    let rules = PartitionRules { min_insync_replicas, replica_lag_time_max_ms: LAG_MS };
    Partition::new(NodeId(1), rules, log(0, end), Offset(high_watermark))
}

/// The first version of a partition's state.
pub(super) fn assignment(min_insync_replicas: usize, replicas: &[i32], isr: &[i32]) -> Assignment {
    let (replicas, isr) = (nodes(replicas), nodes(isr));
    Assignment { replicas, isr, partition_epoch: 0, min_insync_replicas }
}

/// Node 1 as the leader of epoch 1.
pub(super) fn leader(
    min_insync_replicas: usize,
    replicas: &[i32],
    isr: &[i32],
    end: i64,
) -> Partition {
    let mut partition = partition(min_insync_replicas, end, 0);
    let assignment = assignment(min_insync_replicas, replicas, isr);
    partition.become_leader(LeaderEpoch(1), assignment, 0).unwrap();
    partition.drain_effects();
    partition
}
