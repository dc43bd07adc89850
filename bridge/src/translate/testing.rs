//! What the tests of this folder share: batches of given records, as a log would hold them.

use duolog_log_core::record::{
    BatchBuilder, BatchParams, Compressor, DecodedBatch, Decompressor, NewRecord as LogRecord,
};

use crate::backend::NewRecord;

const LIMIT: usize = 64 * 1024 * 1024;

/// A batch of encoded records, from offset 0.
pub(crate) fn batch_of_encoded(records: &[NewRecord]) -> DecodedBatch {
    let mut builder = BatchBuilder::new(BatchParams::default());
    for record in records {
        builder.append_encoded(record.timestamp_ms, &record.payload).unwrap();
    }
    decoded(builder)
}

/// A batch of one record, at `offset`.
pub(crate) fn batch_of_one(record: &LogRecord<'_>, offset: i64) -> DecodedBatch {
    let params = BatchParams { base_offset: offset, ..BatchParams::default() };
    let mut builder = BatchBuilder::new(params);
    builder.append(record).unwrap();
    decoded(builder)
}

fn decoded(builder: BatchBuilder) -> DecodedBatch {
    let bytes = builder.finish(&mut Compressor::new()).unwrap().freeze();
    DecodedBatch::decode(&bytes, &mut Decompressor::new(), LIMIT).unwrap()
}
