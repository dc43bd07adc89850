//! SEARCH_OFFSET_BY_TIMESTAMP: code 29. The offset of a store time, in one queue.
//! `boundaryType` lower (default): the first message stored at or after the time, the end if there
//! is none; upper: the last message stored at or before it, the start if there is none. A queue
//! without messages, or none: its end.
//! Messages gathered into one batch were stored at the batch's append time or a little before, so
//! the node's search by append time is refined by the messages' own times.
//! Source: AdminBrokerProcessor.searchOffsetByTimestamp, ConsumeQueue.binarySearchInQueueByTime.

use std::sync::Arc;

use super::{Call, Outcome, Refusal};
use crate::backend::{Backend, Boundary, PartitionView, ReadRequest, Topic};
use crate::limits::SEARCH_READS_MAX;
use crate::translate::message;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let topic: &str = call.request.field("topic")?;
    let queue_id: i32 = call.request.field("queueId")?;
    let time_ms: i64 = call.request.field("timestamp")?;
    let boundary: Option<&str> = call.request.optional_field("boundaryType")?;
    let is_upper = boundary.is_some_and(|name| name.eq_ignore_ascii_case("upper"));
    let boundary = if is_upper { Boundary::Upper } else { Boundary::Lower };
    let topic = call.shared.topic(topic);
    let nowhere = || Ok(call.reply.ok().with_field("offset", 0));
    let Some(topic) = topic else { return nowhere() };
    let Some(view) = call.backend().partition(&topic, queue_id).await else { return nowhere() };
    let queue = Queue { backend: call.backend(), topic, queue_id, view };
    let offset = queue.search(time_ms, boundary).await?;
    Ok(call.reply.ok().with_field("offset", offset))
}

/// One queue to be searched.
pub(super) struct Queue<'a, B> {
    pub(super) backend: &'a B,
    pub(super) topic: Arc<Topic>,
    pub(super) queue_id: i32,
    pub(super) view: PartitionView,
}

impl<B: Backend> Queue<'_, B> {
    pub(super) async fn search(&self, time_ms: i64, boundary: Boundary) -> Result<i64, Refusal> {
        let (topic, queue_id) = (&self.topic, self.queue_id);
        let batch = self.backend.search_append_time(topic, queue_id, time_ms, boundary).await?;
        match (boundary, batch) {
            (Boundary::Lower, None) => Ok(self.view.last_stable_offset),
            (Boundary::Lower, Some(from)) => self.first_stored_from(from, time_ms).await,
            (Boundary::Upper, None) => {
                let start = self.view.log_start_offset;
                let last = self.last_stored_from(start, time_ms).await?;
                Ok(last.unwrap_or(start))
            }
            (Boundary::Upper, Some(last)) => {
                let behind = self.last_stored_from(last.saturating_add(1), time_ms).await?;
                Ok(behind.unwrap_or(last))
            }
        }
    }

    /// The first message from `from` on that was stored at or after the time.
    async fn first_stored_from(&self, from: i64, time_ms: i64) -> Result<i64, Refusal> {
        let mut position = from;
        for _ in 0..SEARCH_READS_MAX {
            let Some((times, next)) = self.store_times(position).await? else { break };
            if let Some((offset, _)) = times.iter().find(|(_, stored)| *stored >= time_ms) {
                return Ok(*offset);
            }
            position = next;
        }
        Ok(position.min(self.view.last_stable_offset))
    }

    /// The last message from `from` on that was stored at or before the time: a batch appended
    /// later may begin with messages that waited for it.
    async fn last_stored_from(&self, from: i64, time_ms: i64) -> Result<Option<i64>, Refusal> {
        let (mut position, mut last) = (from, None);
        for _ in 0..SEARCH_READS_MAX {
            let Some((times, next)) = self.store_times(position).await? else { break };
            let until = times.iter().take_while(|(_, stored)| *stored <= time_ms);
            let count = until.clone().count();
            last = until.last().map(|(offset, _)| *offset).or(last);
            if count < times.len() {
                break;
            }
            position = next;
        }
        Ok(last)
    }

    /// Offsets and store times of some messages from `from` on, and where the next ones are; `None`
    /// at the end.
    async fn store_times(&self, from: i64) -> Result<Option<(Vec<(i64, i64)>, i64)>, Refusal> {
        if from >= self.view.last_stable_offset {
            return Ok(None);
        }
        let request = ReadRequest {
            topic: &self.topic,
            partition: self.queue_id,
            offset: from,
            bytes_max: 1,
            records_max: 1,
            tags: None,
        };
        let read = self.backend.read(request).await?;
        let mut times = Vec::new();
        for batch in &read.batches {
            for record in batch.decoded().iter_from(from) {
                let stored = message::store_time_ms(&record, batch.append_time_ms());
                times.push((record.offset, stored));
            }
        }
        Ok((read.next_offset > from).then_some((times, read.next_offset)))
    }
}

#[cfg(test)]
mod tests;
