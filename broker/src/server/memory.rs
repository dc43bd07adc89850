//! Memory for requests and answers, bounded over all connections of both protocols.
//!
//! ```text
//! length of a large frame is read ──room──▶ reading ─▶ request at work ─▶ answered: room given back
//!                                 ──none──▶ nothing more is read from this connection until others are answered
//! ```
//!
//! A frame gets its room step by step, before the bytes that need it are read: a length alone takes nothing from
//! others. Frames that wait half way, each for the room of the others, do so for a bounded time.
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
    units: OwnedSemaphorePermit,
}

impl RequestMemory {
    /// Room for `bytes`.
    pub fn new(bytes: u64) -> Self {
        let units_max = u32::try_from((bytes / UNIT_BYTES).max(1)).unwrap_or(u32::MAX);
        let units_max = units_max.min(u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX));
        Self { units: Arc::new(Semaphore::new(units_max as usize)), units_max }
    }

    /// Waits for room for `bytes` of a frame, beside what it has, in the order of asking. None is needed, and none
    /// given, for what fits into a connection's first read. May be cancelled.
    ///
    /// A frame that is larger than all the room gets all of it.
    pub async fn grow(&self, room: &mut Option<Room>, bytes: usize) {
        if bytes <= FIRST_READ_BYTES {
            return;
        }
        let units = self.units_of(bytes);
        let held = room.as_ref().map_or(0, |room| room.units.num_permits());
        let missing = units.saturating_sub(u32::try_from(held).unwrap_or(u32::MAX));
        // Nobody closes it.
        let Ok(more) = self.units.clone().acquire_many_owned(missing).await else { return };
        match room {
            Some(room) => room.units.merge(more),
            None => *room = Some(Room { units: more }),
        }
    }

    /// How many bytes of a frame may be read with this room; no bound for a frame that has all there is.
    pub fn allows(&self, room: Option<&Room>) -> usize {
        let Some(room) = room else { return FIRST_READ_BYTES };
        let held = room.units.num_permits();
        if held >= self.units_max as usize {
            return usize::MAX;
        }
        held.saturating_mul(UNIT_BYTES as usize)
    }

    fn units_of(&self, bytes: usize) -> u32 {
        let units = (bytes as u64).div_ceil(UNIT_BYTES);
        u32::try_from(units).unwrap_or(u32::MAX).min(self.units_max)
    }

    /// Bytes that are in use.
    pub fn used(&self) -> u64 {
        let free = u32::try_from(self.units.available_permits()).unwrap_or(u32::MAX);
        u64::from(self.units_max.saturating_sub(free)) * UNIT_BYTES
    }
}

/// Bytes of answers that are built and not written yet. Clones share the count.
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

    /// How large one more answer may become: half of what is left, so that many small ones go on beside clients
    /// that take none.
    pub fn share(&self) -> usize {
        (ANSWERS_BYTES_MAX.saturating_sub(self.used()) / 2).max(ANSWER_SHARE_BYTES_MIN)
    }
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        self.memory.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
