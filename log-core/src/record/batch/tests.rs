use proptest::prelude::*;

use super::*;
use crate::record::{BatchBuilder, BatchParams, NewRecord};

/// A batch of one record for each of `timestamps`.
fn batch(timestamps: &[i64]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(BatchParams::default());
    for &timestamp in timestamps {
        let record = NewRecord { timestamp, value: Some(b"value"), ..NewRecord::default() };
        builder.append(&record).unwrap();
    }
    builder.finish_uncompressed().unwrap().to_vec()
}

#[test]
fn batches_follow_each_other_up_to_a_torn_tail() {
    let (first, second) = (batch(&[1, 2]), batch(&[3]));
    let mut bytes = [first.clone(), second.clone()].concat();
    let whole = bytes.len();
    bytes.extend_from_slice(&batch(&[4])[..70]);
    let mut batches = Batches::new(&bytes);
    assert_eq!(batches.next().unwrap().unwrap().bytes(), first);
    assert_eq!(batches.next().unwrap().unwrap().bytes(), second);
    let expected = batch(&[4]).len();
    let torn = RecordError::Truncated { position: whole, expected, actual: 70 };
    assert_eq!(batches.next().unwrap().unwrap_err(), torn);
    assert!(batches.next().is_none());
    assert_eq!(batches.position(), whole);

    let mut shared = SharedBatches::new(Bytes::from(bytes));
    assert_eq!(shared.next().unwrap().unwrap().1, first);
    assert_eq!(shared.next().unwrap().unwrap().1, second);
    assert_eq!(shared.next().unwrap().unwrap_err(), torn);
    assert!(shared.next().is_none());
    assert_eq!(shared.position(), whole);
}

#[test]
fn no_bytes_are_no_batches() {
    assert!(Batches::new(&[]).next().is_none());
    assert!(SharedBatches::new(Bytes::new()).next().is_none());
}

#[test]
fn a_length_below_the_header_is_refused() {
    for length in [48, 0, -1, i32::MIN] {
        let mut bytes = batch(&[1]);
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        let expected = RecordError::InvalidLength { position: 0, length, minimum: 49 };
        assert_eq!(BatchHeader::parse(&bytes), Err(expected));
    }
}

#[test]
fn a_length_that_no_buffer_holds_is_a_truncation() {
    let mut bytes = batch(&[1]);
    bytes[8..12].copy_from_slice(&i32::MAX.to_be_bytes());
    let header = BatchHeader::parse(&bytes).unwrap();
    assert_eq!(header.size_in_bytes(), i32::MAX as usize + 12);
    assert!(matches!(Batch::parse(&bytes), Err(RecordError::Truncated { .. })));
}

#[test]
fn only_magic_2_is_a_batch() {
    for magic in [0, 1, 3, -1] {
        let mut bytes = batch(&[1]);
        bytes[16] = magic as u8;
        let expected = RecordError::UnsupportedMagic { position: 0, magic };
        assert_eq!(BatchHeader::parse(&bytes), Err(expected));
    }
}

#[test]
fn offset_and_leader_epoch_lie_outside_the_crc() {
    let mut bytes = batch(&[1, 2, 3]);
    let before = BatchHeader::parse(&bytes).unwrap();
    assign_offset(&mut bytes, 1 << 40, LeaderEpoch(7)).unwrap();
    let batch = Batch::parse(&bytes).unwrap();
    assert_eq!(batch.verify_crc(), Ok(()));
    let expected =
        BatchHeader { base_offset: 1 << 40, partition_leader_epoch: LeaderEpoch(7), ..before };
    assert_eq!(batch.header(), &expected);
    assert_eq!((expected.last_offset(), expected.next_offset()), ((1 << 40) + 2, (1 << 40) + 3));
    let offsets: Vec<_> = batch.records().unwrap().map(|record| record.unwrap().offset).collect();
    assert_eq!(offsets, [1 << 40, (1 << 40) + 1, (1 << 40) + 2]);
}

