//! One look into a queue: what is there for this pull from an offset on.

use std::collections::HashSet;

use duolog_log_core::ids::TopicId;
use duolog_log_core::record::Record;
use parking_lot::Mutex;

use super::Pull;
use super::admit::Target;
use crate::backend::{Backend, BackendError, PartitionView, ReadAnswer, ReadRequest, SharedBatch};
use crate::dispatch::Shared;
use crate::limits::{PULL_READS_MAX, SQL_READ_RECORDS, UNSEEABLE_MAX};
use crate::processors::Refusal;
use crate::processors::filter::Filter;
use crate::remoting::SegmentedOut;
use crate::response_code::ResponseCode;
use crate::translate::message::{self, Door, Place, Scratch, ViewError};
use crate::translate::properties::REGION_ID;

/// Messages for the answer, one after the other.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) messages: SegmentedOut,
    /// How many.
    pub(super) count: usize,
    /// Bytes of their records: keys, values, headers.
    pub(super) record_bytes: usize,
}

/// How a look ended; the names go into the remark. Source: GetMessageStatus.
#[derive(Debug)]
pub(super) enum Status {
    /// Messages.
    Found(Found),
    NoMatchedMessage,
    NoMessageInQueue,
    OffsetOverflowOne,
    OffsetOverflowBadly,
    OffsetTooSmall,
    OffsetReset,
}

impl Status {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Found { .. } => "FOUND",
            Self::NoMatchedMessage => "NO_MATCHED_MESSAGE",
            Self::NoMessageInQueue => "NO_MESSAGE_IN_QUEUE",
            Self::OffsetOverflowOne => "OFFSET_OVERFLOW_ONE",
            Self::OffsetOverflowBadly => "OFFSET_OVERFLOW_BADLY",
            Self::OffsetTooSmall => "OFFSET_TOO_SMALL",
            Self::OffsetReset => "OFFSET_RESET",
        }
    }
}

/// What a look saw.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) status: Status,
    pub(super) next_offset: i64,
    pub(super) min_offset: i64,
    pub(super) max_offset: i64,
}

impl Seen {
    /// The response code to a pull from `offset`.
    pub(super) fn code(&self, offset: i64) -> ResponseCode {
        match self.status {
            Status::Found { .. } => ResponseCode::SUCCESS,
            Status::NoMatchedMessage => ResponseCode::PULL_RETRY_IMMEDIATELY,
            Status::NoMessageInQueue if offset == 0 => ResponseCode::PULL_NOT_FOUND,
            Status::OffsetOverflowOne => ResponseCode::PULL_NOT_FOUND,
            Status::NoMessageInQueue
            | Status::OffsetOverflowBadly
            | Status::OffsetTooSmall
            | Status::OffsetReset => ResponseCode::PULL_OFFSET_MOVED,
        }
    }

    /// Were there records, none of which matched?
    pub(super) fn is_scanned(&self) -> bool {
        matches!(self.status, Status::NoMatchedMessage)
    }

    /// Is `offset` where the next record will be?
    pub(super) fn is_at_end(&self, offset: i64) -> bool {
        self.code(offset) == ResponseCode::PULL_NOT_FOUND
    }

    fn new(status: Status, next_offset: i64, view: PartitionView) -> Self {
        let PartitionView { log_start_offset, last_stable_offset, .. } = view;
        Self { status, next_offset, min_offset: log_start_offset, max_offset: last_stable_offset }
    }

    /// Everything before `next_offset` was scanned, or was nothing for readers.
    pub(super) fn nothing_matched(next_offset: i64, view: PartitionView) -> Self {
        Self::new(Status::NoMatchedMessage, next_offset, view)
    }

    /// What there is to say of `offset` without reading; `None`: there may be records.
    pub(super) fn without_reading(offset: i64, view: PartitionView) -> Option<Self> {
        let (start, end) = (view.log_start_offset, view.last_stable_offset);
        let (status, next_offset) = if end == 0 {
            (Status::NoMessageInQueue, 0)
        } else if offset < start {
            (Status::OffsetTooSmall, start)
        } else if offset == end {
            (Status::OffsetOverflowOne, offset)
        } else if offset > end {
            (Status::OffsetOverflowBadly, end)
        } else {
            return None;
        };
        Some(Self::new(status, next_offset, view))
    }
}

