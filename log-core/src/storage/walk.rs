//! Walks over the batches of a log file, front to back, reading it in blocks.

use std::ops::RangeInclusive;
use std::sync::Arc;

use bytes::Bytes;

use super::disk::{DiskFile, DiskResult};
use crate::record::batch::HEADER_BYTES;
use crate::record::{Batch, BatchHeader, RecordError};

/// How much is read at once: a block read for headers alone should hold a few of them.
const HEADER_BLOCK_BYTES: usize = 64 << 10;
const BATCH_BLOCK_BYTES: usize = 1 << 20;

/// Where a batch's magic byte lies, and what it is.
const MAGIC: (usize, u8) = (16, 2);

/// A batch and where it starts in the file.
#[derive(Clone, Debug)]
pub(crate) struct Located<T> {
    pub(crate) position: u64,
    pub(crate) header: BatchHeader,
    pub(crate) content: T,
}

/// What comes next in a file.
#[derive(Clone, Debug)]
pub(crate) enum Step<T> {
    Batch(Located<T>),
    /// The walk reached its end between two batches.
    End,
    /// At the walk's position there is no whole batch.
    Broken {
        reason: RecordError,
    },
}

/// The offsets that may follow in a segment that begins at `base_offset`: those from `from` on that its indexes can name.
pub(crate) fn offsets_from(from: i64, base_offset: i64) -> RangeInclusive<i64> {
    from..=base_offset.saturating_add(i64::from(i32::MAX))
}

/// Whether a batch that is there in full may stand among these offsets. Its base offset is outside its CRC, so that alone proves nothing.
pub(crate) fn is_whole(bytes: &[u8], header: &BatchHeader, offsets: &RangeInclusive<i64>) -> bool {
    header.last_offset_delta >= 0
        && offsets.contains(&header.base_offset)
        && offsets.contains(&header.last_offset())
        && Batch::parse(bytes).is_ok_and(|batch| batch.verify_crc().is_ok())
}

/// See the module. Positions are bytes from the start of the file.
#[derive(Debug)]
pub(crate) struct Walk {
    file: Arc<dyn DiskFile>,
    end: u64,
    position: u64,
    block: Bytes,
    block_start: u64,
}

impl Walk {
    /// From `position`, where a batch must start, to `end`.
    pub(crate) fn new(file: Arc<dyn DiskFile>, position: u64, end: u64) -> Self {
        Self { file, end, position, block: Bytes::new(), block_start: position }
    }

    /// Where the next batch starts.
    pub(crate) const fn position(&self) -> u64 {
        self.position
    }

    /// The next batch's header; its records are not read, but must be within the end.
    pub(crate) fn next_header(&mut self) -> DiskResult<Step<()>> {
        if self.position >= self.end {
            return Ok(Step::End);
        }
        let bytes = self.bytes(HEADER_BYTES, HEADER_BLOCK_BYTES)?;
        Ok(match BatchHeader::parse(&bytes) {
            Ok(header) => self.advance(header, ()),
            Err(reason) => Step::Broken { reason },
        })
    }

    /// The next batch, whole. Its CRC is not checked.
    pub(crate) fn next_batch(&mut self) -> DiskResult<Step<Bytes>> {
        if self.position >= self.end {
            return Ok(Step::End);
        }
        let bytes = self.bytes(HEADER_BYTES, BATCH_BLOCK_BYTES)?;
        let header = match BatchHeader::parse(&bytes) {
            Ok(header) => header,
            Err(reason) => return Ok(Step::Broken { reason }),
        };
        // Checked against the file's size before it is read: a spoilt length reserves nothing.
        if let Some(broken) = self.beyond_end(&header) {
            return Ok(broken);
        }
        let bytes = self.bytes(header.size_in_bytes(), BATCH_BLOCK_BYTES)?;
        Ok(match Batch::parse(&bytes) {
            Ok(_) => self.advance(header, bytes),
            Err(reason) => Step::Broken { reason },
        })
    }

