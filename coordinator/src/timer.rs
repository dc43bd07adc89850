//! Messages that wait for their time: one shard for each partition of `rmq_sys_timer`.
//!
//! ```text
//! (none) ── store ──▶ waiting ── due ──▶ noted ── in its topic, on disk ──▶ forgotten
//!                        └───── recall ──▶ forgotten
//! ```
//! The log has the messages; what waits is known here by its time and its place in the log, some
//! fifty bytes for each, and is rebuilt by reading the log. A due message is delivered by
//! [`crate::delivery`], which brings it to its topic once, whatever stops in between. The log's start
//! follows the first message that is still needed. Read the modules in this order.

pub mod error;
pub mod event;

mod wheel;

pub mod shard;

#[cfg(test)]
mod tests;
