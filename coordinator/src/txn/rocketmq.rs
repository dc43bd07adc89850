//! RocketMQ's transactions: one shard for each partition of `__rmq.half`.
//!
//! ```text
//! (none) ─ stored ────────────────────────▶ open
//! open ─── commit ────────────────────────▶ decided ─ in its queue, on disk ─▶ (none)
//! open ─── rollback ──────────────────────▶ (none)
//! open ─── a producer is asked ───────────▶ open, asked once more
//! open ─── asked too often, or too old ───▶ decided ─ in TRANS_CHECK_MAX_TIME_TOPIC ─▶ (none)
//! decided ─ whatever a producer says ─────▶ decided: the first word counts
//! ```
//! A half message lies in this log and nowhere else, so nobody sees it and it holds up nobody's queue.
//! A decision is a note of [`crate::delivery`], which brings the message to its queue once, whatever
//! stops in between, without a marker or a gap. What is open is known here by its place in the log,
//! some thirty bytes for each, and is rebuilt by reading the log; the log's start follows the first
//! message that is still needed. Unlike the original, asking about a message does not store it anew:
//! its offset stays what the producer was told. Source: RocketMQ's `TransactionalMessageServiceImpl`,
//! `EndTransactionProcessor`. Read the modules in this order.

pub mod error;
pub mod event;

pub mod half;

pub mod check_back;

pub mod shard;

#[cfg(test)]
mod tests;
