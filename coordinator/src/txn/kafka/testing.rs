//! A transaction coordinator on a log in memory, for the tests of this module tree.

use std::collections::BTreeSet;
use std::sync::Arc;

use duolog_log_core::event::Events;
use duolog_log_core::ids::NodeId;
use duolog_log_core::record::TransactionOutcome;

use super::config::TxnConfig;
use super::error::TxnError;
use super::event::*;
use super::response::*;
use super::shard::TxnShard;
use crate::record::transaction::{Partitions, ProducerIdAndEpoch, TxnState, TxnValue, TxnVersion};
use crate::shard::RecordBytes;
use crate::testing::{BEGIN, Driven};
use crate::time::Now;

pub(super) const COORDINATOR_EPOCH: i32 = 4;

pub(super) type Answer = Result<Response, TxnError>;

/// Markers wait until [`Self::write_markers`].
pub(super) type Bench = Driven<TxnShard, NextProducerId>;

pub(crate) struct NextProducerId(i64);

impl Bench {
    pub(super) fn new() -> Self {
        Self::on(Vec::new(), BEGIN)
    }

    /// A coordinator that has just read `log`.
    pub(super) fn on(log: Vec<RecordBytes>, now: Now) -> Self {
        let events = Arc::new(Events::silent(NodeId(1)));
        let shard = TxnShard::new(TxnConfig::default(), COORDINATOR_EPOCH, events);
        Self::loaded(shard, log, now, NextProducerId(100))
    }

    /// The same, after a crash: all that lived is gone.
    pub(super) fn restarted(self) -> Self {
        let mut bench = Self::on(self.log, self.now);
        bench.more = self.more;
        bench
    }

    /// The markers that are to be written.
    pub(super) fn markers(&self) -> Vec<Markers> {
        let markers = self.notices.iter().map(|Notice::WriteMarkers(markers)| markers.clone());
        markers.collect()
    }

    fn fresh(&mut self) -> i64 {
        self.more.0 += 1;
        self.more.0 - 1
    }

    /// InitProducerId as the node does it: with a producer id when one is needed.
    pub(super) fn init_as(
        &mut self,
        id: &str,
        expected: Option<ProducerIdAndEpoch>,
    ) -> Result<ProducerIdAndEpoch, TxnError> {
        let mut init = InitProducerId { id: id.into(), timeout_ms: 60_000, expected, fresh: None };
        let mut answer = self.request(Event::InitProducerId(init.clone()))?;
        if answer == Response::NeedsProducerId {
            init.fresh = Some(self.fresh());
            answer = self.request(Event::InitProducerId(init))?;
        }
        match answer {
            Response::ProducerId(producer) => Ok(producer),
            other => panic!("no producer id: {other:?}"),
        }
    }

    pub(super) fn init(&mut self, id: &str) -> ProducerIdAndEpoch {
        self.init_as(id, None).expect("a producer id")
    }

    pub(super) fn add(
        &mut self,
        id: &str,
        producer: ProducerIdAndEpoch,
        partition: i32,
        version: TxnVersion,
    ) -> Answer {
        self.request(Event::AddPartitions(adding(id, producer, partition, version)))
    }

    /// EndTxn as the node does it.
    pub(super) fn end(
        &mut self,
        id: &str,
        producer: ProducerIdAndEpoch,
        outcome: TransactionOutcome,
        version: TxnVersion,
    ) -> Result<ProducerIdAndEpoch, TxnError> {
        let mut end = EndTxn { id: id.into(), producer, outcome, version, fresh: None };
        let mut answer = self.request(Event::EndTxn(end.clone()))?;
        if answer == Response::NeedsProducerId {
            end.fresh = Some(self.fresh());
            answer = self.request(Event::EndTxn(end))?;
        }
        match answer {
            Response::Ended(producer) => Ok(producer),
            other => panic!("not ended: {other:?}"),
        }
    }

    /// Writes all markers that were asked for.
    pub(super) fn write_markers(&mut self) {
        for Notice::WriteMarkers(markers) in std::mem::take(&mut self.notices) {
            let Markers { id, producer, .. } = markers;
            // A marker of a transaction that was completed meanwhile is refused.
            let _ = self.request(Event::MarkersWritten(MarkersWritten { id, producer }));
        }
    }

    pub(super) fn value(&self, id: &str) -> TxnValue {
        let found = self.runtime.shard().values().find(|(held, _)| &***held == id);
        found.map(|(_, value)| value.clone()).expect("a known id")
    }

    pub(super) fn state(&self, id: &str) -> TxnState {
        self.value(id).state
    }
}

pub(super) fn partitions(indexes: impl IntoIterator<Item = i32>) -> Partitions {
    Partitions::from([("t".into(), BTreeSet::from_iter(indexes))])
}

pub(super) fn adding(
    id: &str,
    producer: ProducerIdAndEpoch,
    partition: i32,
    version: TxnVersion,
) -> AddPartitions {
    AddPartitions { id: id.into(), producer, partitions: partitions([partition]), version }
}

pub(super) fn producer(id: i64, epoch: i16) -> ProducerIdAndEpoch {
    ProducerIdAndEpoch { id, epoch }
}
