//! Record batches in words: those of a request, with or without a fault, and those of an answer.

use std::fmt::Write as _;

use anyhow::Context;
use bytes::Bytes;
use duolog_log_core::ids::{ProducerEpoch, ProducerId};
use duolog_log_core::record::{
    BatchBuilder, BatchHeader, BatchKind, BatchParams, Batches, Compression, Compressor,
    ControlType, DecodedBatch, Decompressor, NewRecord, ProducerSequence,
};
use serde_json::Value;

const DECODED_BYTES_MAX: usize = 16 << 20;
const LENGTH_AT: usize = 8;
const MAGIC_AT: usize = 16;
const CRC_AT: usize = 17;
const ATTRIBUTES_AT: usize = 21;
const LAST_DELTA_AT: usize = 23;
const BASE_TIMESTAMP_AT: usize = 27;
const COUNT_AT: usize = 57;
const HEADER_BYTES: usize = 61;

/// What a batch of a request can be spoilt with.
pub const FAULTS: [&str; 13] = [
    "crc",
    "magic",
    "length",
    "short",
    "count",
    "none",
    "last",
    "control",
    "codec",
    "append_time",
    "future",
    "cut",
    "garbage",
];

/// The bytes of the batches that `specs` describe: `n` records with values `v0`, `v1`…, optional
/// `pid`, `epoch`, `seq`, `txn`, `codec`, `key`, `at` (ms, of the first record) and `fault`.
pub fn build(specs: &[Value]) -> anyhow::Result<Vec<u8>> {
    let mut all = Vec::new();
    for spec in specs {
        all.extend(build_one(spec)?);
    }
    Ok(all)
}

fn build_one(spec: &Value) -> anyhow::Result<Vec<u8>> {
    let number = |name: &str, default: i64| spec[name].as_i64().unwrap_or(default);
    let fault = spec["fault"].as_str().unwrap_or_default();
    let producer = spec["pid"].as_i64().map(|id| ProducerSequence {
        id: ProducerId(id),
        epoch: ProducerEpoch(number("epoch", 0) as i16),
        base_sequence: number("seq", 0) as i32,
    });
    let compression = match spec["codec"].as_str() {
        Some("gzip") => Compression::Gzip,
        Some("snappy") => Compression::Snappy,
        Some("lz4") => Compression::Lz4,
        Some("zstd") => Compression::Zstd,
        _ => Compression::None,
    };
    let kind = match (spec["txn"].as_bool(), fault) {
        (_, "control") => BatchKind::Control,
        (Some(true), _) => BatchKind::Transactional,
        _ => BatchKind::Plain,
    };
    let params = BatchParams { producer, compression, kind, ..BatchParams::default() };
    let mut builder = BatchBuilder::new(params);
    for index in 0..number("n", 1) {
        let value = format!("{}{index}", spec["v"].as_str().unwrap_or("v"));
        let key = spec["key"].as_bool().unwrap_or(false).then(|| format!("k{}", index % 2));
        let record = NewRecord {
            timestamp: number("at", 0) + index,
            key: key.as_ref().map(|key| key.as_bytes()),
            value: Some(value.as_bytes()),
            headers: &[],
        };
        builder.append(&record)?;
    }
    let mut bytes = builder.finish(&mut Compressor::new())?.to_vec();
    spoil(&mut bytes, fault);
    Ok(bytes)
}

fn spoil(bytes: &mut Vec<u8>, fault: &str) {
    let add = |bytes: &mut Vec<u8>, at: usize, what: i32| {
        let old = i32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        bytes[at..at + 4].copy_from_slice(&(old + what).to_be_bytes());
    };
    match fault {
        "magic" => bytes[MAGIC_AT] = 1,
        "length" => add(bytes, LENGTH_AT, 1),
        "short" => add(bytes, LENGTH_AT, -1),
        "count" => add(bytes, COUNT_AT, 1),
        "none" => bytes[COUNT_AT..COUNT_AT + 4].copy_from_slice(&[0; 4]),
        "last" => add(bytes, LAST_DELTA_AT, 1),
        "codec" => bytes[ATTRIBUTES_AT + 1] |= 5,
        "append_time" => bytes[ATTRIBUTES_AT + 1] |= 8,
        // 100 years on.
        "future" => {
            for at in [BASE_TIMESTAMP_AT, BASE_TIMESTAMP_AT + 8] {
                let old = i64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
                let new = old + 100 * 365 * 86_400_000;
                bytes[at..at + 8].copy_from_slice(&new.to_be_bytes());
            }
        }
        "cut" => bytes.truncate(bytes.len() - 3),
        "garbage" => bytes.truncate(7),
        _ => {}
    }
    if bytes.len() >= HEADER_BYTES && !matches!(fault, "" | "crc" | "cut") {
        let crc = crc32c::crc32c(&bytes[ATTRIBUTES_AT..]);
        bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
    }
    if fault == "crc" {
        bytes[CRC_AT] ^= 1;
    }
}

/// One text for each whole batch of an answer: offsets, attributes, producer, records.
///
/// `producer` names a producer id, `time` a timestamp. What is behind the last whole batch is left out, as every client does.
pub fn describe(
    records: &[u8],
    producer: impl Fn(i64) -> String,
    time: impl Fn(i64) -> String,
) -> anyhow::Result<Vec<Value>> {
    let records = Bytes::copy_from_slice(records);
    let mut decompressor = Decompressor::default();
    let mut texts = Vec::new();
    for batch in Batches::new(&records) {
        let Ok(batch) = batch else { break };
        batch.verify_crc()?;
        let header = batch.header();
        let decoded = DecodedBatch::decode(
            &records.slice_ref(batch.bytes()),
            &mut decompressor,
            DECODED_BYTES_MAX,
        )?;
        let mut text = head(header, &producer, &time);
        for record in decoded.iter() {
            let key = record.key.map(|key| match header.attributes.is_control() {
                true => format!("{:?}", ControlType::parse(Some(key))),
                false => String::from_utf8_lossy(key).into_owned(),
            });
            let value = match header.attributes.is_control() {
                true => String::new(),
                false => String::from_utf8_lossy(record.value.unwrap_or_default()).into_owned(),
            };
            let key = key.map(|key| format!("{key}=")).unwrap_or_default();
            write!(text, " {}:{key}{value}", record.offset).context("a text")?;
        }
        texts.push(text.into());
    }
    Ok(texts)
}

fn head(
    header: &BatchHeader,
    producer: &impl Fn(i64) -> String,
    time: &impl Fn(i64) -> String,
) -> String {
    let mut text = format!("{}+{}", header.base_offset, header.last_offset_delta);
    let attributes = header.attributes;
    if attributes.is_transactional() {
        text += " txn";
    }
    if attributes.is_control() {
        text += " control";
    }
    let id = header.producer_id.0;
    if id >= 0 {
        let (epoch, sequence) = (header.producer_epoch.0, header.base_sequence);
        text += &format!(" {}/{epoch}/{sequence}", producer(id));
    }
    format!("{text} at {}", time(header.max_timestamp))
}
