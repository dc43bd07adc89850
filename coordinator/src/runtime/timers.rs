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
    /// Taken as due and not delivered yet, with the number of the taking.
    fired: BTreeMap<T, u64>,
    next_firing: u64,
}

/// One timer that was due; worth nothing once the timer is set anew or stopped.
#[derive(Clone, Debug)]
pub(super) struct Firing<T> {
    pub(super) timer: T,
    number: u64,
}

#[derive(Debug)]
struct Setting {
    queued_at: i64,
    deadline: i64,
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Self {
            queue: BTreeSet::new(),
            by_timer: BTreeMap::new(),
            fired: BTreeMap::new(),
            next_firing: 0,
        }
    }
}

impl<T: Clone + Ord> Timers<T> {
    pub(super) fn change(&mut self, change: TimerChange<T>) {
        let (TimerChange::Set(timer, _) | TimerChange::Cancel(timer)) = &change;
        self.fired.remove(timer);
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

    /// Takes all timers that are due at `tick_ms`, in order. What is set from now on is not among
    /// them, however early: a timer that sets itself anew does not fire twice in one tick.
    pub(super) fn take_due(&mut self, tick_ms: i64) -> Vec<Firing<T>> {
        let mut due = Vec::new();
        while let Some(timer) = self.pop_due(tick_ms) {
            let number = self.next_firing;
            self.next_firing += 1;
            self.fired.insert(timer.clone(), number);
            due.push(Firing { timer, number });
        }
        due
    }

    /// Whether a timer that was taken is still to be delivered, which it is then: it was neither
    /// set anew nor stopped since. Source: Kafka's `CoordinatorRuntime`, which removes a task of
    /// its timer before it runs it.
    pub(super) fn deliver(&mut self, firing: &Firing<T>) -> bool {
        let is_valid = self.fired.get(&firing.timer) == Some(&firing.number);
        if is_valid {
            self.fired.remove(&firing.timer);
        }
        is_valid
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
