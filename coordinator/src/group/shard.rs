//! The state machine of one `__consumer_offsets` partition: its groups, of both families.
//!
//! A group belongs to one family at a time. Kafka's needs no record; RocketMQ's is a
//! [`Record::Family`]. A client of the other family may come in once the group has no live member;
//! the positions stay («drain with Kafka, resume with RocketMQ»). Plain commits without membership
//! change no family.
//!
//! ```text
//! Kafka ----- RocketMQ heartbeat, no Kafka member ------> RocketMQ, recorded
//! RocketMQ -- Kafka rebalance ends, no RocketMQ member -> Kafka, recorded
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use duolog_log_core::event::{Event as Observed, EventKind, Events, Protocol};
use duolog_log_core::ids::Offset;
use duolog_log_core::record::TransactionOutcome;

use crate::error::GroupError;
use crate::group::config::GroupConfig;
use crate::group::context::{Context, Known};
use crate::group::event::{ChannelId, Event, GroupId, MemberId, ReplaceQueueOffset, Timer};
use crate::group::image::GroupImage;
use crate::group::kafka::consumer;
use crate::group::kafka::pending::PendingPositions;
use crate::group::metadata::{Metadata, NoMetadata};
use crate::group::response::{Notice, Response};
use crate::group::rocketmq::producers::Producers;
use crate::group::rocketmq::queue_lock::QueueLocks;
use crate::record::{Record, RecordError};
use crate::shard::{BatchForm, Outcome, RecordBytes, RequestId, Shard, TimerChange};
use crate::time::Now;

mod admin;
mod consumers;
mod group;
mod kafka;
mod rocketmq;
mod transactions;

use group::{Group, Live};

/// The groups of one partition.
#[derive(Debug)]
pub struct GroupShard {
    config: GroupConfig,
    known: Known,
    events: Arc<Events>,
    groups: BTreeMap<GroupId, Group>,
    producers: Producers,
    locks: QueueLocks,
    /// Positions of open transactions.
    pending: PendingPositions,
    /// The consumer groups that each RocketMQ connection is in.
    channels: BTreeMap<ChannelId, BTreeSet<GroupId>>,
    /// Replayed records are news from here on.
    is_loaded: bool,
}

impl GroupShard {
    /// A shard without groups, to be filled from the log; tells state changes to `events`.
    #[must_use]
    pub fn new(config: GroupConfig, events: Arc<Events>) -> Self {
        Self {
            config,
            known: Known { metadata: Arc::new(NoMetadata), version: 0 },
            events,
            groups: BTreeMap::new(),
            producers: Producers::default(),
            locks: QueueLocks::default(),
            pending: PendingPositions::default(),
            channels: BTreeMap::new(),
            is_loaded: false,
        }
    }

    /// The same, knowing the cluster's metadata from the beginning.
    #[must_use]
    pub fn knowing(mut self, metadata: Arc<dyn Metadata>) -> Self {
        self.known.metadata = metadata;
        self
    }

    /// What the log has of a group.
    #[must_use]
    pub fn image(&self, group: &str) -> Option<&GroupImage> {
        self.groups.get(group).map(|group| &group.image).filter(|image| !image.is_empty())
    }

    /// What the log has of all groups, by name.
    pub fn images(&self) -> impl Iterator<Item = (&GroupId, &GroupImage)> {
        let images = self.groups.iter().map(|(id, group)| (id, &group.image));
        images.filter(|(_, image)| !image.is_empty())
    }

    /// A stable group as its live half would be stored.
    #[cfg(test)]
    pub(in crate::group) fn value_at_rest(&self, group: &str) -> Option<crate::record::GroupValue> {
        match &self.groups.get(group)?.live {
            Live::Classic(classic) => classic.value_at_rest(),
            Live::Idle | Live::Consumer(_) | Live::RocketMq(_) => None,
        }
    }

