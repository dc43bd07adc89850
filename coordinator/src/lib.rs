//! Groups, offsets and transactions of both protocols, as replayable state machines.
//!
//! Nothing here knows a socket, a clock, a thread, a random number or a wire protocol. A request
//! comes in as a plain struct with `now` beside it; out come records for the internal topic,
//! answers and timers. Durable state is what a replay of the log gives and is changed by nothing else; live
//! state (sessions, waiting joins) dies with the leader and is rebuilt. Read the modules in this
//! order.

pub mod limits;
pub mod time;

pub mod error;
pub mod pattern;
pub mod record;
pub mod shard;

pub mod runtime;

pub mod delivery;

pub mod group;

pub mod timer;

pub mod inflight;

pub mod txn;

#[cfg(test)]
mod testing;
