use proptest::prelude::*;

use super::*;

fn compress(compression: Compression, plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Compressor::new().compress(compression, plain, &mut out).unwrap();
    out
}

fn supported() -> impl Iterator<Item = Compression> {
    Compression::ALL.into_iter().filter(|c| cfg!(feature = "zstd") || *c != Compression::Zstd)
}

/// Text-like bytes with repeats near and far, larger than every codec's block.
fn sample(length: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut bytes = Vec::with_capacity(length + 64);
    while bytes.len() < length {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let word = state >> 24;
        bytes.extend_from_slice(format!("field{word}=value{},", word * 7).as_bytes());
    }
    bytes.truncate(length);
    bytes
}

#[test]
fn every_codec_gives_back_what_it_took() {
    let mut decompressor = Decompressor::new();
    let mut compressor = Compressor::new();
    for compression in supported() {
        for length in [0, 1, 15, 16, 100, 32 << 10, (32 << 10) + 1, (64 << 10) + 1, 200_000] {
            let plain = sample(length);
            let mut packed = vec![7; 3];
            compressor.compress(compression, &plain, &mut packed).unwrap();
            assert_eq!(packed[..3], [7; 3], "what was there before stays");
            let result = decompressor.decompress(compression, &packed[3..], length);
            assert_eq!(result, Ok(plain.as_slice()), "{compression}, {length} bytes");
        }
    }
}

#[test]
fn the_limit_is_inclusive_and_stops_each_codec() {
    let plain = sample(100_000);
    for compression in supported() {
        let packed = compress(compression, &plain);
        let mut decompressor = Decompressor::new();
        let result = decompressor.decompress(compression, &packed, 100_000);
        assert_eq!(result.map(<[u8]>::len), Ok(100_000), "{compression}");
        for limit in [0, 1, 99_999] {
            let result = decompressor.decompress(compression, &packed, limit);
            let expected = Err(RecordError::DecompressedTooLarge { limit });
            assert_eq!(result, expected, "{compression}");
        }
    }
}

#[test]
fn a_bomb_costs_no_more_than_the_limit() {
    let plain = vec![0; 6 << 20];
    for compression in supported().filter(|&c| c != Compression::None) {
        let packed = compress(compression, &plain);
        let mut decompressor = Decompressor::new();
        let limit = 256 << 10;
        let result = decompressor.decompress(compression, &packed, limit);
        assert_eq!(result, Err(RecordError::DecompressedTooLarge { limit }), "{compression}");
        let held = decompressor.out.capacity();
        assert!(held <= limit + (64 << 10), "{compression} made room for {held} bytes");
    }
}

#[test]
fn a_large_batch_does_not_keep_its_buffer() {
    let mut decompressor = Decompressor::new();
    let large = compress(Compression::Lz4, &vec![1; 6 << 20]);
    decompressor.decompress(Compression::Lz4, &large, usize::MAX).unwrap();
    let small = compress(Compression::Lz4, &[1; 100]);
    decompressor.decompress(Compression::Lz4, &small, usize::MAX).unwrap();
    assert!(decompressor.out.capacity() <= KEPT_BYTES_MAX);
}

#[test]
fn data_that_is_cut_off_anywhere_is_refused() {
    let plain = sample(2000);
    for compression in supported().filter(|&c| c != Compression::None) {
        let packed = compress(compression, &plain);
        let mut decompressor = Decompressor::new();
        for end in 0..packed.len() {
            let result = decompressor.decompress(compression, &packed[..end], 10_000);
            // A cut inside the framing of the first snappy block looks like a shorter stream.
            let whole = compression == Compression::Snappy && (16..20).contains(&end);
            assert_eq!(result.is_ok_and(|out| out.is_empty()), whole, "{compression} at {end}");
        }
    }
}

#[test]
fn several_gzip_members_and_snappy_streams_are_one() {
    for compression in [Compression::Gzip, Compression::Snappy] {
        let mut packed = compress(compression, b"first, ");
        packed.extend_from_slice(&compress(compression, b"second"));
        let mut decompressor = Decompressor::new();
        let result = decompressor.decompress(compression, &packed, 100);
        assert_eq!(result, Ok(b"first, second".as_slice()), "{compression}");
    }
}

#[test]
fn snappy_without_framing_is_read_too() {
    let plain = sample(5000);
    let packed = snap::raw::Encoder::new().compress_vec(&plain).unwrap();
    let mut decompressor = Decompressor::new();
    let result = decompressor.decompress(Compression::Snappy, &packed, 5000);
    assert_eq!(result, Ok(plain.as_slice()));
}

#[test]
fn an_lz4_frame_with_dependent_blocks_is_refused() {
    use lz4_flex::frame::{BlockMode, FrameEncoder, FrameInfo};
    let info = FrameInfo::new().block_mode(BlockMode::Linked);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    std::io::Write::write_all(&mut encoder, &sample(1000)).unwrap();
    let packed = encoder.finish().unwrap();
    let result = Decompressor::new().decompress(Compression::Lz4, &packed, 1000).map(<[u8]>::len);
    assert!(matches!(result, Err(RecordError::InvalidCompressedData { .. })), "{result:?}");
}

#[test]
fn lz4_checksums_of_blocks_are_checked() {
    use lz4_flex::frame::{BlockMode, FrameEncoder, FrameInfo};
    let info = FrameInfo::new()
        .block_mode(BlockMode::Independent)
        .block_checksums(true)
        .content_checksum(true)
        .content_size(Some(1000));
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    std::io::Write::write_all(&mut encoder, &sample(1000)).unwrap();
    let mut packed = encoder.finish().unwrap();
    let mut decompressor = Decompressor::new();
    assert!(decompressor.decompress(Compression::Lz4, &packed, 1000).is_ok());
    let middle = packed.len() / 2;
    packed[middle] ^= 1;
    assert!(decompressor.decompress(Compression::Lz4, &packed, 1000).is_err());
}

proptest! {
    // Codecs are slow without optimisation.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_bytes_survive(
        plain in prop::collection::vec(any::<u8>(), 0..5000),
        repeats in 1_usize..20,
    ) {
        let plain = plain.repeat(repeats);
        for compression in supported() {
            let packed = compress(compression, &plain);
            let mut decompressor = Decompressor::new();
            let result = decompressor.decompress(compression, &packed, plain.len());
            prop_assert_eq!(result, Ok(plain.as_slice()));
        }
    }

    #[test]
    fn no_input_panics_or_passes_the_limit(
        noise in prop::collection::vec(any::<u8>(), 0..300),
        limit in 0_usize..2000,
    ) {
        let mut decompressor = Decompressor::new();
        for compression in Compression::ALL {
            if let Ok(out) = decompressor.decompress(compression, &noise, limit) {
                prop_assert!(out.len() <= limit);
            }
        }
    }

    #[test]
    fn damage_in_good_data_never_panics(
        at in any::<prop::sample::Index>(),
        flip in 1_u8..,
        limit in 0_usize..20_000,
    ) {
        let plain = sample(10_000);
        let mut decompressor = Decompressor::new();
        for compression in supported() {
            let mut packed = compress(compression, &plain);
            let at = at.index(packed.len());
            packed[at] ^= flip;
            if let Ok(out) = decompressor.decompress(compression, &packed, limit) {
                prop_assert!(out.len() <= limit);
            }
        }
    }
}
