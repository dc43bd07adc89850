//! Positions that producers committed in transactions that are still open.
//!
//! A position counts once its transaction commits, unless another one was written behind it in the
//! log meanwhile: the later in the log wins, whichever takes effect first. Until then the position
//! is not stable, and its group is there even if it has nothing else. Source: KIP-98, KIP-447;
//! `OffsetMetadataManager.pendingTransactionalOffsets`, `openTransactions`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use duolog_log_core::ids::Offset;
use duolog_log_core::record::TransactionOutcome;

use crate::group::event::GroupId;
use crate::record::{OffsetValue, Record};

type Place = (Arc<str>, i32);

/// Changed by records and markers of the log and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::group) struct PendingPositions {
    /// By producer id; no group and no place is empty.
    groups: BTreeMap<GroupId, BTreeMap<Place, BTreeMap<i64, Pending>>>,
    /// Where each producer has one; there may be some that were forgotten.
    producers: BTreeMap<i64, BTreeSet<(GroupId, Place)>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Pending {
    /// Where the record stands.
    at: Offset,
    /// `None`: another position was written behind it.
    value: Option<OffsetValue>,
}

/// What the end of a transaction does.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::group) struct Ended {
    /// The positions that count now, in order of their records.
    pub(in crate::group) records: Vec<Record>,
    /// The groups that it had positions of.
    pub(in crate::group) groups: BTreeSet<GroupId>,
}

impl PendingPositions {
    /// Keeps a position until its transaction ends and returns the group; other records are none
    /// that producers write.
    pub(in crate::group) fn keep(
        &mut self,
        producer_id: i64,
        record: Record,
        at: Offset,
    ) -> Option<GroupId> {
        let Record::Offset { group, topic, partition, value: Some(value) } = record else {
            return None;
        };
        let place = (topic, partition);
        let places = self.groups.entry(group.clone()).or_default();
        let pending = Pending { at, value: Some(value) };
        places.entry(place.clone()).or_default().insert(producer_id, pending);
        self.producers.entry(producer_id).or_default().insert((group.clone(), place));
        Some(group)
    }

    /// A position was written outside of transactions, or forgotten: then nothing waits there.
    pub(in crate::group) fn superseded(&mut self, record: &Record) {
        let Record::Offset { group, topic, partition, value } = record else { return };
        let Some(places) = self.groups.get_mut(group) else { return };
        let place = (topic.clone(), *partition);
        if value.is_some() {
            let held = places.get_mut(&place).into_iter().flat_map(BTreeMap::values_mut);
            held.for_each(|pending| pending.value = None);
            return;
        }
        places.remove(&place);
        if places.is_empty() {
            self.groups.remove(group);
        }
    }

    /// Forgets a producer's positions.
    pub(in crate::group) fn end(&mut self, producer_id: i64, outcome: TransactionOutcome) -> Ended {
        let mut committed = Vec::new();
        let mut groups = BTreeSet::new();
        for (group, place) in self.producers.remove(&producer_id).unwrap_or_default() {
            let Some(Pending { at, value }) = self.take(&group, &place, producer_id) else {
                continue;
            };
            groups.insert(group.clone());
            if let (Some(value), TransactionOutcome::Commit) = (value, outcome) {
                self.overtake(&group, &place, at);
                let (topic, partition) = place;
                let value = Some(value);
                committed.push((at, Record::Offset { group, topic, partition, value }));
            }
        }
        committed.sort_by_key(|(at, _)| *at);
        Ended { records: committed.into_iter().map(|(_, record)| record).collect(), groups }
    }

    fn take(&mut self, group: &GroupId, place: &Place, producer_id: i64) -> Option<Pending> {
        let places = self.groups.get_mut(group)?;
        let producers = places.get_mut(place)?;
        let taken = producers.remove(&producer_id);
        if producers.is_empty() {
            places.remove(place);
        }
        if places.is_empty() {
            self.groups.remove(group);
        }
        taken
    }

    /// What stands before a position that counts now will not.
    fn overtake(&mut self, group: &GroupId, place: &Place, at: Offset) {
        let held = self.groups.get_mut(group).and_then(|places| places.get_mut(place));
        for pending in held.into_iter().flat_map(BTreeMap::values_mut) {
            if pending.at < at {
                pending.value = None;
            }
        }
    }

    /// The positions of a group that are not settled, by topic and partition.
    pub(in crate::group) fn of_group<'a>(
        &'a self,
        group: &str,
    ) -> impl Iterator<Item = (&'a Arc<str>, i32)> + use<'a> {
        let places = self.groups.get(group).into_iter().flat_map(BTreeMap::keys);
        places.map(|(topic, partition)| (topic, *partition))
    }

    /// Whether a group has positions that are not settled.
    pub(in crate::group) fn has_group(&self, group: &str) -> bool {
        self.groups.contains_key(group)
    }

    /// Whether this position of a group is not settled.
    pub(in crate::group) fn has(&self, group: &str, topic: &Arc<str>, partition: i32) -> bool {
        let places = self.groups.get(group);
        places.is_some_and(|places| places.contains_key(&(topic.clone(), partition)))
    }
}

#[cfg(test)]
mod tests;
