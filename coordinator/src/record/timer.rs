//! What `rmq_sys_timer` holds: messages that wait for their time, and what became of them.
//!
//! | key version | key | value, version 0 |
//! | --- | --- | --- |
//! | [`TIMED_KEY_VERSION`] | due time | [`TimedMessage`] |
//! | [`RECALLED_KEY_VERSION`] | due time | offset of the message |
//! | those of [`super::delivery`] | | |
//!
//! Nothing is compacted: the log's start is raised over what is done. Layouts: docs/formats.md.

use std::sync::Arc;

use duolog_log_core::ids::{Offset, TopicPartition};

use super::reader::Reader;
use super::writer::Writer;
use super::{RecordError, TooLong};
use crate::delivery::{DeliveryRecord, StoredMessage};
use crate::shard::RecordBytes;

/// Key version of [`TimerRecord::Timed`].
pub const TIMED_KEY_VERSION: i16 = 0x444D;

/// Key version of [`TimerRecord::Recalled`].
pub const RECALLED_KEY_VERSION: i16 = 0x4452;

const VALUE_VERSION: i16 = 0;

/// A message that waits for its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedMessage {
    /// When it is due, milliseconds since 1970.
    pub due_ms: i64,
    /// Where it goes then: a topic's stored name.
    pub target: TopicPartition,
    /// The message's own id (`UNIQ_KEY`): what a recall looks for.
    pub id: Arc<str>,
    /// What goes there.
    pub message: StoredMessage,
}

/// A durable fact about timers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimerRecord {
    /// A message was stored.
    Timed {
        /// It.
        timed: TimedMessage,
        /// Names the request while it is open; not stored.
        number: Option<u64>,
    },
    /// A message is not to be delivered.
    Recalled {
        /// When it would have been due.
        due_ms: i64,
        /// Where it stands.
        offset: Offset,
    },
    /// Messages on their way.
    Delivery(DeliveryRecord),
}

impl TimerRecord {
    /// Key and value as they are stored.
    ///
    /// Errors: a topic's name is too long.
    pub fn encode(&self) -> Result<RecordBytes, TooLong> {
        let mut value = Writer::new();
        value.i16(VALUE_VERSION);
        let (version, due_ms) = match self {
            Self::Delivery(record) => return record.encode(),
            Self::Timed { timed, .. } => {
                let TimedMessage { due_ms, target, id, message } = timed;
                value.string("topic", &target.topic)?;
                value.i32(target.partition);
                value.string("id", id)?;
                value.i64(message.timestamp_ms);
                value.bytes(&message.payload);
                (TIMED_KEY_VERSION, *due_ms)
            }
            Self::Recalled { due_ms, offset } => {
                value.i64(offset.0);
                (RECALLED_KEY_VERSION, *due_ms)
            }
        };
        let mut key = Writer::new();
        key.i16(version);
        key.i64(due_ms);
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
        if version != TIMED_KEY_VERSION && version != RECALLED_KEY_VERSION {
            return Ok(None);
        }
        let due_ms = key.i64("due time")?;
        let mut value = Reader::new(value.ok_or(RecordError::Truncated("value"))?);
        let value_version = value.i16("value version")?;
        if value_version != VALUE_VERSION {
            return Err(RecordError::ValueVersion { key: version, value: value_version });
        }
        if version == RECALLED_KEY_VERSION {
            return Ok(Some(Self::Recalled { due_ms, offset: Offset(value.i64("offset")?) }));
        }
        let target = TopicPartition::new(value.string("topic")?, value.i32("partition")?);
        let id = value.string("id")?;
        let timestamp_ms = value.i64("timestamp")?;
        let payload = value.any_bytes("payload")?;
        let message = StoredMessage { timestamp_ms, payload };
        let timed = TimedMessage { due_ms, target, id, message };
        Ok(Some(Self::Timed { timed, number: None }))
    }

    /// The message in a stored record, if it holds one.
    #[must_use]
    pub fn message(key: &[u8], value: &[u8]) -> Option<TimedMessage> {
        match Self::decode(key, Some(value)) {
            Ok(Some(Self::Timed { timed, .. })) => Some(timed),
            _ => None,
        }
    }
}
