//! The metadata log, `__duolog_metadata-0`: one partition like any other, synced before each answer.
//!
//! A change is one batch, so a crash keeps all of it or none. At start the log is replayed; when it
//! has grown far beyond what it means, the image is written behind it as a snapshot, batch by batch,
//! and what came before is deleted. A crash in between leaves some records twice, which say the same.

use std::sync::Arc;

use bytes::Bytes;
use duolog_log_core::ids::{LeaderEpoch, TopicId};
use duolog_log_core::log::{AppendOrigin, LogError, ReadMinimum};
use duolog_log_core::record::RecordError;
use duolog_log_core::record::batch::{NO_TIMESTAMP, SharedBatches, TimestampType};
use duolog_log_core::record::builder::{BatchBuilder, BatchParams, NewRecord};
use duolog_log_core::record::compression::{Compression, Decompressor};
use duolog_log_core::record::decoded::DecodedBatch;
use duolog_log_core::replication::partition::Acks;

use super::image::{Image, Topic};
use super::names::METADATA_TOPIC;
use super::record::{MetadataRecord, MetadataRecordError, TextTooLong, TopicRecord};
use crate::clock;
use crate::config::topic::Overrides;
use crate::config::values::ConfigError;
use crate::limits::DECOMPRESSED_BYTES_MAX;
use crate::partitions::append::{AppendError, Flush, Payload};
use crate::partitions::{Partition, Partitions, PlacementError};

