//! Finding records by their timestamps.
//!
//! Indexes lead to a batch, the batch is decoded for the record: both answers are exact, also
//! inside a compressed batch and behind a log start that lies inside one (cases B21, B24).

use std::cmp::Reverse;
use std::sync::Arc;

use bytes::Bytes;

use super::LogError;
use super::outcome::TimestampOffset;
use super::reader::LogReader;
use super::view::View;
use crate::limits;
use crate::record::batch::NO_TIMESTAMP;
use crate::record::{BatchHeader, DecodedBatch, Decompressor, Record};
use crate::storage::segment::Segment;
use crate::storage::walk::{Located, Step, Walk};

impl LogReader {
    /// The first record below `end_offset` whose timestamp is `timestamp` or later.
    pub fn offset_for_timestamp(
        &self,
        timestamp: i64,
        end_offset: i64,
    ) -> Result<Option<TimestampOffset>, LogError> {
        self.shared.read(|view| view.find_time(timestamp, end_offset))
    }

    /// The first of the records that have the greatest timestamp; `None` when it lies at or above `end_offset`, as in
    /// UnifiedLog.fetchOffsetByTimestamp and its caller.
    pub fn max_timestamp(&self, end_offset: i64) -> Result<Option<TimestampOffset>, LogError> {
        let greatest = self.shared.read(View::greatest)?;
        Ok(greatest.filter(|greatest| greatest.offset < end_offset))
    }
}

impl View {
    pub(super) fn segments_from(&self, offset: i64) -> &[Arc<Segment>] {
        self.segments.get(self.segment_index(offset)..).unwrap_or_default()
    }

