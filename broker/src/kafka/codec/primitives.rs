//! Reading the protocol's primitive types from a frame (KIP-482 for the flexible forms).
//!
//! Nothing here trusts the peer: each length is compared with the bytes that are left before
//! anything is reserved for it, and a fault is a [`DecodeError`], never a panic. Byte fields are
//! slices of the frame.

use std::sync::Arc;

use bytes::Bytes;
use duolog_log_core::ids::TopicId;

use super::segments::Records;

/// A string of a message: cloned from request to answer and from the metadata image for free, and
/// it does not keep the frame alive that it came from.
pub type Str = Arc<str>;

/// A uuid of a message. All that a broker meets but one name a topic.
pub type Uuid = TopicId;

/// Structs and arrays that one frame may hold in all: what 100 MiB of empty elements would take
/// in memory is far more than the frame itself.
pub const ELEMENTS_MAX: usize = 1 << 20;

/// The longest string, in bytes: Kafka's bound, which holds for the compact form too.
const STRING_BYTES_MAX: usize = i16::MAX as usize;

/// A frame that does not hold the message it claims to hold; the connection is closed for it, as
/// the peer does, since nothing in it can be answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("expected {wanted} more bytes, found {left}")]
    Short { wanted: usize, left: usize },
    #[error("expected a length of 0 or more, or -1 where null is allowed, found {found}")]
    Length { found: i64 },
    #[error("null in a field that may not be null")]
    Null,
    #[error("expected a string of at most {STRING_BYTES_MAX} bytes, found {found}")]
    StringTooLong { found: usize },
    #[error("a variable length number is longer than 32 bits")]
    Varint,
    #[error("expected at most {ELEMENTS_MAX} array elements in a frame")]
    TooManyElements,
    #[error("{left} bytes are left after the message")]
    Trailing { left: usize },
    #[error("expected a version from {min} to {max}, found {found}")]
    Version { found: i16, min: i16, max: i16 },
}

/// A type of the schema table: the body of a message or a struct inside one.
pub trait Wire: Sized {
    /// No encoding in any version is shorter.
    const BYTES_MIN: usize;

    /// Reads the struct as `version` of its message lays it out.
    fn decode(reader: &mut Reader<'_>, version: i16) -> Result<Self, DecodeError>;

    /// Writes what `version` knows of the struct and leaves out the rest.
    fn encode(&self, version: i16, out: &mut super::segments::SegmentedBuf);
}

/// Takes a frame apart from front to back.
#[derive(Debug)]
pub struct Reader<'a> {
    frame: &'a Bytes,
    rest: &'a [u8],
    elements_left: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the first byte of `frame`.
    #[must_use]
    pub fn new(frame: &'a Bytes) -> Self {
        Self { frame, rest: frame, elements_left: ELEMENTS_MAX }
    }

    /// Bytes not read yet.
    #[must_use]
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// What is not read yet, as a slice of the frame.
    #[must_use]
    pub fn rest(&self) -> Bytes {
        self.frame.slice_ref(self.rest)
    }

