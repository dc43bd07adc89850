//! What all coordinators of a node have in common.

use std::sync::{Arc, OnceLock};

use duolog_coordinator::group::config::{ConsumerConfig, GroupConfig, RocketMqListing};
use duolog_coordinator::group::response::Notice;
use duolog_coordinator::time::Now;
use duolog_log_core::event::Events;
use tokio::runtime::Handle;

use super::rocketmq::NoticeSink;
use super::timer::Timer;
use crate::clock;
use crate::config::{Config, GroupListing};
use crate::controller::Controller;

/// Shared by all shards.
pub(super) struct Env {
    pub(super) config: GroupConfig,
    pub(super) events: Arc<Events>,
    pub(super) controller: Arc<Controller>,
    pub(super) timer: Timer,
    pub(super) notices: OnceLock<Arc<dyn NoticeSink>>,
    /// Where appends and loads run.
    pub(super) handle: Handle,
}

impl std::fmt::Debug for Env {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Env").finish_non_exhaustive()
    }
}

impl Env {
    pub(super) fn new(config: &Config, controller: Arc<Controller>, events: Arc<Events>) -> Self {
        Self {
            config: group_config(config),
            events,
            controller,
            timer: Timer::default(),
            notices: OnceLock::new(),
            handle: Handle::current(),
        }
    }

    /// Takes a shard's news; must not lead back into a coordinator.
    pub(super) fn tell(&self, notice: Notice) {
        if let Some(sink) = self.notices.get() {
            sink.accept(notice);
        }
    }
}

/// This process's clocks, read once per input.
pub(super) fn now() -> Now {
    Now { wall_ms: clock::now_ms(), tick_ms: clock::tick_ms() }
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
mod tests {
    use duolog_coordinator::group::config::{Assignor, MigrationPolicy};

    use super::*;

    /// Each key that the coordinators act on, by a value that is not its default.
    #[test]
    fn the_nodes_keys_reach_the_coordinators() {
        let config = crate::testing::served::config(&[
            "group.initial.rebalance.delay.ms=1",
            "group.min.session.timeout.ms=2",
            "group.max.session.timeout.ms=3",
            "group.max.size=4",
            "offset.metadata.max.bytes=5",
            "offsets.retention.minutes=6",
            "offsets.retention.check.interval.ms=7",
            "rocketmq.channelExpiredTimeout=8",
            "rmq.group.listing=typed",
            "group.consumer.session.timeout.ms=9",
            "group.consumer.min.session.timeout.ms=9",
            "group.consumer.max.session.timeout.ms=9",
            "group.consumer.heartbeat.interval.ms=10",
            "group.consumer.min.heartbeat.interval.ms=10",
            "group.consumer.max.heartbeat.interval.ms=10",
            "group.consumer.assignment.interval.ms=11",
            "group.consumer.min.assignment.interval.ms=11",
            "group.consumer.max.assignment.interval.ms=11",
            "group.consumer.max.size=12",
            "group.consumer.assignors=range",
            "group.consumer.migration.policy=upgrade",
        ]);
        let group = group_config(&config);
        assert_eq!(group.initial_rebalance_delay_ms, 1);
        assert_eq!((group.session_timeout_min_ms, group.session_timeout_max_ms), (2, 3));
        assert_eq!((group.group_size_max, group.offset_metadata_max), (4, 5));
        assert_eq!(group.offsets_retention_ms, 360_000);
        assert_eq!(group.offsets_retention_check_interval_ms, 7);
        assert_eq!(group.channel_expired_timeout_ms, 8);
        let consumer = &group.consumer;
        assert_eq!((consumer.session_timeout_ms, consumer.heartbeat_interval_ms), (9, 10));
        assert_eq!((consumer.assignment_interval_ms, consumer.group_size_max), (11, 12));
        assert_eq!(consumer.assignors, [Assignor::Range]);
        assert_eq!(consumer.migration, MigrationPolicy::Upgrade);
        assert_eq!(group.rocketmq_listing, RocketMqListing::Typed);
    }
}
