//! Reading from a socket into a buffer that exists only while bytes are under way.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::task::Poll;

use bytes::{BufMut, BytesMut};
use tokio::io::AsyncReadExt;
use tokio::net::tcp::OwnedReadHalf;
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, sleep_until};

use super::memory::{RequestMemory, Room, Wish};
use crate::limits::{FRAME_PIECE_BYTES, FRAME_STEP_BYTES};

/// First read of a frame: most requests fit.
pub const FIRST_READ_BYTES: usize = 8 * 1024;

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
    /// Whether more of that frame has come than there is room for.
    waits_for_room: bool,
    /// When that frame, and at how many bytes of it, was last seen to get on.
    step: (Instant, usize),
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
            step: (Instant::now(), 0),
            last_read: Instant::now(),
        }
    }

    /// When something last came; now, while nothing is read because there is no room.
    pub fn last_read(&self) -> Instant {
        if self.waits_for_room { Instant::now() } else { self.last_read }
    }

    /// Reads on in a frame of `total` bytes. A large one takes room for what has come. May be cancelled.
    ///
    /// Errors: the socket failed; too little came for too long while others waited for room.
    pub async fn read_frame(&mut self, total: usize) -> io::Result<Input> {
        let received = self.bytes.len();
        let missing = total.saturating_sub(received);
        if total <= FIRST_READ_BYTES {
            return self.read(missing).await;
        }
        if self.room.is_none() {
            self.room = Some(self.memory.begin());
            self.step = (Instant::now(), received);
        }
        self.waits_for_room = false;
        loop {
            self.readable_in_time().await?;
            let mut wanted = missing;
            if let Some(room) = &mut self.room {
                self.waits_for_room = true;
                let asked = Instant::now();
                let may_have = room.grow_to(wish(received, missing)).await;
                self.waits_for_room = false;
                // That the node took nothing is not held against the client.
                self.step.0 += asked.elapsed();
                self.grow(may_have);
                wanted = may_have.saturating_sub(received).min(missing);
            }
            let read = self.read_some(wanted).await;
            if let Some(input) = read? {
                if self.bytes.len() >= self.step.1 + FRAME_STEP_BYTES {
                    self.step = (Instant::now(), self.bytes.len());
                }
                return Ok(input);
            }
            consume_budget().await;
        }
    }

    /// Gives the buffer exactly so much room.
    fn grow(&mut self, capacity: usize) {
        if self.bytes.capacity() < capacity {
            let mut grown = BytesMut::with_capacity(capacity);
            grown.extend_from_slice(&self.bytes);
            self.bytes = grown;
        }
    }

    /// Waits for news of the socket, for which it has its time while others wait for room.
    async fn readable_in_time(&mut self) -> io::Result<()> {
        let limit = self.memory.stall_limit();
        loop {
            tokio::select! {
                biased;
                readable = self.socket.readable() => return readable.map(drop),
                () = sleep_until(self.step.0 + limit) => {}
            }
            if self.memory.is_short() {
                let text = format!(
                    "less than {FRAME_STEP_BYTES} bytes of a large request came in {limit:?} while \
                     others waited for room"
                );
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            self.step = (Instant::now(), self.bytes.len());
        }
    }

    /// The room of the frame that was just taken.
    pub fn take_room(&mut self) -> Option<Room> {
        let mut room = self.room.take();
        if let Some(room) = &mut room {
            room.finish();
        }
        room
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
        if self.bytes.is_empty() {
            self.release();
            self.socket.readable().await?;
        }
        loop {
            if let Some(input) = self.read_some(wanted).await? {
                return Ok(input);
            }
            // False news: no memory is held while waiting for true ones. Or the task has had its
            // turn: then the socket stays readable, and only giving way gets on.
            self.release();
            consume_budget().await;
            self.socket.readable().await?;
        }
    }

    /// Reads at most `wanted` bytes, if there are any now.
    async fn read_some(&mut self, wanted: usize) -> io::Result<Option<Input>> {
        // Not more than is wanted, though there may be room: what comes behind a frame would
        // share its memory and keep the frame from being taken over as it lies, and may be the
        // begin of a large one that has no room yet.
        let wanted = wanted.min(FRAME_STEP_BYTES.max(self.bytes.len()));
        self.bytes.reserve(wanted);
        let mut room = (&mut self.bytes).limit(wanted);
        loop {
            let mut read = pin!(self.socket.read_buf(&mut room));
            match poll_fn(|context| Poll::Ready(read.as_mut().poll(context))).await {
                Poll::Pending => return Ok(None),
                Poll::Ready(Ok(0)) => return Ok(Some(Input::End)),
                Poll::Ready(Ok(_)) => {
                    self.last_read = Instant::now();
                    return Ok(Some(Input::Bytes));
                }
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Poll::Ready(Err(error)) => return Err(error),
            }
        }
    }
}

/// Room for a frame of which so much has come and so much not: a length alone is no reason to reserve
/// memory.
fn wish(received: usize, missing: usize) -> Wish {
    let least = received + missing.min(FRAME_PIECE_BYTES);
    let up_to = |bytes: usize| received + missing.min(bytes.max(received));
    let (enough, most) = (up_to(FRAME_PIECE_BYTES), up_to(FRAME_STEP_BYTES));
    Wish { least: least as u64, enough: enough as u64, most: most as u64 }
}

#[cfg(test)]
mod tests;
