use super::*;

fn bytes(size: usize) -> Bytes {
    vec![7; size].into()
}

#[test]
fn record_bytes_are_taken_along_and_not_copied() {
    let (first, second) = (bytes(1000), bytes(2000));
    let mut out = SegmentedBuf::new();
    out.i16(1);
    out.records(&Records::from(vec![first.clone(), second.clone()]), false);
    out.i16(2);
    out.bytes(&first, true);
    let total = out.len();
    let frame = out.finish().expect("a frame");
    assert_eq!(frame.len(), total);
    let segments = frame.segments();
    let sizes: Vec<_> = segments.iter().map(Bytes::len).collect();
    assert_eq!(sizes, [10, 1000, 2000, 4, 1000]);
    assert_eq!(segments[0][..], [0, 0, 0x0F, 0xAA, 0, 1, 0, 0, 0x0B, 0xB8]);
    for (segment, piece) in [(1, &first), (2, &second), (4, &first)] {
        assert_eq!(segments[segment].as_ptr(), piece.as_ptr());
    }
}

#[test]
fn small_pieces_join_what_stands_around_them() {
    let mut out = SegmentedBuf::new();
    out.bytes(&bytes(COPY_BYTES_MAX), false);
    out.records(&Records::EMPTY, false);
    let frame = out.finish().expect("a frame");
    assert_eq!(frame.segments().len(), 1);
    assert_eq!(frame.len(), 4 + 4 + COPY_BYTES_MAX + 4);
}

#[test]
fn tagged_fields_carry_their_size_in_front() {
    for size in [0, 5, 127, 128, 300, 20_000] {
        let mut out = SegmentedBuf::new();
        out.tagged_field(3, |out| {
            out.tagged_field(1, |out| out.bytes(&bytes(size), true));
            out.i16(-1);
        });
        out.i8(4);
        let frame = out.finish().expect("a frame").to_bytes();
        let frame = frame.slice(4..);
        let mut reader = super::super::Reader::new(&frame);
        assert_eq!(reader.unsigned_varint(), Ok(3));
        let outer = reader.unsigned_varint().expect("a size") as usize;
        assert_eq!(reader.left(), outer + 1);
        assert_eq!(reader.unsigned_varint(), Ok(1));
        let within = reader.unsigned_varint().expect("a size") as usize;
        assert_eq!(reader.left(), within + 3);
        assert_eq!(reader.bytes(true), Ok(bytes(size)));
        assert_eq!((reader.i16(), reader.i8()), (Ok(-1), Ok(4)));
    }
}

#[test]
fn the_first_fault_comes_out_at_the_end() {
    let mut out = SegmentedBuf::new();
    out.string(&"x".repeat(40_000), true);
    out.null_in("Fetch.topics");
    assert_eq!(out.finish().map(|_| ()), Err(EncodeError::StringTooLong { found: 40_000 }));
    let mut out = SegmentedBuf::new();
    out.null_in("Fetch.topics");
    assert_eq!(out.finish().map(|_| ()), Err(EncodeError::Null { field: "Fetch.topics" }));
}

#[test]
fn records_are_equal_by_their_bytes() {
    let cut = Records::from(vec![bytes(2), bytes(1)]);
    assert_eq!(cut, Records::from(bytes(3)));
    assert_ne!(cut, Records::from(bytes(2)));
    assert_eq!(cut.to_bytes(), bytes(3));
}
