//! A node's log as plain values, beside the real one.

use std::fmt;

use duolog_log_core::ids::LeaderEpoch;
use duolog_log_core::record::TransactionOutcome;

use crate::values;

/// One record: the epoch that wrote it, and its value, which no other record has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Of the leader that wrote it.
    pub epoch: LeaderEpoch,
    /// Unique in a run, but for repeated sends.
    pub value: u64,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of epoch {}", values::name(self.value), self.epoch)
    }
}

/// The records of one log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shadow {
    /// The offset of the first entry.
    base: i64,
    entries: Vec<Entry>,
    /// The log start, which may lie behind the first entry.
    start: i64,
}

impl Shadow {
    /// An empty log at `offset`.
    #[must_use]
    pub const fn starting_at(offset: i64) -> Self {
        Self { base: offset, entries: Vec::new(), start: offset }
    }

    /// Inclusive.
    #[must_use]
    pub const fn start(&self) -> i64 {
        self.start
    }

    /// Exclusive.
    #[must_use]
    pub fn end(&self) -> i64 {
        self.base.saturating_add(i64::try_from(self.entries.len()).unwrap_or(i64::MAX))
    }

    /// The record at `offset`.
    #[must_use]
    pub fn at(&self, offset: i64) -> Option<Entry> {
        let index = usize::try_from(offset.checked_sub(self.base)?).ok()?;
        self.entries.get(index).copied()
    }

    /// How the transaction to which the record at `offset` belongs ended below `end`; `None` while it is open there.
    #[must_use]
    pub fn outcome_at(&self, offset: i64, end: i64) -> Option<TransactionOutcome> {
        let producer = values::producer_of(self.at(offset)?.value);
        (offset..end).find_map(|at| {
            let value = self.at(at)?.value;
            values::outcome_of(value).filter(|_| values::producer_of(value) == producer)
        })
    }

    /// All records, oldest first.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Adds records at the end.
    pub fn extend(&mut self, entries: &[Entry]) {
        self.entries.extend_from_slice(entries);
    }

    /// Cuts everything at `end` and above.
    pub fn truncate(&mut self, end: i64) {
        if end < self.base {
            *self = Self::starting_at(end);
        }
        let kept = usize::try_from(end.saturating_sub(self.base)).unwrap_or(0);
        self.entries.truncate(kept);
        self.start = self.start.min(end);
    }

    /// Moves the log start up.
    pub fn start_moved(&mut self, start: i64) {
        self.start = self.start.max(start);
    }

    /// The first offset, from either start on, where `other` is not the same; also where one ends before the other.
    #[must_use]
    pub fn first_difference(&self, other: &Self) -> Option<i64> {
        let start = self.start.max(other.start);
        (start..self.end().max(other.end())).find(|at| self.at(*at) != other.at(*at))
    }
}
