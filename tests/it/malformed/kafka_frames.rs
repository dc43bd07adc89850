//! Kafka requests that decode wrongly, or rightly but ask for what must be refused.

use anyhow::ensure;
use bytes::{BufMut, Bytes, BytesMut};
use duolog_log_core::record::{BatchBuilder, BatchParams, Compression, Compressor, NewRecord};
use duolog_tests::raw_client::Connection;
use duolog_tests::raw_kafka;
use kafka_protocol::messages::{
    ApiVersionsRequest, MetadataRequest, ProduceRequest, ProduceResponse, ResponseHeader,
};
use kafka_protocol::protocol::Decodable;

use super::{Attacked, LIMIT, api_versions};

const TOPIC: &str = "malformed";
const CORRUPT_MESSAGE: i16 = 2;
const INVALID_REQUIRED_ACKS: i16 = 21;
const UNSUPPORTED_VERSION: i16 = 35;
const INVALID_RECORD: i16 = 87;
/// Where the count of records stands in a batch: outside of what the length covers wrongly, inside the CRC.
const COUNT_AT: usize = 57;
const LAST_OFFSET_DELTA_AT: usize = 23;
const CRC_AT: usize = 17;
const CRC_FROM: usize = 21;

fn header(key: i16, version: i16, correlation_id: i32) -> BytesMut {
    let mut frame = BytesMut::new();
    frame.put_i16(key);
    frame.put_i16(version);
    frame.put_i32(correlation_id);
    frame.put_i16(1);
    frame.put_u8(b'x');
    frame
}

fn attacked_with_topic() -> anyhow::Result<(Attacked, Connection)> {
    let attacked = Attacked::start()?;
    let mut connection = Connection::open(&attacked.node.kafka(), LIMIT)?;
    raw_kafka::create_topic(&mut connection, TOPIC, 1)?;
    Ok((attacked, connection))
}

fn end_offset(connection: &mut Connection) -> anyhow::Result<i64> {
    Ok(raw_kafka::fetch(connection, TOPIC, 0, 0)?.high_watermark)
}

/// Case B01: an array of two billion entries in a few bytes.
#[test]
fn an_absurd_count_closes_the_connection_and_reserves_nothing() {
    let mut attacked = Attacked::start().unwrap();
    for count in [0x7FFF_FFFF_u32, 0x8000_0000, 0xFFFF_FFFE] {
        for _ in 0..50 {
            let mut connection = Connection::open(&attacked.node.kafka(), LIMIT).unwrap();
            let mut frame = header(3, 1, 1);
            frame.put_u32(count);
            connection.send_frame(&frame).unwrap();
            assert!(connection.closed_by_peer().unwrap(), "count {count:#x}");
        }
    }
    attacked.unharmed("absurd counts").unwrap();
}

/// Case B03: an ApiVersions version from the future is answered in version 0 with code 35, and the client may retry.
#[test]
fn a_newer_api_versions_is_answered_in_version_0() {
    let mut attacked = Attacked::start().unwrap();
    for version in [99, 32767] {
        let mut connection = Connection::open(&attacked.node.kafka(), LIMIT).unwrap();
        let mut frame = header(18, version, 7);
        frame.put_slice(&[0xAB; 20]);
        connection.send_frame(&frame).unwrap();
        let mut answer = connection.receive_frame().unwrap();
        assert_eq!(ResponseHeader::decode(&mut answer, 0).unwrap().correlation_id, 7);
        let body = kafka_protocol::messages::ApiVersionsResponse::decode(&mut answer, 0).unwrap();
        assert!(answer.is_empty());
        assert_eq!(body.error_code, UNSUPPORTED_VERSION);
        let own = body.api_keys.iter().find(|api| api.api_key == 18).unwrap();
        assert_eq!((own.min_version, own.max_version), (0, 4));
        let retried = connection.kafka(3, &api_versions()).unwrap();
        assert_eq!(retried.error_code, 0);
    }
    for (key, version) in [(999, 0), (3, 99), (-1, 0)] {
        let mut connection = Connection::open(&attacked.node.kafka(), LIMIT).unwrap();
        connection.send_frame(&header(key, version, 7)).unwrap();
        assert!(connection.closed_by_peer().unwrap(), "key {key} version {version}");
    }
    attacked.unharmed("unknown keys and versions").unwrap();
}

/// Case B06.
#[test]
fn acks_other_than_0_1_and_all_are_refused() {
    let (_attacked, mut connection) = attacked_with_topic().unwrap();
    for acks in [2, -2, 32767] {
        let request = raw_kafka::produce(TOPIC, 0, acks, raw_kafka::batch(&[b"v"], None));
        let answer = raw_kafka::produced(connection.kafka(7, &request).unwrap()).unwrap();
        assert_eq!((answer.error_code, answer.base_offset), (INVALID_REQUIRED_ACKS, -1), "{acks}");
    }
    assert_eq!(end_offset(&mut connection).unwrap(), 0);
}

fn gzip_batch(values: &[&[u8]]) -> Bytes {
    let params = BatchParams { compression: Compression::Gzip, ..BatchParams::default() };
    let mut builder = BatchBuilder::new(params);
    for value in values {
        let record = NewRecord { timestamp: 1, key: None, value: Some(value), headers: &[] };
        builder.append(&record).unwrap();
    }
    builder.finish(&mut Compressor::new()).unwrap().freeze()
}

/// A batch with four bytes replaced and its CRC made right again.
fn altered(batch: &Bytes, at: usize, value: i32) -> Bytes {
    let mut bytes = batch.to_vec();
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
    let crc = crc32c::crc32c(&bytes[CRC_FROM..]);
    bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
    bytes.into()
}