    fn find_time(
        &self,
        timestamp: i64,
        end_offset: i64,
    ) -> Result<Option<TimestampOffset>, LogError> {
        let end_offset = end_offset.min(self.log_end());
        for segment in self.segments_from(self.log_start) {
            if segment.greatest()?.is_none_or(|greatest| greatest.timestamp < timestamp) {
                continue;
            }
            let from = segment.offset_before_time(timestamp)?.max(self.log_start);
            let found = self.first_in(segment, from, end_offset, |header, batch| {
                if header.max_timestamp < timestamp {
                    return Ok(None);
                }
                self.first_record(&batch()?, end_offset, |r| r.timestamp >= timestamp)
            })?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn greatest(&self) -> Result<Option<TimestampOffset>, LogError> {
        // What segments say is no less than what their records have: those that say most come first.
        let mut bounds = Vec::new();
        for segment in self.segments_from(self.log_start) {
            if let Some(greatest) = segment.greatest()? {
                bounds.push((greatest.timestamp, segment));
            }
        }
        bounds.sort_by_key(|(timestamp, _)| Reverse(*timestamp));
        let rank = |found: &TimestampOffset| (found.timestamp, Reverse(found.offset));
        let mut greatest: Option<TimestampOffset> = None;
        for (timestamp, segment) in bounds {
            if greatest.is_some_and(|greatest| greatest.timestamp > timestamp) {
                break;
            }
            greatest = greatest.into_iter().chain(self.greatest_in(segment)?).max_by_key(rank);
        }
        Ok(greatest)
    }

    /// The greatest timestamp among a segment's records from the log start on.
    fn greatest_in(&self, segment: &Segment) -> Result<Option<TimestampOffset>, LogError> {
        let Some(greatest) = segment.greatest()? else { return Ok(None) };
        if let Some(found) = self.greatest_of_batch(segment, greatest.offset)? {
            return Ok(Some(found));
        }
        // What the index knows is no record from the log start on. The header that says most may be right.
        let end_offset = self.log_end();
        let mut most = None;
        self.first_in(segment, self.log_start, end_offset, |header, _| {
            let is_most = most.is_none_or(|(timestamp, _)| header.max_timestamp > timestamp);
            if header.next_offset() > self.log_start && is_most {
                most = Some((header.max_timestamp, header.base_offset));
            }
            Ok(None::<()>)
        })?;
        let most = most.filter(|(timestamp, _)| *timestamp > NO_TIMESTAMP);
        let Some((_, base_offset)) = most else { return Ok(None) };
        if let Some(found) = self.greatest_of_batch(segment, base_offset)? {
            return Ok(Some(found));
        }
        self.greatest_of_all(segment)
    }

    /// The first record with the time that the header of the batch at `offset` says; `None` when that record was deleted,
    /// or the batch emptied by compaction.
    fn greatest_of_batch(
        &self,
        segment: &Segment,
        offset: i64,
    ) -> Result<Option<TimestampOffset>, LogError> {
        let Some(batch) = segment.batch_at(offset)? else { return Ok(None) };
        let timestamp = batch.header.max_timestamp;
        if timestamp <= NO_TIMESTAMP || batch.header.next_offset() <= self.log_start {
            return Ok(None);
        }
        self.first_record(&batch.content, self.log_end(), |record| record.timestamp >= timestamp)
    }

    /// As [`Self::greatest_in`], from each batch that may have a greater one than those before it.
    fn greatest_of_all(&self, segment: &Segment) -> Result<Option<TimestampOffset>, LogError> {
        let end_offset = self.log_end();
        let mut greatest: Option<TimestampOffset> = None;
        self.first_in(segment, self.log_start, end_offset, |header, batch| {
            let before = greatest.map_or(NO_TIMESTAMP, |greatest| greatest.timestamp);
            if header.max_timestamp > before {
                let batch = batch()?;
                let decoded = decode(&batch)?;
                let readable = self.readable(&decoded, end_offset);
                let timestamp = readable.map(|record| record.timestamp).max();
                if let Some(timestamp) = timestamp.filter(|timestamp| *timestamp > before) {
                    greatest = self.first_of(&decoded, end_offset, |r| r.timestamp == timestamp);
                }
            }
            Ok(None::<()>)
        })?;
        Ok(greatest)
    }

    /// Walks a segment's batches from the one that holds `offset` on, up to `end_offset`, until
    /// `look` finds something; it may ask for the batch's bytes.
    fn first_in<T>(
        &self,
        segment: &Segment,
        offset: i64,
        end_offset: i64,
        mut look: impl FnMut(
            &BatchHeader,
            &dyn Fn() -> Result<Bytes, LogError>,
        ) -> Result<Option<T>, LogError>,
    ) -> Result<Option<T>, LogError> {
        let size = segment.size();
        let from = segment.position_of(offset)?;
        let mut walk = Walk::new(Arc::clone(&segment.log), from, size);
        loop {
            let batch = match walk.next_header()? {
                Step::Batch(batch) if batch.header.base_offset < end_offset => batch,
                Step::Batch(_) | Step::End => return Ok(None),
                Step::Broken { reason, .. } => return Err(corrupt(offset, reason)),
            };
            let Located { position, header, .. } = batch;
            let bytes = || {
                let end = position.saturating_add(header.size_in_bytes() as u64);
                let mut walk = Walk::new(Arc::clone(&segment.log), position, end);
                match walk.next_batch()? {
                    Step::Batch(batch) => Ok(batch.content),
                    Step::End => Err(corrupt(header.base_offset, "the file ends")),
                    Step::Broken { reason, .. } => Err(corrupt(header.base_offset, reason)),
                }
            };
            if let Some(found) = look(&header, &bytes)? {
                return Ok(Some(found));
            }
        }
    }

    fn first_record(
        &self,
        batch: &Bytes,
        end_offset: i64,
        is_sought: impl Fn(&Record<'_>) -> bool,
    ) -> Result<Option<TimestampOffset>, LogError> {
        Ok(self.first_of(&decode(batch)?, end_offset, is_sought))
    }

    fn first_of(
        &self,
        batch: &DecodedBatch,
        end_offset: i64,
        is_sought: impl Fn(&Record<'_>) -> bool,
    ) -> Option<TimestampOffset> {
        let record = self.readable(batch, end_offset).find(is_sought)?;
        Some(TimestampOffset {
            timestamp: record.timestamp,
            offset: record.offset,
            leader_epoch: batch.header().partition_leader_epoch.0,
        })
    }

    fn readable<'a>(
        &self,
        batch: &'a DecodedBatch,
        end_offset: i64,
    ) -> impl Iterator<Item = Record<'a>> {
        batch.iter_from(self.log_start).take_while(move |record| record.offset < end_offset)
    }
}

pub(super) fn decode(batch: &Bytes) -> Result<DecodedBatch, LogError> {
    let limit = limits::DECOMPRESSED_BATCH_BYTES_MAX;
    DecodedBatch::decode(batch, &mut Decompressor::new(), limit).map_err(|reason| {
        let offset = BatchHeader::parse(batch).map_or(-1, |header| header.base_offset);
        corrupt(offset, reason)
    })
}

fn corrupt(offset: i64, reason: impl std::fmt::Display) -> LogError {
    LogError::Corrupt { offset, reason: reason.to_string() }
}
