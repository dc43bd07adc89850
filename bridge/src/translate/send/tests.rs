use std::io::Write as _;

use bytes::BytesMut;
use duolog_log_core::record::Headers;
use proptest::prelude::*;

use super::*;
use crate::golden::{rows, unhex};
use crate::translate::message::origin;
use crate::translate::testing::batch_of_encoded;

const LIMIT: usize = 4 * 1024 * 1024;

fn context() -> SendContext<'static> {
    SendContext {
        key_source: KeySource::Keys,
        tombstones: Tombstones::Refused,
        body_bytes_max: LIMIT,
        born_host: "10.1.2.3:54321".parse().unwrap(),
        store_timestamp_ms: 1_700_000_000_456,
        timestamps: TimestampBounds::default(),
        delaying: Delaying::Refused,
    }
}

fn header(properties: &str) -> SendHeader<'_> {
    SendHeader {
        producer_group: "g",
        is_dead_letter: false,
        topic: "orders",
        default_topic: "TBW102",
        default_topic_queue_nums: 4,
        queue_id: 0,
        sys_flag: 0,
        born_timestamp_ms: 1_700_000_000_123,
        flag: 7,
        properties,
        reconsume_times: 2,
        unit_mode: false,
        max_reconsume_times: None,
        batch: false,
        broker_name: None,
    }
}

/// What a Kafka reader sees of one record.
#[derive(Debug, PartialEq)]
struct Seen {
    timestamp: i64,
    key: Option<String>,
    value: Option<Vec<u8>>,
    /// Without `__rmq`.
    headers: Vec<(String, String)>,
    origin: Option<Origin>,
}

fn seen(records: &[NewRecord]) -> Vec<Seen> {
    let batch = batch_of_encoded(records);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let headers = |headers: Headers<'_>| {
        headers
            .iter()
            .filter(|header| header.key != ORIGIN_HEADER.as_bytes())
            .map(|header| (text(header.key), text(header.value.unwrap())))
            .collect()
    };
    batch
        .iter()
        .map(|record| Seen {
            timestamp: record.timestamp,
            key: record.key.map(text),
            value: record.value.map(<[u8]>::to_vec),
            headers: headers(record.headers),
            origin: origin(record.headers),
        })
        .collect()
}

