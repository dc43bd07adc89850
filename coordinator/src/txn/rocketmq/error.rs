//! Why a coordinator of half messages refuses.

use crate::delivery::refusals::named_as_the_log_refuses;

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

named_as_the_log_refuses!(HalfError);
