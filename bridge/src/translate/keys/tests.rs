use duolog_log_core::record::{Header, NewRecord};
use proptest::prelude::*;

use super::*;
use crate::translate::origin::{ORIGIN_HEADER, Origin};
use crate::translate::testing::batch_of_one;

fn origin_value() -> Vec<u8> {
    let origin = Origin {
        flag: 0,
        sys_flag: 0,
        born_host: "127.0.0.1:1".parse().unwrap(),
        store_timestamp_ms: 1,
        reconsume_times: 0,
        born_timestamp_ms: None,
    };
    origin.encode().as_slice().to_vec()
}

fn hashes(record: &Record<'_>, index: KeyIndex) -> Vec<u32> {
    let mut hashes = Vec::new();
    (index.rule().keys_of)(record, &mut |hash| hashes.push(hash));
    hashes
}

/// Has a record of this key and these headers the key, and does its hash say so?
fn has(key: Option<&[u8]>, headers: &[(&str, &str)], index: KeyIndex, wanted: &str) -> bool {
    let headers: Vec<Header<'_>> = headers
        .iter()
        .map(|(name, value)| Header { key: name.as_bytes(), value: Some(value.as_bytes()) })
        .collect();
    let batch = batch_of_one(&NewRecord { key, headers: &headers, ..NewRecord::default() }, 0);
    let record = batch.record(0).unwrap();
    let has = index.has_key(&record, Door::Both, wanted, &mut Vec::new());
    assert!(
        !has || hashes(&record, index).contains(&key_hash(wanted)),
        "{wanted:?} is not indexed"
    );
    has
}

#[test]
fn words_of_keys_are_keys_and_a_unique_key_is_one() {
    let origin = String::from_utf8_lossy(&origin_value()).into_owned();
    let of_rmq = (ORIGIN_HEADER, origin.as_str());
    for index in [KeyIndex::All, KeyIndex::Rmq] {
        let sent = [("KEYS", "k1 k2  Ü"), ("UNIQ_KEY", "0A 0B"), of_rmq];
        for key in ["k1", "k2", "Ü", "", "0A 0B"] {
            assert!(has(Some(b"k1 k2  \xc3\x9c"), &sent, index, key), "{key}");
        }
        for key in ["K1", "k1 k2", "0A", "0a 0b", "k"] {
            assert!(!has(None, &sent, index, key), "{key}");
        }
        assert!(!has(Some(b"key"), &[of_rmq], index, "key"), "the record's key is Kafka's");
    }
}

#[test]
fn a_switch_leaves_kafkas_keys_out() {
    for (index, expected) in [(KeyIndex::All, true), (KeyIndex::Rmq, false)] {
        assert_eq!(has(Some(b"k1 k2"), &[], index, "k2"), expected);
        assert_eq!(has(Some(b"\xff\x01"), &[], index, "ff01"), expected);
        assert_eq!(has(Some(b"k"), &[("KEYS", "a b")], index, "b"), expected);
    }
    assert!(!has(Some(b"k"), &[("KEYS", "a b")], KeyIndex::All, "k"), "the header is the one seen");
    assert!(!has(None, &[("UNIQ_KEY", "0A")], KeyIndex::All, "0A"), "reserved, and not Kafka's");
    let batch = batch_of_one(&NewRecord { key: Some(b"k"), ..NewRecord::default() }, 0);
    let kept = hashes(&batch.record(0).unwrap(), KeyIndex::Rmq);
    assert!(kept.is_empty(), "nothing is kept for them");
    for name in ["all", "rmq"] {
        assert!(KeyIndex::from_name(name).is_some());
    }
    assert_eq!(KeyIndex::from_name("none"), None);
}

proptest! {
    /// Whatever the view shows as a key is found by the index.
    #[test]
    fn what_is_seen_is_indexed(
        key in prop::option::of(prop::collection::vec(prop::sample::select(&b"ab \xff\x01\xc3\x9c"[..]), 0..6)),
        named in prop::collection::vec(
            (
                prop::sample::select(&["KEYS", "UNIQ_KEY", "__rmq", "TAGS"][..]),
                prop::option::of(prop::collection::vec(prop::sample::select(&b"ab \xff\x02\xc3\x9c"[..]), 0..6)),
            ),
            0..5,
        ),
    ) {
        let origin = origin_value();
        let headers: Vec<Header<'_>> = named
            .iter()
            .map(|(name, value)| Header {
                key: name.as_bytes(),
                value: if *name == "__rmq" { Some(&origin) } else { value.as_deref() },
            })
            .collect();
        let record = NewRecord { key: key.as_deref(), headers: &headers, ..NewRecord::default() };
        let batch = batch_of_one(&record, 0);
        let record = batch.record(0).unwrap();
        for index in [KeyIndex::All, KeyIndex::Rmq] {
            let mut properties = Vec::new();
            let writer = Writer { is_rocketmq: origin_of(&record), door: Door::Both };
            properties_into(&record, writer, &mut properties);
            let text = String::from_utf8(properties).unwrap();
            for (name, value) in Properties(&text).iter() {
                if ![KEYS, UNIQ_KEY].contains(&name) {
                    continue;
                }
                let words: Vec<&str> = value.split(' ').filter(|_| name == KEYS).collect();
                for word in words.into_iter().chain((name == UNIQ_KEY).then_some(value)) {
                    let has = index.has_key(&record, Door::Both, word, &mut Vec::new());
                    prop_assert_eq!(has, index == KeyIndex::All || writer.is_rocketmq);
                    prop_assert!(!has || hashes(&record, index).contains(&key_hash(word)));
                }
            }
        }
    }
}

fn origin_of(record: &Record<'_>) -> bool {
    origin(record.headers).is_some()
}
