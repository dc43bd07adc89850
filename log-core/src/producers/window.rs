//! The last few batches of one producer, in which a repeated send is recognized.

use crate::record::batch::NO_SEQUENCE;

/// A producer may have five requests in flight, so five batches may be sent again (KIP-98).
pub const BATCHES_KEPT: usize = 5;

/// A batch that is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentBatch {
    /// Of its last record.
    pub last_sequence: i32,
    /// Of its last record.
    pub last_offset: i64,
    /// Records less one, as offsets count them.
    pub offset_delta: i32,
    /// The batch's greatest, in ms.
    pub timestamp: i64,
}

impl SentBatch {
    /// Offset of its first record.
    #[must_use]
    pub const fn first_offset(&self) -> i64 {
        self.last_offset.saturating_sub(self.offset_delta as i64)
    }

    /// Sequence of its first record; sequences start again at 0 after `i32::MAX`.
    #[must_use]
    pub const fn first_sequence(&self) -> i32 {
        if self.last_sequence == NO_SEQUENCE {
            return NO_SEQUENCE;
        }
        let first = self.last_sequence as i64 - self.offset_delta as i64;
        first.rem_euclid(1 << 31) as i32
    }
}

/// Oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    batches: [Option<SentBatch>; BATCHES_KEPT],
}

impl Window {
    /// Adds the newest; the oldest goes when five are there.
    pub(super) fn push(&mut self, batch: SentBatch) {
        if let Some(free) = self.batches.iter_mut().find(|slot| slot.is_none()) {
            *free = Some(batch);
            return;
        }
        self.batches.rotate_left(1);
        if let Some(newest) = self.batches.last_mut() {
            *newest = Some(batch);
        }
    }

    pub(super) fn last(&self) -> Option<SentBatch> {
        self.batches.iter().rev().find_map(|slot| *slot)
    }

    /// The batch with exactly this range of sequences, both inclusive.
    pub(super) fn find(&self, first: i32, last: i32) -> Option<SentBatch> {
        let mut kept = self.batches.iter().flatten();
        kept.find(|b| b.last_sequence == last && b.first_sequence() == first).copied()
    }
}
