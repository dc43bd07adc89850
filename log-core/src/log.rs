//! One partition's log.

pub mod config;
pub mod error;
pub mod outcome;

pub use config::{CleanupPolicy, LogConfig, LogIdentity, OpenHint, Shutdown};
pub use error::LogError;
pub use outcome::{
    AbortedTxn, AppendBatch, AppendOrigin, Appended, FlushPoint, Novelty, ReadBatches, ReadMinimum,
    RecoveryReport, TimestampOffset,
};
