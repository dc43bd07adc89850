//! Against batches that Kafka wrote: `tests/golden/record`, described in its README.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use bytes::Bytes;

use super::*;
use crate::record::batch::NO_SEQUENCE;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/record")
}

fn golden(name: &str) -> Bytes {
    fs::read(folder().join(format!("{name}.bin"))).unwrap().into()
}

fn names() -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "bin"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|name| cfg!(feature = "zstd") || !name.ends_with("zstd"))
        .collect();
    names.sort();
    let expected = if cfg!(feature = "zstd") { 27 } else { 23 };
    assert_eq!(names.len(), expected, "{names:?}");
    names
}

fn show(bytes: Option<&[u8]>) -> String {
    match bytes {
        None => "null".to_owned(),
        Some(bytes) if bytes.len() <= 40 => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("'{hex}'")
        }
        Some(bytes) => format!("{}/{}", bytes.len(), crc32c::crc32c(bytes)),
    }
}

fn describe_record(record: &Record<'_>, header: &BatchHeader, text: &mut String) {
    write!(text, "record offset={} timestamp={}", record.offset, record.timestamp).unwrap();
    write!(text, " key={} value={}", show(record.key), show(record.value)).unwrap();
    for header in record.headers {
        write!(text, " header={}:{}", show(Some(header.key)), show(header.value)).unwrap();
    }
    if header.is_control() {
        let name = match ControlType::parse(record.key).unwrap() {
            ControlType::Abort => "ABORT",
            ControlType::Commit => "COMMIT",
            ControlType::LeaderChange => "LEADER_CHANGE",
            other => panic!("no golden batch holds {other:?}"),
        };
        write!(text, " type={name}").unwrap();
    }
    text.push('\n');
}

/// The description that the peer's reader wrote, made with ours.
fn describe(bytes: &Bytes) -> String {
    let mut text = String::new();
    let mut decompressor = Decompressor::new();
    for batch in SharedBatches::new(bytes.clone()) {
        let (header, bytes) = batch.unwrap();
        Batch::parse(&bytes).unwrap().verify_crc().unwrap();
        let BatchHeader { base_offset, crc, base_timestamp, max_timestamp, .. } = header;
        let (last, size) = (header.last_offset(), header.size_in_bytes());
        let (epoch, compression) = (header.partition_leader_epoch, header.compression().unwrap());
        let time = header.timestamp_type();
        write!(
            text,
            "batch base={base_offset} last={last} size={size} leaderEpoch={epoch} crc={crc} \
             compression={compression} time={time:?} baseTimestamp={base_timestamp} \
             maxTimestamp={max_timestamp} "
        )
        .unwrap();
        let (id, epoch, count) = (header.producer_id, header.producer_epoch, header.record_count);
        let (base, last) = (header.base_sequence, header.last_sequence());
        let (transactional, control) = (header.is_transactional(), header.is_control());
        let horizon = header.delete_horizon_ms().map_or("none".to_owned(), |ms| ms.to_string());
        writeln!(
            text,
            "producer={id}/{epoch} sequence={base}..{last} count={count} \
             transactional={transactional} control={control} deleteHorizon={horizon}"
        )
        .unwrap();
        let decoded = DecodedBatch::decode(&bytes, &mut decompressor, 1 << 20).unwrap();
        assert_eq!(decoded.len(), count as usize);
        for record in &decoded {
            assert_eq!(decoded.record_at(record.offset), Some(record));
            describe_record(&record, &header, &mut text);
        }
    }
    text
}

#[test]
fn batches_of_kafka_are_read_as_kafka_reads_them() {
    for name in names() {
        let expected = fs::read_to_string(folder().join(format!("{name}.txt"))).unwrap();
        assert_eq!(describe(&golden(&name)), expected, "{name}");
    }
}

