//! The mapping as a table for people, each loss named. `duolog explain mapping` prints it.
//!
//! The rows are what the code of this folder does; a change there belongs here in the same commit.

/// One row: a field or a concept, and what becomes of it in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Row {
    /// The part of the table it stands in.
    pub part: Part,
    /// What RocketMQ calls it; empty if RocketMQ has no such thing.
    pub rocketmq: &'static str,
    /// What Kafka calls it; empty if Kafka has no such thing.
    pub kafka: &'static str,
    /// What a RocketMQ producer's becomes for Kafka clients.
    pub to_kafka: &'static str,
    /// What a Kafka producer's becomes for RocketMQ clients.
    pub to_rocketmq: &'static str,
    /// What gets lost or differs; empty if nothing does.
    pub loss: &'static str,
}

/// The parts of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum Part {
    /// Fields of a message and of a record.
    Message,
    /// Topics, queues, offsets, groups.
    Concept,
    /// Files of RocketMQ that have no counterpart here.
    File,
}

impl Part {
    /// The part's heading.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Message => "A message and a record",
            Self::Concept => "Topics, queues, offsets, groups",
            Self::File => "RocketMQ's files",
        }
    }
}

const fn message(
    rocketmq: &'static str,
    kafka: &'static str,
    to_kafka: &'static str,
    to_rocketmq: &'static str,
    loss: &'static str,
) -> Row {
    Row { part: Part::Message, rocketmq, kafka, to_kafka, to_rocketmq, loss }
}

const fn concept(
    rocketmq: &'static str,
    kafka: &'static str,
    to_kafka: &'static str,
    to_rocketmq: &'static str,
    loss: &'static str,
) -> Row {
    Row { part: Part::Concept, rocketmq, kafka, to_kafka, to_rocketmq, loss }
}

const fn file(rocketmq: &'static str, kafka: &'static str, loss: &'static str) -> Row {
    Row { part: Part::File, rocketmq, kafka, to_kafka: "", to_rocketmq: "", loss }
}

