//! Group coordinators, as one kind of coordinator.

use std::collections::BTreeSet;
use std::mem;
use std::sync::{Arc, OnceLock};

use duolog_coordinator::error::GroupError;
use duolog_coordinator::group::config::{ConsumerConfig, GroupConfig, RocketMqListing};
use duolog_coordinator::group::event::{DeletedTopic, Event, GroupId};
use duolog_coordinator::group::response::Notice;
use duolog_coordinator::group::shard::GroupShard;
use duolog_coordinator::runtime::Runtime;
use duolog_coordinator::time::Now;
use duolog_log_core::event::Events;
use duolog_log_core::ids::TopicId;

use super::env::Env;
use super::kind::Kind;
use super::rocketmq::NoticeSink;
use super::shard::Shard;
use crate::config::{Config, GroupListing};
use crate::controller::image::Image;
use crate::controller::{Controller, names};

/// Group coordinators.
pub(super) struct Groups {
    env: Env,
    config: GroupConfig,
    pub(super) notices: OnceLock<Arc<dyn NoticeSink>>,
}

impl std::fmt::Debug for Groups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Groups").finish_non_exhaustive()
    }
}

/// What is kept of one group coordinator beside its groups.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Topics deleted while the log is not read yet: their names may be others' by then.
    deleted: Vec<DeletedTopic>,
    /// RocketMQ groups that somebody was told of and may believe to live.
    shown: BTreeSet<GroupId>,
    /// The metadata that the machine was told last.
    known: Option<Arc<Image>>,
}

impl Groups {
    pub(super) fn new(config: &Config, controller: Arc<Controller>, events: Arc<Events>) -> Self {
        Self {
            env: Env::new(controller, events),
            config: group_config(config),
            notices: OnceLock::new(),
        }
    }

    fn deliver(&self, notice: Notice) {
        if let Some(sink) = self.notices.get() {
            sink.accept(notice);
        }
    }

    /// Topics with positions that are there no more.
    fn deleted_topics(&self, shard: &GroupShard) -> BTreeSet<Arc<str>> {
        let image = self.env.controller.image();
        let topics = shard.images().flat_map(|(_, group)| group.offsets.keys());
        topics.filter(|name| image.topic(name).is_none()).cloned().collect()
    }
}

impl Kind for Groups {
    type Machine = GroupShard;
    type Memory = Memory;
    const TOPIC: &'static str = names::OFFSETS_TOPIC;
    const CONTENT: &'static str = "groups";

    fn env(&self) -> &Env {
        &self.env
    }

    fn machine(&self) -> GroupShard {
        let shard = GroupShard::new(self.config.clone(), self.env.events.clone());
        let image = self.env.controller.image().clone();
        shard.knowing(image)
    }

    fn loading() -> GroupError {
        GroupError::CoordinatorLoadInProgress
    }

    fn tell(&self, _: i32, notice: Notice, memory: &mut Memory) {
        match &notice {
            Notice::ConsumerGroup { group, view: Some(_) } => {
                memory.shown.insert(group.clone());
            }
            Notice::ConsumerGroup { group, view: None } => {
                memory.shown.remove(group);
            }
            Notice::MembersChanged { .. } | Notice::ChannelExpired(_) => {}
        }
        self.deliver(notice);
    }

    fn loaded(&self, runtime: &mut Runtime<GroupShard>, memory: &mut Memory, now: Now) {
        // A stop may have come between a topic's deletion and that of the positions on it.
        for name in self.deleted_topics(runtime.shard()) {
            let topic = DeletedTopic { name, id: TopicId::ZERO };
            runtime.notify(Event::TopicDeleted(topic), now);
        }
        for topic in mem::take(&mut memory.deleted) {
            runtime.notify(Event::TopicDeleted(topic), now);
        }
    }

    /// Of topics that came, went or grew.
    fn before_input(&self, runtime: &mut Runtime<GroupShard>, memory: &mut Memory, now: Now) {
        let image = self.env.controller.image();
        if memory.known.as_ref().is_some_and(|known| Arc::ptr_eq(known, &image)) {
            return;
        }
        let image = Arc::clone(&image);
        if memory.known.as_ref().is_none_or(|known| !known.is_same_to_groups(&image)) {
            runtime.notify(Event::Metadata(image.clone()), now);
        }
        memory.known = Some(image);
    }

    fn ended(&self, memory: &mut Memory) {
        for group in mem::take(&mut memory.shown) {
            self.deliver(Notice::ConsumerGroup { group, view: None });
        }
    }
}

impl Shard<Groups> {
    /// Has the positions on a deleted topic forgotten, if need be once they are read.
    pub(super) fn topic_deleted(self: &Arc<Self>, topic: &DeletedTopic) {
        self.notify_or_keep(Event::TopicDeleted(topic.clone()), |memory| {
            memory.deleted.push(topic.clone());
        });
    }
}

/// The node's settings in the coordinators' terms.
fn group_config(config: &Config) -> GroupConfig {
    let group = &config.group;
    let ms = |value: i64| i32::try_from(value).unwrap_or(i32::MAX);
    GroupConfig {
        initial_rebalance_delay_ms: ms(group.initial_rebalance_delay_ms),
        session_timeout_min_ms: ms(group.min_session_timeout_ms),
        session_timeout_max_ms: ms(group.max_session_timeout_ms),
        group_size_max: usize::try_from(group.max_size).unwrap_or_default(),
        offset_metadata_max: usize::try_from(group.offset_metadata_max_bytes).unwrap_or_default(),
        offsets_retention_ms: group.offsets_retention_ms,
        offsets_retention_check_interval_ms: group.offsets_retention_check_interval_ms,
        channel_expired_timeout_ms: config.rocketmq.channel_expired_timeout_ms,
        consumer: ConsumerConfig {
            session_timeout_ms: group.consumer.session_timeout_ms,
            heartbeat_interval_ms: group.consumer.heartbeat_interval_ms,
            assignment_interval_ms: group.consumer.assignment_interval_ms,
            group_size_max: usize::try_from(group.consumer.max_size).unwrap_or_default(),
            assignors: group.consumer.assignors.clone(),
            migration: group.consumer.migration,
        },
        rocketmq_listing: match config.group_listing {
            GroupListing::Plain => RocketMqListing::Untyped,
            GroupListing::Typed => RocketMqListing::Typed,
        },
        ..GroupConfig::default()
    }
}

#[cfg(test)]
mod tests;
