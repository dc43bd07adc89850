//! Topics as RocketMQ clients create and change them.

use std::sync::Arc;

use duolog_bridge::backend::{Result, Topic, TopicSpec};

use super::error::of_controller;
use crate::config::change::{Change, KeyChange};
use crate::config::topic::{Overrides, attribute_overrides};
use crate::controller::topics::{Door, IfExists, NewTopic};
use crate::node::Node;

/// Creates a topic, or returns the one that is there, unchanged.
pub(super) async fn create(node: &Node, spec: &TopicSpec) -> Result<Arc<Topic>> {
    let topic = NewTopic {
        name: spec.name.clone(),
        partitions: spec.partitions(),
        overrides: overrides(spec, spec.partitions()),
        door: Door::RocketMq,
    };
    let created = node.controller.create_topic(topic, IfExists::Return).await;
    let created = created.map_err(|error| of_controller(&spec.name, &error))?;
    Ok(created.queues.clone())
}

/// Creates a topic, or changes it to `spec`. Partitions only grow; the queues that clients see may
/// be fewer than there are partitions, which is how a topic shrinks.
pub(super) async fn put(node: &Node, spec: &TopicSpec) -> Result<Arc<Topic>> {
    let refused = |error| of_controller(&spec.name, &error);
    let found = node.controller.image().topic(&spec.name).cloned();
    let Some(topic) = found else { return create(node, spec).await };
    let partitions = spec.partitions().max(topic.partition_count());
    let changes = changes(&topic.overrides, overrides(spec, partitions));
    // More partitions first: a queue that is shown must be there.
    if spec.partitions() > topic.partition_count() {
        node.controller.create_partitions(topic.id, spec.partitions()).await.map_err(refused)?;
    }
    node.controller.alter_topic_config(topic.id, changes).await.map_err(refused)?;
    let topic = node.controller.image().topic(&spec.name).map(|topic| topic.queues.clone());
    topic.ok_or_else(|| refused(crate::controller::ControllerError::UnknownTopic))
}

/// What a specification means as settings of a topic of that many partitions. A count of queues
/// that equals them needs no setting and follows them when they grow.
fn overrides(spec: &TopicSpec, partitions: i32) -> Overrides {
    let mut overrides = attribute_overrides(&spec.attributes);
    let mut set = |key: &str, value: i32, default: i32| {
        if value != default {
            overrides.insert(key.to_owned(), value.to_string());
        }
    };
    set("rmq.read.queues", spec.read_queues, partitions);
    set("rmq.write.queues", spec.write_queues, partitions);
    set("rmq.perm", spec.perm, 6);
    set("rmq.sys.flag", spec.sys_flag, 0);
    if spec.order {
        overrides.insert("rmq.order".to_owned(), "true".to_owned());
    }
    overrides
}

/// What leads from the RocketMQ settings held to those wanted; Kafka's own stay.
fn changes(held: &Overrides, wanted: Overrides) -> Vec<KeyChange> {
    let ours = |key: &str| key.starts_with("rmq.") || key == "message.type";
    let gone = held.keys().filter(|key| ours(key) && !wanted.contains_key(*key));
    let mut changes: Vec<KeyChange> = gone.map(|key| (key.clone(), Change::Delete)).collect();
    changes.extend(wanted.into_iter().map(|(key, value)| (key, Change::Set(value))));
    changes
}

#[cfg(test)]
mod tests;
