//! What is flushed without anybody asking, and what a disk that refuses for a while ends: nothing.

use std::path::Path;

use duolog_log_core::storage::checkpoint::RECOVERY_POINT_FILE;

use super::*;
use crate::controller::topics::{Door as TopicDoor, IfExists, NewTopic};
use crate::testing::served::eventually;

#[tokio::test(flavor = "multi_thread")]
async fn a_roll_has_the_sealed_segment_flushed() {
    let node = TestNode::start(&[]).await;
    node.create_topic(TOPIC, &[("segment.bytes", "1048576")]).await;
    let mut client = node.connect().await;
    let large = "x".repeat(400_000);
    for _ in 0..3 {
        client.produce(TOPIC, 1, batch(&[&large])).await;
    }
    let topic = node.node.controller.image().topic(TOPIC).expect("the topic").id;
    let partition = node.node.partitions.find(topic, 0).expect("its partition");
    eventually("the sealed segment is on disk", || partition.synced() == 2).await;
    // Long before the next checkpoint is due, a start knows it.
    let file = Path::new("/data").join(RECOVERY_POINT_FILE);
    eventually("the recovery point is noted", || {
        let content = node.disk.content(&file).unwrap_or_default();
        String::from_utf8_lossy(&content).contains("t 0 2\n")
    })
    .await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lack_of_descriptors_ends_nothing_and_what_is_refused_stays_away() {
    let node = TestNode::start(&[]).await;
    node.create_topic(TOPIC, &[("flush.messages", "1")]).await;
    let mut client = node.connect().await;
    let mut created = Vec::new();
    for number in 0..24 {
        let (name, disk) = (format!("u{number}"), &node.disk);
        disk.fail_operation(disk.operations() + number % 12, Fault::OutOfFiles);
        let (overrides, door) = (crate::config::topic::Overrides::default(), TopicDoor::Kafka);
        let topic = NewTopic { name: name.as_str().into(), partitions: 1, overrides, door };
        let outcome = node.node.controller.create_topic(topic, IfExists::Refuse).await;
        created.push((name, outcome.is_ok()));
        client.produce(TOPIC, 1, batch(&["any"])).await;
    }
    // The last one may not have been met.
    node.disk.clear_faults();
    node.create_topic("last", &[]).await;
    let (code, end) = client.produce(TOPIC, 1, batch(&["last"])).await;
    assert_eq!(code, 0);
    let disk = node.stop().await;
    let node = TestNode::start_on(disk, &[]).await;
    for (name, answered) in created {
        assert_eq!(node.node.controller.image().topic(&name).is_some(), answered, "{name}");
    }
    let mut client = node.connect().await;
    assert_eq!(client.produce(TOPIC, 1, batch(&["next"])).await, (0, end + 1));
    node.stop().await;
}
