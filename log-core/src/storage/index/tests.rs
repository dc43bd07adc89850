use proptest::prelude::*;

use super::*;

fn offset_entry(relative_offset: u32, position: u32) -> OffsetEntry {
    OffsetEntry { relative_offset, position }
}

fn time_entry(timestamp: i64, relative_offset: u32) -> TimeEntry {
    TimeEntry { timestamp, relative_offset }
}

#[test]
fn entries_equal_kafkas() {
    // The first entries of golden-0/00000000000000004991 of Kafka 4.3.1: base offset 4991.
    let offsets = encode_all([offset_entry(155, 16_377), offset_entry(233, 32_754)]);
    assert_eq!(offsets, [0, 0, 0, 155, 0, 0, 0x3F, 0xF9, 0, 0, 0, 233, 0, 0, 0x7F, 0xF2]);
    let times = encode_all([time_entry(1_795_971_193_799, 77)]);
    assert_eq!(times, [0, 0, 1, 0xA2, 0x28, 0x39, 0x9B, 0xC7, 0, 0, 0, 77]);
    let txn = AbortedTxn { producer_id: 1, first_offset: 2, last_offset: 3, last_stable_offset: 4 };
    let bytes = encode_all([txn]);
    assert_eq!(bytes.len(), 34);
    assert_eq!(decode_all::<AbortedTxn>(&bytes).unwrap(), [txn]);
}

#[test]
fn spoilt_files_are_told_from_sound_ones() {
    // Case B75: padding with zeros, a cut, 0xFF, and what a torn write leaves.
    let offsets = encode_all([offset_entry(5, 100), offset_entry(9, 200)]);
    let times = encode_all([time_entry(1000, 5), time_entry(1001, 5), time_entry(1002, 9)]);
    assert!(is_sound::<OffsetEntry>(&offsets) && is_sound::<TimeEntry>(&times));
    assert!(is_sound::<OffsetEntry>(&[]) && is_sound::<TimeEntry>(&[]));
    for padding in [12, 8, 24, 1, 4096] {
        let padded = |file: &[u8]| [file, &vec![0; padding]].concat();
        assert!(!is_sound::<OffsetEntry>(&padded(&offsets)), "{padding}");
        assert!(!is_sound::<TimeEntry>(&padded(&times)), "{padding}");
    }
    assert!(!is_sound::<OffsetEntry>(&offsets[..15]));
    assert!(!is_sound::<TimeEntry>(&times[..13]));
    for spoilt in [vec![0xFF; 24], vec![0; 24], vec![0; 8]] {
        assert!(!is_sound::<OffsetEntry>(&spoilt));
        assert!(!is_sound::<TimeEntry>(&spoilt));
        assert_eq!(decode_all::<TimeEntry>(&spoilt), None);
    }
    assert!(!is_sound::<AbortedTxn>(&[0; 34]) && !is_sound::<AbortedTxn>(&[0xFF; 34]));
}

#[test]
fn a_search_finds_the_last_entry_of_the_prefix() {
    let entries = [10, 20, 30].map(|offset| offset_entry(offset, offset * 10));
    let list = GrowingList::from_entries(entries);
    let sealed = Bytes::from(encode_all(entries));
    for searched in [Entries::Growing(&list), Entries::Sealed(sealed)] {
        for (target, expected) in
            [(9, None), (10, Some(10)), (19, Some(10)), (20, Some(20)), (99, Some(30))]
        {
            let found = searched.last_where(|entry| entry.relative_offset <= target);
            assert_eq!(found.map(|entry| entry.relative_offset), expected);
        }
        assert_eq!(searched.last(), Some(entries[2]));
        assert_eq!(searched.get(3), None);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic_and_sound_ones_round_trip(
        bytes in prop::collection::vec(any::<u8>(), 0..200)
    ) {
        let offsets = decode_all::<OffsetEntry>(&bytes).map(encode_all);
        let times = decode_all::<TimeEntry>(&bytes).map(encode_all);
        for again in offsets.into_iter().chain(times) {
            prop_assert_eq!(&again, &bytes);
        }
        prop_assert_eq!(decode_all::<AbortedTxn>(&bytes).is_some(), is_sound::<AbortedTxn>(&bytes));
        let sealed = Entries::<TimeEntry>::Sealed(Bytes::from(bytes));
        _ = sealed.last_where(|entry| entry.timestamp < 0);
        _ = sealed.iter().count();
    }
}
