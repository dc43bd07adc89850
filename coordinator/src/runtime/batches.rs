//! What was decided on its way into the log: gathered, then appended batch by batch.

use std::mem;

use bytes::Bytes;

use super::{AppendId, Effect, Queued, Runtime};
use crate::shard::{Answer, BatchForm, Outcome, RecordBytes, RequestId, Shard, Undo};
use crate::time::Now;

/// Records decided together, with the answers that wait for them.
pub(super) struct Decision<S: Shard> {
    /// None of a marker, which concerns the whole partition.
    pub(super) key: Option<S::Key>,
    pub(super) records: Vec<S::Record>,
    pub(super) batch: BatchForm,
    encoded: Vec<RecordBytes>,
    pub(super) responses: Vec<(RequestId, Answer<S>)>,
    pub(super) follow_ups: Vec<Queued<S>>,
    pub(super) undo: Undo,
}

impl<S: Shard> Decision<S> {
    fn bytes(&self) -> usize {
        let value = |record: &RecordBytes| record.value.as_ref().map_or(0, Bytes::len);
        self.encoded.iter().map(|record| record.key.len() + value(record)).sum()
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

    /// Starts the next append, unless one is open.
    pub(super) fn flush(&mut self, now: Now) {
        if self.appending.is_some() || self.gathered.is_empty() {
            return;
        }
        let mut batch: Vec<Decision<S>> = Vec::new();
        let mut form = BatchForm::Plain;
        let mut bytes = 0;
        while let Some(decision) = self.gathered.pop_front_if(|next| {
            let is_plain = form == BatchForm::Plain && next.batch == BatchForm::Plain;
            batch.is_empty() || (is_plain && bytes + next.bytes() <= S::APPEND_BYTES_MAX)
        }) {
            form = decision.batch;
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

    pub(super) fn end_append(&mut self, id: AppendId) -> Vec<Decision<S>> {
        match self.appending.take() {
            Some((open, decisions)) if open == id => decisions,
            open => panic!("append {id:?} is not the open one, {:?}", open.map(|(open, _)| open)),
        }
    }
}
