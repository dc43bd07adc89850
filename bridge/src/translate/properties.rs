//! Property strings, and which names in them are RocketMQ's own.

use super::origin::ORIGIN_HEADER;

/// Between a property's name and its value.
pub const NAME_END: u8 = 1;
/// After a property's value.
pub const VALUE_END: u8 = 2;

/// One tag; filters look at it.
pub const TAGS: &str = "TAGS";
/// Property: where the broker is; without it clients do not trace what they consume.
pub const MSG_REGION: &str = "MSG_REGION";
/// The original's default `regionId`, which no setting changes yet.
pub const REGION_ID: &str = "DefaultRegion";
/// Keys to find the message by, separated by spaces.
pub const KEYS: &str = "KEYS";
/// What an ordered producer chose the queue by.
pub const SHARDING_KEY: &str = "__SHARDINGKEY";
/// The client's id of the message.
pub const UNIQ_KEY: &str = "UNIQ_KEY";
/// "false": the send need not be stored safely before its answer.
pub const WAIT: &str = "WAIT";

/// Who waits for a reply to the message: a client's id.
pub const REPLY_TO_CLIENT: &str = "REPLY_TO_CLIENT";
/// The cluster's name; a reply goes to its reply topic.
pub const CLUSTER: &str = "CLUSTER";
/// When a reply was handed on to the client, milliseconds since 1970.
pub const PUSH_REPLY_TIME: &str = "PUSH_REPLY_TIME";

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
    /// The header `__rmq`; never a property.
    Origin,
}

use NameKind::{Driving, Mark, Open, Origin, Reserved};

/// Sorted by name. The marks are of this crate.
const NAMES: &[(&str, NameKind)] = &[
    ("1ST_POP_TIME", Driving),
    ("ARRIVE_TIME", Driving),
    ("BORN_TIMESTAMP", Reserved),
    ("BUYER_ID", Reserved),
    ("CHECK_IMMUNITY_TIME_IN_SECONDS", Driving),
    (CLUSTER, Reserved),
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
    (MSG_REGION, Reserved),
    ("MSG_TYPE", Reserved),
    ("ORIGIN_GROUP", Driving),
    ("ORIGIN_MESSAGE_ID", Driving),
    ("PGROUP", Reserved),
    ("POP_CK", Driving),
    ("POP_CK_OFFSET", Driving),
    ("PROPERTY_FORWARD_QUEUE_ID", Driving),
    (PUSH_REPLY_TIME, Driving),
    ("REAL_QID", Driving),
    ("REAL_TOPIC", Driving),
    ("RECONSUME_TIME", Driving),
    ("REDIRECT", Driving),
    (REPLY_TO_CLIENT, Reserved),
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
    (ORIGIN_HEADER, Origin),
    ("__transactionId__", Reserved),
];

const TRANSIENT_PREFIX: &[u8] = b"__RMQ.TRANSIENT.";

/// What a header or property of this name means.
#[must_use]
#[inline]
pub fn name_kind(name: &[u8]) -> NameKind {
    // Most names are the user's and begin with a small letter; no name of the table does.
    match name.first() {
        Some(b'A'..=b'Z' | b'_' | b'1') => special_kind(name),
        _ => NameKind::User,
    }
}

fn special_kind(name: &[u8]) -> NameKind {
    if let Some(kind) = listed_kind(name) {
        return kind;
    }
    if name.starts_with(TRANSIENT_PREFIX) {
        return Driving;
    }
    if name.starts_with(HEX_NAME_PREFIX.as_bytes()) {
        return Mark;
    }
    NameKind::User
}

/// Slots of the table of names by hash: mostly one comparison a name.
const SLOTS: usize = 256;

/// Place of each name plus one; 0 is a free slot. A name that finds its slot taken has the next.
const NAME_SLOTS: [u8; SLOTS] = name_slots();

const fn slot_of(name: &[u8]) -> usize {
    match name {
        [first, second, .., before_last, last] => {
            let ends = *last as usize * 11 + *before_last as usize * 7;
            (name.len() * 37 + *first as usize * 5 + *second as usize * 3 + ends) % SLOTS
        }
        _ => name.len(),
    }
}

#[expect(clippy::indexing_slicing, reason = "runs in the compiler, over a constant table")]
const fn name_slots() -> [u8; SLOTS] {
    let mut slots = [0; SLOTS];
    let mut place = 0;
    while place < NAMES.len() {
        let mut slot = slot_of(NAMES[place].0.as_bytes());
        while slots[slot] != 0 {
            slot = (slot + 1) % SLOTS;
        }
        place += 1;
        slots[slot] = place as u8;
    }
    slots
}

fn listed_kind(name: &[u8]) -> Option<NameKind> {
    let mut slot = slot_of(name);
    loop {
        let place = usize::from(*NAME_SLOTS.get(slot)?).checked_sub(1)?;
        let (known, kind) = NAMES.get(place)?;
        if known.as_bytes() == name {
            return Some(*kind);
        }
        slot = (slot + 1) % SLOTS;
    }
}

/// Can it stand in a property string as it is?
#[must_use]
pub fn is_text(bytes: &[u8]) -> bool {
    let is_special = |byte: u8| byte & 0x80 | u8::from(matches!(byte, NAME_END | VALUE_END));
    if bytes.iter().fold(0, |special, byte| special | is_special(*byte)) == 0 {
        return true;
    }
    !bytes.iter().any(|byte| matches!(*byte, NAME_END | VALUE_END))
        && std::str::from_utf8(bytes).is_ok()
}

/// A property string's properties in order, a repeated name each time; the last one counts.
///
/// As the original reads it: a part without a name, a value or a separator is passed over, and the
/// last separator may be missing (case B83). Source: MessageDecoder.string2messageProperties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Properties<'a>(pub &'a str);

/// See [`Properties::iter`].
#[derive(Clone, Debug)]
pub struct PropertyIter<'a> {
    rest: &'a str,
}

impl<'a> Properties<'a> {
    /// Names and values.
    #[must_use]
    pub fn iter(self) -> PropertyIter<'a> {
        PropertyIter { rest: self.0 }
    }

    /// The last value of that name.
    #[must_use]
    pub fn get(self, name: &str) -> Option<&'a str> {
        self.iter().filter(|(known, _)| *known == name).last().map(|(_, value)| value)
    }
}

impl<'a> Iterator for PropertyIter<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let bytes = self.rest.as_bytes();
            // The first of either kind ends a name, or a part that has none.
            let ends = |byte: &u8| matches!(*byte, NAME_END | VALUE_END);
            let name_end = bytes.iter().position(ends).unwrap_or(bytes.len());
            let has_name = bytes.get(name_end) == Some(&NAME_END);
            let value_start = if has_name { name_end + 1 } else { name_end };
            let after = bytes.get(value_start..).unwrap_or_default();
            let value_bytes = after.iter().position(|byte| *byte == VALUE_END);
            let value_end = value_start + value_bytes.unwrap_or(after.len());
            let name = self.rest.get(..name_end).unwrap_or_default();
            let value = self.rest.get(value_start..value_end).unwrap_or_default();
            self.rest = self.rest.get(value_end + 1..).unwrap_or_default();
            if has_name && !name.is_empty() && !value.is_empty() {
                return Some((name, value));
            }
        }
        None
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
