//! What a pop takes of one queue: first what comes again, then what nobody had yet.
//!
//! ```text
//! turn ─▶ plan ─▶ read and encode ─▶ take it all ── the plan was true ──▶ into the answer
//!           ▲───────────── or not any more ◀──┘
//! ```

use std::fmt::Write;
use std::sync::Arc;

use duolog_log_core::event::EventKind;
use duolog_log_core::gate::GatePoint;
use duolog_log_core::record::Record;

use super::handle::retry_flag;
use super::wait::{Look, Wait};
use super::{Asked, Target};
use crate::backend::{
    Backend, BackendError, NodeConfig, PartitionView, PopFresh, PopOrder, PopPlan, PopQueue,
    PopTake, ReadAnswer, ReadRequest, SharedBatch,
};
use crate::deliveries::Delivery;
use crate::dispatch::Shared;
use crate::limits::{POP_SPAN_MAX, PULL_READS_MAX, SQL_READ_RECORDS};
use crate::processors::Refusal;
use crate::processors::filter::Filter;
use crate::processors::instruments::Spot;
use crate::remoting::SegmentedOut;
use crate::session::Session;
use crate::translate::message::{self, Door, Place, Scratch};
use crate::translate::properties::REGION_ID;

/// A plan that did not come true is made anew so often.
const PLANS_MAX: usize = 4;

/// Where a group without a position begins (`ConsumeInitMode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// With the first message.
    Min,
    /// With the last one, or the first of a young queue.
    Max,
}

/// What a pop wants.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) filter: Filter,
    pub(crate) count: usize,
    pub(crate) begin: Begin,
    pub(crate) invisible_ms: i64,
    pub(crate) order: Option<PopOrder>,
}

/// What a pop has got, as its answer says it.
#[derive(Debug, Default)]
pub(crate) struct Haul {
    pub(crate) messages: SegmentedOut,
    pub(crate) count: usize,
    /// Messages behind these.
    pub(crate) rest: i64,
    /// Names the delivery.
    pub(crate) popped_ms: i64,
    pub(crate) start_offsets: String,
    pub(crate) message_offsets: String,
    pub(crate) order_counts: String,
}

/// One pop, on its way through the queues.
pub(crate) struct Gathering<'a, B> {
    pub(crate) shared: &'a Shared<B>,
    pub(crate) session: &'a Session,
    pub(crate) asked: &'a Asked,
    pub(crate) target: &'a Target,
    pub(crate) wanted: &'a Wanted,
    pub(crate) haul: Haul,
}

impl<B: Backend> Look for Gathering<'_, B> {
    async fn queue(&mut self, queue_id: i32) -> Result<Wait, Refusal> {
        let (group, topic) = (&self.asked.group, &self.target.topic);
        let _turn = self.shared.pops.turn(group, topic.id, queue_id).await;
        if self.haul.count == 0 {
            // It may have waited for long.
            self.haul.popped_ms = self.shared.backend.now_ms();
        }
        self.reset(queue_id).await?;
        let mut next = 0;
        for _ in 0..PLANS_MAX {
            let view = queue_view(self.shared, self.target, queue_id).await?;
            let plan = self.plan(queue_id, view).await?;
            if plan.is_blocked {
                return Ok(Wait::Ready);
            }
            if plan.next > view.last_stable_offset {
                // The log was cut off. What others set as the position the plan goes by.
                let end = view.last_stable_offset;
                self.shared.backend.commit_offset(group, topic, queue_id, end).await?;
                continue;
            }
            let mut page = Page::new(self, queue_id, view);
            page.again(&plan).await?;
            page.fresh(&plan).await?;
            next = page.next;
            let has_room = plan.room > page.fresh.len();
            let wait = if has_room { Wait::Log(next) } else { Wait::Ready };
            if page.is_empty(&plan) {
                self.haul.rest += view.last_stable_offset.saturating_sub(next).max(0);
                return Ok(wait);
            }
            let (page, take) = page.take(&plan);
            let queue = PopQueue { group, topic, partition: queue_id };
            if self.shared.backend.pop_take(queue, take).await? {
                self.add(queue_id, page).await?;
                return Ok(wait);
            }
        }
        Ok(Wait::Log(next))
    }

    fn is_done(&self) -> bool {
        self.haul.count >= self.wanted.count
            || self.haul.messages.len() >= self.shared.backend.config().transfer_bytes_max
    }

    fn has_found(&self) -> bool {
        self.haul.count > 0
    }
}