/// The log's own id, which no random id is equal to.
pub const METADATA_TOPIC_ID: TopicId = TopicId([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);

/// The largest change: one batch has to fit into a segment.
const SEGMENT_BYTES: &str = "67108864";

/// How much larger than its own snapshot the log may grow, and by how much at least.
const GROWTH_FACTOR: u64 = 4;
const GROWTH_BYTES_MIN: u64 = 1024 * 1024;

/// Keys and values of one batch of a snapshot, or one record that is larger.
const SNAPSHOT_BATCH_BYTES: u64 = 1024 * 1024;

/// Bytes of the log read at a time.
const READ_BYTES: usize = 1024 * 1024;

/// Why the metadata cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum MetadataLogError {
    /// The partition refuses.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A batch cannot be read.
    #[error("offset {offset}: {source}")]
    Batch {
        /// The batch's first offset; -1 for one that was to be written.
        offset: i64,
        /// What is wrong with it.
        source: RecordError,
    },
    /// Nothing can be read from an offset on.
    #[error("it ends at offset {offset} instead of {end}")]
    EndsEarly {
        /// Where.
        offset: i64,
        /// The log's own end.
        end: i64,
    },
    /// A record cannot be read.
    #[error("offset {offset}: {source}")]
    Record {
        /// The record's offset.
        offset: i64,
        /// What is wrong with it.
        source: MetadataRecordError,
    },
    /// A record that was to be written has a text that it cannot hold.
    #[error(transparent)]
    TooLong(#[from] TextTooLong),
    /// A stored setting does not fit this version.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A partition is in two log directories.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// The directory is put together from two clusters.
    #[error("the metadata log is of cluster {log}, meta.properties of cluster {directory}")]
    OtherCluster {
        /// What the log says.
        log: TopicId,
        /// What the directory says.
        directory: TopicId,
    },
}

/// The log, for the one who writes it.
#[derive(Debug)]
pub(super) struct MetadataLog {
    partition: Arc<Partition>,
}

impl MetadataLog {
    /// Replays the log onto `image`, begins this run's leader epoch, and returns both.
    pub(super) async fn open(
        mut image: Image,
        partitions: &Partitions,
    ) -> Result<(Self, Image), MetadataLogError> {
        let shared = partitions.shared();
        let partition = partitions.put_metadata(&metadata_topic(&image)?);
        replay(&partition, &mut image).await?;
        let log = Self { partition };
        let directory = shared.log_dirs.cluster_id();
        let mut first = Vec::new();
        match image.cluster_id() {
            TopicId::ZERO => first.push(MetadataRecord::Cluster { id: directory }),
            held if held == directory => {}
            log => return Err(MetadataLogError::OtherCluster { log, directory }),
        }
        let epoch = image.leader_epoch().map_or(0, |epoch| epoch.saturating_add(1));
        first.push(MetadataRecord::LeaderEpoch(epoch));
        for record in &first {
            image.apply(record.clone())?;
        }
        log.append(&first).await?;
        shared.set_leader_epoch(LeaderEpoch(epoch));
        if let Err(error) = log.compact(&image).await {
            // All that was there still is.
            tracing::warn!(%error, "the metadata log is not compacted; the next start tries again");
        }
        Ok((log, image))
    }

    /// Writes `records` as one batch; they are on disk once this returns.
    pub(super) async fn append(&self, records: &[MetadataRecord]) -> Result<i64, MetadataLogError> {
        let now_ms = clock::now_ms();
        let mut builder = BatchBuilder::new(BatchParams::default());
        for record in records {
            let (key, value) = record.encode()?;
            let record = NewRecord {
                timestamp: now_ms,
                key: Some(&key),
                value: value.as_deref(),
                headers: &[],
            };
            builder
                .append(&record)
                .map_err(|source| MetadataLogError::Batch { offset: -1, source })?;
        }
        let record_count = builder.record_count();
        let bytes = builder
            .finish_uncompressed()
            .map_err(|source| MetadataLogError::Batch { offset: -1, source })?;
        let size = bytes.len();
        let payload = Payload::Batch {
            bytes,
            record_count,
            timestamp_type: TimestampType::CreateTime,
            max_timestamp: now_ms.max(NO_TIMESTAMP),
            origin: AppendOrigin::Coordinator,
        };
        // The topic's flush.messages=1 holds the answer back until the sync.
        let answer = self.partition.append(payload, size, Acks::All, Flush::Now).await?;
        let appended = answer.await.unwrap_or(Err(AppendError::Stopping))?;
        Ok(appended.base_offset)
    }

    /// Writes a snapshot and drops what is before it, when that is worth it.
    async fn compact(&self, image: &Image) -> Result<(), MetadataLogError> {
        let records = image.records();
        let size: u64 = records.iter().map(size_of).sum();
        let held = self.partition.bytes();
        if held < GROWTH_BYTES_MIN || held < size.saturating_mul(GROWTH_FACTOR) {
            return Ok(());
        }
        // A segment of its own, so that what lies before it can go as a whole.
        self.partition.roll().await?;
        let mut base_offset = None;
        for batch in batches(&records) {
            let appended = self.append(batch).await?;
            base_offset.get_or_insert(appended);
        }
        // All of it is on disk.
        if let Some(base_offset) = base_offset {
            self.partition.delete_records(base_offset).await?;
        }
        self.partition.keep_house();
        tracing::info!(bytes = held, records = records.len(), "metadata log compacted");
        Ok(())
    }
}

/// Bytes of a record's key and value; none of one that the append will refuse.
fn size_of(record: &MetadataRecord) -> u64 {
    record.encode().map_or(0, |(key, value)| (key.len() + value.map_or(0, |v| v.len())) as u64)
}

/// Records one after the other, as many together as [`SNAPSHOT_BATCH_BYTES`] allow.
fn batches(records: &[MetadataRecord]) -> impl Iterator<Item = &[MetadataRecord]> {
    let mut bytes = records.first().map_or(0, size_of);
    records.chunk_by(move |_, next| {
        let size = size_of(next);
        let fits = bytes.saturating_add(size) <= SNAPSHOT_BATCH_BYTES;
        bytes = if fits { bytes + size } else { size };
        fits
    })
}

fn metadata_topic(image: &Image) -> Result<Topic, ConfigError> {
    let overrides = [
        ("cleanup.policy", "compact"),
        ("flush.messages", "1"),
        ("segment.bytes", SEGMENT_BYTES),
        ("max.message.bytes", SEGMENT_BYTES),
    ];
    let overrides: Overrides =
        overrides.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let record = TopicRecord { id: METADATA_TOPIC_ID, internal: true, numbers: vec![0], overrides };
    super::image::resolve(image.values(), METADATA_TOPIC.into(), record)
}

async fn replay(partition: &Arc<Partition>, image: &mut Image) -> Result<(), MetadataLogError> {
    let reader = partition.reader().await?;
    let end = partition.offsets().log_end;
    let mut offset = partition.offsets().log_start;
    let mut decompressor = Decompressor::default();
    while offset < end {
        let read = reader.read(offset, READ_BYTES, end, ReadMinimum::OneBatch)?;
        if read.next_offset <= offset {
            return Err(MetadataLogError::EndsEarly { offset, end });
        }
        for piece in read.pieces {
            replay_piece(piece, image, &mut decompressor)?;
        }
        offset = read.next_offset;
    }
    Ok(())
}

fn replay_piece(
    piece: Bytes,
    image: &mut Image,
    decompressor: &mut Decompressor,
) -> Result<(), MetadataLogError> {
    let mut offset = -1;
    for batch in SharedBatches::new(piece) {
        let (header, bytes) = batch.map_err(|source| MetadataLogError::Batch { offset, source })?;
        offset = header.base_offset;
        // What is stored plain takes no more memory than the log has read: whatever was appended is replayed.
        let limit = match header.compression() {
            Ok(Compression::None) => bytes.len(),
            _ => DECOMPRESSED_BYTES_MAX,
        };
        // A record that was damaged may well be another valid one.
        let batch = DecodedBatch::decode_verified(&bytes, decompressor, limit)
            .map_err(|source| MetadataLogError::Batch { offset, source })?;
        for record in batch.iter() {
            let key = record.key.unwrap_or_default();
            let change = MetadataRecord::decode(key, record.value)
                .map_err(|source| MetadataLogError::Record { offset: record.offset, source })?;
            image.apply(change)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