    /// Runs `act` on a group that is there or made for it, and forgets the group if nothing is
    /// left of it.
    fn with_group<T>(
        &mut self,
        id: &GroupId,
        now: Now,
        out: &mut Outcome<Self>,
        act: impl FnOnce(&mut Group, &mut Context<'_>) -> T,
    ) -> T {
        let group = self.groups.entry(id.clone()).or_default();
        let (config, events, known) = (&self.config, &*self.events, &self.known);
        let result = act(group, &mut Context { group: id, config, known, events, now, out });
        let rests = match &group.live {
            Live::Classic(classic) => classic.is_idle(),
            // With records under way it may be just beginning.
            Live::Consumer(_) => out.records.is_empty() && !group.has_consumers(),
            Live::Idle | Live::RocketMq(_) => false,
        };
        if rests {
            group.live = Live::Idle;
        }
        self.forget_if_gone(id);
        result
    }

    fn forget_if_gone(&mut self, id: &GroupId) {
        if self.groups.get(id).is_some_and(Group::is_bare) && !self.pending.has_group(id) {
            self.groups.remove(id);
        }
    }

    /// As [`Self::with_group`], for a group that exists only.
    fn with_known_group<T>(
        &mut self,
        id: &GroupId,
        now: Now,
        out: &mut Outcome<Self>,
        act: impl FnOnce(&mut Group, &mut Context<'_>) -> T,
    ) -> Option<T> {
        self.groups.contains_key(id).then(|| self.with_group(id, now, out, act))
    }

    fn fired(&mut self, timer: Timer, now: Now, out: &mut Outcome<Self>) {
        match timer {
            Timer::Session(group, member) => self.session_over(&group, &member, now, out),
            Timer::Join(group) => {
                self.with_known_group(&group, now, out, |group, cx| {
                    let Live::Classic(classic) = &mut group.live else { return };
                    classic.join_phase_over(cx);
                    Self::take_from_rocketmq(group, cx);
                });
            }
            Timer::Sync(group) => {
                self.with_known_group(&group, now, out, |group, cx| {
                    let Live::Classic(classic) = &mut group.live else { return };
                    classic.sync_phase_over(cx);
                    Self::take_from_rocketmq(group, cx);
                });
            }
            Timer::Revocation(..) | Timer::Rejoin(..) | Timer::MemberSync(..) => {
                self.consumer_timer(timer, now, out);
            }
            Timer::Consumers(group) => self.consumers_expire(&group, now, out),
            Timer::Producers => self.producers.expire(now, out),
            Timer::QueueLocks => self.locks.expire(&self.events, now, out),
            Timer::OffsetsRetention => self.check_retention(now, out),
        }
    }

    fn session_over(
        &mut self,
        group: &GroupId,
        member: &MemberId,
        now: Now,
        out: &mut Outcome<Self>,
    ) {
        self.with_known_group(group, now, out, |group, cx| match &mut group.live {
            Live::Classic(classic) => {
                classic.session_over(member, cx);
                Self::take_from_rocketmq(group, cx);
            }
            Live::Consumer(_) => group.consumer_expired(member, cx),
            Live::Idle | Live::RocketMq(_) => {}
        });
    }

    /// A generation that is recorded makes the group Kafka's.
    fn take_from_rocketmq(group: &Group, cx: &mut Context<'_>) {
        let recorded = cx.out.records.iter().any(|r| matches!(r, Record::Group { .. }));
        if recorded && group.image.family.is_some() {
            cx.decide(Record::Family { group: cx.group.clone(), value: None });
        }
    }

    /// Tells what a record is about to change, once it is in the log.
    fn tell_replayed(&self, record: &Record) {
        let Record::Offset { group, topic, partition, value: Some(value) } = record else { return };
        let told = |kind, cause: String| {
            Observed::new(kind, value.commit_ms)
                .at(topic, *partition)
                .offset(Offset(value.offset))
                .protocol(match self.image(group) {
                    Some(image) if image.is_rocketmq() => Protocol::RocketMq,
                    _ => Protocol::Kafka,
                })
                .cause(cause)
        };
        self.events.emit(|| told(EventKind::OffsetCommit, format!("group {group}")));
        let before = self.image(group).and_then(|image| image.offset(topic, *partition));
        if let Some(before) = before.map(|before| before.offset)
            && value.offset < before
        {
            let cause = format!("group {group}: back from {before}");
            self.events.emit(|| told(EventKind::OffsetReset, cause));
        }
    }

    /// Takes in a fact.
    fn apply(&mut self, record: Record) {
        if self.is_loaded {
            self.tell_replayed(&record);
        }
        let id = record.group().clone();
        let group = self.groups.entry(id.clone()).or_default();
        group.image.apply(record);
        self.forget_if_gone(&id);
    }
}

impl Shard for GroupShard {
    type Key = GroupId;
    type Event = Event;
    type Response = Response;
    type Error = GroupError;
    type Record = Record;
    type Timer = Timer;
    type Notice = Notice;

    fn key(event: &Event) -> Option<&GroupId> {
        match event {
            Event::ConsumerGroupHeartbeat(heartbeat) => Some(&heartbeat.group),
            Event::JoinGroup(join) => Some(&join.group),
            Event::SyncGroup(sync) => Some(&sync.group),
            Event::Heartbeat(heartbeat) => Some(&heartbeat.group),
            Event::LeaveGroup(leave) => Some(&leave.group),
            Event::OffsetCommit(commit) => Some(&commit.group),
            Event::TxnOffsetCommit(txn) => Some(&txn.commit.group),
            Event::OffsetFetch(fetch) => Some(&fetch.group),
            Event::OffsetDelete(delete) => Some(&delete.group),
            Event::DescribeGroup(describe) => Some(&describe.group),
            Event::DeleteGroup(delete) => Some(&delete.group),
            Event::ConsumerHeartbeat(heartbeat) => Some(&heartbeat.group),
            Event::ConsumerLeave(leave) => Some(&leave.group),
            Event::CommitQueueOffset(commit)
            | Event::ReplaceQueueOffset(ReplaceQueueOffset { commit, .. }) => Some(&commit.group),
            Event::QueryQueueOffset(query) | Event::PopQueueOffset(query) => Some(&query.group),
            Event::ConsumerGroup(group)
            | Event::DescribeConsumerGroup(group)
            | Event::ChannelLeft { group, .. }
            | Event::ForgetTopic { group, .. }
            | Event::ExpireOffsets(group)
            | Event::Fired(
                Timer::Session(group, _)
                | Timer::Join(group)
                | Timer::Sync(group)
                | Timer::Revocation(group, _)
                | Timer::Rejoin(group, _)
                | Timer::MemberSync(group, _)
                | Timer::Consumers(group),
            ) => Some(group),
            Event::ListGroups(_)
            | Event::EndTransaction(_)
            | Event::ProducerHeartbeat(_)
            | Event::ProducerLeave(_)
            | Event::ProducerGroup(_)
            | Event::LockQueues(_)
            | Event::UnlockQueues(_)
            | Event::ChannelClosed(_)
            | Event::TopicDeleted(_)
            | Event::Metadata(_)
            | Event::Fired(Timer::Producers | Timer::QueueLocks | Timer::OffsetsRetention) => None,
        }
    }

    fn fired(timer: Timer) -> Event {
        Event::Fired(timer)
    }

    fn handle(&mut self, request: Option<RequestId>, event: Event, now: Now) -> Outcome<Self> {
        let mut out = Outcome::default();
        let answer = match event {
            Event::ConsumerGroupHeartbeat(heartbeat) => {
                Ok(self.consumer_group_heartbeat(*heartbeat, now, &mut out))
            }
            Event::DescribeConsumerGroup(group) => Ok(self.describe_consumer_group(&group)),
            Event::JoinGroup(join) => return self.join(request, *join, now),
            Event::SyncGroup(sync) => return self.sync(request, sync, now),
            Event::DeleteGroup(delete) => return self.delete(request, delete, now),
            Event::Heartbeat(heartbeat) => self.heartbeat(heartbeat, now, &mut out),
            Event::LeaveGroup(leave) => self.leave(leave, now, &mut out),
            Event::OffsetCommit(commit) => self.commit(commit, now, &mut out),
            Event::TxnOffsetCommit(txn) => self.commit_in_transaction(txn, now, &mut out),
            Event::EndTransaction(end) => {
                out.batch = BatchForm::End(end);
                Ok(Response::Done)
            }
            Event::OffsetFetch(fetch) => self.fetch(fetch),
            Event::OffsetDelete(delete) => self.delete_offsets(delete, &mut out),
            Event::ListGroups(list) => Ok(self.list(&list)),
            Event::DescribeGroup(describe) => Ok(self.describe(&describe)),
            Event::ConsumerHeartbeat(heartbeat) => {
                self.consumer_heartbeat(*heartbeat, now, &mut out)
            }
            Event::ProducerHeartbeat(heartbeat) => {
                Ok(self.producer_heartbeat(heartbeat, now, &mut out))
            }
            Event::ConsumerLeave(leave) => Ok(self.consumer_leave(&leave, now, &mut out)),
            Event::ProducerLeave(leave) => {
                self.producers.leave(&leave.group, &leave.client);
                Ok(Response::Done)
            }
            Event::ChannelClosed(channel) => Ok(self.channel_closed(channel, &mut out)),
            Event::ChannelLeft { group, channel } => {
                Ok(self.channel_left(&group, channel, now, &mut out))
            }
            Event::ConsumerGroup(group) => Ok(self.consumer_group(&group)),
            Event::ProducerGroup(group) => {
                Ok(Response::ProducerGroup(self.producers.members(&group)))
            }
            Event::LockQueues(request) => Ok(self.lock_queues(request, now, &mut out)),
            Event::UnlockQueues(request) => {
                self.locks.unlock(&request, &self.events, now);
                Ok(Response::Done)
            }
            Event::CommitQueueOffset(commit) => self.commit_queue_offset(&commit, now, &mut out),
            Event::ReplaceQueueOffset(replace) => {
                self.replace_queue_offset(&replace, now, &mut out)
            }
            Event::QueryQueueOffset(query) => Ok(self.query_queue_offset(&query)),
            Event::PopQueueOffset(query) => self.pop_queue_offset(&query),
            Event::TopicDeleted(topic) => Ok(self.topic_deleted(&topic, &mut out)),
            Event::ForgetTopic { group, topic } => Ok(self.forget_topic(&group, topic, &mut out)),
            Event::ExpireOffsets(group) => Ok(self.expire_offsets(group, now, &mut out)),
            Event::Metadata(metadata) => {
                self.known = Known { metadata, version: self.known.version + 1 };
                Ok(Response::Done)
            }
            Event::Fired(timer) => {
                self.fired(timer, now, &mut out);
                Ok(Response::Done)
            }
        };
        out.respond(request, answer);
        out
    }

    fn replay(&mut self, record: Record, _: Offset) {
        self.pending.superseded(&record);
        self.apply(record);
    }

    fn replay_in_transaction(&mut self, producer_id: i64, record: Record, offset: Offset) {
        if let Some(group) = self.pending.keep(producer_id, record, offset) {
            self.groups.entry(group).or_default();
        }
    }

    fn replay_end(&mut self, producer_id: i64, outcome: TransactionOutcome) {
        let ended = self.pending.end(producer_id, outcome);
        ended.records.into_iter().for_each(|record| self.apply(record));
        ended.groups.iter().for_each(|group| self.forget_if_gone(group));
    }

    fn loaded(&mut self, now: Now) -> Outcome<Self> {
        self.is_loaded = true;
        let mut out = Outcome::default();
        let ids: Vec<GroupId> = self.groups.keys().cloned().collect();
        for id in &ids {
            self.with_group(id, now, &mut out, Self::revive);
        }
        let check = now.after(self.config.offsets_retention_check_interval_ms);
        out.timers.push(TimerChange::Set(Timer::OffsetsRetention, check));
        out
    }

    fn revert(&mut self, key: &GroupId, error: &GroupError, now: Now) -> Outcome<Self> {
        let mut out = Outcome::default();
        self.with_known_group(key, now, &mut out, |group, cx| {
            match &mut group.live {
                Live::Idle | Live::Consumer(_) => {}
                Live::Classic(classic) => classic.abandon(*error, cx),
                Live::RocketMq(_) => {
                    cx.cancel(Timer::Consumers(cx.group.clone()));
                    let group = cx.group.clone();
                    cx.out.notices.push(Notice::ConsumerGroup { group, view: None });
                }
            }
            Self::revive(group, cx);
        });
        out
    }

    /// A heartbeat is accepted: the member may well be there once the log is read, and would leave
    /// its partitions for nothing. As Kafka's `GroupCoordinatorService.heartbeat`.
    fn while_loading(event: &Event) -> Result<Response, GroupError> {
        match event {
            Event::Heartbeat(_) => Ok(Response::Heartbeat),
            _ => Err(GroupError::CoordinatorLoadInProgress),
        }
    }

    fn resigned() -> GroupError {
        GroupError::NotCoordinator
    }

    fn overloaded() -> GroupError {
        GroupError::CoordinatorNotAvailable
    }

    fn encode(record: &Record) -> Result<RecordBytes, GroupError> {
        record.encode().map_err(|_| GroupError::TooLarge)
    }

    fn decode(key: &Bytes, value: Option<&Bytes>) -> Result<Option<Record>, RecordError> {
        Record::decode(key, value)
    }
}

impl GroupShard {
    /// Makes the live half anew from the stored one: the members that the log has get a session.
    fn revive(group: &mut Group, cx: &mut Context<'_>) {
        group.live = Live::Idle;
        let has_members = |value: &&_| {
            let value: &crate::record::GroupValue = value;
            !value.members.is_empty()
        };
        if let Some(image) = &group.image.consumer {
            if !image.members.is_empty() {
                group.live = Live::Consumer(Box::new(consumer::Live::resume(image, cx)));
            }
            return;
        }
        if !group.image.is_rocketmq() && group.image.classic.as_ref().filter(has_members).is_some()
        {
            group.classic(cx).resume(cx);
        }
    }
}

#[cfg(test)]
mod tests;
