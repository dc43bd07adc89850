//! Topics as both protocols see them.

use std::collections::BTreeMap;
use std::sync::Arc;

use duolog_log_core::ids::TopicId;

use crate::translate::keys::KeyIndex;
use crate::translate::send::{KeySource, TimestampBounds, Tombstones};

/// Permission bit: a new topic may inherit from this one.
pub const PERM_INHERIT: i32 = 1;
/// Permission bit: sends are allowed.
pub const PERM_WRITE: i32 = 2;
/// Permission bit: pulls are allowed.
pub const PERM_READ: i32 = 4;

/// A topic's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// Stored name.
    pub name: Arc<str>,
    /// Another one after the topic was deleted and created again.
    pub id: TopicId,
    /// How many partitions there are; never below either queue count.
    pub partitions: i32,
    /// `rmq.read.queues`: queues 0.. that RocketMQ consumers see.
    pub read_queues: i32,
    /// `rmq.write.queues`: queues 0.. that RocketMQ producers see.
    pub write_queues: i32,
    /// `rmq.perm`: the `PERM_` bits.
    pub perm: i32,
    /// `topicSysFlag`.
    pub sys_flag: i32,
    /// `order`.
    pub order: bool,
    /// Not for clients to write to (`__consumer_offsets` and the like).
    pub internal: bool,
    /// `rmq.key.source`: which property of a message becomes its record's key.
    pub key_source: KeySource,
    /// `rmq.key.index`: whose records are found by key.
    pub key_index: KeyIndex,
    /// Allowed where `cleanup.policy` has `compact`.
    pub tombstones: Tombstones,
    /// Which born timestamps become those of records.
    pub timestamps: TimestampBounds,
    /// Attributes such as `message.type`.
    pub attributes: BTreeMap<String, String>,
}

/// What a topic shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSpec {
    /// Stored name.
    pub name: Arc<str>,
    /// `rmq.read.queues`.
    pub read_queues: i32,
    /// `rmq.write.queues`.
    pub write_queues: i32,
    /// `rmq.perm`.
    pub perm: i32,
    /// `topicSysFlag`.
    pub sys_flag: i32,
    /// `order`.
    pub order: bool,
    /// All attributes; replaces what was there.
    pub attributes: BTreeMap<String, String>,
}

impl TopicSpec {
    /// How many partitions the topic needs.
    #[must_use]
    pub fn partitions(&self) -> i32 {
        self.read_queues.max(self.write_queues)
    }
}
