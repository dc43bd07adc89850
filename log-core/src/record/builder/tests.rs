use proptest::prelude::*;

use super::*;
use crate::record::batch::Batch;
use crate::record::decoded::DecodedBatch;
use crate::record::{Decompressor, Record};

#[derive(Clone, Debug)]
struct Owned {
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..most)
}

fn owned() -> impl Strategy<Value = Owned> {
    (
        prop_oneof![Just(-1), 0..i64::MAX, any::<i64>()],
        prop::option::of(bytes(80)),
        prop::option::of(bytes(300)),
        prop::collection::vec((bytes(20), prop::option::of(bytes(20))), 0..4),
    )
        .prop_map(|(timestamp, key, value, headers)| Owned { timestamp, key, value, headers })
}

fn headers_of(owned: &Owned) -> Vec<Header<'_>> {
    owned.headers.iter().map(|(key, value)| Header { key, value: value.as_deref() }).collect()
}

fn assert_same(record: &Record<'_>, owned: &Owned, offset: i64) {
    assert_eq!(record.offset, offset);
    assert_eq!(record.timestamp, owned.timestamp);
    assert_eq!(record.key, owned.key.as_deref());
    assert_eq!(record.value, owned.value.as_deref());
    assert_eq!(record.headers.iter().collect::<Vec<_>>(), headers_of(owned));
    assert_eq!(record.headers.len(), owned.headers.len());
}

fn compressions() -> impl Strategy<Value = Compression> {
    let all = Compression::ALL.into_iter();
    let supported = all.filter(|c| cfg!(feature = "zstd") || *c != Compression::Zstd);
    prop::sample::select(supported.collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn what_is_built_is_read_back(
        records in prop::collection::vec(owned(), 1..40),
        compression in compressions(),
        base_offset in 0..i64::MAX / 2,
    ) {
        let mut builder =
            BatchBuilder::new(BatchParams { compression, base_offset, ..BatchParams::default() });
        for (delta, owned) in (0..).zip(&records) {
            let headers = headers_of(owned);
            let record = NewRecord {
                timestamp: owned.timestamp,
                key: owned.key.as_deref(),
                value: owned.value.as_deref(),
                headers: &headers,
            };
            let expected = builder.size_with(&record);
            prop_assert_eq!(builder.append(&record).unwrap(), delta);
            prop_assert_eq!(builder.size_in_bytes(), expected);
        }
        let plain_size = builder.size_in_bytes();
        let bytes = builder.finish(&mut Compressor::new()).unwrap().freeze();
        if compression == Compression::None {
            prop_assert_eq!(bytes.len(), plain_size);
        }
        let batch = Batch::parse(&bytes).unwrap();
        prop_assert_eq!(batch.verify_crc(), Ok(()));
        prop_assert_eq!(batch.header().size_in_bytes(), bytes.len());
        prop_assert_eq!(batch.header().last_offset_delta as usize, records.len() - 1);
        let decoded =
            DecodedBatch::decode(&bytes, &mut Decompressor::new(), plain_size).unwrap();
        prop_assert_eq!(decoded.len(), records.len());
        for (offset, (record, owned)) in (base_offset..).zip(decoded.iter().zip(&records)) {
            assert_same(&record, owned, offset);
            assert_same(&decoded.record_at(offset).unwrap(), owned, offset);
        }
    }
}

#[test]
fn the_batch_knows_its_greatest_timestamp_and_who_has_it_first() {
    let mut builder = BatchBuilder::new(BatchParams::default());
    for timestamp in [5, 9, 7, 9] {
        builder.append(&NewRecord { timestamp, ..NewRecord::default() }).unwrap();
    }
    assert_eq!(builder.max_timestamp(), (9, 1));
    let bytes = builder.finish_uncompressed().unwrap();
    let header = BatchHeader::parse(&bytes).unwrap();
    assert_eq!((header.base_timestamp, header.max_timestamp), (5, 9));
}

#[test]
fn a_batch_without_records_is_not_made() {
    let builder = BatchBuilder::new(BatchParams::default());
    assert!(builder.is_empty());
    assert_eq!(builder.finish_uncompressed(), Err(InvalidBatch::RecordCount(0).into()));
}

#[test]
fn producer_kind_and_append_time_reach_the_header() {
    let producer =
        ProducerSequence { id: ProducerId(7), epoch: ProducerEpoch(3), base_sequence: i32::MAX };
    let mut builder = BatchBuilder::new(BatchParams {
        producer: Some(producer),
        kind: BatchKind::Transactional,
        append_time: Some(1000),
        leader_epoch: LeaderEpoch(4),
        ..BatchParams::default()
    });
    for timestamp in [10, 20] {
        builder.append(&NewRecord { timestamp, ..NewRecord::default() }).unwrap();
    }
    let bytes = builder.finish_uncompressed().unwrap().freeze();
    let batch = Batch::parse(&bytes).unwrap();
    let header = batch.header();
    assert_eq!((header.producer_id, header.producer_epoch), (producer.id, producer.epoch));
    assert_eq!((header.base_sequence, header.last_sequence()), (i32::MAX, 0));
    assert!(header.is_transactional() && !header.is_control());
    assert_eq!(header.timestamp_type(), TimestampType::LogAppendTime);
    assert_eq!(header.partition_leader_epoch, LeaderEpoch(4));
    let times: Vec<_> = batch.records().unwrap().map(|record| record.unwrap().timestamp).collect();
    assert_eq!(times, [1000, 1000]);
}

proptest! {
    #[test]
    fn an_encoded_payload_gives_the_same_batch(
        records in prop::collection::vec(owned(), 1..20),
    ) {
        let (mut whole, mut encoded) = (BatchBuilder::new(BatchParams::default()), BatchBuilder::new(BatchParams::default()));
        for owned in &records {
            let headers = headers_of(owned);
            let record = NewRecord {
                timestamp: owned.timestamp,
                key: owned.key.as_deref(),
                value: owned.value.as_deref(),
                headers: &headers,
            };
            let mut payload = Vec::new();
            record.encode_payload(&mut payload);
            prop_assert_eq!(payload.len(), record.payload_bytes());
            prop_assert_eq!(
                encoded.size_with_encoded(owned.timestamp, payload.len()),
                whole.size_with(&record)
            );
            prop_assert_eq!(
                encoded.append_encoded(owned.timestamp, &payload).expect("small"),
                whole.append(&record).expect("small")
            );
        }
        prop_assert_eq!(
            encoded.finish_uncompressed().expect("records"),
            whole.finish_uncompressed().expect("records")
        );
    }
}
