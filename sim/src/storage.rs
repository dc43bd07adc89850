//! A node's files: the log, its checkpoints, and batches as values.

use std::path::Path;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use duolog_log_core::ids::{Offset, ProducerEpoch, ProducerId, TopicId, TopicPartition};
use duolog_log_core::log::{
    Log, LogConfig, LogError, LogIdentity, OpenHint, ReadMinimum, Shutdown,
};
use duolog_log_core::record::{
    Batch, BatchBuilder, BatchKind, BatchParams, EndTransactionMarker, NewRecord, ProducerSequence,
    SharedBatches,
};
use duolog_log_core::replication::partition::{LogPosition, Partition};
use duolog_log_core::storage::checkpoint::{
    LOG_START_FILE, Offsets, RECOVERY_POINT_FILE, REPLICATION_FILE, read_offsets, write_offsets,
};
use duolog_log_core::storage::disk::{Disk, DiskResult};
use duolog_log_core::testing::mem_disk::MemDisk;

use crate::checker::{Entry, Shadow};
use crate::message::{Kind, ProduceRequest};
use crate::values;

const DATA: &str = "/data";
const DIR: &str = "/data/sim-0";
const DROPPED: &str = "/data/sim-0.dropped-delete";
/// Bytes of a record's value beside its number, so that segments fill and writes can tear.
const PADDING: usize = 24;

fn partition() -> TopicPartition {
    TopicPartition::new("sim", 0)
}

/// How much a log holds.
#[derive(Clone, Copy)]
pub struct Bounds {
    /// `segment.bytes`.
    pub segment_bytes: u32,
    /// `retention.bytes`; -1 for no bound.
    pub retention_bytes: i64,
}

/// A log and what its checkpoints say.
pub struct Opened {
    pub log: Log,
    pub high_watermark: Offset,
}

/// Opens the log on `disk` as a node does at its start.
pub fn open(
    disk: &MemDisk,
    shutdown: Shutdown,
    bounds: Bounds,
    now_ms: i64,
) -> Result<Opened, LogError> {
    let data = Path::new(DATA);
    disk.create_dir_all(data)?;
    disk.sync_dir(Path::new("/"))?;
    let checkpoint = |file| -> Result<Option<i64>, LogError> {
        Ok(read_offsets(disk, data, file)?.get(&partition()).copied())
    };
    let hint = OpenHint {
        shutdown,
        recovery_point: checkpoint(RECOVERY_POINT_FILE)?,
        log_start_offset: checkpoint(LOG_START_FILE)?,
        ..OpenHint::default()
    };
    let high_watermark = Offset(checkpoint(REPLICATION_FILE)?.unwrap_or(0));
    let config = LogConfig {
        segment_bytes: bounds.segment_bytes,
        index_interval_bytes: 200,
        retention_ms: -1,
        retention_bytes: bounds.retention_bytes,
        file_delete_delay_ms: 1_000,
        tail_cache_bytes: 1 << 12,
        ..LogConfig::default()
    };
    let topic = partition().topic;
    let identity = LogIdentity { topic, partition: 0, topic_id: TopicId([7; 16]) };
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let (mut log, _) = Log::open(shared, Path::new(DIR), identity, Arc::new(config), hint, now_ms)?;
    log.opened_at_high_watermark(high_watermark.0.min(log.log_end_offset()), now_ms)?;
    Ok(Opened { log, high_watermark })
}

/// Removes `log` with its folder, under another name first: what a crash leaves of it is no log.
pub fn drop_log(disk: &MemDisk, log: Log) -> Result<(), LogError> {
    let renamed = Path::new(DROPPED);
    if disk.list(renamed).is_ok() {
        disk.remove_dir_all(renamed)?;
    }
    log.delete(renamed)?;
    disk.remove_dir_all(renamed)?;
    write_offset_checkpoints(disk, None, None, None)?;
    Ok(())
}

/// Writes the three checkpoints, synced.
pub fn write_checkpoints(disk: &MemDisk, log: &Log, replica: &Partition) -> DiskResult<()> {
    let watermark = replica.high_watermark().0;
    let (recovered, start) = (log.recovery_point(), log.checkpointed_log_start());
    write_offset_checkpoints(disk, Some(recovered), start, Some(watermark))
}

