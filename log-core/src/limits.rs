//! Every bound of the ground layer, and the assertions that tie them together.

/// Gates armed at once on one node.
pub const GATES_MAX: usize = 1024;

/// Replicas of one partition.
pub const REPLICAS_MAX: usize = 64;
