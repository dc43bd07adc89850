//! Reads whole batches out of a segment's file.

use std::sync::Arc;

use bytes::Bytes;

use super::Segment;
use crate::log::{LogError, ReadMinimum};
use crate::record::batch::HEADER_BYTES;
use crate::record::{BatchHeader, RecordError};
use crate::storage::walk::{Located, Step, Walk, offsets_from};

/// Read beyond what was asked for, so that the way from an index entry to the batch costs no read
/// of its own.
const SLACK_BYTES: u64 = 16 << 10;

/// How far behind damage a reader looks for the batch that it is after.
const DAMAGE_BYTES_MAX: u64 = 1 << 20;

/// Batches out of one segment.
#[derive(Debug)]
pub(crate) struct SegmentRead {
    /// Whole batches; empty when none fits the bounds.
    pub(crate) bytes: Bytes,
    /// The offset after the last of them.
    pub(crate) next_offset: i64,
    /// Whether they are the segment's last.
    pub(crate) end: SegmentEnd,
}

/// See [`SegmentRead::end`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentEnd {
    /// Nothing follows in this segment.
    Reached,
    /// A bound ended the read.
    NotReached,
}

/// What a read must stay within.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadBounds {
    pub(crate) max_bytes: u64,
    /// Batches end at or below it.
    pub(crate) end_offset: i64,
    /// Offsets below it are given: a batch that claims to begin above it, where one of these is
    /// looked for, is damaged.
    pub(crate) log_end: i64,
    pub(crate) minimum: ReadMinimum,
}

impl Segment {
    /// The batches from the one that holds `start_offset`, or else the first after it, on.
    pub(crate) fn read(
        &self,
        start_offset: i64,
        bounds: ReadBounds,
    ) -> Result<SegmentRead, LogError> {
        let size = self.size();
        let from = self.position_before(start_offset)?;
        let wanted = bounds.max_bytes.saturating_add(SLACK_BYTES);
        let block = self.block(from, wanted, size)?;
        let (position, block) = match skip_to(&block, start_offset) {
            Skipped::To(at) => (from + at as u64, block.slice(at..)),
            Skipped::Beyond(at) => {
                let Some(batch) = self.find_from(from + at as u64, size, start_offset)? else {
                    let next_offset = start_offset;
                    let end = SegmentEnd::Reached;
                    return Ok(SegmentRead { bytes: Bytes::new(), next_offset, end });
                };
                (batch.position, self.block(batch.position, wanted, size)?)
            }
        };
        self.take(start_offset, position, block, size, bounds)
    }

    /// The first batch whose last offset is `offset` or above.
    pub(crate) fn batch_at(&self, offset: i64) -> Result<Option<Located<Bytes>>, LogError> {
        let size = self.size();
        let Some(found) = self.find_from(self.position_before(offset)?, size, offset)? else {
            return Ok(None);
        };
        let end = found.position.saturating_add(found.header.size_in_bytes() as u64);
        match Walk::new(Arc::clone(&self.log), found.position, end.min(size)).next_batch()? {
            Step::Batch(batch) => Ok(Some(batch)),
            Step::End => Ok(None),
            Step::Broken { reason, .. } => Err(corrupt(offset, &reason)),
        }
    }

    /// The batch at which the segment's part before `offset` ends, by position.
    pub(crate) fn position_of(&self, offset: i64) -> Result<u64, LogError> {
        let size = self.size();
        let found = self.find_from(self.position_before(offset)?, size, offset)?;
        Ok(found.map_or(size, |batch| batch.position))
    }

    fn find_from(
        &self,
        position: u64,
        size: u64,
        offset: i64,
    ) -> Result<Option<Located<()>>, LogError> {
        let mut walk = Walk::new(Arc::clone(&self.log), position, size);
        let mut next_offset = self.base_offset;
        loop {
            match walk.next_header()? {
                Step::Batch(batch) if batch.header.last_offset() >= offset => {
                    return Ok(Some(batch));
                }
                Step::Batch(batch) => next_offset = batch.header.next_offset(),
                Step::End => return Ok(None),
                // What lies behind the damage is there for whoever asks for it.
                Step::Broken { reason } => {
                    let offsets = offsets_from(next_offset, self.base_offset);
                    match walk.skip_damage(&offsets, DAMAGE_BYTES_MAX)? {
                        Some(next) if next.header.base_offset <= offset => {}
                        _ => return Err(corrupt(offset, &reason)),
                    }
                }
            }
        }
    }

