//! The rules of replication as plain state: who leads, what is committed, what is stable.
//!
//! Nothing here touches a file or a socket: the owner of a log asks and tells, and carries questions and answers between
//! nodes. A single node is the case of one replica. Read `terms`, `epochs`, `partition`, `leader`, `follower`, `election`,
//! `reassignment`.

pub mod effect;
pub mod election;
pub mod epochs;
mod follower;
pub mod isr;
mod leader;
pub mod partition;
pub mod reassignment;
pub mod terms;

#[cfg(test)]
mod testing;
