use super::*;

fn frame(bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

/// Reads all of `bytes` with `read`.
fn check<T: PartialEq + std::fmt::Debug>(
    bytes: &[u8],
    read: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
    wanted: Result<T, DecodeError>,
) {
    let frame = frame(bytes);
    let mut reader = Reader::new(&frame);
    let found = read(&mut reader).and_then(|value| reader.finish().map(|()| value));
    assert_eq!(found, wanted, "{bytes:02x?}");
}

#[test]
fn varints_end_after_five_bytes_and_32_bits() {
    let varint = |reader: &mut Reader<'_>| reader.unsigned_varint();
    check(&[0], varint, Ok(0));
    check(&[0x7F], varint, Ok(127));
    check(&[0x80, 1], varint, Ok(128));
    check(&[0xFF, 0xFF, 0xFF, 0xFF, 0x0F], varint, Ok(u32::MAX));
    check(&[0xFF, 0xFF, 0xFF, 0xFF, 0x1F], varint, Err(DecodeError::Varint));
    check(&[0xFF, 0xFF, 0xFF, 0xFF, 0x8F, 0], varint, Err(DecodeError::Varint));
    check(&[0x80], varint, Err(DecodeError::Short { wanted: 1, left: 0 }));
}

#[test]
fn only_minus_one_is_null() {
    let nullable = |reader: &mut Reader<'_>| reader.nullable_string(false);
    check(&[0xFF, 0xFF], nullable, Ok(None));
    check(&[0, 0], nullable, Ok(Some("".into())));
    check(&[0xFF, 0xFE], nullable, Err(DecodeError::Length { found: -2 }));
    check(&[0x80, 0], nullable, Err(DecodeError::Length { found: -32768 }));
    check(&[0xFF, 0xFF], |reader| reader.string(false), Err(DecodeError::Null));
    check(&[0], |reader| reader.string(true), Err(DecodeError::Null));
    check(&[0], |reader| reader.nullable_string(true), Ok(None));
    check(&[1], |reader| reader.nullable_string(true), Ok(Some("".into())));
    let bytes = |reader: &mut Reader<'_>| reader.nullable_bytes(false);
    check(&[0xFF, 0xFF, 0xFF, 0xFF], bytes, Ok(None));
    check(&[0xFF, 0xFF, 0xFF, 0xFE], bytes, Err(DecodeError::Length { found: -2 }));
}

#[test]
fn array_counts_are_checked_before_anything_is_reserved() {
    // Case B01: the count alone, and counts that are no counts.
    let array = |reader: &mut Reader<'_>| reader.nullable_array(false, 1, |reader| reader.i8());
    let claimed = i32::MAX as usize;
    check(&[0x7F, 0xFF, 0xFF, 0xFF], array, Err(DecodeError::Short { wanted: claimed, left: 0 }));
    check(&[0x80, 0, 0, 0], array, Err(DecodeError::Length { found: i64::from(i32::MIN) }));
    check(&[0xFF, 0xFF, 0xFF, 0xFE], array, Err(DecodeError::Length { found: -2 }));
    check(&[0xFF, 0xFF, 0xFF, 0xFF], array, Ok(None));
    check(&[0, 0, 0, 2, 7, 8], array, Ok(Some(vec![7, 8])));
    let compact = |reader: &mut Reader<'_>| reader.nullable_array(true, 4, |reader| reader.i32());
    check(&[0], compact, Ok(None));
    check(&[2, 0, 0, 0, 9], compact, Ok(Some(vec![9])));
    check(&[3, 0, 0, 0, 9], compact, Err(DecodeError::Short { wanted: 8, left: 4 }));
    check(
        &[0xFF, 0xFF, 0xFF, 0xFF, 0x0F],
        compact,
        Err(DecodeError::Length { found: i64::from(u32::MAX) - 1 }),
    );
}

#[test]
fn a_frame_holds_a_bounded_number_of_elements() {
    let count = ELEMENTS_MAX as i32;
    let mut bytes = count.to_be_bytes().to_vec();
    bytes.resize(4 + ELEMENTS_MAX, 1);
    bytes.extend_from_slice(&1_i32.to_be_bytes());
    bytes.push(1);
    let frame = frame(&bytes);
    let mut reader = Reader::new(&frame);
    let first = reader.array(false, 1, |reader| reader.i8()).expect("as many as allowed");
    assert_eq!(first.len(), ELEMENTS_MAX);
    let second = reader.array(false, 1, |reader| reader.i8());
    assert_eq!(second, Err(DecodeError::TooManyElements));
}

#[test]
fn no_more_is_reserved_than_was_received() {
    assert_eq!(capacity_for::<[u8; 100]>(1_000_000, 1_000_000), 10_000);
    assert_eq!(capacity_for::<[u8; 100]>(1_000_000, 1), 4);
    assert_eq!(capacity_for::<[u8; 100]>(2, 1_000), 2);
    assert_eq!(capacity_for::<u8>(1_000, 1_000), 1_000);
}

#[test]
fn strings_have_the_same_bound_in_both_forms() {
    let mut bytes = vec![0x81, 0x80, 2]; // 32768 + 1
    bytes.resize(3 + 32768, b'a');
    let string = |reader: &mut Reader<'_>| reader.string(true);
    check(&bytes, string, Err(DecodeError::StringTooLong { found: 32768 }));
    check(&[0, 2, 0xC3, 0x28], |reader| reader.string(false), Ok("\u{FFFD}(".into()));
}

#[test]
fn unknown_tagged_fields_are_skipped_and_known_ones_fill_their_size() {
    let tags = |reader: &mut Reader<'_>| {
        let mut found = None;
        reader.tagged_fields(|tag, reader| {
            if tag == 1 {
                found = Some(reader.i16()?);
            }
            Ok(tag == 1)
        })?;
        Ok(found)
    };
    check(&[0], tags, Ok(None));
    check(&[2, 0, 3, 9, 9, 9, 1, 2, 0, 5], tags, Ok(Some(5)));
    check(&[1, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 0], tags, Ok(None));
    check(&[1, 1, 3, 0, 5, 0], tags, Err(DecodeError::Trailing { left: 1 }));
    check(&[1, 1, 1, 0], tags, Err(DecodeError::Short { wanted: 2, left: 1 }));
    check(&[1, 0, 9, 0], tags, Err(DecodeError::Short { wanted: 9, left: 1 }));
    check(&[9, 0, 0], tags, Err(DecodeError::Short { wanted: 18, left: 2 }));
}

#[test]
fn byte_fields_are_slices_of_the_frame() {
    let frame = frame(&[0, 0, 0, 3, 1, 2, 3]);
    let found = Reader::new(&frame).bytes(false).expect("bytes");
    assert_eq!(found.as_ptr(), frame.slice(4..).as_ptr());
}
