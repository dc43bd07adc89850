//! Record batches, and the records of coordinators inside them.

use bytes::Bytes;
use duolog_coordinator::record::{Record, transaction};
use duolog_log_core::record::validate::{KeyRule, TimestampRule, ZstdRule};
use duolog_log_core::record::{Batches, DecodedBatch, Decompressor, ProduceRules, validate};

use super::{Run, golden, hex_words, spoil};

const BATCH_CASES: u64 = 10_000;
const RECORD_CASES: u64 = 30_000;
/// A batch is never more than this once decompressed.
const DECOMPRESSED_BYTES_MAX: usize = 1 << 20;
const MEMORY_EACH: usize = 256;
const MEMORY: usize = 64 << 10;

fn rules() -> ProduceRules {
    ProduceRules {
        batch_bytes_max: 1 << 20,
        decompressed_bytes_max: DECOMPRESSED_BYTES_MAX,
        timestamps: TimestampRule::CreateTime {
            now: 0,
            before_max_ms: i64::MAX,
            after_max_ms: i64::MAX,
        },
        keys: KeyRule::Optional,
        zstd: ZstdRule::Accepted,
    }
}

/// The CRC of a batch that was spoilt behind it, set right: else nothing is looked at.
fn with_right_crc(bytes: &mut [u8]) {
    const CRC_AT: usize = 17;
    if let Some((head, rest)) = bytes.split_at_mut_checked(CRC_AT + 4) {
        head[CRC_AT..].copy_from_slice(&crc32c::crc32c(rest).to_be_bytes());
    }
}

fn read(bytes: &Bytes) {
    let mut decompressor = Decompressor::default();
    let _ = validate(bytes, &rules(), &mut decompressor);
    for batch in Batches::new(bytes) {
        let Ok(batch) = batch else { break };
        let whole = bytes.slice_ref(batch.bytes());
        let Ok(decoded) = DecodedBatch::decode(&whole, &mut decompressor, DECOMPRESSED_BYTES_MAX)
        else {
            continue;
        };
        for record in decoded.iter() {
            for header in record.headers.iter() {
                std::hint::black_box(header);
            }
        }
    }
}

#[test]
fn spoilt_batches_are_read_or_refused_within_their_memory() {
    let mut run = Run::of("batches", BATCH_CASES);
    let mut corpus = Vec::new();
    for entry in std::fs::read_dir(golden("record")).expect("golden files") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|it| it == "bin") {
            corpus.push(std::fs::read(path).expect("a golden file"));
        }
    }
    corpus.sort();
    assert!(corpus.len() > 20, "{} samples", corpus.len());
    // What the codecs hold for themselves.
    let room = MEMORY + 24 * DECOMPRESSED_BYTES_MAX;
    while let Some(mut random) = run.next() {
        let mut bytes = corpus[random.within(0..corpus.len())].clone();
        let other = &corpus[random.within(0..corpus.len())];
        spoil::spoil(&mut random, &mut bytes, other);
        if random.within(0..4) > 0 {
            with_right_crc(&mut bytes);
        }
        let bytes = Bytes::from(bytes);
        run.bounded(bytes.len(), MEMORY_EACH, room, || read(&bytes));
    }
}

#[test]
fn spoilt_records_of_coordinators_are_read_or_refused_within_their_memory() {
    let mut run = Run::of("records of coordinators", RECORD_CASES);
    let text = std::fs::read_to_string(golden("coordinator/records.txt")).expect("a golden file");
    let mut corpus: Vec<Vec<Vec<u8>>> = text.lines().map(hex_words).collect();
    corpus.retain(|words| !words.is_empty());
    assert!(corpus.len() > 20, "{} samples", corpus.len());
    while let Some(mut random) = run.next() {
        let words = &corpus[random.within(0..corpus.len())];
        let other = &corpus[random.within(0..corpus.len())];
        let mut key = words[0].clone();
        let mut value = words.get(1).cloned();
        match value.as_mut().filter(|_| random.within(0..4) > 0) {
            Some(value) => {
                spoil::spoil(&mut random, value, other.last().expect("a word"));
            }
            None => spoil::spoil(&mut random, &mut key, &other[0]),
        }
        let given = key.len() + value.as_ref().map_or(0, Vec::len);
        let (key, value) = (Bytes::from(key), value.map(Bytes::from));
        run.bounded(given, MEMORY_EACH, MEMORY, || {
            let _ = Record::decode(&key, value.as_ref());
            let _ = transaction::Record::decode(&key, value.as_ref());
        });
    }
}
