//! Memory for requests and answers, bounded over all connections of both protocols.

mod requests;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::limits::{ANSWER_SHARE_BYTES_MIN, ANSWERS_BYTES_MAX};

pub use requests::{RequestMemory, Room, Wish};

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
