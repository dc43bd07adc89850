//! What it costs to take and to give out a batch: MB of uncompressed records a second on one core.
//! Run with `cargo bench -p duolog-log-core`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use duolog_log_core::record::validate::{KeyRule, TimestampRule, ZstdRule};
use duolog_log_core::record::{
    BatchBuilder, BatchParams, Compression, Compressor, DecodedBatch, Decompressor, NewRecord,
    ProduceRules, validate,
};

const BATCH_BYTES: usize = 64 << 10;
const SHORTEST_RUN: Duration = Duration::from_millis(300);
const RULES: ProduceRules = ProduceRules {
    batch_bytes_max: 1 << 20,
    decompressed_bytes_max: 64 << 20,
    timestamps: TimestampRule::CreateTime {
        now: 1_700_000_000_000,
        before_max_ms: i64::MAX,
        after_max_ms: 3_600_000,
    },
    keys: KeyRule::Optional,
    zstd: ZstdRule::Accepted,
};

/// Values that a general codec halves or better: words from a small vocabulary.
fn value(length: usize, state: &mut u32) -> Vec<u8> {
    let mut value = Vec::with_capacity(length + 16);
    while value.len() < length {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        value.extend_from_slice(format!("word{:03} ", *state >> 23).as_bytes());
    }
    value.truncate(length);
    value
}

fn values(record_bytes: usize) -> Vec<Vec<u8>> {
    let mut state = 1;
    (0..=BATCH_BYTES / record_bytes).map(|_| value(record_bytes, &mut state)).collect()
}

fn build(values: &[Vec<u8>], compression: Compression) -> BatchBuilder {
    let mut builder = BatchBuilder::new(BatchParams { compression, ..BatchParams::default() });
    for value in values {
        let record = NewRecord {
            timestamp: 1_700_000_000_000 + i64::from(builder.record_count()),
            value: Some(value),
            ..NewRecord::default()
        };
        if builder.append(&record).is_err() {
            break;
        }
    }
    builder
}

/// Runs `work` again and again; seconds for one run, the best of five series.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn seconds(mut work: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let (start, mut runs) = (Instant::now(), 0_u32);
        while start.elapsed() < SHORTEST_RUN {
            work();
            runs += 1;
        }
        best = best.min(start.elapsed().as_secs_f64() / f64::from(runs));
    }
    best
}

fn measure(record_bytes: usize, compression: Compression) {
    let values = values(record_bytes);
    let gathered = build(&values, compression);
    let (plain, count) = (gathered.size_in_bytes() as f64, gathered.record_count());
    let mut compressor = Compressor::new();
    let Ok(batch) = gathered.finish(&mut compressor) else { return };
    let batch: Bytes = batch.freeze();
    let mut decompressor = Decompressor::new();
    let validating = seconds(|| {
        assert!(validate(black_box(&batch), &RULES, &mut decompressor).is_ok());
    });
    let decoding = seconds(|| {
        let decoded = DecodedBatch::decode(black_box(&batch), &mut decompressor, usize::MAX);
        assert!(decoded.is_ok());
    });
    let building = seconds(|| {
        black_box(build(&values, compression).finish(&mut compressor).is_ok());
    });
    let rate = |seconds: f64| plain / seconds / 1e6;
    let per_record = |seconds: f64| seconds / f64::from(count) * 1e9;
    println!(
        "{record_bytes:>5} B {compression:<7} validate {:>6.0} MB/s {:>5.0} ns/record   decode \
         {:>6.0} MB/s   build {:>5.0} MB/s   {:>5} bytes stored",
        rate(validating),
        per_record(validating),
        rate(decoding),
        rate(building),
        batch.len(),
    );
}

fn main() {
    for record_bytes in [100, 1024] {
        for compression in Compression::ALL {
            measure(record_bytes, compression);
        }
    }
}
