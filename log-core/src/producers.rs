//! What a partition knows of the producers that write to it: sequences, epochs, open transactions.
//!
//! One producer's state, by what is appended:
//!
//! | before | batch | after |
//! |---|---|---|
//! | unknown | any sequence | known from here on |
//! | epoch e, last sequence s | e, s + 1 | last sequence moves on |
//! | epoch e | e, a range among the last five batches | duplicate: answered, not written |
//! | epoch e, last sequence s | e, anything else | out of order |
//! | epoch e | above e, sequence 0 | the new epoch; its older batches are forgotten |
//! | epoch e | below e | fenced |
//! | no transaction | transactional | a transaction is open from its first offset on |
//! | open transaction | not transactional | refused |
//! | open transaction | marker, epoch e or above | completed; unstable until replicated |
//!
//! Of a coordinator's deliveries, see [`DeliveryPosition`]:
//!
//! | before | batch | after |
//! |---|---|---|
//! | last position p | all above p | last position moves on, whatever was left out |
//! | last position p | all at or below p | duplicate: not written |
//! | last position p | some below, some above | out of order, with the position to begin at |
//!
//! The oldest transaction that is open, or whose marker is not yet below the high watermark, bounds
//! the last stable offset. Source: KIP-98, KIP-360; ProducerStateManager, ProducerAppendInfo.

use std::collections::BTreeMap;

use crate::ids::ProducerId;
use crate::log::{LogError, TxnEpochs};
use crate::record::batch::{NO_SEQUENCE, sequence_plus};
use crate::record::{BatchHeader, EndTransactionMarker, TransactionOutcome};

mod delivery;
mod window;

pub use delivery::DeliveryPosition;
use window::Window;
pub use window::{BATCHES_KEPT, SentBatch};

const NO_EPOCH: i16 = -1;
const NO_COORDINATOR: i32 = -1;

/// All producers of one log, up to [`Self::end_offset`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Producers {
    producers: BTreeMap<i64, Producer>,
    /// First offset of each open transaction, and whose it is.
    open: BTreeMap<i64, i64>,
    /// First offset of each completed transaction, and its marker's, until replicated.
    unreplicated: BTreeMap<i64, i64>,
    end_offset: i64,
}

/// What is known of one producer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Producer {
    /// The highest epoch seen; -1 when none was.
    pub epoch: i16,
    /// Of the last transaction coordinator that wrote a marker; -1 when none did.
    pub coordinator_epoch: i32,
    /// Of the last batch or marker, in ms; what expiry counts from.
    pub last_timestamp: i64,
    /// Where its open transaction begins.
    pub txn_first_offset: Option<i64>,
    batches: Window,
    first_sequence: FirstSequence,
}

/// With which sequence a producer may go on of which no batch is remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FirstSequence {
    /// Its epoch is new.
    #[default]
    Zero,
    /// Its batches were deleted and only a marker was left to learn from (case B47).
    Any,
}

impl Default for Producer {
    fn default() -> Self {
        Self {
            epoch: NO_EPOCH,
            coordinator_epoch: NO_COORDINATOR,
            last_timestamp: -1,
            txn_first_offset: None,
            batches: Window::default(),
            first_sequence: FirstSequence::Zero,
        }
    }
}

impl Producer {
    /// The last data batch, if one is remembered.
    #[must_use]
    pub fn last_batch(&self) -> Option<SentBatch> {
        self.batches.last()
    }

    /// A producer as a snapshot keeps it: with its last batch only.
    #[must_use]
    pub fn from_last_batch(last_batch: Option<SentBatch>) -> Self {
        let mut producer = Self::default();
        if let Some(batch) = last_batch {
            producer.batches.push(batch);
        }
        producer
    }

    fn set_epoch(&mut self, epoch: i16) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.batches = Window::default();
            self.first_sequence = FirstSequence::Zero;
        }
    }

    /// The first sequence that the next batch of `epoch` must have; `None` for any.
    fn expected_sequence(&self, epoch: i16) -> Option<i32> {
        if self.epoch == NO_EPOCH {
            // Never heard of, perhaps because all that it wrote was deleted.
            return None;
        }
        if epoch != self.epoch {
            // A new epoch starts over (KIP-360).
            return Some(0);
        }
        match (self.batches.last(), self.first_sequence) {
            (Some(batch), _) => Some(sequence_plus(batch.last_sequence, 1)),
            (None, FirstSequence::Zero) => Some(0),
            (None, FirstSequence::Any) => None,
        }
    }
}

/// A transaction that a marker ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedTxn {
    /// Whose.
    pub producer_id: i64,
    /// Its first offset.
    pub first_offset: i64,
    /// The marker's offset.
    pub last_offset: i64,
    /// How it ended.
    pub outcome: TransactionOutcome,
    /// First offset of the oldest transaction still open, else the offset after the marker.
    pub last_stable_offset: i64,
}

/// A producer as it was, to go back to when a write fails.
#[derive(Clone, Debug)]
pub struct SavedProducer {
    producer_id: i64,
    producer: Option<Producer>,
}

