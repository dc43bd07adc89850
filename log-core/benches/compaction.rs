//! What compaction costs: MB of log and thousand records a second on one core, files included.
//! Run with `cargo bench -p duolog-log-core --bench compaction`.

#![expect(
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a program of its own: it reads the clock, and ends when something fails"
)]

use std::sync::Arc;
use std::time::Instant;

use duolog_log_core::ids::{LeaderEpoch, TopicId};
use duolog_log_core::log::compaction::{Compaction, MapMemory, Pace, Stopped};
use duolog_log_core::log::{
    AppendBatch, AppendOrigin, CleanupPolicy, Log, LogConfig, LogIdentity, OpenHint,
};
use duolog_log_core::record::{BatchBuilder, BatchParams, Compression, Compressor, NewRecord};
use duolog_log_core::storage::file_disk::FileDisk;

const RECORDS: u32 = 2_000_000;
const RECORDS_PER_BATCH: u32 = 100;
const VALUE_BYTES: usize = 200;

struct Unpaced;

impl Pace for Unpaced {
    fn passed(&mut self, _bytes: u64) -> Result<(), Stopped> {
        Ok(())
    }
}

fn fill(log: &mut Log, compression: Compression, keys: u32) {
    let (mut state, mut compressor) = (1_u32, Compressor::new());
    for _ in 0..RECORDS / RECORDS_PER_BATCH {
        let params = BatchParams { compression, ..BatchParams::default() };
        let mut builder = BatchBuilder::new(params);
        for _ in 0..RECORDS_PER_BATCH {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let key = format!("key-{:09}", (u64::from(state) * u64::from(keys)) >> 32);
            let value = format!("{:<VALUE_BYTES$}", state >> 8);
            builder
                .append(&NewRecord {
                    timestamp: 1_700_000_000_000,
                    key: Some(key.as_bytes()),
                    value: Some(value.as_bytes()),
                    headers: &[],
                })
                .expect("a small batch");
        }
        let bytes = builder.finish(&mut compressor).expect("records");
        let batch = AppendBatch { bytes, origin: AppendOrigin::Client };
        for answer in log.append_as_leader(vec![batch], LeaderEpoch(0), 0) {
            answer.expect("appended");
        }
    }
    log.roll(0).expect("rolled");
    log.flush(0).expect("flushed");
}

fn measure(compression: Compression, keys: u32) {
    let dir = tempfile::tempdir().expect("a folder");
    let config = LogConfig {
        segment_bytes: 256 << 20,
        cleanup_policy: CleanupPolicy::Compact,
        min_cleanable_dirty_ratio: 0.0,
        tail_cache_bytes: 0,
        ..LogConfig::default()
    };
    let identity = LogIdentity { topic: "t".into(), partition: 0, topic_id: TopicId([1; 16]) };
    let disk = Arc::new(FileDisk::default());
    let path = dir.path().join("t-0");
    let opened = Log::open(disk, &path, identity, Arc::new(config), OpenHint::default(), 0);
    let (mut log, _) = opened.expect("a log");
    fill(&mut log, compression, keys);
    let end = log.log_end_offset();
    let plan = log.plan_compaction(None, end, 0).expect("a plan").expect("due");
    let bytes = plan.dirty_bytes() as f64;
    let started = Instant::now();
    let memory = MapMemory { bytes: 128 << 20, load_factor: 0.9, seed: 1 };
    let mut run = Compaction::start(plan, memory, &mut Unpaced).expect("readable");
    let keyed = started.elapsed();
    while let Some(group) = run.next_group(&mut Unpaced).expect("written") {
        log.install(group, 0).expect("installed");
    }
    let took = started.elapsed();
    let stats = run.stats();
    println!(
        "{compression:<6} {keys:>8} keys: {:>6.0} MB/s, {:>6.0} thousand records/s, keys alone \
         {:>4.1} s of {:>4.1} s; {:>5.0} MB to {:>5.0} MB, {} records",
        bytes / 1e6 / took.as_secs_f64(),
        f64::from(RECORDS) / 1e3 / took.as_secs_f64(),
        keyed.as_secs_f64(),
        took.as_secs_f64(),
        bytes / 1e6,
        stats.bytes_after as f64 / 1e6,
        stats.records_after,
    );
}

fn main() {
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        for keys in [10_000, 1_000_000] {
            measure(compression, keys);
        }
    }
}