fn origin_of(flag: i32, sys_flag: i32) -> Origin {
    Origin {
        flag,
        sys_flag,
        born_host: context().born_host,
        store_timestamp_ms: context().store_timestamp_ms,
        born_timestamp_ms: None,
        reconsume_times: 2,
    }
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

const SENT: &str = "KEYS\u{1}k1 k2\u{2}name\u{1}größe\u{2}__SHARDINGKEY\u{1}s\u{2}TAGS\u{1}TagA";

/// Case B83: with and without the last separator.
#[test]
fn a_send_becomes_a_record_of_the_same_properties() {
    for properties in [SENT.to_owned(), format!("{SENT}\u{2}")] {
        let record = single(&header(&properties), b"hello", &context()).unwrap();
        let expected = Seen {
            timestamp: 1_700_000_000_123,
            key: Some("k1 k2".to_owned()),
            value: Some(b"hello".to_vec()),
            headers: pairs(&[
                ("KEYS", "k1 k2"),
                ("name", "größe"),
                ("__SHARDINGKEY", "s"),
                ("TAGS", "TagA"),
            ]),
            origin: Some(origin_of(7, 0)),
        };
        assert_eq!(seen(&[record]), [expected]);
    }
}

#[test]
fn the_topic_says_what_the_key_is() {
    for (key_source, key) in [
        (KeySource::Keys, Some("k1 k2")),
        (KeySource::ShardingKey, Some("s")),
        (KeySource::Nothing, None),
    ] {
        let context = SendContext { key_source, ..context() };
        let record = single(&header(SENT), b"hello", &context).unwrap();
        assert_eq!(seen(&[record])[0].key.as_deref(), key);
    }
    let record = single(&header(""), b"hello", &context()).unwrap();
    assert_eq!(seen(&[record])[0].key, None);
}

/// Case B127: only the mark on a compacted topic makes a null value; an empty body stays one.
#[test]
fn tombstones_are_for_compacted_topics() {
    let marked = "KEYS\u{1}k\u{2}KAFKA_TOMBSTONE\u{1}true\u{2}";
    let refused = single(&header(marked), b"-", &context());
    assert_eq!(refused.unwrap_err(), SendError::Tombstone);
    let context = SendContext { tombstones: Tombstones::Allowed, ..context() };
    let record = single(&header(marked), b"-", &context).unwrap();
    let record = &seen(&[record])[0];
    assert_eq!((record.key.as_deref(), &record.value), (Some("k"), &None));
    assert_eq!(record.headers, pairs(&[("KEYS", "k")]));
    let refused = single(&header(marked), b"body", &context);
    assert_eq!(refused.unwrap_err(), SendError::Tombstone);
    let record = single(&header("KEYS\u{1}k\u{2}"), b"", &context).unwrap();
    assert_eq!(seen(&[record])[0].value, Some(Vec::new()));
    let refused = single(&header("a\u{1}b\u{2}"), b"body", &context);
    assert_eq!(refused.unwrap_err(), SendError::WithoutKey);
}

/// The property could not be told from the bridge's own header, so it does not become one.
#[test]
fn a_property_named_like_the_origin_header_is_not_stored() {
    let record = single(&header("__rmq\u{1}x\u{2}a\u{1}b"), b"", &context()).unwrap();
    let record = &seen(&[record])[0];
    assert_eq!(record.headers, pairs(&[("a", "b")]));
    assert_eq!(record.origin, Some(origin_of(7, 0)));
}

/// Bodies as the original's three compressors make them.
#[test]
fn compressed_bodies_are_stored_plain() {
    let plain = b"0123456789abcdef".repeat(64);
    let mut zlib_of_old_clients = None;
    for row in rows("5.5.0/compressed.tsv") {
        let [name, _, sys_flag, body] = &row[..] else { panic!("{row:?}") };
        let (sys_flag, body) = (sys_flag.parse().unwrap(), unhex(body));
        let header = SendHeader { sys_flag, ..header("") };
        let record = single(&header, &body, &context()).unwrap();
        let record = &seen(&[record])[0];
        assert_eq!(record.value.as_ref(), Some(&plain), "{name}");
        assert_eq!(record.origin, Some(origin_of(7, sys_flag)), "{name}");
        let exact = SendContext { body_bytes_max: plain.len(), ..context() };
        assert!(single(&header, &body, &exact).is_ok(), "{name}");
        let tight = SendContext { body_bytes_max: plain.len() - 1, ..context() };
        let refused = single(&header, &body, &tight).unwrap_err();
        assert_eq!(refused, SendError::Size { body_bytes_max: plain.len() - 1 }, "{name}");
        let cut = single(&header, &body[..body.len() / 2], &context()).unwrap_err();
        assert!(matches!(cut, SendError::Compression { .. }), "{name}: {cut}");
        if name == "ZLIB" {
            zlib_of_old_clients = Some(body);
        }
    }
    let header = SendHeader { sys_flag: 1, ..header("") };
    let record = single(&header, &zlib_of_old_clients.unwrap(), &context()).unwrap();
    assert_eq!(seen(&[record])[0].value.as_ref(), Some(&plain));
    let unknown = SendHeader { sys_flag: 1 | 4 << 8, ..header };
    let refused = single(&unknown, b"x", &context()).unwrap_err();
    assert_eq!(refused, SendError::CompressionType(4));
}

/// A few kilobytes that unpack to a gigabyte cost no more than the limit.
#[test]
fn a_bomb_is_refused_within_the_limit() {
    let zeroes = vec![0; 1024 * 1024];
    let level = flate2::Compression::best();
    let mut bomb = flate2::write::ZlibEncoder::new(Vec::new(), level);
    for _ in 0..64 {
        bomb.write_all(&zeroes).unwrap();
    }
    let bomb = bomb.finish().unwrap();
    assert!(bomb.len() < 100_000);
    let header = SendHeader { sys_flag: 1, ..header("") };
    let refused = single(&header, &bomb, &context()).unwrap_err();
    assert_eq!(refused, SendError::Size { body_bytes_max: LIMIT });
}

#[test]
fn what_is_not_built_is_refused() {
    for sys_flag in [4, 8, 0xC, 5] {
        let refused = single(&SendHeader { sys_flag, ..header("") }, b"x", &context());
        assert!(matches!(refused, Err(SendError::NotBuilt(_))), "sysFlag {sys_flag}");
    }
    for (name, value) in [
        ("DELAY", "3"),
        ("DELAY", "x"),
        ("TIMER_DELAY_SEC", "5"),
        ("TIMER_DELIVER_MS", "1"),
        ("TIMER_DELAY_MS", "1"),
        ("TRAN_MSG", "true"),
        ("__LITE_TOPIC", "l"),
    ] {
        let properties = format!("a\u{1}b\u{2}{name}\u{1}{value}\u{2}");
        let refused = single(&header(&properties), b"x", &context());
        let Err(SendError::NotBuilt(text)) = refused else { panic!("{name}: {refused:?}") };
        assert!(text.contains(name), "{text}");
        let refused = batch(&header(""), &batch_body(&[(&properties, b"x")]), &context());
        assert!(matches!(refused, Err(SendError::NotBuilt(_))), "{name} in a batch");
    }
    assert!(single(&header("DELAY\u{1}0\u{2}"), b"x", &context()).is_ok());
}

#[test]
fn sizes_are_refused_in_the_words_of_the_original() {
    let long = format!("a\u{1}{}\u{2}", "x".repeat(PROPERTIES_BYTES_MAX - 2));
    let refused = single(&header(&long), b"", &context()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the message is illegal, maybe msg body or properties length not matched. msg body length \
         limit 4194304B, msg properties length limit 32KB."
    );
    let just = format!("a\u{1}{}\u{2}", "x".repeat(PROPERTIES_BYTES_MAX - 3));
    assert!(single(&header(&just), b"", &context()).is_ok());
    let small = SendContext { body_bytes_max: 3, ..context() };
    assert!(single(&header(""), b"123", &small).is_ok());
    let refused = single(&header(""), b"1234", &small).unwrap_err();
    assert_eq!(refused, SendError::Size { body_bytes_max: 3 });
}

fn batch_body(messages: &[(&str, &[u8])]) -> Vec<u8> {
    let mut body = BytesMut::new();
    for (flag, (properties, message_body)) in (0..).zip(messages) {
        BatchMessage { flag, body: message_body, properties }.encode(&mut body).unwrap();
    }
    body.to_vec()
}

#[test]
fn a_batch_becomes_records_in_order() {
    let body = batch_body(&[
        ("TAGS\u{1}TagA\u{2}", b"first"),
        ("KEYS\u{1}k\u{2}TAGS\u{1}TagA", b"second"),
        ("", b"third"),
    ]);
    let records = batch(&header("WAIT\u{1}true\u{2}"), &body, &context()).unwrap();
    let records = seen(&records);
    let values: Vec<_> = records.iter().map(|record| record.value.clone().unwrap()).collect();
    assert_eq!(values, [b"first".as_slice(), b"second", b"third"]);
    assert_eq!(records[0].headers, pairs(&[("TAGS", "TagA")]));
    assert_eq!(records[1].headers, pairs(&[("KEYS", "k"), ("TAGS", "TagA")]));
    assert_eq!(records[1].key.as_deref(), Some("k"));
    let flags: Vec<_> = records.iter().map(|record| record.origin.unwrap().flag).collect();
    assert_eq!(flags, [0, 1, 2]);
}

/// Case B87: all or none.
#[test]
fn a_batch_with_one_bad_message_stores_none() {
    let whole = batch_body(&[("", b"first"), ("", b"second")]);
    let cut = &whole[..whole.len() - 1];
    let refused = batch(&header(""), cut, &context()).unwrap_err();
    assert!(matches!(refused, SendError::Batch { index: 1, .. }), "{refused}");
    assert_eq!(batch(&header(""), b"", &context()).unwrap_err(), SendError::BatchEmpty);
    let empty = batch_body(&[("", b"first"), ("", b"")]);
    let refused = batch(&header(""), &empty, &context()).unwrap_err();
    assert_eq!(refused.to_string(), "message 1 of the batch: its body is empty");
    let compressed = SendHeader { sys_flag: 1, ..header("") };
    let refused = batch(&compressed, &whole, &context()).unwrap_err();
    assert_eq!(refused, SendError::BatchCompressed(1));
    let trailing = [&whole[..], b"x"].concat();
    assert!(batch(&header(""), &trailing, &context()).is_err());
}

proptest! {
    #[test]
    fn no_body_panics(
        body in proptest::collection::vec(any::<u8>(), 0..200),
        flags in any::<i32>(),
        properties in "[a-zA-Z_\u{1}\u{2}é]{0,60}",
    ) {
        let header = SendHeader { sys_flag: flags & !0xC, ..header(&properties) };
        let _any = single(&header, &body, &context());
        let _any = batch(&header, &body, &context());
    }
}

/// A clock that is wrong must not make retention and searches by time wrong; RocketMQ's readers see
/// what was sent all the same.
#[test]
fn an_unlikely_born_timestamp_is_kept_beside_the_record() {
    let stored = context().store_timestamp_ms;
    let narrow = TimestampBounds { before_max_ms: 1000, after_max_ms: 10 };
    let wide = TimestampBounds::default();
    for (bounds, born, is_admitted) in [
        (wide, stored, true),
        (wide, 0, true),
        (wide, 1, true),
        (wide, -1, false),
        (wide, i64::MIN, false),
        (wide, stored + 3_600_000, true),
        (wide, stored + 3_600_001, false),
        (wide, i64::MAX, false),
        (narrow, stored - 1000, true),
        (narrow, stored - 1001, false),
        (narrow, stored + 10, true),
        (narrow, stored + 11, false),
    ] {
        let context = SendContext { timestamps: bounds, ..context() };
        let header = SendHeader { born_timestamp_ms: born, ..header(SENT) };
        let record = single(&header, b"hello", &context).unwrap();
        assert_eq!(record.timestamp_ms, if is_admitted { born } else { stored }, "{born}");
        let kept = seen(&[record])[0].origin.unwrap().born_timestamp_ms;
        assert_eq!(kept, (!is_admitted).then_some(born), "{born}");
    }
}
