use proptest::prelude::*;

use super::*;
use crate::golden::{rows, unhex};

const BODY: &str = "body ü";

fn golden_message<'a>(topic: &'a str, properties: &'a [u8]) -> Message<'a> {
    Message {
        topic,
        queue_id: 3,
        flag: 7,
        queue_offset: 1_234_567_890_123,
        physical_offset: 5 << 40 | 1_234_567_890,
        sys_flag: 0,
        born_timestamp_ms: 1_700_000_000_123,
        born_host: "10.1.2.3:54321".parse().unwrap(),
        store_timestamp_ms: 1_700_000_000_456,
        store_host: "127.0.0.1:10911".parse().unwrap(),
        reconsume_times: 2,
        prepared_transaction_offset: 0,
        body: BODY.as_bytes(),
        properties,
    }
}

fn encoded(message: &Message<'_>) -> Vec<u8> {
    let mut out = SegmentedOut::default();
    let size = message.encode(None, &mut out).unwrap();
    assert_eq!(size, out.len());
    out.into_bytes().to_vec()
}

#[test]
fn messages_are_those_of_the_original() {
    let mut seen = 0;
    for row in rows("5.5.0/messages.tsv") {
        let [name, bytes, _, properties] = &row[..] else { panic!("{row:?}") };
        let (bytes, properties) = (unhex(bytes), unhex(properties));
        let topic = if name == "topic-127" { "t".repeat(127) } else { "orders".to_owned() };
        let mut message = golden_message(&topic, &properties);
        match name.as_str() {
            "v6-store" => message.store_host = "[::1]:10911".parse().unwrap(),
            "v6-both" => {
                message.store_host = "[::1]:10911".parse().unwrap();
                message.born_host = "[fe80::1]:54321".parse().unwrap();
            }
            _ => {}
        }
        assert_eq!(encoded(&message), bytes, "{name}");
        let decoded = Message::decode(&mut &bytes[..]).unwrap();
        assert_eq!(Message { sys_flag: 0, ..decoded }, message, "{name}");
        seen += 1;
    }
    assert_eq!(seen, 4);
}

/// The original's store writes the form with two bytes for the topic's length from 128 bytes on.
/// It fills in the offsets later.
#[test]
fn long_topics_have_the_second_form() {
    for row in rows("5.5.0/stored.tsv") {
        let [name, bytes] = &row[..] else { panic!("{row:?}") };
        let bytes = unhex(bytes);
        let length: usize = name.strip_prefix("stored-").unwrap().parse().unwrap();
        let topic = format!("%RETRY%{}", "g".repeat(length - 7));
        let message = Message {
            queue_offset: 0,
            physical_offset: 0,
            ..golden_message(&topic, b"TAGS\x01TagA\x02")
        };
        assert_eq!(encoded(&message), bytes, "{name}");
        assert_eq!(Message::decode(&mut &bytes[..]), Ok(message));
    }
}

/// Case B118: a client on a dual-stack socket has an address of four bytes and no flag.
#[test]
fn a_mapped_host_is_written_short() {
    let mut message = golden_message("orders", b"");
    message.born_host = "[::ffff:10.1.2.3]:54321".parse().unwrap();
    message.sys_flag = sys_flag::BORN_HOST_V6;
    assert_eq!(encoded(&message), encoded(&golden_message("orders", b"")));
}

#[test]
fn what_does_not_fit_is_refused_and_leaves_the_output_alone() {
    let long = vec![b'x'; PROPERTIES_BYTES_MAX + 1];
    let mut out = SegmentedOut::default();
    out.put_slice(b"before");
    let refused = golden_message("orders", &long).encode(None, &mut out);
    assert_eq!(refused, Err(MessageError::TooLong { part: "properties", bytes: 32_768 }));
    assert_eq!(&out.into_bytes()[..], b"before");
    assert_eq!(encoded(&golden_message("orders", &long[1..])).len(), 91 + 6 + 7 + 32_767);
}

#[test]
fn a_large_body_is_shared_with_its_region() {
    let region = Bytes::from(vec![1; 10_000]);
    let body = &region[100..9_000];
    let mut out = SegmentedOut::default();
    let message = Message { body, ..golden_message("orders", b"a\x01b\x02") };
    message.encode(Some(&region), &mut out).unwrap();
    let segments = out.clone().into_segments();
    assert_eq!(segments.len(), 3);
    assert_eq!(segments[1].as_ptr(), body.as_ptr());
    let whole = out.into_bytes();
    assert_eq!(Message::decode(&mut &whole[..]), Ok(message));
}

