//! EndTxn, of both transaction protocols.

use duolog_log_core::record::TransactionOutcome;

use super::{Decision, FENCING_EPOCH, TxnShard, await_next_producer, is_exhausted, producer_after};
use crate::record::transaction::{NO_PRODUCER_ID, ProducerIdAndEpoch, TxnState, TxnValue};
use crate::time::Now;
use crate::txn::kafka::error::TxnError;
use crate::txn::kafka::event::EndTxn;
use crate::txn::kafka::response::Response;

/// What a request to end is to the transaction as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    /// Of a producer that has the present epoch.
    First,
    /// The epoch was raised by an attempt whose answer was lost.
    Retry,
}

impl TxnShard {
    pub(super) fn end_txn(&self, end: &EndTxn, now: Now) -> Result<Decision, TxnError> {
        if end.version.bumps_epoch() { self.end_v2(end, now) } else { self.end_v1(end, now) }
    }

    /// The epoch stays, so a repeated request looks like the first one.
    fn end_v1(&self, end: &EndTxn, now: Now) -> Result<Decision, TxnError> {
        let value = self.of_producer(&end.id, end.producer.id)?;
        if value.producer.epoch != end.producer.epoch {
            return Err(TxnError::ProducerFenced);
        }
        match (value.state, end.outcome) {
            (TxnState::Ongoing, _) => {
                let prepared = TxnValue {
                    previous_producer_id: value.producer.id,
                    ..prepared(value, end, now)
                };
                let producer = prepared.producer;
                Ok(Decision::Store(prepared, Response::Ended(producer)))
            }
            (TxnState::CompleteCommit, TransactionOutcome::Commit)
            | (TxnState::CompleteAbort, TransactionOutcome::Abort) => {
                Ok(Decision::Answer(Response::Ended(value.producer)))
            }
            (TxnState::PrepareCommit, TransactionOutcome::Commit)
            | (TxnState::PrepareAbort, TransactionOutcome::Abort) => {
                Err(TxnError::ConcurrentTransactions)
            }
            (
                TxnState::Empty
                | TxnState::PrepareCommit
                | TxnState::PrepareAbort
                | TxnState::CompleteCommit
                | TxnState::CompleteAbort,
                _,
            ) => Err(TxnError::InvalidTxnState),
        }
    }

    /// Every end raises the epoch, so the epoch tells a repeated request from the next one.
    fn end_v2(&self, end: &EndTxn, now: Now) -> Result<Decision, TxnError> {
        if end.id.is_empty() {
            return Err(TxnError::InvalidRequest);
        }
        let value = self.ids.get(&end.id).ok_or(TxnError::InvalidProducerIdMapping)?;
        let attempt = attempt(value, end.producer)?;
        match (value.state, end.outcome, attempt) {
            (TxnState::Ongoing, _, _)
            | (TxnState::Empty, TransactionOutcome::Abort, _)
            | (
                TxnState::CompleteCommit | TxnState::CompleteAbort,
                TransactionOutcome::Abort,
                Attempt::First,
            ) => Ok(prepare_v2(value, end, now)),
            (TxnState::CompleteCommit, TransactionOutcome::Commit, Attempt::Retry)
            | (TxnState::CompleteAbort, TransactionOutcome::Abort, Attempt::Retry) => {
                Ok(Decision::Answer(Response::Ended(value.producer)))
            }
            (TxnState::PrepareCommit, TransactionOutcome::Commit, _)
            | (TxnState::PrepareAbort, TransactionOutcome::Abort, _) => {
                Err(TxnError::ConcurrentTransactions)
            }
            (TxnState::Empty, TransactionOutcome::Commit, _)
            | (TxnState::PrepareCommit, TransactionOutcome::Abort, _)
            | (TxnState::PrepareAbort | TxnState::CompleteAbort, TransactionOutcome::Commit, _)
            | (TxnState::CompleteCommit, TransactionOutcome::Commit, Attempt::First)
            | (TxnState::CompleteCommit, TransactionOutcome::Abort, Attempt::Retry) => {
                Err(TxnError::InvalidTxnState)
            }
        }
    }
}

/// Errors: `ConcurrentTransactions`, `InvalidProducerIdMapping`, `ProducerFenced`.
fn attempt(value: &TxnValue, sent: ProducerIdAndEpoch) -> Result<Attempt, TxnError> {
    await_next_producer(value, sent.id)?;
    let held = value.producer;
    let is_complete = matches!(value.state, TxnState::CompleteCommit | TxnState::CompleteAbort);
    // The epochs were used up: the attempt before has led to a new producer id.
    let overflowed =
        value.previous_producer_id == sent.id && sent.epoch == i16::MAX - 1 && held.epoch == 0;
    if held.id != sent.id && !(overflowed && is_complete) {
        return Err(TxnError::InvalidProducerIdMapping);
    }
    // A transaction that timed out at the last epoch but one: the producer is to begin anew.
    if held.epoch == FENCING_EPOCH && value.state.prepared().is_none() {
        return Err(TxnError::ProducerFenced);
    }
    // Whatever version ended the transaction, as in Kafka: only the epochs are looked at.
    let bumped = sent.epoch.checked_add(1) == Some(held.epoch);
    let is_retry = match value.state {
        TxnState::Empty | TxnState::Ongoing => false,
        TxnState::PrepareCommit | TxnState::PrepareAbort => bumped,
        TxnState::CompleteCommit | TxnState::CompleteAbort => bumped || overflowed,
    };
    if is_retry {
        return Ok(Attempt::Retry);
    }
    if value.state.prepared().is_some() || sent.epoch != held.epoch {
        return Err(TxnError::ProducerFenced);
    }
    Ok(Attempt::First)
}

/// The value with its end decided, the epoch as it is.
fn prepared(value: &TxnValue, end: &EndTxn, now: Now) -> TxnValue {
    let state = match end.outcome {
        TransactionOutcome::Commit => TxnState::PrepareCommit,
        TransactionOutcome::Abort => TxnState::PrepareAbort,
    };
    // Without a partition there was no beginning: Kafka takes the end for it.
    let started_ms = if value.state.is_idle() { now.wall_ms } else { value.started_ms };
    TxnValue { state, started_ms, updated_ms: now.wall_ms, version: end.version, ..value.clone() }
}

fn prepare_v2(value: &TxnValue, end: &EndTxn, now: Now) -> Decision {
    let ProducerIdAndEpoch { id, epoch } = value.producer;
    let next_producer_id = match end.fresh {
        _ if !is_exhausted(epoch) => NO_PRODUCER_ID,
        Some(fresh) => fresh,
        None => return Decision::Answer(Response::NeedsProducerId),
    };
    let prepared = TxnValue {
        producer: ProducerIdAndEpoch { id, epoch: epoch.saturating_add(1) },
        previous_producer_id: id,
        next_producer_id,
        ..prepared(value, end, now)
    };
    let response = Response::Ended(producer_after(&prepared));
    Decision::Store(prepared, response)
}
