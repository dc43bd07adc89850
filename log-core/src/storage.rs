//! How a partition's log lies on a disk: Kafka's files, byte for byte, behind a port.

pub mod disk;
