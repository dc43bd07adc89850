//! Reading from a socket into a buffer that exists only while bytes are under way.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use tokio::io::AsyncReadExt;
use tokio::net::tcp::OwnedReadHalf;
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, timeout_at};

use super::memory::{RequestMemory, Room};

/// First read of a frame: most requests fit.
pub const FIRST_READ_BYTES: usize = 8 * 1024;

/// What one read reserves at most before as much has really arrived: a length alone is no reason
/// to reserve memory.
const RESERVE_BYTES_MAX: usize = 1024 * 1024;

/// Room that a frame gets for its length alone. Most frames need no more; many that never come must
/// not take much from others.
const FIRST_ROOM_BYTES: usize = 256 * 1024;

/// How long a frame that came in part waits for the room of the rest: those that have it may be
/// waiting likewise.
const ROOM_LIMIT: Duration = Duration::from_secs(30);

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
    /// Since when that frame waits for room.
    waits_since: Option<Instant>,
    room_limit: Duration,
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
            waits_since: None,
            room_limit: ROOM_LIMIT,
            last_read: Instant::now(),
        }
    }

    /// When something last came; now, while nothing is read because there is no room.
    pub fn last_read(&self) -> Instant {
        if self.waits_since.is_some() { Instant::now() } else { self.last_read }
    }

    /// Reads on in a frame of `total` bytes, once there is room for what is read. May be cancelled.
    ///
    /// Errors: there was no room for too long; the connection cannot go on.
    pub async fn read_frame(&mut self, total: usize) -> io::Result<Input> {
        let received = self.bytes.len();
        if self.memory.allows(self.room.as_ref()) <= received || self.room.is_none() {
            let step = if self.room.is_none() {
                FIRST_ROOM_BYTES
            } else {
                received + RESERVE_BYTES_MAX.max(received)
            };
            self.wait_for_room(total.min(step)).await?;
        }
        let allowed = match &self.room {
            Some(room) => total.min(self.memory.allows(Some(room))),
            None => total,
        };
        self.read(allowed.saturating_sub(received)).await
    }

    /// A frame that has no room at all waits for as long as it takes: it keeps none from others.
    async fn wait_for_room(&mut self, bytes: usize) -> io::Result<()> {
        let since = *self.waits_since.get_or_insert_with(Instant::now);
        let came_in_part = self.room.is_some();
        let grown = self.memory.grow(&mut self.room, bytes);
        if !came_in_part {
            grown.await;
        } else if timeout_at(since + self.room_limit, grown).await.is_err() {
            let used = self.memory.used();
            tracing::warn!(bytes, used, "connection closed: no room for the rest of its request");
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, "no room for the request"));
        }
        self.waits_since = None;
        Ok(())
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
