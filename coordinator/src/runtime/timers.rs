//! Named timers, in order of their deadlines.

use std::collections::{BTreeMap, BTreeSet};

use crate::shard::TimerChange;

/// Each timer has at most one deadline.
#[derive(Debug)]
pub(super) struct Timers<T> {
    by_deadline: BTreeSet<(i64, T)>,
    by_timer: BTreeMap<T, i64>,
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Self { by_deadline: BTreeSet::new(), by_timer: BTreeMap::new() }
    }
}

impl<T: Clone + Ord> Timers<T> {
    pub(super) fn change(&mut self, change: TimerChange<T>) {
        match change {
            TimerChange::Set(timer, deadline) => {
                self.cancel(&timer);
                self.by_timer.insert(timer.clone(), deadline);
                self.by_deadline.insert((deadline, timer));
            }
            TimerChange::Cancel(timer) => self.cancel(&timer),
        }
    }

    fn cancel(&mut self, timer: &T) {
        if let Some((timer, deadline)) = self.by_timer.remove_entry(timer) {
            self.by_deadline.remove(&(deadline, timer));
        }
    }

    pub(super) fn next_deadline(&self) -> Option<i64> {
        self.by_deadline.first().map(|(deadline, _)| *deadline)
    }

    /// Takes the first timer whose deadline is at or before `tick_ms`.
    pub(super) fn pop_due(&mut self, tick_ms: i64) -> Option<T> {
        if self.next_deadline()? > tick_ms {
            return None;
        }
        let (_, timer) = self.by_deadline.pop_first()?;
        self.by_timer.remove(&timer);
        Some(timer)
    }
}
