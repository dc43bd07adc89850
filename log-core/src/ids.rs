//! Newtypes for what must not be swapped: offsets, epochs and ids.

use std::fmt;
use std::sync::Arc;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($repr:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $repr);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// A position in a partition's log; RocketMQ's queue offset is the same number.
    Offset(i64)
}
number! {
    /// Bumped with every leader of a partition; fences the old one (KIP-101, KIP-320).
    LeaderEpoch(i32)
}
number! {
    /// `node.id`: one process.
    NodeId(i32)
}
number! {
    /// One run of a node's process: a restarted node registers with a greater one, and what the earlier run claimed is
    /// void (KIP-903).
    BrokerEpoch(i64)
}
number! {
    /// Names an idempotent or transactional producer (KIP-98).
    ProducerId(i64)
}
number! {
    /// Bumped to fence older holders of the same [`ProducerId`] (KIP-98, KIP-360).
    ProducerEpoch(i16)
}

impl Offset {
    /// The first offset of every new partition.
    pub const ZERO: Self = Self(0);

    /// The offset `count` records further; saturates.
    #[must_use]
    pub const fn plus(self, count: i64) -> Self {
        Self(self.0.saturating_add(count))
    }
}

impl LeaderEpoch {
    /// "No epoch known", as on the wire.
    pub const UNKNOWN: Self = Self(-1);
}

impl BrokerEpoch {
    /// "No epoch known", as on the wire.
    pub const UNKNOWN: Self = Self(-1);
}

impl ProducerId {
    /// A batch without idempotence.
    pub const NONE: Self = Self(-1);

    /// Above it are the ids that nobody is given: those of [`Self::of_delivery`].
    const DELIVERIES: i64 = 1 << 62;

    /// The producer under which one partition of an internal topic delivers its messages to the
    /// topics that they are meant for. Another topic, one made again under the same name included,
    /// has other ids.
    #[must_use]
    pub const fn of_delivery(source: TopicId, partition: i32) -> Self {
        let [a, b, c, d, e, f, ..] = source.0;
        // 46 bits that are drawn by lot in every topic's id, and 16 of the partition.
        let topic = i64::from_be_bytes([0, 0, a, b, c, d, e, f]) >> 2;
        Self(Self::DELIVERIES | (topic << 16) | (partition as i64 & 0xFFFF))
    }

    /// Whether this is one of [`Self::of_delivery`].
    #[must_use]
    pub const fn is_of_delivery(self) -> bool {
        self.0 >= Self::DELIVERIES
    }
}

impl ProducerEpoch {
    /// A batch without idempotence.
    pub const NONE: Self = Self(-1);
}

/// A topic's identity: a topic created again under the same name gets another one (KIP-516).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicId(pub [u8; 16]);

impl TopicId {
    /// "By name", as on the wire.
    pub const ZERO: Self = Self([0; 16]);
}

const BASE64_URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl fmt::Display for TopicId {
    /// URL-safe base64 without padding, 22 characters, as Kafka prints a `Uuid`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = u128::from_be_bytes(self.0);
        for group in 0..22_u32 {
            // 21 groups of six bits from the top, then the last two bits padded with zeros.
            let six = if group < 21 { bits >> (122 - 6 * group) } else { bits << 4 };
            let char = BASE64_URL.get((six & 0x3F) as usize).copied().unwrap_or(b'?');
            write!(f, "{}", char as char)?;
        }
        Ok(())
    }
}

impl fmt::Debug for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for TopicId {
    type Err = InvalidTopicId;

    /// Reads what [`fmt::Display`] writes.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() != 22 {
            return Err(InvalidTopicId);
        }
        let mut bits = 0_u128;
        for (group, char) in text.bytes().enumerate() {
            let six = BASE64_URL.iter().position(|&c| c == char).ok_or(InvalidTopicId)? as u128;
            if group < 21 {
                bits = (bits << 6) | six;
            } else if six & 0x0F == 0 {
                bits = (bits << 2) | (six >> 4);
            } else {
                return Err(InvalidTopicId);
            }
        }
        Ok(Self(bits.to_be_bytes()))
    }
}

/// The text is not 22 characters of URL-safe base64 for 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected 22 characters of url-safe base64 for 16 bytes")]
pub struct InvalidTopicId;

/// One partition of one topic; towards RocketMQ, one queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// The name under which the log is stored.
    pub topic: Arc<str>,
    /// 0-based; equals RocketMQ's queue id.
    pub partition: i32,
}

impl TopicPartition {
    /// Names partition `partition` of `topic`.
    pub fn new(topic: impl Into<Arc<str>>, partition: i32) -> Self {
        Self { topic: topic.into(), partition }
    }
}

impl fmt::Display for TopicPartition {
    /// `topic-partition`, the name of its folder.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

#[cfg(test)]
mod tests;
