use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::delivery::{Note, Noted};

fn message(payload: &[u8]) -> StoredMessage {
    StoredMessage { timestamp_ms: 1_700_000_000_000, payload: Bytes::copy_from_slice(payload) }
}

fn half(immunity: Immunity, payload: &[u8]) -> HalfMessage {
    HalfMessage {
        target: TopicPartition::new("orders", 3),
        group: "p".into(),
        client: "10.0.0.1@1".into(),
        immunity,
        born_ms: 1_699_999_999_999,
        message: message(payload),
    }
}

fn records() -> Vec<Record> {
    let immunities = [Immunity::Default, Immunity::Unreadable, Immunity::Seconds(0)];
    let halves = immunities
        .into_iter()
        .map(|immunity| Record::Half { half: half(immunity, b"payload"), number: None });
    let note = Note {
        target: TopicPartition::new("orders", 3),
        messages: vec![Noted { offset: Offset(7), tag: 7 }],
    };
    halves
        .chain([
            Record::Checked { half: Offset(7), times: 15, at_ms: 1_700_000_000_001 },
            Record::RolledBack { half: Offset(7) },
            Record::GivenUp { half: Offset(7), message: message(b"copy") },
            Record::Delivery(DeliveryRecord::Note(note)),
        ])
        .collect()
}

#[test]
fn what_is_written_is_read_again() {
    for record in records() {
        let bytes = record.encode().expect("short names");
        let value = bytes.value.as_deref();
        assert_eq!(Record::decode(&bytes.key, value), Ok(Some(record.clone())));
        let value = value.expect("a value");
        let expected = match &record {
            Record::Half { half, .. } => Some(half.message.clone()),
            Record::GivenUp { message, .. } => Some(message.clone()),
            _ => None,
        };
        assert_eq!(Record::message(&bytes.key, value), expected, "{record:?}");
        let half = Record::half(&bytes.key, value);
        assert_eq!(half.is_some(), matches!(record, Record::Half { .. }));
        let key = bytes.key;
        for end in 0..value.len() {
            let decoded = Record::decode(&key, Some(&value[..end]));
            assert!(matches!(decoded, Err(RecordError::Truncated(_))), "{record:?} cut at {end}");
        }
    }
}

#[test]
fn the_layout_of_a_rolled_back_message_and_of_one_asked_about() {
    let rolled_back = Record::RolledBack { half: Offset(258) }.encode().expect("short");
    assert_eq!(&rolled_back.key[..], b"DB\0\0\0\0\0\0\x01\x02");
    assert_eq!(rolled_back.value.as_deref(), Some(&b"\0\0"[..]));
    let checked = Record::Checked { half: Offset(1), times: 2, at_ms: 3 }.encode().expect("short");
    assert_eq!(&checked.key[..], b"DC\0\0\0\0\0\0\0\x01");
    assert_eq!(checked.value.as_deref(), Some(&b"\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03"[..]));
}

#[test]
fn unknown_kinds_are_left_alone_and_unknown_versions_told() {
    assert_eq!(Record::decode(b"\0\x07\0", Some(b"")), Ok(None));
    let key = Record::RolledBack { half: Offset(1) }.encode().expect("short").key;
    let error = RecordError::ValueVersion { key: ROLLED_BACK_KEY_VERSION, value: 1 };
    assert_eq!(Record::decode(&key, Some(b"\0\x01")), Err(error));
    assert_eq!(Record::decode(&key, None), Err(RecordError::Truncated("value")));
}

#[test]
fn immunity_is_read_as_the_original_reads_it() {
    for (text, immunity) in [
        (None, Immunity::Default),
        (Some(""), Immunity::Unreadable),
        (Some("x"), Immunity::Unreadable),
        (Some("-1"), Immunity::Unreadable),
        (Some("1.5"), Immunity::Unreadable),
        (Some("0"), Immunity::Seconds(0)),
        (Some("60"), Immunity::Seconds(60)),
        (Some("-5"), Immunity::Seconds(-5)),
        (Some("99999999999"), Immunity::Seconds(i32::MAX)),
    ] {
        assert_eq!(Immunity::of_property(text), immunity, "{text:?}");
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(key in any::<Vec<u8>>(), value in prop::option::of(any::<Vec<u8>>())) {
        let _ = Record::decode(&key, value.as_deref());
        for version in [b'H', b'C', b'B', b'G'] {
            let known = [&b"D"[..], &[version], &[0; 8]].concat();
            let _ = Record::decode(&known, value.as_deref());
        }
    }
}
