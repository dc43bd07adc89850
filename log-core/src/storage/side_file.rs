//! The header that side index files share; see docs/formats.md.

use bytes::Bytes;

pub(crate) const HEADER_BYTES: usize = 36;
const VERSION: u16 = 1;
/// Where the header's own CRC begins.
const HEADER_CRC_AT: usize = 32;

/// What kind of entries a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SideKind {
    pub(crate) magic: [u8; 4],
    pub(crate) entry_bytes: usize,
}

/// A file's entries and the offsets that they speak of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SideContent {
    /// Inclusive.
    pub(crate) covered_from: i64,
    /// Exclusive.
    pub(crate) covered_to: i64,
    pub(crate) entries: Bytes,
}

/// The header of a file with these entries, of which `entries_crc` is the CRC-32C.
pub(crate) fn header(
    kind: SideKind,
    covered: std::ops::Range<i64>,
    count: u32,
    entries_crc: u32,
) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    let fields = [
        &kind.magic[..],
        &VERSION.to_be_bytes(),
        &u16::try_from(kind.entry_bytes).unwrap_or(u16::MAX).to_be_bytes(),
        &covered.start.to_be_bytes(),
        &covered.end.to_be_bytes(),
        &count.to_be_bytes(),
        &entries_crc.to_be_bytes(),
    ]
    .concat();
    let crc = crc32c::crc32c(&fields).to_be_bytes();
    for (place, byte) in header.iter_mut().zip(fields.into_iter().chain(crc)) {
        *place = byte;
    }
    header
}

/// The whole file.
pub(crate) fn encode(kind: SideKind, content: &SideContent) -> Vec<u8> {
    let count = u32::try_from(content.entries.len() / kind.entry_bytes).unwrap_or(u32::MAX);
    let covered = content.covered_from..content.covered_to;
    let header = header(kind, covered, count, crc32c::crc32c(&content.entries));
    [&header[..], &content.entries].concat()
}

/// What a file of this kind holds; `None` when it is another, spoilt, or cut.
pub(crate) fn decode(kind: SideKind, file: &Bytes) -> Option<SideContent> {
    let fields = file.get(..HEADER_CRC_AT)?;
    let (header_crc, _) = file.get(HEADER_CRC_AT..)?.split_first_chunk()?;
    if crc32c::crc32c(fields) != u32::from_be_bytes(*header_crc) {
        return None;
    }
    let (magic, fields) = fields.split_first_chunk()?;
    let (version, fields) = fields.split_first_chunk()?;
    let (entry_bytes, fields) = fields.split_first_chunk()?;
    let (covered_from, fields) = fields.split_first_chunk()?;
    let (covered_to, fields) = fields.split_first_chunk()?;
    let (count, crc) = fields.split_first_chunk()?;
    if *magic != kind.magic
        || u16::from_be_bytes(*version) != VERSION
        || usize::from(u16::from_be_bytes(*entry_bytes)) != kind.entry_bytes
    {
        return None;
    }
    let len = usize::try_from(u32::from_be_bytes(*count)).ok()?.checked_mul(kind.entry_bytes)?;
    let end = HEADER_BYTES.checked_add(len).filter(|end| *end <= file.len())?;
    let entries = file.slice(HEADER_BYTES..end);
    if crc32c::crc32c(&entries) != u32::from_be_bytes(crc.try_into().ok()?) {
        return None;
    }
    let covered_from = i64::from_be_bytes(*covered_from);
    let covered_to = i64::from_be_bytes(*covered_to);
    (covered_from <= covered_to).then_some(SideContent { covered_from, covered_to, entries })
}

#[cfg(test)]
mod tests;