    /// Goes on behind bytes that hold no whole batch, with the next one that is whole, has the right
    /// CRC, and lies among `offsets`. `None`, and no move, when there is none in the next `within` bytes.
    pub(crate) fn skip_damage(
        &mut self,
        offsets: &RangeInclusive<i64>,
        within: u64,
    ) -> DiskResult<Option<Located<()>>> {
        // A damaged batch mostly has a sound length; what lies in its records is no batch of ours.
        let head = self.file.read_at(self.position, HEADER_BYTES)?;
        let length = head.get(8..12).and_then(|bytes| bytes.first_chunk().copied());
        let size = length.map(i32::from_be_bytes).and_then(|length| u64::try_from(length).ok());
        if let Some(size) = size
            && let Some(found) = self.whole_at(self.position.saturating_add(12 + size), offsets)?
        {
            return Ok(Some(found));
        }
        let mut at = self.position.saturating_add(1);
        let end = self.end.min(at.saturating_add(within));
        while at < end {
            let left = usize::try_from(end - at).unwrap_or(usize::MAX);
            let block = self.file.read_at(at, BATCH_BLOCK_BYTES.min(left))?;
            if block.len() < HEADER_BYTES {
                break;
            }
            let (place, magic) = MAGIC;
            for (start, header) in block.windows(HEADER_BYTES).enumerate() {
                if header.get(place) == Some(&magic)
                    && BatchHeader::parse(header)
                        .is_ok_and(|header| offsets.contains(&header.base_offset))
                    && let Some(found) = self.whole_at(at + start as u64, offsets)?
                {
                    return Ok(Some(found));
                }
            }
            at += (block.len() - HEADER_BYTES + 1) as u64;
        }
        Ok(None)
    }

    /// Goes to the batch at `position` if it is whole, and followed by another or the end.
    fn whole_at(
        &mut self,
        position: u64,
        offsets: &RangeInclusive<i64>,
    ) -> DiskResult<Option<Located<()>>> {
        if position >= self.end {
            return Ok(None);
        }
        let mut walk = Self::new(Arc::clone(&self.file), position, self.end);
        let Step::Batch(Located { header, content, .. }) = walk.next_batch()? else {
            return Ok(None);
        };
        if !is_whole(&content, &header, offsets) {
            return Ok(None);
        }
        if let Step::Batch(next) = walk.next_header()?
            && next.header.base_offset < header.next_offset()
        {
            return Ok(None);
        }
        self.position = position;
        Ok(Some(Located { position, header, content: () }))
    }

    fn advance<T>(&mut self, header: BatchHeader, content: T) -> Step<T> {
        if let Some(broken) = self.beyond_end(&header) {
            return broken;
        }
        let position = self.position;
        self.position += header.size_in_bytes() as u64;
        Step::Batch(Located { position, header, content })
    }

    fn beyond_end<T>(&self, header: &BatchHeader) -> Option<Step<T>> {
        let (expected, left) = (header.size_in_bytes(), self.end - self.position);
        if expected as u64 <= left {
            return None;
        }
        let actual = usize::try_from(left).unwrap_or(usize::MAX);
        let position = usize::try_from(self.position).unwrap_or(usize::MAX);
        let reason = RecordError::Truncated { position, expected, actual };
        Some(Step::Broken { reason })
    }

    /// `len` bytes from the present position, fewer before the end; reads a block when needed.
    fn bytes(&mut self, len: usize, block_bytes: usize) -> DiskResult<Bytes> {
        let left = usize::try_from(self.end - self.position).unwrap_or(usize::MAX);
        let len = len.min(left);
        let at = self.position.checked_sub(self.block_start).map(|at| at as usize);
        let held = |at: usize| at.checked_add(len).is_some_and(|end| end <= self.block.len());
        if !at.is_some_and(held) {
            self.block = self.file.read_at(self.position, len.max(block_bytes.min(left)))?;
            self.block_start = self.position;
        }
        let at = (self.position - self.block_start) as usize;
        let to = at.saturating_add(len).min(self.block.len());
        Ok(self.block.slice(at.min(to)..to))
    }
}

#[cfg(test)]
mod tests;
