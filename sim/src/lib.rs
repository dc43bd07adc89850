//! A seeded simulator of one partition and its replicas.
//!
//! Three to five nodes run the real `Log` on memory disks and the real replication machine; time, network, coordinator,
//! clients and faults are the simulator's and follow from the seed alone. At every step the [`checker`] holds what
//! happened against what is promised, see there. A seed that breaks a promise is run again by
//! `duolog sim replay SEED` and kept as a named test.
//!
//! Read `plan` (what a seed decides), `run` (the loop), `node`, `coordinator`, `clients`, `chaos`, `checker`, `trace`.

pub mod case;
mod chaos;
pub mod checker;
mod clients;
mod coordinator;
pub mod coverage;
mod message;
mod network;
mod node;
mod observer;
pub mod plan;
pub mod random;
pub mod run;
mod storage;
pub mod timeline;
pub mod trace;
mod values;

#[cfg(test)]
mod tests;
