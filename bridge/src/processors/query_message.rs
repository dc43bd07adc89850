//! QUERY_MESSAGE: code 12. Messages of a topic that have a key: a word of their `KEYS` or their
//! `UNIQ_KEY`; the newest ones, in the order in which they were appended. Clients ask for an
//! offsetMsgId or a key of their own so, and compare once more themselves.
//! A topic's `rmq.key.index` says whether Kafka producers' are found.
//! By the index of keys, from the first batch appended at `beginTimestamp` on (a unique key tells that
//! time nearly to the second); what the index does not say is found by reading. What takes too long is
//! refused in words, since "not found" would be untrue; the index made meanwhile stays. A queue that
//! is damaged keeps nobody from what others hold.
//! Leaves out: `indexType` and `lastKey` (5.4), which ask the same of the original's other index.
//! Source: QueryMessageProcessor.queryMessage, DefaultMessageStore.queryMessage, IndexService.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::store_time::if_there;
use super::{Call, Refusal};
use crate::backend::{Backend, Boundary, ReadRequest, SharedBatch, Topic};
use crate::dispatch::Answer;
use crate::limits::{QUERY_BYTES_MAX, QUERY_HITS_MAX, QUERY_MESSAGES_MAX, QUERY_MS_MAX};
use crate::remoting::SegmentedOut;
use crate::response_code::ResponseCode;
use crate::translate::keys;
use crate::translate::message::{self, Door, Place, Scratch};
use crate::translate::properties::REGION_ID;

/// Bytes and records that are read at a time.
const STEP_BYTES: usize = 256 * 1024;
const STEP_RECORDS: usize = 4096;

/// With fewer offsets to go the index is not worth its making.
const INDEXED_OFFSETS_MIN: i64 = 1024;

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
    let mut fault = None;
    if let Some(topic) = call.shared.topic(name) {
        for queue_id in 0..topic.partitions {
            let looked = query.look_through(&call, name, (&topic, queue_id), &mut found).await;
            let Err(refusal) = looked else { continue };
            if query.is_over() {
                return Err(refusal);
            }
            // The other queues are there all the same.
            fault.get_or_insert(refusal);
        }
    }
    if found.messages.is_empty() {
        if let Some(fault) = fault {
            return Err(fault);
        }
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
        if let Some(same) = self.messages.insert(place, message) {
            self.bytes -= same.len();
        }
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

/// What is left of a queue to be looked through.
struct Way<'a> {
    place: Place<'a>,
    topic: &'a Topic,
    position: i64,
    /// Exclusive.
    end: i64,
    /// Where the index says that the key may be: the newest such offsets.
    hits: VecDeque<i64>,
    /// There were more hits, before these.
    has_older_hits: bool,
}

