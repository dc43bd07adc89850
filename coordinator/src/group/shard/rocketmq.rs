//! RocketMQ's requests to a group.

use std::sync::Arc;

use duolog_log_core::event::{Event as Observed, EventKind, Protocol};

use super::{Group, GroupShard, Live};
use crate::error::GroupError;
use crate::group::context::Context;
use crate::group::event::{
    ChannelId, CommitQueueOffset, ConsumerHeartbeat, ConsumerLeave, Event, GroupId, LockQueues,
    ProducerHeartbeat, QueryQueueOffset, ReplaceQueueOffset,
};
use crate::group::response::{LiveClient, Notice, Response};
use crate::group::rocketmq::membership::Membership;
use crate::group::rocketmq::offsets;
use crate::record::Record;
use crate::shard::Outcome;
use crate::time::Now;

impl GroupShard {
    pub(super) fn consumer_heartbeat(
        &mut self,
        heartbeat: ConsumerHeartbeat,
        now: Now,
        out: &mut Outcome<Self>,
    ) -> Result<Response, GroupError> {
        if heartbeat.group.is_empty() {
            return Err(GroupError::InvalidGroupId);
        }
        let id = heartbeat.group.clone();
        let channel = heartbeat.client.channel;
        let change = self.with_group(&id, now, out, |group, cx| {
            if group.has_kafka_members() {
                return Err(GroupError::HeldByKafka);
            }
            if group.image.family.is_none() {
                claim(group, cx);
            }
            if !matches!(group.live, Live::RocketMq(_)) {
                group.live = Live::RocketMq(Box::new(Membership::new(&heartbeat)));
            }
            let Live::RocketMq(members) = &mut group.live else { unreachable!("made above") };
            let client = heartbeat.client.id.clone();
            let is_new = !members.has_member(&client);
            if is_new && members.is_full() {
                return Err(GroupError::GroupMaxSizeReached);
            }
            let change = members.heartbeat(heartbeat, cx);
            if change.members {
                tell(EventKind::GroupJoin, &client, "joined", cx);
            }
            if is_new {
                tell_division(members, &client, cx);
            }
            Ok(change)
        })?;
        self.channels.entry(channel).or_default().insert(id);
        Ok(Response::ConsumerHeartbeat(change))
    }

    pub(super) fn producer_heartbeat(
        &mut self,
        heartbeat: ProducerHeartbeat,
        now: Now,
        out: &mut Outcome<Self>,
    ) -> Response {
        let timeout_ms = self.config.channel_expired_timeout_ms;
        let ProducerHeartbeat { group, client } = heartbeat;
        self.producers.heartbeat(group, client, timeout_ms, now, out);
        Response::Done
    }

    pub(super) fn consumer_leave(
        &mut self,
        leave: &ConsumerLeave,
        now: Now,
        out: &mut Outcome<Self>,
    ) -> Response {
        self.drop_members(&leave.group, now, out, "left", |members, cx| {
            members.leave(&leave.client, leave.notices, cx).into_iter().collect()
        })
    }

    /// The groups one by one, each under its own key.
    pub(super) fn channel_closed(
        &mut self,
        channel: ChannelId,
        out: &mut Outcome<Self>,
    ) -> Response {
        self.producers.channel_closed(channel);
        let groups = self.channels.get(&channel).into_iter().flatten().cloned();
        let left = groups.map(|group| Event::ChannelLeft { group, channel });
        out.follow_ups.extend(left.map(|event| (None, event)));
        Response::Done
    }

    pub(super) fn channel_left(
        &mut self,
        group: &GroupId,
        channel: ChannelId,
        now: Now,
        out: &mut Outcome<Self>,
    ) -> Response {
        self.unlink(channel, group);
        self.drop_members(group, now, out, "connection closed", |members, cx| {
            members.channel_left(channel, cx)
        })
    }

    /// Silent members go; or, if there was none left, what was kept of the group.
    pub(super) fn consumers_expire(&mut self, group: &GroupId, now: Now, out: &mut Outcome<Self>) {
        let kept_only = self.groups.get(group).is_some_and(|group| !group.has_rocketmq_members());
        if kept_only {
            self.with_known_group(group, now, out, |group, cx| {
                if matches!(group.live, Live::RocketMq(_)) {
                    group.live = Live::Idle;
                    let group = cx.group.clone();
                    cx.out.notices.push(Notice::ConsumerGroup { group, view: None });
                }
            });
        } else {
            self.drop_members(group, now, out, "silent", Membership::expire);
        }
    }

