//! Wakes partitions whose records have to be on disk by a certain time.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Partition;
use super::task::Command;
use crate::clock;

/// One timer for all partitions; each is in it at most once.
#[derive(Debug, Default)]
pub struct Timer {
    /// By the steady clock, then by the partition's place in memory, which is nobody else's while this is here. One that
    /// has ended is not kept.
    due: Mutex<BTreeMap<(i64, usize), Weak<Partition>>>,
    sooner: Notify,
}

impl Timer {
    /// Sends `FlushDue` to `partition` at `at_ms` of the steady clock instead of at `before`.
    pub(super) fn schedule(&self, before: Option<i64>, at_ms: i64, partition: &Arc<Partition>) {
        let place = Arc::as_ptr(partition).addr();
        let mut due = self.due.lock();
        if let Some(before) = before {
            due.remove(&(before, place));
        }
        let first = due.first_key_value().is_none_or(|((first, _), _)| at_ms < *first);
        due.insert((at_ms, place), Arc::downgrade(partition));
        drop(due);
        if first {
            self.sooner.notify_one();
        }
    }

    /// Runs for as long as the node does.
    pub async fn run(&self) {
        loop {
            let wait_ms = self.fire();
            match wait_ms {
                None => self.sooner.notified().await,
                Some(wait_ms) => {
                    let wait = Duration::from_millis(wait_ms);
                    let _ = tokio::time::timeout(wait, self.sooner.notified()).await;
                }
            }
        }
    }

    /// Wakes who is due; returns the time until the next one is.
    fn fire(&self) -> Option<u64> {
        let now_ms = clock::tick_ms();
        loop {
            let mut due = self.due.lock();
            let ((at_ms, _), _) = due.first_key_value()?;
            let wait_ms = at_ms.saturating_sub(now_ms);
            if wait_ms > 0 {
                return Some(wait_ms.unsigned_abs());
            }
            let fired = due.pop_first();
            drop(due);
            if let Some(partition) = fired.and_then(|(_, partition)| partition.upgrade()) {
                partition.command(Command::FlushDue);
            }
        }
    }
}
