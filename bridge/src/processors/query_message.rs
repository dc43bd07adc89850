//! QUERY_MESSAGE: code 12. Messages of a topic that have a key: a word of their `KEYS` or their
//! `UNIQ_KEY`; the newest ones, in the order in which they were appended. Clients ask for an
//! offsetMsgId or a key of their own so, and compare once more themselves.
//! There is no index of keys yet, so the log is looked through, from the first batch appended at
//! `beginTimestamp` on; a unique key tells that time nearly to the second. What takes too long is
//! refused in words, since "not found" would be untrue.
//! Leaves out: `indexType` and `lastKey` (5.4), which ask the same of the original's other index.
//! Source: QueryMessageProcessor.queryMessage, DefaultMessageStore.queryMessage, IndexService.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use duolog_log_core::record::Record;
use tokio::time::Instant;

use super::store_time::if_there;
use super::{Call, Refusal};
use crate::backend::{Backend, Boundary, ReadRequest, SharedBatch, Topic};
use crate::dispatch::Answer;
use crate::limits::{QUERY_BYTES_MAX, QUERY_MESSAGES_MAX, QUERY_MS_MAX};
use crate::remoting::SegmentedOut;
use crate::response_code::ResponseCode;
use crate::translate::message::{self, Door, Place, Scratch, Writer};
use crate::translate::properties::{KEYS, Properties, UNIQ_KEY};

/// Bytes and records that are read at a time.
const STEP_BYTES: usize = 256 * 1024;
const STEP_RECORDS: usize = 4096;

/// How much later than its store time a message may have been appended.
const APPEND_LATE_MS: i64 = 60_000;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Result<Answer, Refusal> {
    let request = &call.request;
    let name: &str = request.field("topic")?;
    let key: &str = request.field("key")?;
    let count: i32 = request.field("maxNum")?;
    let query = Query {
        key,
        begin_ms: request.field("beginTimestamp")?,
        end_ms: request.field("endTimestamp")?,
        until: Instant::now() + Duration::from_millis(QUERY_MS_MAX),
    };
    let Ok(_turn) = call.shared.queries.try_acquire() else {
        let remark = "too many queries by key are under way, try again later";
        return Err(Refusal::new(ResponseCode::SYSTEM_BUSY, remark));
    };
    let mut found = Found::new(count);
    if let Some(topic) = call.shared.topic(name) {
        for queue_id in 0..topic.partitions {
            query.look_through(&call, name, (&topic, queue_id), &mut found).await?;
        }
    }
    if found.messages.is_empty() {
        let remark = "can not find message, maybe time range not correct";
        return Err(Refusal::new(ResponseCode::QUERY_NOT_FOUND, remark));
    }
    let mut messages = SegmentedOut::default();
    found.messages.into_values().for_each(|message| messages.put_shared(message));
    let head = call
        .reply
        .ok()
        .with_field("indexLastUpdateTimestamp", call.backend().now_ms())
        .with_field("indexLastUpdatePhyoffset", 0);
    Ok(Answer::with_messages(head, messages))
}

/// The newest messages found so far.
struct Found {
    /// By append time, queue and offset.
    messages: BTreeMap<(i64, i32, i64), Bytes>,
    count_max: usize,
    bytes: usize,
}

impl Found {
    fn new(count: i32) -> Self {
        let count_max = usize::try_from(count).unwrap_or(0).clamp(1, QUERY_MESSAGES_MAX);
        Self { messages: BTreeMap::new(), count_max, bytes: 0 }
    }

    fn add(&mut self, place: (i64, i32, i64), message: Bytes) {
        self.bytes += message.len();
        self.messages.insert(place, message);
        let too_many = |found: &Self| {
            found.messages.len() > found.count_max
                || (found.bytes > QUERY_BYTES_MAX && found.messages.len() > 1)
        };
        while too_many(self)
            && let Some((_, oldest)) = self.messages.pop_first()
        {
            self.bytes -= oldest.len();
        }
    }
}

struct Query<'a> {
    key: &'a str,
    /// Store times: inclusive.
    begin_ms: i64,
    end_ms: i64,
    until: Instant,
}

impl Query<'_> {
    async fn look_through<B: Backend>(
        &self,
        call: &Call<B>,
        name: &str,
        (topic, queue_id): (&Arc<Topic>, i32),
        found: &mut Found,
    ) -> Result<(), Refusal> {
        let backend = call.backend();
        let Some(view) = backend.partition(topic, queue_id).await else { return Ok(()) };
        let begin = backend.search_append_time(topic, queue_id, self.begin_ms, Boundary::Lower);
        let Some(mut position) = if_there(begin.await)?.flatten() else { return Ok(()) };
        let mut place = Place {
            topic: name,
            queue_id,
            partition_number: view.number,
            store_host: backend.config().broker_address,
            door: Door::Both,
            append_time_ms: 0,
        };
        let last_append_ms = self.end_ms.saturating_add(APPEND_LATE_MS);
        while position < view.last_stable_offset {
            if Instant::now() >= self.until {
                return Err(self.too_slow(queue_id, position, view.last_stable_offset));
            }
            let read = backend.read(ReadRequest {
                topic,
                partition: queue_id,
                offset: position,
                bytes_max: STEP_BYTES,
                records_max: STEP_RECORDS,
                tags: None,
            });
            // Deleted meanwhile, by retention or with its topic.
            let Some(read) = if_there(read.await)? else { return Ok(()) };
            for batch in &read.batches {
                place.append_time_ms = batch.append_time_ms();
                place.door = batch.door(&topic.name);
                if place.append_time_ms > last_append_ms {
                    return Ok(());
                }
                self.look_into(batch, position, &place, found)?;
            }
            if read.next_offset <= position {
                return Ok(());
            }
            position = read.next_offset;
            // Others on this thread have their turn.
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    fn look_into(
        &self,
        batch: &SharedBatch,
        from: i64,
        place: &Place<'_>,
        found: &mut Found,
    ) -> Result<(), Refusal> {
        let mut properties = Vec::new();
        let times = self.begin_ms..=self.end_ms;
        for record in batch.decoded().iter_from(from) {
            let store_ms = message::store_time_ms(&record, place.append_time_ms);
            if !times.contains(&store_ms) || !self.has_key(&record, place.door, &mut properties) {
                continue;
            }
            let mut out = SegmentedOut::default();
            message::encode(&record, place, None, &mut Scratch::default(), &mut out)
                .map_err(|error| Refusal::new(ResponseCode::SYSTEM_ERROR, error.to_string()))?;
            let at = (place.append_time_ms, place.queue_id, record.offset);
            found.add(at, out.into_bytes());
        }
        Ok(())
    }

    fn has_key(&self, record: &Record<'_>, door: Door, properties: &mut Vec<u8>) -> bool {
        let is_rocketmq = message::origin(record.headers).is_some();
        properties.clear();
        message::properties_into(record, Writer { is_rocketmq, door }, properties);
        let Ok(text) = std::str::from_utf8(properties) else { return false };
        Properties(text).iter().any(|(name, value)| match name {
            KEYS => value.split(' ').any(|word| word == self.key),
            UNIQ_KEY => value == self.key,
            _ => false,
        })
    }

    fn too_slow(&self, queue_id: i32, position: i64, end: i64) -> Refusal {
        Refusal::new(
            ResponseCode::SYSTEM_ERROR,
            format!(
                "key {}: looked through queue {queue_id} up to offset {position} of {end} in \
                 {QUERY_MS_MAX} ms, ask for a later begin time",
                self.key
            ),
        )
    }
}

#[cfg(test)]
mod tests;
