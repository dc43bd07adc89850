//! Gzip members (RFC 1952) around raw deflate; the member is read and written here so that the
//! deflate state can be used again.

use flate2::{Compress, Crc, Decompress, FlushCompress, FlushDecompress, Status};

use super::{Fault, room};

/// Magic, deflate, no flags, no time, no hints, unknown system: as the JDK writes it.
const HEADER: [u8; 10] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF];
const TRAILER_BYTES: usize = 8;
/// Deflate cannot expand further: 258 bytes for two bits.
const RATIO_MAX: usize = 1032;
const FIRST_CHUNK_BYTES: usize = 16 << 10;

const FLAG_HEADER_CRC: u8 = 2;
const FLAG_EXTRA: u8 = 4;
const FLAG_NAME: u8 = 8;
const FLAG_COMMENT: u8 = 16;
const FLAGS_RESERVED: u8 = 0xE0;

#[derive(Default)]
pub(super) struct Decoder {
    inflate: Option<Decompress>,
}

impl Decoder {
    /// All members one after the other; what follows a member and starts no other is ignored, as
    /// `GZIPInputStream` does.
    pub(super) fn decode(
        &mut self,
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let mut rest = read_header(input).ok_or_else(|| Fault::invalid("no gzip header"))?;
        reserve_by_trailer(input, limit, out);
        loop {
            rest = self.decode_member(rest, limit, out)?;
            match read_header(rest) {
                Some(member) => rest = member,
                None => return Ok(()),
            }
        }
    }

    fn decode_member<'a>(
        &mut self,
        mut input: &'a [u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<&'a [u8], Fault> {
        let inflate = self.inflate.get_or_insert_with(|| Decompress::new(false));
        inflate.reset(false);
        let start = out.len();
        loop {
            if out.len() > limit {
                return Err(Fault::TooLarge);
            }
            if out.len() == out.capacity() {
                // One byte over the limit shows that there is more.
                out.reserve_exact(out.len().max(FIRST_CHUNK_BYTES).min(room(limit, out) + 1));
            }
            let before = (inflate.total_in(), out.len());
            let status = inflate
                .decompress_vec(input, out, FlushDecompress::None)
                .map_err(|error| Fault::invalid(error.to_string()))?;
            let read = (inflate.total_in() - before.0) as usize;
            input = input.get(read..).unwrap_or_default();
            if status == Status::StreamEnd {
                break;
            }
            if read == 0 && out.len() == before.1 && out.len() < out.capacity() {
                return Err(Fault::invalid("data ends inside a gzip member"));
            }
        }
        if out.len() > limit {
            return Err(Fault::TooLarge);
        }
        let written = out.get(start..).unwrap_or_default();
        check_trailer(input, written)
    }
}

/// The size in the last four bytes is a hint: right for the usual single member, never trusted
/// beyond what deflate can expand to.
fn reserve_by_trailer(input: &[u8], limit: usize, out: &mut Vec<u8>) {
    if let Some(&size) = input.last_chunk::<4>() {
        let size = u32::from_le_bytes(size) as usize;
        let possible = input.len().saturating_mul(RATIO_MAX).min(limit);
        if size <= possible {
            out.reserve_exact(size + 1);
        }
    }
}

fn check_trailer<'a>(input: &'a [u8], written: &[u8]) -> Result<&'a [u8], Fault> {
    let (trailer, rest) = input
        .split_first_chunk::<TRAILER_BYTES>()
        .ok_or_else(|| Fault::invalid("data ends inside a gzip trailer"))?;
    let [c0, c1, c2, c3, s0, s1, s2, s3] = *trailer;
    let mut crc = Crc::new();
    crc.update(written);
    if crc.sum() != u32::from_le_bytes([c0, c1, c2, c3]) {
        return Err(Fault::invalid("gzip crc does not fit"));
    }
    if written.len() as u32 != u32::from_le_bytes([s0, s1, s2, s3]) {
        return Err(Fault::invalid("gzip size does not fit"));
    }
    Ok(rest)
}

/// What follows the header of a member; None if there is no whole one.
fn read_header(input: &[u8]) -> Option<&[u8]> {
    let (fixed, mut rest) = input.split_first_chunk::<10>()?;
    let [0x1F, 0x8B, 8, flags, ..] = *fixed else { return None };
    if flags & FLAGS_RESERVED != 0 {
        return None;
    }
    if flags & FLAG_EXTRA != 0 {
        let (length, after) = rest.split_first_chunk::<2>()?;
        rest = after.get(usize::from(u16::from_le_bytes(*length))..)?;
    }
    for flag in [FLAG_NAME, FLAG_COMMENT] {
        if flags & flag != 0 {
            let end = rest.iter().position(|&byte| byte == 0)?;
            rest = rest.get(end + 1..)?;
        }
    }
    if flags & FLAG_HEADER_CRC != 0 {
        let covered = input.get(..input.len() - rest.len())?;
        let (stored, after) = rest.split_first_chunk::<2>()?;
        let mut crc = Crc::new();
        crc.update(covered);
        if crc.sum() as u16 != u16::from_le_bytes(*stored) {
            return None;
        }
        rest = after;
    }
    Some(rest)
}

#[derive(Default)]
pub(super) struct Encoder {
    deflate: Option<Compress>,
}

impl Encoder {
    pub(super) fn encode(&mut self, mut input: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let deflate = self
            .deflate
            .get_or_insert_with(|| Compress::new(flate2::Compression::default(), false));
        deflate.reset();
        let mut crc = Crc::new();
        crc.update(input);
        out.extend_from_slice(&HEADER);
        loop {
            out.reserve(input.len() / 2 + 64);
            let before = deflate.total_in();
            let status = deflate
                .compress_vec(input, out, FlushCompress::Finish)
                .map_err(|error| error.to_string())?;
            let read = (deflate.total_in() - before) as usize;
            input = input.get(read..).unwrap_or_default();
            if status == Status::StreamEnd {
                break;
            }
        }
        out.extend_from_slice(&crc.sum().to_le_bytes());
        out.extend_from_slice(&crc.amount().to_le_bytes());
        Ok(())
    }
}