    /// Refuses bytes after the message.
    pub fn finish(&self) -> Result<(), DecodeError> {
        match self.left() {
            0 => Ok(()),
            left => Err(DecodeError::Trailing { left }),
        }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            return Err(DecodeError::Short { wanted: count, left: self.rest.len() });
        };
        self.rest = rest;
        Ok(taken)
    }

    fn array_of<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let Some((taken, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(DecodeError::Short { wanted: N, left: self.rest.len() });
        };
        self.rest = rest;
        Ok(*taken)
    }

    pub fn i8(&mut self) -> Result<i8, DecodeError> {
        self.array_of().map(i8::from_be_bytes)
    }

    pub fn i16(&mut self) -> Result<i16, DecodeError> {
        self.array_of().map(i16::from_be_bytes)
    }

    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array_of().map(u16::from_be_bytes)
    }

    pub fn i32(&mut self) -> Result<i32, DecodeError> {
        self.array_of().map(i32::from_be_bytes)
    }

    pub fn i64(&mut self) -> Result<i64, DecodeError> {
        self.array_of().map(i64::from_be_bytes)
    }

    pub fn f64(&mut self) -> Result<f64, DecodeError> {
        self.array_of().map(f64::from_be_bytes)
    }

    /// Any byte but 0 is true, as for the peer.
    pub fn bool(&mut self) -> Result<bool, DecodeError> {
        self.i8().map(|byte| byte != 0)
    }

    pub fn uuid(&mut self) -> Result<Uuid, DecodeError> {
        self.array_of().map(TopicId)
    }

    /// An unsigned number in groups of seven bits, lowest first, of at most five bytes.
    pub fn unsigned_varint(&mut self) -> Result<u32, DecodeError> {
        let mut value = 0_u32;
        for shift in [0_u32, 7, 14, 21, 28] {
            let [byte] = self.array_of::<1>()?;
            let bits = u32::from(byte & 0x7F);
            if shift == 28 && byte > 0x0F {
                return Err(DecodeError::Varint);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError::Varint)
    }

    /// A compact length: 0 is null, n + 1 stands for n.
    fn compact_length(&mut self) -> Result<Option<usize>, DecodeError> {
        let length = self.unsigned_varint()?;
        // Java reads a length above i32::MAX as a negative one and refuses it likewise.
        if length > i32::MAX as u32 {
            return Err(DecodeError::Length { found: i64::from(length) - 1 });
        }
        Ok((length as usize).checked_sub(1))
    }

    fn length(found: i64) -> Result<Option<usize>, DecodeError> {
        if found == -1 {
            return Ok(None);
        }
        usize::try_from(found).map(Some).map_err(|_| DecodeError::Length { found })
    }

    /// Only -1 (0 in the compact form) is null.
    pub fn nullable_string(&mut self, flexible: bool) -> Result<Option<Str>, DecodeError> {
        let length = if flexible {
            self.compact_length()?
        } else {
            let found = self.i16()?;
            Self::length(i64::from(found))?
        };
        let Some(length) = length else { return Ok(None) };
        if length > STRING_BYTES_MAX {
            return Err(DecodeError::StringTooLong { found: length });
        }
        // What is not UTF-8 is replaced as Java does, not refused: client ids in other encodings
        // are met in the field, and a name with a replacement character in it is not legal.
        Ok(Some(String::from_utf8_lossy(self.take(length)?).into()))
    }

    pub fn string(&mut self, flexible: bool) -> Result<Str, DecodeError> {
        self.nullable_string(flexible)?.ok_or(DecodeError::Null)
    }

    /// A slice of the frame. Only -1 (0 in the compact form) is null.
    pub fn nullable_bytes(&mut self, flexible: bool) -> Result<Option<Bytes>, DecodeError> {
        let length = if flexible {
            self.compact_length()?
        } else {
            let found = self.i32()?;
            Self::length(i64::from(found))?
        };
        let Some(length) = length else { return Ok(None) };
        Ok(Some(self.frame.slice_ref(self.take(length)?)))
    }

    pub fn bytes(&mut self, flexible: bool) -> Result<Bytes, DecodeError> {
        self.nullable_bytes(flexible)?.ok_or(DecodeError::Null)
    }

    pub fn nullable_records(&mut self, flexible: bool) -> Result<Option<Records>, DecodeError> {
        Ok(self.nullable_bytes(flexible)?.map(Records::from))
    }

    pub fn records(&mut self, flexible: bool) -> Result<Records, DecodeError> {
        self.bytes(flexible).map(Records::from)
    }

    /// Reads elements of at least `bytes_min` bytes each (0 counts as 1).
    ///
    /// The count is checked against the bytes left and against [`ELEMENTS_MAX`], and no more
    /// memory is reserved ahead than those bytes themselves take (case B01).
    pub fn nullable_array<T>(
        &mut self,
        flexible: bool,
        bytes_min: usize,
        mut element: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Option<Vec<T>>, DecodeError> {
        let count = if flexible {
            self.compact_length()?
        } else {
            let found = self.i32()?;
            Self::length(i64::from(found))?
        };
        let Some(count) = count else { return Ok(None) };
        let wanted = count.saturating_mul(bytes_min.max(1));
        if wanted > self.left() {
            return Err(DecodeError::Short { wanted, left: self.left() });
        }
        self.elements_left =
            self.elements_left.checked_sub(count).ok_or(DecodeError::TooManyElements)?;
        let mut elements = Vec::with_capacity(capacity_for::<T>(count, self.left()));
        for _ in 0..count {
            elements.push(element(self)?);
        }
        Ok(Some(elements))
    }

    pub fn array<T>(
        &mut self,
        flexible: bool,
        bytes_min: usize,
        element: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        self.nullable_array(flexible, bytes_min, element)?.ok_or(DecodeError::Null)
    }

    /// A struct behind its presence byte: 1, or -1 for null.
    pub fn nullable_struct<T: Wire>(&mut self, version: i16) -> Result<Option<T>, DecodeError> {
        match self.i8()? {
            -1 => Ok(None),
            1 => T::decode(self, version).map(Some),
            found => Err(DecodeError::Length { found: i64::from(found) }),
        }
    }

    /// Reads a section of tagged fields: `known` gets each tag with a reader over exactly its
    /// bytes and says whether it took them; what it did not take is skipped (KIP-482).
    pub fn tagged_fields(
        &mut self,
        mut known: impl FnMut(u32, &mut Self) -> Result<bool, DecodeError>,
    ) -> Result<(), DecodeError> {
        let count = self.unsigned_varint()?;
        // A tag and a size take two bytes, so the loop is bounded by what was received.
        let wanted = (count as usize).saturating_mul(2);
        if wanted > self.left() {
            return Err(DecodeError::Short { wanted, left: self.left() });
        }
        for _ in 0..count {
            let tag = self.unsigned_varint()?;
            let size = self.unsigned_varint()?;
            let field = self.take(size as usize)?;
            let mut within =
                Reader { frame: self.frame, rest: field, elements_left: self.elements_left };
            if known(tag, &mut within)? {
                within.finish()?;
            }
            self.elements_left = within.elements_left;
        }
        Ok(())
    }

    /// Skips a section of tagged fields of which none is known.
    pub fn skip_tagged_fields(&mut self) -> Result<(), DecodeError> {
        self.tagged_fields(|_, _| Ok(false))
    }
}

/// How many of `count` elements to reserve room for: those that take no more memory than the
/// bytes `left`, or a few. A vector that needs more grows as the elements really come.
fn capacity_for<T>(count: usize, left: usize) -> usize {
    let affordable = left / size_of::<T>().max(1);
    count.min(affordable.max(4))
}

#[cfg(test)]
mod tests;
