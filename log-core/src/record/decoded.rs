//! A batch that is decompressed once and read many times.

use bytes::Bytes;

use super::batch::{Batch, BatchHeader, HEADER_BYTES};
use super::compression::{Compression, Decompressor};
use super::error::RecordError;
use super::record::{Record, RecordBase, Records};
use super::varint::Cursor;

/// The records of one batch, uncompressed and checked, with random access by offset.
///
/// Of an uncompressed batch it is a slice of the batch's own buffer, which it keeps alive; of a
/// compressed one it owns exactly the decompressed bytes.
#[derive(Clone, Debug)]
pub struct DecodedBatch {
    header: BatchHeader,
    region: Bytes,
    /// Where each record starts in the region.
    starts: Box<[u32]>,
}

impl DecodedBatch {
    /// As [`Self::decode`], of a batch whose CRC fits: for those who act on what it says, or vouch
    /// for it.
    /// Errors: `CrcMismatch` too.
    pub fn decode_verified(
        batch: &Bytes,
        decompressor: &mut Decompressor,
        limit: usize,
    ) -> Result<Self, RecordError> {
        Batch::parse(batch)?.verify_crc()?;
        Self::decode(batch, decompressor, limit)
    }

    /// Decodes one whole batch; `limit` bounds the decompressed records in bytes. The CRC is not
    /// checked: it was when the batch was written, and damage since shows in the records or not.
    /// Errors: as [`Batch::parse`], [`Decompressor::decompress`] and [`Records`].
    pub fn decode(
        batch: &Bytes,
        decompressor: &mut Decompressor,
        limit: usize,
    ) -> Result<Self, RecordError> {
        let parsed = Batch::parse(batch)?;
        let header = *parsed.header();
        let compression = header.compression()?;
        // Starts are u32, so that an index costs four bytes a record.
        let limit = limit.min(u32::MAX as usize);
        let plain = decompressor.decompress(compression, parsed.records_region(), limit)?;
        let starts = starts(&header, plain)?;
        let region = match compression {
            Compression::None => batch.slice(HEADER_BYTES..header.size_in_bytes()),
            _ => Bytes::copy_from_slice(plain),
        };
        Ok(Self { header, region, starts })
    }

    #[must_use]
    pub const fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The buffer that keys, values and headers of all records lie in.
    #[must_use]
    pub const fn region(&self) -> &Bytes {
        &self.region
    }

    /// How many records there are: fewer than offsets once a log is compacted.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.starts.len()
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Bytes of memory that holding this batch costs, the shared buffer's part included.
    #[must_use]
    pub const fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.region.len() + self.starts.len() * size_of::<u32>()
    }

    /// All records in their order.
    #[must_use]
    pub fn iter(&self) -> DecodedRecords<'_> {
        self.iter_at(0)
    }

    /// The records from the first one at or after `offset` on; none if all lie before it.
    #[must_use]
    pub fn iter_from(&self, offset: i64) -> DecodedRecords<'_> {
        self.iter_at(self.index_at(offset))
    }

    /// The record with exactly this offset.
    #[must_use]
    pub fn record_at(&self, offset: i64) -> Option<Record<'_>> {
        self.record(self.index_at(offset)).filter(|record| record.offset == offset)
    }

    /// The `index`-th record, counted from 0.
    #[must_use]
    pub fn record(&self, index: usize) -> Option<Record<'_>> {
        let start = *self.starts.get(index)? as usize;
        let mut cursor = Cursor::new(self.region.get(start..)?);
        RecordBase::new(&self.header).reread(&mut cursor)
    }

    fn iter_at(&self, index: usize) -> DecodedRecords<'_> {
        let start = self.starts.get(index).map_or(self.region.len(), |&start| start as usize);
        DecodedRecords {
            base: RecordBase::new(&self.header),
            cursor: Cursor::new(self.region.get(start..).unwrap_or_default()),
            left: self.starts.len().saturating_sub(index),
        }
    }

    /// The index of the first record at or after `offset`.
    fn index_at(&self, offset: i64) -> usize {
        let delta = offset.saturating_sub(self.header.base_offset);
        let Ok(guess) = usize::try_from(delta) else { return 0 };
        // In a batch as produced, the record's place is its delta.
        if self.record(guess).is_some_and(|record| record.offset == offset) {
            return guess;
        }
        // Compaction left gaps; offsets still rise.
        self.partition_point(|record| record.offset < offset)
    }

    fn partition_point(&self, is_before: impl Fn(&Record<'_>) -> bool) -> usize {
        let (mut low, mut high) = (0, self.starts.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.record(middle).is_some_and(|record| is_before(&record)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

impl<'a> IntoIterator for &'a DecodedBatch {
    type Item = Record<'a>;
    type IntoIter = DecodedRecords<'a>;

    fn into_iter(self) -> DecodedRecords<'a> {
        self.iter()
    }
}

/// Walks the whole region once: after that, reading any record again cannot fail.
fn starts(header: &BatchHeader, region: &[u8]) -> Result<Box<[u32]>, RecordError> {
    let mut records = Records::new(header, region);
    // A record takes seven bytes at least, whatever count the header claims.
    let most = region.len() / 7;
    let mut starts =
        Vec::with_capacity(most.min(usize::try_from(header.record_count).unwrap_or(0)));
    loop {
        let start = region.len() - records.remaining();
        match records.next() {
            Some(record) => record?,
            None => return Ok(starts.into_boxed_slice()),
        };
        starts.push(start as u32);
    }
}

/// See [`DecodedBatch::iter`].
#[derive(Clone, Debug)]
pub struct DecodedRecords<'a> {
    base: RecordBase,
    cursor: Cursor<'a>,
    left: usize,
}

impl<'a> Iterator for DecodedRecords<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        self.left = self.left.checked_sub(1)?;
        self.base.reread(&mut self.cursor)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for DecodedRecords<'_> {}

#[cfg(test)]
mod tests;
