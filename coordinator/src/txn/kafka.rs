//! Kafka's transaction coordinator: one shard per partition of `__transaction_state`.
//!
//! ```text
//! (none) ------ InitProducerId -------------> Empty
//! Empty, Complete* --- AddPartitions -------> Ongoing
//! Ongoing ------------ AddPartitions -------> Ongoing, with more partitions
//! Ongoing ------------ EndTxn(commit) ------> PrepareCommit
//! Ongoing ------------ EndTxn(abort) -------> PrepareAbort
//! Ongoing ------------ InitProducerId ------> PrepareAbort, the epoch raised: fences the zombie
//! Ongoing ------------ timeout -------------> PrepareAbort, the epoch raised
//! Empty, Complete* --- EndTxn(abort), v5 ---> PrepareAbort: only the epoch rises (KIP-890)
//! PrepareCommit ------ markers written -----> CompleteCommit
//! PrepareAbort ------- markers written -----> CompleteAbort
//! Empty, Complete* --- InitProducerId ------> Empty, a higher epoch or another producer id
//! Empty, Complete* --- unused for long -----> (none), a tombstone
//! ```
//!
//! Under transactions v2 (EndTxn v5) preparing raises the epoch, so that a record or a marker of
//! one transaction can never pass for one of the next. Source: KIP-98, KIP-360, KIP-890;
//! `TransactionCoordinator`, `TransactionMetadata` of Kafka 4.3.1. What is
//! stored: [`crate::record::transaction`]. Read the modules in this order.

pub mod config;
pub mod error;
pub mod event;
pub mod response;

pub mod shard;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
