//! Zstandard frames, decoded in one pass into the output: no window is kept beside it, whatever
//! size a frame announces.

use std::io::Cursor;

use zstd::bulk;

use super::Fault;

const LEVEL: i32 = 3;
const MAGIC: u32 = 0xFD2F_B528;
const SKIPPABLE_MAGIC: u32 = 0x184D_2A50;
/// The most that one block decompresses to.
const BLOCK_BYTES_MAX: usize = 128 << 10;

#[derive(Default)]
pub(super) struct Decoder {
    /// Made for the first frame: it takes 100 KB, and many a decompressor meets none.
    context: Option<bulk::Decompressor<'static>>,
}

impl Decoder {
    /// All frames one after the other; skippable ones are skipped.
    pub(super) fn decode(
        &mut self,
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let bound = bound(input).ok_or_else(|| Fault::invalid("not a sequence of zstd frames"))?;
        out.reserve_exact(bound.min(limit));
        let is_short = out.capacity() < bound;
        let context = match &mut self.context {
            Some(context) => context,
            none => {
                let made = bulk::Decompressor::new();
                none.insert(made.map_err(|error| Fault::Invalid(error.to_string()))?)
            }
        };
        match context.decompress_to_buffer(input, out) {
            // The buffer may have more room than was asked for.
            Ok(written) if written > limit => Err(Fault::TooLarge),
            Ok(_) => Ok(()),
            Err(error) => {
                let text = error.to_string();
                // The library gives its error codes as text only.
                let stopped_by_limit = is_short && text.contains("too small");
                Err(if stopped_by_limit { Fault::TooLarge } else { Fault::Invalid(text) })
            }
        }
    }
}

/// The most that `input` can decompress to, from the block headers alone (RFC 8878 §3.1.1).
/// Most writers of batches do not record a frame's content size.
/// None without a frame, or if one is not whole.
fn bound(mut input: &[u8]) -> Option<usize> {
    let (mut total, mut frames) = (0_usize, 0);
    while let Some((magic, rest)) = input.split_first_chunk::<4>() {
        let magic = u32::from_le_bytes(*magic);
        input = if magic == MAGIC {
            let (frame, rest) = frame_bound(rest)?;
            total = total.checked_add(frame)?;
            frames += 1;
            rest
        } else if magic & !0x0F == SKIPPABLE_MAGIC {
            let (length, rest) = rest.split_first_chunk::<4>()?;
            rest.get(u32::from_le_bytes(*length) as usize..)?
        } else {
            return None;
        };
    }
    (frames > 0 && input.is_empty()).then_some(total)
}

/// The bound of one frame behind its magic, and what follows the frame.
fn frame_bound(input: &[u8]) -> Option<(usize, &[u8])> {
    let (&descriptor, rest) = input.split_first()?;
    let single_segment = descriptor & 0x20 != 0;
    let window_bytes = usize::from(!single_segment);
    let dictionary_id_bytes = [0, 1, 2, 4].get(usize::from(descriptor & 3))?;
    let content_size_bytes = match descriptor >> 6 {
        0 => usize::from(single_segment),
        flag => 1 << flag,
    };
    let mut rest = rest.get(window_bytes + dictionary_id_bytes + content_size_bytes..)?;
    let mut total = 0_usize;
    loop {
        let (&[b0, b1, b2], after) = rest.split_first_chunk::<3>()?;
        let header = u32::from_le_bytes([b0, b1, b2, 0]);
        let size = (header >> 3) as usize;
        let (stored, regenerated) = match header >> 1 & 3 {
            0 => (size, size),
            1 => (1, size),
            2 => (size, BLOCK_BYTES_MAX),
            _ => return None,
        };
        rest = after.get(stored..)?;
        total = total.checked_add(regenerated)?;
        if header & 1 == 1 {
            break;
        }
    }
    let checksum_bytes = usize::from(descriptor & 4);
    Some((total, rest.get(checksum_bytes..)?))
}

#[derive(Default)]
pub(super) struct Encoder {
    context: Option<bulk::Compressor<'static>>,
}

impl Encoder {
    pub(super) fn encode(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let text = |error: std::io::Error| error.to_string();
        let context = match &mut self.context {
            Some(context) => context,
            none => none.insert(bulk::Compressor::new(LEVEL).map_err(text)?),
        };
        out.reserve(zstd::compress_bound(input.len()));
        let end = out.len() as u64;
        let mut place = Cursor::new(out);
        place.set_position(end);
        context.compress_to_buffer(input, &mut place).map(|_| ()).map_err(text)
    }
}