impl<B: Backend> Gathering<'_, B> {
    /// Goes on where an administrator wants the group to, if that waits for this pop. Source:
    /// PopMessageProcessor.resetPopOffset.
    async fn reset(&self, queue_id: i32) -> Result<(), Refusal> {
        let (shared, group, topic) = (self.shared, &self.asked.group, &self.target.topic);
        if let Some(offset) = shared.resets.waiting(group, topic.id, queue_id) {
            let queue = PopQueue { group, topic, partition: queue_id };
            shared.backend.pop_reset(queue, offset).await?;
            shared.resets.done(group, topic.id, queue_id, offset);
            let spot = Spot { topic, queue_id, offset: Some(offset) };
            shared.tell_reset(self.session, spot, group, format_args!("as it was told to"));
        }
        Ok(())
    }

    async fn plan(&self, queue_id: i32, view: PartitionView) -> Result<PopPlan, Refusal> {
        let (group, topic) = (&self.asked.group, &self.target.topic);
        let queue = PopQueue { group, topic, partition: queue_id };
        let count = self.wanted.count.saturating_sub(self.haul.count);
        let backend = &self.shared.backend;
        if let Some(plan) = backend.pop_plan(queue, count, self.wanted.order.clone()).await? {
            return Ok(plan);
        }
        let start = self.begin(queue_id, view).await?;
        let spot = Spot { topic, queue_id, offset: Some(start) };
        self.shared.tell_reset(self.session, spot, group, format_args!("no position"));
        backend.pop_begin(queue, start).await?;
        let plan = backend.pop_plan(queue, count, self.wanted.order.clone()).await?;
        plan.ok_or_else(|| BackendError::CoordinatorNotReady { group: group.to_string() }.into())
    }

    /// Source: PopMessageProcessor.getInitOffset.
    async fn begin(&self, queue_id: i32, view: PartitionView) -> Result<i64, Refusal> {
        let start = view.log_start_offset;
        let is_young = start == 0 && view.bytes < self.shared.backend.config().in_memory_bytes_max;
        if self.wanted.begin == Begin::Min || is_young || retry_flag(&self.asked.name) != '0' {
            return Ok(start);
        }
        let (topic, end) = (&self.target.topic, view.last_stable_offset);
        let last = self.shared.backend.deliverable_end(topic, queue_id, end).await?;
        Ok(last.saturating_sub(1).max(start))
    }

    /// Puts what was taken of a queue into the answer.
    async fn add(&mut self, queue_id: i32, page: Taken) -> Result<(), Refusal> {
        let (group, topic) = (&self.asked.group, &self.target.topic);
        let delivery = Delivery {
            group,
            topic: topic.id,
            queue_id,
            next_offset: page.next,
            messages: page.offsets.len(),
        };
        self.shared.deliveries.count(delivery, self.shared.backend.now_ms());
        let haul = &mut self.haul;
        haul.rest += page.rest;
        let Some(first) = page.offsets.first() else { return Ok(()) };
        let spot = Spot { topic, queue_id, offset: Some(*first) };
        self.shared.pass(GatePoint::DeliverBefore, self.session, Some(spot)).await?;
        self.shared.backend.count_delivered(page.offsets.len(), page.record_bytes);
        self.shared.tell(EventKind::Deliver, self.session, Some(spot), Some("popped"));
        let flag = retry_flag(&self.asked.name);
        for text in [&mut haul.start_offsets, &mut haul.message_offsets] {
            if !text.is_empty() {
                text.push(';');
            }
            let _ = write!(text, "{flag} {queue_id} ");
        }
        let _ = write!(haul.start_offsets, "{first}");
        for (place, offset) in page.offsets.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            let _ = write!(haul.message_offsets, "{comma}{offset}");
        }
        if self.wanted.order.is_some() {
            page.count_into(flag, queue_id, &mut haul.order_counts);
        }
        haul.count += page.offsets.len();
        haul.messages.append(page.messages);
        Ok(())
    }
}

/// The queue's offsets now.
pub(crate) async fn queue_view<B: Backend>(
    shared: &Shared<B>,
    target: &Target,
    queue_id: i32,
) -> Result<PartitionView, Refusal> {
    let topic = &target.topic;
    let view = shared.backend.partition(topic, queue_id).await;
    let (topic, partition) = (topic.name.to_string(), queue_id);
    view.ok_or_else(|| BackendError::NotLeader { topic, partition }.into())
}

/// What was taken of one queue.
struct Taken {
    messages: SegmentedOut,
    record_bytes: usize,
    offsets: Vec<i64>,
    /// Of those that came again: how often before.
    counts: Vec<(i64, i32)>,
    next: i64,
    rest: i64,
}

