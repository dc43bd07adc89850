//! Where the next record that a filter wants is, by the side index of tags.
//!
//! A subscription to a rare tag passes whole ranges that are never decoded. The index is made as it
//! is asked for, once for all filters, so the first one pays what decoding would have cost it. Near
//! the end of the log there is nothing to be gained: the newest batches are in memory, and decoded
//! once for all groups.

use std::collections::VecDeque;

use duolog_bridge::translate::message::tag_code;
use duolog_log_core::log::{LogError, LogReader};
use duolog_log_core::storage::tags::RecordTag;

use crate::limits::{
    TAG_MATCHES_MAX, TAG_SCAN_OFFSETS, TAG_SCAN_OFFSETS_MAX, TAG_SCAN_OFFSETS_MIN,
};

/// What lies ahead of an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ahead {
    /// The next record wanted. `is_sparse`: few others are near.
    Wanted { offset: i64, is_sparse: bool },
    /// No record wanted below this offset; what follows was not looked at.
    NothingBelow(i64),
    /// The index does not say.
    Unknown,
}

/// One filter on its way through a log.
pub(super) struct TagScan<'a> {
    reader: &'a LogReader,
    codes: &'a [i32],
    /// Exclusive.
    end: i64,
    /// Offsets wanted below `covered_to`, in order.
    wanted: VecDeque<i64>,
    covered_to: i64,
    is_sparse: bool,
    step: i64,
    offsets_left: i64,
}

impl<'a> TagScan<'a> {
    /// A filter for records with one of `codes` below `end`.
    pub(super) fn new(reader: &'a LogReader, codes: &'a [i32], end: i64) -> Self {
        Self {
            reader,
            codes,
            end,
            wanted: VecDeque::new(),
            covered_to: 0,
            is_sparse: true,
            step: TAG_SCAN_OFFSETS_MIN,
            offsets_left: TAG_SCAN_OFFSETS_MAX,
        }
    }

    /// Looks on from `asked`, which never goes back.
    pub(super) async fn look_ahead(&mut self, asked: i64) -> Result<Ahead, LogError> {
        loop {
            while self.wanted.pop_front_if(|offset| *offset < asked).is_some() {}
            if let Some(offset) = self.wanted.front().copied() {
                return Ok(Ahead::Wanted { offset, is_sparse: self.is_sparse });
            }
            let from = asked.max(self.covered_to);
            if from >= self.end || self.offsets_left <= 0 {
                return Ok(Ahead::NothingBelow(from));
            }
            if self.end - from < TAG_SCAN_OFFSETS_MIN || !self.extend(from)? {
                let is_news = from > asked;
                return Ok(if is_news { Ahead::NothingBelow(from) } else { Ahead::Unknown });
            }
            // A step may have read a megabyte from the disk.
            tokio::task::yield_now().await;
        }
    }

    /// Takes in the tags from `from` on; returns false when the index has none.
    fn extend(&mut self, from: i64) -> Result<bool, LogError> {
        let stop = self.end.min(from.saturating_add(self.step));
        let tags = match self.reader.tags(from, stop, &|record| tag_code(record)) {
            Ok(tags) => tags,
            // Whoever gets to the damaged batch will be told.
            Err(LogError::Corrupt { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        let scanned_to = tags.end_offset().min(stop);
        if scanned_to <= from {
            return Ok(false);
        }
        let is_wanted = |tag| matches!(tag, RecordTag::Tagged(code) if self.codes.contains(&code));
        let wanted = tags.iter().filter(|(_, tag)| is_wanted(*tag)).map(|(offset, _)| offset);
        self.wanted.extend(wanted.take(TAG_MATCHES_MAX));
        let is_full = self.wanted.len() == TAG_MATCHES_MAX;
        let last = self.wanted.back().copied().filter(|_| is_full);
        self.covered_to = last.map_or(scanned_to, |last| last + 1);
        self.is_sparse = !is_full;
        self.offsets_left -= self.covered_to - from;
        self.step = self.step.saturating_mul(4).min(TAG_SCAN_OFFSETS);
        Ok(true)
    }
}
