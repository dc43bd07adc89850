//! Positions that producers committed in transactions that are still open.
//!
//! A position counts once its transaction commits, unless another one was written behind it in the
//! log meanwhile: the later in the log wins, whichever takes effect first. Source: KIP-98, KIP-447;
//! `OffsetMetadataManager.pendingTransactionalOffsets`.

use std::collections::BTreeMap;
use std::sync::Arc;

use duolog_log_core::ids::Offset;
use duolog_log_core::record::TransactionOutcome;

use crate::group::event::GroupId;
use crate::record::{OffsetValue, Record};

type Place = (GroupId, Arc<str>, i32);

/// By producer id. Changed by records and markers of the log and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::group) struct PendingPositions {
    by_producer: BTreeMap<i64, BTreeMap<Place, Pending>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Pending {
    /// Where the record stands.
    at: Offset,
    value: OffsetValue,
}

impl PendingPositions {
    /// Keeps a position until its transaction ends; other records are none that producers write.
    pub(in crate::group) fn keep(&mut self, producer_id: i64, record: Record, at: Offset) {
        let Record::Offset { group, topic, partition, value: Some(value) } = record else { return };
        let places = self.by_producer.entry(producer_id).or_default();
        places.insert((group, topic, partition), Pending { at, value });
    }

    /// A position was written, or forgotten, outside of transactions.
    pub(in crate::group) fn superseded(&mut self, record: &Record) {
        if self.by_producer.is_empty() {
            return;
        }
        let Record::Offset { group, topic, partition, .. } = record else { return };
        let place = (group.clone(), topic.clone(), *partition);
        self.forget(|held, _| *held == place);
    }

    /// Forgets a producer's positions; returns those that count now, in order of their records.
    pub(in crate::group) fn end(
        &mut self,
        producer_id: i64,
        outcome: TransactionOutcome,
    ) -> Vec<Record> {
        let ended = self.by_producer.remove(&producer_id).unwrap_or_default();
        if outcome == TransactionOutcome::Abort {
            return Vec::new();
        }
        self.forget(|place, pending| ended.get(place).is_some_and(|ended| pending.at < ended.at));
        let mut ended: Vec<_> = ended.into_iter().collect();
        ended.sort_by_key(|(_, pending)| pending.at);
        let record = |((group, topic, partition), pending): (Place, Pending)| Record::Offset {
            group,
            topic,
            partition,
            value: Some(pending.value),
        };
        ended.into_iter().map(record).collect()
    }

    fn forget(&mut self, is_gone: impl Fn(&Place, &Pending) -> bool) {
        self.by_producer.retain(|_, places| {
            places.retain(|place, pending| !is_gone(place, pending));
            !places.is_empty()
        });
    }

    /// The positions of a group that are not settled.
    pub(in crate::group) fn of_group<'a>(
        &'a self,
        group: &'a str,
    ) -> impl Iterator<Item = (&'a Arc<str>, i32)> {
        let places = self.by_producer.values().flat_map(BTreeMap::keys);
        places
            .filter(move |(held, ..)| **held == *group)
            .map(|(_, topic, partition)| (topic, *partition))
    }
}

#[cfg(test)]
mod tests;