    /// Takes members out by `take_out` and forgets which connections they were on.
    fn drop_members(
        &mut self,
        group: &GroupId,
        now: Now,
        out: &mut Outcome<Self>,
        cause: &str,
        take_out: impl FnOnce(&mut Membership, &mut Context<'_>) -> Vec<LiveClient>,
    ) -> Response {
        let gone = self.with_known_group(group, now, out, |group, cx| {
            let Live::RocketMq(members) = &mut group.live else { return Vec::new() };
            let gone = take_out(members, cx);
            for client in &gone {
                if !members.is_broadcasting() {
                    let cause = format!("{cause}, its queues are free");
                    tell(EventKind::GroupRevoke, &client.client.id, &cause, cx);
                }
                tell(EventKind::GroupLeave, &client.client.id, cause, cx);
            }
            gone
        });
        for client in gone.into_iter().flatten() {
            self.unlink(client.client.channel, group);
        }
        Response::Done
    }

    /// The connection is in the group no more, unless another client on it is.
    fn unlink(&mut self, channel: ChannelId, group: &GroupId) {
        let on_channel = |members: &Membership| members.clients().any(|c| c.channel == channel);
        if let Some(Group { live: Live::RocketMq(members), .. }) = self.groups.get(group)
            && on_channel(members)
        {
            return;
        }
        if let Some(groups) = self.channels.get_mut(&channel) {
            groups.remove(group);
            if groups.is_empty() {
                self.channels.remove(&channel);
            }
        }
    }

    pub(super) fn consumer_group(&self, group: &GroupId) -> Response {
        let view = match self.groups.get(group) {
            Some(Group { live: Live::RocketMq(members), .. }) if members.has_members() => {
                Some(Arc::new(members.view()))
            }
            _ => None,
        };
        Response::ConsumerGroup(view)
    }

    pub(super) fn lock_queues(
        &mut self,
        request: LockQueues,
        now: Now,
        out: &mut Outcome<Self>,
    ) -> Response {
        let lease_ms = self.config.queue_lock_ms;
        Response::LockQueues(self.locks.lock(request, lease_ms, &self.events, now, out))
    }

    pub(super) fn commit_queue_offset(
        &mut self,
        commit: &CommitQueueOffset,
        now: Now,
        out: &mut Outcome<Self>,
    ) -> Result<Response, GroupError> {
        if commit.group.is_empty() {
            return Err(GroupError::InvalidGroupId);
        }
        self.with_group(&commit.group, now, out, |group, cx| {
            if group.has_kafka_members() {
                return Err(GroupError::HeldByKafka);
            }
            if let Live::RocketMq(members) = &group.live
                && members.has_members()
                && members.is_broadcasting()
            {
                return Err(GroupError::BroadcastGroup);
            }
            cx.out.records = offsets::commit(commit, &group.image, now.wall_ms);
            Ok(Response::Done)
        })
    }

    /// In one step, so that nobody else sets the position in between.
    pub(super) fn replace_queue_offset(
        &mut self,
        replace: &ReplaceQueueOffset,
        now: Now,
        out: &mut Outcome<Self>,
    ) -> Result<Response, GroupError> {
        let ReplaceQueueOffset { commit, own } = replace;
        let position = self.position(&commit.group, &commit.topic, commit.queue);
        if !own.has(position, commit.offset) {
            return Ok(Response::QueryQueueOffset(position));
        }
        self.commit_queue_offset(commit, now, out)?;
        Ok(Response::QueryQueueOffset(Some(commit.offset)))
    }

    pub(super) fn query_queue_offset(&self, query: &QueryQueueOffset) -> Response {
        Response::QueryQueueOffset(self.position(&query.group, &query.topic, query.queue))
    }

    /// Whoever pops takes part in the group as members do.
    pub(super) fn pop_queue_offset(
        &self,
        query: &QueryQueueOffset,
    ) -> Result<Response, GroupError> {
        if self.groups.get(&query.group).is_some_and(Group::has_kafka_members) {
            return Err(GroupError::HeldByKafka);
        }
        Ok(self.query_queue_offset(query))
    }

    fn position(&self, group: &str, topic: &Arc<str>, queue: i32) -> Option<i64> {
        let found = self.image(group).and_then(|image| image.offset(topic, queue));
        // Kafka keeps whatever number a client commits; no queue goes on from a negative one.
        found.map(|value| value.offset).filter(|offset| *offset >= 0)
    }
}

/// Records that the group is RocketMQ's from now on.
fn claim(group: &mut Group, cx: &mut Context<'_>) {
    group.end_consumers(cx);
    if group.image.classic.is_some() {
        cx.decide(Record::Group { group: cx.group.clone(), value: None });
    }
    cx.decide(offsets::family(cx.group, cx.now.wall_ms));
}

/// A new member gets its queues from the others. Which ones, each member computes for itself.
fn tell_division(members: &Membership, newcomer: &Arc<str>, cx: &Context<'_>) {
    if members.is_broadcasting() || !cx.events.is_listening() {
        return;
    }
    for client in members.clients().filter(|client| client.id != *newcomer) {
        let cause = format!("divides its queues with {newcomer}");
        tell(EventKind::GroupRevoke, &client.id, &cause, cx);
    }
}

fn tell(kind: EventKind, client: &Arc<str>, cause: &str, cx: &Context<'_>) {
    tracing::debug!(group = %cx.group, %client, cause, "consumer");
    cx.events.emit(|| {
        Observed::new(kind, cx.now.wall_ms)
            .protocol(Protocol::RocketMq)
            .client(client.clone())
            .cause(format!("group {}: {cause}", cx.group))
    });
}
