//! Every bound of the node that no configuration key sets.

use std::time::Duration;

/// Answers of one Kafka connection that may be outstanding; then nothing more is read from it.
pub const IN_FLIGHT_MAX: usize = 64;

/// Bytes of one RocketMQ send with everything the log puts around it: the largest body that
/// `maxMessageSize` can allow (64 MiB), its properties, and as much again for many small records.
pub const SEND_BYTES_MAX: usize = 72 * 1024 * 1024;

/// Half messages that one step of a round asks about.
pub const HALVES_AT_ONCE: usize = 64;

/// Bytes that may wait for one partition's owner; then Kafka connections wait and RocketMQ sends
/// are refused. At least one request of the largest size fits.
pub const WAITING_BYTES_MAX: usize = 128 * 1024 * 1024;

/// A unit of [`WAITING_BYTES_MAX`]: each append takes at least one.
pub const WAITING_UNIT_BYTES: usize = 1024;

/// The records of one batch once decompressed: 32 times the default `max.message.bytes`.
pub const DECOMPRESSED_BYTES_MAX: usize = 32 * 1024 * 1024;

/// A compressed batch up to this size is read by the thread that serves its connection, as far as its records have
/// [`PROMPT_DECOMPRESSED_BYTES`]: that is half a millisecond at most.
pub const PROMPT_COMPRESSED_BYTES: usize = 64 * 1024;

/// See [`PROMPT_COMPRESSED_BYTES`].
pub const PROMPT_DECOMPRESSED_BYTES: usize = 256 * 1024;

/// A batch without compression up to this size is read there too: all that stock producers send by default.
pub const PROMPT_PLAIN_BYTES: usize = 1024 * 1024;

const _: () = assert!(PROMPT_DECOMPRESSED_BYTES < DECOMPRESSED_BYTES_MAX);
const _: () = assert!(WAITING_BYTES_MAX > SEND_BYTES_MAX);
const _: () = assert!(WAITING_BYTES_MAX / WAITING_UNIT_BYTES < u32::MAX as usize);

/// Partitions of one topic.
pub const TOPIC_PARTITIONS_MAX: i32 = 100_000;

/// Partitions that one CreateTopics may ask for in all, as in Kafka.
pub const REQUEST_PARTITIONS_MAX: i64 = 10_000;

/// Greatest producer id that an import takes over: beyond it as many again can be given out.
pub const IMPORTED_PRODUCER_ID_MAX: i64 = 1 << 61;

/// Greatest leader epoch that an import takes over: each start of the node takes a later one.
pub const IMPORTED_LEADER_EPOCH_MAX: i32 = 1 << 30;

/// Partition numbers of a cluster, given once each: 23 bits of a RocketMQ pseudo address.
pub const PARTITION_NUMBERS_MAX: u32 = 1 << 23;

/// Changes of the metadata that wait for the owner of the metadata log; then requests wait.
pub const METADATA_CHANGES_MAX: usize = 1024;

/// Values of the name server's store of texts, by which mqadmin orders topics, forbids groups and has
/// them pop; each change copies the store.
pub const KV_VALUES_MAX: usize = 100_000;

/// Their bytes, names included: all of them may go into one answer, whose frame has 16 MiB.
pub const KV_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Descriptors that the logs of all partitions hold together at most: enough for those that are in
/// use at once on one node, while ten thousand logs that rest hold none.
pub const OPEN_FILES_MAX: usize = 640;

/// Part of the process's own bound that the logs may take; the rest is for connections.
pub const OPEN_FILES_SHARE: usize = 2;

/// Descriptors that neither the logs' files nor connections of clients take: listening sockets, the
/// HTTP port's connections, what is opened for one call.
pub const OPEN_FILES_RESERVE: usize = 128;

const _: () = assert!(OPEN_FILES_MAX < 1000);

/// Sealed segments that are mapped at once.
pub const MAPPED_FILES_MAX: usize = 1024;

/// Bytes of the newest batches that each log keeps in memory, as long as all logs together stay
/// within their budget.
pub const TAIL_CACHE_BYTES: usize = 2 * 1024 * 1024;

/// Memory that the fetch sessions of all clients take together; a client that finds no room fetches
/// without one. 10,000 partitions take about 5 MiB.
pub const FETCH_SESSION_BYTES_MAX: usize = 128 * 1024 * 1024;

/// A fetch session that was not used for so long gives way to any other, and only one that is older
/// gives way to a larger one (`MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS`).
pub const FETCH_SESSION_EVICTION_MS: i64 = 120_000;

/// Logs that a stop closes at once: each waits for the disk several times, and the disk takes the
/// waits of many together.
pub const CLOSING_MAX: usize = 64;

/// Threads for calls that wait for the disk: opening, deleting and closing logs, checkpoints. Each
/// that was once busy keeps most of a MiB in the allocator; opening 10,000 logs asks for all of them.
pub const BLOCKING_THREADS_MAX: usize = 16;

/// Flush points that may wait for the flusher: one per partition at most.
pub const FLUSHES_WAITING_MAX: usize = 65_536;

/// Bytes of the newest batches that all logs keep in memory together.
pub const TAIL_BUDGET_BYTES: usize = 32 * 1024 * 1024;

/// Bytes of tags that are in no file yet, which all logs keep in memory together.
pub const TAG_BUDGET_BYTES: usize = 32 * 1024 * 1024;

/// Bytes of keys that are in no file yet, which all logs keep in memory together.
pub const KEY_BUDGET_BYTES: usize = 32 * 1024 * 1024;

