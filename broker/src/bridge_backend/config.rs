//! The node's configuration as RocketMQ clients can feel it, and change it while the node runs.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use duolog_bridge::backend::{BackendError, NodeConfig, Result};
use parking_lot::RwLock;

use super::error;
use crate::config::change::{Change, KeyChange};
use crate::config::values::Values;
use crate::config::{self, RocketmqConfig, key, topic};
use crate::controller::ControllerError;
use crate::node::Node;

/// RocketMQ's settings among the node's begin so.
const PREFIX: &str = "rocketmq.";

/// RocketMQ's age of files, in hours, is Kafka's `log.retention.ms` here.
const FILE_RESERVED_TIME: &str = "fileReservedTime";
const RETENTION: &str = "log.retention.ms";
const HOUR_MS: i64 = 3_600_000;

/// The configuration in force, made anew when a setting has changed.
pub(super) struct Configured {
    broker_address: SocketAddr,
    known: RwLock<(Arc<Values>, Arc<NodeConfig>)>,
}

impl Configured {
    pub(super) fn new(node: &Node, broker_address: SocketAddr) -> Self {
        let values = Arc::clone(node.controller.image().values());
        let config = Arc::new(of(&node.config.rocketmq, broker_address));
        let configured = Self { broker_address, known: RwLock::new((values, config)) };
        configured.renew(node);
        configured
    }

    pub(super) fn get(&self, node: &Node) -> Arc<NodeConfig> {
        let image = node.controller.image();
        {
            let known = self.known.read();
            if Arc::ptr_eq(&known.0, image.values()) {
                return Arc::clone(&known.1);
            }
        }
        self.renew(node)
    }

    fn renew(&self, node: &Node) -> Arc<NodeConfig> {
        let image = node.controller.image();
        let mut known = self.known.write();
        // What was checked when it was set is read.
        if let Ok(rocketmq) = config::rocketmq(image.values()) {
            *known = (Arc::clone(image.values()), Arc::new(of(&rocketmq, self.broker_address)));
        }
        Arc::clone(&known.1)
    }
}

/// Every setting by RocketMQ's own name.
pub(super) fn all(node: &Node) -> BTreeMap<String, String> {
    let image = node.controller.image();
    let values = image.values();
    let named = key::broker_keys().iter().filter_map(|key| {
        let name = key.name.strip_prefix(PREFIX)?;
        Some((name.to_owned(), values.text(key.name).unwrap_or_default().to_owned()))
    });
    let mut all: BTreeMap<String, String> = named.collect();
    let retention =
        key::topic_key("retention.ms").and_then(|key| topic::default_value(values, key));
    let retention = retention.and_then(|text| text.parse::<i64>().ok());
    if let Some(ms) = retention.filter(|ms| *ms >= 0) {
        all.insert(FILE_RESERVED_TIME.to_owned(), (ms / HOUR_MS).to_string());
    }
    all
}

/// Changes settings, all or none; they outlive a restart.
pub(super) async fn put(node: &Node, settings: BTreeMap<String, String>) -> Result<()> {
    let changes = settings.into_iter().map(|(name, value)| change(&name, value));
    let changes: Vec<KeyChange> = changes.collect::<Result<_>>()?;
    let put = node.controller.alter_broker_config("", changes).await;
    put.map_err(|refused| match refused {
        ControllerError::InvalidConfig(reason) | ControllerError::NotAllowed(reason) => {
            BackendError::InvalidSetting { reason }
        }
        refused => error::of_controller("", &refused),
    })
}

fn change(name: &str, value: String) -> Result<KeyChange> {
    if name != FILE_RESERVED_TIME {
        return Ok((format!("{PREFIX}{name}"), Change::Set(value)));
    }
    let hours =
        value.trim().parse::<i64>().ok().filter(|hours| (0..=i64::MAX / HOUR_MS).contains(hours));
    let Some(hours) = hours else {
        let reason = format!("{FILE_RESERVED_TIME} must be a number of hours, not {value}");
        return Err(BackendError::InvalidSetting { reason });
    };
    Ok((RETENTION.to_owned(), Change::Set((hours * HOUR_MS).to_string())))
}

/// The configuration of a node whose broker is reached at `broker_address`.
fn of(config: &RocketmqConfig, broker_address: SocketAddr) -> NodeConfig {
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
        broker_permission: config.broker_permission,
        order_messages: config.order_messages,
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
        delays: config.delays.clone(),
        recall: config.recall,
    }
}