fn write_offset_checkpoints(
    disk: &MemDisk,
    recovery_point: Option<i64>,
    log_start: Option<i64>,
    high_watermark: Option<i64>,
) -> DiskResult<()> {
    let data = Path::new(DATA);
    let files = [
        (RECOVERY_POINT_FILE, recovery_point),
        (LOG_START_FILE, log_start),
        (REPLICATION_FILE, high_watermark),
    ];
    for (file, offset) in files {
        let offsets: Offsets = offset.map(|offset| (partition(), offset)).into_iter().collect();
        write_offsets(disk, data, file, &offsets)?;
    }
    Ok(())
}

/// Where `log` stands.
pub fn position(log: &Log) -> LogPosition {
    LogPosition {
        log_start_offset: Offset(log.log_start_offset()),
        log_end_offset: Offset(log.log_end_offset()),
        first_unstable_offset: log.first_unstable_offset().map(Offset),
    }
}

/// The batch that `request` asks to append.
pub fn batch(request: &ProduceRequest, now_ms: i64) -> Option<BytesMut> {
    let producer = request.producer.map(|(id, epoch, base_sequence)| ProducerSequence {
        id: ProducerId(id),
        epoch: ProducerEpoch(epoch),
        base_sequence,
    });
    let kind = match request.kind {
        Kind::Plain => BatchKind::Plain,
        Kind::Transactional => BatchKind::Transactional,
        Kind::Marker { outcome, coordinator_epoch } => {
            let ProducerSequence { id, epoch, .. } = producer?;
            let marker = EndTransactionMarker { outcome, coordinator_epoch };
            return marker.batch(id, epoch, now_ms).ok();
        }
    };
    let mut builder = BatchBuilder::new(BatchParams { producer, kind, ..BatchParams::default() });
    for value in &request.values {
        let mut bytes = value.to_be_bytes().to_vec();
        bytes.resize(bytes.len() + PADDING, b'.');
        let record = NewRecord { timestamp: now_ms, value: Some(&bytes), ..NewRecord::default() };
        builder.append(&record).ok()?;
    }
    builder.finish_uncompressed().ok()
}

/// The records of one whole batch.
pub fn entries_of(bytes: &[u8]) -> Option<Vec<Entry>> {
    let batch = Batch::parse(bytes).ok()?;
    batch.verify_crc().ok()?;
    let header = batch.header();
    let epoch = header.partition_leader_epoch;
    if header.is_control() {
        let record = batch.records()?.next()?.ok()?;
        let marker = EndTransactionMarker::parse(&record).ok()??;
        let producer = values::producer_with_id(header.producer_id.0)?;
        let value = values::marker(producer, marker.coordinator_epoch, marker.outcome);
        return Some(vec![Entry { epoch, value }]);
    }
    let entry = |value: &[u8]| {
        let number = value.get(..8)?.try_into().ok()?;
        Some(Entry { epoch, value: u64::from_be_bytes(number) })
    };
    batch.records()?.map(|record| entry(record.ok()?.value?)).collect()
}

/// Splits what was read into whole batches.
pub fn split(pieces: &[Bytes]) -> Option<Vec<Bytes>> {
    let mut batches = Vec::new();
    for piece in pieces {
        for batch in SharedBatches::new(piece.clone()) {
            batches.push(batch.ok()?.1);
        }
    }
    Some(batches)
}

/// Reads the whole log; `None` when it cannot be read.
pub fn read_all(log: &Log) -> Option<Shadow> {
    let reader = log.reader();
    let mut next = log.log_start_offset();
    let mut shadow: Option<Shadow> = None;
    while next < log.log_end_offset() {
        let read = reader.read(next, 2_000, i64::MAX, ReadMinimum::OneBatch).ok()?;
        for bytes in split(&read.pieces)? {
            let base = Batch::parse(&bytes).ok()?.header().base_offset;
            let shadow = shadow.get_or_insert_with(|| Shadow::starting_at(base));
            if shadow.end() == base {
                shadow.extend(&entries_of(&bytes)?);
            }
        }
        if read.next_offset <= next {
            return None;
        }
        next = read.next_offset;
    }
    let mut shadow = shadow.unwrap_or_else(|| Shadow::starting_at(next));
    shadow.start_moved(log.log_start_offset());
    Some(shadow)
}
