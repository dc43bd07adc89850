//! Stand-ins for tests and the simulator: feature `testing`.

pub mod mem_disk;