impl Way<'_> {
    fn request(&self, offset: i64, bytes_max: usize, records_max: usize) -> ReadRequest<'_> {
        let (topic, partition) = (self.topic, self.place.queue_id);
        ReadRequest { topic, partition, offset, bytes_max, records_max, tags: None }
    }

    fn add_hits(&mut self, offsets: Vec<i64>) {
        self.hits.extend(offsets);
        while self.hits.len() > QUERY_HITS_MAX {
            self.hits.pop_front();
            self.has_older_hits = true;
        }
    }
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
        let Some(start) = if_there(begin.await)?.flatten() else { return Ok(()) };
        let last_ms = self.end_ms.saturating_add(APPEND_LATE_MS);
        let last = backend.search_append_time(topic, queue_id, last_ms, Boundary::Upper);
        let Some(last) = if_there(last.await)?.flatten() else { return Ok(()) };
        let place = Place {
            topic: name,
            queue_id,
            partition_number: view.number,
            store_host: backend.config().broker_address,
            door: Door::Both,
            append_time_ms: 0,
            times_before: 0,
            region_id: REGION_ID,
        };
        let mut end = last.saturating_add(1).min(view.last_stable_offset);
        loop {
            let hits = VecDeque::new();
            let mut way = Way { place, topic, position: start, end, hits, has_older_hits: false };
            let walked = self.walk(backend, &mut way, found).await;
            let oldest_hit = way.hits.front().copied();
            let is_enough = self.look_at_hits(backend, &mut way, found).await?;
            walked?;
            match oldest_hit {
                Some(oldest) if way.has_older_hits && !is_enough => end = oldest,
                _ => return Ok(()),
            }
        }
    }

    /// From the position to the end: by the index, whose hits are noted, or by reading.
    async fn walk<B: Backend>(
        &self,
        backend: &B,
        way: &mut Way<'_>,
        found: &mut Found,
    ) -> Result<(), Refusal> {
        while way.position < way.end {
            self.check_time(way)?;
            let is_far = way.end - way.position >= INDEXED_OFFSETS_MIN;
            let is_indexed = is_far && self.by_index(backend, way).await?;
            let goes_on = is_indexed || self.by_reading(backend, way, found).await?;
            if !goes_on {
                break;
            }
            // Others on this thread have their turn.
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Reads what the index said, the newest first; `true` once that many have the key.
    async fn look_at_hits<B: Backend>(
        &self,
        backend: &B,
        way: &mut Way<'_>,
        found: &mut Found,
    ) -> Result<bool, Refusal> {
        let mut count = 0;
        while let Some(offset) = way.hits.pop_back() {
            way.position = offset;
            self.check_time(way)?;
            let read = backend.read(way.request(offset, 1, 1)).await;
            // Deleted meanwhile, and all before it, too.
            let Some(read) = if_there(read)? else { return Ok(true) };
            for batch in &read.batches {
                let range = offset..offset.saturating_add(1);
                count += self.look_into(batch, range, way, found)?;
            }
            if count >= found.count_max {
                return Ok(true);
            }
            tokio::task::yield_now().await;
        }
        Ok(false)
    }

    /// Goes on by the index of keys; `false` where it does not say.
    async fn by_index<B: Backend>(&self, backend: &B, way: &mut Way<'_>) -> Result<bool, Refusal> {
        let hash = keys::key_hash(self.key);
        let range = way.position..way.end;
        let hits = backend.find_key(way.topic, way.place.queue_id, hash, range).await;
        let Some(hits) = if_there(hits)? else { return Ok(false) };
        way.add_hits(hits.offsets);
        let is_news = hits.end_offset > way.position;
        way.position = way.position.max(hits.end_offset);
        Ok(is_news || hits.grows)
    }

    /// Goes on by reading; `false` when there is nothing more.
    async fn by_reading<B: Backend>(
        &self,
        backend: &B,
        way: &mut Way<'_>,
        found: &mut Found,
    ) -> Result<bool, Refusal> {
        let read = backend.read(way.request(way.position, STEP_BYTES, STEP_RECORDS)).await;
        // Deleted meanwhile, by retention or with its topic.
        let Some(read) = if_there(read)? else { return Ok(false) };
        for batch in &read.batches {
            self.look_into(batch, way.position..way.end, way, found)?;
        }
        let is_news = read.next_offset > way.position;
        way.position = way.position.max(read.next_offset);
        Ok(is_news)
    }

    /// Adds those of a batch's records that have the key; returns their number.
    fn look_into(
        &self,
        batch: &SharedBatch,
        range: Range<i64>,
        way: &Way<'_>,
        found: &mut Found,
    ) -> Result<usize, Refusal> {
        let mut place = way.place;
        place.append_time_ms = batch.append_time_ms();
        place.door = batch.door(&way.topic.name);
        let (mut count, mut properties) = (0, Vec::new());
        let times = self.begin_ms..=self.end_ms;
        for record in batch.decoded().iter_from(range.start) {
            if record.offset >= range.end {
                break;
            }
            let store_ms = message::store_time_ms(&record, place.append_time_ms);
            let index = way.topic.key_index;
            if !times.contains(&store_ms)
                || !index.has_key(&record, place.door, self.key, &mut properties)
            {
                continue;
            }
            let mut out = SegmentedOut::default();
            message::encode(&record, &place, None, &mut Scratch::default(), &mut out)
                .map_err(|error| Refusal::new(ResponseCode::SYSTEM_ERROR, error.to_string()))?;
            let at = (place.append_time_ms, place.queue_id, record.offset);
            found.add(at, out.into_bytes());
            count += 1;
        }
        Ok(count)
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    fn check_time(&self, way: &Way<'_>) -> Result<(), Refusal> {
        if !self.is_over() {
            return Ok(());
        }
        Err(self.too_slow(way.place.queue_id, way.position, way.end))
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
