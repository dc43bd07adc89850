//! Where a message stands among all that one internal log delivers.
//!
//! A coordinator notes in its log which of its messages go to a partition, then appends them there.
//! The position of such a message follows from where the note stands, so a delivery that is
//! repeated after a crash has the positions that it had before, and the partition's producer state
//! tells what of it is there already. Nothing has to be counted or kept for that, and no marker is
//! needed.
//!
//! ```text
//! position = offset of the note × 1024 + the message's place in it
//! producer epoch = position / 2^31, sequence = position mod 2^31
//! ```
//! A batch's last sequence is the position of its last message. Between its messages, and between
//! batches, positions may be left out. Whoever delivers asks first where it stands
//! ([`Producers::delivered`]) and goes on above.

use super::{Producers, SentBatch};
use crate::ids::{Offset, ProducerEpoch, ProducerId};
use crate::log::LogError;
use crate::record::BatchHeader;

const SEQUENCE_BITS: u32 = 31;

/// The position of one message; greater ones are delivered later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeliveryPosition(i64);

impl DeliveryPosition {
    /// Messages of one note, at most.
    pub const MESSAGES_MAX: usize = 1024;

    /// Notes at and above this offset have no positions: 2^36, some 68 thousand million.
    pub const NOTES_END: i64 = 1 << 36;

    /// Of message `place` in the note at `note`; `None` beyond the bounds.
    #[must_use]
    pub fn new(note: Offset, place: usize) -> Option<Self> {
        let fits = (0..Self::NOTES_END).contains(&note.0) && place < Self::MESSAGES_MAX;
        fits.then(|| Self(note.0 * Self::MESSAGES_MAX as i64 + place as i64))
    }

    /// The producer epoch of batches that hold it. All messages of a note have the same.
    #[must_use]
    pub fn epoch(self) -> ProducerEpoch {
        ProducerEpoch((self.0 >> SEQUENCE_BITS) as i16)
    }

    /// The sequence of its record, if it is the last one of its batch.
    #[must_use]
    pub fn sequence(self) -> i32 {
        (self.0 & i64::from(i32::MAX)) as i32
    }

    /// The position with this epoch and sequence.
    #[must_use]
    pub fn from_parts(epoch: ProducerEpoch, sequence: i32) -> Self {
        Self((i64::from(epoch.0) << SEQUENCE_BITS) | i64::from(sequence))
    }
}

impl Producers {
    /// The position of the last message that a producer of deliveries has here.
    #[must_use]
    pub fn delivered(&self, producer_id: ProducerId) -> Option<DeliveryPosition> {
        let producer = self.producer(producer_id.0)?;
        let last = producer.last_batch()?;
        Some(DeliveryPosition::from_parts(ProducerEpoch(producer.epoch), last.last_sequence))
    }

    /// Whether a batch of deliveries, which is to stand at `offset`, may be written; if all of it
    /// was delivered before, the last batch of its producer.
    ///
    /// Errors: `OutOfOrderSequence` when a part of it was, with the sequence to begin at.
    pub fn admit_delivery(
        &self,
        header: &BatchHeader,
        offset: i64,
    ) -> Result<Option<SentBatch>, LogError> {
        let producer_id = header.producer_id.0;
        let Some(producer) = self.producer(producer_id) else { return Ok(None) };
        let Some(last) = producer.last_batch() else { return Ok(None) };
        let known = DeliveryPosition::from_parts(ProducerEpoch(producer.epoch), last.last_sequence);
        let of = |sequence| DeliveryPosition::from_parts(header.producer_epoch, sequence);
        if of(header.last_sequence()) <= known {
            return Ok(Some(last));
        }
        let incoming = header.base_sequence;
        if of(incoming) > known {
            return Ok(None);
        }
        let expected = last.last_sequence.saturating_add(1);
        Err(LogError::OutOfOrderSequence { producer_id, offset, incoming, expected })
    }
}

#[cfg(test)]
mod tests;
