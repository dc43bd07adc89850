//! The live members of a RocketMQ consumer group; the twin of `kafka/classic.rs`.
//!
//! ```text
//! absent -- heartbeat --------------------------------------------> live
//! live ---- heartbeat, leave, closed channel, silence
//!           (channelExpiredTimeout) with members left ------------> live, members told
//! live ---- the last member goes ---------------------------------> kept
//! kept ---- heartbeat --------------------------------------------> live
//! kept ---- subscriptionExpiredTimeout is over, or a Kafka
//!           member joins -----------------------------------------> absent
//! ```
//!
//! There is no leader and no generation: each member computes its queues from the sorted list of
//! members, so all that the coordinator owes them is one list and a word when it changes.
//!
//! Where RocketMQ keys members by connection, this keys them by client id: a client that comes back
//! on a new connection before the old one is closed would else be in the list twice, and nobody
//! would consume the queues of the second. RocketMQ also forgets to tell the others when it drops a
//! silent member; this tells them.
//!
//! Source: RocketMQ's `ConsumerManager`, `ConsumerGroupInfo`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::group::context::Context;
use crate::group::event::{
    ChannelId, Client, ConsumeFromWhere, ConsumeType, ConsumerHeartbeat, MemberNotices,
    MessageModel, Subscription, Timer,
};
use crate::group::response::{ConsumerGroupView, GroupChange, LiveClient, Notice};
use crate::limits::ROCKETMQ_MEMBERS_MAX;

/// A client with its deadline.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) live: LiveClient,
    /// On the steady clock.
    pub(super) deadline: i64,
}

/// Live state of a consumer group.
#[derive(Debug)]
pub(in crate::group) struct Membership {
    consume_type: ConsumeType,
    message_model: MessageModel,
    consume_from_where: ConsumeFromWhere,
    notices: MemberNotices,
    /// By client id.
    members: BTreeMap<Arc<str>, Lease>,
    /// By RocketMQ's name of the topic.
    subscriptions: BTreeMap<Arc<str>, Arc<Subscription>>,
}

impl Membership {
    /// A group that `heartbeat` is about to found.
    pub(in crate::group) fn new(heartbeat: &ConsumerHeartbeat) -> Self {
        Self {
            consume_type: heartbeat.consume_type,
            message_model: heartbeat.message_model,
            consume_from_where: heartbeat.consume_from_where,
            notices: heartbeat.notices,
            members: BTreeMap::new(),
            subscriptions: BTreeMap::new(),
        }
    }

    pub(in crate::group) fn has_members(&self) -> bool {
        !self.members.is_empty()
    }

    /// Whether no further client may come.
    pub(in crate::group) fn is_full(&self) -> bool {
        self.members.len() >= ROCKETMQ_MEMBERS_MAX
    }

    pub(in crate::group) fn has_member(&self, client: &str) -> bool {
        self.members.contains_key(client)
    }

    pub(in crate::group) fn is_broadcasting(&self) -> bool {
        self.message_model == MessageModel::Broadcasting
    }

    /// Registers or renews a member; the latest heartbeat speaks for the group.
    pub(in crate::group) fn heartbeat(
        &mut self,
        heartbeat: ConsumerHeartbeat,
        cx: &mut Context<'_>,
    ) -> GroupChange {
        let facts = (heartbeat.consume_type, heartbeat.message_model, heartbeat.consume_from_where);
        let facts_changed =
            facts != (self.consume_type, self.message_model, self.consume_from_where);
        (self.consume_type, self.message_model, self.consume_from_where) = facts;
        self.notices = heartbeat.notices;
        let was_live = self.has_members();
        let deadline = cx.now.after(cx.config.channel_expired_timeout_ms);
        let live = LiveClient { client: heartbeat.client, last_heartbeat_ms: cx.now.wall_ms };
        let lease = Lease { live, deadline };
        let channel = lease.live.client.channel;
        let previous = self.members.insert(lease.live.client.id.clone(), lease);
        let members = previous.is_none_or(|previous| previous.live.client.channel != channel);
        let (topics, expressions) = match heartbeat.subscriptions {
            Some(subscriptions) => self.subscribe(subscriptions),
            None => (false, false),
        };
        if !was_live {
            // Renewals only put deadlines off, so the timer is not moved then.
            cx.set_timer_at(Timer::Consumers(cx.group.clone()), deadline);
        }
        if members || topics || expressions || facts_changed {
            self.publish(cx);
        }
        if members || topics {
            self.tell_members(cx);
        }
        GroupChange { members, subscriptions: topics || expressions }
    }

