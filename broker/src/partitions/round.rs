//! All appends that waited for a partition, as few record batches as can be.
//!
//! A Kafka client's batch stays what it is. Records of RocketMQ sends that stand next to each other
//! are encoded into one batch, up to `max.message.bytes` (a larger one only when a single send needs
//! it).

use std::mem;

use duolog_bridge::backend::NewRecord;
use duolog_log_core::log::{AppendBatch, AppendOrigin};
use duolog_log_core::record::builder::{BatchBuilder, BatchParams};
use duolog_log_core::record::{Compression, Compressor, batch};
use duolog_log_core::replication::partition::Acks;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::append::{Append, AppendError, AppendResult, Flush, Payload};
use crate::config::topic::{TimestampType, TopicConfig};
use crate::limits::SEND_BYTES_MAX;

/// One append that waits for its batch to be written.
#[derive(Debug)]
pub(super) struct Waiting {
    /// How many offsets of the batch are its own.
    pub records: i64,
    pub acks: Acks,
    pub flush: Flush,
    pub reply: oneshot::Sender<AppendResult>,
    _room: OwnedSemaphorePermit,
}

/// One batch of the round: who waits for it, in order of their records.
#[derive(Debug)]
pub(super) struct Part {
    pub waiting: Vec<Waiting>,
    /// Size of the batch.
    pub bytes: usize,
    /// The log's own time when the topic asks for it, else -1.
    pub log_append_time_ms: i64,
}

impl Part {
    /// Answers everybody that the batch was not written.
    pub(super) fn refuse(self, error: &AppendError) {
        for waiting in self.waiting {
            drop(waiting.reply.send(Err(error.clone())));
        }
    }
}

/// What one round of the owner writes.
pub(super) struct Round {
    now_ms: i64,
    /// The time of records that are gathered here, if the topic asks for the log's own.
    append_time: Option<i64>,
    batch_bytes_max: usize,
    /// The codec of records that are gathered here.
    compression: Compression,
    batches: Vec<AppendBatch>,
    parts: Vec<Part>,
    /// The batch that is being gathered.
    builder: Option<BatchBuilder>,
    gathered: Vec<Waiting>,
}

impl Round {
    pub(super) fn new(config: &TopicConfig, now_ms: i64) -> Self {
        let append_time = match config.timestamp_type {
            TimestampType::CreateTime => None,
            TimestampType::LogAppendTime => Some(now_ms),
        };
        Self {
            now_ms,
            append_time,
            batch_bytes_max: usize::try_from(config.max_message_bytes).unwrap_or_default(),
            compression: config.compression.unwrap_or_default(),
            batches: Vec::new(),
            parts: Vec::new(),
            builder: None,
            gathered: Vec::new(),
        }
    }

    /// Gives `append` its place behind the others, or answers it at once.
    pub(super) fn add(&mut self, append: Append) {
        let Append { payload, acks, flush, reply, room } = append;
        let waiting = |records| Waiting { records, acks, flush, reply, _room: room };
        match payload {
            Payload::Batch { mut bytes, record_count, timestamp_type, max_timestamp, origin } => {
                self.seal();
                // As it was validated, though the topic may have been configured otherwise since.
                let append_time = match timestamp_type {
                    batch::TimestampType::CreateTime => None,
                    batch::TimestampType::LogAppendTime => Some(self.now_ms),
                };
                let max_timestamp = append_time.unwrap_or(max_timestamp);
                if let Err(error) = batch::stamp(&mut bytes, timestamp_type, max_timestamp) {
                    return drop(waiting(0).reply.send(Err(AppendError::invalid(&error))));
                }
                let waiting = vec![waiting(i64::from(record_count))];
                self.push(bytes, origin, waiting, append_time);
            }
            Payload::Records(records) => {
                let records = records.as_slice();
                let waiting = waiting(i64::try_from(records.len()).unwrap_or(i64::MAX));
                let bytes = bytes_bound(records);
                let maximum = SEND_BYTES_MAX.max(self.batch_bytes_max);
                if bytes > maximum {
                    let error = AppendError::RecordTooLarge { bytes, maximum };
                    return drop(waiting.reply.send(Err(error)));
                }
                let gathered = self.builder.as_ref().map_or(0, BatchBuilder::size_in_bytes);
                if gathered.saturating_add(bytes) > self.batch_bytes_max {
                    self.seal();
                }
                self.gather(records, bytes, waiting);
            }
        }
    }

    fn gather(&mut self, records: &[NewRecord], bytes: usize, waiting: Waiting) {
        let (append_time, compression) = (self.append_time, self.compression);
        let params = BatchParams { append_time, compression, ..BatchParams::default() };
        // Most batches are one send's: just its room then, for the batch stays in memory a while.
        let builder =
            self.builder.get_or_insert_with(|| BatchBuilder::with_capacity(params, bytes));
        for record in records {
            let added = builder.append_encoded(record.timestamp_ms, &record.payload);
            debug_assert!(added.is_ok(), "the bound excludes batches beyond 2 GiB");
        }
        self.gathered.push(waiting);
    }

    /// Ends the batch that is being gathered.
    fn seal(&mut self) {
        let Some(builder) = self.builder.take() else { return };
        let waiting = mem::take(&mut self.gathered);
        // It keeps no codec's memory until one is used.
        match builder.finish(&mut Compressor::new()) {
            Ok(bytes) => self.push(bytes, AppendOrigin::Client, waiting, self.append_time),
            Err(error) => {
                let part = Part { waiting, bytes: 0, log_append_time_ms: -1 };
                part.refuse(&AppendError::invalid(&error));
            }
        }
    }

    fn push(
        &mut self,
        bytes: bytes::BytesMut,
        origin: AppendOrigin,
        waiting: Vec<Waiting>,
        append_time: Option<i64>,
    ) {
        let log_append_time_ms = append_time.unwrap_or(-1);
        self.parts.push(Part { waiting, bytes: bytes.len(), log_append_time_ms });
        self.batches.push(AppendBatch { bytes, origin });
    }

    /// The batches to write, and who waits for each.
    pub(super) fn finish(mut self) -> (Vec<AppendBatch>, Vec<Part>) {
        self.seal();
        (self.batches, self.parts)
    }
}

/// An upper bound of what `records` add to a batch.
fn bytes_bound(records: &[NewRecord]) -> usize {
    /// Length, attributes, timestamp delta and offset delta at their longest.
    const PREFIX_BYTES_MAX: usize = 5 + 1 + 10 + 5;
    records.iter().map(|record| record.payload.len().saturating_add(PREFIX_BYTES_MAX)).sum()
}
