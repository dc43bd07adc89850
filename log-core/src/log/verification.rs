//! Which transactional batches may begin a transaction in this log (KIP-890).
//!
//! A batch that comes late, after its transaction was ended elsewhere, would open one that nobody
//! ends. So before the first batch of a transaction somebody asks its coordinator, and keeps what
//! makes the answer good for this moment only: a guard, which the next transactional batch or
//! marker of that producer takes away. Source: VerificationStateEntry, VerificationGuard.

use std::collections::BTreeMap;

use super::{Log, LogError};
use crate::producers::Producers;
use crate::record::BatchHeader;

/// Stands for one question to a transaction's coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerificationGuard(u64);

/// What an append may take for granted about its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verified {
    /// It is open in this log.
    Open,
    /// The coordinator has said yes since the guard was given.
    Guard(VerificationGuard),
    /// Nobody asked: `transaction.partition.verification.enable=false`.
    Unasked,
}

/// Whose transaction is to begin here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verification {
    /// The producer id.
    pub producer_id: i64,
    /// Its epoch.
    pub producer_epoch: i16,
    /// Base sequence of the batch that waits.
    pub base_sequence: i32,
    /// What the producer's protocol says of epochs.
    pub epochs: TxnEpochs,
}

/// What ends of transactions do to the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxnEpochs {
    /// It stays: transactions v1.
    Stay,
    /// It rises: transactions v2 (KIP-890).
    Rise,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    guard: VerificationGuard,
    epoch: i16,
    lowest_sequence: i32,
    /// Of the request that asked first, as in VerificationStateEntry.
    epochs: TxnEpochs,
    since_ms: i64,
}

/// The questions that are open.
#[derive(Debug, Default)]
pub(super) struct Verifications {
    asked: BTreeMap<i64, Asked>,
    next: u64,
}

impl Verifications {
    /// A producer's transactional batch or marker is in the log.
    pub(super) fn appended(&mut self, producer_id: i64) {
        self.asked.remove(&producer_id);
    }

    pub(super) fn expire(&mut self, now_ms: i64, expiration_ms: i64) {
        self.asked.retain(|_, asked| now_ms.saturating_sub(asked.since_ms) < expiration_ms);
    }

    fn ask(&mut self, verification: &Verification, now_ms: i64) -> VerificationGuard {
        let Verification { producer_id, producer_epoch, base_sequence, epochs } = *verification;
        let fresh = VerificationGuard(self.next);
        let asked = self.asked.entry(producer_id).or_insert_with(|| {
            self.next += 1;
            Asked {
                guard: fresh,
                epoch: producer_epoch,
                lowest_sequence: base_sequence,
                epochs,
                since_ms: now_ms,
            }
        });
        if producer_epoch > asked.epoch {
            asked.epoch = producer_epoch;
            asked.lowest_sequence = base_sequence;
        } else if producer_epoch == asked.epoch {
            asked.lowest_sequence = asked.lowest_sequence.min(base_sequence);
        }
        asked.guard
    }

    /// Whether a transactional batch may be written; its epoch is checked elsewhere.
    ///
    /// Errors: `UnverifiedTxn`, `OutOfOrderSequence`.
    pub(super) fn check(
        &self,
        producers: &Producers,
        header: &BatchHeader,
        verified: Verified,
        offset: i64,
    ) -> Result<(), LogError> {
        let producer_id = header.producer_id.0;
        let is_open = producers.producer(producer_id).is_some_and(|producer| {
            producer.txn_first_offset.is_some() && producer.epoch == header.producer_epoch.0
        });
        let asked = self.asked.get(&producer_id);
        let may_begin = match verified {
            Verified::Unasked => true,
            Verified::Open => false,
            Verified::Guard(guard) => asked.is_some_and(|asked| asked.guard == guard),
        };
        if header.is_transactional() && !is_open && !may_begin {
            return Err(LogError::UnverifiedTxn { producer_id });
        }
        let Some(asked) = asked else { return Ok(()) };
        let incoming = header.base_sequence;
        let is_empty =
            producers.producer(producer_id).is_none_or(|producer| producer.last_batch().is_none());
        let expected = match asked.epochs {
            // Whatever this producer wrote before was under another epoch.
            TxnEpochs::Rise if is_empty => 0,
            TxnEpochs::Rise | TxnEpochs::Stay => asked.lowest_sequence,
        };
        // A later batch of the producer must not overtake the one that asked first.
        if incoming > expected {
            return Err(LogError::OutOfOrderSequence { producer_id, offset, incoming, expected });
        }
        Ok(())
    }
}

impl Log {
    /// Notes that a coordinator is about to be asked whether this partition is in the producer's
    /// transaction. `None`: the transaction is open here already.
    ///
    /// Errors: `InvalidProducerEpoch` of a producer that another one has replaced here, whom the
    /// coordinator need not be asked about (UnifiedLog.maybeStartTransactionVerification).
    pub fn begin_verification(
        &mut self,
        verification: &Verification,
        now_ms: i64,
    ) -> Result<Option<VerificationGuard>, LogError> {
        let Verification { producer_id, producer_epoch: incoming, .. } = *verification;
        let producer = self.producers.producer(producer_id);
        if let Some(current) = producer.map(|it| it.epoch).filter(|current| incoming < *current) {
            return Err(LogError::InvalidProducerEpoch { producer_id, incoming, current });
        }
        let is_open = producer.is_some_and(|producer| {
            producer.txn_first_offset.is_some() && producer.epoch == incoming
        });
        Ok((!is_open).then(|| self.verifications.ask(verification, now_ms)))
    }
}
