//! Stores a client's batch with another codec than it was sent with: `compression.type`.

use bytes::BytesMut;

use super::batch::{ATTRIBUTES_AT, Batch, HEADER_BYTES, LOG_OVERHEAD_BYTES};
use super::compression::{Compression, Compressor, Decompressor};
use super::error::RecordError;

/// The batch in `bytes` with its records compressed by `compression`; every field that does not follow
/// from that, and every record, stays as it is. `limit` bounds the records once decompressed.
///
/// Errors: those of the codecs; `BatchTooLarge` above 2 GiB.
pub fn recompress(
    bytes: &[u8],
    compression: Compression,
    limit: usize,
    decompressor: &mut Decompressor,
    compressor: &mut Compressor,
) -> Result<BytesMut, RecordError> {
    let batch = Batch::parse(bytes)?;
    let mut header = *batch.header();
    let region = batch.records_region();
    let plain = decompressor.decompress(header.compression()?, region, limit)?;
    let mut out = Vec::with_capacity(HEADER_BYTES + plain.len());
    out.resize(HEADER_BYTES, 0);
    compressor.compress(compression, plain, &mut out)?;
    let size = out.len();
    let maximum = i32::MAX as usize;
    header.batch_length = i32::try_from(size - LOG_OVERHEAD_BYTES)
        .map_err(|_| RecordError::BatchTooLarge { size, maximum })?;
    header.attributes = header.attributes.with_compression(compression);
    let mut put = |header: &super::BatchHeader| {
        if let Some(place) = out.get_mut(..HEADER_BYTES) {
            place.copy_from_slice(&header.encode());
        }
        crc32c::crc32c(out.get(ATTRIBUTES_AT..).unwrap_or_default())
    };
    header.crc = put(&header);
    put(&header);
    Ok(BytesMut::from(bytes::Bytes::from(out)))
}

#[cfg(test)]
mod tests;