impl Taken {
    /// By message where it is not the first time, and the least of all. Source:
    /// ConsumerOrderInfoManager.update.
    fn count_into(&self, flag: char, queue_id: i32, out: &mut String) {
        let known = |offset: &i64| self.counts.iter().find(|(known, _)| known == offset);
        let counts = self.offsets.iter().map(|offset| known(offset).map_or(0, |known| known.1));
        let least = counts.min().unwrap_or(0);
        let mut put = |key: std::fmt::Arguments<'_>, count: i32| {
            let comma = if out.is_empty() { "" } else { ";" };
            let _ = write!(out, "{comma}{flag} {key} {count}");
        };
        for (offset, count) in self.counts.iter().filter(|(_, count)| *count > 0) {
            put(format_args!("qo{queue_id}%{offset}"), *count);
        }
        put(format_args!("{queue_id}"), least);
    }
}

/// What is to be taken of one queue.
struct Page<'a, B> {
    shared: &'a Shared<B>,
    target: &'a Target,
    wanted: &'a Wanted,
    config: Arc<NodeConfig>,
    view: PartitionView,
    place: Place<'a>,
    scratch: Scratch,
    messages: SegmentedOut,
    record_bytes: usize,
    /// In the answer already.
    count_before: usize,
    bytes_before: usize,
    popped_ms: i64,
    again: Vec<(i64, i32)>,
    gone: Vec<i64>,
    fresh: Vec<i64>,
    next: i64,
}

impl<'a, B: Backend> Page<'a, B> {
    fn new(gathering: &Gathering<'a, B>, queue_id: i32, view: PartitionView) -> Self {
        let (shared, asked) = (gathering.shared, gathering.asked);
        let (target, wanted, haul) = (gathering.target, gathering.wanted, &gathering.haul);
        let config = shared.backend.config();
        let place = Place {
            topic: &asked.name,
            queue_id,
            partition_number: view.number,
            store_host: config.broker_address,
            door: Door::Both,
            append_time_ms: 0,
            times_before: 0,
            region_id: REGION_ID,
        };
        Self {
            shared,
            target,
            wanted,
            config,
            view,
            place,
            scratch: Scratch::default(),
            messages: SegmentedOut::default(),
            record_bytes: 0,
            count_before: haul.count,
            bytes_before: haul.messages.len(),
            popped_ms: haul.popped_ms,
            again: Vec::new(),
            gone: Vec::new(),
            fresh: Vec::new(),
            next: 0,
        }
    }

    fn is_empty(&self, plan: &PopPlan) -> bool {
        self.again.is_empty() && self.gone.is_empty() && self.next <= plan.next
    }

    fn take(self, plan: &PopPlan) -> (Taken, PopTake) {
        let (from, next) = (plan.next, self.next);
        let fresh = (next > from).then(|| PopFresh { from, next, offsets: self.fresh.clone() });
        let again: Vec<i64> = self.again.iter().map(|(offset, _)| *offset).collect();
        let taken = Taken {
            messages: self.messages,
            record_bytes: self.record_bytes,
            offsets: again.iter().chain(&self.fresh).copied().collect(),
            counts: self.again,
            next,
            rest: self.view.last_stable_offset.saturating_sub(next).max(0),
        };
        let take = PopTake {
            again,
            gone: self.gone,
            fresh,
            popped_ms: self.popped_ms,
            until_ms: self.popped_ms.saturating_add(self.wanted.invisible_ms),
            retries_max: self.target.group.retry_times_max,
            order: self.wanted.order.clone(),
        };
        (taken, take)
    }

