use proptest::prelude::*;

use super::*;
use crate::record::varint::{put_varint, put_varlong};
use crate::record::{Batch, BatchBuilder, BatchParams, NewRecord};

fn header(record_count: i32) -> BatchHeader {
    let mut builder = BatchBuilder::new(BatchParams { base_offset: 50, ..BatchParams::default() });
    builder.append(&NewRecord { timestamp: 1000, ..NewRecord::default() }).unwrap();
    let bytes = builder.finish_uncompressed().unwrap();
    BatchHeader { record_count, ..*Batch::parse(&bytes).unwrap().header() }
}

/// A record with the given body behind its attributes and a size that fits.
fn sized(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, body.len() as i32 + 1);
    out.push(0);
    out.extend_from_slice(body);
    out
}

fn body(offset_delta: i32) -> Vec<u8> {
    let mut body = Vec::new();
    put_varlong(&mut body, -1);
    put_varint(&mut body, offset_delta);
    put_varint(&mut body, 1);
    body.push(b'k');
    put_varint(&mut body, -1);
    put_varint(&mut body, 1);
    put_varint(&mut body, 2);
    body.extend_from_slice(b"hk");
    put_varint(&mut body, 0);
    body
}

fn read(region: &[u8], record_count: i32) -> Vec<Result<i64, RecordError>> {
    let header = header(record_count);
    Records::new(&header, region).map(|record| record.map(|record| record.offset)).collect()
}

#[test]
fn a_record_is_read_by_its_fields() {
    let header = header(1);
    let region = sized(&body(3));
    let record = Records::new(&header, &region).next().unwrap().unwrap();
    assert_eq!((record.offset, record.offset_delta, record.timestamp), (53, 3, 999));
    assert_eq!((record.key, record.value), (Some(b"k".as_slice()), None));
    let expected = [Header { key: b"hk", value: Some(b"") }];
    assert_eq!(record.headers.iter().collect::<Vec<_>>(), expected);
    assert!(!record.headers.is_empty());
}

#[test]
fn count_and_bytes_must_agree() {
    let two = [sized(&body(0)), sized(&body(1))].concat();
    assert_eq!(read(&two, 2), [Ok(50), Ok(51)]);
    let missing = InvalidBatch::MissingRecords { declared: 3, present: 2 };
    assert_eq!(read(&two, 3), [Ok(50), Ok(51), Err(missing.into())]);
    let trailing = InvalidBatch::TrailingBytes(two.len() / 2);
    assert_eq!(read(&two, 1), [Err(trailing.into())]);
    assert_eq!(read(&two, 0), [Err(InvalidBatch::TrailingBytes(two.len()).into())]);
    assert_eq!(read(&[], 0), []);
    assert_eq!(read(&[], -1), [Err(InvalidBatch::RecordCount(-1).into())]);
    let missing = InvalidBatch::MissingRecords { declared: i32::MAX, present: 0 };
    assert_eq!(read(&[], i32::MAX), [Err(missing.into())]);
}

#[track_caller]
fn check(region: &[u8], reason: &'static str) {
    assert_eq!(read(region, 1), [Err(RecordError::InvalidRecord { index: 0, reason })]);
}

#[test]
fn each_broken_field_is_named() {
    check(&[0x80], "size is cut off");
    check(&[0x01, 0], "negative size");
    check(&[0x06, 0, 0], "shorter than its size");
    check(&[0x00], "attributes are cut off");
    check(&sized(&[]), "timestamp delta is cut off");
    check(&sized(&[0]), "offset delta is cut off");
    check(&sized(&[0, 0]), "key is cut off");
    check(&sized(&[0, 0, 0x04, b'k']), "key is cut off");
    check(&sized(&[0, 0, 0x01]), "value is cut off");
    check(&sized(&[0, 0, 0x01, 0x04]), "value is cut off");
    check(&sized(&[0, 0, 0x01, 0x01]), "header count is cut off");
    check(&sized(&[0, 0, 0x01, 0x01, 0x01]), "negative header count");
    check(&sized(&[0, 0, 0x01, 0x01, 0x0A, 0]), "more headers than bytes");
    check(&sized(&[0, 0, 0x01, 0x01, 0x02, 0x01, 0x01]), "header key is null");
    check(&sized(&[0, 0, 0x01, 0x01, 0x02, 0x04]), "header key is cut off");
    check(&sized(&[0, 0, 0x01, 0x01, 0x02, 0x02, b'k']), "header value is cut off");
    check(&sized(&[0, 0, 0x01, 0x01, 0x00, 0x00]), "bytes follow the last header");
}

proptest! {
    #[test]
    fn no_region_panics_or_yields_more_than_it_holds(
        region in prop::collection::vec(any::<u8>(), 0..300),
        count in any::<i32>(),
    ) {
        let records = read(&region, count);
        prop_assert!(records.len() <= region.len() / 7 + 1);
        prop_assert!(records.iter().rev().skip(1).all(Result::is_ok));
    }

    #[test]
    fn a_region_cut_off_anywhere_fails_at_its_last_record(count in 1_i32..6, cut in 1_usize..200) {
        let region: Vec<u8> = (0..count).flat_map(|delta| sized(&body(delta))).collect();
        let end = region.len().saturating_sub(cut);
        let records = read(&region[..end], count);
        prop_assert!(records.last().is_some_and(Result::is_err));
    }
}
