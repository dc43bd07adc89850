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
