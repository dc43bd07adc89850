use proptest::prelude::*;

use super::*;

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

fn bytes(number: u64, value: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

fn fixed(number: u64, bits: u64) -> Vec<u8> {
    [varint(number << 3 | 1), bits.to_le_bytes().to_vec()].concat()
}

fn attribute(field: u64, name: &str, value: &str) -> Vec<u8> {
    let value = bytes(1, value.as_bytes());
    bytes(field, &[bytes(1, name.as_bytes()), bytes(2, &value)].concat())
}

/// A message of one metric, whose points are in field `shape` of it.
fn message(resource: &[u8], name: &str, shape: u64, data: &[u8]) -> Vec<u8> {
    // The name comes last, as it may.
    let metric = [bytes(shape, data), bytes(1, name.as_bytes())].concat();
    let scope = bytes(2, &metric);
    bytes(1, &[bytes(1, resource), bytes(2, &scope)].concat())
}

/// One gauge of a client.
pub(crate) fn gauge(name: &str, value: f64) -> Vec<u8> {
    message(&[], name, 5, &bytes(1, &fixed(4, value.to_bits())))
}

fn label(name: &str, value: &str) -> Label {
    (name.to_owned(), value.to_owned())
}

#[test]
fn numbers_of_each_kind_are_read_with_all_their_labels() {
    let resource = attribute(1, "client.rack", "r1");
    let point = |field: u64| [attribute(field, "topic", "t"), fixed(4, 1.5_f64.to_bits())].concat();
    let labels = vec![label("client.rack", "r1"), label("topic", "t")];
    let sample = |kind| Sample { name: "m.n".into(), kind, labels: labels.clone(), value: 1.5 };
    let rows = [
        (5, vec![], Kind::Gauge),
        (7, vec![2 << 3, 1, 3 << 3, 1], Kind::Delta),
        (7, vec![2 << 3, 2, 3 << 3, 1], Kind::Total),
        (7, vec![2 << 3, 2], Kind::Gauge),
    ];
    for (shape, rest, kind) in rows {
        let data = [bytes(1, &point(7)), rest].concat();
        let read = read(&message(&resource, "m.n", shape, &data), 10).expect("metrics");
        assert_eq!(read, (vec![sample(kind)], 0), "{shape}");
    }
    let whole = fixed(6, (-3_i64).cast_unsigned());
    let read_one = read(&message(&[], "i", 5, &bytes(1, &whole)), 10).expect("metrics");
    assert_eq!(read_one.0[0].value, -3.0);
    let histogram = [fixed(4, 7), fixed(5, 2.5_f64.to_bits()), attribute(9, "a", "b")].concat();
    let data = [bytes(1, &histogram), vec![2 << 3, 2]].concat();
    let (samples, _) = read(&message(&[], "h", 9, &data), 10).expect("metrics");
    let shown: Vec<_> =
        samples.iter().map(|it| (&*it.name, it.kind, it.value, it.labels.len())).collect();
    assert_eq!(shown, [("h.count", Kind::Total, 7.0, 1), ("h.sum", Kind::Total, 2.5, 1)]);
}

#[test]
fn more_than_was_asked_for_is_counted_and_no_more() {
    let points: Vec<u8> = (0..5).flat_map(|_| bytes(1, &fixed(4, 0))).collect();
    let (samples, left_out) = read(&message(&[], "m", 5, &points), 2).expect("metrics");
    assert_eq!((samples.len(), left_out), (2, 3));
    let many: Vec<u8> = (0..40).flat_map(|_| attribute(7, "a", "b")).collect();
    let point = [many, fixed(4, 0)].concat();
    let (samples, _) = read(&message(&[], "m", 5, &bytes(1, &point)), 2).expect("metrics");
    assert_eq!(samples[0].labels.len(), LABELS_MAX);
}

#[test]
fn what_is_cut_or_no_text_is_refused() {
    let good = gauge("m", 1.0);
    for end in 1..good.len() {
        assert!(read(&good[..end], 10).is_err(), "cut at {end}");
    }
    assert!(read(&message(&[], "m", 5, &[0x0F]), 10).is_err(), "no such kind of field");
    let nameless = bytes(1, &bytes(2, &bytes(2, &bytes(5, &[]))));
    assert_eq!(read(&nameless, 10), Err(OtlpError("a metric without a name")));
    let bad = bytes(1, &bytes(2, &bytes(2, &bytes(1, &[0xFF]))));
    assert_eq!(read(&bad, 10), Err(OtlpError("a text that is not UTF-8")));
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in any::<Vec<u8>>(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let _ = read(&bytes, 10);
        let mut spoilt = gauge("some.name", 1.0);
        let at = at.index(spoilt.len());
        spoilt[at] = byte;
        let _ = read(&spoilt, 10);
    }
}
