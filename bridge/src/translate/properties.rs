//! Property strings, and which names in them are RocketMQ's own.

/// Between a property's name and its value.
pub const NAME_END: u8 = 1;
/// After a property's value.
pub const VALUE_END: u8 = 2;

/// One tag; filters look at it.
pub const TAGS: &str = "TAGS";
/// Keys to find the message by, separated by spaces.
pub const KEYS: &str = "KEYS";
/// What an ordered producer chose the queue by.
pub const SHARDING_KEY: &str = "__SHARDINGKEY";
/// The client's id of the message.
pub const UNIQ_KEY: &str = "UNIQ_KEY";
/// "false": the send need not be stored safely before its answer.
pub const WAIT: &str = "WAIT";

/// Our mark: `KEYS` is the hex of the record's key.
pub const KEY_ENCODING: &str = "KAFKA_KEY_ENC";
/// Our mark: the record's value is null. A producer sends it to write such a record.
pub const TOMBSTONE: &str = "KAFKA_TOMBSTONE";
/// Our mark: names of the headers without a value, separated by commas.
pub const NULL_HEADERS: &str = "KAFKA_NULL_HEADERS";
/// Our mark: how many headers did not fit into the property string.
pub const HEADERS_TRUNCATED: &str = "KAFKA_HEADERS_TRUNCATED";
/// Our mark: begins the name of a property whose header's name is no property's; hex follows.
pub const HEX_NAME_PREFIX: &str = "KAFKA_H_";
/// Our mark: ends the name of a property that says how the one before is encoded.
pub const ENCODING_SUFFIX: &str = ".enc";

/// What a name means to RocketMQ. Source: MessageConst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// The user's own.
    User,
    /// TAGS, KEYS and `__SHARDINGKEY`: RocketMQ's, and open to Kafka producers too.
    Open,
    /// RocketMQ's; tells something.
    Reserved,
    /// RocketMQ's; makes a client or the broker do something.
    Driving,
    /// One of our marks, or what begins as they do.
    Mark,
}

use NameKind::{Driving, Mark, Open, Reserved};

/// Sorted by name.
const NAMES: &[(&str, NameKind)] = &[
    ("1ST_POP_TIME", Driving),
    ("ARRIVE_TIME", Driving),
    ("BORN_TIMESTAMP", Reserved),
    ("BUYER_ID", Reserved),
    ("CHECK_IMMUNITY_TIME_IN_SECONDS", Driving),
    ("CLUSTER", Reserved),
    ("CONSUME_START_TIME", Driving),
    ("CORRECTION_FLAG", Reserved),
    ("CORRELATION_ID", Reserved),
    ("DELAY", Driving),
    ("DLQ_ORIGIN_MESSAGE_ID", Driving),
    ("DLQ_ORIGIN_TOPIC", Driving),
    ("DUP_INFO", Driving),
    ("EXTEND_UNIQ_INFO", Reserved),
    ("INNER_BASE", Driving),
    ("INNER_MULTI_DISPATCH", Driving),
    ("INNER_MULTI_QUEUE_OFFSET", Driving),
    ("INNER_NUM", Driving),
    ("INSTANCE_ID", Reserved),
    (HEADERS_TRUNCATED, Mark),
    (KEY_ENCODING, Mark),
    (NULL_HEADERS, Mark),
    (TOMBSTONE, Mark),
    (KEYS, Open),
    ("MAX_OFFSET", Driving),
    ("MAX_RECONSUME_TIMES", Driving),
    ("MIN_OFFSET", Driving),
    ("MQ2_FLAG", Reserved),
    ("MSG_REGION", Reserved),
    ("MSG_TYPE", Reserved),
    ("ORIGIN_GROUP", Driving),
    ("ORIGIN_MESSAGE_ID", Driving),
    ("PGROUP", Reserved),
    ("POP_CK", Driving),
    ("POP_CK_OFFSET", Driving),
    ("PROPERTY_FORWARD_QUEUE_ID", Driving),
    ("PUSH_REPLY_TIME", Driving),
    ("REAL_QID", Driving),
    ("REAL_TOPIC", Driving),
    ("RECONSUME_TIME", Driving),
    ("REDIRECT", Driving),
    ("REPLY_TO_CLIENT", Reserved),
    ("RETRY_TOPIC", Driving),
    (TAGS, Open),
    ("TIMER_DELAY_LEVEL", Driving),
    ("TIMER_DELAY_MS", Driving),
    ("TIMER_DELAY_SEC", Driving),
    ("TIMER_DELIVER_MS", Driving),
    ("TIMER_DEL_UNIQKEY", Driving),
    ("TIMER_DEQUEUE_MS", Driving),
    ("TIMER_ENQUEUE_MS", Driving),
    ("TIMER_OUT_MS", Driving),
    ("TIMER_ROLL_LABEL", Driving),
    ("TIMER_ROLL_TIMES", Driving),
    ("TRACE_CONTEXT", Reserved),
    ("TRACE_ON", Reserved),
    ("TRANSACTION_CHECK_TIMES", Driving),
    ("TRANSFER_FLAG", Reserved),
    ("TRANS_OFFSET", Driving),
    ("TRAN_MSG", Driving),
    ("TRAN_PREPARED_QUEUE_OFFSET", Driving),
    ("TTL", Reserved),
    (UNIQ_KEY, Reserved),
    (WAIT, Reserved),
    ("_SYS_MSG_PRIORITY_", Driving),
    ("__BORNHOST", Reserved),
    ("__CRC32#", Driving),
    ("__LITE_TOPIC", Driving),
    (SHARDING_KEY, Open),
    ("__transactionId__", Reserved),
];

