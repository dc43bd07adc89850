//! Wakes partitions whose records have to be on disk by a certain time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Partition;
use super::task::Command;
use crate::clock;

/// A partition and when it is due.
#[derive(Debug)]
struct Due {
    at_ms: i64,
    partition: Arc<Partition>,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.at_ms == other.at_ms
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at_ms.cmp(&other.at_ms)
    }
}

/// One timer for all partitions; each is in it at most once.
#[derive(Debug, Default)]
pub struct Timer {
    due: Mutex<BinaryHeap<Reverse<Due>>>,
    sooner: Notify,
}

impl Timer {
    /// Sends `FlushDue` to `partition` at `at_ms` of the wall clock.
    pub(super) fn schedule(&self, at_ms: i64, partition: Arc<Partition>) {
        let mut due = self.due.lock();
        let first = due.peek().is_none_or(|Reverse(first)| at_ms < first.at_ms);
        due.push(Reverse(Due { at_ms, partition }));
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
        let now_ms = clock::now_ms();
        loop {
            let mut due = self.due.lock();
            let wait_ms = due.peek()?.0.at_ms.saturating_sub(now_ms);
            if wait_ms > 0 {
                // The wall clock may jump: look again once a second at the latest.
                return Some(wait_ms.unsigned_abs().min(1000));
            }
            let fired = due.pop();
            drop(due);
            if let Some(Reverse(fired)) = fired {
                fired.partition.command(Command::FlushDue);
            }
        }
    }
}