/// The whole table, by part.
pub const ROWS: &[Row] = &[
    message(
        "body",
        "value",
        "the value, decompressed",
        "the body, decompressed",
        "how the sender had compressed it; __rmq remembers RocketMQ's sysFlag",
    ),
    message(
        "(empty body; stock producers refuse to send one)",
        "null value (tombstone)",
        "a body of one byte with the property KAFKA_TOMBSTONE=true, on a compacted topic only, \
         becomes a null value; any other send with that property is refused (13)",
        "empty body and the property KAFKA_TOMBSTONE=true",
        "an empty value is an empty body without that property; the Java client's getBody() is null \
         for both, not an empty array",
    ),
    message(
        "property KEYS",
        "record key",
        "the key is the whole KEYS string; the topic's rmq.key.source = shardingkey makes it \
         __SHARDINGKEY, none makes it null; KEYS stays a header too",
        "KEYS is the key; a header KEYS wins over it; a key that is no text is hex with \
         KAFKA_KEY_ENC=hex; a null key gives no KEYS",
        "RocketMQ reads a key with spaces as several keys; an empty key looks like none to Java \
         clients",
    ),
    message(
        "property TAGS",
        "header TAGS",
        "header TAGS",
        "a header TAGS is the tag; brokers and clients filter by it",
        "a record without it has no tag and matches only *",
    ),
    message(
        "property __SHARDINGKEY",
        "header __SHARDINGKEY",
        "header of that name",
        "property of that name",
        "the two kinds of producers choose partitions by different hashes: the same key may lie in \
         two partitions",
    ),
    message(
        "user properties",
        "headers",
        "headers of the same names, in order, UTF-8",
        "properties of the same names",
        "see the next rows",
    ),
    message(
        "(a property has one value)",
        "the same header name twice",
        "a name that is sent twice is two headers",
        "the last one wins, in filters too",
        "the others stay in the log and are seen by Kafka clients only",
    ),
    message(
        "(a property is text)",
        "header value that is no UTF-8 or holds the characters 1 or 2",
        "",
        "hex, and a property <name>.enc=hex",
        "a header <name>.enc of the record itself is then not shown",
    ),
    message(
        "(a name is text)",
        "header name that is empty, no UTF-8 or holds the characters 1 or 2",
        "",
        "property KAFKA_H_<hex of the name>",
        "so are headers called like one of the marks in this table",
    ),
    message(
        "(a property has a value)",
        "header with a null value",
        "",
        "left out; its name stands in KAFKA_NULL_HEADERS, separated by commas",
        "",
    ),
    message(
        "(Java clients drop an empty value)",
        "header with an empty value",
        "an empty property is not stored, as RocketMQ does not read it either",
        "property with an empty value",
        "Java clients do not show it",
    ),
    message(
        "property string of at most 32,767 bytes",
        "headers of any length",
        "a longer string is refused (13)",
        "headers are left out from the last one on until the rest fits; KAFKA_HEADERS_TRUNCATED \
         says how many; KEYS and TAGS go last",
        "the headers left out; Kafka clients see them",
    ),
    message(
        "system properties that tell something (UNIQ_KEY, WAIT, PGROUP, CORRELATION_ID and others)",
        "headers of the same names",
        "headers of the same names; __transactionId__ and the like too",
        "shown only of records that came through the RocketMQ door",
        "a Kafka header of such a name is not shown",
    ),
    message(
        "system properties that drive clients (DELAY, TIMER_*, POP_CK, RETRY_TOPIC, TRAN_MSG and \
         others)",
        "headers of the same names",
        "DELAY and TIMER_* delay the message; TRAN_MSG is refused (13) until transactions are there",
        "shown only in topics that no Kafka producer can write to, and of what the broker delivered after a delay",
        "a Kafka header of such a name is not shown: it must not drive a RocketMQ client",
    ),
    message(
        "properties that the broker adds (MSG_REGION, TRACE_ON, CLUSTER)",
        "",
        "not added to the record; the answer to a send carries MSG_REGION and TRACE_ON",
        "MSG_REGION is shown of every message: without it clients do not trace its consumption",
        "a RocketMQ broker's own messages have them",
    ),
    message(
        "property UNIQ_KEY, the msgId that clients print",
        "",
        "header UNIQ_KEY",
        "none is made up: clients print the offsetMsgId instead",
        "",
    ),
    message(
        "offsetMsgId: host, port, physical offset",
        "partition and offset",
        "",
        "address and port of the RocketMQ door, and the pseudo address of partition and offset",
        "it needs a numeric address; any node answers for it",
    ),
    message(
        "physical offset (place in the commit log)",
        "",
        "",
        "pseudo address: 23 bits for the partition's number, 40 for the offset",
        "it says nothing of places on disk; offsets from 2^40 on cannot be pulled (error 1)",
    ),
    message(
        "bornTimestamp",
        "record timestamp (CreateTime)",
        "the timestamp; one below 0 or beyond message.timestamp.before.max.ms and .after.max.ms is \
         kept in __rmq, and the record has the store time",
        "the timestamp, or what __rmq keeps",
        "with message.timestamp.type=LogAppendTime it is the append time for both",
    ),
    message(
        "storeTimestamp",
        "(append time)",
        "in the header __rmq",
        "when the batch was appended",
        "Kafka clients do not see it",
    ),
    message(
        "bornHost",
        "",
        "in the header __rmq",
        "0.0.0.0:0",
        "a Kafka record does not say who wrote it",
    ),
    message(
        "storeHost",
        "",
        "",
        "address and port of the RocketMQ door",
        "the node that stored it is not told",
    ),
    message("flag", "", "in the header __rmq", "0", ""),
    message(
        "sysFlag",
        "",
        "as sent, in the header __rmq",
        "0, but for several tags and the width of the hosts",
        "bodies are shown plain, so the bits for compression are off",
    ),
    message("reconsumeTimes", "", "in the header __rmq", "0", ""),
    message(
        "",
        "header __rmq",
        "version, flag, sysFlag, bornHost, storeTimestamp, reconsumeTimes and a bornTimestamp that \
         is not the record's: 28 bytes to 48",
        "never shown",
        "a property of that name is not stored; a Kafka producer that writes the header changes \
         only what is displayed",
    ),
    message(
        "batch send (320)",
        "record batch",
        "one record for each message, successive offsets, all or none; sends that wait together \
         share a batch too",
        "one message for each record",
        "a batch's own property string is not stored, as in RocketMQ; a batch compressed as a whole \
         is refused (13)",
    ),
    concept("queue, queueId", "partition", "the same number", "the same number", ""),
    concept(
        "queueOffset",
        "offset",
        "the same number",
        "the same number",
        "queues have gaps where Kafka has transaction markers, aborted or compacted records; a pull \
         goes past them",
    ),
    concept(
        "maxOffset",
        "last stable offset",
        "",
        "readers see committed records only, up to the last stable offset",
        "a record of an open transaction is not there yet, nor what follows it",
    ),
    concept(
        "half message",
        "",
        "nothing; once it is committed, a record like any other",
        "",
        "half and op queues are one internal topic, __rmq.half; the offset of a half message is the one there",
    ),
    concept("minOffset", "log start offset", "the same number", "the same number", ""),
    concept(
        "topic name",
        "topic name",
        "the same; %RETRY%g is __rmq.retry.g, other names with % or | are __rmq.n. with .25 and .7C \
         for them",
        "the same; a dot is shown as _",
        "names over 127 characters cannot be reached from RocketMQ; one that takes more than 249 \
         when stored is refused (13)",
    ),
    concept(
        "readQueueNums, writeQueueNums, perm",
        "rmq.read.queues, rmq.write.queues, rmq.perm",
        "partitions are the larger count; without the write bit Kafka produce is refused too",
        "both are the number of partitions, perm 6",
        "partitions never get fewer, but fewer of them can be shown as queues",
    ),
    concept(
        "topic made by the first send",
        "topic made by the first Metadata",
        "min(the producer's defaultTopicQueueNums, 8) partitions",
        "num.partitions partitions",
        "the first door decides",
    ),
    concept(
        "consumer group",
        "consumer group",
        "one space of names; a RocketMQ group is listed without members",
        "a Kafka group shows in consumerProgress",
        "one kind may use a group only while the other has no live member in it: a Kafka consumer is \
         told so, a RocketMQ consumer only receives nothing, and the node's console says why",
    ),
    concept(
        "reset of a group's positions",
        "reset of a group's positions",
        "kafka-consumer-groups --reset-offsets, for groups of both kinds without members",
        "mqadmin's resetOffsetByTime and skipAccumulatedMessage are refused (3)",
        "",
    ),
    concept(
        "maxMessageSize (bytes of a body)",
        "max.message.bytes (bytes of a batch)",
        "maxMessageSize alone bounds a RocketMQ send; Kafka consumers read what is larger than \
         max.message.bytes",
        "max.message.bytes alone bounds a Kafka produce",
        "a topic may hold messages that one of the two doors would refuse",
    ),
    concept(
        "consumer offset",
        "committed offset",
        "the same number, in __consumer_offsets",
        "the same number, in __consumer_offsets",
        "leader epoch -1 and no metadata from RocketMQ; its groups' positions do not expire",
    ),
    concept(
        "tag filter at the broker",
        "",
        "Kafka consumers get every record",
        "by the Java hash of the tag; two tags of one hash are told apart by the client",
        "",
    ),
    concept(
        "SQL92 filter at the broker",
        "",
        "Kafka consumers get every record",
        "over all that a message shows as properties, a Kafka producer's headers and key too",
        "what cannot be read is refused, and never taken for *",
    ),
    concept(
        "search by time",
        "ListOffsets by time",
        "by record timestamp",
        "by append time, which never falls",
        "the two may differ for records with times of their own",
    ),
    concept(
        "SYNC_FLUSH, ASYNC_FLUSH",
        "flush.messages, flush.ms",
        "flushDiskType concerns what RocketMQ writes",
        "flush.messages and flush.ms concern both",
        "acks promise replicas, not disk",
    ),
    concept(
        "fileReservedTime, deleteWhen",
        "retention.ms, retention.bytes",
        "the topic's retention rules, for both",
        "the topic's retention rules, for both",
        "segments go when they are due, not at an hour of the day; RocketMQ's names are not read",
    ),
    file(
        "commitlog/00000000000000000000 (all topics in one log)",
        "<topic>-<partition>/<base offset>.log",
        "a log for each partition; a file grows up to segment.bytes, none is preallocated to 1 GiB",
    ),
    file(
        "consumequeue/<topic>/<queue>/ (20 bytes a message)",
        "<base offset>.index",
        "the offset index is sparse; the tag hashes are in <base offset>.tags",
    ),
    file("index/<time> (hash of keys)", "", "queries by key are not there yet"),
    file(
        "config/topics.json, subscriptionGroup.json",
        "records in __duolog_metadata",
        "kafka-dump-log shows the log; mqadmin shows the contents",
    ),
    file(
        "config/consumerOffset.json",
        "__consumer_offsets",
        "kafka-dump-log --offsets-decoder shows it",
    ),
    file(
        "SCHEDULE_TOPIC_XXXX, config/delayOffset.json, timerwheel, timerlog",
        "rmq_sys_timer",
        "levels and times wait in one log; what waits is known from it alone",
    ),
    file(
        "abort (unclean stop)",
        ".kafka_cleanshutdown (clean stop)",
        "the other way round: the file says that all was well",
    ),
    file(
        "checkpoint (three times)",
        "recovery-point-offset-checkpoint",
        "offsets up to which a log is known to be on disk, for each partition",
    ),
];

#[cfg(test)]
mod tests;
