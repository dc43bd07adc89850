//! What `__rmq.half` holds: RocketMQ's half messages, and what became of them.
//!
//! | key version | key | value, version 0 |
//! | --- | --- | --- |
//! | [`HALF_KEY_VERSION`] | born time | [`HalfMessage`] |
//! | [`CHECKED_KEY_VERSION`] | offset of the half message | how often it was asked about, when |
//! | [`ROLLED_BACK_KEY_VERSION`] | offset of the half message | nothing |
//! | [`GIVEN_UP_KEY_VERSION`] | offset of the half message | what goes to `TRANS_CHECK_MAX_TIME_TOPIC` |
//! | those of [`super::delivery`] | | a committed message goes to its queue, tag: its offset |
//!
//! Nothing is compacted: the log's start is raised over what is settled. Layouts: docs/formats.md.

use std::sync::Arc;

use duolog_log_core::ids::{Offset, TopicPartition};

use super::reader::Reader;
use super::writer::Writer;
use super::{RecordError, TooLong};
use crate::delivery::{DeliveryRecord, StoredMessage};
use crate::shard::RecordBytes;

/// Key version of [`Record::Half`].
pub const HALF_KEY_VERSION: i16 = 0x4448;

/// Key version of [`Record::Checked`].
pub const CHECKED_KEY_VERSION: i16 = 0x4443;

/// Key version of [`Record::RolledBack`].
pub const ROLLED_BACK_KEY_VERSION: i16 = 0x4442;

/// Key version of [`Record::GivenUp`].
pub const GIVEN_UP_KEY_VERSION: i16 = 0x4447;

const VALUE_VERSION: i16 = 0;

/// How long a message is not asked about after it was born.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Immunity {
    /// `transactionTimeOut`.
    Default,
    /// `transactionTimeOut` too, though the message has the property: there is no number in it, or
    /// -1. (One from the future is then not asked about before its time.)
    Unreadable,
    /// So many seconds.
    Seconds(i32),
}

impl Immunity {
    const DEFAULT: i64 = i64::MIN;
    const UNREADABLE: i64 = -1;

    /// By the text of `CHECK_IMMUNITY_TIME_IN_SECONDS`, as Java's Long.parseLong.
    #[must_use]
    pub fn of_property(text: Option<&str>) -> Self {
        let Some(text) = text else { return Self::Default };
        match text.parse::<i64>() {
            Ok(Self::UNREADABLE) | Err(_) => Self::Unreadable,
            Ok(seconds) => {
                let bound = if seconds < 0 { i32::MIN } else { i32::MAX };
                Self::Seconds(i32::try_from(seconds).unwrap_or(bound))
            }
        }
    }

    fn stored(self) -> i64 {
        match self {
            Self::Default => Self::DEFAULT,
            Self::Unreadable => Self::UNREADABLE,
            Self::Seconds(seconds) => i64::from(seconds),
        }
    }

    fn of_stored(stored: i64) -> Self {
        match stored {
            Self::DEFAULT => Self::Default,
            Self::UNREADABLE => Self::Unreadable,
            seconds => Self::Seconds(i32::try_from(seconds).unwrap_or(i32::MAX)),
        }
    }
}

/// A prepared message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HalfMessage {
    /// Where it goes if it is committed: a topic's stored name.
    pub target: TopicPartition,
    /// The producer group, whose members know how it ended.
    pub group: Arc<str>,
    /// Client id of the sender, who is asked first; empty where it is not known.
    pub client: Arc<str>,
    /// How long nobody is asked.
    pub immunity: Immunity,
    /// Milliseconds since 1970, by the producer.
    pub born_ms: i64,
    /// What goes there.
    pub message: StoredMessage,
}

/// A durable fact about half messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A message was stored.
    Half {
        /// It.
        half: HalfMessage,
        /// Names the request while it is open; not stored.
        number: Option<u64>,
    },
    /// A producer is asked how it ended.
    Checked {
        /// Where the half message stands.
        half: Offset,
        /// For the so manieth time: `TRANSACTION_CHECK_TIMES`.
        times: i32,
        /// Milliseconds since 1970.
        at_ms: i64,
    },
    /// It is not to be delivered.
    RolledBack {
        /// Where the half message stands.
        half: Offset,
    },
    /// Nobody is asked any more.
    GivenUp {
        /// Where the half message stands.
        half: Offset,
        /// It, as `TRANS_CHECK_MAX_TIME_TOPIC` is to have it.
        message: StoredMessage,
    },
    /// Messages on their way.
    Delivery(DeliveryRecord),
}

