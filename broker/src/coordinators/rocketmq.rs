//! How RocketMQ's requests reach a group's coordinator.
//!
//! Its clients know no coordinator that is not ready, so a request waits some seconds for the
//! group's log to be read. The first heartbeat or commit of all creates `__consumer_offsets`.

use std::collections::BTreeMap;
use std::sync::Arc;

use duolog_coordinator::error::GroupError;
use duolog_coordinator::group::event::{ChannelId, Event, ReplaceQueueOffset};
use duolog_coordinator::group::image::GroupImage;
use duolog_coordinator::group::response::{Notice, Response};
use duolog_coordinator::group::shard::GroupShard;
use duolog_log_core::gate::{GatePoint, GateSubject};
use duolog_log_core::ids::Offset;

use super::{Coordinators, answered};

/// Takes the news that coordinators tell without being asked.
pub trait NoticeSink: Send + Sync {
    /// Called in the order of each group's changes, from within its coordinator: must neither block
    /// nor ask a coordinator.
    fn accept(&self, notice: Notice);
}

impl Coordinators {
    /// Says who hears of changes; once, before the first RocketMQ request.
    pub fn set_notices(&self, sink: Arc<dyn NoticeSink>) {
        // A second sink would be a second bridge; there is one.
        let _ = self.groups.kind.notices.set(sink);
    }

    /// Whether the coordinators have their topic; else no group has a position or a member.
    pub fn exist(&self) -> bool {
        self.groups.shards().is_some()
    }

    /// Has the group's coordinator decide `event`, and waits for the answer, which is the one of
    /// the same name. Gates `group.heartbeat` and `offset.commit.before`.
    ///
    /// Errors: the coordinator's refusals; `CoordinatorNotAvailable` or `CoordinatorLoadInProgress`
    /// if it is not ready within some seconds.
    pub async fn request(&self, group: &str, event: Event) -> Result<Response, GroupError> {
        if let Some((point, subject)) = gate_of(&event) {
            self.pass(point, subject).await?;
        }
        answered(self.ready_shard(group).await?.submit(event)).await
    }

    /// Hands the group's coordinator a client's request that nobody waits for. It has it before this
    /// returns, in order with this thread's other calls for the group. Only before it has read its
    /// log, or with a gate armed, is the event still on its way; too many on their way are dropped,
    /// as are those that come while too many requests wait.
    pub fn notify(self: &Arc<Self>, group: &str, event: Event) {
        if self.instruments.gates.is_idle()
            && let Ok(shard) = self.shard(group)
            && shard.is_serving()
        {
            return shard.offer(event);
        }
        let Ok(room) = self.on_their_way.clone().try_acquire_owned() else {
            return tracing::debug!(group, ?event, "dropped: too much waits for the coordinators");
        };
        let (coordinators, group) = (self.clone(), group.to_owned());
        self.groups.handle().spawn(async move {
            if let Err(error) = coordinators.request(&group, event).await {
                tracing::debug!(group, %error, "unanswered request refused");
            }
            drop(room);
        });
    }

    /// A RocketMQ connection has closed: its members leave. Does not wait.
    pub fn channel_closed(&self, channel: ChannelId) {
        let shards = self.groups.present();
        for shard in shards.iter().flat_map(|shards| &shards.all) {
            shard.notify(Event::ChannelClosed(channel));
        }
    }

    /// Whether a client of the group holds the lock of any queue.
    pub fn has_locked_queues(&self, group: &str) -> bool {
        let shard = self.groups.shard(group).ok();
        let now = super::env::now();
        shard.and_then(|shard| shard.read(|groups| groups.has_locked_queues(group, now)))
            == Some(true)
    }

    /// How many groups there are of each type and state, as far as the logs were read.
    pub fn census(&self) -> BTreeMap<(&'static str, &'static str), usize> {
        let mut counts = BTreeMap::new();
        let shards = self.groups.present();
        for shard in shards.iter().flat_map(|shards| &shards.all) {
            for (kind, count) in shard.read(GroupShard::census).into_iter().flatten() {
                *counts.entry(kind).or_default() += count;
            }
        }
        counts
    }

    /// Shows every group of both protocols as the logs have it, as far as they were read; one
    /// coordinator after the other, so not as of one moment.
    pub fn for_each_group(&self, mut show: impl FnMut(&str, &GroupImage)) {
        let shards = self.groups.present();
        for shard in shards.iter().flat_map(|shards| &shards.all) {
            shard.read(|groups| groups.images().for_each(|(group, image)| show(group, image)));
        }
    }
}

/// The gate that stands in the way of an event.
fn gate_of(event: &Event) -> Option<(GatePoint, GateSubject<'_>)> {
    match event {
        Event::ConsumerHeartbeat(heartbeat) => {
            let client = Some(&*heartbeat.client.id);
            Some((GatePoint::GroupHeartbeat, GateSubject { client, ..GateSubject::default() }))
        }
        Event::CommitQueueOffset(commit)
        | Event::ReplaceQueueOffset(ReplaceQueueOffset { commit, .. }) => {
            let subject = GateSubject {
                topic: Some(&commit.topic),
                partition: Some(commit.queue),
                offset: Some(Offset(commit.offset)),
                client: None,
            };
            Some((GatePoint::OffsetCommitBefore, subject))
        }
        _ => None,
    }
}
