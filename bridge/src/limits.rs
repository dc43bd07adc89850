//! Every bound of this crate, with the assertions that tie them together.

/// A remoting frame on the wire, its four length bytes included. Source: NettySystemConfig, frame
/// limit 16777216.
pub const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The word after the length: one byte serialize type, three bytes header length.
pub const HEADER_WORD_BYTES: usize = 4;

/// A property string as the message format can carry it: its length is a signed 16-bit number.
pub const PROPERTIES_BYTES_MAX: usize = i16::MAX as usize;

/// Headers of one record that are looked at, from its first on: more than can become properties
/// (of three bytes at least) of one message, so that a record of millions costs no more than one of
/// these. The rest counts as not having fitted.
pub const HEADERS_SEEN_MAX: usize = 16_384;

/// A topic's name at the RocketMQ door, in characters. Source: TopicValidator.
pub const TOPIC_CHARS_MAX: usize = 127;

/// Names of retry and dead-letter topics, which carry a prefix before the group. Source:
/// TopicValidator.
pub const DERIVED_TOPIC_CHARS_MAX: usize = 255;

/// A group's name, in characters. Source: Validators.
pub const GROUP_CHARS_MAX: usize = 120;

/// A topic's stored name. Source: Kafka's Topic class.
pub const STORED_TOPIC_CHARS_MAX: usize = 249;

/// Bits of a partition's cluster-wide number in a pseudo address.
pub const PARTITION_NUMBER_BITS: u32 = 23;

/// Bits of an offset in a pseudo address.
pub const ADDRESS_OFFSET_BITS: u32 = 40;

/// Messages in one batch send; a message of the batch format takes 22 bytes at least, so this stops
/// nothing that a `maxMessageSize` of 4 MiB, the default, lets through, and bounds the memory of
/// what is decoded before it is checked.
pub const BATCH_MESSAGES_MAX: usize = 4 * 1024 * 1024 / 22;

/// Nesting of a JSON body; beyond it the body is refused rather than the stack risked.
pub const JSON_DEPTH_MAX: usize = 64;

/// Values in a JSON body, keys included; one costs about fifty bytes of memory.
pub const JSON_VALUES_MAX: usize = 200_000;

/// An SQL92 expression, in bytes.
pub const SQL_BYTES_MAX: usize = 64 * 1024;

/// Nesting of an SQL92 expression; beyond it the expression is refused rather than the stack risked.
pub const SQL_DEPTH_MAX: usize = 128;

/// SQL92 expressions that are kept compiled. Source: SelectorParser.
pub const SELECTORS_MAX: usize = 100;

/// Records that one read of a pull with an SQL92 expression looks at, of which few may match.
pub const SQL_READ_RECORDS: usize = 1024;

/// From this size on, a piece is handed to the socket as it is instead of being copied into the
/// answer's own buffer.
pub const SHARED_SEGMENT_BYTES_MIN: usize = 4096;

/// Pulls that wait for records at one time, over all connections; one costs about a kilobyte.
pub const HELD_PULLS_MAX: usize = 100_000;

/// The longest time a pull is held, whatever the client asks; stock clients ask for up to 30 s.
pub const HOLD_MS_MAX: u64 = 10 * 60 * 1000;

/// Pops that wait at one time, over all connections. Source: `maxPopPollingSize`.
pub const HELD_POPS_MAX: usize = 100_000;

/// Of those, pops of one group that named the same queue, or all. Source: `popPollingSize`.
pub const HELD_POPS_OF_QUEUE_MAX: usize = 1024;

/// Queues whose logs these wait for; one costs some hundred bytes.
pub const HELD_POP_WAITS_MAX: usize = 1_000_000;

/// For how long one pop of a group may keep others from looking at a queue: well above what a look takes
/// that reads from disk, well below what clients wait for an answer.
pub const POP_TURN_MS_MAX: u64 = 1_000;

/// Messages of one pop. Source: PopMessageProcessor.
pub const POP_MESSAGES_MAX: usize = 32;

/// From a queue's first popped message to its last: clients acknowledge by bits from the first on.
pub const POP_SPAN_MAX: i64 = 65_536;

