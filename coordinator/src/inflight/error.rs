//! Why a coordinator of messages in hand refuses.

use crate::delivery::refusals::named_as_the_log_refuses;

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

named_as_the_log_refuses!(InflightError);