/// The queue's offsets now.
pub(super) async fn queue<B: Backend>(
    shared: &Shared<B>,
    pull: &Pull,
    target: &Target,
) -> Result<PartitionView, Refusal> {
    let (topic, partition) = (&target.topic, pull.queue_id);
    if let Some(view) = shared.backend.partition(topic, partition).await {
        return Ok(view);
    }
    // The template has no queues of its own before somebody sends to it.
    if topic.id == TopicId::ZERO {
        return Ok(PartitionView::default());
    }
    Err(BackendError::NotLeader { topic: topic.name.to_string(), partition }.into())
}

/// Where an administrator wants the group to go on, if that waits for this pull.
pub(super) async fn reset<B: Backend>(
    shared: &Shared<B>,
    pull: &Pull,
    target: &Target,
) -> Result<Option<Seen>, Refusal> {
    let offset = shared.resets.take(&pull.group, target.topic.id, pull.queue_id);
    let Some(offset) = offset else { return Ok(None) };
    let view = queue(shared, pull, target).await?;
    Ok(Some(Seen::new(Status::OffsetReset, offset, view)))
}

/// Looks from `from` on. A bounded number of reads: what is then still unread is for the next pull.
pub(super) async fn look<B: Backend>(
    shared: &Shared<B>,
    pull: &Pull,
    target: &Target,
    from: i64,
) -> Result<Seen, Refusal> {
    let mut view = queue(shared, pull, target).await?;
    if let Some(seen) = Seen::without_reading(from, view) {
        return Ok(seen);
    }
    let config = shared.backend.config();
    let mut position = from;
    for _ in 0..PULL_READS_MAX {
        let read = shared.backend.read(ReadRequest {
            topic: &target.topic,
            partition: pull.queue_id,
            offset: position,
            bytes_max: config.transfer_bytes_max,
            records_max: match target.filter {
                Filter::Sql(_) => SQL_READ_RECORDS,
                Filter::All | Filter::Tags(_) => pull.messages_max.min(config.transfer_records_max),
            },
            tags: target.filter.hashes(),
        });
        let answer = match read.await {
            Ok(answer) => answer,
            // The log's start passed by meanwhile.
            Err(BackendError::OffsetOutOfRange {
                log_start_offset, last_stable_offset, ..
            }) => {
                view = PartitionView { log_start_offset, last_stable_offset, ..view };
                let seen = Seen::without_reading(position, view);
                return Ok(seen.unwrap_or_else(|| Seen::nothing_matched(position, view)));
            }
            Err(error) => return Err(error.into()),
        };
        view = answer.view;
        let mut page = Page::new(shared, pull, target, view);
        let next_offset = page.fill(&answer, position, &target.filter)?;
        if page.found.count > 0 {
            return Ok(Seen::new(Status::Found(page.found), next_offset, view));
        }
        if next_offset <= position {
            break;
        }
        position = next_offset;
        if position >= view.last_stable_offset {
            break;
        }
    }
    Ok(Seen::nothing_matched(position, view))
}

/// The messages of one answer.
struct Page<'a> {
    found: Found,
    scratch: Scratch,
    place: Place<'a>,
    count_max: usize,
    bytes_max: usize,
    topic_id: TopicId,
    stored_name: &'a str,
    unseeable: &'a Unseeable,
}

impl<'a> Page<'a> {
    fn new<B: Backend>(
        shared: &'a Shared<B>,
        pull: &'a Pull,
        target: &'a Target,
        view: PartitionView,
    ) -> Self {
        let config = shared.backend.config();
        Self {
            found: Found::default(),
            scratch: Scratch::default(),
            place: Place {
                topic: &pull.topic,
                queue_id: pull.queue_id,
                partition_number: view.number,
                store_host: config.broker_address,
                door: Door::Both,
                append_time_ms: 0,
                times_before: 0,
                region_id: REGION_ID,
            },
            count_max: pull.messages_max.min(config.transfer_records_max),
            bytes_max: config.transfer_bytes_max,
            topic_id: target.topic.id,
            stored_name: &target.topic.name,
            unseeable: &shared.unseeable,
        }
    }