    /// Up to `wanted` bytes from `position` on.
    fn block(&self, position: u64, wanted: u64, size: u64) -> Result<Bytes, LogError> {
        let len = wanted.min(size.saturating_sub(position));
        Ok(self.log.read_at(position, usize::try_from(len).unwrap_or(usize::MAX))?)
    }

    /// Cuts out of `block`, which starts at `position` with a batch, what the bounds allow.
    fn take(
        &self,
        start_offset: i64,
        position: u64,
        block: Bytes,
        size: u64,
        bounds: ReadBounds,
    ) -> Result<SegmentRead, LogError> {
        let mut next_offset = start_offset;
        let mut end = 0_usize;
        loop {
            let header = match header_at(&block, end, next_offset) {
                Ok(Some(header)) => header,
                Ok(None) => break,
                // What is good comes first; whoever goes on reading is told.
                Err(_) if end > 0 => break,
                Err(error) => return Err(error),
            };
            if end == 0 && start_offset < bounds.log_end && header.base_offset >= bounds.log_end {
                let (claimed, end) = (header.base_offset, bounds.log_end);
                let reason = format!("a batch claims offset {claimed}, the log ends at {end}");
                return Err(corrupt(start_offset, &reason));
            }
            let batch_end = end + header.size_in_bytes();
            let first_alone = end == 0 && bounds.minimum == ReadMinimum::OneBatch;
            if header.next_offset() > bounds.end_offset
                || (batch_end as u64 > bounds.max_bytes && !first_alone)
            {
                break;
            }
            if batch_end > block.len() {
                if end > 0 {
                    break;
                }
                // Larger than the block: read again, it alone.
                let bytes = self.block(position, batch_end as u64, size)?;
                if bytes.len() < batch_end {
                    return Err(corrupt(next_offset, &"the file ends inside a batch"));
                }
                let end = SegmentEnd::after(position + batch_end as u64, size);
                return Ok(SegmentRead { bytes, next_offset: header.next_offset(), end });
            }
            next_offset = header.next_offset();
            end = batch_end;
        }
        let reached = SegmentEnd::after(position + end as u64, size);
        Ok(SegmentRead { bytes: block.slice(..end), next_offset, end: reached })
    }
}

impl SegmentEnd {
    const fn after(position: u64, size: u64) -> Self {
        if position >= size { Self::Reached } else { Self::NotReached }
    }
}

enum Skipped {
    /// The batch starts at this byte of the block.
    To(usize),
    /// It starts at or after this byte, beyond the block.
    Beyond(usize),
}

fn skip_to(block: &Bytes, offset: i64) -> Skipped {
    let mut at = 0_usize;
    while let Some(rest) = block.get(at..).filter(|rest| rest.len() >= HEADER_BYTES) {
        let Ok(header) = BatchHeader::parse(rest) else { break };
        if header.last_offset() >= offset {
            return Skipped::To(at);
        }
        at = at.saturating_add(header.size_in_bytes());
    }
    Skipped::Beyond(at)
}

/// The header at `at`, `None` when the block ends before or inside it.
fn header_at(block: &Bytes, at: usize, offset: i64) -> Result<Option<BatchHeader>, LogError> {
    match block.get(at..).filter(|rest| rest.len() >= HEADER_BYTES) {
        Some(rest) => BatchHeader::parse(rest).map(Some).map_err(|e| corrupt(offset, &e)),
        None => Ok(None),
    }
}

fn corrupt(offset: i64, reason: &dyn std::fmt::Display) -> LogError {
    LogError::Corrupt { offset, reason: reason.to_string() }
}

impl From<RecordError> for LogError {
    fn from(error: RecordError) -> Self {
        Self::InvalidBatch(error.to_string())
    }
}
