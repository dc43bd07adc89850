//! Records inside a batch, read without copying or allocating.
//!
//! A record (KIP-82, KIP-98; DefaultRecord): length of the rest as varint, attributes (one unused
//! byte), timestamp delta as varlong, offset delta as varint, key and value as varint length (-1:
//! null) and bytes, header count as varint, and per header a key (never null) and a value.

use super::batch::{BatchHeader, TimestampType};
use super::error::{InvalidBatch, RecordError};
use super::varint::Cursor;

/// One record; keys, values and headers lie in the batch's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    pub offset: i64,
    /// ms; the batch's greatest timestamp under `LogAppendTime`.
    pub timestamp: i64,
    /// Offset less the batch's base offset.
    pub offset_delta: i32,
    /// None is null, which differs from empty.
    pub key: Option<&'a [u8]>,
    /// None is null: a tombstone in a compacted topic.
    pub value: Option<&'a [u8]>,
    pub headers: Headers<'a>,
}

impl Record<'_> {
    /// Bytes of key, value and headers, without the lengths of key and value.
    #[must_use]
    pub fn payload_bytes(&self) -> usize {
        let length = |field: Option<&[u8]>| field.map_or(0, <[u8]>::len);
        length(self.key) + length(self.value) + self.headers.bytes.len()
    }
}

/// The headers of a record in their order, duplicates included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers<'a> {
    count: usize,
    bytes: &'a [u8],
}

/// A record header. The key is UTF-8 by contract but nobody checks it on produce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    pub key: &'a [u8],
    pub value: Option<&'a [u8]>,
}

impl<'a> Headers<'a> {
    #[inline]
    fn read(cursor: &mut Cursor<'a>) -> Result<Self, &'static str> {
        match cursor.varint() {
            Some(0) => Ok(Self { count: 0, bytes: &[] }),
            Some(count) => Self::check(count, cursor),
            None => Err("header count is cut off"),
        }
    }

    /// As [`Self::read`], of headers that were walked over before and end the record.
    #[inline]
    fn reread(cursor: &mut Cursor<'a>) -> Result<Self, &'static str> {
        let count = cursor.varint().ok_or("header count is cut off")?;
        let count = usize::try_from(count).map_err(|_| "negative header count")?;
        let bytes = cursor.take(cursor.remaining()).unwrap_or_default();
        Ok(Self { count, bytes })
    }

    /// Walks over the headers once, so that iterating over them cannot fail.
    fn check(count: i32, cursor: &mut Cursor<'a>) -> Result<Self, &'static str> {
        let count = usize::try_from(count).map_err(|_| "negative header count")?;
        let bytes = cursor.rest();
        // A header takes at least two bytes: no walk for a count that cannot be.
        if count > bytes.len() {
            return Err("more headers than bytes");
        }
        for _ in 0..count {
            let key = cursor.nullable_bytes().ok_or("header key is cut off")?;
            key.ok_or("header key is null")?;
            cursor.nullable_bytes().ok_or("header value is cut off")?;
        }
        Ok(Self { count, bytes })
    }

    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[must_use]
    pub const fn iter(&self) -> HeaderIter<'a> {
        HeaderIter { left: self.count, cursor: Cursor::new(self.bytes) }
    }
}

impl<'a> IntoIterator for Headers<'a> {
    type Item = Header<'a>;
    type IntoIter = HeaderIter<'a>;

    fn into_iter(self) -> HeaderIter<'a> {
        self.iter()
    }
}

/// See [`Headers::iter`].
#[derive(Clone, Debug)]
pub struct HeaderIter<'a> {
    left: usize,
    cursor: Cursor<'a>,
}

impl<'a> Iterator for HeaderIter<'a> {
    type Item = Header<'a>;

    fn next(&mut self) -> Option<Header<'a>> {
        self.left = self.left.checked_sub(1)?;
        let key = self.cursor.nullable_bytes()??;
        let value = self.cursor.nullable_bytes()?;
        Some(Header { key, value })
    }
}

/// What of the batch header the records depend on.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordBase {
    base_offset: i64,
    base_timestamp: i64,
    /// Under `LogAppendTime`, the time of all records.
    append_time: Option<i64>,
}

impl RecordBase {
    pub(super) const fn new(header: &BatchHeader) -> Self {
        Self {
            base_offset: header.base_offset,
            base_timestamp: header.base_timestamp,
            append_time: match header.timestamp_type() {
                TimestampType::CreateTime => None,
                TimestampType::LogAppendTime => Some(header.max_timestamp),
            },
        }
    }

