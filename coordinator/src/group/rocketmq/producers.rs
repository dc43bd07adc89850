//! The live members of RocketMQ's producer groups: who may be asked how a half message ended.
//!
//! Source: RocketMQ's `ProducerManager`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::membership::Lease;
use crate::group::event::{ChannelId, Client, GroupId, Timer};
use crate::group::response::{LiveClient, Notice};
use crate::limits::PRODUCERS_MAX;
use crate::shard::{Outcome, TimerChange};
use crate::time::Now;

use crate::group::shard::GroupShard;

/// All producer groups of a shard. Nothing of them is stored.
#[derive(Debug, Default)]
pub(in crate::group) struct Producers {
    /// By group and client id; no group is empty.
    groups: BTreeMap<GroupId, BTreeMap<Arc<str>, Lease>>,
    /// Members of all groups.
    count: usize,
}

impl Producers {
    /// Registers or renews a member.
    pub(in crate::group) fn heartbeat(
        &mut self,
        group: GroupId,
        client: Client,
        timeout_ms: i64,
        now: Now,
        out: &mut Outcome<GroupShard>,
    ) {
        let deadline = now.after(timeout_ms);
        if self.groups.is_empty() {
            // Renewals only put deadlines off, so the timer is not moved then.
            out.timers.push(TimerChange::Set(Timer::Producers, deadline));
        }
        let is_known = self.groups.get(&group).is_some_and(|all| all.contains_key(&client.id));
        if !is_known && self.count >= PRODUCERS_MAX {
            return tracing::debug!(%group, client = %client.id, "too many producers: not known");
        }
        let id = client.id.clone();
        let live = LiveClient { client, last_heartbeat_ms: now.wall_ms };
        let before = self.groups.entry(group).or_default().insert(id, Lease { live, deadline });
        self.count += usize::from(before.is_none());
    }

    /// A client says good-bye; it need not be a member.
    pub(in crate::group) fn leave(&mut self, group: &GroupId, client: &Arc<str>) {
        if let Some(members) = self.groups.get_mut(group) {
            self.count -= usize::from(members.remove(client).is_some());
            if members.is_empty() {
                self.groups.remove(group);
            }
        }
    }

    /// A connection closed; clients that have moved to another one stay.
    pub(in crate::group) fn channel_closed(&mut self, channel: ChannelId) {
        self.drop_if(|lease| lease.live.client.channel == channel);
    }

    /// [`Timer::Producers`] fired: drops the silent and asks for their connections to be closed.
    pub(in crate::group) fn expire(&mut self, now: Now, out: &mut Outcome<GroupShard>) {
        let silent = self.drop_if(|lease| lease.deadline <= now.tick_ms);
        out.notices.extend(silent.into_iter().map(Notice::ChannelExpired));
        let deadlines = self.groups.values().flat_map(BTreeMap::values).map(|lease| lease.deadline);
        if let Some(next) = deadlines.min() {
            out.timers.push(TimerChange::Set(Timer::Producers, next));
        }
    }

    /// Sorted by client id.
    pub(in crate::group) fn members(&self, group: &GroupId) -> Vec<LiveClient> {
        let members = self.groups.get(group).into_iter().flat_map(BTreeMap::values);
        members.map(|lease| lease.live.clone()).collect()
    }

    fn drop_if(&mut self, is_gone: impl Fn(&Lease) -> bool) -> Vec<ChannelId> {
        let mut gone = Vec::new();
        self.groups.retain(|_, members| {
            let dropped = members.extract_if(.., |_, lease| is_gone(lease));
            gone.extend(dropped.map(|(_, lease)| lease.live.client.channel));
            !members.is_empty()
        });
        self.count -= gone.len();
        gone
    }
}

#[cfg(test)]
mod tests;
