//! A batch decoded once and shared by all that read it.

use std::sync::OnceLock;

use duolog_log_core::record::{DecodedBatch, Record};

use crate::translate::message::{Door, tag_hash};
use crate::translate::names;

/// A decoded batch with what RocketMQ's readers need besides. The node keeps it in a bounded cache
/// by partition and base offset.
#[derive(Debug)]
pub struct SharedBatch {
    decoded: DecodedBatch,
    append_time_ms: i64,
    /// By index of the record; made when somebody first reads with a filter.
    tag_hashes: OnceLock<Box<[i32]>>,
}

impl SharedBatch {
    /// Joins a batch and the time it was appended at, milliseconds since 1970.
    #[must_use]
    pub fn new(decoded: DecodedBatch, append_time_ms: i64) -> Self {
        Self { decoded, append_time_ms, tag_hashes: OnceLock::new() }
    }

    /// First offset the batch covers.
    #[must_use]
    pub fn base_offset(&self) -> i64 {
        self.decoded.header().base_offset
    }

    /// One past the last offset the batch covers.
    #[must_use]
    pub fn next_offset(&self) -> i64 {
        self.decoded.header().next_offset()
    }

    /// When the batch was appended, milliseconds since 1970.
    #[must_use]
    pub fn append_time_ms(&self) -> i64 {
        self.append_time_ms
    }

    /// The batch itself.
    #[must_use]
    pub fn decoded(&self) -> &DecodedBatch {
        &self.decoded
    }

    /// Who may have written this batch into the topic of this stored name. What a coordinator
    /// delivered is the bridge's whatever the topic, for no client may pass for one.
    #[must_use]
    pub fn door(&self, topic: &str) -> Door {
        let is_delivered = self.decoded.header().producer_id.is_of_delivery();
        if is_delivered || names::is_bridge_topic(topic) { Door::Bridge } else { Door::Both }
    }

    /// Bytes this batch keeps in memory, with its tags; what a cache counts.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let tags = self.decoded.len() * size_of::<i32>();
        self.decoded.memory_bytes() + tags + size_of::<Self>() - size_of::<DecodedBatch>()
    }

    /// The records from `offset` on, each with the Java hash of its tag (0 without one).
    pub fn tagged_from(&self, offset: i64) -> impl Iterator<Item = (Record<'_>, i32)> {
        let hashes = self
            .tag_hashes
            .get_or_init(|| self.decoded.iter().map(|record| tag_hash(&record)).collect());
        let records = self.decoded.iter_from(offset);
        let skipped = hashes.len() - records.len();
        records.zip(hashes.iter().skip(skipped).copied())
    }
}

#[cfg(test)]
mod tests;
