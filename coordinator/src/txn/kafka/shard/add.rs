//! Adding partitions to a transaction, and asking whether they are in it.

use std::collections::BTreeSet;

use super::{Decision, FENCING_EPOCH, TxnShard};
use crate::record::transaction::{Partitions, TxnState, TxnValue};
use crate::time::Now;
use crate::txn::kafka::error::TxnError;
use crate::txn::kafka::event::AddPartitions;
use crate::txn::kafka::response::Response;

impl TxnShard {
    pub(super) fn add_partitions(
        &self,
        add: &AddPartitions,
        now: Now,
    ) -> Result<Decision, TxnError> {
        let value = self.open_for(add)?;
        if value.state == TxnState::Ongoing && has_all(&value.partitions, &add.partitions) {
            return Ok(Decision::Answer(Response::Added));
        }
        let mut partitions = value.partitions.clone();
        for (topic, indexes) in &add.partitions {
            partitions.entry(topic.clone()).or_default().extend(indexes);
        }
        let started_ms = if value.state.is_idle() { now.wall_ms } else { value.started_ms };
        let ongoing = TxnValue {
            previous_producer_id: value.producer.id,
            state: TxnState::Ongoing,
            partitions,
            started_ms,
            updated_ms: now.wall_ms,
            version: add.version,
            ..value.clone()
        };
        Ok(Decision::Store(ongoing, Response::Added))
    }

    pub(super) fn verify_partitions(&self, add: &AddPartitions) -> Result<Response, TxnError> {
        let value = self.open_for(add)?;
        let among = |(topic, indexes): (&std::sync::Arc<str>, &BTreeSet<i32>)| {
            let held = value.partitions.get(topic)?;
            let both: BTreeSet<i32> = indexes.intersection(held).copied().collect();
            (!both.is_empty()).then(|| (topic.clone(), both))
        };
        Ok(Response::Verified(add.partitions.iter().filter_map(among).collect()))
    }

    /// The id's value, if its producer may write.
    fn open_for(&self, add: &AddPartitions) -> Result<&TxnValue, TxnError> {
        let value = self.of_producer(&add.id, add.producer.id)?;
        let epoch = value.producer.epoch;
        if epoch != add.producer.epoch || epoch == FENCING_EPOCH {
            return Err(TxnError::ProducerFenced);
        }
        if value.state.prepared().is_some() {
            return Err(TxnError::ConcurrentTransactions);
        }
        Ok(value)
    }
}

fn has_all(held: &Partitions, asked: &Partitions) -> bool {
    asked.iter().all(|(topic, indexes)| held.get(topic).is_some_and(|held| indexes.is_subset(held)))
}