/// Case B83: 4.9 leaves the last separator of each property string out.
#[test]
fn batches_of_older_clients_are_read() {
    for (version, ends) in [("4.4.0", "\u{2}"), ("4.9.8", "")] {
        let bytes = unhex(&rows(&format!("{version}/batches.tsv"))[0][1]);
        let mut rest = &bytes[..];
        let first = BatchMessage::decode(&mut rest).unwrap();
        let second = BatchMessage::decode(&mut rest).unwrap();
        assert!(rest.is_empty());
        let properties = format!("KEYS\u{1}k1 k2\u{2}WAIT\u{1}true\u{2}TAGS\u{1}TagA{ends}");
        assert_eq!((first.body, first.properties), (&b"first"[..], properties.as_str()));
        assert_eq!(second.body, "second é".as_bytes());
    }
}

#[test]
fn batches_are_those_of_the_original() {
    let row = &rows("5.5.0/batches.tsv")[0];
    let bytes = unhex(&row[1]);
    let mut rest = &bytes[..];
    let mut messages = Vec::new();
    while !rest.is_empty() {
        messages.push(BatchMessage::decode(&mut rest).unwrap());
    }
    let bodies: Vec<&[u8]> = messages.iter().map(|message| message.body).collect();
    assert_eq!(bodies, [b"first".as_slice(), "second é".as_bytes(), b"third"]);
    assert_eq!(messages[0].flag, 9);
    assert_eq!(messages[0].properties, "KEYS\u{1}k1 k2\u{2}WAIT\u{1}true\u{2}TAGS\u{1}TagA\u{2}");
    let mut again = BytesMut::new();
    messages.iter().for_each(|message| message.encode(&mut again).unwrap());
    assert_eq!(again, bytes);
}

/// Case B87: lengths that point elsewhere, and a CRC that is wrong.
#[test]
fn broken_batches_are_refused() {
    let bytes = unhex(&rows("5.5.0/batches.tsv")[0][1]);
    for size in [0, -1, 3, 21, i32::MAX, i32::MIN] {
        let mut broken = bytes.clone();
        broken[..4].copy_from_slice(&i32::to_be_bytes(size));
        let mut rest = &broken[..];
        assert!(BatchMessage::decode(&mut rest).is_err(), "size {size}");
        assert_eq!(rest.len(), broken.len(), "nothing was taken");
    }
    let with_crc = |crc: u32| {
        let mut changed = bytes.clone();
        changed[8..12].copy_from_slice(&crc.to_be_bytes());
        BatchMessage::decode(&mut &changed[..]).map(|message| message.flag)
    };
    assert_eq!(with_crc(body_crc(b"first")), Ok(9));
    assert_eq!(with_crc(crc32fast::hash(b"first")), Ok(9));
    assert!(matches!(with_crc(1), Err(MessageError::Crc { found: 1, .. })));
    let compressed = unhex(&rows("5.5.0/compressed.tsv")[2][3]);
    assert!(BatchMessage::decode(&mut &compressed[..]).is_err());
}

#[test]
fn broken_messages_are_refused() {
    let bytes = encoded(&golden_message("orders", b"a\x01b\x02"));
    for length in 0..bytes.len() {
        let mut rest = &bytes[..length];
        assert!(Message::decode(&mut rest).is_err(), "{length} bytes");
        assert_eq!(rest.len(), length);
    }
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 0x80;
        // It may be another message, but must not panic.
        let _any = Message::decode(&mut &changed[..]);
    }
    let mut body = bytes.clone();
    let place = body.windows(4).position(|window| window == b"body").unwrap();
    body[place] = b'B';
    assert!(matches!(Message::decode(&mut &body[..]), Err(MessageError::Crc { .. })));
}

proptest! {
    #[test]
    fn messages_come_back(
        topic in "[a-z%]{1,200}",
        body in proptest::collection::vec(any::<u8>(), 0..300),
        properties in proptest::collection::vec(any::<u8>(), 0..300),
        numbers in any::<(i32, i32, i64, i64, i64, i64, i32)>(),
        v6 in any::<(bool, bool)>(),
    ) {
        let host = |v6| if v6 { "[2001:db8::1]:1" } else { "1.2.3.4:65535" };
        let message = Message {
            topic: &topic,
            queue_id: numbers.0,
            flag: numbers.1,
            queue_offset: numbers.2,
            physical_offset: numbers.3,
            sys_flag: 2,
            born_timestamp_ms: numbers.4,
            born_host: host(v6.0).parse().unwrap(),
            store_timestamp_ms: numbers.5,
            store_host: host(v6.1).parse().unwrap(),
            reconsume_times: numbers.6,
            prepared_transaction_offset: 0,
            body: &body,
            properties: &properties,
        };
        let bytes = encoded(&message);
        let mut rest = &bytes[..];
        let decoded = Message::decode(&mut rest).unwrap();
        prop_assert!(rest.is_empty());
        prop_assert_eq!(Message { sys_flag: 2, ..decoded }, message);
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _any = Message::decode(&mut &bytes[..]);
        let _any = BatchMessage::decode(&mut &bytes[..]);
    }
}