/// Builds the batch again from what was read.
fn rebuild(header: &BatchHeader, decoded: &DecodedBatch) -> bytes::BytesMut {
    let kind = match (header.is_transactional(), header.is_control()) {
        (false, false) => BatchKind::Plain,
        (true, false) => BatchKind::Transactional,
        (true, true) => BatchKind::TransactionalControl,
        (false, true) => BatchKind::Control,
    };
    let producer = header.has_producer_id().then_some(ProducerSequence {
        id: header.producer_id,
        epoch: header.producer_epoch,
        base_sequence: header.base_sequence,
    });
    let append_time =
        (header.timestamp_type() == TimestampType::LogAppendTime).then_some(header.max_timestamp);
    let mut builder = BatchBuilder::new(BatchParams {
        base_offset: header.base_offset,
        leader_epoch: header.partition_leader_epoch,
        compression: header.compression().unwrap(),
        producer,
        kind,
        append_time,
        delete_horizon_ms: header.delete_horizon_ms(),
    });
    for (index, record) in (0..).zip(decoded) {
        // The times that a producer gave stay in the bytes under LogAppendTime; these are known.
        let timestamp = match append_time {
            Some(_) => header.base_timestamp + index,
            None => record.timestamp,
        };
        let headers: Vec<_> = record.headers.iter().collect();
        let Record { key, value, .. } = record;
        let record_ = NewRecord { timestamp, key, value, headers: &headers };
        builder.append_at(record.offset_delta, &record_).unwrap();
    }
    builder.extend_to(header.last_offset_delta).unwrap();
    builder.finish(&mut Compressor::new()).unwrap()
}

#[test]
fn uncompressed_batches_are_written_as_kafka_writes_them() {
    let mut rebuilt = 0;
    for name in names() {
        for batch in SharedBatches::new(golden(&name)) {
            let (header, bytes) = batch.unwrap();
            if header.compression().unwrap() != Compression::None {
                continue;
            }
            let decoded =
                DecodedBatch::decode(&bytes, &mut Decompressor::new(), bytes.len()).unwrap();
            assert_eq!(rebuild(&header, &decoded), bytes, "{name}");
            rebuilt += 1;
        }
    }
    assert_eq!(rebuilt, 11);
}

#[test]
fn markers_are_written_as_kafka_writes_them() {
    use crate::ids::{ProducerEpoch, ProducerId};
    for (name, outcome) in
        [("commit-marker", TransactionOutcome::Commit), ("abort-marker", TransactionOutcome::Abort)]
    {
        let marker = EndTransactionMarker { outcome, coordinator_epoch: 21 };
        let bytes = marker
            .batch(ProducerId(9_000_000_001), ProducerEpoch(4), 1_700_000_000_000)
            .unwrap()
            .freeze();
        assert_eq!(bytes, golden(name), "{name}");
        let batch = Batch::parse(&bytes).unwrap();
        assert_eq!(batch.header().base_sequence, NO_SEQUENCE);
        let record = batch.records().unwrap().next().unwrap().unwrap();
        assert_eq!(EndTransactionMarker::parse(&record), Ok(Some(marker)));
    }
}

#[test]
fn what_kafka_compressed_is_smaller_than_its_records_and_what_we_compress_is_not_much_larger() {
    for name in ["large-gzip", "large-snappy", "large-lz4", "large-zstd"] {
        if !cfg!(feature = "zstd") && name.ends_with("zstd") {
            continue;
        }
        let bytes = golden(name);
        let header = BatchHeader::parse(&bytes).unwrap();
        let decoded = DecodedBatch::decode(&bytes, &mut Decompressor::new(), 1 << 20).unwrap();
        let ours = rebuild(&header, &decoded);
        assert!(ours.len() <= bytes.len() * 3 / 2, "{name}: {} to {}", ours.len(), bytes.len());
    }
}

#[test]
fn every_truncation_of_every_golden_batch_is_an_error() {
    for name in names().iter().filter(|name| !name.starts_with("many") && *name != "two-batches") {
        let bytes = golden(name);
        // The whole list for small files, a stride for the large ones.
        for end in (0..bytes.len()).step_by(1 + bytes.len() / 500) {
            assert!(
                matches!(Batch::parse(&bytes[..end]), Err(RecordError::Truncated { .. })),
                "{name} at {end}"
            );
            let mut batches = Batches::new(&bytes[..end]);
            assert_eq!(batches.next().is_none(), end == 0, "{name} at {end}");
            assert_eq!((batches.next().is_none(), batches.position()), (true, 0));
        }
    }
}
