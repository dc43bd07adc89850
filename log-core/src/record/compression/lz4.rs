//! LZ4 frames as Kafka's Lz4BlockInputStream takes them: one frame, independent blocks, no
//! dictionary. The blocks are decoded straight into the output.

use std::hash::Hasher;
use std::io::Write;

use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
use twox_hash::XxHash32;

use super::{Fault, room};

const MAGIC: [u8; 4] = 0x184D_2204_u32.to_le_bytes();
const UNCOMPRESSED_BIT: u32 = 1 << 31;
const CHECKSUM_BYTES: usize = 4;
/// LZ4 cannot expand further: each byte of a match length stands for 255.
const RATIO_MAX: usize = 255;
/// What the last sequence of a block may add to that.
const RATIO_SLACK: usize = 64;

struct Descriptor {
    block_bytes_max: usize,
    has_block_checksums: bool,
}

/// What follows the frame is ignored, as is a checksum over the content: the batch has its own.
pub(super) fn decode(input: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
    let (descriptor, mut rest) = read_descriptor(input)?;
    loop {
        let (header, after) = rest.split_first_chunk::<4>().ok_or_else(ends_early)?;
        let header = u32::from_le_bytes(*header);
        let length = (header & !UNCOMPRESSED_BIT) as usize;
        if length == 0 {
            return Ok(());
        }
        if length > descriptor.block_bytes_max {
            return Err(Fault::invalid("block is larger than the frame allows"));
        }
        let (block, after) = after.split_at_checked(length).ok_or_else(ends_early)?;
        rest = after;
        if descriptor.has_block_checksums {
            let (stored, after) =
                rest.split_first_chunk::<CHECKSUM_BYTES>().ok_or_else(ends_early)?;
            if xxhash32(block) != u32::from_le_bytes(*stored) {
                return Err(Fault::invalid("block checksum does not fit"));
            }
            rest = after;
        }
        if header & UNCOMPRESSED_BIT == 0 {
            decode_block(block, descriptor.block_bytes_max, limit, out)?;
        } else if length > room(limit, out) {
            return Err(Fault::TooLarge);
        } else {
            out.extend_from_slice(block);
        }
    }
}

fn decode_block(
    block: &[u8],
    block_bytes_max: usize,
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let start = out.len();
    let most = block_bytes_max.min(block.len() * RATIO_MAX + RATIO_SLACK);
    let given = most.min(room(limit, out));
    out.resize(start + given, 0);
    let place = out.get_mut(start..).unwrap_or_default();
    match lz4_flex::block::decompress_into(block, place) {
        Ok(written) => {
            out.truncate(start + written);
            Ok(())
        }
        // Short of room for what the block may hold at most: the limit is what stopped it.
        Err(lz4_flex::block::DecompressError::OutputTooSmall { .. }) if given < most => {
            Err(Fault::TooLarge)
        }
        Err(error) => Err(Fault::invalid(error.to_string())),
    }
}

fn ends_early() -> Fault {
    Fault::invalid("stream ended prematurely")
}

fn read_descriptor(input: &[u8]) -> Result<(Descriptor, &[u8]), Fault> {
    let (magic, rest) = input.split_first_chunk::<4>().ok_or_else(ends_early)?;
    if *magic != MAGIC {
        return Err(Fault::invalid("not an lz4 frame"));
    }
    let &[flags, block, ..] = rest else { return Err(ends_early()) };
    let [version, independent, block_checksums, content_size] =
        [flags >> 6, flags >> 5 & 1, flags >> 4 & 1, flags >> 3 & 1];
    if version != 1 {
        return Err(Fault::invalid(format!("frame version {version}, expected 1")));
    }
    // Java consumers could not read such a batch, so it is not taken either.
    if independent == 0 {
        return Err(Fault::invalid("dependent blocks are not supported"));
    }
    if flags & 3 != 0 || block & 0x8F != 0 {
        return Err(Fault::invalid("reserved bits are set"));
    }
    let block_bytes_max = match block >> 4 {
        size @ 4..=7 => 1_usize << (8 + 2 * size),
        size => return Err(Fault::invalid(format!("block size {size}, expected 4 to 7"))),
    };
    let described = 2 + 8 * usize::from(content_size);
    let (described, rest) = rest.split_at_checked(described).ok_or_else(ends_early)?;
    let (&checksum, rest) = rest.split_first().ok_or_else(ends_early)?;
    if (xxhash32(described) >> 8) as u8 != checksum {
        return Err(Fault::invalid("frame descriptor is corrupt"));
    }
    Ok((Descriptor { block_bytes_max, has_block_checksums: block_checksums == 1 }, rest))
}

fn xxhash32(bytes: &[u8]) -> u32 {
    let mut hash = XxHash32::with_seed(0);
    hash.write(bytes);
    hash.finish_32()
}

pub(super) fn encode(input: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let info = FrameInfo::new().block_mode(BlockMode::Independent).block_size(BlockSize::Max64KB);
    let mut encoder = FrameEncoder::with_frame_info(info, out);
    encoder.write_all(input).map_err(|error| error.to_string())?;
    // An empty input still makes a frame: the header comes with the first write or the end.
    encoder.finish().map(|_| ()).map_err(|error| error.to_string())
}
