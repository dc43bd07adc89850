//! Zigzag varints as in Protocol Buffers: records are made of them (KIP-98).

/// The longest encoding of an `i32`.
pub const VARINT_BYTES_MAX: usize = 5;
/// The longest encoding of an `i64`.
pub const VARLONG_BYTES_MAX: usize = 10;

/// A cursor over borrowed bytes; every read is bounds-checked and moves it only on success.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
}

impl<'a> Cursor<'a> {
    #[inline]
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    #[inline]
    pub(crate) const fn remaining(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(first)
    }

    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.bytes.split_at_checked(count)?;
        self.bytes = tail;
        Some(head)
    }

    #[inline]
    pub(crate) fn varint(&mut self) -> Option<i32> {
        // Most lengths and deltas fit one byte, most of the others two.
        let (value, rest) = match self.bytes {
            [first, rest @ ..] if *first < 0x80 => (u32::from(*first), rest),
            [first, second, rest @ ..] if *second < 0x80 => {
                (u32::from(first & 0x7F) | u32::from(*second) << 7, rest)
            }
            bytes => {
                let (value, length) = read_varint(bytes)?;
                self.bytes = bytes.get(length..)?;
                return Some(value);
            }
        };
        self.bytes = rest;
        Some(unzigzag32(value))
    }

    #[inline]
    pub(crate) fn varlong(&mut self) -> Option<i64> {
        let (value, rest) = match self.bytes {
            [first, rest @ ..] if *first < 0x80 => (u64::from(*first), rest),
            [first, second, rest @ ..] if *second < 0x80 => {
                (u64::from(first & 0x7F) | u64::from(*second) << 7, rest)
            }
            bytes => {
                let (value, length) = read_varlong(bytes)?;
                self.bytes = bytes.get(length..)?;
                return Some(value);
            }
        };
        self.bytes = rest;
        Some(unzigzag64(value))
    }

    /// Bytes after a varint length; a negative length is null.
    #[inline]
    pub(crate) fn nullable_bytes(&mut self) -> Option<Option<&'a [u8]>> {
        let length = self.varint()?;
        match usize::try_from(length) {
            Ok(length) => self.take(length).map(Some),
            Err(_) => Some(None),
        }
    }
}

/// Reads an `i32` from the front; returns it and the bytes it took.
/// None when the bytes end early, or when a fifth byte does not end the number.
#[must_use]
pub fn read_varint(bytes: &[u8]) -> Option<(i32, usize)> {
    let mut value = 0_u32;
    for (index, &byte) in bytes.iter().take(VARINT_BYTES_MAX).enumerate() {
        value |= u32::from(byte & 0x7F) << (7 * index);
        if byte < 0x80 {
            return Some((unzigzag32(value), index + 1));
        }
    }
    None
}

/// Reads an `i64` from the front; returns it and the bytes it took.
/// None when the bytes end early, or when a tenth byte does not end the number.
#[must_use]
pub fn read_varlong(bytes: &[u8]) -> Option<(i64, usize)> {
    let mut value = 0_u64;
    for (index, &byte) in bytes.iter().take(VARLONG_BYTES_MAX).enumerate() {
        value |= u64::from(byte & 0x7F) << (7 * index);
        if byte < 0x80 {
            return Some((unzigzag64(value), index + 1));
        }
    }
    None
}

/// Appends `value` to `out`.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, value: i32) {
    let mut rest = zigzag32(value);
    while rest >= 0x80 {
        out.push((rest & 0x7F) as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Appends `value` to `out`.
#[inline]
pub fn put_varlong(out: &mut Vec<u8>, value: i64) {
    let mut rest = zigzag64(value);
    while rest >= 0x80 {
        out.push((rest & 0x7F) as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// The bytes that [`put_varint`] appends: 1 to 5.
#[inline]
#[must_use]
pub const fn varint_bytes(value: i32) -> usize {
    // 0 takes one byte too.
    let bits = 32 - (zigzag32(value) | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

/// The bytes that [`put_varlong`] appends: 1 to 10.
#[inline]
#[must_use]
pub const fn varlong_bytes(value: i64) -> usize {
    let bits = 64 - (zigzag64(value) | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

const fn zigzag32(value: i32) -> u32 {
    ((value << 1) ^ (value >> 31)) as u32
}

const fn zigzag64(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

const fn unzigzag32(value: u32) -> i32 {
    (value >> 1) as i32 ^ -((value & 1) as i32)
}

const fn unzigzag64(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests;