/// Requests of one RocketMQ connection that wait at once, held pulls included; then nothing more is
/// read from it.
pub const REMOTING_IN_FLIGHT_MAX: usize = 4096;

/// Bytes of answers after which one RocketMQ connection writes before it answers more.
pub const REMOTING_OUT_BYTES: usize = 1024 * 1024;

/// Requests of ours that wait for one RocketMQ connection; more are dropped.
pub const REMOTING_NOTICES_MAX: usize = 64;

/// Decoded batches kept for RocketMQ's pulls.
pub const DECODED_CACHE_BYTES: usize = 32 * 1024 * 1024;

/// What a pull reads of a log at a time: small against the cache, since one decoded batch of it keeps all of it.
pub const PULL_READ_BYTES: usize = 64 * 1024;

const _: () = assert!(PULL_READ_BYTES * 16 <= DECODED_CACHE_BYTES);

/// Bytes of decoded batches that one read looks through for a filter; then the reader is told how
/// far it got.
pub const PULL_SCAN_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Offsets of the index of tags that a filter looks at first, and how many there must be for it to
/// look at all.
pub const TAG_SCAN_OFFSETS_MIN: i64 = 1024;

/// Offsets of the index of tags that a filter passes at a time: a few milliseconds when the index
/// has to be made for them.
pub const TAG_SCAN_OFFSETS: i64 = 16_384;

/// Offsets of the index of tags that a filter passes in one read.
pub const TAG_SCAN_OFFSETS_MAX: i64 = 262_144;

/// Matches that a filter notes at a time: what a pull asks for.
pub const TAG_MATCHES_MAX: usize = 32;

const _: () = assert!(TAG_SCAN_OFFSETS_MIN < TAG_SCAN_OFFSETS);
const _: () = assert!(TAG_SCAN_OFFSETS < TAG_SCAN_OFFSETS_MAX);

/// Markers and aborted batches at the end of a log that are passed to find its last message; behind
/// more of them a lag is shown that is none.
pub const HIDDEN_BATCHES_MAX: usize = 10_000;

/// Events that a slow listener may be behind; then it is told how many it missed.
pub const EVENTS_BUFFERED: usize = 8192;

/// Connections to the HTTP port at once; more wait to be accepted.
pub const HTTP_CONNECTIONS_MAX: usize = 64;

/// A HTTP request's line and headers.
pub const HTTP_HEADER_BYTES_MAX: usize = 16 * 1024;

/// What a HTTP request may bring along.
pub const HTTP_BODY_BYTES_MAX: usize = 64 * 1024;

/// Bytes of Kafka answers that are built and that clients have not taken yet, over all connections; beyond it
/// fetches give less.
pub const ANSWERS_BYTES_MAX: usize = 256 * 1024 * 1024;

/// What one fetch may give however much other clients have not taken; one whole batch in any case (KIP-74).
pub const ANSWER_SHARE_BYTES_MIN: usize = 64 * 1024;

/// While others wait for room for their requests, a large one that is half there brings
/// [`FRAME_STEP_BYTES`], or its end, within this time.
pub const FRAME_STALL_LIMIT: Duration = Duration::from_secs(30);

/// Bytes of a large request for which room is asked at a time, while there is plenty and no more of it has
/// come. See [`FRAME_STALL_LIMIT`].
pub const FRAME_STEP_BYTES: usize = 1024 * 1024;

/// Bytes of a large request for which room is asked at a time otherwise; with less it waits, unless its end
/// needs no more.
pub const FRAME_PIECE_BYTES: usize = 64 * 1024;

/// Part of the memory that requests may take where `queued.max.request.bytes` does not say.
pub const REQUEST_MEMORY_DIVISOR: u64 = 4;

/// RocketMQ connections at once, over all doors.
pub const REMOTING_CONNECTIONS_MAX: usize = 100_000;

/// Settings that one DescribeConfigs may have shown, about: those of ten thousand topics. Resources behind it are refused.
pub const DESCRIBED_BYTES_MAX: usize = 128 * 1024 * 1024;

/// Positions that one OffsetFetch may ask for over all its groups. Groups behind it are refused.
pub const FETCHED_POSITIONS_MAX: usize = 1_000_000;

/// Clients that push metrics and are known at once (`ClientMetricsManager.CACHE_MAX_SIZE`); then the one that was not
/// heard of for longest is forgotten.
pub const TELEMETRY_CLIENTS_MAX: usize = 16_384;

/// Numbers that are read of one push.
pub const TELEMETRY_SAMPLES_MAX: usize = 4_096;

/// Series that are shown of one client.
pub const TELEMETRY_CLIENT_SERIES_MAX: usize = 2_048;

/// Series that are shown of all clients together.
pub const TELEMETRY_SERIES_MAX: usize = 20_000;

/// Names that clients may give to metrics, all together.
pub const TELEMETRY_NAMES_MAX: usize = 1_024;

/// Name and labels of one series.
pub const TELEMETRY_TEXT_MAX: usize = 1_024;

const _: () = assert!(TELEMETRY_CLIENT_SERIES_MAX < TELEMETRY_SERIES_MAX);

/// Group coordinators that read their logs at once.
pub const COORDINATORS_LOADING_MAX: usize = 4;

/// RocketMQ's unanswered requests that cannot be handed to their coordinator yet; more are dropped.
pub const EVENTS_ON_THEIR_WAY_MAX: usize = 1024;
