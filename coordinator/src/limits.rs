//! Every bound of the coordinators, and the assertions that tie them together.

/// Requests of one partition that wait for an append of their group; more are refused with
/// `CoordinatorNotAvailable`, which clients retry. What the node itself has to tell is not refused.
pub const WAITING_MAX: usize = 65_536;

/// Bytes gathered into one batch, all counted, where the partition takes as many; a single decision
/// may be larger. Below the default of `max.message.bytes` (1,048,588).
pub const APPEND_BYTES_MAX: usize = 900_000;

/// Tombstones that one step of expiry, or of forgetting a topic, writes; the rest follow in further
/// steps, so that no batch outgrows [`APPEND_BYTES_MAX`] by much.
pub const TOMBSTONES_MAX: usize = 1_000;

/// Member ids of one group that were given and not yet come back with (KIP-394); more are refused
/// with `GroupMaxSizeReached`.
pub const PENDING_MEMBERS_MAX: usize = 10_000;

/// Queues of one shard's RocketMQ groups that are locked at a time; more are not locked.
pub const LOCKED_QUEUES_MAX: usize = 100_000;

/// Members of one shard's RocketMQ producer groups; more are not known, so not asked how their half
/// messages ended.
pub const PRODUCERS_MAX: usize = 100_000;

/// Members of one RocketMQ group; further clients are refused with `GroupMaxSizeReached`.
pub const ROCKETMQ_MEMBERS_MAX: usize = 4_096;

/// Half messages of one shard that are open; each takes some 40 bytes. More are refused.
pub const HALVES_MAX: usize = 1_000_000;

/// Bytes of half messages in one batch: to read one of them means to read its batch.
pub const HALF_BATCH_BYTES_MAX: usize = 65_536;

/// Bytes of a regular expression that a member of a consumer group subscribes to.
pub const REGEX_BYTES_MAX: usize = 4_096;

/// Bytes of one string in a stored record, as their lengths are written in 16 bits.
pub const STRING_BYTES_MAX: usize = i16::MAX as usize;

/// Messages of one shard that wait for their time or are on their way; each takes some 50 bytes, 80
/// where it is noted alone. More are refused.
pub const TIMERS_MAX: usize = 4_000_000;

/// Messages that become due in one step; the rest follow in further steps.
pub const DUE_AT_ONCE_MAX: usize = 8_192;

/// Messages on their way to one target; while there are more, none that is due is added, so that what
/// cannot be reached costs the others nothing.
pub const ON_THEIR_WAY_MAX: usize = 65_536;

/// Bytes of timed messages in one batch: to read one of them means to read its batch.
pub const TIMED_BATCH_BYTES_MAX: usize = 65_536;

/// Messages of one partition that a group has taken and not settled; no more are given out.
/// Source: `popInflightMessageThreshold`.
pub const WINDOW_FLIGHTS_MAX: usize = 10_000;

/// Such messages of all groups of one shard; each takes some 150 bytes. Beyond it each window has
/// [`WINDOW_FLIGHTS_FLOOR`] and no more, so that full windows of one group keep no other from going on.
pub const SHARD_FLIGHTS_MAX: usize = 20_000;

/// So many of each window, whatever others have: as many as a pop takes.
pub const WINDOW_FLIGHTS_FLOOR: usize = 32;

/// With all of that, of one shard.
pub const SHARD_FLIGHTS_TOTAL_MAX: usize =
    SHARD_FLIGHTS_MAX + SHARD_WINDOWS_MAX * WINDOW_FLIGHTS_FLOOR;

/// Groups' windows over partitions, of one shard. More are refused.
pub const SHARD_WINDOWS_MAX: usize = 4_000;

/// How often a message is delivered at most, whatever its group says: the count is stored in 15 bits.
pub const WINDOW_DELIVERIES_MAX: u16 = i16::MAX as u16;

/// The stored form of a message in hand takes so many bytes at most.
pub const FLIGHT_BYTES_MAX: usize = 64;

const _: () = assert!(WINDOW_FLIGHTS_MAX * FLIGHT_BYTES_MAX < APPEND_BYTES_MAX);
const _: () = assert!(WINDOW_FLIGHTS_MAX <= SHARD_FLIGHTS_MAX);
const _: () = assert!(WINDOW_FLIGHTS_FLOOR < WINDOW_FLIGHTS_MAX);
const _: () = assert!(SHARD_FLIGHTS_TOTAL_MAX * 150 < 24 * 1024 * 1024);
const _: () = assert!(DUE_AT_ONCE_MAX < ON_THEIR_WAY_MAX && ON_THEIR_WAY_MAX < TIMERS_MAX);
const _: () = assert!(TIMED_BATCH_BYTES_MAX <= APPEND_BYTES_MAX);
const _: () = assert!(HALF_BATCH_BYTES_MAX <= APPEND_BYTES_MAX);
const _: () = assert!(APPEND_BYTES_MAX < 1_048_588);
const _: () = assert!(TOMBSTONES_MAX > 0 && WAITING_MAX > 0);
