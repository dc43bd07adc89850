//! Messages in hand: which of a partition's messages a group has taken and not settled yet. One shard
//! for each partition of `__share_group_state`.
//!
//! ```text
//!             ┌──────── time is up, or given back ───────┐
//!             ▼                                          │
//! (new) ─▶ available ── taken ──▶ in hand ── settled ──▶ done
//!             └─ delivered too often ─▶ copied to the dead letters ─▶ done
//! ```
//! A group has a [`window`] over a partition: below its start all is done, from its end on nothing was
//! given out yet, and between them it knows each message that is not done. RocketMQ's pop is served
//! from it; Kafka's share groups have the same states. A message is delivered again where it stands:
//! nothing is copied before it is dead, and that copy is brought to its topic by [`crate::delivery`],
//! once. The window's start is the group's committed position, which whoever drives this commits.
//! Read the modules in this order.

pub mod error;
pub mod event;

pub mod window;

pub mod shard;

mod taking;
mod upkeep;

#[cfg(test)]
mod tests;
