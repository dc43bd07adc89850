//! What a transaction coordinator answers and tells.

use duolog_log_core::record::TransactionOutcome;

use crate::record::transaction::{
    Partitions, ProducerIdAndEpoch, TransactionalId, TxnState, TxnVersion,
};

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// What the producer is to use from now on.
    ProducerId(ProducerIdAndEpoch),
    /// Ask again with a fresh producer id; nothing has changed.
    NeedsProducerId,
    /// The partitions are in the transaction.
    Added,
    /// Those of the partitions that are in the transaction.
    Verified(Partitions),
    /// How it ends is decided; the producer goes on with this.
    Ended(ProducerIdAndEpoch),
    /// The news was taken in.
    Noted,
    /// One transactional id.
    Described(Described),
    /// Transactional ids in order.
    Listed(Vec<Listed>),
}

/// A transactional id as tools show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Its state.
    pub state: TxnState,
    /// How long its transactions may last.
    pub timeout_ms: i32,
    /// When the present transaction began, milliseconds since 1970; -1 if none did.
    pub started_ms: i64,
    /// The producer.
    pub producer: ProducerIdAndEpoch,
    /// What the present transaction has written to.
    pub partitions: Partitions,
}

/// One line of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The transactional id.
    pub id: TransactionalId,
    /// Its producer id.
    pub producer_id: i64,
    /// Its state.
    pub state: TxnState,
}

/// The markers that end a transaction, one into each partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Markers {
    /// The transactional id.
    pub id: TransactionalId,
    /// As the markers are to have it.
    pub producer: ProducerIdAndEpoch,
    /// The epoch in which this coordinator serves; fences an older one.
    pub coordinator_epoch: i32,
    /// What they say.
    pub outcome: TransactionOutcome,
    /// The protocol under which it ends.
    pub version: TxnVersion,
    /// Where to.
    pub partitions: Partitions,
}

/// News that answer no request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Write these, as often as it takes, then say [`MarkersWritten`](super::event::MarkersWritten).
    WriteMarkers(Markers),
}
