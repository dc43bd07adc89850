//! Writing a frame as segments: what is encoded here, and between it the record bytes as they are.
//!
//! Record bytes are never copied: a Fetch answer leaves as one vectored write over [`Frame`].

use bytes::{BufMut, Bytes, BytesMut};

use super::primitives::{Str, Uuid, Wire};

/// The record bytes of one partition: one slice of a request, or the pieces of an answer.
#[derive(Clone, Debug)]
pub struct Records(Pieces);

#[derive(Clone, Debug)]
enum Pieces {
    One(Bytes),
    Many(Vec<Bytes>),
}

impl Records {
    /// No bytes, which is not null.
    pub const EMPTY: Self = Self(Pieces::One(Bytes::new()));

    /// Bytes in all pieces.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pieces().iter().map(Bytes::len).sum()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pieces in order; some may be empty.
    #[must_use]
    pub fn pieces(&self) -> &[Bytes] {
        match &self.0 {
            Pieces::One(piece) => std::slice::from_ref(piece),
            Pieces::Many(pieces) => pieces,
        }
    }

    /// The bytes in one slice. Copies only when there is more than one piece; what was decoded
    /// has one.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        match &self.0 {
            Pieces::One(piece) => piece.clone(),
            Pieces::Many(pieces) => pieces.concat().into(),
        }
    }
}

impl From<Bytes> for Records {
    fn from(piece: Bytes) -> Self {
        Self(Pieces::One(piece))
    }
}

impl From<Vec<Bytes>> for Records {
    fn from(pieces: Vec<Bytes>) -> Self {
        Self(Pieces::Many(pieces))
    }
}

impl PartialEq for Records {
    /// Equal bytes, however they are cut.
    fn eq(&self, other: &Self) -> bool {
        let bytes = |records: &'_ Self| records.to_bytes();
        self.len() == other.len() && bytes(self) == bytes(other)
    }
}

/// A message that its version cannot carry: always a fault of the code that built it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    #[error("{field} is null, which this version does not allow")]
    Null { field: &'static str },
    #[error("expected a string of at most {} bytes, found {found}", i16::MAX)]
    StringTooLong { found: usize },
    #[error("expected at most {} bytes or elements, found {found}", i32::MAX)]
    TooLarge { found: usize },
}

/// Collects one frame. The first fault sticks and comes out of [`Self::finish`], so that the
/// encoders need no checks of their own.
#[derive(Debug)]
pub struct SegmentedBuf {
    /// All that was encoded, without the pieces.
    encoded: BytesMut,
    /// Pieces with the position in `encoded` that they stand before, ascending.
    pieces: Vec<(usize, Bytes)>,
    pieces_len: usize,
    fault: Option<EncodeError>,
}

/// Bytes of the length in front of every frame.
const LENGTH_BYTES: usize = 4;

/// Pieces up to this size are copied: an entry in the vectored write costs as much.
const COPY_BYTES_MAX: usize = 128;

/// A finished frame with its length in front, ready for a vectored write.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    segments: Vec<Bytes>,
}

impl Frame {
    /// The segments in order; none is empty.
    #[must_use]
    pub fn segments(&self) -> &[Bytes] {
        &self.segments
    }

    #[must_use]
    pub fn into_segments(self) -> Vec<Bytes> {
        self.segments
    }

    /// Bytes of the frame, its length field included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.segments.iter().map(Bytes::len).sum()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The whole frame in one piece; copies when there are several segments.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        match self.segments.as_slice() {
            [one] => one.clone(),
            many => many.concat().into(),
        }
    }
}

impl Default for SegmentedBuf {
    fn default() -> Self {
        Self::with_capacity(256)
    }
}

