//! InitProducerId with a transactional id: the next epoch for whoever asks, the end of a
//! transaction that an older producer left open.

use duolog_log_core::event::EventKind;

use super::{
    Decision, FENCING_EPOCH, LastEpoch, Outcome, TxnShard, await_next_producer, fresh, is_exhausted,
};
use crate::record::transaction::{
    NO_PRODUCER_ID, Partitions, ProducerIdAndEpoch, TxnState, TxnValue, TxnVersion,
};
use crate::shard::RequestId;
use crate::time::Now;
use crate::txn::kafka::error::TxnError;
use crate::txn::kafka::event::InitProducerId;
use crate::txn::kafka::response::Response;

/// The epoch of a producer that was not initialized yet.
const NO_EPOCH: i16 = -1;

/// What InitProducerId makes of a transactional id.
enum Init {
    /// Another epoch, or another producer id.
    Next(TxnValue, LastEpoch),
    /// Not before the open transaction is aborted.
    Fence(TxnValue),
    /// Not without a fresh producer id.
    NeedsProducerId,
}

impl TxnShard {
    pub(super) fn init_producer_id(
        &mut self,
        request: Option<RequestId>,
        init: &InitProducerId,
        now: Now,
        out: &mut Outcome,
    ) {
        match self.decide_init(init, now) {
            Ok(Init::Next(value, last)) => {
                // Counts only for the producer and epoch that it names, so it may go ahead.
                self.last_epochs.insert(init.id.clone(), last);
                let response = Response::ProducerId(value.producer);
                self.settle(request, &init.id, Ok(Decision::Store(value, response)), now, out);
            }
            Ok(Init::Fence(value)) => {
                self.causes.insert(init.id.clone(), "another producer has come");
                self.tell(EventKind::TxnFence, &init.id, now, "another producer has come");
                self.store(&init.id, value, now, out);
                out.respond(request, Err(TxnError::ConcurrentTransactions));
            }
            Ok(Init::NeedsProducerId) => out.respond(request, Ok(Response::NeedsProducerId)),
            Err(error) => self.settle(request, &init.id, Err(error), now, out),
        }
    }

    fn decide_init(&self, init: &InitProducerId, now: Now) -> Result<Init, TxnError> {
        if init.id.is_empty() {
            return Err(TxnError::InvalidRequest);
        }
        if init.timeout_ms <= 0 || init.timeout_ms > self.config.timeout_max_ms {
            return Err(TxnError::InvalidTransactionTimeout);
        }
        let created;
        let value = match (self.ids.get(&init.id), init.fresh) {
            (Some(value), _) => value,
            (None, None) => return Ok(Init::NeedsProducerId),
            (None, Some(producer_id)) => {
                created = fresh(producer_id, init.timeout_ms, now);
                &created
            }
        };
        if let Some(expected) = init.expected {
            await_next_producer(value, expected.id)?;
            if !may_have_been(value, expected) {
                return Err(TxnError::ProducerFenced);
            }
        }
        match value.state {
            TxnState::PrepareCommit | TxnState::PrepareAbort => {
                Err(TxnError::ConcurrentTransactions)
            }
            TxnState::Ongoing => Ok(Init::Fence(fenced(value, now))),
            TxnState::Empty | TxnState::CompleteCommit | TxnState::CompleteAbort => {
                self.next_producer(init, value, now)
            }
        }
    }

    fn next_producer(
        &self,
        init: &InitProducerId,
        value: &TxnValue,
        now: Now,
    ) -> Result<Init, TxnError> {
        let ProducerIdAndEpoch { id, epoch } = value.producer;
        let expected = init.expected.map(|expected| expected.epoch);
        let (producer, before) = if is_exhausted(epoch) && expected.is_none_or(|it| it == epoch) {
            let Some(producer_id) = init.fresh else { return Ok(Init::NeedsProducerId) };
            let before = if expected.is_some() { epoch } else { NO_EPOCH };
            (ProducerIdAndEpoch { id: producer_id, epoch: 0 }, before)
        } else if epoch == FENCING_EPOCH {
            // One that expects nothing gets another producer id.
            return Err(TxnError::ProducerFenced);
        } else {
            let bumped = ProducerIdAndEpoch { id, epoch: epoch.saturating_add(1) };
            match expected {
                None => (bumped, NO_EPOCH),
                Some(expected) if epoch == NO_EPOCH || expected == epoch => (bumped, epoch),
                // The answer to the first attempt was lost; nobody else has come since, or there
                // would be no last epoch.
                Some(expected) if self.last_epoch(init, value) == Some(expected) => {
                    (value.producer, expected)
                }
                Some(_) => return Err(TxnError::ProducerFenced),
            }
        };
        let next = TxnValue {
            producer,
            previous_producer_id: id,
            next_producer_id: NO_PRODUCER_ID,
            timeout_ms: init.timeout_ms,
            state: TxnState::Empty,
            partitions: Partitions::new(),
            updated_ms: now.wall_ms,
            started_ms: -1,
            version: value.version,
        };
        Ok(Init::Next(next, LastEpoch { now: producer, before }))
    }

    /// The epoch before the present one, if it is known.
    fn last_epoch(&self, init: &InitProducerId, value: &TxnValue) -> Option<i16> {
        let last = self.last_epochs.get(&init.id)?;
        (last.now == value.producer && last.before != NO_EPOCH).then_some(last.before)
    }
}

/// Whether a producer may believe to have this: it is new here, has the present producer id, or
/// missed that the epochs of the previous one were used up.
fn may_have_been(value: &TxnValue, expected: ProducerIdAndEpoch) -> bool {
    value.producer.epoch == NO_EPOCH
        || expected.id == value.producer.id
        || (expected.id == value.previous_producer_id && is_exhausted(expected.epoch))
}

/// An open transaction, to be aborted under an epoch that nobody has. With no epoch left the abort
/// goes through all the same.
pub(super) fn fenced(value: &TxnValue, now: Now) -> TxnValue {
    let ProducerIdAndEpoch { id, epoch } = value.producer;
    TxnValue {
        producer: ProducerIdAndEpoch { id, epoch: epoch.saturating_add(1) },
        previous_producer_id: id,
        next_producer_id: NO_PRODUCER_ID,
        state: TxnState::PrepareAbort,
        updated_ms: now.wall_ms,
        // The node's own level, whatever the client speaks.
        version: TxnVersion::V2,
        ..value.clone()
    }
}