    fn read(&self, offset: i64) -> ReadRequest<'_> {
        let wanted = self.wanted.count.min(self.config.transfer_records_max);
        ReadRequest {
            topic: &self.target.topic,
            partition: self.place.queue_id,
            offset,
            bytes_max: self.config.transfer_bytes_max,
            records_max: match self.wanted.filter {
                Filter::Sql(_) => SQL_READ_RECORDS,
                Filter::All | Filter::Tags(_) => wanted,
            },
            tags: None,
        }
    }

    /// Reads what comes again. What is not there any more will not come again.
    async fn again(&mut self, plan: &PopPlan) -> Result<(), Refusal> {
        let mut rest = &plan.again[..];
        while let Some((first, _)) = rest.first() {
            let read = self.shared.backend.read(self.read(*first)).await;
            let answer = match read {
                Ok(answer) => answer,
                Err(BackendError::OffsetOutOfRange { log_start_offset, .. })
                    if *first < log_start_offset =>
                {
                    rest = self.gone_below(rest, log_start_offset);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let before = rest.len();
            for batch in &answer.batches {
                rest = self.gone_below(rest, batch.base_offset());
                while let Some(((offset, times), others)) = rest.split_first()
                    && *offset < batch.next_offset()
                {
                    match batch.decoded().record_at(*offset) {
                        Some(record) if self.push(&record, batch, *times)? => {
                            self.again.push((*offset, *times));
                        }
                        Some(_) => return Ok(()),
                        None => self.gone.push(*offset),
                    }
                    rest = others;
                }
            }
            rest = self.gone_below(rest, answer.next_offset);
            if rest.len() == before {
                break;
            }
        }
        Ok(())
    }

    fn gone_below<'p>(&mut self, rest: &'p [(i64, i32)], offset: i64) -> &'p [(i64, i32)] {
        let count = rest.iter().take_while(|(known, _)| *known < offset).count();
        let (gone, rest) = rest.split_at(count);
        self.gone.extend(gone.iter().map(|(offset, _)| *offset));
        rest
    }

    /// Reads what nobody had yet. A bounded number of reads: the rest is for the next pop.
    async fn fresh(&mut self, plan: &PopPlan) -> Result<(), Refusal> {
        self.next = plan.next;
        let is_wide = plan.again.first().is_some_and(|(first, _)| plan.next - first > POP_SPAN_MAX);
        if is_wide || plan.room == 0 || self.again.len() + self.gone.len() < plan.again.len() {
            return Ok(());
        }
        for _ in 0..PULL_READS_MAX {
            if self.next >= self.view.last_stable_offset {
                break;
            }
            let request = ReadRequest { tags: self.wanted.filter.hashes(), ..self.read(self.next) };
            let answer = match self.shared.backend.read(request).await {
                Ok(answer) => answer,
                Err(BackendError::OffsetOutOfRange { log_start_offset, .. })
                    if self.next < log_start_offset =>
                {
                    self.next = log_start_offset;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let before = self.next;
            let is_full = self.fill(&answer, plan.room)?;
            if is_full || self.next <= before {
                break;
            }
        }
        Ok(())
    }

    /// Takes the records that match, as many as fit; whether one found no room.
    fn fill(&mut self, answer: &ReadAnswer, room: usize) -> Result<bool, Refusal> {
        let filter = &self.wanted.filter;
        for batch in &answer.batches {
            for (record, hash) in batch.tagged_from(self.next) {
                let is_wanted = match filter {
                    Filter::All => true,
                    Filter::Tags(hashes) => hashes.contains(&hash),
                    Filter::Sql(selector) => {
                        let door = batch.door(&self.target.topic.name);
                        selector.matches(message::properties(&record, door, &mut self.scratch))
                    }
                };
                if is_wanted {
                    if self.fresh.len() >= room || !self.push(&record, batch, 0)? {
                        self.next = record.offset;
                        return Ok(true);
                    }
                    self.fresh.push(record.offset);
                }
                self.next = record.offset.saturating_add(1);
            }
        }
        self.next = self.next.max(answer.next_offset);
        Ok(false)
    }

    /// Adds one message; `false` if there is no room for it beside others.
    fn push(
        &mut self,
        record: &Record<'_>,
        batch: &SharedBatch,
        times_before: i32,
    ) -> Result<bool, Refusal> {
        let count = self.count_before + self.again.len() + self.fresh.len();
        let body_bytes = record.value.map_or(0, <[u8]>::len);
        let bytes = self.bytes_before + self.messages.len() + body_bytes;
        let is_full = count >= self.wanted.count || bytes > self.config.transfer_bytes_max;
        if is_full && count > 0 {
            return Ok(false);
        }
        self.place.append_time_ms = batch.append_time_ms();
        self.place.door = batch.door(&self.target.topic.name);
        self.place.times_before = times_before;
        let region = Some(batch.decoded().region());
        match message::encode(record, &self.place, region, &mut self.scratch, &mut self.messages) {
            Ok(_) => {
                self.record_bytes += record.payload_bytes();
                Ok(true)
            }
            // What came before it can be had.
            Err(_) if count > 0 => Ok(false),
            Err(error) => {
                let Place { topic, queue_id, .. } = self.place;
                let queue = (topic, self.target.topic.id, queue_id);
                Err(self.shared.unseeable.refuse(queue, record.offset, &error))
            }
        }
    }
}