impl Record {
    /// Key and value as they are stored.
    ///
    /// Errors: a name is too long.
    pub fn encode(&self) -> Result<RecordBytes, TooLong> {
        let mut value = Writer::new();
        value.i16(VALUE_VERSION);
        let (version, about) = match self {
            Self::Delivery(record) => return record.encode(),
            Self::Half { half, .. } => {
                value.string("topic", &half.target.topic)?;
                value.i32(half.target.partition);
                value.string("producer group", &half.group)?;
                value.string("client id", &half.client)?;
                value.i64(half.immunity.stored());
                put_message(&half.message, &mut value);
                (HALF_KEY_VERSION, half.born_ms)
            }
            Self::Checked { half, times, at_ms } => {
                value.i32(*times);
                value.i64(*at_ms);
                (CHECKED_KEY_VERSION, half.0)
            }
            Self::RolledBack { half } => (ROLLED_BACK_KEY_VERSION, half.0),
            Self::GivenUp { half, message } => {
                put_message(message, &mut value);
                (GIVEN_UP_KEY_VERSION, half.0)
            }
        };
        let mut key = Writer::new();
        key.i16(version);
        key.i64(about);
        Ok(RecordBytes { key: key.finish(), value: Some(value.finish()) })
    }

    /// Reads a stored record; `None` for one of a kind that is not known.
    ///
    /// Errors: a known kind that cannot be read.
    pub fn decode(key: &[u8], value: Option<&[u8]>) -> Result<Option<Self>, RecordError> {
        if let Some(record) = DeliveryRecord::decode(key, value)? {
            return Ok(Some(Self::Delivery(record)));
        }
        let mut key = Reader::new(key);
        let version = key.i16("key version")?;
        let known =
            [HALF_KEY_VERSION, CHECKED_KEY_VERSION, ROLLED_BACK_KEY_VERSION, GIVEN_UP_KEY_VERSION];
        if !known.contains(&version) {
            return Ok(None);
        }
        let about = key.i64("born time or offset")?;
        let mut value = Reader::new(value.ok_or(RecordError::Truncated("value"))?);
        let value_version = value.i16("value version")?;
        if value_version != VALUE_VERSION {
            return Err(RecordError::ValueVersion { key: version, value: value_version });
        }
        let half = Offset(about);
        Ok(Some(match version {
            HALF_KEY_VERSION => Self::Half { half: read_half(about, &mut value)?, number: None },
            CHECKED_KEY_VERSION => {
                Self::Checked { half, times: value.i32("times")?, at_ms: value.i64("time")? }
            }
            ROLLED_BACK_KEY_VERSION => Self::RolledBack { half },
            _ => Self::GivenUp { half, message: read_message(&mut value)? },
        }))
    }

    /// The half message in a stored record, if it holds one.
    #[must_use]
    pub fn half(key: &[u8], value: &[u8]) -> Option<HalfMessage> {
        match Self::decode(key, Some(value)) {
            Ok(Some(Self::Half { half, .. })) => Some(half),
            _ => None,
        }
    }

    /// What a stored record has to be delivered, if it holds such.
    #[must_use]
    pub fn message(key: &[u8], value: &[u8]) -> Option<StoredMessage> {
        match Self::decode(key, Some(value)) {
            Ok(Some(Self::Half { half, .. })) => Some(half.message),
            Ok(Some(Self::GivenUp { message, .. })) => Some(message),
            _ => None,
        }
    }
}

fn put_message(message: &StoredMessage, value: &mut Writer) {
    value.i64(message.timestamp_ms);
    value.bytes(&message.payload);
}

fn read_message(value: &mut Reader<'_>) -> Result<StoredMessage, RecordError> {
    Ok(StoredMessage {
        timestamp_ms: value.i64("timestamp")?,
        payload: value.any_bytes("payload")?,
    })
}

fn read_half(born_ms: i64, value: &mut Reader<'_>) -> Result<HalfMessage, RecordError> {
    Ok(HalfMessage {
        target: TopicPartition::new(value.string("topic")?, value.i32("partition")?),
        group: value.string("producer group")?,
        client: value.string("client id")?,
        immunity: Immunity::of_stored(value.i64("immunity")?),
        born_ms,
        message: read_message(value)?,
    })
}

#[cfg(test)]
mod tests;