/// Case B10: each oddity is refused whole, and nothing is appended.
#[test]
fn odd_batches_are_refused_whole() {
    let (mut attacked, mut connection) = attacked_with_topic().unwrap();
    let three = raw_kafka::batch(&[b"1", b"2", b"3"], None);
    let two = raw_kafka::batch(&[b"4", b"5"], None);
    let mut broken = three.to_vec();
    *broken.last_mut().unwrap() ^= 1;
    let rows: [(&str, Bytes, &[i16]); 8] = [
        ("two compressed batches", joined(&gzip_batch(&[b"1"]), &gzip_batch(&[b"2"])), &[87]),
        ("two plain batches", joined(&three, &two), &[87]),
        ("no bytes", Bytes::new(), &[INVALID_RECORD, 42, CORRUPT_MESSAGE]),
        ("count 0", altered(&three, COUNT_AT, 0), &[INVALID_RECORD, 42, CORRUPT_MESSAGE]),
        ("count 3, two records", altered(&two, COUNT_AT, 3), &[INVALID_RECORD, CORRUPT_MESSAGE]),
        (
            "last offset delta 5",
            altered(&three, LAST_OFFSET_DELTA_AT, 5),
            &[INVALID_RECORD, CORRUPT_MESSAGE],
        ),
        ("wrong CRC", broken.into(), &[CORRUPT_MESSAGE]),
        ("torn", three.slice(..three.len() - 3), &[CORRUPT_MESSAGE, INVALID_RECORD]),
    ];
    for version in [3, 7, 8, 9] {
        for (name, records, codes) in &rows {
            let request = raw_kafka::produce(TOPIC, 0, 1, records.clone());
            let answer = raw_kafka::produced(connection.kafka(version, &request).unwrap()).unwrap();
            assert!(codes.contains(&answer.error_code), "{name}: code {}", answer.error_code);
        }
    }
    assert_eq!(end_offset(&mut connection).unwrap(), 0);
    let good = raw_kafka::produce(TOPIC, 0, 1, three);
    let answer = raw_kafka::produced(connection.kafka(7, &good).unwrap()).unwrap();
    assert_eq!((answer.error_code, answer.base_offset), (0, 0));
    attacked.unharmed("odd batches").unwrap();
}

fn joined(first: &Bytes, second: &Bytes) -> Bytes {
    [first.as_ref(), second.as_ref()].concat().into()
}

/// Case B14: no answer to acks=0, the others in the order of their requests.
#[test]
fn acks_0_is_not_answered_and_the_rest_keeps_its_order() {
    let (_attacked, mut connection) = attacked_with_topic().unwrap();
    let silent = raw_kafka::produce(TOPIC, 0, 0, raw_kafka::batch(&[b"silent"], None));
    let loud = raw_kafka::produce(TOPIC, 0, 1, raw_kafka::batch(&[b"loud"], None));
    connection.send_kafka(7, &silent).unwrap();
    let metadata = connection.send_kafka(9, &MetadataRequest::default()).unwrap();
    let produce = connection.send_kafka(7, &loud).unwrap();
    let versions = connection.send_kafka(3, &api_versions()).unwrap();

    assert_eq!(connection.receive_kafka::<MetadataRequest>(9).unwrap().0, metadata);
    let (id, answer): (i32, ProduceResponse) =
        connection.receive_kafka::<ProduceRequest>(7).unwrap();
    assert_eq!(id, produce);
    assert_eq!(raw_kafka::produced(answer).unwrap().base_offset, 1, "behind the silent one");
    assert_eq!(connection.receive_kafka::<ApiVersionsRequest>(3).unwrap().0, versions);
    let stored = raw_kafka::values(&mut connection, TOPIC, 0, 0).unwrap();
    assert_eq!(stored, [(0, b"silent".to_vec()), (1, b"loud".to_vec())]);
}

/// Case B15: an acks=0 request that fails has no answer to carry the error, so the connection is closed.
#[test]
fn a_failed_acks_0_closes_the_connection() {
    let (mut attacked, mut reader) = attacked_with_topic().unwrap();
    let mut broken = raw_kafka::batch(&[b"v"], None).to_vec();
    *broken.last_mut().unwrap() ^= 1;
    let rows = [
        ("a name with a slash", raw_kafka::produce("a/b", 0, 0, raw_kafka::batch(&[b"v"], None))),
        ("a wrong CRC", raw_kafka::produce(TOPIC, 0, 0, broken.into())),
    ];
    for (name, request) in rows {
        let mut connection = Connection::open(&attacked.node.kafka(), LIMIT).unwrap();
        connection.send_kafka(7, &request).unwrap();
        connection.send_kafka(3, &api_versions()).unwrap();
        assert!(connection.closed_by_peer().unwrap(), "{name}");
    }
    assert_eq!(end_offset(&mut reader).unwrap(), 0);
    attacked.unharmed("failed acks=0").unwrap();
}

/// A frame cut off in its middle, on many connections at once.
#[test]
fn half_frames_hold_nothing_up() {
    let mut attacked = Attacked::start().unwrap();
    let mut half_open = Vec::new();
    for _ in 0..50 {
        let mut connection = Connection::open(&attacked.node.kafka(), LIMIT).unwrap();
        // 90 MiB are claimed, which is allowed; nothing of them comes.
        connection.send(&(90_u32 << 20).to_be_bytes()).unwrap();
        half_open.push(connection);
    }
    attacked.unharmed("half frames").unwrap();
    for mut connection in half_open {
        connection.stop_sending().unwrap();
        ensure_closed(&mut connection).unwrap();
    }
}

fn ensure_closed(connection: &mut Connection) -> anyhow::Result<()> {
    ensure!(connection.closed_by_peer()?, "an answer to half a frame");
    Ok(())
}
