//! Settings that a running node is given, each by what changes with it.

use std::time::{Duration, Instant};

use duolog_coordinator::group::metadata::Metadata;
use duolog_log_core::ids::{ProducerEpoch, ProducerId};
use duolog_log_core::record::{BatchParams, ProducerSequence};

use crate::config::change::Change;
use crate::testing::served::{Attempts, Client, TestNode, batch, batch_of};

const MESSAGE_TOO_LARGE: i16 = 10;
const OUT_OF_ORDER_SEQUENCE_NUMBER: i16 = 45;

/// Sets a key of this node, or of all nodes under the empty name; `None` takes it back.
async fn alter(node: &TestNode, name: &str, key: &str, value: Option<&str>) {
    let change = value.map_or(Change::Delete, |value| Change::Set(value.to_owned()));
    let altered = node.node.controller.alter_broker_config(name, vec![(key.to_owned(), change)]);
    altered.await.unwrap_or_else(|error| panic!("{key}={value:?}: {error}"));
}

/// Whether the node answers on a new connection, or closes it.
async fn is_served(node: &TestNode) -> Option<Client> {
    let mut client = node.connect().await;
    client.send(0, &crate::kafka::codec::messages::ApiVersionsRequest::default()).await;
    client.receive_frame().await.map(|_| client)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nodes_own_value_wins_over_that_of_all_nodes_and_both_over_the_static_one() {
    const KEY: &str = "message.max.bytes";
    let node = TestNode::start(&["message.max.bytes=100"]).await;
    node.create_topic("t", &[]).await;
    let mut client = node.connect().await;
    let large = || batch(&[&"v".repeat(200)]);
    assert_eq!(client.produce("t", 1, large()).await.0, MESSAGE_TOO_LARGE);
    alter(&node, "", KEY, Some("1000")).await;
    assert_eq!(client.produce("t", 1, large()).await, (0, 0));
    alter(&node, "1", KEY, Some("150")).await;
    assert_eq!(client.produce("t", 1, large()).await.0, MESSAGE_TOO_LARGE);
    // Both are in the metadata log.
    let node = TestNode::start_on(node.stop().await, &["message.max.bytes=100"]).await;
    let mut client = node.connect().await;
    assert_eq!(client.produce("t", 1, large()).await.0, MESSAGE_TOO_LARGE);
    alter(&node, "1", KEY, None).await;
    assert_eq!(client.produce("t", 1, large()).await, (0, 1));
    alter(&node, "", KEY, None).await;
    assert_eq!(client.produce("t", 1, large()).await.0, MESSAGE_TOO_LARGE);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn producers_are_forgotten_after_another_time() {
    let node = TestNode::start(&["producer.id.expiration.check.interval.ms=10"]).await;
    node.create_topic("t", &[]).await;
    let mut client = node.connect().await;
    let from = |base_sequence| {
        let (id, epoch) = (ProducerId(7), ProducerEpoch(0));
        let producer = Some(ProducerSequence { id, epoch, base_sequence });
        batch_of(BatchParams { producer, ..BatchParams::default() }, &["v"])
    };
    assert_eq!(client.produce("t", 1, from(0)).await, (0, 0));
    assert_eq!(client.produce("t", 1, from(5)).await.0, OUT_OF_ORDER_SEQUENCE_NUMBER);
    alter(&node, "1", "producer.id.expiration.ms", Some("1")).await;
    let attempts = Attempts::at("it is forgotten");
    while client.produce("t", 1, from(5)).await.0 != 0 {
        attempts.again().await;
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_are_assigned_after_another_interval() {
    const KEY: &str = "group.consumer.assignment.interval.ms";
    let node = TestNode::start(&[]).await;
    let image = || node.node.controller.image().clone();
    let before = image();
    assert_eq!(before.group_settings("g").assignment_interval_ms, None);
    alter(&node, "", KEY, Some("77")).await;
    let after = image();
    assert_eq!(after.group_settings("g").assignment_interval_ms, Some(77));
    assert!(!after.is_same_to_groups(&before), "groups are told");
    let own = vec![("consumer.assignment.interval.ms".to_owned(), Change::Set("9".to_owned()))];
    node.node.controller.alter_group_config("g", own).await.expect("altered");
    assert_eq!(image().group_settings("g").assignment_interval_ms, Some(9));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_gets_a_bound_of_its_own() {
    const KEY: &str = "max.connections.per.ip.overrides";
    let node = TestNode::start(&["max.connections.per.ip=1"]).await;
    let first = is_served(&node).await.expect("served");
    assert!(is_served(&node).await.is_none());
    alter(&node, "1", KEY, Some("10.0.0.1:7,127.0.0.1:2")).await;
    let second = is_served(&node).await.expect("served");
    assert!(is_served(&node).await.is_none());
    drop((first, second));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_come_no_faster_than_they_may() {
    let node = TestNode::start(&[]).await;
    alter(&node, "", "max.connection.creation.rate", Some("4")).await;
    let start = Instant::now();
    // Ten seconds' worth of them at once, three more in time.
    for _ in 0..43 {
        assert!(is_served(&node).await.is_some());
    }
    assert!(start.elapsed() >= Duration::from_millis(750), "{:?}", start.elapsed());
    node.stop().await;
}
