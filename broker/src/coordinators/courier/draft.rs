//! The batch in which messages are appended to their target.

use std::sync::Arc;

use duolog_bridge::backend::NewRecord;
use duolog_log_core::ids::ProducerId;
use duolog_log_core::log::{AppendOrigin, LogError};
use duolog_log_core::producers::DeliveryPosition;
use duolog_log_core::record::{
    BatchBuilder, BatchParams, Compressor, ProducerSequence, TimestampType,
};
use duolog_log_core::replication::partition::Acks;

use crate::clock;
use crate::config::topic::{self, TopicConfig};
use crate::partitions::Partition;
use crate::partitions::append::{AppendError, Flush, Payload};

/// What a record and a batch add at most to the bytes of their payloads.
const RECORD_OVERHEAD_BYTES: usize = 21;
const BATCH_OVERHEAD_BYTES: usize = 61;

/// A message on its way.
pub(super) struct Carried {
    pub(super) position: DeliveryPosition,
    /// Where it stands in its coordinator's log.
    pub(super) offset: i64,
    pub(super) record: NewRecord,
}

pub(super) struct Draft {
    producer: ProducerId,
    bytes_max: usize,
    carried: Vec<Carried>,
    bytes: usize,
}

impl Draft {
    pub(super) fn of(config: &TopicConfig, producer: ProducerId) -> Self {
        let bytes = |limit: i32| usize::try_from(limit).unwrap_or_default();
        let bytes_max = bytes(config.max_message_bytes).min(bytes(config.segment_bytes));
        Self { producer, bytes_max, carried: Vec::new(), bytes: BATCH_OVERHEAD_BYTES }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.carried.is_empty()
    }

    pub(super) fn is_one(&self) -> bool {
        self.carried.len() == 1
    }

    pub(super) fn carried(&self) -> &[Carried] {
        &self.carried
    }

    /// Whether a message at `position` needs another batch.
    pub(super) fn must_end_before(&self, position: DeliveryPosition, record: &NewRecord) -> bool {
        self.carried.last().is_some_and(|last| {
            last.position.epoch() != position.epoch()
                || self.bytes + bytes_of(record) > self.bytes_max
        })
    }

    pub(super) fn add(&mut self, carried: Carried) {
        self.bytes += bytes_of(&carried.record);
        self.carried.push(carried);
    }

    pub(super) fn clear(&mut self) {
        self.carried.clear();
        self.bytes = BATCH_OVERHEAD_BYTES;
    }

    /// Appends all of it; returns the first offset once every replica in sync has it.
    pub(super) async fn append(
        &self,
        target: &Arc<Partition>,
        flush_interval_ms: i64,
    ) -> Result<i64, AppendError> {
        let config = target.config();
        let (timestamp_type, append_time) = match config.timestamp_type {
            topic::TimestampType::CreateTime => (TimestampType::CreateTime, None),
            topic::TimestampType::LogAppendTime => {
                (TimestampType::LogAppendTime, Some(clock::now_ms()))
            }
        };
        let bytes = self.encode(&config, append_time)?;
        let size = bytes.len();
        let payload = Payload::Batch {
            bytes,
            record_count: i32::try_from(self.carried.len()).unwrap_or(i32::MAX),
            timestamp_type,
            max_timestamp: self.carried.iter().map(|c| c.record.timestamp_ms).max().unwrap_or(-1),
            origin: AppendOrigin::Delivery,
        };
        let flush = Flush::Within(flush_interval_ms);
        let answer = target.append(payload, size, Acks::All, flush).await?;
        let appended = answer.await.unwrap_or(Err(AppendError::Stopping))?;
        Ok(appended.base_offset)
    }

    fn encode(
        &self,
        config: &TopicConfig,
        append_time: Option<i64>,
    ) -> Result<bytes::BytesMut, AppendError> {
        let invalid = |error: duolog_log_core::record::RecordError| {
            AppendError::Log(LogError::InvalidBatch(error.to_string()))
        };
        let Some(last) = self.carried.last().map(|carried| carried.position) else {
            return Err(AppendError::Log(LogError::InvalidBatch("an empty batch".to_owned())));
        };
        let before = i32::try_from(self.carried.len() - 1).unwrap_or(i32::MAX);
        let producer = ProducerSequence {
            id: self.producer,
            epoch: last.epoch(),
            base_sequence: last.sequence().saturating_sub(before),
        };
        let params = BatchParams {
            producer: Some(producer),
            append_time,
            compression: config.compression.unwrap_or_default(),
            ..BatchParams::default()
        };
        let mut builder = BatchBuilder::with_capacity(params, self.bytes);
        for Carried { record, .. } in &self.carried {
            builder.append_encoded(record.timestamp_ms, &record.payload).map_err(invalid)?;
        }
        builder.finish(&mut Compressor::new()).map_err(invalid)
    }
}

fn bytes_of(record: &NewRecord) -> usize {
    record.payload.len().saturating_add(RECORD_OVERHEAD_BYTES)
}
