//! A group's window over a partition: the durable half.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::record::share::{DeliveryState, Lease, StateBatch};

/// A message that is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    /// How often it was delivered.
    pub deliveries: u16,
    /// The last delivery; it is in hand before its end.
    pub lease: Lease,
}

/// What of a partition a group has taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    end: i64,
    /// All from the start to the end that are not done.
    flights: BTreeMap<i64, Flight>,
    /// The same, by the end of their lease.
    by_time: BTreeSet<(i64, i64)>,
    /// A message that was delivered so often is dead when its time is up.
    pub deliveries_max: u16,
    /// The last start that is known to be committed as the group's position, and on disk.
    pub committed: Option<i64>,
    /// Of the last snapshot.
    pub epoch: i32,
    /// When it came to be.
    pub created_ms: i64,
}

impl Window {
    /// One that begins at `start`, with nothing taken.
    #[must_use]
    pub fn new(start: i64, epoch: i32, created_ms: i64) -> Self {
        Self {
            end: start,
            flights: BTreeMap::new(),
            by_time: BTreeSet::new(),
            deliveries_max: u16::MAX,
            committed: None,
            epoch,
            created_ms,
        }
    }

    /// Below it all is done: the group's position.
    #[must_use]
    pub fn start(&self) -> i64 {
        self.flights.first_key_value().map_or(self.end, |(offset, _)| *offset)
    }

    /// From here on nothing was given out yet.
    #[must_use]
    pub fn end(&self) -> i64 {
        self.end
    }

    /// Messages that are not done.
    #[must_use]
    pub fn len(&self) -> usize {
        self.flights.len()
    }

    /// Whether all is done.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }

    /// A message that is not done.
    #[must_use]
    pub fn get(&self, offset: i64) -> Option<Flight> {
        self.flights.get(&offset).copied()
    }

    /// Whether a message is in somebody's hands.
    #[must_use]
    pub fn has_in_hand(&self, now_ms: i64) -> bool {
        self.by_time.last().is_some_and(|(until_ms, _)| *until_ms > now_ms)
    }

    /// When the next message is due that was not at `told_ms`.
    #[must_use]
    pub fn next_due_ms(&self, told_ms: i64) -> Option<i64> {
        let later = self.by_time.range((told_ms.saturating_add(1), i64::MIN)..);
        later.map(|(until_ms, _)| *until_ms).next()
    }

    /// All that are not done, in the order of their offsets.
    pub fn flights(&self) -> impl Iterator<Item = (i64, Flight)> + '_ {
        self.flights.iter().map(|(offset, flight)| (*offset, *flight))
    }

    /// Those of a range that are not done, rising.
    pub fn flights_in(&self, range: Range<i64>) -> impl Iterator<Item = (i64, Flight)> + '_ {
        self.flights.range(range).map(|(offset, flight)| (*offset, *flight))
    }

    /// Those whose time is up, rising; dead ones too.
    pub fn available(&self, now_ms: i64) -> impl Iterator<Item = (i64, Flight)> + '_ {
        // Mostly there is none.
        let first = self.by_time.first().is_some_and(|(until_ms, _)| *until_ms <= now_ms);
        let all = first.then(|| self.flights()).into_iter().flatten();
        all.filter(move |(_, flight)| flight.lease.until_ms <= now_ms)
    }

    /// Whether it was delivered as often as it may.
    #[must_use]
    pub fn is_spent(&self, flight: Flight) -> bool {
        flight.deliveries >= self.deliveries_max
    }

    /// Applies what became of some messages.
    pub fn apply(&mut self, batch: &StateBatch) {
        let (first, last) = (batch.first, batch.last);
        let known: Vec<i64> = self.flights.range(first..=last).map(|(offset, _)| *offset).collect();
        for offset in known {
            if let Some(flight) = self.flights.remove(&offset) {
                self.by_time.remove(&(flight.lease.until_ms, offset));
            }
        }
        if batch.state == DeliveryState::Available {
            let lease = batch.lease.unwrap_or_default();
            for offset in first..=last {
                self.flights.insert(offset, Flight { deliveries: batch.deliveries, lease });
                self.by_time.insert((lease.until_ms, offset));
            }
        }
        self.end = self.end.max(last.saturating_add(1));
    }

    /// All of it, from the start to the end.
    #[must_use]
    pub fn batches(&self) -> Vec<StateBatch> {
        let mut batches = Batches::default();
        let mut next = self.start();
        for (offset, flight) in self.flights() {
            batches.done(next, offset, DeliveryState::Acknowledged);
            batches.flight(offset, flight);
            next = offset.saturating_add(1);
        }
        batches.done(next, self.end, DeliveryState::Acknowledged);
        batches.0
    }
}

/// Batches, with neighbours joined.
#[derive(Debug, Default)]
pub(super) struct Batches(pub(super) Vec<StateBatch>);

impl Batches {
    /// Those from `from` to before `to` are done.
    pub(super) fn done(&mut self, from: i64, to: i64, state: DeliveryState) {
        if from < to {
            self.push(StateBatch { first: from, last: to - 1, state, deliveries: 0, lease: None });
        }
    }

    pub(super) fn flight(&mut self, offset: i64, flight: Flight) {
        self.push(StateBatch {
            first: offset,
            last: offset,
            state: DeliveryState::Available,
            deliveries: flight.deliveries,
            lease: Some(flight.lease),
        });
    }

    fn push(&mut self, next: StateBatch) {
        if let Some(last) = self.0.last_mut()
            && last.last.checked_add(1) == Some(next.first)
            && (last.state, last.deliveries, last.lease)
                == (next.state, next.deliveries, next.lease)
        {
            last.last = next.last;
        } else {
            self.0.push(next);
        }
    }
}
