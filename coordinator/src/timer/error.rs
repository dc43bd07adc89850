//! Why a timer coordinator refuses.

use crate::delivery::refusals::named_as_the_log_refuses;

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

named_as_the_log_refuses!(TimerError);
