//! Frames: taking them out of what was read, and writing them.

use bytes::{Buf, BufMut, BytesMut};

use super::command::{RemotingCommand, SerializeType};
use super::segments::SegmentedOut;
use super::{binary_header, json_header};
use crate::json::JsonError;
use crate::limits::{FRAME_BYTES_MAX, HEADER_WORD_BYTES};

const LENGTH_BYTES: usize = 4;

/// Why a connection cannot go on: after any of these the place of the next frame is unknown or not
/// to be trusted, and the connection is closed, as the original does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The first four bytes are no possible length. A TLS hello or an HTTP request ends here.
    #[error("frame length {length} is outside 4..={max}")]
    Length {
        /// What the four bytes say.
        length: i32,
        /// What is allowed, without the four bytes.
        max: usize,
    },
    /// The header would end after its frame.
    #[error("header length {header} does not fit a frame of {frame} bytes")]
    HeaderLength {
        /// Length of the header.
        header: usize,
        /// Length of the frame without its first four bytes.
        frame: usize,
    },
    /// The serialize type is neither 0 (JSON) nor 1 (ROCKETMQ).
    #[error("serialize type {0} is neither 0 (JSON) nor 1 (ROCKETMQ)")]
    SerializeType(u8),
    /// The header is no JSON object of the known shape.
    #[error("header: {0}")]
    JsonHeader(#[from] JsonError),
    /// The binary header ends too early.
    #[error("binary header ends within its {part}")]
    BinaryHeader {
        /// Which part is cut.
        part: &'static str,
    },
}

/// Why a command cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The binary header has 16 bits for the code.
    #[error("code {0} does not fit a binary header")]
    Code(i32),
    /// Longer than a frame or one of its fields can be.
    #[error("{0} bytes do not fit a frame or its field")]
    Length(usize),
}

/// Takes frames out of a read buffer.
#[derive(Clone, Copy, Debug)]
pub struct Decoder {
    frame_bytes_max: usize,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new(FRAME_BYTES_MAX)
    }
}

impl Decoder {
    /// Accepts frames of up to `frame_bytes_max` bytes, the four length bytes included.
    #[must_use]
    pub fn new(frame_bytes_max: usize) -> Self {
        Self { frame_bytes_max: frame_bytes_max.min(FRAME_BYTES_MAX) }
    }

    /// Takes the next frame; `None` when it is not whole yet. The body shares the buffer's memory.
    ///
    /// Lengths are checked as soon as they are there, long before the frame is whole, and nothing
    /// is reserved for a frame that has not come: the buffer grows with what was read.
    ///
    /// # Errors
    /// The connection is to be closed, see [`FrameError`].
    pub fn decode(&self, buffer: &mut BytesMut) -> Result<Option<RemotingCommand>, FrameError> {
        let Some((length, rest)) = buffer.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = self.checked_length(i32::from_be_bytes(*length))?;
        let Some((word, _)) = rest.split_first_chunk::<HEADER_WORD_BYTES>() else {
            return Ok(None);
        };
        let [serialize, high, middle, low] = *word;
        let serialize = serialize_type(serialize)?;
        let header_length = u32::from_be_bytes([0, high, middle, low]) as usize;
        if header_length > length - HEADER_WORD_BYTES {
            return Err(FrameError::HeaderLength { header: header_length, frame: length });
        }
        if buffer.len() < LENGTH_BYTES + length {
            return Ok(None);
        }
        let mut frame = buffer.split_to(LENGTH_BYTES + length);
        frame.advance(LENGTH_BYTES + HEADER_WORD_BYTES);
        let header = frame.split_to(header_length);
        let mut command = match serialize {
            SerializeType::Json => json_header::decode(&header)?,
            SerializeType::Binary => binary_header::decode(&header)?,
        };
        command.body = frame.freeze();
        Ok(Some(command))
    }

    fn checked_length(&self, announced: i32) -> Result<usize, FrameError> {
        let max = self.frame_bytes_max.saturating_sub(LENGTH_BYTES);
        usize::try_from(announced)
            .ok()
            .filter(|length| (HEADER_WORD_BYTES..=max).contains(length))
            .ok_or(FrameError::Length { length: announced, max })
    }
}

fn serialize_type(byte: u8) -> Result<SerializeType, FrameError> {
    match byte {
        0 => Ok(SerializeType::Json),
        1 => Ok(SerializeType::Binary),
        _ => Err(FrameError::SerializeType(byte)),
    }
}

impl RemotingCommand {
    /// Appends this command as a frame.
    ///
    /// # Errors
    /// It does not fit a frame; `out` is then as it was.
    pub fn encode(&self, out: &mut SegmentedOut) -> Result<(), EncodeError> {
        self.encode_head(self.body.len(), out)?;
        out.put_shared(self.body.clone());
        Ok(())
    }

    /// Appends this command as a frame with `body` in the place of its own.
    ///
    /// # Errors
    /// It does not fit a frame; `out` is then as it was.
    pub fn encode_with_body(
        &self,
        body: SegmentedOut,
        out: &mut SegmentedOut,
    ) -> Result<(), EncodeError> {
        self.encode_head(body.len(), out)?;
        out.append(body);
        Ok(())
    }

    fn encode_head(&self, body_bytes: usize, out: &mut SegmentedOut) -> Result<(), EncodeError> {
        let tail = out.tail();
        let start = tail.len();
        tail.put_bytes(0, LENGTH_BYTES + HEADER_WORD_BYTES);
        let written = self.encode_header(tail).and_then(|()| {
            let header = tail.len() - start - LENGTH_BYTES - HEADER_WORD_BYTES;
            frame_start(self.serialize, header, body_bytes)
        });
        match written {
            Ok(words) => {
                if let Some(place) = tail.get_mut(start..start + words.len()) {
                    place.copy_from_slice(&words);
                }
                Ok(())
            }
            Err(error) => {
                tail.truncate(start);
                Err(error)
            }
        }
    }

    fn encode_header(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        match self.serialize {
            SerializeType::Json => {
                json_header::encode(self, out);
                Ok(())
            }
            SerializeType::Binary => binary_header::encode(self, out),
        }
    }
}

/// The eight bytes before a header.
fn frame_start(
    serialize: SerializeType,
    header_bytes: usize,
    body_bytes: usize,
) -> Result<[u8; LENGTH_BYTES + HEADER_WORD_BYTES], EncodeError> {
    let length = HEADER_WORD_BYTES.saturating_add(header_bytes).saturating_add(body_bytes);
    if length > FRAME_BYTES_MAX - LENGTH_BYTES {
        return Err(EncodeError::Length(length));
    }
    let too_long = |_| EncodeError::Length(length);
    let [a, b, c, d] = u32::try_from(length).map_err(too_long)?.to_be_bytes();
    let [_, high, middle, low] = u32::try_from(header_bytes).map_err(too_long)?.to_be_bytes();
    let serialize = match serialize {
        SerializeType::Json => 0,
        SerializeType::Binary => 1,
    };
    Ok([a, b, c, d, serialize, high, middle, low])
}

#[cfg(test)]
mod tests;
