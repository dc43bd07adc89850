use super::super::{BatchBuilder, BatchHeader, BatchParams, DecodedBatch, NewRecord};
use super::*;

#[test]
fn records_and_header_stay_and_the_codec_changes() {
    let (mut decompressor, mut compressor) = (Decompressor::new(), Compressor::new());
    for from in Compression::ALL {
        let mut builder =
            BatchBuilder::new(BatchParams { compression: from, ..BatchParams::default() });
        for value in ["one", "two", "three"] {
            let value = Some(value.as_bytes());
            builder.append(&NewRecord { timestamp: 5, value, ..NewRecord::default() }).unwrap();
        }
        let sent = builder.finish(&mut compressor).unwrap().freeze();
        for to in Compression::ALL {
            let stored = recompress(&sent, to, 1 << 20, &mut decompressor, &mut compressor);
            let stored = stored.unwrap().freeze();
            let batch = Batch::parse(&stored).unwrap();
            batch.verify_crc().unwrap();
            let (before, after) = (BatchHeader::parse(&sent).unwrap(), *batch.header());
            let same = BatchHeader {
                attributes: after.attributes,
                batch_length: after.batch_length,
                crc: after.crc,
                ..before
            };
            assert_eq!((after, after.compression().unwrap()), (same, to));
            let records = |bytes| DecodedBatch::decode(bytes, &mut Decompressor::new(), 1 << 20);
            let (sent, stored) = (records(&sent).unwrap(), records(&stored).unwrap());
            assert!(sent.iter().eq(stored.iter()), "{from} to {to}");
        }
    }
}
