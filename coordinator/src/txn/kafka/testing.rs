//! A transaction coordinator on a log in memory, for the tests of this module tree.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use duolog_log_core::event::Events;
use duolog_log_core::ids::{NodeId, Offset};
use duolog_log_core::record::TransactionOutcome;

use super::config::TxnConfig;
use super::error::TxnError;
use super::event::*;
use super::response::*;
use super::shard::TxnShard;
use crate::error::AppendError;
use crate::record::transaction::{Partitions, ProducerIdAndEpoch, TxnState, TxnValue, TxnVersion};
use crate::runtime::{Effect, Runtime};
use crate::shard::{RecordBytes, RequestId};
use crate::time::Now;

pub(super) const COORDINATOR_EPOCH: i32 = 4;

pub(super) type Answer = Result<Response, TxnError>;

/// The runtime, performed: appends succeed and are committed at once, unless told otherwise.
/// Markers wait until [`Self::write_markers`].
pub(super) struct Bench {
    pub(super) runtime: Runtime<TxnShard>,
    pub(super) now: Now,
    pub(super) log: Vec<RecordBytes>,
    pub(super) markers: Vec<Markers>,
    /// The next append fails so.
    pub(super) failure: Option<AppendError>,
    answers: BTreeMap<u64, Answer>,
    next_request: u64,
    next_producer_id: i64,
}

impl Bench {
    pub(super) fn new() -> Self {
        Self::on(Vec::new(), Now { wall_ms: 1_000_000, tick_ms: 0 })
    }

    /// A coordinator that has just read `log`.
    pub(super) fn on(log: Vec<RecordBytes>, now: Now) -> Self {
        let events = Arc::new(Events::silent(NodeId(1)));
        let shard = TxnShard::new(TxnConfig::default(), COORDINATOR_EPOCH, events);
        let mut runtime = Runtime::loading(shard);
        for (offset, record) in log.iter().enumerate() {
            let offset = Offset(offset as i64);
            assert_eq!(runtime.load(offset, Some(&record.key), record.value.as_ref()), Ok(true));
        }
        let end = Offset(log.len() as i64);
        runtime.finish_load(end, end, now);
        let mut bench = Self {
            runtime,
            now,
            log,
            markers: Vec::new(),
            failure: None,
            answers: BTreeMap::new(),
            next_request: 0,
            next_producer_id: 100,
        };
        bench.perform();
        bench
    }

    /// The same, after a crash: all that lived is gone.
    pub(super) fn restarted(self) -> Self {
        let next_producer_id = self.next_producer_id;
        Self { next_producer_id, ..Self::on(self.log, self.now) }
    }

    fn perform(&mut self) {
        while let Some(effect) = self.runtime.poll_effect() {
            match effect {
                Effect::Append { id, records, .. } => match self.failure.take() {
                    Some(error) => self.runtime.append_failed(id, error, self.now),
                    None => {
                        let base = Offset(self.log.len() as i64);
                        self.log.extend(records);
                        self.runtime.appended(id, base, self.now);
                        self.runtime.advance_high_watermark(Offset(self.log.len() as i64));
                    }
                },
                Effect::Reply { request, answer } => {
                    assert!(self.answers.insert(request.0, answer).is_none());
                }
                Effect::Notice(Notice::WriteMarkers(markers)) => self.markers.push(markers),
            }
        }
    }

    /// Sends a request, which is answered at once.
    pub(super) fn ask(&mut self, event: Event) -> Answer {
        let request = self.next_request;
        self.next_request += 1;
        self.runtime.submit(RequestId(request), event, self.now);
        self.perform();
        self.answers.remove(&request).expect("an answer at once")
    }

    fn fresh(&mut self) -> i64 {
        self.next_producer_id += 1;
        self.next_producer_id - 1
    }

    /// InitProducerId as the node does it: with a producer id when one is needed.
    pub(super) fn init_as(
        &mut self,
        id: &str,
        expected: Option<ProducerIdAndEpoch>,
    ) -> Result<ProducerIdAndEpoch, TxnError> {
        let mut init = InitProducerId { id: id.into(), timeout_ms: 60_000, expected, fresh: None };
        let mut answer = self.ask(Event::InitProducerId(init.clone()))?;
        if answer == Response::NeedsProducerId {
            init.fresh = Some(self.fresh());
            answer = self.ask(Event::InitProducerId(init))?;
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
        self.ask(Event::AddPartitions(adding(id, producer, partition, version)))
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
        let mut answer = self.ask(Event::EndTxn(end.clone()))?;
        if answer == Response::NeedsProducerId {
            end.fresh = Some(self.fresh());
            answer = self.ask(Event::EndTxn(end))?;
        }
        match answer {
            Response::Ended(producer) => Ok(producer),
            other => panic!("not ended: {other:?}"),
        }
    }

    /// Writes all markers that were asked for.
    pub(super) fn write_markers(&mut self) {
        for Markers { id, producer, .. } in std::mem::take(&mut self.markers) {
            // A marker of a transaction that was completed meanwhile is refused.
            let _ = self.ask(Event::MarkersWritten(MarkersWritten { id, producer }));
        }
    }

    pub(super) fn value(&self, id: &str) -> TxnValue {
        let found = self.runtime.shard().values().find(|(held, _)| &***held == id);
        found.map(|(_, value)| value.clone()).expect("a known id")
    }

    pub(super) fn state(&self, id: &str) -> TxnState {
        self.value(id).state
    }

    /// Lets time pass, firing each timer when it is due.
    pub(super) fn pass(&mut self, ms: i64) {
        let end = self.now.tick_ms + ms;
        loop {
            let due = self.runtime.next_deadline().filter(|due| *due <= end);
            let to = due.map_or(end, |due| due.max(self.now.tick_ms));
            self.now.wall_ms += to - self.now.tick_ms;
            self.now.tick_ms = to;
            self.runtime.tick(self.now);
            self.perform();
            if due.is_none() {
                return;
            }
        }
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
