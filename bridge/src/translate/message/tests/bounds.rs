//! What does not fit: long properties, many headers, offsets beyond the addresses.

use super::*;

fn long_headers(count: usize, value_bytes: usize) -> Vec<(String, Vec<u8>)> {
    (0..count).map(|place| (format!("h{place:05}"), vec![b'x'; value_bytes])).collect()
}

pub(super) fn view_of(
    headers: &[(String, Vec<u8>)],
    key: Option<&[u8]>,
) -> (usize, BTreeMap<String, String>) {
    let headers: Vec<_> = headers
        .iter()
        .map(|(name, value)| Header { key: name.as_bytes(), value: Some(value) })
        .collect();
    let record = LogRecord { timestamp: 1, key, value: Some(b"v"), headers: &headers };
    let batch = batch_of_one(&record, 0);
    let bytes = shown(&batch.record(0).unwrap(), Door::Both);
    let message = Message::decode(&mut &bytes[..]).unwrap();
    (message.properties.len(), properties_of(&message))
}

/// Properties of 32,767 bytes are whole; one more byte, and user headers go from the tail.
#[test]
fn properties_are_cut_at_32767_bytes() {
    let exact = [("a".to_owned(), vec![b'x'; PROPERTIES_BYTES_MAX - 3])];
    let (length, view) = view_of(&exact, None);
    assert_eq!((length, view.len()), (PROPERTIES_BYTES_MAX, 1));
    let more = [
        ("first".to_owned(), b"1".to_vec()),
        ("big".to_owned(), vec![b'x'; PROPERTIES_BYTES_MAX]),
        ("last".to_owned(), b"2".to_vec()),
        ("TAGS".to_owned(), b"TagA".to_vec()),
    ];
    let (length, view) = view_of(&more, Some(b"k"));
    assert!(length <= PROPERTIES_BYTES_MAX);
    assert_eq!(
        view,
        map([("KEYS", "k"), ("TAGS", "TagA"), ("first", "1"), ("KAFKA_HEADERS_TRUNCATED", "2")])
    );
    let (length, view) = view_of(&long_headers(1000, 100), None);
    assert!(length <= PROPERTIES_BYTES_MAX && length > PROPERTIES_BYTES_MAX - 300, "{length}");
    let kept = view.len() - 1;
    assert_eq!(view["KAFKA_HEADERS_TRUNCATED"], (1000 - kept).to_string());
    assert!(view.contains_key(&format!("h{:05}", kept - 1)));
    assert!(!view.contains_key(&format!("h{kept:05}")));
}

/// The key alone may be too long; the pull does not fail.
#[test]
fn a_key_beyond_the_limit_is_dropped_and_counted() {
    let (_, view) = view_of(&[], Some(&vec![b'k'; 40_000]));
    assert_eq!(view, map([("KAFKA_HEADERS_TRUNCATED", "1")]));
}

#[test]
fn a_record_beyond_the_addresses_is_refused() {
    let record = LogRecord { timestamp: 1, key: None, value: Some(b"v"), headers: &[] };
    let mut out = SegmentedOut::default();
    for (offset, is_shown) in [((1 << 40) - 1, true), (1 << 40, false)] {
        let batch = batch_of_one(&record, offset);
        let record = batch.record(0).unwrap();
        let before = out.len();
        let shown = encode(&record, &place(Door::Both), None, &mut Scratch::default(), &mut out);
        assert_eq!(shown.is_ok(), is_shown, "offset {offset}");
        assert_eq!(out.len() > before, is_shown);
    }
}

/// A record may have millions of headers in a few hundred compressed bytes; each look at it must not
/// cost as much.
#[test]
fn of_very_many_headers_the_first_are_seen() {
    let names: Vec<String> = (0..HEADERS_SEEN_MAX + 5000).map(|at| format!("h{at}")).collect();
    let mut headers: Vec<_> =
        names.iter().map(|name| Header { key: name.as_bytes(), value: Some(b"v") }).collect();
    headers[7] = Header { key: b"TAGS", value: Some(b"seen") };
    let last = headers.len() - 1;
    headers[last] = Header { key: b"TAGS", value: Some(b"unseen") };
    let record = LogRecord { timestamp: 1, key: None, value: Some(b"v"), headers: &headers };
    let batch = batch_of_one(&record, 0);
    let record = batch.record(0).unwrap();
    assert_eq!(tag_code(&record), Some(java_hash("seen")), "filter and view agree");
    let bytes = shown(&record, Door::Both);
    let view = properties_of(&Message::decode(&mut &bytes[..]).unwrap());
    assert_eq!(view["TAGS"], "seen");
    let shown: usize = view.len() - 1;
    let dropped: usize = view["KAFKA_HEADERS_TRUNCATED"].parse().unwrap();
    assert!(shown > 1000 && dropped >= 5000, "{shown} shown, {dropped} dropped");
}
