//! Logs on a memory disk, and what the tests of each part share.

use std::path::Path;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::search::decode;
use super::*;
use crate::ids::{LeaderEpoch, ProducerEpoch, ProducerId, TopicId};
use crate::record::batch::NO_SEQUENCE;
use crate::record::{
    BatchBuilder, BatchKind, BatchParams, Compressor, EndTransactionMarker, NewRecord,
    ProducerSequence, SharedBatches, TransactionOutcome,
};
use crate::storage::disk::create_durable_dir_all;
use crate::testing::mem_disk::MemDisk;

mod append;
mod append_time;
mod clock;
mod compaction;
mod crash;
mod damage;
mod delivery;
mod flush;
mod indexes;
mod keys;
mod read;
mod recovery;
mod relocation;
mod retention;
mod search;
mod tags;
mod truncate;
mod verification;

const DIR: &str = "/data/t-0";
const EPOCH: LeaderEpoch = LeaderEpoch(3);

/// A disk with the folder that logs lie in.
fn data_disk() -> MemDisk {
    let disk = MemDisk::new();
    create_durable_dir_all(&disk, Path::new("/data")).unwrap();
    disk
}

fn identity() -> LogIdentity {
    LogIdentity { topic: "t".into(), partition: 0, topic_id: TopicId([7; 16]) }
}

/// Segments of at most `segment_bytes`, an index entry for every batch but the first.
fn small(segment_bytes: u32) -> LogConfig {
    LogConfig { segment_bytes, index_interval_bytes: 0, ..LogConfig::default() }
}

fn open_as(disk: &MemDisk, config: LogConfig, hint: OpenHint) -> (Log, RecoveryReport) {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Log::open(disk, Path::new(DIR), identity(), Arc::new(config), hint, 0).unwrap()
}

fn open(disk: &MemDisk, config: LogConfig) -> Log {
    open_as(disk, config, OpenHint::default()).0
}

fn clean() -> OpenHint {
    OpenHint { shutdown: Shutdown::Clean, ..OpenHint::default() }
}

fn unclean(recovery_point: i64) -> OpenHint {
    OpenHint { recovery_point: Some(recovery_point), ..OpenHint::default() }
}

fn path(name: &str) -> std::path::PathBuf {
    Path::new(DIR).join(name)
}

/// Records of one batch: each value with its timestamp.
fn batch_of(params: BatchParams, records: &[(i64, &str)]) -> BytesMut {
    let mut builder = BatchBuilder::new(params);
    for (timestamp, value) in records {
        let value = Some(value.as_bytes());
        let record = NewRecord { timestamp: *timestamp, value, ..NewRecord::default() };
        builder.append(&record).unwrap();
    }
    builder.finish(&mut Compressor::new()).unwrap()
}

fn plain(values: &[&str]) -> AppendBatch {
    let records: Vec<_> = values.iter().map(|value| (1000, *value)).collect();
    AppendBatch { bytes: batch_of(BatchParams::default(), &records), origin: AppendOrigin::Client }
}

fn timed(records: &[(i64, &str)]) -> AppendBatch {
    AppendBatch { bytes: batch_of(BatchParams::default(), records), origin: AppendOrigin::Client }
}

fn sequenced(producer: (i64, i16), base_sequence: i32, values: &[&str]) -> AppendBatch {
    of_producer(producer, base_sequence, BatchKind::Plain, values)
}

fn of_producer(
    (id, epoch): (i64, i16),
    base_sequence: i32,
    kind: BatchKind,
    values: &[&str],
) -> AppendBatch {
    let (id, epoch) = (ProducerId(id), ProducerEpoch(epoch));
    let producer = Some(ProducerSequence { id, epoch, base_sequence });
    let records: Vec<_> = values.iter().map(|value| (1000, *value)).collect();
    let params = BatchParams { producer, kind, ..BatchParams::default() };
    AppendBatch { bytes: batch_of(params, &records), origin: AppendOrigin::Client }
}

fn marker(producer: (i64, i16), outcome: TransactionOutcome) -> AppendBatch {
    let marker = EndTransactionMarker { outcome, coordinator_epoch: 0 };
    let bytes = marker.batch(ProducerId(producer.0), ProducerEpoch(producer.1), 1000).unwrap();
    AppendBatch { bytes, origin: AppendOrigin::Coordinator }
}

fn append(log: &mut Log, batch: AppendBatch) -> Result<Appended, LogError> {
    log.append_as_leader(vec![batch], EPOCH, 5000).pop().unwrap()
}

/// Appends one batch of these values; its base offset.
fn put(log: &mut Log, values: &[&str]) -> i64 {
    append(log, plain(values)).unwrap().base_offset
}

/// Whole batches as offsets and values.
fn records_of(pieces: &[Bytes]) -> Vec<(i64, String)> {
    let mut records = Vec::new();
    for piece in pieces {
        for batch in SharedBatches::new(piece.clone()) {
            let (_, bytes) = batch.unwrap();
            for record in &decode(&bytes).unwrap() {
                let value = record.value.unwrap_or_default().to_vec();
                records.push((record.offset, String::from_utf8(value).unwrap()));
            }
        }
    }
    records
}

/// All records from `offset` on, read with a small limit.
fn read_from(reader: &LogReader, offset: i64) -> Vec<(i64, String)> {
    let mut records = Vec::new();
    let mut next = offset;
    loop {
        let read = reader.read(next, 300, i64::MAX, ReadMinimum::OneBatch).unwrap();
        if read.pieces.is_empty() {
            return records;
        }
        assert!(read.next_offset > next);
        next = read.next_offset;
        records.extend(records_of(&read.pieces));
    }
}

fn values_from(reader: &LogReader, offset: i64) -> Vec<String> {
    read_from(reader, offset).into_iter().map(|(_, value)| value).collect()
}

/// Without the newest batches in memory, so that reads go to the files.
fn uncached(config: LogConfig) -> LogConfig {
    LogConfig { tail_cache_bytes: 0, ..config }
}

fn names(disk: &MemDisk) -> Vec<String> {
    disk.list(Path::new(DIR)).unwrap().into_iter().map(|entry| entry.name).collect()
}

fn logs(disk: &MemDisk) -> Vec<String> {
    names(disk).into_iter().filter(|name| name.ends_with(".log")).collect()
}
