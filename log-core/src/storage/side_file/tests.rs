use proptest::prelude::*;

use super::*;

const KIND: SideKind = SideKind { magic: *b"DLXX", entry_bytes: 3 };

fn content() -> SideContent {
    SideContent { covered_from: 5, covered_to: 9, entries: Bytes::from_static(b"abcdef") }
}

#[test]
fn a_file_is_read_as_written_also_with_bytes_behind_it() {
    let mut file = encode(KIND, &content());
    assert_eq!(file.len(), HEADER_BYTES + 6);
    assert_eq!(decode(KIND, &Bytes::from(file.clone())), Some(content()));
    file.extend_from_slice(b"not yet counted");
    assert_eq!(decode(KIND, &Bytes::from(file)), Some(content()));
}

#[test]
fn another_kind_a_flipped_bit_or_a_cut_is_noticed() {
    let file = encode(KIND, &content());
    for at in 0..file.len() {
        let mut spoilt = file.clone();
        spoilt[at] ^= 1;
        assert_eq!(decode(KIND, &Bytes::from(spoilt)), None, "{at}");
        assert_eq!(decode(KIND, &Bytes::copy_from_slice(&file[..at])), None, "{at}");
    }
    let other = SideKind { magic: *b"DLYY", ..KIND };
    assert_eq!(decode(other, &Bytes::from(file)), None);
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(
        fields in prop::collection::vec(any::<u8>(), 32),
        rest in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let crc = crc32c::crc32c(&fields).to_be_bytes();
        let file = [&fields[..], &crc, &rest].concat();
        _ = decode(KIND, &Bytes::from(file));
        _ = decode(KIND, &Bytes::from(rest));
    }
}
