//! Finding records by their timestamps.
//!
//! Indexes lead to a batch, the batch is decoded for the record: both answers are exact, also
//! inside a compressed batch and behind a log start that lies inside one (cases B21, B24).

use std::sync::Arc;

use bytes::Bytes;

use super::LogError;
use super::outcome::TimestampOffset;
use super::reader::LogReader;
use super::view::View;
use crate::limits;
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

    /// The first of the records below `end_offset` that have the greatest timestamp.
    pub fn max_timestamp(&self, end_offset: i64) -> Result<Option<TimestampOffset>, LogError> {
        self.shared.read(|view| {
            let end_offset = end_offset.min(view.log_end());
            let mut greatest: Option<TimestampOffset> = None;
            for segment in view.segments_from(view.log_start) {
                let found = view.greatest_in(segment, end_offset)?;
                let is_greater = |found: &TimestampOffset| {
                    greatest.is_none_or(|greatest| found.timestamp > greatest.timestamp)
                };
                greatest = found.filter(is_greater).or(greatest);
            }
            Ok(greatest)
        })
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

    /// The greatest timestamp among a segment's records from the log start to `end_offset`.
    fn greatest_in(
        &self,
        segment: &Segment,
        end_offset: i64,
    ) -> Result<Option<TimestampOffset>, LogError> {
        let Some(greatest) = segment.greatest()? else { return Ok(None) };
        if let Some(batch) = segment.batch_at(greatest.offset)?
            && batch.header.base_offset >= self.log_start
            && batch.header.next_offset() <= end_offset
        {
            let timestamp = batch.header.max_timestamp;
            let found =
                self.first_record(&batch.content, end_offset, |r| r.timestamp >= timestamp)?;
            // Of a batch that compaction has emptied only the header has that time.
            if found.is_some() {
                return Ok(found);
            }
        }
        // The record that the index knows is not among them: ask each batch.
        let mut greatest: Option<TimestampOffset> = None;
        self.first_in(segment, self.log_start, end_offset, |header, batch| {
            let before = greatest.map_or(-1, |greatest| greatest.timestamp);
            if header.max_timestamp > before {
                let batch = batch()?;
                let decoded = decode(&batch)?;
                let readable = self.readable(&decoded, end_offset);
                let timestamp = readable.map(|record| record.timestamp).max().unwrap_or(-1);
                if timestamp > before {
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
                let mut walk = Walk::new(Arc::clone(&segment.log), position, size);
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
