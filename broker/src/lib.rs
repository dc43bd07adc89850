//! The node: configuration, storage ownership, the Kafka front end and the assembly of it all.

pub mod config;
pub mod controller;
pub mod kafka;
