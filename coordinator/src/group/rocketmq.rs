//! RocketMQ's side of a group: members by heartbeat, positions by queue.
//!
//! Positions are in the same store and under the same keys as Kafka's, as the next offset to read.

pub(in crate::group) mod membership;
pub(in crate::group) mod offsets;
pub(in crate::group) mod producers;
pub(in crate::group) mod queue_lock;
