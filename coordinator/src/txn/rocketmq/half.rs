//! The half messages that are open, by their offsets.

use std::collections::VecDeque;

use duolog_log_core::ids::Offset;

use crate::record::half::{HalfMessage, Immunity};

/// What is known of an open half message; the rest is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Half {
    /// Where it stands.
    pub offset: Offset,
    /// Milliseconds since 1970, by the producer.
    pub born_ms: i64,
    /// How long nobody is asked.
    pub immunity: Immunity,
    /// How often somebody was asked.
    pub times: i32,
    is_open: bool,
}

/// All of one log. They come in order and go in any; what has gone keeps its place until the first
/// ones, or half of all, have gone.
#[derive(Debug, Default)]
pub struct OpenHalves {
    /// In order of their offsets; the first is open.
    halves: VecDeque<Half>,
    open_count: usize,
}

impl OpenHalves {
    /// How many are open.
    #[must_use]
    pub fn len(&self) -> usize {
        self.open_count
    }

    /// None is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open_count == 0
    }

    /// The one at `offset`.
    #[must_use]
    pub fn get(&self, offset: Offset) -> Option<&Half> {
        let half = self.halves.get(self.place(offset)?)?;
        half.is_open.then_some(half)
    }

    /// Those behind `after`, in order.
    pub fn behind(&self, after: Offset) -> impl Iterator<Item = &Half> {
        let start = self.halves.partition_point(|half| half.offset <= after);
        self.halves.range(start..).filter(|half| half.is_open)
    }

    /// The first one's offset.
    #[must_use]
    pub fn first(&self) -> Option<Offset> {
        self.halves.front().map(|half| half.offset)
    }

    /// One was stored, behind all others.
    pub fn insert(&mut self, half: &HalfMessage, offset: Offset) {
        let is_behind = self.halves.back().is_none_or(|last| last.offset < offset);
        assert!(is_behind, "a log is replayed in order");
        let HalfMessage { born_ms, immunity, .. } = half;
        let (born_ms, immunity) = (*born_ms, *immunity);
        self.halves.push_back(Half { offset, born_ms, immunity, times: 0, is_open: true });
        self.open_count += 1;
    }

    /// It was asked about for the so manieth time.
    pub fn set_times(&mut self, offset: Offset, times: i32) {
        let place = self.place(offset);
        if let Some(half) = place.and_then(|place| self.halves.get_mut(place)) {
            half.times = times;
        }
    }

    /// It is settled.
    pub fn remove(&mut self, offset: Offset) {
        let place = self.place(offset);
        let Some(half) = place.and_then(|place| self.halves.get_mut(place)) else { return };
        if !half.is_open {
            return;
        }
        half.is_open = false;
        self.open_count -= 1;
        while self.halves.pop_front_if(|half| !half.is_open).is_some() {}
        if self.open_count * 2 < self.halves.len() {
            self.halves.retain(|half| half.is_open);
            self.halves.shrink_to(self.halves.len() * 2);
        }
    }

    fn place(&self, offset: Offset) -> Option<usize> {
        self.halves.binary_search_by_key(&offset, |half| half.offset).ok()
    }
}

#[cfg(test)]
mod tests;
