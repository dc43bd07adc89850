//! How a partition's log lies on a disk: Kafka's files, byte for byte, behind a port.

pub(crate) mod append_times;
pub mod checkpoint;
pub mod disk;
#[cfg(feature = "file")]
pub mod file_disk;
pub(crate) mod growing;
pub(crate) mod index;
pub mod keys;
#[cfg(feature = "file")]
mod mmap;
pub mod names;
pub(crate) mod segment;
pub(crate) mod side_file;
pub(crate) mod snapshot;
pub(crate) mod sparse;
pub mod tags;
pub(crate) mod walk;
