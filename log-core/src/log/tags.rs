//! Tags of records, for a filter that need not decode every batch.

use super::LogError;
use super::reader::LogReader;
use crate::record::Record;
use crate::storage::tags::Tags;

impl LogReader {
    /// The tag codes of the records from `start` on, up to `end` (exclusive) or less: to the end of
    /// a segment, or as far as there is memory for them; none at all when there is none.
    ///
    /// `tag_of` gives a record's code, and must give the same one every time: what it gave is kept.
    /// Batches are decoded once, whatever the number of filters. Errors: `OffsetOutOfRange`,
    /// `Corrupt`, `Storage`.
    pub fn tags(
        &self,
        start: i64,
        end: i64,
        tag_of: &dyn Fn(&Record<'_>) -> Option<i32>,
    ) -> Result<Tags, LogError> {
        self.shared.read(|view| {
            view.check_range(start)?;
            let end = end.min(view.log_end());
            let Some(segment) = view.segments.get(view.segment_index(start)) else {
                return Ok(Tags::default());
            };
            segment.tags(start, end, &self.shared.tag_budget, tag_of)
        })
    }
}
