use proptest::prelude::*;

use super::*;
use crate::record::{BatchBuilder, BatchParams, Compressor, NewRecord};

fn batch(compression: Compression, deltas: &[i32]) -> Bytes {
    let params = BatchParams { base_offset: 100, compression, ..BatchParams::default() };
    let mut builder = BatchBuilder::new(params);
    for &delta in deltas {
        let value = delta.to_be_bytes().repeat(10);
        let record = NewRecord {
            timestamp: i64::from(delta) * 10,
            value: Some(&value),
            ..NewRecord::default()
        };
        builder.append_at(delta, &record).unwrap();
    }
    builder.finish(&mut Compressor::new()).unwrap().freeze()
}

fn decode(batch: &Bytes) -> DecodedBatch {
    DecodedBatch::decode(batch, &mut Decompressor::new(), 1 << 20).unwrap()
}

#[test]
fn an_uncompressed_batch_is_shared_not_copied() {
    let bytes = batch(Compression::None, &[0, 1, 2]);
    let decoded = decode(&bytes);
    let range = bytes.as_ptr_range();
    assert!(range.contains(&decoded.region.as_ptr()));
    assert_eq!(decoded.region.len(), bytes.len() - HEADER_BYTES);
}

#[test]
fn memory_counts_records_and_index() {
    for compression in [Compression::None, Compression::Lz4] {
        let deltas: Vec<_> = (0..1000).collect();
        let decoded = decode(&batch(compression, &deltas));
        let records = decoded.region.len();
        assert!(records > 40_000);
        let expected = records + 4 * 1000 + size_of::<DecodedBatch>();
        assert_eq!(decoded.memory_bytes(), expected);
    }
}

#[test]
fn offsets_are_found_with_and_without_gaps() {
    for deltas in [[0, 1, 2, 3, 4], [3, 4, 7, 700, 701], [0, 1, 2, 3, 90]] {
        let decoded = decode(&batch(Compression::Snappy, &deltas));
        for offset in 90..900 {
            let expected = deltas.iter().find(|&&delta| i64::from(delta) + 100 >= offset);
            let from = decoded.iter_from(offset);
            let left = deltas.iter().filter(|&&delta| i64::from(delta) + 100 >= offset).count();
            assert_eq!(from.len(), left);
            let first = from.clone().next();
            assert_eq!(first.map(|record| record.offset_delta), expected.copied(), "at {offset}");
            assert_eq!(from.count(), left);
            let exact = decoded.record_at(offset).map(|record| record.offset);
            let is_there = deltas.iter().any(|&delta| i64::from(delta) + 100 == offset);
            assert_eq!(exact, is_there.then_some(offset));
        }
        assert_eq!(decoded.iter_from(i64::MIN).len(), 5);
        assert_eq!(decoded.iter_from(i64::MAX).len(), 0);
    }
}

#[test]
fn a_batch_that_claims_more_than_it_holds_is_refused() {
    let mut bytes = batch(Compression::None, &[0, 1]).to_vec();
    bytes[57..61].copy_from_slice(&i32::MAX.to_be_bytes());
    let result = DecodedBatch::decode(&bytes.into(), &mut Decompressor::new(), 1 << 20);
    assert!(matches!(result, Err(RecordError::InvalidBatch(_))), "{result:?}");
}

#[test]
fn the_limit_holds_for_every_compression() {
    for compression in [Compression::None, Compression::Gzip, Compression::Lz4] {
        let bytes = batch(compression, &[0, 1]);
        let result = DecodedBatch::decode(&bytes, &mut Decompressor::new(), 20);
        let expected = RecordError::DecompressedTooLarge { limit: 20 };
        assert_eq!(result.map(|_| ()), Err(expected));
    }
}

proptest! {
    #[test]
    fn damage_never_panics_and_what_decodes_can_be_walked(
        compression in prop::sample::select(vec![
            Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4,
        ]),
        at in 17_usize..400,
        flip in 1_u8..,
    ) {
        let deltas: Vec<_> = (0..30).collect();
        let mut bytes = batch(compression, &deltas).to_vec();
        let at = at % bytes.len();
        bytes[at] ^= flip;
        let decoded = DecodedBatch::decode(&bytes.into(), &mut Decompressor::new(), 1 << 16);
        if let Ok(decoded) = decoded {
            prop_assert_eq!(decoded.iter().count(), decoded.len());
            for record in &decoded {
                let _ = (decoded.record_at(record.offset), record.headers.iter().count());
            }
        }
    }
}
