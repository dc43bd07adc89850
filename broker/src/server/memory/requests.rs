//! Room for large requests.
//!
//! ```text
//! bytes of a frame came ──room──▶ read, … until it is whole: at work ─▶ answered: room given back
//!                       ──none──▶ they stay in the socket until others are answered
//! ```
//!
//! A frame takes room for what has come of it, not for what its length announces. So that frames which
//! began can always be finished, those that began earlier go first, and the oldest goes on without room
//! while no request is at work whose answer would give some back: what is used exceeds the bound by the
//! rest of one frame at most. Whoever brings nothing while others wait is told to go ([`FRAME_STALL_LIMIT`]).
//! Source: KIP-72; SimpleMemoryPool, which books what is announced.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::limits::FRAME_STALL_LIMIT;

/// Room for requests. Clones share it.
#[derive(Clone, Debug)]
pub struct RequestMemory(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    bytes_max: u64,
    stall_limit: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    used: u64,
    /// Of it, by requests that are whole.
    at_work: u64,
    /// Frames so far that took room.
    frames: u64,
    /// Frames that are half there, by age.
    half: BTreeMap<u64, Arc<Notify>>,
    /// Those of them that wait.
    waiting: BTreeSet<u64>,
}

impl State {
    /// The oldest that waits may look again.
    fn wake(&self) {
        if let Some(news) = self.waiting.first().and_then(|frame| self.half.get(frame)) {
            news.notify_one();
        }
    }
}

/// The room of one frame, until it is dropped.
#[derive(Debug)]
pub struct Room {
    memory: RequestMemory,
    frame: u64,
    bytes: u64,
    is_whole: bool,
}

impl RequestMemory {
    /// Room for `bytes`.
    pub fn new(bytes: u64) -> Self {
        Self::with_stall_limit(bytes, FRAME_STALL_LIMIT)
    }

    pub(in crate::server) fn with_stall_limit(bytes_max: u64, stall_limit: Duration) -> Self {
        Self(Arc::new(Shared { bytes_max, stall_limit, state: Mutex::default() }))
    }

    /// The room of a frame that begins: none yet.
    pub fn begin(&self) -> Room {
        let mut state = self.0.state.lock();
        state.frames += 1;
        let frame = state.frames;
        state.half.insert(frame, Arc::default());
        Room { memory: self.clone(), frame, bytes: 0, is_whole: false }
    }

    /// Bytes that are in use.
    pub fn used(&self) -> u64 {
        self.0.state.lock().used
    }

    /// How long a frame may bring next to nothing while [`Self::is_short`].
    pub fn stall_limit(&self) -> Duration {
        self.0.stall_limit
    }

    /// Whether somebody waits for room.
    pub fn is_short(&self) -> bool {
        !self.0.state.lock().waiting.is_empty()
    }

    /// Takes from `least` to `most` bytes more for `frame`, as many as there are; otherwise it waits, and
    /// this tells when to look again.
    fn take(&self, frame: u64, least: u64, most: u64) -> Result<u64, Arc<Notify>> {
        let mut state = self.0.state.lock();
        let comes_first = state.waiting.first().is_none_or(|first| *first >= frame);
        let free = self.0.bytes_max.saturating_sub(state.used);
        let is_oldest = state.half.first_key_value().is_some_and(|(oldest, _)| *oldest == frame);
        let taken = if is_oldest && state.at_work == 0 {
            Some(most)
        } else {
            Some(most.min(free)).filter(|taken| comes_first && *taken >= least)
        };
        if let Some(taken) = taken {
            state.used = state.used.saturating_add(taken);
            state.waiting.remove(&frame);
            state.wake();
            return Ok(taken);
        }
        state.waiting.insert(frame);
        Err(state.half.entry(frame).or_default().clone())
    }

    fn wait_no_more(&self, frame: u64) {
        let mut state = self.0.state.lock();
        if state.waiting.remove(&frame) {
            state.wake();
        }
    }
}

impl Room {
    /// Waits until the frame may have `least` bytes in all; returns how many it may have, at most
    /// `most`. May be cancelled.
    pub async fn grow_to(&mut self, least: usize, most: usize) -> usize {
        let more = |bytes: usize| (bytes as u64).saturating_sub(self.bytes);
        let (least, most) = (more(least), more(most));
        if most > 0 {
            let waiting = Waiting(self);
            let taken = loop {
                match waiting.0.memory.take(waiting.0.frame, least, most) {
                    Ok(taken) => break taken,
                    Err(news) => news.notified().await,
                }
            };
            drop(waiting);
            self.bytes += taken;
        }
        usize::try_from(self.bytes).unwrap_or(usize::MAX)
    }

    /// Gives back what is above `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        let less = self.bytes.saturating_sub(bytes as u64);
        if less > 0 {
            self.bytes -= less;
            let mut state = self.memory.0.state.lock();
            state.used -= less;
            state.wake();
        }
    }

    /// The frame is whole: it needs nothing more, and its answer gives the room back.
    pub fn finish(&mut self) {
        let mut state = self.memory.0.state.lock();
        self.is_whole = true;
        state.half.remove(&self.frame);
        state.at_work += self.bytes;
        state.wake();
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut state = self.memory.0.state.lock();
        state.used -= self.bytes;
        if self.is_whole {
            state.at_work -= self.bytes;
        }
        state.half.remove(&self.frame);
        state.waiting.remove(&self.frame);
        state.wake();
    }
}

/// Who waits no longer, for whatever reason, keeps nobody from getting room.
struct Waiting<'a>(&'a Room);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.memory.wait_no_more(self.0.frame);
    }
}

#[cfg(test)]
mod tests;
