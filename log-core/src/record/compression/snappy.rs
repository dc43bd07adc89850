//! Snappy in the framing of xerial's snappy-java: a 16-byte header, then blocks of a big-endian
//! length and raw snappy. Not the framing format of snappy itself.

use super::{Fault, room};

/// 0x82 "SNAPPY" 0x00, version 1, readable by version 1.
const HEADER: [u8; 16] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1];
const MAGIC_BYTES: usize = 8;
const VERSION_MIN: i32 = 1;
/// What goes into one block: snappy-java's default.
const BLOCK_BYTES: usize = 32 << 10;

#[derive(Default)]
pub(super) struct Decoder {
    raw: snap::raw::Decoder,
}

impl Decoder {
    /// Without the header all of `input` is one raw block, as snappy-java reads it. A header in
    /// place of a block starts a concatenated stream.
    pub(super) fn decode(
        &mut self,
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let Some(mut rest) = read_header(input)? else {
            return self.block(input, limit, out);
        };
        while let Some((length, block)) = rest.split_first_chunk::<4>() {
            if length.as_slice() == HEADER.split_at(4).0 {
                rest = read_header(rest)?
                    .ok_or_else(|| Fault::invalid("broken header of a concatenated stream"))?;
                continue;
            }
            let length = usize::try_from(i32::from_be_bytes(*length))
                .map_err(|_| Fault::invalid("negative block length"))?;
            let (block, after) = block
                .split_at_checked(length)
                .ok_or_else(|| Fault::invalid("data ends inside a block"))?;
            self.block(block, limit, out)?;
            rest = after;
        }
        // Fewer than four bytes at the end are no block; snappy-java stops there too.
        Ok(())
    }

    fn block(&mut self, block: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
        let invalid = |error: snap::Error| Fault::invalid(error.to_string());
        let size = snap::raw::decompress_len(block).map_err(invalid)?;
        if size > room(limit, out) {
            return Err(Fault::TooLarge);
        }
        // A copy of 64 bytes takes two at least: a larger claim is false, and not worth room.
        if size > block.len().saturating_mul(64) {
            return Err(Fault::invalid("block cannot hold the size that it claims"));
        }
        let start = out.len();
        out.resize(start + size, 0);
        let written = self
            .raw
            .decompress(block, out.get_mut(start..).unwrap_or_default())
            .map_err(invalid)?;
        out.truncate(start + written);
        Ok(())
    }
}

/// What follows the header; None if there is none.
fn read_header(input: &[u8]) -> Result<Option<&[u8]>, Fault> {
    if input.is_empty() {
        return Err(Fault::invalid("no data"));
    }
    let Some((header, rest)) = input.split_first_chunk::<16>() else { return Ok(None) };
    if header.split_at(MAGIC_BYTES).0 != HEADER.split_at(MAGIC_BYTES).0 {
        return Ok(None);
    }
    let [.., v0, v1, v2, v3, _, _, _, _] = *header;
    let version = i32::from_be_bytes([v0, v1, v2, v3]);
    if version < VERSION_MIN {
        return Err(Fault::invalid(format!("version {version}, expected 1 or more")));
    }
    Ok(Some(rest))
}

#[derive(Default)]
pub(super) struct Encoder {
    raw: Option<snap::raw::Encoder>,
}

impl Encoder {
    pub(super) fn encode(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let raw = self.raw.get_or_insert_with(snap::raw::Encoder::new);
        out.extend_from_slice(&HEADER);
        for plain in input.chunks(BLOCK_BYTES) {
            let length_at = out.len();
            let start = length_at + 4;
            out.resize(start + snap::raw::max_compress_len(plain.len()), 0);
            let block = out.get_mut(start..).unwrap_or_default();
            let length = raw.compress(plain, block).map_err(|error| error.to_string())?;
            out.truncate(start + length);
            if let Some(place) = out.get_mut(length_at..start) {
                place.copy_from_slice(&(length as u32).to_be_bytes());
            }
        }
        Ok(())
    }
}
