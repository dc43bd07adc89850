use std::collections::BTreeMap;

use duolog_log_core::record::NewRecord as LogRecord;

use super::*;
use crate::remoting::{SendHeader, message::BatchMessage};
use crate::translate::properties::{Properties, java_hash};
use crate::translate::send::{self, Delaying, KeySource, SendContext, TimestampBounds, Tombstones};
use crate::translate::testing::{batch_of_encoded, batch_of_one};

mod bounds;
mod drawn;

const KAFKA: Writer = Writer { is_rocketmq: false, door: Door::Both };

fn place(door: Door) -> Place<'static> {
    Place {
        topic: "orders",
        queue_id: 3,
        partition_number: 5,
        store_host: "127.0.0.1:10911".parse().unwrap(),
        door,
        append_time_ms: 1_700_000_000_999,
        times_before: 0,
        region_id: "",
    }
}

/// The message of a record, as bytes.
fn shown(record: &Record<'_>, door: Door) -> Bytes {
    let mut out = SegmentedOut::default();
    let mut scratch = Scratch::default();
    let size = encode(record, &place(door), None, &mut scratch, &mut out).unwrap();
    assert_eq!(size, out.len());
    out.into_bytes()
}

fn properties_of(message: &Message<'_>) -> BTreeMap<String, String> {
    let text = std::str::from_utf8(message.properties).unwrap();
    let all: Vec<_> = Properties(text).iter().collect();
    let map: BTreeMap<String, String> =
        all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    assert_eq!(map.len(), all.len(), "no name comes twice: {text:?}");
    map
}

/// The properties of a Kafka producer's record.
fn kafka_view(
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: &[(&[u8], Option<&[u8]>)],
) -> BTreeMap<String, String> {
    let headers: Vec<_> =
        headers.iter().map(|(key, value)| Header { key, value: *value }).collect();
    let record = LogRecord { timestamp: 1, key, value, headers: &headers };
    let batch = batch_of_one(&record, 0);
    let bytes = shown(&batch.record(0).unwrap(), Door::Both);
    properties_of(&Message::decode(&mut &bytes[..]).unwrap())
}

fn map<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn a_kafka_record_is_a_message() {
    let headers = [
        Header { key: b"TAGS", value: Some(b"TagA") },
        Header { key: b"name", value: Some(b"value") },
    ];
    let record = LogRecord {
        timestamp: 1_700_000_000_123,
        key: Some(b"k1"),
        value: Some(b"hello"),
        headers: &headers,
    };
    let batch = batch_of_one(&record, 77);
    let bytes = shown(&batch.record(0).unwrap(), Door::Both);
    let message = Message::decode(&mut &bytes[..]).unwrap();
    assert_eq!(properties_of(&message), map([("KEYS", "k1"), ("TAGS", "TagA"), ("name", "value")]));
    let expected = Message {
        topic: "orders",
        queue_id: 3,
        flag: 0,
        queue_offset: 77,
        physical_offset: 5 << 40 | 77,
        sys_flag: 0,
        born_timestamp_ms: 1_700_000_000_123,
        born_host: NO_HOST,
        store_timestamp_ms: 1_700_000_000_999,
        store_host: place(Door::Both).store_host,
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        body: b"hello",
        properties: message.properties,
    };
    assert_eq!(message, expected);
}

fn sent(properties: &str, body: &[u8], sys_flag: i32) -> crate::backend::NewRecord {
    let header = SendHeader {
        producer_group: "g",
        is_dead_letter: false,
        topic: "orders",
        default_topic: "TBW102",
        default_topic_queue_nums: 4,
        queue_id: 0,
        sys_flag,
        born_timestamp_ms: 1_700_000_000_123,
        flag: 7,
        properties,
        reconsume_times: 2,
        unit_mode: false,
        max_reconsume_times: None,
        batch: false,
        broker_name: None,
    };
    let context = SendContext {
        key_source: KeySource::Keys,
        tombstones: match properties.contains("KAFKA_TOMBSTONE") {
            true => Tombstones::Allowed,
            false => Tombstones::Refused,
        },
        body_bytes_max: 1024,
        born_host: "10.1.2.3:54321".parse().unwrap(),
        store_timestamp_ms: 1_700_000_000_456,
        timestamps: TimestampBounds::default(),
        delaying: Delaying::Refused,
    };
    send::single(&header, body, &context).unwrap()
}

/// Case B83: exactly the sent properties; none is glued to another.
#[test]
fn a_rocketmq_message_comes_back_as_it_was_sent() {
    let text = "UNIQ_KEY\u{1}7F00\u{2}WAIT\u{1}true\u{2}KEYS\u{1}k1 k2\u{2}a\u{1}b\u{2}TAGS\u{1}Ü";
    let batch = batch_of_encoded(&[sent(text, b"hello", 2)]);
    let bytes = shown(&batch.record(0).unwrap(), Door::Both);
    let message = Message::decode(&mut &bytes[..]).unwrap();
    assert_eq!(message.properties, format!("{text}\u{2}").as_bytes());
    assert_eq!((message.flag, message.sys_flag, message.reconsume_times), (7, 2, 2));
    assert_eq!(message.born_timestamp_ms, 1_700_000_000_123);
    assert_eq!(message.born_host, "10.1.2.3:54321".parse().unwrap());
    assert_eq!(message.store_timestamp_ms, 1_700_000_000_456);
    assert_eq!(tag_hash(&batch.record(0).unwrap()), java_hash("Ü"));
    assert_eq!(store_time_ms(&batch.record(0).unwrap(), 5), 1_700_000_000_456);
}

