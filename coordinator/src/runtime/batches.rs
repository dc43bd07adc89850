//! What was decided on its way into the log: gathered, then appended batch by batch.

use std::mem;

use bytes::Bytes;

use super::{AppendId, Effect, Queued, Runtime};
use crate::shard::{Answer, BatchForm, Outcome, RecordBytes, RequestId, Shard, Undo};
use crate::time::Now;

/// Bytes of a batch beside its records.
const BATCH_OVERHEAD: usize = 61;

/// Bytes of a record beside its key and value, at most, in a batch below some megabytes: six lengths and
/// differences, attributes.
const RECORD_OVERHEAD: usize = 20;

/// Records decided together, with the answers that wait for them.
pub(super) struct Decision<S: Shard> {
    /// None of a marker, which concerns the whole partition.
    pub(super) key: Option<S::Key>,
    pub(super) records: Vec<S::Record>,
    pub(super) batch: BatchForm,
    encoded: Vec<RecordBytes>,
    /// The log refused it as part of a batch that was too large.
    is_alone: bool,
    pub(super) responses: Vec<(RequestId, Answer<S>)>,
    pub(super) follow_ups: Vec<Queued<S>>,
    pub(super) undo: Undo,
}

impl<S: Shard> Decision<S> {
    /// What it adds to a batch, at most.
    fn bytes(&self) -> usize {
        let value = |record: &RecordBytes| record.value.as_ref().map_or(0, Bytes::len);
        let bytes = |record: &RecordBytes| RECORD_OVERHEAD + record.key.len() + value(record);
        self.encoded.iter().map(bytes).sum()
    }
}

impl<S: Shard> Runtime<S> {
    /// Keeps an outcome's records and answers for the next append.
    pub(super) fn gather(&mut self, key: Option<S::Key>, outcome: Outcome<S>, now: Now) {
        let is_end = matches!(outcome.batch, BatchForm::End(_));
        assert!(is_end || key.is_some(), "records belong to an event with a key");
        assert!(!is_end || outcome.records.is_empty(), "a marker stands alone");
        self.perform(outcome.timers, outcome.notices);
        let encoded: Result<Vec<_>, S::Error> = outcome.records.iter().map(S::encode).collect();
        let mut decision = Decision::<S> {
            key,
            records: outcome.records,
            batch: outcome.batch,
            encoded: Vec::new(),
            is_alone: false,
            responses: outcome.responses,
            follow_ups: outcome.follow_ups,
            undo: outcome.undo,
        };
        match encoded {
            Ok(encoded) => {
                decision.encoded = encoded;
                if let Some(key) = &decision.key {
                    self.waiting.entry(key.clone()).or_default();
                }
                self.gathered.push_back(decision);
            }
            Err(error) => self.refuse(decision, &error, now),
        }
    }

    /// The partition takes batches of so many bytes, all counted; what is gathered from now on goes
    /// by that. Source: Kafka's `CoordinatorRuntime`, which goes by `max.message.bytes`.
    pub fn bound_batches(&mut self, bytes_max: usize) {
        self.batch_bytes_max = bytes_max;
    }

    /// Starts the next append, unless one is open.
    pub(super) fn flush(&mut self, now: Now) {
        if self.appending.is_some() || self.gathered.is_empty() {
            return;
        }
        let bytes_max = S::APPEND_BYTES_MAX.min(self.batch_bytes_max);
        let mut batch: Vec<Decision<S>> = Vec::new();
        let mut takes_more = true;
        let mut form = BatchForm::Plain;
        let mut bytes = BATCH_OVERHEAD;
        while let Some(decision) = self.gathered.pop_front_if(|next| {
            let is_plain = next.batch == BatchForm::Plain && !next.is_alone;
            batch.is_empty() || (takes_more && is_plain && bytes + next.bytes() <= bytes_max)
        }) {
            form = decision.batch;
            takes_more = form == BatchForm::Plain && !decision.is_alone;
            bytes += decision.bytes();
            batch.push(decision);
        }
        let records = batch.iter_mut().flat_map(|next| mem::take(&mut next.encoded)).collect();
        let id = AppendId(self.next_append);
        self.next_append += 1;
        self.appending = Some((id, batch));
        let timestamp_ms = now.wall_ms;
        self.effects.push_back(Effect::Append { id, records, batch: form, timestamp_ms });
    }

    /// Panics when the caller reports an append that is not open, which no client can bring about: there is one at a time,
    /// and whoever was handed it reports it once, to the runtime that it is of.
    pub(super) fn end_append(&mut self, id: AppendId) -> Vec<Decision<S>> {
        match self.appending.take() {
            Some((open, decisions)) if open == id => decisions,
            open => panic!("append {id:?} is not the open one, {:?}", open.map(|(open, _)| open)),
        }
    }

    /// Has decisions that were too large together appended one by one, before all others.
    pub(super) fn part(&mut self, decisions: Vec<Decision<S>>, now: Now) {
        for mut decision in decisions.into_iter().rev() {
            decision.is_alone = true;
            match decision.records.iter().map(S::encode).collect() {
                Ok(encoded) => {
                    decision.encoded = encoded;
                    self.gathered.push_front(decision);
                }
                // It was encoded before.
                Err(error) => self.refuse(decision, &error, now),
            }
        }
    }
}
