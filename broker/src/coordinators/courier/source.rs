//! Single records out of a coordinator's log, in any order.

use std::collections::BTreeMap;
use std::sync::Arc;

use duolog_log_core::log::{LogError, LogReader, ReadMinimum};
use duolog_log_core::record::{DecodedBatch, Decompressor, Record, SharedBatches};

use crate::limits::DECOMPRESSED_BYTES_MAX;

#[cfg(test)]
mod tests;

/// Decoded batches that are kept, in bytes; those of one read come on top.
const KEPT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes read at a time where one record follows the other: at least one batch.
const READ_BYTES: usize = 64 * 1024;

pub(in crate::coordinators) struct Source {
    reader: Arc<LogReader>,
    decompressor: Decompressor,
    /// By base offset.
    kept: BTreeMap<i64, DecodedBatch>,
    kept_bytes: usize,
    kept_bytes_max: usize,
    /// The offset after the last read.
    next: i64,
}

impl Source {
    pub(in crate::coordinators) fn new(reader: Arc<LogReader>) -> Self {
        Self::with_room(reader, KEPT_BYTES_MAX)
    }

    fn with_room(reader: Arc<LogReader>, kept_bytes_max: usize) -> Self {
        Self {
            reader,
            decompressor: Decompressor::default(),
            kept: BTreeMap::new(),
            kept_bytes: 0,
            kept_bytes_max,
            next: 0,
        }
    }

    /// What `read` makes of the record at `offset`; `None` if there is no such record (any more), or
    /// if it is damaged.
    ///
    /// Errors: the log cannot be read at the moment.
    pub(in crate::coordinators) fn find<T>(
        &mut self,
        offset: i64,
        read: impl FnOnce(&Record<'_>) -> Option<T>,
    ) -> Result<Option<T>, LogError> {
        if self.batch(offset).is_none() {
            match self.load(offset) {
                Ok(()) => {}
                Err(LogError::Corrupt { .. } | LogError::OffsetOutOfRange { .. }) => {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
        let record = self.batch(offset).and_then(|batch| batch.record_at(offset));
        Ok(record.and_then(|record| read(&record)))
    }

    fn batch(&self, offset: i64) -> Option<&DecodedBatch> {
        let (_, batch) = self.kept.range(..=offset).next_back()?;
        (offset < batch.header().next_offset()).then_some(batch)
    }

    fn load(&mut self, offset: i64) -> Result<(), LogError> {
        // Before the read: none of its own batches may go, the wanted one is among them.
        if self.kept_bytes > self.kept_bytes_max {
            self.kept.clear();
            self.kept_bytes = 0;
        }
        let end = self.reader.log_end_offset();
        // Where records are wanted in no order, what stands behind this batch is nothing that is wanted soon.
        let bytes = if offset == self.next { READ_BYTES } else { 1 };
        let read = self.reader.read(offset, bytes, end, ReadMinimum::OneBatch)?;
        self.next = read.next_offset;
        let corrupt = |reason: String| LogError::Corrupt { offset, reason };
        for piece in read.pieces {
            for batch in SharedBatches::new(piece) {
                let (header, bytes) = batch.map_err(|error| corrupt(error.to_string()))?;
                if header.is_control() {
                    continue;
                }
                let decompressor = &mut self.decompressor;
                let limit = DECOMPRESSED_BYTES_MAX;
                let decoded = DecodedBatch::decode_verified(&bytes, decompressor, limit)
                    .map_err(|error| corrupt(error.to_string()))?;
                self.kept_bytes += decoded.memory_bytes();
                self.kept.insert(header.base_offset, decoded);
            }
        }
        Ok(())
    }
}
