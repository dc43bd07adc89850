//! Reading from a socket into a buffer that exists only while bytes are under way.

use std::io;

use bytes::BytesMut;
use tokio::net::tcp::OwnedReadHalf;

/// First read of a frame: most requests fit.
pub const FIRST_READ_BYTES: usize = 8 * 1024;

/// What one read reserves at most before as much has really arrived: a length alone is no reason
/// to reserve memory.
const RESERVE_BYTES_MAX: usize = 1024 * 1024;

/// Whether the peer may still send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Something came.
    Bytes,
    /// The peer has closed.
    End,
}

/// The reading half of a connection.
#[derive(Debug)]
pub struct ReadBuffer {
    socket: OwnedReadHalf,
    /// What was read and not taken yet.
    pub bytes: BytesMut,
}

impl ReadBuffer {
    /// Nothing read yet.
    pub fn new(socket: OwnedReadHalf) -> Self {
        Self { socket, bytes: BytesMut::new() }
    }

    /// Lets go of the memory when all of it was taken: then whoever took it owns it alone.
    pub fn release(&mut self) {
        if self.bytes.is_empty() {
            self.bytes = BytesMut::new();
        }
    }

    /// Reads what there is, of which at least `wanted` bytes are hoped for. May be cancelled.
    pub async fn read(&mut self, wanted: usize) -> io::Result<Input> {
        loop {
            if self.bytes.is_empty() {
                self.release();
                self.socket.readable().await?;
            }
            let received = self.bytes.len();
            self.bytes.reserve(wanted.min(RESERVE_BYTES_MAX.max(received)));
            match self.socket.try_read_buf(&mut self.bytes) {
                Ok(0) => return Ok(Input::End),
                Ok(_) => return Ok(Input::Bytes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.socket.readable().await?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
