//! How the errors of coordinators that deliver name what their logs refuse.

/// From what the log and the records refuse, for an error that has these names.
macro_rules! named_as_the_log_refuses {
    ($error:ident) => {
        impl From<crate::error::AppendError> for $error {
            fn from(error: crate::error::AppendError) -> Self {
                use crate::error::AppendError;
                match error {
                    AppendError::NotEnoughReplicas => Self::NotAvailable,
                    AppendError::TooLarge => Self::TooLarge,
                    // These logs have no producers.
                    AppendError::NotLeader
                    | AppendError::Storage
                    | AppendError::ProducerFenced
                    | AppendError::NotInTransaction
                    | AppendError::CoordinatorFenced => Self::NotCoordinator,
                }
            }
        }

        impl From<crate::record::TooLong> for $error {
            fn from(_: crate::record::TooLong) -> Self {
                Self::TooLarge
            }
        }
    };
}

pub(crate) use named_as_the_log_refuses;
