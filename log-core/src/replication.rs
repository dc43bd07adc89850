//! The rules of replication as plain state: who leads, what is committed, what is stable.
//!
//! Nothing here touches a file or a socket. A single node is the case of one replica.

pub mod effect;
pub mod epochs;
pub mod isr;
pub mod partition;
