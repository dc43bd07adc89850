//! Reading what a coordinator decided from its log.

use std::sync::Arc;

use bytes::Bytes;
use duolog_coordinator::runtime::Runtime;
use duolog_coordinator::shard::Shard as Machine;
use duolog_log_core::ids::Offset;
use duolog_log_core::log::{LogReader, ReadMinimum};
use duolog_log_core::record::{
    BatchHeader, DecodedBatch, Decompressor, EndTransactionMarker, SharedBatches,
};

use crate::limits::DECOMPRESSED_BYTES_MAX;
use crate::partitions::Partition;
use crate::partitions::append::AppendError;

/// Bytes of a log read at a time.
const READ_BYTES: usize = 1024 * 1024;

/// State as the log has it.
pub(super) struct Loaded<S: Machine> {
    /// Still loading.
    pub(super) runtime: Runtime<S>,
    /// The end of what was read: exclusive.
    pub(super) log_end: i64,
    /// At most `log_end`.
    pub(super) high_watermark: i64,
}

/// Why a log could not be read.
#[derive(Debug)]
pub(super) enum LoadError {
    /// The partition is, or the node soon will be.
    Gone,
    /// In words.
    Unreadable(String),
}

/// Reads all of the log into `shard`. One that was never written is not opened for that.
pub(super) async fn read<S>(partition: &Arc<Partition>, shard: S) -> Result<Loaded<S>, LoadError>
where
    S: Machine + Send + 'static,
    Runtime<S>: Send,
{
    let runtime = Runtime::loading(shard);
    if partition.is_untouched() {
        return Ok(Loaded { runtime, log_end: 0, high_watermark: 0 });
    }
    let reader = partition.reader().await.map_err(|error| match error {
        AppendError::Deleted | AppendError::Stopping => LoadError::Gone,
        error => LoadError::Unreadable(error.to_string()),
    })?;
    let replayed = tokio::task::spawn_blocking(move || replay(&reader, runtime)).await;
    let (runtime, log_end) =
        replayed.map_err(|error| LoadError::Unreadable(error.to_string()))?.map_err(unreadable)?;
    let high_watermark = partition.offsets().high_watermark.min(log_end);
    Ok(Loaded { runtime, log_end, high_watermark })
}

fn unreadable(error: impl std::fmt::Display) -> LoadError {
    LoadError::Unreadable(error.to_string())
}

/// Errors are in words.
fn replay<S: Machine>(
    reader: &LogReader,
    mut runtime: Runtime<S>,
) -> Result<(Runtime<S>, i64), String> {
    let mut decompressor = Decompressor::default();
    let mut offset = reader.log_start_offset();
    let end = reader.log_end_offset();
    while offset < end {
        let read = reader
            .read(offset, READ_BYTES, end, ReadMinimum::OneBatch)
            .map_err(|error| error.to_string())?;
        for batch in read.pieces.into_iter().flat_map(SharedBatches::new) {
            let (header, batch) = batch.map_err(|error| error.to_string())?;
            // A position that was damaged may well be another valid one.
            let limit = DECOMPRESSED_BYTES_MAX;
            let decoded = DecodedBatch::decode_verified(&batch, &mut decompressor, limit)
                .map_err(|error| format!("offset {}: {error}", header.base_offset))?;
            if header.is_control() {
                load_markers(&mut runtime, &header, &decoded);
            } else {
                load_batch(&mut runtime, &header, &decoded);
            }
        }
        if read.next_offset <= offset {
            return Err(format!("the log ends at {offset} instead of {end}"));
        }
        offset = read.next_offset;
    }
    Ok((runtime, end))
}

fn load_batch<S: Machine>(runtime: &mut Runtime<S>, header: &BatchHeader, batch: &DecodedBatch) {
    for record in batch {
        // Copies, for what is kept of a record must not hold on to all that was read with it.
        let key = record.key.map(Bytes::copy_from_slice);
        let value = record.value.map(Bytes::copy_from_slice);
        let (offset, key, value) = (Offset(record.offset), key.as_ref(), value.as_ref());
        let loaded = if header.is_transactional() {
            runtime.load_in_transaction(offset, header.producer_id.0, key, value)
        } else {
            runtime.load(offset, key, value)
        };
        if let Err(error) = loaded {
            tracing::warn!(offset = record.offset, %error, "unreadable record skipped");
        }
    }
}

/// A control record that cannot be read, or is of another kind, is passed over, as everywhere.
fn load_markers<S: Machine>(runtime: &mut Runtime<S>, header: &BatchHeader, batch: &DecodedBatch) {
    for record in batch {
        if let Ok(Some(marker)) = EndTransactionMarker::parse(&record) {
            runtime.load_end(header.producer_id.0, marker.outcome);
        }
    }
}
