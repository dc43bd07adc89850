//! Memory for requests and answers, bounded over all connections of both protocols.
//!
//! ```text
//! length of a large frame is read ──room──▶ reading ─▶ request at work ─▶ answered: room given back
//!                                 ──none──▶ nothing more is read from this connection until others are answered
//! ```
//!
//! A whole frame gets its room before its second part is read, so that frames that have it can always be finished.
//! Frames that fit into a connection's first read need none: the number of connections bounds them.
//! Source: KIP-72; SimpleMemoryPool.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::read_buffer::FIRST_READ_BYTES;
use crate::limits::{ANSWER_SHARE_BYTES_MIN, ANSWERS_BYTES_MAX};

/// What one permit stands for.
const UNIT_BYTES: u64 = 1024;

/// Room for requests. Clones share it.
#[derive(Clone, Debug)]
pub struct RequestMemory {
    units: Arc<Semaphore>,
    units_max: u32,
}

/// The room of one request, until it is dropped.
#[derive(Debug)]
pub struct Room {
    _units: OwnedSemaphorePermit,
}

impl RequestMemory {
    /// Room for `bytes`.
    pub fn new(bytes: u64) -> Self {
        let units_max = u32::try_from((bytes / UNIT_BYTES).max(1)).unwrap_or(u32::MAX);
        let units_max = units_max.min(u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX));
        Self { units: Arc::new(Semaphore::new(units_max as usize)), units_max }
    }

    /// Waits for room for a frame of `bytes`, in the order of asking; `None` for one that needs none.
    ///
    /// A frame that is larger than all the room gets all of it.
    pub async fn room(&self, bytes: usize) -> Option<Room> {
        if bytes <= FIRST_READ_BYTES {
            return None;
        }
        let units = (bytes as u64).div_ceil(UNIT_BYTES);
        let units = u32::try_from(units).unwrap_or(u32::MAX).min(self.units_max);
        let acquired = self.units.clone().acquire_many_owned(units).await;
        // Nobody closes it.
        acquired.ok().map(|units| Room { _units: units })
    }

    /// Bytes that are in use.
    pub fn used(&self) -> u64 {
        let free = u32::try_from(self.units.available_permits()).unwrap_or(u32::MAX);
        u64::from(self.units_max.saturating_sub(free)) * UNIT_BYTES
    }
}

/// Bytes of answers that are being built, or built and not written yet. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct AnswerMemory(Arc<AtomicUsize>);

/// A counted answer, until it is dropped.
#[derive(Debug)]
pub struct Unwritten {
    memory: AnswerMemory,
    bytes: usize,
}

impl AnswerMemory {
    /// Counts an answer.
    pub fn count(&self, bytes: usize) -> Unwritten {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        Unwritten { memory: self.clone(), bytes }
    }

    /// Bytes that are counted.
    pub fn used(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts an answer before it is built, of at most `bytes_max`: half of what is left, so that many small ones go on
    /// beside clients that take none.
    pub fn reserve(&self, bytes_max: usize) -> Unwritten {
        let mut bytes = 0;
        // Always gives a number, and so cannot fail.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            let left = ANSWERS_BYTES_MAX.saturating_sub(used);
            bytes = bytes_max.min((left / 2).max(ANSWER_SHARE_BYTES_MIN));
            Some(used.saturating_add(bytes))
        });
        Unwritten { memory: self.clone(), bytes }
    }
}

impl Unwritten {
    /// How many bytes are counted.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// It has `bytes`, and not what was counted.
    pub fn became(self, bytes: usize) -> Self {
        self.memory.count(bytes)
    }
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        self.memory.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
