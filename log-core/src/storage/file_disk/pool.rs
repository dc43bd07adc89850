//! Keeps what handles hold of the operating system (descriptors, mappings) below a bound.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Something that can give its resource back and take it again when next used.
pub(super) trait Closable: Send + Sync {
    /// Whether it was used since this was last asked.
    fn take_used(&self) -> bool;

    /// Gives the resource back; false when it is in use right now.
    fn close(&self) -> bool;
}

/// The holders of a resource, in the order in which they are looked at for closing.
pub(super) struct Pool {
    open: Mutex<VecDeque<Weak<dyn Closable>>>,
    open_max: usize,
}

impl Pool {
    /// At most `open_max` stay open between calls.
    pub(super) fn new(open_max: usize) -> Arc<Self> {
        Arc::new(Self { open: Mutex::default(), open_max })
    }

    /// Takes note of a new holder and closes the longest unused ones above the bound.
    pub(super) fn opened(&self, holder: &Weak<dyn Closable>) {
        let mut open = lock(&self.open);
        open.push_back(Weak::clone(holder));
        // Each look takes a holder's second chance away, so two rounds always find one to close.
        for _ in 0..2 * open.len() {
            if open.len() <= self.open_max {
                break;
            }
            let Some(oldest) = open.pop_front() else { break };
            let Some(oldest_holder) = oldest.upgrade() else { continue };
            let stays =
                oldest.ptr_eq(holder) || oldest_holder.take_used() || !oldest_holder.close();
            if stays {
                open.push_back(oldest);
            }
        }
    }

    /// How many are open now.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        lock(&self.open).len()
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("open_max", &self.open_max).finish_non_exhaustive()
    }
}

/// A panic elsewhere leaves these small states whole.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
