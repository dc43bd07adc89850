//! Things that are costly to make and needed for a moment: decompressors with their buffers.

use parking_lot::Mutex;

/// Lends them out, and keeps some of those that come back.
#[derive(Debug, Default)]
pub struct Pool<T>(Mutex<Vec<T>>);

/// Kept at most; more are dropped after use.
const KEPT_MAX: usize = 16;

impl<T: Default> Pool<T> {
    /// Lends one to `work`.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let mut lent = self.0.lock().pop().unwrap_or_default();
        let result = work(&mut lent);
        let mut kept = self.0.lock();
        if kept.len() < KEPT_MAX {
            kept.push(lent);
        }
        result
    }
}