    /// Encodes the records from `from` on that match, as many as fit; the offset behind the last
    /// one looked at.
    fn fill(&mut self, read: &ReadAnswer, from: i64, filter: &Filter) -> Result<i64, Refusal> {
        for batch in &read.batches {
            if let Some(no_room_at) = self.add(batch, from, filter)? {
                return Ok(no_room_at);
            }
        }
        Ok(read.next_offset)
    }

    /// Adds a batch's records from `from` on; `Some` is the first offset that found no room.
    fn add(
        &mut self,
        batch: &SharedBatch,
        from: i64,
        filter: &Filter,
    ) -> Result<Option<i64>, Refusal> {
        self.place.append_time_ms = batch.append_time_ms();
        self.place.door = batch.door(self.stored_name);
        match filter {
            Filter::All => {
                for record in batch.decoded().iter_from(from) {
                    if !self.push(&record, batch)? {
                        return Ok(Some(record.offset));
                    }
                }
            }
            Filter::Tags(hashes) => {
                for (record, hash) in batch.tagged_from(from) {
                    if hashes.contains(&hash) && !self.push(&record, batch)? {
                        return Ok(Some(record.offset));
                    }
                }
            }
            Filter::Sql(selector) => {
                for record in batch.decoded().iter_from(from) {
                    let properties =
                        message::properties(&record, self.place.door, &mut self.scratch);
                    if selector.matches(properties) && !self.push(&record, batch)? {
                        return Ok(Some(record.offset));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Adds one message; `false` if there is no room for it beside others.
    fn push(&mut self, record: &Record<'_>, batch: &SharedBatch) -> Result<bool, Refusal> {
        let body_bytes = record.value.map_or(0, <[u8]>::len);
        let found = &mut self.found;
        let bytes = found.messages.len().saturating_add(body_bytes);
        let is_full = found.count >= self.count_max || bytes > self.bytes_max;
        if is_full && found.count > 0 {
            return Ok(false);
        }
        if found.count == 1 {
            // The others are likely as long as the first.
            let likely = found.messages.len().saturating_mul(self.count_max);
            found.messages.tail().reserve(likely.min(self.bytes_max));
        }
        let region = Some(batch.decoded().region());
        match message::encode(record, &self.place, region, &mut self.scratch, &mut found.messages) {
            Ok(_) => {
                found.count += 1;
                found.record_bytes += record.payload_bytes();
                Ok(true)
            }
            // What came before it can be had.
            Err(_) if found.count > 0 => Ok(false),
            Err(error) => {
                let Place { topic, queue_id, .. } = self.place;
                let queue = (topic, self.topic_id, queue_id);
                Err(self.unseeable.refuse(queue, record.offset, &error))
            }
        }
    }
}

/// Queues in which readers stand before a record that no message can show; each is told once.
#[derive(Debug, Default)]
pub(crate) struct Unseeable(Mutex<HashSet<(TopicId, i32)>>);

impl Unseeable {
    /// A record that has no message, such as one beyond offset 2^40, is never passed over.
    pub(crate) fn refuse(
        &self,
        (topic, id, queue_id): (&str, TopicId, i32),
        offset: i64,
        error: &ViewError,
    ) -> Refusal {
        if self.is_news(id, queue_id) {
            tracing::error!(topic, queue_id, offset, %error, "RocketMQ clients cannot see a record");
        }
        Refusal::new(ResponseCode::SYSTEM_ERROR, error.to_string())
    }

    fn is_news(&self, topic: TopicId, queue_id: i32) -> bool {
        let mut told = self.0.lock();
        told.len() < UNSEEABLE_MAX && told.insert((topic, queue_id))
    }
}
