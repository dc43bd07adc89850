//! Why a coordinator of half messages refuses.

use crate::error::AppendError;
use crate::record::TooLong;

/// A refusal; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HalfError {
    /// This node does not lead the partition of half messages.
    #[error("this node is not the coordinator of half messages")]
    NotCoordinator,
    /// The partition is still being read.
    #[error("the partition of half messages is still loading")]
    Loading,
    /// It cannot serve just now.
    #[error("the coordinator of half messages is not available")]
    NotAvailable,
    /// The message is larger than the log takes.
    #[error("too large to store")]
    TooLarge,
    /// As many messages are open as may be.
    #[error("too many half messages are open")]
    TooMany,
}

impl From<AppendError> for HalfError {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::NotEnoughReplicas => Self::NotAvailable,
            AppendError::TooLarge => Self::TooLarge,
            // The log of half messages has no producers.
            AppendError::NotLeader
            | AppendError::Storage
            | AppendError::ProducerFenced
            | AppendError::NotInTransaction
            | AppendError::CoordinatorFenced => Self::NotCoordinator,
        }
    }
}

impl From<TooLong> for HalfError {
    fn from(_: TooLong) -> Self {
        Self::TooLarge
    }
}
