//! What is noted of messages on their way ([`crate::delivery`]), in any internal topic.
//!
//! | key version | key | value, version 0 |
//! | --- | --- | --- |
//! | [`NOTE_KEY_VERSION`] | topic, partition | count, then of each message its offset and tag |
//! | [`DONE_KEY_VERSION`] | topic, partition | the offset of the last note that is done |
//!
//! Big endian; topic: length in 16 bits and UTF-8; partition and count 32 bits, offsets and tags 64.

use duolog_log_core::ids::{Offset, TopicPartition};

use super::reader::Reader;
use super::writer::Writer;
use super::{RecordError, TooLong};
use crate::delivery::NOTED_MAX;
use crate::shard::RecordBytes;

/// Key version of [`DeliveryRecord::Note`].
pub const NOTE_KEY_VERSION: i16 = 0x444E;

/// Key version of [`DeliveryRecord::Done`].
pub const DONE_KEY_VERSION: i16 = 0x444F;

const VALUE_VERSION: i16 = 0;

/// One message in a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// Where it stands in the machine's log.
    pub offset: Offset,
    /// Whatever the machine finds it by.
    pub tag: i64,
}

/// Messages that go to one target, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Where to: a topic's stored name.
    pub target: TopicPartition,
    /// One to [`NOTED_MAX`].
    pub messages: Vec<Noted>,
}

/// A durable fact about messages on their way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryRecord {
    /// They are to be delivered.
    Note(Note),
    /// All notes for a target up to `through`, inclusive, are followed.
    Done {
        /// The target.
        target: TopicPartition,
        /// Offset of a note.
        through: Offset,
    },
}

impl DeliveryRecord {
    /// Key and value as they are stored.
    ///
    /// Errors: a topic's name is too long.
    pub fn encode(&self) -> Result<RecordBytes, TooLong> {
        let mut value = Writer::new();
        value.i16(VALUE_VERSION);
        let (version, target) = match self {
            Self::Note(Note { target, messages }) => {
                value.length(messages.len());
                for Noted { offset, tag } in messages {
                    value.i64(offset.0);
                    value.i64(*tag);
                }
                (NOTE_KEY_VERSION, target)
            }
            Self::Done { target, through } => {
                value.i64(through.0);
                (DONE_KEY_VERSION, target)
            }
        };
        let mut key = Writer::new();
        key.i16(version);
        key.string("topic", &target.topic)?;
        key.i32(target.partition);
        Ok(RecordBytes { key: key.finish(), value: Some(value.finish()) })
    }

    /// Reads a stored record; `None` for one of another kind.
    ///
    /// Errors: one of these kinds that cannot be read.
    pub fn decode(key: &[u8], value: Option<&[u8]>) -> Result<Option<Self>, RecordError> {
        let mut key = Reader::new(key);
        let version = key.i16("key version")?;
        if version != NOTE_KEY_VERSION && version != DONE_KEY_VERSION {
            return Ok(None);
        }
        let target = TopicPartition::new(key.string("topic")?, key.i32("partition")?);
        let mut value = Reader::new(value.ok_or(RecordError::Truncated("value"))?);
        let value_version = value.i16("value version")?;
        if value_version != VALUE_VERSION {
            return Err(RecordError::ValueVersion { key: version, value: value_version });
        }
        if version == DONE_KEY_VERSION {
            let through = Offset(value.i64("through")?);
            return Ok(Some(Self::Done { target, through }));
        }
        let count = usize::try_from(value.i32("messages")?).unwrap_or(usize::MAX);
        if count > NOTED_MAX {
            return Err(RecordError::Truncated("messages"));
        }
        let mut messages = Vec::with_capacity(count);
        for _ in 0..count {
            let offset = Offset(value.i64("offset")?);
            messages.push(Noted { offset, tag: value.i64("tag")? });
        }
        Ok(Some(Self::Note(Note { target, messages })))
    }
}
