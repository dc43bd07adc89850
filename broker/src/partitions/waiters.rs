//! Who waits for a partition's offsets to move: long polls, acknowledgements, syncs.
//!
//! One [`Waiter`] may stand in the lists of many partitions and is woken by the first that moves.
//! A wait costs no timer and no task; leaving is by dropping the [`Registration`].

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Partition;

/// One waiting request.
#[derive(Debug, Default)]
struct Waiter {
    moved: Notify,
}

/// The requests that wait for one partition.
#[derive(Debug, Default)]
pub(super) struct Waiters(Mutex<Vec<Arc<Waiter>>>);

impl Waiters {
    /// Wakes everybody; they look again and may come back.
    pub(super) fn wake(&self) {
        let woken = std::mem::take(&mut *self.0.lock());
        for waiter in woken {
            // The permit stays when the waiter has not begun to wait yet: no wake-up is lost.
            waiter.moved.notify_one();
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    fn enter(&self, waiter: &Arc<Waiter>) {
        self.0.lock().push(waiter.clone());
    }

    fn leave(&self, waiter: &Arc<Waiter>) {
        self.0.lock().retain(|other| !Arc::ptr_eq(other, waiter));
    }
}

/// A place in the lists of some partitions, until dropped.
///
/// Register, then look at the offsets, then wait: what moves in between is not missed.
#[derive(Debug)]
pub struct Registration {
    waiter: Arc<Waiter>,
    partitions: Vec<Arc<Partition>>,
}

impl Registration {
    /// Enters the lists of `partitions`.
    pub fn new(partitions: Vec<Arc<Partition>>) -> Self {
        let waiter = Arc::new(Waiter::default());
        partitions.iter().for_each(|partition| partition.waiters.enter(&waiter));
        Self { waiter, partitions }
    }

    /// Resolves once one of the partitions has moved since the registration. Then register anew.
    pub async fn moved(&self) {
        self.waiter.moved.notified().await;
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.partitions.iter().for_each(|partition| partition.waiters.leave(&self.waiter));
    }
}
