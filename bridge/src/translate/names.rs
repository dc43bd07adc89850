//! Topic names at the two doors.
//!
//! | RocketMQ | stored |
//! |---|---|
//! | `orders` | `orders` |
//! | `%RETRY%group` | `__rmq.retry.group` |
//! | any other name with `%`, a bar or whatever Kafka does not allow | `__rmq.n.` and escapes |
//! | `TRANS_CHECK_MAX_TIME_TOPIC` | `__rmq.n.TRANS_CHECK_MAX_TIME_TOPIC` |
//! | `orders_v1` | `orders.v1`, if there is a topic of that name and none `orders_v1` |
//!
//! An escape is a dot and two upper-case hex digits, `%DLQ%g` is `__rmq.n..25DLQ.25g`; RocketMQ's
//! names have no dots, so nothing is ambiguous. Names with the prefix `__rmq.` belong to the
//! bridge: Kafka's CreateTopics and produce are refused there.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::half::GIVEN_UP_TOPIC;
use crate::limits::{DERIVED_TOPIC_CHARS_MAX, STORED_TOPIC_CHARS_MAX, TOPIC_CHARS_MAX};

/// What the stored names of the bridge's own topics begin with.
pub const STORED_PREFIX: &str = "__rmq.";

const STORED_RETRY_PREFIX: &str = "__rmq.retry.";
const STORED_NAME_PREFIX: &str = "__rmq.n.";

/// Properties of the messages there drive the broker, so no Kafka producer may write to it.
const STORED_GIVEN_UP: &str = "__rmq.n.TRANS_CHECK_MAX_TIME_TOPIC";

const RETRY_PREFIX: &str = "%RETRY%";
const DLQ_PREFIX: &str = "%DLQ%";

/// A RocketMQ name that cannot be stored. Answered with code 13.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The escaped name is longer than a Kafka topic's may be.
    #[error("the topic {name} takes {length} characters when stored, more than {max}")]
    TooLong {
        /// RocketMQ's name.
        name: String,
        /// Length of the stored name.
        length: usize,
        /// The limit.
        max: usize,
    },
    /// The name is one of the bridge's own stored names.
    #[error("the topic {0} is internal")]
    Internal(String),
    /// The empty name.
    #[error("the topic's name is empty")]
    Empty,
}

/// Is it a topic that no client of either protocol may write to or create?
#[must_use]
pub fn is_bridge_topic(stored: &str) -> bool {
    stored.starts_with(STORED_PREFIX)
}

/// The stored name of RocketMQ's topic `name`.
///
/// A name with dots stays as it is, so that tools can ask for a Kafka topic by its own name.
///
/// # Errors
/// See [`NameError`].
pub fn stored_topic(name: &str) -> Result<Cow<'_, str>, NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if is_bridge_topic(name) {
        return Err(NameError::Internal(name.to_owned()));
    }
    let stored = if name == GIVEN_UP_TOPIC {
        Cow::Borrowed(STORED_GIVEN_UP)
    } else if let Some(group) = name.strip_prefix(RETRY_PREFIX) {
        Cow::Owned(escape(STORED_RETRY_PREFIX, group))
    } else if name.bytes().all(|byte| is_plain(byte) || byte == b'.') && !is_dots(name) {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(escape(STORED_NAME_PREFIX, name))
    };
    if stored.len() > STORED_TOPIC_CHARS_MAX {
        let (name, length) = (name.to_owned(), stored.len());
        return Err(NameError::TooLong { name, length, max: STORED_TOPIC_CHARS_MAX });
    }
    Ok(stored)
}

/// RocketMQ's name of a stored topic; `None` if it cannot have one there: too long, or an escape
/// that is none.
///
/// Dots become `_`. Kafka keeps a second topic from having the same name but for that, and the
/// backend finds the one there is.
#[must_use]
pub fn rocketmq_name(stored: &str) -> Option<Cow<'_, str>> {
    let name = if let Some(group) = stored.strip_prefix(STORED_RETRY_PREFIX) {
        Cow::Owned(unescape(RETRY_PREFIX, group)?)
    } else if let Some(escaped) = stored.strip_prefix(STORED_NAME_PREFIX) {
        Cow::Owned(unescape("", escaped)?)
    } else if is_bridge_topic(stored) {
        return None;
    } else if stored.contains('.') {
        Cow::Owned(stored.replace('.', "_"))
    } else {
        Cow::Borrowed(stored)
    };
    let max = if name.starts_with(RETRY_PREFIX) || name.starts_with(DLQ_PREFIX) {
        DERIVED_TOPIC_CHARS_MAX
    } else {
        TOPIC_CHARS_MAX
    };
    (name.len() <= max).then_some(name)
}

/// RocketMQ's name of a stored topic to show to people; the stored one if it has none.
#[must_use]
pub fn shown_topic(stored: &str) -> Cow<'_, str> {
    rocketmq_name(stored).unwrap_or(Cow::Borrowed(stored))
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// `.` and `..` are no topic names in Kafka.
fn is_dots(name: &str) -> bool {
    name == "." || name == ".."
}

fn escape(prefix: &str, name: &str) -> String {
    let mut stored = String::with_capacity(prefix.len() + name.len() + 8);
    stored.push_str(prefix);
    for byte in name.bytes() {
        if is_plain(byte) {
            stored.push(char::from(byte));
        } else {
            // Writing to a String does not fail.
            let _infallible = write!(stored, ".{byte:02X}");
        }
    }
    stored
}

fn unescape(prefix: &str, escaped: &str) -> Option<String> {
    let mut name = Vec::with_capacity(prefix.len() + escaped.len());
    name.extend_from_slice(prefix.as_bytes());
    let mut bytes = escaped.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'.' {
            name.push(hex_digit(bytes.next()?)? << 4 | hex_digit(bytes.next()?)?);
        } else {
            name.push(byte);
        }
    }
    String::from_utf8(name).ok()
}

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
