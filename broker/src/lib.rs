//! The node: configuration, storage ownership, the Kafka front end and the assembly of it all.
//!
//! Read the modules in this order.

pub mod config;
pub mod limits;

pub mod data_dir;
pub mod log_dirs;
pub mod partitions;

pub mod controller;
pub mod coordinators;
pub mod kafka;
pub mod node;
pub mod telemetry;

pub mod bridge_backend;

pub mod explain;
pub mod import;
pub mod serve;
pub mod server;
pub mod sim;

pub mod clock;
mod heavy;
pub mod instruments;
pub mod metrics;
mod pool;
mod random;
mod system;

#[cfg(test)]
mod testing;
