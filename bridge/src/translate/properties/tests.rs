use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::golden::{rows, unhex_text};

#[test]
fn the_table_of_names_is_sorted_and_found() {
    assert!(NAMES.is_sorted_by(|left, right| left.0 < right.0));
    assert!(NAMES.len() < SLOTS / 2, "few names share a slot");
    for (name, kind) in NAMES {
        assert_eq!(name_kind(name.as_bytes()), *kind, "{name}");
    }
    for name in ["", "name", "Delay", "DELAYS", "delay", "__x", "ZZ", "__RMQ.", "KAFKA_X"] {
        assert_eq!(name_kind(name.as_bytes()), NameKind::User, "{name}");
    }
    assert_eq!(name_kind(b"__RMQ.TRANSIENT.x"), NameKind::Driving);
    assert_eq!(name_kind(b"KAFKA_H_ff"), NameKind::Mark);
}

/// Case B83 and its relatives, as the original's own parser reads them.
#[test]
fn strings_are_read_as_the_original_does() {
    for row in rows("5.5.0/properties.tsv") {
        let [text, map] = &row[..] else { panic!("{row:?}") };
        let text = unhex_text(text);
        let expected: BTreeMap<String, String> = map
            .split(',')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (unhex_text(name), unhex_text(value)))
            .collect();
        let read: BTreeMap<String, String> = Properties(&text)
            .iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        assert_eq!(read, expected, "{text:?}");
        for (name, value) in &expected {
            assert_eq!(Properties(&text).get(name), Some(value.as_str()), "{text:?}");
        }
    }
}

/// Case B89: the hash is Java's, over UTF-16 and wrapping.
#[test]
fn hashes_are_those_of_java() {
    for row in rows("5.5.0/hashes.tsv") {
        let [text, hash] = &row[..] else { panic!("{row:?}") };
        let text = unhex_text(text);
        assert_eq!(java_hash(&text), hash.parse::<i32>().unwrap(), "{text:?}");
    }
    assert_eq!(java_hash("Aa"), java_hash("BB"));
}

proptest! {
    #[test]
    fn no_string_panics(text in "[a-c\u{1}\u{2}é]{0,40}", name in "[a-c]{0,2}") {
        let read: Vec<_> = Properties(&text).iter().collect();
        let last = read.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| *value);
        prop_assert_eq!(Properties(&text).get(&name), last);
    }
}
