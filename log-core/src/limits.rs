//! Every bound of the ground layer, and the assertions that tie them together.

/// Gates armed at once on one node.
pub const GATES_MAX: usize = 1024;

/// Replicas of one partition.
pub const REPLICAS_MAX: usize = 64;

/// Descriptors that a file disk keeps open between calls.
pub const OPEN_FILES_MAX: usize = 4096;

/// Index files of sealed segments that are mapped at once.
pub const MAPPED_FILES_MAX: usize = 1024;

/// What the records of one stored batch may decompress to when a lookup decodes it. Produce refuses
/// larger ones.
pub const DECOMPRESSED_BATCH_BYTES_MAX: usize = 512 << 20;

/// Tags of one segment that are kept in memory until its file can be written: 4 million offsets.
pub const TAG_RUN_BYTES_MAX: usize = 20 << 20;
