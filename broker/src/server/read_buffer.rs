//! Reading from a socket into a buffer that exists only while bytes are under way.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::task::Poll;

use bytes::{BufMut, BytesMut};
use tokio::io::AsyncReadExt;
use tokio::net::tcp::OwnedReadHalf;
use tokio::task::coop::consume_budget;
use tokio::time::Instant;

use super::memory::{RequestMemory, Room};

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
    memory: RequestMemory,
    /// Of the frame that is being read, if it is large.
    room: Option<Room>,
    /// Whether that frame has no room yet.
    waits_for_room: bool,
    last_read: Instant,
}

impl ReadBuffer {
    /// Nothing read yet; large frames take their room of `memory`.
    pub fn new(socket: OwnedReadHalf, memory: RequestMemory) -> Self {
        Self {
            socket,
            bytes: BytesMut::new(),
            memory,
            room: None,
            waits_for_room: false,
            last_read: Instant::now(),
        }
    }

    /// When something last came; now, while nothing is read because there is no room.
    pub fn last_read(&self) -> Instant {
        if self.waits_for_room { Instant::now() } else { self.last_read }
    }

    /// Reads on in a frame of `total` bytes, once there is room for all of it. May be cancelled.
    pub async fn read_frame(&mut self, total: usize) -> io::Result<Input> {
        if self.room.is_none() {
            self.waits_for_room = true;
            self.room = self.memory.room(total).await;
            self.waits_for_room = false;
        }
        self.read(total.saturating_sub(self.bytes.len())).await
    }

    /// The room of the frame that was just taken.
    pub fn take_room(&mut self) -> Option<Room> {
        self.room.take()
    }

    /// Lets go of the memory when all of it was taken: then whoever took it owns it alone.
    pub fn release(&mut self) {
        if self.bytes.is_empty() {
            self.bytes = BytesMut::new();
        }
    }

    /// Reads what there is, at most `wanted` bytes. May be cancelled.
    ///
    /// A read that was not filled has emptied the socket; the next one waits for news of it
    /// instead of asking in vain.
    pub async fn read(&mut self, wanted: usize) -> io::Result<Input> {
        loop {
            if self.bytes.is_empty() {
                self.release();
                self.socket.readable().await?;
            }
            let received = self.bytes.len();
            // Not more than is wanted, though there may be room: what comes behind a frame would
            // share its memory and keep the frame from being taken over as it lies, and may be the
            // begin of a large one that has no room yet.
            let wanted = wanted.min(RESERVE_BYTES_MAX.max(received));
            self.bytes.reserve(wanted);
            let mut room = (&mut self.bytes).limit(wanted);
            let mut read = pin!(self.socket.read_buf(&mut room));
            let outcome = match poll_fn(|context| Poll::Ready(read.as_mut().poll(context))).await {
                Poll::Ready(outcome) => outcome,
                // False news: no memory is held while waiting for true ones. Or the task has had its
                // turn: then the socket stays readable, and only giving way gets on.
                Poll::Pending if received == 0 => {
                    consume_budget().await;
                    continue;
                }
                Poll::Pending => read.await,
            };
            match outcome {
                Ok(0) => return Ok(Input::End),
                Ok(_) => {
                    self.last_read = Instant::now();
                    return Ok(Input::Bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests;
