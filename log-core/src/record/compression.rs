//! The codecs of a record batch.
//!
//! Each writes what Kafka's Java clients write and reads what they read. A codec's working memory
//! is kept between batches: hold one [`Decompressor`] or [`Compressor`] per worker.

mod gzip;
mod lz4;
mod snappy;
#[cfg(feature = "zstd")]
mod zstd;

use super::error::RecordError;

/// How the records of a batch are compressed, all as one block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    #[default]
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

impl Compression {
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The number in a batch's attributes.
    #[must_use]
    pub const fn id(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }

    /// Errors: `UnsupportedCompression` for all but 0 to 4.
    pub const fn from_id(id: u8) -> Result<Self, RecordError> {
        Ok(match id {
            0 => Self::None,
            1 => Self::Gzip,
            2 => Self::Snappy,
            3 => Self::Lz4,
            4 => Self::Zstd,
            _ => return Err(RecordError::UnsupportedCompression { id }),
        })
    }

    /// The name in a producer's `compression.type`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

impl std::fmt::Display for Compression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a codec stopped; [`Decompressor`] adds which codec it was.
#[derive(Debug)]
enum Fault {
    /// More than the limit came out.
    TooLarge,
    Invalid(String),
}

impl Fault {
    fn invalid(reason: impl Into<String>) -> Self {
        Self::Invalid(reason.into())
    }
}

/// Bytes that may still come out before the limit is passed.
///
/// A codec asks before it makes room, so a small input never claims more memory than it is
/// allowed to fill.
fn room(limit: usize, out: &[u8]) -> usize {
    limit.saturating_sub(out.len())
}

/// What a [`Decompressor`] keeps of its output buffer from one batch to the next.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// Decompresses the records of batches, one after the other.
#[derive(Default)]
pub struct Decompressor {
    gzip: gzip::Decoder,
    snappy: snappy::Decoder,
    #[cfg(feature = "zstd")]
    zstd: zstd::Decoder,
    out: Vec<u8>,
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decompressor").finish_non_exhaustive()
    }
}

impl Decompressor {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What `input` decompresses to: at most `limit` bytes, valid until the next call. Without
    /// compression that is `input` itself.
    /// Errors: `InvalidCompressedData`, `DecompressedTooLarge`; `UnsupportedCompression` for zstd
    /// in a build without it.
    pub fn decompress<'a>(
        &'a mut self,
        compression: Compression,
        input: &'a [u8],
        limit: usize,
    ) -> Result<&'a [u8], RecordError> {
        self.out.clear();
        self.out.shrink_to(KEPT_BYTES_MAX);
        let out = &mut self.out;
        let result = match compression {
            Compression::None if input.len() > limit => Err(Fault::TooLarge),
            Compression::None => return Ok(input),
            Compression::Gzip => self.gzip.decode(input, limit, out),
            Compression::Snappy => self.snappy.decode(input, limit, out),
            Compression::Lz4 => lz4::decode(input, limit, out),
            #[cfg(feature = "zstd")]
            Compression::Zstd => self.zstd.decode(input, limit, out),
            #[cfg(not(feature = "zstd"))]
            Compression::Zstd => {
                return Err(RecordError::UnsupportedCompression { id: compression.id() });
            }
        };
        match result {
            Ok(()) => Ok(&self.out),
            Err(Fault::TooLarge) => Err(RecordError::DecompressedTooLarge { limit }),
            Err(Fault::Invalid(reason)) => {
                Err(RecordError::InvalidCompressedData { compression, reason })
            }
        }
    }
}

/// Compresses the records of batches, one after the other, at each codec's default level.
#[derive(Default)]
pub struct Compressor {
    gzip: gzip::Encoder,
    snappy: snappy::Encoder,
    #[cfg(feature = "zstd")]
    zstd: zstd::Encoder,
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}

impl Compressor {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the compressed `input` to `out`.
    /// Errors: `InvalidCompressedData` if the codec fails, which only lack of memory makes it do;
    /// `UnsupportedCompression` for zstd in a build without it.
    pub fn compress(
        &mut self,
        compression: Compression,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), RecordError> {
        let result = match compression {
            Compression::None => {
                out.extend_from_slice(input);
                Ok(())
            }
            Compression::Gzip => self.gzip.encode(input, out),
            Compression::Snappy => self.snappy.encode(input, out),
            Compression::Lz4 => lz4::encode(input, out),
            #[cfg(feature = "zstd")]
            Compression::Zstd => self.zstd.encode(input, out),
            #[cfg(not(feature = "zstd"))]
            Compression::Zstd => {
                return Err(RecordError::UnsupportedCompression { id: compression.id() });
            }
        };
        result.map_err(|reason| RecordError::InvalidCompressedData { compression, reason })
    }
}

#[cfg(test)]
mod tests;
