//! What others ask of the producers that write to a partition: which transactions are open, whether
//! one may be begun, who they are.

use std::sync::Arc;

use duolog_log_core::log::{Log, Verification, VerificationGuard, Verified};
use parking_lot::Mutex;

use super::Partition;
use super::append::AppendError;
use super::task::Command;

/// One producer as tools show it (KIP-664).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerState {
    /// Its id.
    pub id: i64,
    /// The newest epoch.
    pub epoch: i16,
    /// Of its last record; -1 for none.
    pub last_sequence: i32,
    /// Of its last batch or marker, in ms.
    pub last_timestamp: i64,
    /// Of the last marker's coordinator; -1 for none.
    pub coordinator_epoch: i32,
    /// Where its open transaction begins.
    pub txn_start_offset: Option<i64>,
}

/// Producer and epoch of each transaction that is open here, for all but the owner.
#[derive(Debug, Default)]
pub(super) struct OpenTransactions(Mutex<Vec<(i64, i16)>>);

impl OpenTransactions {
    /// Takes over what the log says.
    pub(super) fn publish(&self, log: &Log) {
        *self.0.lock() = log.producers().in_transaction().collect();
    }
}

impl Partition {
    /// What a transactional append may take for granted, before its coordinator is asked: the
    /// transaction is open here, or there is a guard that makes the coordinator's word good.
    ///
    /// Errors: the log cannot be opened; the partition is gone.
    pub async fn verified(
        self: &Arc<Self>,
        verification: Verification,
    ) -> Result<Verified, AppendError> {
        let whose = (verification.producer_id, verification.producer_epoch);
        if self.transactions.0.lock().contains(&whose) {
            return Ok(Verified::Open);
        }
        let guard = self.ask(|reply| Command::BeginVerification(verification, reply)).await?;
        Ok(guard.map_or(Verified::Open, Verified::Guard))
    }

    /// All producers that are remembered, by id.
    ///
    /// Errors: the log cannot be opened; the partition is gone.
    pub async fn producers(self: &Arc<Self>) -> Result<Vec<ProducerState>, AppendError> {
        if self.is_untouched() {
            return Ok(Vec::new());
        }
        self.ask(Command::Producers).await
    }
}

/// The question of [`Partition::verified`], put to the owner.
pub(super) type GuardReply = Result<Option<VerificationGuard>, AppendError>;

/// The producers of a log.
pub(super) fn producers(log: &Log) -> Vec<ProducerState> {
    let states = log.producers().iter().map(|(id, producer)| ProducerState {
        id,
        epoch: producer.epoch,
        last_sequence: producer.last_batch().map_or(-1, |batch| batch.last_sequence),
        last_timestamp: producer.last_timestamp,
        coordinator_epoch: producer.coordinator_epoch,
        txn_start_offset: producer.txn_first_offset,
    });
    states.collect()
}
