//! Where records with a key are, without decoding every batch.

use super::LogError;
use super::reader::LogReader;
use crate::storage::keys::{KeyHits, KeyRule};

impl LogReader {
    /// Where records with a key of this hash may be, from `start` on, up to `end` (exclusive) or less:
    /// to the end of a segment, or as far as the index is made; each call makes a part of it, while there
    /// is memory.
    ///
    /// Batches are decoded once, whatever the number of searches. Errors:
    /// `OffsetOutOfRange`, `Corrupt`, `Storage`.
    pub fn keys(
        &self,
        hash: u32,
        (start, end): (i64, i64),
        rule: KeyRule<'_>,
    ) -> Result<KeyHits, LogError> {
        self.shared.read(|view| {
            view.check_range(start)?;
            let end = end.min(view.log_end());
            let Some(segment) = view.segments.get(view.segment_index(start)) else {
                return Ok(KeyHits { end_offset: start, ..KeyHits::default() });
            };
            segment.keys(hash, (start, end), &self.shared.key_budget, rule)
        })
    }
}