/// The longest time that a popped message is in hand, whatever the client asks; stock ones ask for
/// up to 5 minutes, and for two hours after many failures.
pub const INVISIBLE_MS_MAX: i64 = 3 * 24 * 3600 * 1000;

/// The name of an attempt to pop in order, in bytes; stock ones have 36.
pub const ATTEMPT_BYTES_MAX: usize = 128;

/// Reads for one pull while nothing matches its filter; the next pull goes on from there.
pub const PULL_READS_MAX: usize = 8;

/// Reads that refine a search by store time.
pub const SEARCH_READS_MAX: usize = 8;

/// Messages that a query by key finds. Source: `maxMsgsNumBatch` of MessageStoreConfig.
pub const QUERY_MESSAGES_MAX: usize = 64;

/// Bytes of these; of larger ones the newest are given, and one in any case.
pub const QUERY_BYTES_MAX: usize = FRAME_BYTES_MAX / 2;

/// Places of a queue that a query by key notes before it looks at the newest of them.
pub const QUERY_HITS_MAX: usize = 65_536;

/// How long one query by key looks through the log; stock clients wait for 15 s.
pub const QUERY_MS_MAX: u64 = 10_000;

/// Queries by key at once, since each may read a whole log.
pub const QUERIES_MAX: usize = 2;

/// Queues that are told of once because of a record that no message can show; more are not told.
pub const UNSEEABLE_MAX: usize = 10_000;

/// Requests to clients whose answers are waited for, over all connections.
pub const CLIENT_CALLS_MAX: usize = 1024;

/// How long a client may take to answer one. Source: Broker2Client.callClient.
pub const CLIENT_CALL_MS_MAX: u64 = 10_000;

/// Resets of positions that wait for a pull or a pop, over all groups.
pub const OFFSET_RESETS_MAX: usize = 100_000;

/// A heartbeat's body; one of a thousand subscriptions has some hundred kilobytes.
pub const HEARTBEAT_BYTES_MAX: usize = 1024 * 1024;

/// A client's id, in bytes; stock ones have some fifty.
pub const CLIENT_ID_BYTES_MAX: usize = 1024;

/// Groups in one heartbeat, those that it produces and those that it consumes for.
pub const HEARTBEAT_GROUPS_MAX: usize = 1000;

/// Client ids that one connection may speak for; stock clients have one.
pub const CONNECTION_CLIENTS_MAX: usize = 64;

/// Producer groups and clients in them that one connection speaks for.
pub const CONNECTION_PRODUCERS_MAX: usize = 1000;

/// Members whose subscriptions are compared with each other's.
pub const COMPARED_MEMBERS_MAX: usize = 100_000;

/// Topics of one group in one heartbeat.
pub const SUBSCRIPTIONS_MAX: usize = 10_000;

/// Queues of one topic.
pub const TOPIC_QUEUES_MAX: i32 = 16_384;

/// Pairs of group and topic whose rate and pulled offsets are remembered.
pub const DELIVERIES_MAX: usize = 100_000;

/// Topics that one request may create or change.
pub const TOPIC_LIST_MAX: usize = 10_000;

/// Groups that one request may create or change.
pub const GROUP_LIST_MAX: usize = 10_000;

/// Entries of a consume queue that one request is told.
pub const CONSUME_QUEUE_ENTRIES_MAX: usize = 1024;

/// Groups whose heartbeat fingerprint is remembered.
pub const FINGERPRINTS_MAX: usize = 100_000;

/// Pairs of client and subject that the console has told of already.
pub const COMPLAINTS_KNOWN_MAX: usize = 4096;

/// Lines of the console about refused clients, in one minute.
pub const COMPLAINTS_PER_MINUTE: usize = 20;

/// Characters of a name from outside in such a line.
pub const COMPLAINT_NAME_CHARS_MAX: usize = 128;

const _: () = {
    assert!(PARTITION_NUMBER_BITS + ADDRESS_OFFSET_BITS == 63);
    assert!(PROPERTIES_BYTES_MAX < FRAME_BYTES_MAX);
    assert!(HEADERS_SEEN_MAX > PROPERTIES_BYTES_MAX / 3);
    assert!(TOPIC_CHARS_MAX < DERIVED_TOPIC_CHARS_MAX);
    assert!(FRAME_BYTES_MAX <= u32::MAX as usize);
};
