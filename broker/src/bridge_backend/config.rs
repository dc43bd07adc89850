//! The node's configuration as RocketMQ clients can feel it.

use std::net::SocketAddr;

use duolog_bridge::backend::{NodeConfig, PERM_READ, PERM_WRITE};

use crate::node::Node;

/// The configuration of `node`, whose broker is reached at `broker_address`.
pub(super) fn of(node: &Node, broker_address: SocketAddr) -> NodeConfig {
    let config = &node.config.rocketmq;
    let ratio = u64::from(config.access_message_in_memory_max_ratio.max(0).unsigned_abs());
    let size = |value: i32| usize::try_from(value).unwrap_or_default();
    NodeConfig {
        cluster_name: config.cluster_name.clone(),
        broker_name: config.broker_name.clone(),
        broker_address,
        region_id: "DefaultRegion".to_owned(),
        trace_on: true,
        trace_topic: config.trace_topic,
        store_replies: config.store_replies,
        server_side_reset: config.server_side_reset,
        broker_permission: PERM_READ | PERM_WRITE,
        auto_create_topic: config.auto_create_topic,
        auto_create_subscription_group: config.auto_create_subscription_group,
        default_topic_queues: config.default_topic_queue_nums,
        message_bytes_max: size(config.max_message_size),
        long_polling: config.long_polling,
        property_filter: config.property_filter,
        short_polling_ms: 1000,
        transfer_bytes_max: size(config.max_transfer_bytes),
        transfer_records_max: size(config.max_transfer_count),
        in_memory_bytes_max: crate::system::memory_bytes() / 100 * ratio,
        notify_consumer_ids_changed: config.notify_consumer_ids_changed,
    }
}
