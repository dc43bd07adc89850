//! Why a transaction coordinator refuses.

use crate::error::AppendError;
use crate::record::TooLong;

/// A refusal; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TxnError {
    /// The coordinator cannot serve just now; retry, after looking it up again.
    #[error("coordinator is not available")]
    CoordinatorNotAvailable,
    /// This node does not lead the id's partition.
    #[error("this node is not the transaction's coordinator")]
    NotCoordinator,
    /// The id's partition is still being read.
    #[error("the partition of transactions is still loading")]
    CoordinatorLoadInProgress,
    /// The transactional id is empty.
    #[error("the transactional id is empty")]
    InvalidRequest,
    /// Not positive, or above `transaction.max.timeout.ms`.
    #[error("the transaction timeout is out of range")]
    InvalidTransactionTimeout,
    /// The transactional id is not known, or has another producer id.
    #[error("the producer id is not the one of this transactional id")]
    InvalidProducerIdMapping,
    /// Another producer has taken the transactional id, or the transaction has timed out.
    #[error("a newer producer has the transactional id")]
    ProducerFenced,
    /// The last transaction's markers are still being written; retry.
    #[error("another transaction of this id is being completed")]
    ConcurrentTransactions,
    /// The transaction is not in a state in which this can be done.
    #[error("the transaction's state does not allow this")]
    InvalidTxnState,
    /// No such transactional id.
    #[error("no such transactional id")]
    TransactionalIdNotFound,
    /// What would have to be stored is larger than the log takes.
    #[error("too large to store")]
    TooLarge,
}

impl From<AppendError> for TxnError {
    /// As Kafka's `TransactionStateManager.appendTransactionToLog`, but for a disk that refuses: there
    /// it takes the coordinator along, here the disk may be full and the coordinator goes on.
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::NotLeader => Self::NotCoordinator,
            AppendError::NotEnoughReplicas | AppendError::Storage => Self::CoordinatorNotAvailable,
            AppendError::TooLarge => Self::TooLarge,
            // The log of transactions has no producers.
            AppendError::ProducerFenced
            | AppendError::NotInTransaction
            | AppendError::CoordinatorFenced => Self::NotCoordinator,
        }
    }
}

impl From<TooLong> for TxnError {
    fn from(_: TooLong) -> Self {
        Self::TooLarge
    }
}
