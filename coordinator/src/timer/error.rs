//! Why a timer coordinator refuses.

use crate::error::AppendError;
use crate::record::TooLong;

/// A refusal; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimerError {
    /// This node does not lead the partition of timers.
    #[error("this node is not the coordinator of timers")]
    NotCoordinator,
    /// The partition is still being read.
    #[error("the partition of timers is still loading")]
    Loading,
    /// It cannot serve just now.
    #[error("the coordinator of timers is not available")]
    NotAvailable,
    /// The message is larger than the log takes.
    #[error("too large to store")]
    TooLarge,
    /// As many messages wait as may.
    #[error("too many messages wait for their time")]
    TooMany,
}

impl From<AppendError> for TimerError {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::NotEnoughReplicas => Self::NotAvailable,
            AppendError::TooLarge => Self::TooLarge,
            // The log of timers has no producers.
            AppendError::NotLeader
            | AppendError::Storage
            | AppendError::ProducerFenced
            | AppendError::NotInTransaction
            | AppendError::CoordinatorFenced => Self::NotCoordinator,
        }
    }
}

impl From<TooLong> for TimerError {
    fn from(_: TooLong) -> Self {
        Self::TooLarge
    }
}
