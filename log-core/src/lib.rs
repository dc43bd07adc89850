//! The ground of Duolog: record batches, one partition's log, and the rules of replication.
//!
//! Nothing here knows a socket, a clock, a thread or a wire protocol; time and ids are arguments, files are reached
//! through a port. Read the modules in this order.

pub mod event;
pub mod gate;
pub mod ids;
pub mod limits;
pub mod log;
pub mod offset_set;
pub mod producers;
pub mod record;
pub mod replication;
pub mod storage;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
