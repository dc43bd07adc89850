//! Whole logs: segments, indexes, snapshots and checkpoints of a real Kafka's and of our own, spoilt before they
//! are opened, read to the end and written to.

use std::path::Path;
use std::sync::Arc;

use bytes::BytesMut;
use duolog_log_core::ids::{LeaderEpoch, ProducerEpoch, ProducerId, TopicId};
use duolog_log_core::log::{
    AppendBatch, AppendOrigin, Log, LogConfig, LogIdentity, OpenHint, ReadMinimum, Shutdown,
};
use duolog_log_core::record::{BatchBuilder, BatchKind, BatchParams, NewRecord, ProducerSequence};
use duolog_log_core::storage::disk::{Disk, create_durable_dir_all};
use duolog_log_core::testing::mem_disk::MemDisk;
use duolog_tests::seed::Seeded;

use super::{Run, golden, spoil};

const CASES: u64 = 1_500;
/// The disk is in memory too, and what is damaged is kept beside it.
const MEMORY_EACH: usize = 64;
const MEMORY: usize = 8 << 20;
const DIR: &str = "/data/t-0";
const READ_BYTES: usize = 64 << 10;

type Files = Vec<(String, Vec<u8>)>;

fn kafkas(folder: &str) -> Files {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(golden("kafka-log-dir").join(folder)).expect("golden files") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("a name");
        if name != "partition.metadata" {
            files.push((name, std::fs::read(entry.path()).expect("a golden file")));
        }
    }
    files.sort();
    files
}

fn batch(producer: i64, sequence: i32, kind: BatchKind) -> AppendBatch {
    let producer = ProducerSequence {
        id: ProducerId(producer),
        epoch: ProducerEpoch(0),
        base_sequence: sequence,
    };
    let params = BatchParams { producer: Some(producer), kind, ..BatchParams::default() };
    let mut builder = BatchBuilder::new(params);
    for value in [&b"one"[..], b"two"] {
        let record = NewRecord { timestamp: 1000, value: Some(value), ..NewRecord::default() };
        builder.append(&record).expect("a small batch");
    }
    let bytes: BytesMut = builder.finish_uncompressed().expect("a small batch");
    AppendBatch { bytes, origin: AppendOrigin::Client }
}

fn config() -> Arc<LogConfig> {
    Arc::new(LogConfig { segment_bytes: 1024, index_interval_bytes: 0, ..LogConfig::default() })
}

fn identity() -> LogIdentity {
    LogIdentity { topic: "t".into(), partition: 0, topic_id: TopicId([7; 16]) }
}

fn data_disk() -> MemDisk {
    let disk = MemDisk::new();
    create_durable_dir_all(&disk, Path::new(DIR)).expect("a folder");
    disk
}

fn open(disk: &MemDisk, hint: OpenHint) -> Option<Log> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Log::open(disk, Path::new(DIR), identity(), config(), hint, 0).ok().map(|(log, _)| log)
}

/// Several segments with plain and open transactional batches.
fn ours() -> Files {
    let disk = data_disk();
    let mut log = open(&disk, OpenHint::default()).expect("an empty log");
    for number in 0..24 {
        let kind = if number % 3 == 0 { BatchKind::Transactional } else { BatchKind::Plain };
        let producer = i64::from(number % 3);
        let batches = vec![batch(producer, 2 * (number / 3), kind)];
        for appended in log.append_as_leader(batches, LeaderEpoch(number / 8), 0) {
            appended.expect("a batch that fits");
        }
    }
    log.close_clean(0).expect("a clean stop");
    let names = disk.list(Path::new(DIR)).expect("a folder");
    let mut files = Vec::new();
    for entry in names {
        let content = disk.content(&Path::new(DIR).join(&entry.name)).unwrap_or_default();
        files.push((entry.name, content));
    }
    files.retain(|(name, _)| name != "partition.metadata");
    files.sort();
    files
}

/// How the folder is opened: as the checkpoints may say, rightly or not.
fn hint(random: &mut Seeded) -> OpenHint {
    let offset = |random: &mut Seeded| [0, 3, 12, 40, 1 << 40][random.within(0..5)];
    let shutdown = if random.within(0..2) == 0 { Shutdown::Clean } else { Shutdown::Unclean };
    OpenHint {
        shutdown,
        recovery_point: (random.within(0..2) == 0).then(|| offset(random)),
        log_start_offset: (random.within(0..4) == 0).then(|| offset(random)),
        proven_end: if random.within(0..2) == 0 { 0 } else { offset(random) },
        high_watermark: offset(random),
        ..OpenHint::default()
    }
}

/// Opens, reads all, writes, stops, and opens again what is left.
fn live(disk: &MemDisk, hint: OpenHint) {
    let Some(mut log) = open(disk, hint) else { return };
    let reader = log.reader();
    let mut next = log.log_start_offset();
    while next < log.log_end_offset() {
        match reader.read(next, READ_BYTES, i64::MAX, ReadMinimum::OneBatch) {
            Ok(read) if read.next_offset > next => next = read.next_offset,
            // Damaged: a reader goes on behind it.
            _ => next += 1,
        }
        if next > 4096 {
            break;
        }
    }
    let end = log.log_end_offset();
    let epoch = log.latest_epoch().map_or(LeaderEpoch(0), |it| it.max(LeaderEpoch(0)));
    let appended = log.append_as_leader(vec![batch(77, 0, BatchKind::Plain)], epoch, 0);
    if let Some(Ok(appended)) = appended.into_iter().next() {
        assert_eq!(appended.base_offset, end, "an append goes behind the end");
    }
    if log.close_clean(0).is_ok() {
        let again = OpenHint { shutdown: Shutdown::Clean, ..OpenHint::default() };
        drop(log);
        drop(open(&disk.kill(), again));
    }
}

#[test]
fn spoilt_logs_are_opened_or_refused_and_what_is_opened_goes_on() {
    let mut run = Run::of("logs", CASES);
    let logs = [kafkas("orders-0"), kafkas("table-0"), kafkas("__consumer_offsets-0"), ours()];
    while let Some(mut random) = run.next() {
        let mut files = logs[random.within(0..logs.len())].clone();
        for _ in 0..random.within(1..3) {
            let at = random.within(0..files.len());
            let other = files[random.within(0..files.len())].1.clone();
            if random.within(0..12) == 0 {
                files.remove(at);
                break;
            }
            spoil::spoil(&mut random, &mut files[at].1, &other);
        }
        let given: usize = files.iter().map(|(_, content)| content.len()).sum();
        let hint = hint(&mut random);
        run.bounded(given, MEMORY_EACH, MEMORY, || {
            let disk = data_disk();
            for (name, content) in &files {
                disk.overwrite(&Path::new(DIR).join(name), content);
            }
            live(&disk, hint);
        });
    }
}
