//! Kafka's primitive types, written.

use bytes::{BufMut, Bytes, BytesMut};

use super::TooLong;

/// Appends big-endian primitives.
pub(super) struct Writer {
    out: BytesMut,
}

impl Writer {
    pub(super) fn new() -> Self {
        // Most keys and values are shorter.
        Self { out: BytesMut::with_capacity(64) }
    }

    pub(super) fn finish(self) -> Bytes {
        self.out.freeze()
    }

    pub(super) fn u8(&mut self, value: u8) {
        self.out.put_u8(value);
    }

    pub(super) fn i16(&mut self, value: i16) {
        self.out.put_i16(value);
    }

    pub(super) fn i32(&mut self, value: i32) {
        self.out.put_i32(value);
    }

    pub(super) fn i64(&mut self, value: i64) {
        self.out.put_i64(value);
    }

    /// A count or a length in 32 bits. What is stored came in a frame, whose length has 31 bits.
    pub(super) fn length(&mut self, length: usize) {
        self.out.put_i32(i32::try_from(length).unwrap_or(i32::MAX));
    }

    /// An unsigned varint of seven bits a byte, low bits first.
    pub(super) fn uvarint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.out.put_u8((value & 0x7F) as u8 | 0x80);
            value >>= 7;
        }
        self.out.put_u8(value as u8);
    }

    /// Length in 16 bits, then UTF-8.
    pub(super) fn string(&mut self, field: &'static str, text: &str) -> Result<(), TooLong> {
        let length = i16::try_from(text.len()).map_err(|_| TooLong(field))?;
        self.out.put_i16(length);
        self.out.put_slice(text.as_bytes());
        Ok(())
    }

    /// Length −1 for none.
    pub(super) fn nullable_string(
        &mut self,
        field: &'static str,
        text: Option<&str>,
    ) -> Result<(), TooLong> {
        match text {
            Some(text) => self.string(field, text),
            None => {
                self.out.put_i16(-1);
                Ok(())
            }
        }
    }

    /// Length plus one as a varint, then UTF-8.
    pub(super) fn compact_string(&mut self, text: &str) {
        self.uvarint(text.len() as u64 + 1);
        self.out.put_slice(text.as_bytes());
    }

    /// Length 0 for none, else as [`Self::compact_string`].
    pub(super) fn compact_nullable_string(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.compact_string(text),
            None => self.uvarint(0),
        }
    }

    /// The number of elements plus one as a varint.
    pub(super) fn compact_count(&mut self, count: usize) {
        self.uvarint(count as u64 + 1);
    }

    /// Length plus one as a varint, then the bytes.
    pub(super) fn compact_bytes(&mut self, bytes: &[u8]) {
        self.compact_count(bytes.len());
        self.out.put_slice(bytes);
    }

    /// Sixteen bytes as they are.
    pub(super) fn uuid(&mut self, bytes: [u8; 16]) {
        self.out.put_slice(&bytes);
    }

    /// Length in 32 bits, then the bytes.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.out.put_slice(bytes);
    }

    /// One tagged field: number, length, bytes.
    pub(super) fn tag(&mut self, number: u64, bytes: &[u8]) {
        self.uvarint(number);
        self.uvarint(bytes.len() as u64);
        self.out.put_slice(bytes);
    }
}