    /// Reads the record at the front of `cursor` and moves behind it.
    #[inline]
    pub(super) fn read<'a>(&self, cursor: &mut Cursor<'a>) -> Result<Record<'a>, &'static str> {
        self.read_by(cursor, Headers::read)
    }

    /// As [`Self::read`], of a record that was read before: its headers are not walked over again.
    #[inline]
    pub(super) fn reread<'a>(&self, cursor: &mut Cursor<'a>) -> Option<Record<'a>> {
        self.read_by(cursor, Headers::reread).ok()
    }

    #[inline]
    fn read_by<'a>(
        &self,
        cursor: &mut Cursor<'a>,
        read_headers: impl FnOnce(&mut Cursor<'a>) -> Result<Headers<'a>, &'static str>,
    ) -> Result<Record<'a>, &'static str> {
        let size = cursor.varint().ok_or("size is cut off")?;
        let size = usize::try_from(size).map_err(|_| "negative size")?;
        let mut body = Cursor::new(cursor.take(size).ok_or("shorter than its size")?);
        body.byte().ok_or("attributes are cut off")?;
        let timestamp_delta = body.varlong().ok_or("timestamp delta is cut off")?;
        let offset_delta = body.varint().ok_or("offset delta is cut off")?;
        let key = body.nullable_bytes().ok_or("key is cut off")?;
        let value = body.nullable_bytes().ok_or("value is cut off")?;
        let headers = read_headers(&mut body)?;
        if body.remaining() != 0 {
            return Err("bytes follow the last header");
        }
        Ok(Record {
            offset: self.base_offset.wrapping_add(i64::from(offset_delta)),
            timestamp: self
                .append_time
                .unwrap_or_else(|| self.base_timestamp.wrapping_add(timestamp_delta)),
            offset_delta,
            key,
            value,
            headers,
        })
    }
}

/// The records of a batch in their order. Ends after the first error.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    base: RecordBase,
    cursor: Cursor<'a>,
    declared: i32,
    index: i32,
}

impl<'a> Records<'a> {
    /// Reads `region`, the uncompressed records of the batch with this header.
    #[must_use]
    pub const fn new(header: &BatchHeader, region: &'a [u8]) -> Self {
        Self {
            base: RecordBase::new(header),
            cursor: Cursor::new(region),
            declared: header.record_count,
            index: 0,
        }
    }

    /// Bytes not read yet.
    pub(super) const fn remaining(&self) -> usize {
        self.cursor.remaining()
    }

    #[inline]
    fn read(&mut self) -> Result<Record<'a>, RecordError> {
        let left = self.cursor.remaining();
        let record = match self.base.read(&mut self.cursor) {
            Ok(record) => record,
            Err(reason) => return Err(self.fault(left, reason)),
        };
        self.index += 1;
        if self.index == self.declared && self.cursor.remaining() != 0 {
            return Err(InvalidBatch::TrailingBytes(self.cursor.remaining()).into());
        }
        Ok(record)
    }

    /// Why no record could be read from the `left` bytes of the region.
    #[cold]
    fn fault(&self, left: usize, reason: &'static str) -> RecordError {
        let (declared, present) = (self.declared, self.index);
        if left == 0 {
            return InvalidBatch::MissingRecords { declared, present }.into();
        }
        RecordError::InvalidRecord { index: present, reason }
    }
}

impl<'a> Iterator for Records<'a> {
    /// Errors: `InvalidRecord`; `InvalidBatch` when count and bytes do not agree.
    type Item = Result<Record<'a>, RecordError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.index >= self.declared {
            return self.next_undeclared().map(Err);
        }
        let record = self.read();
        if record.is_err() {
            self.end();
        }
        Some(record)
    }
}

impl Records<'_> {
    /// Nothing more is yielded.
    fn end(&mut self) {
        (self.declared, self.cursor) = (0, Cursor::new(&[]));
    }

    /// What is wrong when the header declares no record, or no further one. Compaction may leave
    /// a batch without any, for its producer's state.
    #[cold]
    fn next_undeclared(&mut self) -> Option<RecordError> {
        let (declared, trailing) = (self.declared, self.cursor.remaining());
        if declared > 0 || (declared == 0 && trailing == 0) {
            return None;
        }
        self.end();
        Some(if declared < 0 {
            InvalidBatch::RecordCount(declared).into()
        } else {
            InvalidBatch::TrailingBytes(trailing).into()
        })
    }
}

#[cfg(test)]
mod tests;
