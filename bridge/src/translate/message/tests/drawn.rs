//! Records drawn by chance, seen as messages.

use proptest::prelude::*;

use super::bounds::view_of;
use super::*;
use crate::translate::properties::NameKind;

type OwnedHeader = (Vec<u8>, Option<Vec<u8>>);

fn header() -> impl Strategy<Value = OwnedHeader> {
    const NAMES: [&[u8]; 12] = [
        b"TAGS",
        b"KEYS",
        b"DELAY",
        b"UNIQ_KEY",
        b"KAFKA_TOMBSTONE",
        b"KAFKA_H_61",
        b"a",
        b"a.enc",
        b"\xff",
        b"\xff.enc",
        b"",
        b"x\x02y",
    ];
    let names = proptest::sample::select(&NAMES[..]);
    let any_name = proptest::collection::vec(any::<u8>(), 0..6);
    let name = prop_oneof![names.prop_map(<[u8]>::to_vec), any_name];
    let text = "[ -~é]{1,8}".prop_map(String::into_bytes);
    let bytes = proptest::collection::vec(any::<u8>(), 1..8);
    (name, proptest::option::of(prop_oneof![text, bytes]))
}

/// Every property shown is a header's, or a mark that the record bears out.
fn assert_borne_out(view: &BTreeMap<String, String>, key: Option<&[u8]>, headers: &[OwnedHeader]) {
    let hex = |bytes: &[u8]| {
        let mut text = Vec::new();
        put_hex(bytes, &mut text);
        String::from_utf8(text).unwrap()
    };
    let last = |name: &[u8]| {
        let found = headers.iter().rev().find(|(known, _)| known == name);
        found.and_then(|(_, value)| value.as_deref())
    };
    for (name, value) in view {
        let holds = |name: &[u8]| {
            let held = last(name);
            held.is_some_and(|held| held == value.as_bytes() || *value == hex(held))
        };
        let hexed = headers.iter().any(|(known, _)| {
            let shown = format!("KAFKA_H_{}", hex(known));
            let is_note = *name == format!("{shown}.enc") && value == "hex";
            (*name == shown && holds(known)) || is_note
        });
        let is_note = name.strip_suffix(".enc").is_some_and(|noted| {
            value == "hex" && last(noted.as_bytes()).is_some_and(|held| !is_text(held))
        });
        let is_borne_out = match name.as_str() {
            "KAFKA_TOMBSTONE" => true,
            "KAFKA_KEY_ENC" => key.is_some_and(|key| !is_text(key)),
            "KAFKA_NULL_HEADERS" => headers.iter().any(|(_, value)| value.is_none()),
            "KEYS" => {
                holds(b"KEYS")
                    || key.is_some_and(|key| key == value.as_bytes() || *value == hex(key))
            }
            _ => hexed || is_note || holds(name.as_bytes()),
        };
        assert!(is_borne_out, "{name}={value} of {headers:?}");
        let kind = name_kind(name.as_bytes());
        assert!(!matches!(kind, NameKind::Reserved | NameKind::Driving), "{name}");
    }
}

proptest! {
    #[test]
    fn the_view_never_yields_what_the_record_does_not_hold(
        key in proptest::option::of(proptest::collection::vec(any::<u8>(), 1..6)),
        headers in proptest::collection::vec(header(), 0..45),
    ) {
        let borrowed: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.as_slice(), value.as_deref()))
            .collect();
        let view = kafka_view(key.as_deref(), None, &borrowed);
        assert_borne_out(&view, key.as_deref(), &headers);
    }

    #[test]
    fn what_rocketmq_sends_rocketmq_gets(
        properties in proptest::collection::btree_map("[a-zé]{1,6}", "[ -~é]{1,9}", 0..40),
        body in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        let text: String = properties
            .iter()
            .map(|(name, value)| format!("{name}\u{1}{value}\u{2}"))
            .collect();
        let batch = batch_of_encoded(&[sent(&text, &body, 0)]);
        let bytes = shown(&batch.record(0).unwrap(), Door::Both);
        let message = Message::decode(&mut &bytes[..]).unwrap();
        prop_assert_eq!(properties_of(&message), properties);
        prop_assert_eq!(message.body, &body[..]);
    }

    /// Pitfall 14.
    #[test]
    fn long_properties_never_fail(
        headers in proptest::collection::vec((1..40_usize, 0..9000_usize), 0..40),
        key_bytes in 0..40_000_usize,
    ) {
        let headers: Vec<_> = headers
            .iter()
            .enumerate()
            .map(|(place, (name, value))| {
                (format!("{place}{}", "n".repeat(*name)), vec![b'v'; *value])
            })
            .collect();
        let (length, _) = view_of(&headers, Some(&vec![0xff; key_bytes]));
        prop_assert!(length <= PROPERTIES_BYTES_MAX);
    }
}
