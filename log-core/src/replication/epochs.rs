//! Which leader epoch wrote from which offset on: the answer to "where did your log leave mine?".
//!
//! Entries are strictly increasing in epoch and in start offset. Written to `leader-epoch-checkpoint` by storage.
//! Source: KIP-101, KIP-279; LeaderEpochFileCache.

use crate::ids::{LeaderEpoch, Offset};

/// `epoch` wrote from `start_offset` (inclusive) to the start of the next entry (exclusive), or to the log end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochEntry {
    /// The leader's epoch.
    pub epoch: LeaderEpoch,
    /// First offset written in it: inclusive.
    pub start_offset: Offset,
}

/// The epochs of one partition's log, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaderEpochs {
    entries: Vec<EpochEntry>,
}

/// What [`LeaderEpochs::end_offset_for`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochEnd {
    /// The largest epoch in the log that is not above the one asked for.
    pub epoch: LeaderEpoch,
    /// Where it ends: exclusive.
    pub end_offset: Offset,
}

impl LeaderEpochs {
    /// Takes entries read from a checkpoint; drops those that break the order, as a torn file would.
    #[must_use]
    pub fn from_entries(entries: impl IntoIterator<Item = EpochEntry>) -> Self {
        let mut epochs = Self::default();
        for entry in entries {
            epochs.assign(entry.epoch, entry.start_offset);
        }
        epochs
    }

    /// All entries, oldest first.
    #[must_use]
    pub fn entries(&self) -> &[EpochEntry] {
        &self.entries
    }

    /// The newest epoch in the log.
    #[must_use]
    pub fn latest(&self) -> Option<EpochEntry> {
        self.entries.last().copied()
    }

    /// The epoch in which `offset` was written.
    #[must_use]
    pub fn epoch_of(&self, offset: Offset) -> Option<LeaderEpoch> {
        self.entries.iter().rev().find(|e| e.start_offset <= offset).map(|e| e.epoch)
    }

    /// Notes that `epoch` writes from `start_offset` on; returns whether the entries changed.
    ///
    /// A known or older epoch changes nothing. Entries at or beyond `start_offset` held no record, or lost it by a
    /// truncation that this append follows, and go: otherwise two epochs would claim the same offsets.
    pub fn assign(&mut self, epoch: LeaderEpoch, start_offset: Offset) -> bool {
        if epoch < LeaderEpoch(0) || self.latest().is_some_and(|latest| latest.epoch >= epoch) {
            return false;
        }
        self.entries.retain(|entry| entry.start_offset < start_offset);
        self.entries.push(EpochEntry { epoch, start_offset });
        true
    }

    /// Where `epoch` ends in a log that ends at `log_end_offset` (exclusive).
    ///
    /// The latest epoch ends at the log end; an earlier one where the next begins; an epoch missing between two is
    /// answered with the largest smaller one, so that a truncation may take another round (KIP-279). `None` for an
    /// epoch from the future or from before the first entry.
    #[must_use]
    pub fn end_offset_for(&self, epoch: LeaderEpoch, log_end_offset: Offset) -> Option<EpochEnd> {
        let latest = self.latest()?;
        if epoch == latest.epoch {
            return Some(EpochEnd { epoch, end_offset: log_end_offset });
        }
        let next = self.entries.iter().position(|entry| entry.epoch > epoch)?;
        let found = self.entries.get(next.checked_sub(1)?)?;
        let end_offset = self.entries.get(next)?.start_offset;
        Some(EpochEnd { epoch: found.epoch, end_offset })
    }

    /// As [`Self::end_offset_for`], in the log of a leader whose epoch began at `current`, whether or not it has written
    /// since: its epoch ends at the log end, and every earlier one ended at or below its start.
    ///
    /// An epoch before the first entry ends there at the latest: its records were deleted here, or a power cut brought
    /// some of them back after their entry was dropped. `None` for an epoch from the future, and for none at all.
    /// Source: LeaderEpochFileCache.endOffsetFor.
    #[must_use]
    pub fn end_offset_for_leader(
        &self,
        epoch: LeaderEpoch,
        current: EpochEntry,
        log_end_offset: Offset,
    ) -> Option<EpochEnd> {
        if epoch == current.epoch {
            return Some(EpochEnd { epoch, end_offset: log_end_offset });
        }
        if epoch > current.epoch || epoch < LeaderEpoch(0) {
            return None;
        }
        let known = self.entries.iter().filter(|entry| entry.epoch < current.epoch);
        let next = known.clone().find(|entry| entry.epoch > epoch).unwrap_or(&current);
        let found = known.take_while(|entry| entry.epoch <= epoch).last();
        let found = found.map_or(epoch, |entry| entry.epoch);
        Some(EpochEnd { epoch: found, end_offset: next.start_offset })
    }

    /// Drops what a truncation of the log to `log_end_offset` (exclusive) removed; returns whether anything went.
    pub fn truncate_from_end(&mut self, log_end_offset: Offset) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.start_offset < log_end_offset);
        before != self.entries.len()
    }

    /// Follows the log start to `log_start_offset` (inclusive); returns whether anything changed.
    ///
    /// The entry that covers the new start stays, moved to it, so that its epoch can still be asked for.
    pub fn truncate_from_start(&mut self, log_start_offset: Offset) -> bool {
        let Some(covering) = self.entries.iter().rposition(|e| e.start_offset <= log_start_offset)
        else {
            return false;
        };
        let moves = self.entries.get(covering).is_some_and(|e| e.start_offset < log_start_offset);
        self.entries.drain(..covering);
        if let (true, Some(first)) = (moves, self.entries.first_mut()) {
            first.start_offset = log_start_offset;
        }
        covering > 0 || moves
    }
}

#[cfg(test)]
mod tests;
