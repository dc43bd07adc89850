//! Kafka's primitive types, read from bytes that anybody may have written.

use std::sync::Arc;

use bytes::Bytes;

use super::RecordError;

/// Reads big-endian primitives; every length is checked against the bytes that are left.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    /// The `any_` methods read the compact forms.
    pub(crate) flexible: bool,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(whole: &'a [u8]) -> Self {
        Self { rest: whole, flexible: false }
    }

    fn take(&mut self, length: usize, field: &'static str) -> Result<&'a [u8], RecordError> {
        let (taken, rest) =
            self.rest.split_at_checked(length).ok_or(RecordError::Truncated(field))?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], RecordError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(RecordError::Truncated(field))?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, RecordError> {
        Ok(u8::from_be_bytes(self.array(field)?))
    }

    pub(crate) fn i16(&mut self, field: &'static str) -> Result<i16, RecordError> {
        Ok(i16::from_be_bytes(self.array(field)?))
    }

    pub(crate) fn i32(&mut self, field: &'static str) -> Result<i32, RecordError> {
        Ok(i32::from_be_bytes(self.array(field)?))
    }

    pub(crate) fn i64(&mut self, field: &'static str) -> Result<i64, RecordError> {
        Ok(i64::from_be_bytes(self.array(field)?))
    }

    pub(crate) fn skip(&mut self, length: usize, field: &'static str) -> Result<(), RecordError> {
        self.take(length, field).map(drop)
    }

    pub(crate) fn uuid(&mut self, field: &'static str) -> Result<[u8; 16], RecordError> {
        self.array(field)
    }

    fn uvarint(&mut self, field: &'static str) -> Result<u32, RecordError> {
        let mut value = 0_u32;
        for shift in (0..35).step_by(7) {
            let byte = self.u8(field)?;
            let bits = u32::from(byte & 0x7F);
            // The fifth byte carries the last four bits.
            if shift == 28 && bits > 0x0F {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(RecordError::Truncated(field))
    }

    fn text(&mut self, length: usize, field: &'static str) -> Result<Arc<str>, RecordError> {
        let bytes = self.take(length, field)?;
        std::str::from_utf8(bytes).map(Arc::from).map_err(|_| RecordError::NotUtf8(field))
    }

    /// A length of 16 bits; `None` below zero.
    fn short_length(&mut self, field: &'static str) -> Result<Option<usize>, RecordError> {
        Ok(usize::try_from(self.i16(field)?).ok())
    }

    /// A length plus one as a varint; `None` for zero.
    fn compact_length(&mut self, field: &'static str) -> Result<Option<usize>, RecordError> {
        Ok((self.uvarint(field)? as usize).checked_sub(1))
    }

    pub(crate) fn string(&mut self, field: &'static str) -> Result<Arc<str>, RecordError> {
        let length = self.short_length(field)?.ok_or(RecordError::Null(field))?;
        self.text(length, field)
    }

    pub(crate) fn compact_string(&mut self, field: &'static str) -> Result<Arc<str>, RecordError> {
        let length = self.compact_length(field)?.ok_or(RecordError::Null(field))?;
        self.text(length, field)
    }

    pub(crate) fn any_string(&mut self, field: &'static str) -> Result<Arc<str>, RecordError> {
        self.any_nullable_string(field)?.ok_or(RecordError::Null(field))
    }

    pub(crate) fn any_nullable_string(
        &mut self,
        field: &'static str,
    ) -> Result<Option<Arc<str>>, RecordError> {
        let length =
            if self.flexible { self.compact_length(field)? } else { self.short_length(field)? };
        length.map(|length| self.text(length, field)).transpose()
    }

    /// A length of 32 bits, or a compact one; `None` for null.
    fn any_nullable_length(&mut self, field: &'static str) -> Result<Option<usize>, RecordError> {
        if self.flexible {
            self.compact_length(field)
        } else {
            Ok(usize::try_from(self.i32(field)?).ok())
        }
    }

    fn any_length(&mut self, field: &'static str) -> Result<usize, RecordError> {
        self.any_nullable_length(field)?.ok_or(RecordError::Null(field))
    }

    /// A copy: what is kept for long must not hold the batch that it came in.
    pub(crate) fn any_bytes(&mut self, field: &'static str) -> Result<Bytes, RecordError> {
        let length = self.any_length(field)?;
        self.take(length, field).map(Bytes::copy_from_slice)
    }

    /// The number of elements of an array, each of at least `element_min` bytes.
    pub(crate) fn any_count(
        &mut self,
        field: &'static str,
        element_min: usize,
    ) -> Result<usize, RecordError> {
        self.any_nullable_count(field, element_min)?.ok_or(RecordError::Null(field))
    }

    /// As [`Self::any_count`]; `None` for null.
    pub(crate) fn any_nullable_count(
        &mut self,
        field: &'static str,
        element_min: usize,
    ) -> Result<Option<usize>, RecordError> {
        let Some(count) = self.any_nullable_length(field)? else { return Ok(None) };
        match count.checked_mul(element_min) {
            Some(bytes) if bytes <= self.rest.len() => Ok(Some(count)),
            _ => Err(RecordError::Truncated(field)),
        }
    }

    /// Gives each tagged field to `field`.
    pub(crate) fn tags(&mut self, mut field: impl FnMut(u32, &[u8])) -> Result<(), RecordError> {
        for _ in 0..self.uvarint("tagged fields")? {
            let number = self.uvarint("tag")?;
            let length = self.uvarint("tag length")? as usize;
            field(number, self.take(length, "tagged field")?);
        }
        Ok(())
    }

    /// Skips tagged fields, where there are any.
    pub(crate) fn any_tags(&mut self) -> Result<(), RecordError> {
        if self.flexible { self.tags(|_, _| {}) } else { Ok(()) }
    }
}