/// Longest name in the table.
const NAME_BYTES_MAX: usize = 30;

const TRANSIENT_PREFIX: &[u8] = b"__RMQ.TRANSIENT.";

/// What a header or property of this name means.
#[must_use]
pub fn name_kind(name: &[u8]) -> NameKind {
    // Most names are the user's and begin with a small letter; no name of the table does.
    match name.first() {
        Some(b'A'..=b'Z' | b'_' | b'1') => {}
        _ => return NameKind::User,
    }
    if name.len() <= NAME_BYTES_MAX
        && let Ok(place) = NAMES.binary_search_by(|(known, _)| known.as_bytes().cmp(name))
    {
        return NAMES.get(place).map_or(NameKind::User, |(_, kind)| *kind);
    }
    if name.starts_with(TRANSIENT_PREFIX) {
        return Driving;
    }
    if name.starts_with(HEX_NAME_PREFIX.as_bytes()) {
        return Mark;
    }
    NameKind::User
}

/// A property string's properties in order, a repeated name each time; the last one counts.
///
/// As the original reads it: a part without a name, a value or a separator is passed over, and the
/// last separator may be missing (case B83). Source: MessageDecoder.string2messageProperties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Properties<'a>(pub &'a str);

impl<'a> Properties<'a> {
    /// Names and values.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let parts = self.0.split(char::from(VALUE_END));
        parts.filter_map(|part| {
            let (name, value) = part.split_once(char::from(NAME_END))?;
            (!name.is_empty() && !value.is_empty()).then_some((name, value))
        })
    }

    /// The last value of that name.
    #[must_use]
    pub fn get(self, name: &str) -> Option<&'a str> {
        self.iter().filter(|(known, _)| *known == name).last().map(|(_, value)| value)
    }
}

/// Java's `String.hashCode`: over UTF-16 units, wrapping. Tags are filtered by it (case B89).
#[must_use]
pub fn java_hash(text: &str) -> i32 {
    let step = |hash: i32, unit: u16| hash.wrapping_mul(31).wrapping_add(i32::from(unit));
    if text.is_ascii() {
        return text.bytes().map(u16::from).fold(0, step);
    }
    text.encode_utf16().fold(0, step)
}

#[cfg(test)]
mod tests;
