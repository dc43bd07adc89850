use duolog_log_core::record::{
    BatchBuilder, BatchParams, Compression, Compressor, Decompressor, Header, NewRecord,
};

use super::*;

fn batch(tags: &[&[&[u8]]]) -> SharedBatch {
    let params =
        BatchParams { base_offset: 100, compression: Compression::Gzip, ..BatchParams::default() };
    let mut builder = BatchBuilder::new(params);
    for tags in tags {
        let headers: Vec<_> =
            tags.iter().map(|tag| Header { key: b"TAGS", value: Some(tag) }).collect();
        let record = NewRecord { headers: &headers, ..NewRecord::default() };
        builder.append(&record).expect("a small batch");
    }
    let bytes = builder.finish(&mut Compressor::new()).expect("records").freeze();
    let decoded = DecodedBatch::decode(&bytes, &mut Decompressor::new(), 1 << 20);
    SharedBatch::new(decoded.expect("a batch"), 5)
}

#[test]
fn the_last_tag_counts() {
    let batch = batch(&[&[b"Aa"], &[b"x", b"BB"], &[], &["日本\u{1F600}".as_bytes()]]);
    let seen: Vec<_> = batch.tagged_from(0).map(|(record, hash)| (record.offset, hash)).collect();
    // 2112 twice: the two tags collide in Java. The last from String.hashCode of the same text.
    assert_eq!(seen, [(100, 2112), (101, 2112), (102, 0), (103, 804_253_066)]);
    let from: Vec<_> = batch.tagged_from(102).map(|(record, _)| record.offset).collect();
    assert_eq!(from, [102, 103]);
    assert_eq!((batch.base_offset(), batch.next_offset(), batch.append_time_ms()), (100, 104, 5));
    assert!(batch.memory_bytes() > batch.decoded().memory_bytes());
}