/// Clients trace what they consume only where a region is named.
#[test]
fn a_region_is_added_to_what_is_shown_unless_the_message_has_one() {
    let region = |record: &Record<'_>| {
        let place = Place { region_id: "R", ..place(Door::Both) };
        let mut out = SegmentedOut::default();
        encode(record, &place, None, &mut Scratch::default(), &mut out).unwrap();
        let bytes = out.into_bytes();
        let message = Message::decode(&mut &bytes[..]).unwrap();
        properties_of(&message).get("MSG_REGION").cloned()
    };
    let texts = ["a\u{1}b\u{2}", "MSG_REGION\u{1}own\u{2}"];
    let batch = batch_of_encoded(&texts.map(|text| sent(text, b"hello", 0)));
    assert_eq!(region(&batch.record(0).unwrap()).as_deref(), Some("R"));
    assert_eq!(region(&batch.record(1).unwrap()).as_deref(), Some("own"));
    let headers = [Header { key: b"MSG_REGION", value: Some(b"of kafka") }];
    let record = LogRecord { timestamp: 1, key: None, value: Some(b"v"), headers: &headers };
    let batch = batch_of_one(&record, 0);
    assert_eq!(region(&batch.record(0).unwrap()).as_deref(), Some("R"));
}

#[test]
fn without_a_keys_property_the_record_key_is_not_shown_for_one() {
    let batch = batch_of_encoded(&[sent("a\u{1}b\u{2}", b"hello", 0)]);
    let bytes = shown(&batch.record(0).unwrap(), Door::Both);
    let message = Message::decode(&mut &bytes[..]).unwrap();
    assert_eq!(properties_of(&message), map([("a", "b")]));
}

/// Pitfall 13.
/// What drives a client is dropped of a Kafka producer's headers, and even of one who adds
/// `__rmq`; in the bridge's own topics it is what the bridge wrote.
#[test]
fn reserved_names_cannot_be_forged() {
    let forged: [(&[u8], Option<&[u8]>); 5] = [
        (b"DELAY", Some(b"3")),
        (b"POP_CK", Some(b"x")),
        (b"UNIQ_KEY", Some(b"u")),
        (b"RETRY_TOPIC", Some(b"t")),
        (b"__SHARDINGKEY", Some(b"s")),
    ];
    let view = kafka_view(None, Some(b"v"), &forged);
    assert_eq!(view, map([("__SHARDINGKEY", "s")]));
    let origin = Origin {
        flag: 0,
        sys_flag: 0x7FF,
        born_host: NO_HOST,
        store_timestamp_ms: 1,
        born_timestamp_ms: None,
        reconsume_times: 0,
    }
    .encode();
    let mut headers: Vec<_> =
        forged.iter().map(|(key, value)| Header { key, value: *value }).collect();
    headers.push(Header { key: b"__rmq", value: Some(origin.as_slice()) });
    let record = LogRecord { timestamp: 1, key: None, value: Some(b"v"), headers: &headers };
    let batch = batch_of_one(&record, 0);
    let seen = |door| {
        let bytes = shown(&batch.record(0).unwrap(), door);
        let message = Message::decode(&mut &bytes[..]).unwrap();
        assert_eq!(message.sys_flag, sys_flag::MULTI_TAGS, "no compression, half or inner batch");
        properties_of(&message)
    };
    assert_eq!(seen(Door::Both), map([("UNIQ_KEY", "u"), ("__SHARDINGKEY", "s")]));
    let all = seen(Door::Bridge);
    assert_eq!(all.len(), 5);
    assert_eq!(all["RETRY_TOPIC"], "t");
}

#[test]
fn keys_and_values_that_are_no_text_are_hexed() {
    assert_eq!(
        kafka_view(Some(b"\xff\x00"), Some(b"v"), &[]),
        map([("KEYS", "ff00"), ("KAFKA_KEY_ENC", "hex")])
    );
    assert_eq!(
        kafka_view(Some(b"a\x01b"), Some(b"v"), &[]),
        map([("KEYS", "610162"), ("KAFKA_KEY_ENC", "hex")])
    );
    let view = kafka_view(
        None,
        Some(b"v"),
        &[
            (b"bin", Some(b"\xfe")),
            (b"bin.enc", Some(b"mine")),
            (b"sep", Some(b"x\x02DELAY\x013")),
            (b"\xff", Some(b"v")),
            (b"a\x01b", Some(b"v")),
            (b"", Some(b"v")),
            (b"text.enc", Some(b"kept")),
        ],
    );
    assert_eq!(
        view,
        map([
            ("bin", "fe"),
            ("bin.enc", "hex"),
            ("sep", "780244454c41590133"),
            ("sep.enc", "hex"),
            ("KAFKA_H_ff", "v"),
            ("KAFKA_H_610162", "v"),
            ("KAFKA_H_", "v"),
            ("text.enc", "kept"),
        ])
    );
}

