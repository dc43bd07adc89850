//! Acknowledgements of many popped messages.

use super::BodyError;
use crate::backend::PopOffsets;
use crate::json::Value;

/// Body of BATCH_ACK_MESSAGE (200151).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchAckMessageRequestBody {
    /// What is acknowledged.
    pub acks: Vec<BatchAck>,
}

/// Messages of one delivery of one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchAck {
    /// The group.
    pub consumer_group: String,
    /// RocketMQ's name of the topic.
    pub topic: String,
    /// The queue.
    pub queue_id: i32,
    /// When they were popped.
    pub pop_time: i64,
    /// Which.
    pub offsets: PopOffsets,
}

impl BatchAckMessageRequestBody {
    /// Reads a body.
    ///
    /// # Errors
    /// See [`BodyError`].
    pub fn decode(body: &[u8]) -> Result<Self, BodyError> {
        let value = Value::parse(body)?;
        let acks = value.elements("acks")?.iter().map(BatchAck::read);
        Ok(Self { acks: acks.collect::<Result<_, _>>()? })
    }
}

impl BatchAck {
    fn read(value: &Value<'_>) -> Result<Self, BodyError> {
        let text = |short, long| Ok::<_, BodyError>(value.text(short)?.or(value.text(long)?));
        let number = |short, long| {
            Ok::<_, BodyError>(value.number::<i64>(short)?.or(value.number(long)?).unwrap_or(0))
        };
        let queue = value.number::<i32>("q")?.or(value.number("queueId")?);
        let bits = text("b", "bitSet")?.unwrap_or_default();
        let bits =
            unbase64(&bits).ok_or(BodyError::Field { field: "bitSet", expected: "base64" })?;
        Ok(Self {
            consumer_group: text("c", "consumerGroup")?.unwrap_or_default(),
            topic: text("t", "topic")?.unwrap_or_default(),
            queue_id: queue.unwrap_or(0),
            pop_time: number("pt", "popTime")?,
            offsets: PopOffsets { first: number("so", "startOffset")?, bits },
        })
    }
}

/// As fastjson reads it: padding may be missing.
fn unbase64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=');
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 3);
    for piece in text.as_bytes().chunks(4) {
        let mut bits = 0_u32;
        for char in piece {
            let six = match char {
                b'A'..=b'Z' => char - b'A',
                b'a'..=b'z' => char - b'a' + 26,
                b'0'..=b'9' => char - b'0' + 52,
                b'+' | b'-' => 62,
                b'/' | b'_' => 63,
                _ => return None,
            };
            bits = (bits << 6) | u32::from(six);
        }
        // A single character is no whole byte.
        let bytes = piece.len().checked_sub(1).filter(|bytes| *bytes > 0)?;
        bits <<= 6 * (4 - piece.len());
        out.extend_from_slice(bits.to_be_bytes().get(1..=bytes)?);
    }
    Some(out)
}

#[cfg(test)]
mod tests;
