//! Why a coordinator of messages in hand refuses.

use crate::error::AppendError;
use crate::record::TooLong;

/// A refusal; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InflightError {
    /// This node does not lead the partition.
    #[error("this node is not the coordinator of these messages in hand")]
    NotCoordinator,
    /// The partition is still being read.
    #[error("the log of messages in hand is still loading")]
    Loading,
    /// It cannot serve just now.
    #[error("the coordinator of messages in hand is not available")]
    NotAvailable,
    /// A record is larger than the log takes.
    #[error("too large to store")]
    TooLarge,
    /// As many groups have messages in hand as may.
    #[error("too many groups have messages in hand")]
    TooMany,
}

impl From<AppendError> for InflightError {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::NotEnoughReplicas => Self::NotAvailable,
            AppendError::TooLarge => Self::TooLarge,
            // This log has no producers.
            AppendError::NotLeader
            | AppendError::Storage
            | AppendError::ProducerFenced
            | AppendError::NotInTransaction
            | AppendError::CoordinatorFenced => Self::NotCoordinator,
        }
    }
}

impl From<TooLong> for InflightError {
    fn from(_: TooLong) -> Self {
        Self::TooLarge
    }
}