#[test]
fn a_keys_header_wins_over_the_key() {
    let headers: [(&[u8], Option<&[u8]>); 1] = [(b"KEYS", Some(b"h"))];
    assert_eq!(kafka_view(Some(b"k"), Some(b"v"), &headers), map([("KEYS", "h")]));
    let headers: [(&[u8], Option<&[u8]>); 1] = [(b"KEYS", None)];
    assert_eq!(
        kafka_view(Some(b"k"), Some(b"v"), &headers),
        map([("KEYS", "k"), ("KAFKA_NULL_HEADERS", "KEYS")])
    );
}

/// Case B127: null and empty are told apart.
#[test]
fn nulls_are_marked() {
    assert_eq!(kafka_view(None, None, &[]), map([("KAFKA_TOMBSTONE", "true")]));
    assert_eq!(kafka_view(None, Some(b""), &[]), map([]));
    let headers: [(&[u8], Option<&[u8]>); 3] = [(b"a", None), (b"x", Some(b"y")), (b"\xff", None)];
    assert_eq!(
        kafka_view(None, Some(b"v"), &headers),
        map([("x", "y"), ("KAFKA_NULL_HEADERS", "a,KAFKA_H_ff")])
    );
}

/// A Kafka header that is called like one of our marks is shown under its hexed name.
#[test]
fn marks_cannot_be_forged() {
    let headers: [(&[u8], Option<&[u8]>); 2] =
        [(b"KAFKA_TOMBSTONE", Some(b"true")), (b"KAFKA_H_41", Some(b"x"))];
    assert_eq!(
        kafka_view(None, Some(b"v"), &headers),
        map([
            ("KAFKA_H_4b41464b415f544f4d4253544f4e45", "true"),
            ("KAFKA_H_4b41464b415f485f3431", "x")
        ])
    );
}

#[test]
fn the_last_of_a_repeated_name_wins_everywhere() {
    let headers: [(&[u8], Option<&[u8]>); 4] =
        [(b"TAGS", Some(b"A")), (b"n", Some(b"1")), (b"TAGS", Some(b"B")), (b"n", None)];
    let view = kafka_view(None, Some(b"v"), &headers);
    assert_eq!(view, map([("TAGS", "B"), ("KAFKA_NULL_HEADERS", "n")]));
    // The same beyond what fits the stack.
    let names: Vec<String> = (0..40).map(|place| format!("n{}", place % 20)).collect();
    let values: Vec<String> = (0..40).map(|place| place.to_string()).collect();
    let headers: Vec<(&[u8], Option<&[u8]>)> = names
        .iter()
        .zip(&values)
        .map(|(name, value)| (name.as_bytes(), Some(value.as_bytes())))
        .collect();
    let view = kafka_view(None, Some(b"v"), &headers);
    assert_eq!(view.len(), 20);
    assert_eq!(view["n3"], "23");
}

/// Case B89: `Aa` and `BB` have one hash; the tag is the property's text, hex or not.
#[test]
fn the_tag_is_the_one_shown() {
    let hash = |headers: &[Header<'_>]| {
        let record = LogRecord { timestamp: 1, key: None, value: None, headers };
        tag_hash(&batch_of_one(&record, 0).record(0).unwrap())
    };
    let tag = |value: &'static [u8]| Header { key: b"TAGS", value: Some(value) };
    assert_eq!(hash(&[tag(b"Aa")]), hash(&[tag(b"BB")]));
    assert_eq!(hash(&[tag(b"Aa"), tag(b"C")]), java_hash("C"));
    assert_eq!(hash(&[tag(b"\xff")]), java_hash("ff"));
    assert_eq!(hash(&[tag(b"a\x01")]), java_hash("6101"));
    assert_eq!(hash(&[]), 0);
    assert_eq!(hash(&[tag(b"A"), Header { key: b"TAGS", value: None }]), 0);
}

/// The batch format's flag comes back too.
#[test]
fn a_batch_message_keeps_its_flag() {
    let message = BatchMessage { flag: 9, body: b"b", properties: "" };
    let mut body = bytes::BytesMut::new();
    message.encode(&mut body).unwrap();
    assert_eq!(BatchMessage::decode(&mut &body[..]), Ok(message));
    let mut out = Vec::new();
    let record = LogRecord { timestamp: 1, key: None, value: None, headers: &[] };
    let batch = batch_of_one(&record, 0);
    properties_into(&batch.record(0).unwrap(), KAFKA, &mut out);
    assert_eq!(out, b"KAFKA_TOMBSTONE\x01true\x02");
}
