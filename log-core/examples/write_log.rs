//! Writes a log with every kind of file that a partition has, for Kafka's tools to read, or measures
//! how fast one is written and read: `write_log DIR` or `write_log --measure DIR`.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use duolog_log_core::ids::{LeaderEpoch, ProducerEpoch, ProducerId, TopicId};
use duolog_log_core::log::{
    AppendBatch, AppendOrigin, Log, LogConfig, LogIdentity, OpenHint, ReadMinimum,
};
use duolog_log_core::record::{
    BatchBuilder, BatchKind, BatchParams, Compression, Compressor, EndTransactionMarker, NewRecord,
    ProducerSequence, TransactionOutcome,
};
use duolog_log_core::storage::disk::Disk;
use duolog_log_core::storage::file_disk::FileDisk;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const NOW_MS: i64 = 1_700_000_000_000;
const EPOCH: LeaderEpoch = LeaderEpoch(0);

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--measure", dir] => measure(Path::new(dir)),
        [dir] => write(Path::new(dir)),
        _ => Err("usage: write_log [--measure] DIR".into()),
    }
}

fn open(dir: &Path, config: LogConfig) -> Outcome<Log> {
    let disk: Arc<dyn Disk> = Arc::new(FileDisk::default());
    let identity = LogIdentity { topic: "t".into(), partition: 0, topic_id: TopicId([7; 16]) };
    let (dir, hint) = (dir.join("t-0"), OpenHint::default());
    Ok(Log::open(disk, &dir, identity, Arc::new(config), hint, NOW_MS)?.0)
}

fn batch(
    producer: Option<(i64, i32, BatchKind)>,
    compression: Compression,
    at: i64,
) -> Outcome<AppendBatch> {
    let producer_of = |(id, base_sequence, _)| ProducerSequence {
        id: ProducerId(id),
        epoch: ProducerEpoch(0),
        base_sequence,
    };
    let params = BatchParams {
        compression,
        producer: producer.map(producer_of),
        kind: producer.map_or(BatchKind::Plain, |(_, _, kind)| kind),
        ..BatchParams::default()
    };
    let mut builder = BatchBuilder::new(params);
    let value = [b'v'; 200];
    for record in 0..5 {
        let key = format!("key-{at}-{record}");
        builder.append(&NewRecord {
            timestamp: NOW_MS + at * 10 + record,
            key: Some(key.as_bytes()),
            value: Some(&value),
            headers: &[],
        })?;
    }
    let bytes = builder.finish(&mut Compressor::new())?;
    Ok(AppendBatch { bytes, origin: AppendOrigin::Client })
}

fn append(log: &mut Log, batch: AppendBatch, at: i64) -> Outcome {
    for answer in log.append_as_leader(vec![batch], EPOCH, NOW_MS + at) {
        answer?;
    }
    Ok(())
}

/// Idempotent and transactional producers, all codecs, aborted and committed transactions, one left
/// open, over several segments.
fn write(dir: &Path) -> Outcome {
    let config = LogConfig { segment_bytes: 64 << 10, retention_ms: -1, ..LogConfig::default() };
    let mut log = open(dir, config)?;
    let codecs = [
        Compression::None,
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ];
    for (round, codec) in (0_i32..400).zip(codecs.into_iter().cycle()) {
        let at = i64::from(round);
        append(&mut log, batch(Some((1, round * 5, BatchKind::Plain)), codec, at)?, at)?;
        append(&mut log, batch(None, codec, at)?, at)?;
        if round % 10 == 0 {
            let kind = BatchKind::Transactional;
            append(&mut log, batch(Some((2, round / 2, kind)), codec, at)?, at)?;
            if round < 390 {
                let abort = round % 20 == 0;
                append(&mut log, marker(abort)?, at)?;
            }
        }
    }
    log.close_clean(NOW_MS)?;
    println!("{} records, {} segments", log.log_end_offset(), log.reader().segment_count());
    Ok(())
}

fn marker(abort: bool) -> Outcome<AppendBatch> {
    let outcome = if abort { TransactionOutcome::Abort } else { TransactionOutcome::Commit };
    let marker = EndTransactionMarker { outcome, coordinator_epoch: 0 };
    let bytes = marker.batch(ProducerId(2), ProducerEpoch(0), NOW_MS)?;
    Ok(AppendBatch { bytes, origin: AppendOrigin::Coordinator })
}

/// Appends 16 KiB batches one by one and eight at a time, then reads the tail and the files. Nothing
/// is synced.
#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
fn measure(dir: &Path) -> Outcome {
    const BATCH_BYTES: usize = 16 << 10;
    const TOTAL: usize = 1 << 30;
    let mut builder = BatchBuilder::new(BatchParams::default());
    let value = vec![b'v'; BATCH_BYTES - 100];
    let record = NewRecord { timestamp: NOW_MS, value: Some(&value), ..NewRecord::default() };
    builder.append(&record)?;
    let bytes = builder.finish_uncompressed()?;
    for gathered in [1, 8] {
        let mut log = open(&dir.join(format!("by-{gathered}")), LogConfig::default())?;
        let rounds = TOTAL / bytes.len() / gathered;
        let mut spent = std::time::Duration::ZERO;
        for _ in 0..rounds {
            // The copy stands for the read from the network and is not counted.
            let batches: Vec<_> = (0..gathered)
                .map(|_| AppendBatch { bytes: bytes.clone(), origin: AppendOrigin::Client })
                .collect();
            let start = std::time::Instant::now();
            for answer in log.append_as_leader(batches, EPOCH, NOW_MS) {
                answer?;
            }
            spent += start.elapsed();
        }
        let appends = rounds * gathered;
        report(&format!("append, {gathered} at a time"), appends, appends * bytes.len(), spent);
        let (reader, end) = (log.reader(), log.log_end_offset());
        let tail = end - 32;
        let start = std::time::Instant::now();
        let mut read = 0;
        for _ in 0..200_000 {
            read += reader.read(tail, 512 << 10, end, ReadMinimum::OneBatch)?.size;
        }
        report("read 512 KiB of the tail", 200_000, read, start.elapsed());
        let start = std::time::Instant::now();
        let (mut next, mut read, mut reads) = (0, 0, 0);
        while next < tail {
            let found = reader.read(next, 1 << 20, end, ReadMinimum::OneBatch)?;
            (next, read, reads) = (found.next_offset, read + found.size, reads + 1);
        }
        report("read 1 MiB from the files", reads, read, start.elapsed());
    }
    Ok(())
}

fn report(what: &str, calls: usize, bytes: usize, spent: std::time::Duration) {
    let seconds = spent.as_secs_f64();
    println!(
        "{what}: {:.0} calls/s, {:.2} GiB/s, {:.2} us each",
        calls as f64 / seconds,
        bytes as f64 / f64::from(1 << 30) / seconds,
        seconds * 1e6 / calls as f64
    );
}