impl Producers {
    /// No producer; the state of a log that starts at `offset`.
    #[must_use]
    pub fn starting_at(offset: i64) -> Self {
        Self { end_offset: offset, ..Self::default() }
    }

    /// All batches below are accounted for: exclusive.
    #[must_use]
    pub const fn end_offset(&self) -> i64 {
        self.end_offset
    }

    /// Notes that batches without a producer id, or none at all, lead up to `offset`.
    pub fn set_end_offset(&mut self, offset: i64) {
        self.end_offset = offset;
    }

    /// All producers by id.
    pub fn iter(&self) -> impl Iterator<Item = (i64, &Producer)> {
        self.producers.iter().map(|(id, producer)| (*id, producer))
    }

    /// The producer with this id.
    #[must_use]
    pub fn producer(&self, producer_id: i64) -> Option<&Producer> {
        self.producers.get(&producer_id)
    }

    /// Producer and epoch of each open transaction.
    pub fn in_transaction(&self) -> impl Iterator<Item = (i64, i16)> {
        self.open.values().filter_map(|id| Some((*id, self.producers.get(id)?.epoch)))
    }

    /// Where the oldest transaction begins that is open or not yet replicated; what readers with
    /// isolation must not pass.
    #[must_use]
    pub fn first_unstable_offset(&self) -> Option<i64> {
        let open = self.open.first_key_value().map(|(first, _)| *first);
        let unreplicated = self.unreplicated.first_key_value().map(|(first, _)| *first);
        open.into_iter().chain(unreplicated).min()
    }

    /// Forgets completed transactions whose marker lies below the high watermark.
    pub fn high_watermark_moved(&mut self, high_watermark: i64) {
        self.unreplicated.retain(|_, marker| *marker >= high_watermark);
    }

    /// Takes over which completed transactions `earlier` knew not to be replicated, of those that are still here: this
    /// state was made anew from the log, which does not say so.
    pub fn take_unreplicated_of(&mut self, earlier: &Self) {
        let kept = earlier.unreplicated.iter().filter(|(_, marker)| **marker < self.end_offset);
        self.unreplicated = kept.map(|(first, marker)| (*first, *marker)).collect();
    }

    /// Whether any producer has ever ended a transaction.
    #[must_use]
    pub fn has_ended_transactions(&self) -> bool {
        self.producers.values().any(|producer| producer.coordinator_epoch != NO_COORDINATOR)
    }

    /// The batch that a client sends again, if it is one of the last few.
    #[must_use]
    pub fn duplicate(&self, header: &BatchHeader) -> Option<SentBatch> {
        let producer = self.producers.get(&header.producer_id.0)?;
        let is_same_epoch = header.producer_epoch.0 == producer.epoch;
        let find = || producer.batches.find(header.base_sequence, header.last_sequence());
        is_same_epoch.then(find)?
    }

