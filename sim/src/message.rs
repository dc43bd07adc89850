//! What nodes, coordinator and clients tell each other.

use std::sync::Arc;

use bytes::Bytes;
use duolog_log_core::ids::{BrokerEpoch, LeaderEpoch, NodeId, Offset};
use duolog_log_core::record::TransactionOutcome;
use duolog_log_core::replication::effect::IsrProposal;
use duolog_log_core::replication::election::{LogTip, PartitionState, Restart};
use duolog_log_core::replication::epochs::EpochEnd;
use duolog_log_core::replication::partition::{
    Acks, EpochQuestion, FetchAnswer, FetchQuestion, ReplicationError,
};

/// Who sends or gets a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Address {
    /// A replica.
    Node(NodeId),
    /// The coordinator.
    Coordinator,
    /// A producer or consumer.
    Client(usize),
}

/// A message under way.
#[derive(Clone, Debug)]
pub struct Envelope {
    /// Who sent it.
    pub from: Address,
    /// Who gets it.
    pub to: Address,
    /// What it says.
    pub message: Message,
}

/// What is said.
#[derive(Clone, Debug)]
pub enum Message {
    /// Follower to leader.
    Fetch(FetchQuestion),
    /// Leader to follower, with whole batches.
    FetchAnswered(FetchQuestion, Result<(FetchAnswer, Vec<Bytes>), ReplicationError>),
    /// Follower to leader.
    AskEpochEnd(EpochQuestion),
    /// Leader to follower.
    EpochEndAnswered(EpochQuestion, Result<Option<EpochEnd>, ReplicationError>),
    /// Producer to leader.
    Produce(ProduceRequest),
    /// Leader to producer.
    Produced {
        /// The request's number.
        attempt: u64,
        /// How it went.
        outcome: Outcome,
    },
    /// Consumer to leader.
    Read {
        /// From where: inclusive.
        offset: i64,
        /// What it may see.
        isolation: Isolation,
    },
    /// Leader to consumer.
    WasRead {
        /// From where it was asked.
        offset: i64,
        /// The offset to go on from; `None` when this node could not serve.
        next_offset: Option<i64>,
    },
    /// Node to coordinator.
    Register {
        /// One number for one wish, however often it is sent.
        nonce: u64,
        /// What the node knows of its log.
        restart: Restart,
    },
    /// Coordinator to node.
    Registered {
        /// The wish's number.
        nonce: u64,
        /// The node's run.
        broker_epoch: BrokerEpoch,
        /// The partition now.
        state: Arc<PartitionState>,
    },
    /// Node to coordinator.
    Heartbeat {
        /// The node's run.
        broker_epoch: BrokerEpoch,
        /// The newest version of the partition's state that it knows.
        seen: i32,
        /// Where its log ends.
        tip: LogTip,
    },
    /// Coordinator to node: that run of yours is over.
    SessionOver(BrokerEpoch),
    /// Coordinator to node.
    State(Arc<PartitionState>),
    /// Leader to coordinator.
    Propose(IsrProposal),
    /// Coordinator to leader.
    ProposalRefused {
        /// The epoch that it named.
        leader_epoch: LeaderEpoch,
        /// The version that it named.
        partition_epoch: i32,
    },
}

/// One batch to append.
#[derive(Clone, Debug)]
pub struct ProduceRequest {
    /// The request's number.
    pub attempt: u64,
    /// How many replicas the answer waits for.
    pub acks: Acks,
    /// The records' values: each is unique.
    pub values: Vec<u64>,
    /// Producer id, producer epoch, first sequence.
    pub producer: Option<(i64, i16, i32)>,
    /// What the batch has to do with a transaction.
    pub kind: Kind,
}

/// See [`ProduceRequest::kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing.
    Plain,
    /// It belongs to the producer's open one, or opens one.
    Transactional,
    /// It ends it.
    Marker {
        /// How.
        outcome: TransactionOutcome,
        /// Of the coordinator that decided; here it counts the transactions.
        coordinator_epoch: i32,
    },
}

/// What a consumer may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// All below the HW.
    ReadUncommitted,
    /// All below the LSO but what was aborted.
    ReadCommitted,
}

/// How a produce request went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Acknowledged; the base offset.
    Acknowledged(Offset),
    /// Try again, perhaps elsewhere.
    Retry,
    /// The producer's sequence does not follow.
    OutOfSequence,
}
