//! How a partition's log lies on a disk: Kafka's files, byte for byte, behind a port.

pub mod checkpoint;
pub mod disk;
#[cfg(feature = "file")]
pub mod file_disk;
#[cfg(feature = "file")]
mod mmap;
pub mod names;