    /// Replaces the group's topics by one member's; of two expressions for a topic the newer one
    /// stands. Returns whether a topic came or went, and whether an expression was replaced.
    fn subscribe(&mut self, subscriptions: Vec<Arc<Subscription>>) -> (bool, bool) {
        let topics: BTreeSet<Arc<str>> = subscriptions.iter().map(|s| s.topic.clone()).collect();
        let before = self.subscriptions.len();
        self.subscriptions.retain(|topic, _| topics.contains(topic));
        let mut topics_changed = self.subscriptions.len() != before;
        let mut replaced = false;
        for subscription in subscriptions {
            match self.subscriptions.get_mut(&subscription.topic) {
                Some(known) if subscription.version > known.version => {
                    *known = subscription;
                    replaced = true;
                }
                Some(_) => {}
                None => {
                    self.subscriptions.insert(subscription.topic.clone(), subscription);
                    topics_changed = true;
                }
            }
        }
        (topics_changed, replaced)
    }

    /// A client says good-bye; it need not be a member.
    pub(in crate::group) fn leave(
        &mut self,
        client: &Arc<str>,
        notices: MemberNotices,
        cx: &mut Context<'_>,
    ) -> Option<LiveClient> {
        self.notices = notices;
        let gone = self.members.remove(client)?;
        self.members_gone(cx);
        Some(gone.live)
    }

    /// A connection closed; clients that have moved to another one stay.
    pub(in crate::group) fn channel_left(
        &mut self,
        channel: ChannelId,
        cx: &mut Context<'_>,
    ) -> Vec<LiveClient> {
        self.take_out(|lease| lease.live.client.channel == channel, cx)
    }

    /// [`Timer::Consumers`] fired, with members: drops the silent ones and asks for their
    /// connections to be closed.
    pub(in crate::group) fn expire(&mut self, cx: &mut Context<'_>) -> Vec<LiveClient> {
        let tick_ms = cx.now.tick_ms;
        let gone = self.take_out(|lease| lease.deadline <= tick_ms, cx);
        for silent in &gone {
            cx.out.notices.push(Notice::ChannelExpired(silent.client.channel));
        }
        if let Some(next) = self.members.values().map(|lease| lease.deadline).min() {
            cx.set_timer_at(Timer::Consumers(cx.group.clone()), next);
        }
        gone
    }

    fn take_out(
        &mut self,
        is_gone: impl Fn(&Lease) -> bool,
        cx: &mut Context<'_>,
    ) -> Vec<LiveClient> {
        let gone: Vec<LiveClient> = self
            .members
            .extract_if(.., |_, lease| is_gone(lease))
            .map(|(_, lease)| lease.live)
            .collect();
        if !gone.is_empty() {
            self.members_gone(cx);
        }
        gone
    }

    fn members_gone(&mut self, cx: &mut Context<'_>) {
        self.publish(cx);
        if self.has_members() {
            self.tell_members(cx);
        } else {
            let deadline = cx.now.after(cx.config.subscription_expired_timeout_ms);
            cx.set_timer_at(Timer::Consumers(cx.group.clone()), deadline);
        }
    }

    fn publish(&self, cx: &mut Context<'_>) {
        let view = Some(Arc::new(self.view()));
        cx.out.notices.push(Notice::ConsumerGroup { group: cx.group.clone(), view });
    }

    /// A broadcast group has nothing to rebalance.
    fn tell_members(&self, cx: &mut Context<'_>) {
        if self.notices == MemberNotices::Off || self.is_broadcasting() {
            return;
        }
        let channels: BTreeSet<ChannelId> =
            self.members.values().map(|lease| lease.live.client.channel).collect();
        let channels = channels.into_iter().collect();
        cx.out.notices.push(Notice::MembersChanged { group: cx.group.clone(), channels });
    }

    /// The group as it is now.
    pub(in crate::group) fn view(&self) -> ConsumerGroupView {
        ConsumerGroupView {
            consume_type: self.consume_type,
            message_model: self.message_model,
            consume_from_where: self.consume_from_where,
            members: self.members.values().map(|lease| lease.live.clone()).collect(),
            subscriptions: self.subscriptions.clone(),
        }
    }

    pub(in crate::group) fn clients(&self) -> impl Iterator<Item = &Client> {
        self.members.values().map(|lease| &lease.live.client)
    }
}

#[cfg(test)]
mod tests;
