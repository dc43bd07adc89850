//! Pulls that wait for records: how many, and what wakes them besides the log.
//!
//! A held pull is one future in its connection's hands. It waits for the partition's published
//! offsets, its time and this register, which wakes it when its group's subscription changes.
//! Dropping the future (the client went away) removes it here; nothing else has to know.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// All held pulls of a node.
#[derive(Debug)]
pub struct Holds {
    max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    held: usize,
    groups: HashMap<Arc<str>, Group>,
}

#[derive(Debug)]
struct Group {
    held: usize,
    changed: Arc<Notify>,
}

/// One held pull. Dropping it ends the hold.
#[derive(Debug)]
pub struct Hold<'a> {
    holds: &'a Holds,
    group: Arc<str>,
    changed: Arc<Notify>,
}

impl Holds {
    /// None held, at most `max` at a time.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self { max, state: Mutex::default() }
    }

    /// Registers a pull of `group`; `None` when there are too many.
    pub fn hold(&self, group: &str) -> Option<Hold<'_>> {
        let mut state = self.state.lock();
        if state.held >= self.max {
            return None;
        }
        state.held += 1;
        let name = match state.groups.get_key_value(group) {
            Some((name, _)) => Arc::clone(name),
            None => Arc::from(group),
        };
        let new = || Group { held: 0, changed: Arc::default() };
        let group = state.groups.entry(Arc::clone(&name)).or_insert_with(new);
        group.held += 1;
        let changed = Arc::clone(&group.changed);
        Some(Hold { holds: self, group: name, changed })
    }

    /// How many pulls are held.
    #[must_use]
    pub fn count(&self) -> usize {
        self.state.lock().held
    }

    /// The subscription of `group` changed: its held pulls look again.
    pub fn group_changed(&self, group: &str) {
        if let Some(group) = self.state.lock().groups.get(group) {
            group.changed.notify_waiters();
        }
    }
}

impl Hold<'_> {
    /// Resolves at the group's next change after this call.
    pub fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let mut state = self.holds.state.lock();
        state.held = state.held.saturating_sub(1);
        if let Some(group) = state.groups.get_mut(&self.group) {
            group.held = group.held.saturating_sub(1);
            if group.held == 0 {
                state.groups.remove(&self.group);
            }
        }
    }
}

#[cfg(test)]
mod tests;