impl SegmentedBuf {
    /// Starts a frame; its length is filled in by [`Self::finish`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a frame with room for `bytes` besides records.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        let mut encoded = BytesMut::with_capacity(bytes.max(LENGTH_BYTES));
        encoded.put_bytes(0, LENGTH_BYTES);
        Self { encoded, pieces: Vec::new(), pieces_len: 0, fault: None }
    }

    /// Bytes so far, the length field included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.encoded.len() + self.pieces_len
    }

    /// True while the frame holds nothing but its length field.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == LENGTH_BYTES
    }

    /// Fills in the length and gives the frame away, or the first fault met.
    pub fn finish(mut self) -> Result<Frame, EncodeError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let length = self.len() - LENGTH_BYTES;
        let Ok(field) = i32::try_from(length) else {
            return Err(EncodeError::TooLarge { found: length });
        };
        if let Some(front) = self.encoded.first_chunk_mut::<LENGTH_BYTES>() {
            *front = field.to_be_bytes();
        }
        let encoded = self.encoded.freeze();
        let mut segments = Vec::with_capacity(2 * self.pieces.len() + 1);
        let mut from = 0;
        for (position, piece) in self.pieces {
            if position > from {
                segments.push(encoded.slice(from..position));
                from = position;
            }
            segments.push(piece);
        }
        if encoded.len() > from {
            segments.push(encoded.slice(from..));
        }
        Ok(Frame { segments })
    }

    fn fail(&mut self, fault: EncodeError) {
        self.fault.get_or_insert(fault);
    }

    /// Notes that `field` is null though the version does not allow it.
    pub fn null_in(&mut self, field: &'static str) {
        self.fail(EncodeError::Null { field });
    }

    pub fn i8(&mut self, value: i8) {
        self.encoded.put_i8(value);
    }

    pub fn i16(&mut self, value: i16) {
        self.encoded.put_i16(value);
    }

    pub fn u16(&mut self, value: u16) {
        self.encoded.put_u16(value);
    }

    pub fn i32(&mut self, value: i32) {
        self.encoded.put_i32(value);
    }

    pub fn i64(&mut self, value: i64) {
        self.encoded.put_i64(value);
    }

    pub fn f64(&mut self, value: f64) {
        self.encoded.put_f64(value);
    }

    pub fn bool(&mut self, value: bool) {
        self.encoded.put_u8(u8::from(value));
    }

    pub fn uuid(&mut self, value: Uuid) {
        self.encoded.put_slice(&value.0);
    }

    pub fn unsigned_varint(&mut self, mut value: u32) {
        while value > 0x7F {
            self.encoded.put_u8((value & 0x7F) as u8 | 0x80);
            value >>= 7;
        }
        self.encoded.put_u8(value as u8);
    }

    fn compact_length(&mut self, length: usize) {
        match u32::try_from(length) {
            Ok(length) if length < i32::MAX as u32 => self.unsigned_varint(length + 1),
            _ => self.fail(EncodeError::TooLarge { found: length }),
        }
    }

    fn length(&mut self, length: usize, flexible: bool) {
        if flexible {
            return self.compact_length(length);
        }
        match i32::try_from(length) {
            Ok(length) => self.i32(length),
            Err(_) => self.fail(EncodeError::TooLarge { found: length }),
        }
    }

    fn null_length(&mut self, flexible: bool) {
        if flexible { self.unsigned_varint(0) } else { self.i32(-1) }
    }

    pub fn string(&mut self, value: &str, flexible: bool) {
        let Ok(length) = i16::try_from(value.len()) else {
            return self.fail(EncodeError::StringTooLong { found: value.len() });
        };
        if flexible {
            self.compact_length(value.len())
        } else {
            self.i16(length)
        }
        self.encoded.put_slice(value.as_bytes());
    }

    pub fn nullable_string(&mut self, value: Option<&Str>, flexible: bool) {
        match value {
            Some(value) => self.string(value, flexible),
            None if flexible => self.unsigned_varint(0),
            None => self.i16(-1),
        }
    }

    /// Large values are taken along as they are, not copied.
    pub fn bytes(&mut self, value: &Bytes, flexible: bool) {
        self.length(value.len(), flexible);
        self.piece(value);
    }

    pub fn nullable_bytes(&mut self, value: Option<&Bytes>, flexible: bool) {
        match value {
            Some(value) => self.bytes(value, flexible),
            None => self.null_length(flexible),
        }
    }

    pub fn records(&mut self, value: &Records, flexible: bool) {
        self.length(value.len(), flexible);
        value.pieces().iter().for_each(|piece| self.piece(piece));
    }

    pub fn nullable_records(&mut self, value: Option<&Records>, flexible: bool) {
        match value {
            Some(value) => self.records(value, flexible),
            None => self.null_length(flexible),
        }
    }

    fn piece(&mut self, piece: &Bytes) {
        if piece.len() <= COPY_BYTES_MAX {
            return self.encoded.put_slice(piece);
        }
        self.pieces_len += piece.len();
        self.pieces.push((self.encoded.len(), piece.clone()));
    }

    pub fn array<T>(
        &mut self,
        elements: &[T],
        flexible: bool,
        mut element: impl FnMut(&mut Self, &T),
    ) {
        self.length(elements.len(), flexible);
        elements.iter().for_each(|each| element(self, each));
    }

    pub fn nullable_array<T>(
        &mut self,
        elements: Option<&Vec<T>>,
        flexible: bool,
        element: impl FnMut(&mut Self, &T),
    ) {
        match elements {
            Some(elements) => self.array(elements, flexible, element),
            None => self.null_length(flexible),
        }
    }

    /// A presence byte (1, or -1 for null), then the struct.
    pub fn nullable_struct<T: Wire>(&mut self, value: Option<&T>, version: i16) {
        match value {
            Some(value) => {
                self.i8(1);
                value.encode(version, self);
            }
            None => self.i8(-1),
        }
    }

    /// One tagged field: tag, size, and what `content` writes (KIP-482).
    pub fn tagged_field(&mut self, tag: u32, content: impl FnOnce(&mut Self)) {
        self.unsigned_varint(tag);
        let at = self.encoded.len();
        let pieces_before = self.pieces.len();
        let before = self.len();
        content(self);
        let Ok(size) = u32::try_from(self.len() - before) else {
            return self.fail(EncodeError::TooLarge { found: self.len() - before });
        };
        // The size stands in front but is known only now: write it behind, then turn it forward.
        let end = self.encoded.len();
        self.unsigned_varint(size);
        let size_bytes = self.encoded.len() - end;
        if let Some(field) = self.encoded.get_mut(at..) {
            field.rotate_right(size_bytes);
        }
        for (position, _) in self.pieces.iter_mut().skip(pieces_before) {
            *position += size_bytes;
        }
    }
}

#[cfg(test)]
mod tests;
