//! The stored form against bytes that Kafka wrote.

use super::*;

fn value() -> TxnValue {
    TxnValue {
        producer: ProducerIdAndEpoch { id: 7, epoch: 3 },
        previous_producer_id: 7,
        next_producer_id: NO_PRODUCER_ID,
        timeout_ms: 60_000,
        state: TxnState::Ongoing,
        partitions: Partitions::from([
            ("a".into(), BTreeSet::from([0, 2])),
            ("__consumer_offsets".into(), BTreeSet::from([17])),
        ]),
        updated_ms: 1_700_000_000_001,
        started_ms: 1_700_000_000_000,
        version: TxnVersion::V2,
    }
}

fn round_trip(record: &Record) {
    let RecordBytes { key, value } = record.encode().expect("short strings");
    assert_eq!(Record::decode(&key, value.as_ref()), Ok(Some(record.clone())));
}

#[test]
fn what_is_written_is_read_alike() {
    for state in TxnState::ALL {
        let partitions =
            if state == TxnState::Empty { Partitions::new() } else { value().partitions };
        round_trip(&Record {
            id: "t".into(),
            value: Some(TxnValue { state, partitions, ..value() }),
        });
    }
    round_trip(&Record { id: "t".into(), value: None });
    let rotated = TxnValue { next_producer_id: 8, version: TxnVersion::V1, ..value() };
    round_trip(&Record { id: "t".into(), value: Some(rotated) });
}

#[test]
fn the_version_before_flexible_fields_is_read() {
    let mut out = Writer::new();
    out.i16(0);
    out.i64(7);
    out.i16(3);
    out.i32(60_000);
    out.u8(1);
    out.length(1);
    out.string("topic", "a").expect("short");
    out.length(2);
    out.i32(0);
    out.i32(2);
    out.i64(5);
    out.i64(4);
    let read = decode_value(&out.finish()).expect("version 0");
    let partitions = Partitions::from([("a".into(), BTreeSet::from([0, 2]))]);
    let expected = TxnValue {
        partitions,
        previous_producer_id: NO_PRODUCER_ID,
        updated_ms: 5,
        started_ms: 4,
        version: TxnVersion::V1,
        ..value()
    };
    assert_eq!(read, expected);
}

#[test]
fn damaged_values_are_refused_and_reserve_nothing() {
    let whole = encode_value(&value());
    for end in 0..whole.len() {
        assert!(decode_value(&whole.slice(..end)).is_err(), "cut at {end}");
    }
    let mut bytes = whole.to_vec();
    bytes[16] = 6;
    assert_eq!(
        decode_value(&bytes.into()),
        Err(RecordError::UnknownTxnState(6)),
        "Dead is never stored"
    );
    let mut out = Writer::new();
    out.i16(1);
    out.i64(7);
    out.i16(3);
    out.i32(1);
    out.u8(1);
    out.uvarint(u64::from(u32::MAX));
    assert_eq!(decode_value(&out.finish()), Err(RecordError::Truncated("partitions")));
    assert_eq!(
        decode_value(&Bytes::from_static(&[0, 2])),
        Err(RecordError::ValueVersion { key: 0, value: 2 })
    );
}
