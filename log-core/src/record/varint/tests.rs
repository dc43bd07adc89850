use proptest::prelude::*;

use super::*;

fn check(value: i64, bytes: &[u8]) {
    let mut out = Vec::new();
    put_varlong(&mut out, value);
    assert_eq!(out, bytes, "{value}");
    assert_eq!(read_varlong(&out), Some((value, bytes.len())), "{value}");
    assert_eq!(varlong_bytes(value), bytes.len(), "{value}");
    if let Ok(value) = i32::try_from(value) {
        let mut out = Vec::new();
        put_varint(&mut out, value);
        assert_eq!(out, bytes, "{value}");
        assert_eq!(read_varint(&out), Some((value, bytes.len())), "{value}");
        assert_eq!(varint_bytes(value), bytes.len(), "{value}");
    }
}

#[test]
fn known_numbers_have_known_bytes() {
    check(0, &[0x00]);
    check(-1, &[0x01]);
    check(1, &[0x02]);
    check(63, &[0x7E]);
    check(-64, &[0x7F]);
    check(64, &[0x80, 0x01]);
    check(-65, &[0x81, 0x01]);
    check(8191, &[0xFE, 0x7F]);
    check(-8192, &[0xFF, 0x7F]);
    check(8192, &[0x80, 0x80, 0x01]);
    check(i64::from(i32::MAX), &[0xFE, 0xFF, 0xFF, 0xFF, 0x0F]);
    check(i64::from(i32::MIN), &[0xFF, 0xFF, 0xFF, 0xFF, 0x0F]);
    check(i64::MAX, &[0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01]);
    check(i64::MIN, &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01]);
}

#[test]
fn a_number_without_end_is_refused() {
    assert_eq!(read_varint(&[]), None);
    assert_eq!(read_varint(&[0x80]), None);
    assert_eq!(read_varint(&[0x80, 0x80, 0x80, 0x80]), None);
    assert_eq!(read_varint(&[0x80; 5]), None);
    assert_eq!(read_varint(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x00]), None);
    assert_eq!(read_varlong(&[0xFF; 9]), None);
    assert_eq!(read_varlong(&[0xFF; 11]), None);
}

#[test]
fn a_failed_read_leaves_the_cursor() {
    let mut cursor = Cursor::new(&[0x0A, 1, 2]);
    assert_eq!(cursor.take(4), None);
    assert_eq!(cursor.remaining(), 3);
    assert_eq!(cursor.nullable_bytes(), None);
}

proptest! {
    #[test]
    fn every_int_survives(value: i32) {
        let mut out = Vec::new();
        put_varint(&mut out, value);
        prop_assert_eq!(out.len(), varint_bytes(value));
        prop_assert_eq!(read_varint(&out), Some((value, out.len())));
        for end in 0..out.len() {
            prop_assert_eq!(read_varint(&out[..end]), None);
        }
    }

    #[test]
    fn every_long_survives(value: i64) {
        let mut out = Vec::new();
        put_varlong(&mut out, value);
        prop_assert_eq!(out.len(), varlong_bytes(value));
        prop_assert_eq!(read_varlong(&out), Some((value, out.len())));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..16)) {
        if let Some((_, length)) = read_varint(&bytes) {
            prop_assert!(length <= VARINT_BYTES_MAX && length <= bytes.len());
        }
        if let Some((_, length)) = read_varlong(&bytes) {
            prop_assert!(length <= VARLONG_BYTES_MAX && length <= bytes.len());
        }
    }
}
