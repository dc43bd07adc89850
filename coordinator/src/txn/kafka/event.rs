//! What a transaction coordinator is asked and told.

use duolog_log_core::record::TransactionOutcome;

use crate::record::transaction::{Partitions, ProducerIdAndEpoch, TransactionalId, TxnVersion};

/// InitProducerId (key 22) with a transactional id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitProducerId {
    /// The transactional id.
    pub id: TransactionalId,
    /// How long its transactions may last.
    pub timeout_ms: i32,
    /// What the producer believes to have, if it recovers from an error (KIP-360).
    pub expected: Option<ProducerIdAndEpoch>,
    /// A producer id that nobody has. Without one the answer may be
    /// [`Response::NeedsProducerId`](super::response::Response::NeedsProducerId).
    pub fresh: Option<i64>,
}

/// AddPartitionsToTxn (key 24) and AddOffsetsToTxn (key 25), by a client or by the node for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddPartitions {
    /// The transactional id.
    pub id: TransactionalId,
    /// Whose transaction.
    pub producer: ProducerIdAndEpoch,
    /// What to add, or to look for.
    pub partitions: Partitions,
    /// The protocol that the client speaks.
    pub version: TxnVersion,
}

/// EndTxn (key 26).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndTxn {
    /// The transactional id.
    pub id: TransactionalId,
    /// Whose transaction.
    pub producer: ProducerIdAndEpoch,
    /// How it is to end.
    pub outcome: TransactionOutcome,
    /// The protocol that the client speaks.
    pub version: TxnVersion,
    /// As in [`InitProducerId::fresh`].
    pub fresh: Option<i64>,
}

/// All markers of a prepared transaction are in the logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkersWritten {
    /// The transactional id.
    pub id: TransactionalId,
    /// As the markers have it.
    pub producer: ProducerIdAndEpoch,
}

/// ListTransactions (key 66): what passes every filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListTransactions {
    /// Names of states; empty for all.
    pub states: Vec<String>,
    /// Producer ids; empty for all.
    pub producer_ids: Vec<i64>,
    /// Only those that were begun longer ago than this; negative for all.
    pub longer_than_ms: i64,
}

/// An input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// InitProducerId.
    InitProducerId(InitProducerId),
    /// Adds partitions to the transaction, which begins with the first.
    AddPartitions(AddPartitions),
    /// Asks which partitions are in the transaction (KIP-890).
    VerifyPartitions(AddPartitions),
    /// Commits or aborts.
    EndTxn(EndTxn),
    /// The decision how the transaction ends is in the log: markers may be written.
    Prepared(TransactionalId),
    /// They are.
    MarkersWritten(MarkersWritten),
    /// The transaction has lasted too long.
    TimedOut(TransactionalId),
    /// Time to look for ids that nobody uses.
    LookForExpired,
    /// This id may be one.
    Expire(TransactionalId),
    /// DescribeTransactions (key 65), one of its ids.
    Describe(TransactionalId),
    /// ListTransactions.
    List(ListTransactions),
}

/// What the coordinator is woken for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// A transaction's timeout.
    Timeout(TransactionalId),
    /// The next look for ids that nobody uses.
    Expiration,
}
