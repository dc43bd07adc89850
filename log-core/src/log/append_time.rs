//! Finding records by the time at which they were appended: RocketMQ's store time.

use super::LogError;
use super::reader::LogReader;
use super::view::View;
use crate::storage::segment::Segment;

/// Which side of a time a search takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeBoundary {
    /// The first record at or after the time.
    Lower,
    /// The last record at or before the time.
    Upper,
}

impl LogReader {
    /// An offset below `end_offset` by append time, which never falls along a log: the first
    /// appended at or after `time_ms`, or the last at or before it. `None` when there is none.
    ///
    /// Exact for what this process appended, up to the resolution that docs/formats.md gives; a
    /// batch whose append was not recorded counts by its greatest timestamp.
    pub fn search_append_time(
        &self,
        time_ms: i64,
        boundary: TimeBoundary,
        end_offset: i64,
    ) -> Result<Option<i64>, LogError> {
        self.shared.read(|view| {
            let end_offset = end_offset.min(view.log_end());
            let first = |time_ms| view.first_appended(time_ms);
            match boundary {
                TimeBoundary::Lower => {
                    let found = first(time_ms)?.map(|offset| offset.max(view.log_start));
                    Ok(found.filter(|offset| *offset < end_offset))
                }
                TimeBoundary::Upper => {
                    let later = first(time_ms.saturating_add(1))?.unwrap_or(end_offset);
                    let last = later.min(end_offset) - 1;
                    Ok((last >= view.log_start).then_some(last))
                }
            }
        })
    }

    /// When the record at `offset` was appended, in ms; `None` for an empty log. See
    /// [`Self::search_append_time`] for how exact it is.
    pub fn append_time_at(&self, offset: i64) -> Result<Option<i64>, LogError> {
        self.shared.read(|view| {
            for segment in view.segments.iter().take(view.segment_index(offset) + 1).rev() {
                let relative = offset.saturating_sub(segment.base_offset);
                if let Some(entry) = segment.append_times()?.at(relative) {
                    return Ok(Some(entry.time_ms));
                }
            }
            Ok(None)
        })
    }

    /// When the first readable record was appended, in ms; `None` for an empty log.
    pub fn first_append_time(&self) -> Result<Option<i64>, LogError> {
        if self.log_start_offset() == self.log_end_offset() {
            return Ok(None);
        }
        self.append_time_at(self.log_start_offset())
    }

    /// When the last record was appended, in ms; `None` for an empty log.
    pub fn last_append_time(&self) -> Result<Option<i64>, LogError> {
        self.shared.read(|view| {
            if view.log_start == view.log_end() {
                return Ok(None);
            }
            for segment in view.segments.iter().rev() {
                if let Some(newest) = segment.append_times()?.newest_ms() {
                    return Ok(Some(newest));
                }
            }
            Ok(None)
        })
    }
}

impl View {
    /// The first offset appended at or after `time_ms`.
    fn first_appended(&self, time_ms: i64) -> Result<Option<i64>, LogError> {
        let segments = self.segments_from(self.log_start);
        let mut failed = None;
        // Times never fall, so whole segments lie before the time or not.
        let before = segments.partition_point(|segment| {
            ends_before(segment, time_ms).unwrap_or_else(|error| {
                failed = Some(error);
                false
            })
        });
        if let Some(failed) = failed {
            return Err(failed);
        }
        let Some(segment) = segments.get(before) else { return Ok(None) };
        let entry = segment.append_times()?.first_at_or_after(time_ms);
        Ok(entry.map(|entry| segment.base_offset + i64::from(entry.relative_offset)))
    }
}

/// Whether all of a segment's batches were appended before `time_ms`; an empty one says so too,
/// since it is the last.
fn ends_before(segment: &Segment, time_ms: i64) -> Result<bool, LogError> {
    Ok(segment.append_times()?.newest_ms().is_none_or(|newest| newest < time_ms))
}
