//! Differences from Kafka that are there on purpose; docs/differences.md tells them to users.

use super::compare::Known;

const fn known(
    api: &'static str,
    step: &'static str,
    path: &'static str,
    (kafka, duolog): (&'static str, &'static str),
    why: &'static str,
) -> Known {
    Known { api, step, path, kafka, duolog, why }
}

const OWN_KEYS: &str = "RocketMQ's attributes of a topic are shown as keys";
const CLOSED: &str = "an answer says what is wrong, a closed connection does not";
const SILENT: &str = "nothing hangs";
const NOT_BUILT: &str = "docs/compatibility.md: not built";
const MADE_AT_ONCE: &str = "a topic that is made is there with its answer";
const NOTHING_LEFT: &str =
    "nothing is left of a group whose only positions were aborted or deleted";
const IN_WORDS: &str = "a code says what is wrong";

/// Each with its reason.
pub const KNOWN: &[Known] = &[
    known("*", "", "Configs[rmq.", ("null", ""), OWN_KEYS),
    known("*", "", "Configs[message.type]", ("null", ""), OWN_KEYS),
    known("*", "", "Configs[2 rmq.", ("null", ""), OWN_KEYS),
    known(
        "*",
        "",
        "Configs[min.insync.replicas].ConfigSource",
        ("3", "5"),
        "there are no eligible leader replicas, for which Kafka stores the default",
    ),
    known(
        "DescribeConfigs",
        "",
        "Configs[min.insync.replicas].Synonyms",
        ("", ""),
        "there are no eligible leader replicas, for which Kafka stores the default",
    ),
    known("DescribeAcls", "", "", ("\"closed\"", ""), CLOSED),
    known("CreateAcls", "", "", ("\"closed\"", ""), CLOSED),
    known("DeleteAcls", "", "", ("\"closed\"", ""), CLOSED),
    known("AddPartitionsToTxn", "\"Transactions\":[]", "", ("\"silent\"", ""), SILENT),
    known(
        "AddPartitionsToTxn",
        "\"TransactionalId\":\"\"",
        "ResultsByTransaction[",
        ("", ""),
        "each transaction of a request is looked at, also of one id",
    ),
    known("WriteTxnMarkers", "", "", ("\"silent\"", ""), SILENT),
    known(
        "Produce",
        "\"txn\":true",
        "ErrorCode",
        ("53", "3"),
        "each partition is looked at by itself",
    ),
    known("Produce", "\"fault\":\"codec\"", "ErrorCode", ("-1", "76"), IN_WORDS),
    known("ListOffsets", "\"IsolationLevel\":", "ErrorCode", ("-1", ""), IN_WORDS),
    known("ListOffsets", "\"Timestamp\":-7", "ErrorCode", ("-1", "35"), IN_WORDS),
    known("ListOffsets", "\"Timestamp\":-3", "", ("", ""), "a deleted record is no answer"),
    known("ListGroups", "", "Groups[", ("~\"ProtocolType\":\"\"", "null"), NOTHING_LEFT),
    known("ApiVersions", "", "ApiKeys[", ("", "null"), NOT_BUILT),
    known("Produce", "\"Records\":null", "", ("\"silent\"", ""), SILENT),
    known("AlterConfigs", "", "", ("\"silent\"", ""), SILENT),
    known("IncrementalAlterConfigs", "\"ConfigOperation\":9", "ErrorCode", ("-1", "42"), IN_WORDS),
    known("IncrementalAlterConfigs", "\"ConfigOperation\":9", "ErrorCode", ("40", "42"), IN_WORDS),
    known("ApiVersions", "", "FinalizedFeatures[", ("", "null"), NOT_BUILT),
    known("ApiVersions", "", "SupportedFeatures", ("", "null"), NOT_BUILT),
    known("Metadata", "", "ErrorCode", ("3", "0"), MADE_AT_ONCE),
    known("Metadata", "", "Partitions[", ("null", ""), MADE_AT_ONCE),
    known("DescribeLogDirs", "", "Topics[__", ("", ""), "as many records, not as many batches"),
    known("DescribeGroups", "", "GroupState", ("\"Empty\"", "\"Dead\""), NOTHING_LEFT),
    known("DescribeGroups", "", "ErrorCode", ("0", "69"), NOTHING_LEFT),
    known("DescribeGroups", "", "AuthorizedOperations", ("3400", "-2147483648"), NOTHING_LEFT),
    known("DeleteGroups", "", "ErrorCode", ("0", "69"), NOTHING_LEFT),
    known("OffsetDelete", "", "ErrorCode", ("0", "69"), NOTHING_LEFT),
    known("OffsetDelete", "", "Topics[", ("", "null"), NOTHING_LEFT),
];
