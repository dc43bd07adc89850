//! Room for large requests.
//!
//! ```text
//! bytes of a frame came ──room──▶ read, … until it is whole: at work ─▶ answered: room given back
//!                       ──none──▶ they stay in the socket until others are answered
//! ```
//!
//! A frame takes room for its buffer, which grows with what has come of it, not for what its length
//! announces. So that frames which began can always be finished, those that began earlier go first,
//! and the oldest goes on without room while no request is at work whose answer would give some back:
//! what is used exceeds the bound by the rest of one frame at most. Whoever brings nothing while others
//! wait is told to go ([`FRAME_STALL_LIMIT`]).
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

/// How many bytes a frame wants, each at least as many as the one before.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// It waits for so many.
    pub least: u64,
    /// At most so many while much is in use.
    pub enough: u64,
    /// At most so many otherwise.
    pub most: u64,
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

    /// Takes bytes for `frame`; otherwise it waits, and this tells when to look again.
    fn take(&self, frame: u64, more: Wish) -> Result<u64, Arc<Notify>> {
        let mut state = self.0.state.lock();
        let comes_first = state.waiting.first().is_none_or(|first| *first >= frame);
        let free = self.0.bytes_max.saturating_sub(state.used);
        let is_oldest = state.half.first_key_value().is_some_and(|(oldest, _)| *oldest == frame);
        let has_plenty = state.used < self.0.bytes_max / 4;
        let wanted = if has_plenty { more.most } else { more.enough };
        let taken = if comes_first && free >= more.least {
            Some(wanted.min(free))
        } else {
            Some(wanted).filter(|_| is_oldest && state.at_work == 0)
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
    /// Waits until the frame may have the least of `wish`, all in all; returns how many bytes it may
    /// have. May be cancelled.
    pub async fn grow_to(&mut self, wish: Wish) -> usize {
        let more = |bytes: u64| bytes.saturating_sub(self.bytes);
        let more =
            Wish { least: more(wish.least), enough: more(wish.enough), most: more(wish.most) };
        if more.least > 0 {
            let waiting = Waiting(self);
            let taken = loop {
                match waiting.0.memory.take(waiting.0.frame, more) {
                    Ok(taken) => break taken,
                    Err(news) => news.notified().await,
                }
            };
            drop(waiting);
            self.bytes += taken;
        }
        usize::try_from(self.bytes).unwrap_or(usize::MAX)
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
