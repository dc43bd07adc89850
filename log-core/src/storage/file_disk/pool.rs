//! Keeps what handles hold of the operating system (descriptors, mappings) below a bound.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::{fmt, io};

use super::is_out_of_files;

/// How many holders give way when the system has nothing left.
const GIVEN_UP_AT_ONCE: usize = 16;

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

    /// Opens something; closes holders for it while the system has no descriptor left. Errors when
    /// there is none to close any more.
    pub(super) fn with_room<T>(&self, open: impl Fn() -> io::Result<T>) -> io::Result<T> {
        loop {
            match open() {
                Err(error) if is_out_of_files(&error) && self.give_up_some() > 0 => {}
                outcome => return outcome,
            }
        }
    }

    /// Closes a few holders, those first that were not used lately; returns how many.
    fn give_up_some(&self) -> usize {
        let mut open = lock(&self.open);
        let (mut closed, looks) = (0, 2 * open.len());
        for _ in 0..looks {
            if closed == GIVEN_UP_AT_ONCE {
                break;
            }
            let Some(oldest) = open.pop_front() else { break };
            let Some(holder) = oldest.upgrade() else { continue };
            if holder.take_used() || !holder.close() {
                open.push_back(oldest);
            } else {
                closed += 1;
            }
        }
        closed
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
