//! Named timers, in order of their deadlines.
//!
//! A timer that is put off keeps its place in the queue and is moved when that comes up: sessions
//! are put off with every heartbeat and hardly ever end.

use std::collections::{BTreeMap, BTreeSet};

use crate::shard::TimerChange;

/// Each timer has at most one deadline.
#[derive(Debug)]
pub(super) struct Timers<T> {
    /// By place in the queue, which is at or before the deadline.
    queue: BTreeSet<(i64, T)>,
    by_timer: BTreeMap<T, Setting>,
}

#[derive(Debug)]
struct Setting {
    queued_at: i64,
    deadline: i64,
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Self { queue: BTreeSet::new(), by_timer: BTreeMap::new() }
    }
}

impl<T: Clone + Ord> Timers<T> {
    pub(super) fn change(&mut self, change: TimerChange<T>) {
        match change {
            TimerChange::Set(timer, deadline) => match self.by_timer.get_mut(&timer) {
                Some(setting) if setting.queued_at <= deadline => setting.deadline = deadline,
                _ => {
                    self.cancel(&timer);
                    self.enqueue(timer, deadline);
                }
            },
            TimerChange::Cancel(timer) => self.cancel(&timer),
        }
    }

    fn enqueue(&mut self, timer: T, deadline: i64) {
        self.by_timer.insert(timer.clone(), Setting { queued_at: deadline, deadline });
        self.queue.insert((deadline, timer));
    }

    fn cancel(&mut self, timer: &T) {
        if let Some((timer, setting)) = self.by_timer.remove_entry(timer) {
            self.queue.remove(&(setting.queued_at, timer));
        }
    }

    /// At or before the first deadline.
    pub(super) fn next_deadline(&self) -> Option<i64> {
        self.queue.first().map(|(queued_at, _)| *queued_at)
    }

    /// Takes the first timer whose deadline is at or before `tick_ms`.
    pub(super) fn pop_due(&mut self, tick_ms: i64) -> Option<T> {
        while self.next_deadline()? <= tick_ms {
            let (queued_at, timer) = self.queue.pop_first()?;
            let deadline = self.by_timer.remove(&timer)?.deadline;
            if deadline == queued_at {
                return Some(timer);
            }
            self.enqueue(timer, deadline);
        }
        None
    }
}
