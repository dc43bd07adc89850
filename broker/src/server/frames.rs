//! Kafka's length-delimited frames.

use bytes::{Buf, Bytes};
use tokio::net::tcp::OwnedReadHalf;
use tokio::time::Instant;

use super::foreign;
use super::memory::{RequestMemory, Room};
use super::read_buffer::{FIRST_READ_BYTES, Input, ReadBuffer};

/// In front of each frame.
pub const LENGTH_BYTES: usize = 4;

/// Why a connection's input ended.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The length field cannot be one: another protocol, or nonsense (case B18).
    #[error("frame length {length}, expected 1 to {max}; {hint}")]
    Length {
        /// As read.
        length: i32,
        /// The bound.
        max: i32,
        /// What the first bytes look like.
        hint: &'static str,
    },
    /// The socket failed.
    #[error("connection failed: {0}")]
    Io(#[from] std::io::Error),
}

/// One request.
#[derive(Debug)]
pub struct RequestFrame {
    /// Without its length.
    pub bytes: Bytes,
    /// To be kept as long as the bytes are needed.
    pub room: Option<Room>,
}

/// The requests of one connection.
#[derive(Debug)]
pub struct Frames {
    input: ReadBuffer,
    length_max: i32,
}

impl Frames {
    /// Reads frames of at most `length_max` bytes.
    pub fn new(socket: OwnedReadHalf, length_max: i32, memory: RequestMemory) -> Self {
        Self { input: ReadBuffer::new(socket, memory), length_max }
    }

    /// When something last came; now, while nothing is read because there is no room.
    pub fn last_read(&self) -> Instant {
        self.input.last_read()
    }

    /// The next frame; `None` once the peer has closed. May be cancelled at any point without
    /// losing bytes.
    pub async fn next(&mut self) -> Result<Option<RequestFrame>, FrameError> {
        loop {
            let input = match self.frame_bytes()? {
                Some(total) if self.input.bytes.len() >= total => {
                    return Ok(Some(self.take(total)));
                }
                Some(total) => self.input.read_frame(total).await?,
                None => self.input.read(FIRST_READ_BYTES).await?,
            };
            if input == Input::End {
                return Ok(None);
            }
        }
    }

    /// Resolves when the peer has closed, while its earlier requests are still being served. Keeps
    /// what arrives in the meantime, up to one frame.
    pub async fn closed(&mut self) -> Result<(), FrameError> {
        loop {
            let input = match self.frame_bytes()? {
                // A whole frame is waiting: let the socket hold back the rest.
                Some(total) if self.input.bytes.len() >= total => {
                    return std::future::pending().await;
                }
                Some(total) => self.input.read_frame(total).await?,
                None => self.input.read(FIRST_READ_BYTES).await?,
            };
            if input == Input::End {
                return Ok(());
            }
        }
    }

    /// Bytes of the first frame in the buffer with its length field, once that field is there.
    fn frame_bytes(&self) -> Result<Option<usize>, FrameError> {
        let Some(field) = self.input.bytes.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let length = i32::from_be_bytes(*field);
        if length <= 0 || length > self.length_max {
            let hint = foreign::hint(length);
            return Err(FrameError::Length { length, max: self.length_max, hint });
        }
        Ok(Some(LENGTH_BYTES + length as usize))
    }

    fn take(&mut self, total: usize) -> RequestFrame {
        let mut frame = self.input.bytes.split_to(total);
        self.input.release();
        frame.advance(LENGTH_BYTES);
        RequestFrame { bytes: frame.freeze(), room: self.input.take_room() }
    }
}