#[test]
fn what_is_no_batch_is_not_patched() {
    let mut bytes = [9; 61];
    assert!(assign_offset(&mut bytes, 1, LeaderEpoch(1)).is_err());
    assert!(stamp(&mut bytes, TimestampType::LogAppendTime, 1).is_err());
    assert_eq!(bytes, [9; 61]);
}

#[test]
fn stamping_sets_time_type_and_crc_only_when_something_differs() {
    let mut bytes = batch(&[10, 30, 20]);
    let before = bytes.clone();
    assert_eq!(stamp(&mut bytes, TimestampType::CreateTime, 30), Ok(false));
    assert_eq!(bytes, before);

    assert_eq!(stamp(&mut bytes, TimestampType::LogAppendTime, 5000), Ok(true));
    let batch = Batch::parse(&bytes).unwrap();
    assert_eq!(batch.verify_crc(), Ok(()));
    assert_eq!(batch.header().timestamp_type(), TimestampType::LogAppendTime);
    let times: Vec<_> = batch.records().unwrap().map(|record| record.unwrap().timestamp).collect();
    assert_eq!(times, [5000; 3]);

    assert_eq!(stamp(&mut bytes, TimestampType::CreateTime, 30), Ok(true));
    assert_eq!(bytes, before);
}

#[test]
fn a_flipped_bit_fails_the_crc() {
    let good = batch(&[1]);
    for at in 17..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        let result = Batch::parse(&bytes).unwrap().verify_crc();
        assert!(matches!(result, Err(RecordError::CrcMismatch { .. })), "byte {at}");
    }
}

#[test]
fn sequences_start_again_at_zero() {
    assert_eq!(sequence_plus(5, 2), 7);
    assert_eq!(sequence_plus(i32::MAX, 0), i32::MAX);
    assert_eq!(sequence_plus(i32::MAX, 1), 0);
    assert_eq!(sequence_plus(i32::MAX - 1, 3), 1);
    assert_eq!(sequence_plus(NO_SEQUENCE, 3), NO_SEQUENCE);
}

#[test]
fn attributes_that_are_unknown_are_kept() {
    let attributes = Attributes(0x7F80).with_compression(Compression::Zstd).transactional();
    assert_eq!(attributes.0, 0x7F94);
    assert_eq!(Attributes(5).compression(), Err(RecordError::UnsupportedCompression { id: 5 }));
}

proptest! {
    #[test]
    fn a_header_survives(bytes in prop::array::uniform32(any::<u8>()), tail: [u8; 29]) {
        let mut bytes = [bytes.as_slice(), tail.as_slice()].concat();
        bytes[16] = 2;
        bytes[8] &= 0x7F;
        bytes[10] |= 1;
        let header = BatchHeader::parse(&bytes).unwrap();
        prop_assert_eq!(header.encode().to_vec(), bytes.clone());
        let mut patched = bytes.clone();
        assign_offset(&mut patched, header.base_offset, header.partition_leader_epoch).unwrap();
        prop_assert_eq!(patched, bytes);
    }

    #[test]
    fn no_input_panics(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        magic in any::<bool>(),
        length in 0_i32..500,
    ) {
        let mut bytes = bytes;
        if magic && bytes.len() > 16 {
            bytes[16] = 2;
            bytes[8..12].copy_from_slice(&length.to_be_bytes());
        }
        let whole = Batches::new(&bytes).filter_map(Result::ok).map(|batch| {
            let records = batch.records().map(|records| records.count());
            (batch.bytes().len(), records, batch.header().last_sequence())
        });
        let total: usize = whole.map(|(length, _, _)| length).sum();
        prop_assert!(total <= bytes.len());
    }
}

#[test]
fn records_are_counted_by_headers_alone_up_to_what_is_torn() {
    let whole = [batch(&[1, 2, 3]), batch(&[4]), batch(&[5; 500])].concat();
    assert_eq!(record_count(&whole), 504);
    assert_eq!(record_count(&whole[..whole.len() - 1]), 4);
    assert_eq!(record_count(&[]), 0);
    assert_eq!(record_count(&[0; 200]), 0, "a length that no batch has");
    assert_eq!(record_count(&[0xFF; 200]), 0);
}
