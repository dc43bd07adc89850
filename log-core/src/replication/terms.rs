//! The words that leader, follower and coordinator share: rules, positions, questions, answers, refusals.
//!
//! Questions and answers are those of Fetch v12+ and OffsetForLeaderEpoch; who sends them over what is the owner's.

use std::collections::BTreeSet;

use super::epochs::EpochEnd;
use crate::ids::{BrokerEpoch, LeaderEpoch, NodeId, Offset};

/// What the replica does for this partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Nothing is known yet: neither reads nor writes are served.
    Offline,
    /// Takes writes, decides what is committed.
    Leader,
    /// Copies this leader's log.
    Follower(NodeId),
}

/// How many replicas an answer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acks {
    /// Nothing: no answer at all.
    None,
    /// The leader's log (page cache, not disk).
    Leader,
    /// Every replica of the ISR, of which there are at least `min.insync.replicas`.
    All,
}

/// Rules that the topic or the node sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionRules {
    /// `min.insync.replicas`, until an [`Assignment`] says another one; at most the number of replicas counts.
    pub min_insync_replicas: usize,
    /// `replica.lag.time.max.ms`: longer behind means out of the ISR.
    pub replica_lag_time_max_ms: i64,
}

/// How a follower finds where its log leaves its leader's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TruncationRule {
    /// Each fetch names the epoch of its last record; the leader answers where that epoch ends (KIP-595).
    #[default]
    OnFetch,
    /// Asks OffsetForLeaderEpoch until both logs agree, then fetches (KIP-101, KIP-279).
    AskFirst,
    /// Cuts to its own HW, as before KIP-101. Loses acknowledged records when a follower that restarted is elected
    /// before it has caught up: a lesson, never a setting.
    HighWatermark,
}

/// Who replicates a partition, as the coordinator (metadata log or ZooKeeper) says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Every replica, the local one included.
    pub replicas: BTreeSet<NodeId>,
    /// The committed ISR.
    pub isr: BTreeSet<NodeId>,
    /// Version of this state; an ISR change names the one it is based on (KIP-497).
    pub partition_epoch: i32,
    /// `min.insync.replicas` as it is in this version.
    pub min_insync_replicas: usize,
}

/// Where the local log stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPosition {
    /// Earliest readable offset: inclusive.
    pub log_start_offset: Offset,
    /// LEO: next offset to write, exclusive.
    pub log_end_offset: Offset,
    /// First offset of the oldest transaction that is open, or whose marker is not yet below the HW.
    pub first_unstable_offset: Option<Offset>,
}

/// A follower's fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchQuestion {
    /// Who asks.
    pub replica: NodeId,
    /// Of the run of the process that asks: what an earlier run claimed is void (KIP-903).
    pub broker_epoch: BrokerEpoch,
    /// The epoch in which it follows: fences both ways (KIP-320).
    pub leader_epoch: LeaderEpoch,
    /// Its LEO: it has everything below.
    pub fetch_offset: Offset,
    /// The epoch of its last record; `None` for an empty log and for rules that do not send it.
    pub last_fetched_epoch: Option<LeaderEpoch>,
}

/// What the leader makes of a [`FetchQuestion`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchAnswer {
    /// The owner adds the batches from the asked offset on.
    Records {
        /// The leader's HW: exclusive.
        high_watermark: Offset,
        /// The leader's log start: inclusive.
        log_start_offset: Offset,
    },
    /// The logs part at or below this epoch's end: cut, then ask again.
    Diverging(EpochEnd),
    /// The asked offset or epoch has no place in the leader's log. On Kafka's wire both bounds are asked for by
    /// ListOffsets.
    OutOfRange {
        /// The leader's log start: inclusive.
        log_start_offset: Offset,
        /// The leader's LEO: exclusive.
        log_end_offset: Offset,
    },
}

/// OffsetForLeaderEpoch: where does `epoch` end in the leader's log?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochQuestion {
    /// The epoch in which the follower follows: fences both ways (KIP-320).
    pub leader_epoch: LeaderEpoch,
    /// The epoch of its last record.
    pub epoch: LeaderEpoch,
}

/// Where an `acks=all` write stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckState {
    /// The HW has not passed it yet.
    Waiting,
    /// Every replica of a large enough ISR has it.
    Acknowledged,
    /// It is committed, but the ISR fell below the minimum after the append: the client must not rely on it.
    NotEnoughReplicasAfterAppend,
    /// The leader changed: whether it survives is the new leader's to say.
    NotLeader,
}

/// Why a request is refused; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplicationError {
    /// This replica does not lead the partition.
    #[error("node {local} does not lead this partition")]
    NotLeader {
        /// The replica asked.
        local: NodeId,
    },
    /// The request comes from before a leader change.
    #[error("leader epoch {given} is older than {current}")]
    FencedLeaderEpoch {
        /// What the request said.
        given: LeaderEpoch,
        /// What this replica knows.
        current: LeaderEpoch,
    },
    /// The request knows of a leader change that this replica has not heard of.
    #[error("leader epoch {given} is newer than {current}")]
    UnknownLeaderEpoch {
        /// What the request said.
        given: LeaderEpoch,
        /// What this replica knows.
        current: LeaderEpoch,
    },
    /// `acks=all` and the ISR is smaller than `min.insync.replicas`.
    #[error("{in_sync} replicas are in sync, {required} are required")]
    NotEnoughReplicas {
        /// Size of the committed ISR.
        in_sync: usize,
        /// `min.insync.replicas`, at most the number of replicas.
        required: usize,
    },
    /// The node is no replica of this partition.
    #[error("node {0} is no replica of this partition")]
    UnknownReplica(NodeId),
    /// The request was sent by an earlier run of a node that has restarted since.
    #[error("broker epoch {given} is older than {current}")]
    StaleBrokerEpoch {
        /// What the request said.
        given: BrokerEpoch,
        /// The newest that the leader has heard of.
        current: BrokerEpoch,
    },
}
