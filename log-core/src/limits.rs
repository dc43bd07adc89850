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

/// Keys of one segment that are kept in memory until its file can be written: 2.5 million. What lies
/// behind them is found by reading.
pub const KEY_RUN_BYTES_MAX: usize = 20 << 20;

/// Offsets, and bytes of batches (one more in any case), that one search takes into the index of keys:
/// some milliseconds.
pub const KEY_STEP_OFFSETS: i64 = 16_384;
/// See [`KEY_STEP_OFFSETS`].
pub const KEY_STEP_BYTES: usize = 2 << 20;

/// Offsets that one search in the index of keys finds.
pub const KEY_HITS_MAX: usize = 16_384;

/// Tags of one segment that are kept in memory until its file can be written: 4 million offsets.
pub const TAG_RUN_BYTES_MAX: usize = 20 << 20;