    /// Whether a coordinator's batch for a producer may be written.
    ///
    /// Errors: `InvalidProducerEpoch`.
    pub fn admit_epoch(&self, header: &BatchHeader) -> Result<(), LogError> {
        let producer_id = header.producer_id.0;
        let incoming = header.producer_epoch.0;
        match self.producers.get(&producer_id).map(|producer| producer.epoch) {
            Some(current) if incoming < current => {
                Err(LogError::InvalidProducerEpoch { producer_id, incoming, current })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Whether a client's batch, which is no [`Self::duplicate`], may be written at `offset`.
    ///
    /// Errors: `InvalidProducerEpoch`, `OutOfOrderSequence`, `InvalidTxnState`.
    pub fn admit(&self, header: &BatchHeader, offset: i64) -> Result<(), LogError> {
        self.admit_epoch(header)?;
        let producer_id = header.producer_id.0;
        let unknown = Producer::default();
        let producer = self.producers.get(&producer_id).unwrap_or(&unknown);
        let (epoch, first) = (header.producer_epoch.0, header.base_sequence);
        if let Some(expected) = producer.expected_sequence(epoch)
            && first != expected
        {
            let incoming = first;
            return Err(LogError::OutOfOrderSequence { producer_id, offset, incoming, expected });
        }
        if producer.txn_first_offset.is_some() && !header.is_transactional() {
            return Err(LogError::InvalidTxnState { producer_id });
        }
        Ok(())
    }

    /// Whether a coordinator's marker may be written. Under transactions v2 its epoch is above that
    /// of the data; the same epoch with no transaction open is a marker written again, which does no
    /// harm (KAFKA-19999).
    ///
    /// Errors: `InvalidProducerEpoch`, `CoordinatorFenced`.
    pub fn admit_marker(
        &self,
        header: &BatchHeader,
        marker: &EndTransactionMarker,
        epochs: TxnEpochs,
    ) -> Result<(), LogError> {
        let producer_id = header.producer_id.0;
        let Some(producer) = self.producers.get(&producer_id) else { return Ok(()) };
        let incoming = header.producer_epoch.0;
        let is_late = match epochs {
            TxnEpochs::Stay => incoming < producer.epoch,
            TxnEpochs::Rise if incoming == producer.epoch => producer.txn_first_offset.is_some(),
            TxnEpochs::Rise => incoming < producer.epoch,
        };
        if is_late {
            let current = producer.epoch;
            return Err(LogError::InvalidProducerEpoch { producer_id, incoming, current });
        }
        let incoming = marker.coordinator_epoch;
        if incoming < producer.coordinator_epoch {
            let current = producer.coordinator_epoch;
            return Err(LogError::CoordinatorFenced { producer_id, incoming, current });
        }
        Ok(())
    }

    /// Takes in a data batch that is in the log, whatever its sequence: it was checked before, or
    /// comes from a leader.
    pub fn append(&mut self, header: &BatchHeader) {
        self.end_offset = header.next_offset();
        if !header.has_producer_id() || header.is_control() {
            return;
        }
        let producer = self.producers.entry(header.producer_id.0).or_default();
        producer.set_epoch(header.producer_epoch.0);
        producer.last_timestamp = header.max_timestamp;
        if header.base_sequence != NO_SEQUENCE {
            producer.batches.push(SentBatch {
                last_sequence: header.last_sequence(),
                last_offset: header.last_offset(),
                offset_delta: header.last_offset_delta,
                timestamp: header.max_timestamp,
            });
        }
        if header.is_transactional() && producer.txn_first_offset.is_none() {
            producer.txn_first_offset = Some(header.base_offset);
            self.open.insert(header.base_offset, header.producer_id.0);
        }
    }

    /// Takes in a marker that is in the log; the transaction that it ended, if one was open.
    pub fn append_marker(
        &mut self,
        header: &BatchHeader,
        marker: &EndTransactionMarker,
        timestamp: i64,
    ) -> Option<CompletedTxn> {
        self.end_offset = header.next_offset();
        let producer_id = header.producer_id.0;
        let producer = self.producers.entry(producer_id).or_default();
        let was_unknown = producer.epoch == NO_EPOCH;
        producer.set_epoch(header.producer_epoch.0);
        if was_unknown {
            producer.first_sequence = FirstSequence::Any;
        }
        producer.coordinator_epoch = marker.coordinator_epoch;
        producer.last_timestamp = timestamp;
        let first_offset = producer.txn_first_offset.take()?;
        self.open.remove(&first_offset);
        let last_offset = header.last_offset();
        self.unreplicated.insert(first_offset, last_offset);
        let oldest_open = self.open.first_key_value().map(|(first, _)| *first);
        Some(CompletedTxn {
            producer_id,
            first_offset,
            last_offset,
            outcome: marker.outcome,
            last_stable_offset: oldest_open.unwrap_or(last_offset.saturating_add(1)),
        })
    }

    /// Puts in a producer read from a snapshot.
    pub fn restore(&mut self, producer_id: i64, producer: Producer) {
        if let Some(first_offset) = producer.txn_first_offset {
            self.open.insert(first_offset, producer_id);
        }
        self.producers.insert(producer_id, producer);
    }

    /// Takes the batches that `recent` remembers for the producers of which both know the same last
    /// batch.
    pub fn adopt_windows(&mut self, recent: &Self) {
        for (producer_id, producer) in &mut self.producers {
            if let Some(seen) = recent.producers.get(producer_id)
                && seen.epoch == producer.epoch
                && seen.batches.last() == producer.batches.last()
            {
                producer.batches = seen.batches.clone();
            }
        }
    }

    /// The producer as it is now, see [`Self::take_back`].
    #[must_use]
    pub fn save(&self, producer_id: i64) -> SavedProducer {
        SavedProducer { producer_id, producer: self.producers.get(&producer_id).cloned() }
    }

    /// Undoes what was taken in since `saved`, newest first, for a log that ends at `end_offset`.
    pub fn take_back(&mut self, saved: Vec<SavedProducer>, end_offset: i64) {
        for SavedProducer { producer_id, producer } in saved.into_iter().rev() {
            self.open.retain(|_, owner| *owner != producer_id);
            match producer {
                Some(producer) => self.restore(producer_id, producer),
                None => _ = self.producers.remove(&producer_id),
            }
        }
        self.unreplicated.retain(|_, marker| *marker < end_offset);
        self.end_offset = end_offset;
    }

    /// Forgets producers without an open transaction that were last heard of `expiration_ms` ago or
    /// earlier (`producer.id.expiration.ms`); returns how many.
    pub fn expire(&mut self, now_ms: i64, expiration_ms: i64) -> usize {
        let before = self.producers.len();
        self.producers.retain(|id, producer| !producer.is_expired(*id, now_ms, expiration_ms));
        before - self.producers.len()
    }
}

impl Producer {
    /// See [`Producers::expire`]. Deliveries are never forgotten: one of them may be repeated
    /// whenever its coordinator comes back.
    #[must_use]
    pub const fn is_expired(&self, producer_id: i64, now_ms: i64, expiration_ms: i64) -> bool {
        self.txn_first_offset.is_none()
            && !ProducerId(producer_id).is_of_delivery()
            && now_ms.saturating_sub(self.last_timestamp) >= expiration_ms
    }
}

#[cfg(test)]
mod tests;
