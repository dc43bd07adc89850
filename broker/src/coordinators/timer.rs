//! One alarm clock for all coordinators.

use std::collections::BTreeSet;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::clock;

/// When each shard is to be woken; at most one time for each.
#[derive(Debug, Default)]
pub(super) struct Timer {
    /// Times of the steady clock, and the shard's number.
    alarms: Mutex<BTreeSet<(i64, usize)>>,
    sooner: Notify,
}

impl Timer {
    /// Wakes `shard` at `to`, and not at `from` any more.
    pub(super) fn set(&self, shard: usize, from: Option<i64>, to: i64) {
        let mut alarms = self.alarms.lock();
        let first = alarms.first().is_none_or(|(first, _)| to < *first);
        if let Some(from) = from {
            alarms.remove(&(from, shard));
        }
        alarms.insert((to, shard));
        drop(alarms);
        if first {
            self.sooner.notify_one();
        }
    }

    /// Waits until a shard is due; takes all that are.
    pub(super) async fn due(&self) -> Vec<usize> {
        loop {
            let now_ms = clock::tick_ms();
            let (due, next) = self.take(now_ms);
            if !due.is_empty() {
                return due;
            }
            let Some(next) = next else {
                self.sooner.notified().await;
                continue;
            };
            let wait = Duration::from_millis(next.saturating_sub(now_ms).max(0).unsigned_abs());
            // Either way the alarms are looked at anew.
            let _ = tokio::time::timeout(wait, self.sooner.notified()).await;
        }
    }

    fn take(&self, now_ms: i64) -> (Vec<usize>, Option<i64>) {
        let mut alarms = self.alarms.lock();
        let mut due = Vec::new();
        while let Some((at, shard)) = alarms.pop_first() {
            if at > now_ms {
                alarms.insert((at, shard));
                return (due, Some(at));
            }
            due.push(shard);
        }
        (due, None)
    }
}
