//! Changes of the metadata, live, after a restart, and after a crash at any point.

use std::collections::BTreeMap;
use std::sync::Arc;

use duolog_log_core::event::Events;
use duolog_log_core::ids::NodeId;
use duolog_log_core::storage::disk::Disk;
use duolog_log_core::testing::mem_disk::{Crash, Fault, MemDisk};

use super::topics::{Door, IfExists, Imported, NewTopic};
use super::*;
use crate::config::change::Change as ConfigChange;
use crate::config::topic::Overrides;
use crate::limits::KV_BYTES_MAX;
use crate::node::Node;
use crate::testing::served::{TestNode, config};

mod interrupted;

fn new_topic(name: &str, partitions: i32) -> NewTopic {
    NewTopic { name: name.into(), partitions, overrides: Overrides::new(), door: Door::Kafka }
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_there_after_a_restart() {
    let node = TestNode::start(&[]).await;
    let controller = &node.node.controller;
    let topic = node.create_topic("a", &[("retention.ms", "5")]).await;
    controller.create_partitions(topic.id, 5).await.expect("grown");
    controller
        .alter_topic_config(topic.id, vec![("retention.ms".to_owned(), ConfigChange::Delete)])
        .await
        .expect("altered");
    let gone = node.create_topic("gone", &[]).await;
    node.node.delete_topic(gone.id).await.expect("deleted");
    controller.put_kv("n", "k", Some("v".to_owned())).await.expect("put");
    let mut group = SubscriptionGroup::with_defaults("g".into());
    group.retry_times_max = 3;
    controller.put_subscription_group(group).await.expect("put");
    let dynamic = ("log.retention.ms".to_owned(), ConfigChange::Set("77".to_owned()));
    controller.alter_broker_config("", vec![dynamic]).await.expect("altered");
    assert_eq!(controller.next_producer_id().await, Ok(0));
    let before = controller.image().records();
    let cluster = node.node.cluster_id();

    let node = TestNode::start_on(node.stop().await, &[]).await;
    let image = node.node.controller.image().clone();
    let same = |records: Vec<MetadataRecord>| {
        let without = |record: &MetadataRecord| !matches!(record, MetadataRecord::LeaderEpoch(_));
        records.into_iter().filter(without).collect::<Vec<_>>()
    };
    assert_eq!(same(image.records()), same(before));
    assert_eq!(node.node.cluster_id(), cluster);
    let topic = image.topic("a").expect("kept");
    assert_eq!((topic.partition_count(), topic.config.retention_ms), (5, 77));
    assert_eq!(topic.numbers, [0, 1, 2, 3, 4]);
    assert_eq!(image.next_partition_number(), 7, "a deleted topic's numbers stay given out");
    assert!(image.topic("gone").is_none());
    assert_eq!(image.leader_epoch(), Some(1), "each start begins an epoch");
    assert_eq!(node.node.controller.next_producer_id().await, Ok(1000), "a block is given once");
    node.stop().await;
}

/// Partitions take the ids of deliveries from no client.
#[tokio::test(flavor = "multi_thread")]
async fn producer_ids_end_before_those_of_deliveries() {
    let node = TestNode::start(&[]).await;
    let controller = &node.node.controller;
    let next_producer_id = (1 << 62) - 1001;
    let imported = Imported { topics: Vec::new(), leader_epoch: -1, next_producer_id };
    controller.import_topics(imported).await.expect("noted");
    for id in (next_producer_id..).take(1000) {
        assert_eq!(controller.next_producer_id().await, Ok(id));
    }
    let refused = controller.next_producer_id().await;
    assert!(matches!(refused, Err(ControllerError::LimitReached(_))), "{refused:?}");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_creations_of_one_name_make_one_topic() {
    let node = TestNode::start(&[]).await;
    let creations = (1..=16).map(|partitions| {
        let node = node.node.clone();
        tokio::spawn(async move {
            let topic = new_topic("t", partitions);
            node.controller.create_topic(topic, IfExists::Return).await.expect("a topic").id
        })
    });
    let mut ids = Vec::new();
    for creation in creations.collect::<Vec<_>>() {
        ids.push(creation.await.expect("no panic"));
    }
    ids.dedup();
    assert_eq!(ids.len(), 1, "the first door decides, both see one topic");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_creations_say_why_and_change_nothing() {
    let node = TestNode::start(&[]).await;
    node.create_topic("a.b", &[]).await;
    let records = node.node.controller.image().records();
    let config = |key: &str, value: &str| NewTopic {
        overrides: Overrides::from([(key.to_owned(), value.to_owned())]),
        ..new_topic("c", 1)
    };
    for (topic, wanted) in [
        (new_topic("a.b", 1), "already exists"),
        (new_topic("a_b", 1), "collides with existing topic: a.b"),
        (new_topic("a/b", 1), "characters other than"),
        (new_topic("__rmq.retry.g", 1), "belongs to RocketMQ"),
        (new_topic("c", 0), "non-positive"),
        (new_topic("c", 2_000_000_000), "a topic may have"),
        (config("retention.ms", "x"), "Not a number"),
        (config("preallocate", "true"), "does not act on it yet"),
        (config("no.such", "1"), "Unknown topic config name"),
    ] {
        let refused = node.node.controller.create_topic(topic, IfExists::Refuse).await;
        let text = refused.expect_err(wanted).to_string();
        assert!(text.contains(wanted), "{text}");
    }
    assert_eq!(node.node.controller.image().records(), records);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_request_creates_what_it_can() {
    let node = TestNode::start(&[]).await;
    let topics = vec![new_topic("x.y", 1), new_topic("x_y", 1), new_topic("z", 3)];
    let outcomes = node.node.controller.create_topics(topics, IfExists::Refuse).await;
    let created: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
    assert_eq!(created, [true, false, true], "a later topic is held to the earlier ones");
    node.stop().await;
}

/// What the changes of [`change_until_halted`] have been answered.
type Answered = BTreeMap<&'static str, i32>;

/// Creates, grows and deletes until the disk stops; returns the partitions of each topic whose
/// change was answered (0: deleted).
async fn change_until_halted(node: &Node) -> Answered {
    let mut answered = Answered::new();
    let controller = &node.controller;
    for (name, partitions) in [("a", 1), ("b", 2), ("c", 3)] {
        let Ok(topic) =
            controller.create_topic(new_topic(name, partitions), IfExists::Refuse).await
        else {
            return answered;
        };
        answered.insert(name, partitions);
        if controller.create_partitions(topic.id, partitions + 4).await.is_err() {
            return answered;
        }
        answered.insert(name, partitions + 4);
    }
    let topic = controller.image().topic("b").expect("created").id;
    if controller.delete_topic(topic).await.is_ok() {
        answered.insert("b", 0);
    }
    answered
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_kept_whole_is_refused_and_changes_nothing() {
    let node = TestNode::start(&[]).await;
    let controller = &node.node.controller;
    let refused = Err(ControllerError::InvalidConfig(
        "a text of 65536 bytes, at most 65535 can be kept".to_owned(),
    ));
    controller.put_kv("n", "k", Some("v".to_owned())).await.expect("put");
    assert_eq!(controller.put_kv("n", "k", Some("v".repeat(65_536))).await, refused);
    assert_eq!(controller.image().kv("n", "k").map(String::as_str), Some("v"));
    let mut group = SubscriptionGroup::with_defaults("g".into());
    group.retry_policy = "p".repeat(65_536);
    assert_eq!(controller.put_subscription_group(group.clone()).await, refused);
    assert!(controller.image().subscription_group("g").is_none());
    group.retry_policy.pop();
    controller.put_subscription_group(group.clone()).await.expect("put");
    let node = TestNode::start_on(node.stop().await, &[]).await;
    let image = node.node.controller.image();
    assert_eq!(image.subscription_group("g").map(|held| (**held).clone()), Some(group));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_of_texts_is_bounded_and_room_comes_back() {
    let node = TestNode::start(&[]).await;
    let controller = &node.node.controller;
    let value = "v".repeat(65_000);
    let count = KV_BYTES_MAX / value.len();
    for number in 0..count {
        controller.put_kv("n", &format!("k{number:03}"), Some(value.clone())).await.expect("put");
    }
    let refused = controller.put_kv("n", "more", Some(value.clone())).await;
    let text = "the store of texts holds at most 8388608 bytes and 100000 values".to_owned();
    assert_eq!(refused, Err(ControllerError::LimitReached(text)));
    assert_eq!(controller.image().kv_of("n").len(), count);
    controller.put_kv("n", "k000", Some("changed".to_owned())).await.expect("less than before");
    controller.put_kv("n", "k001", None).await.expect("deleted");
    controller.put_kv("n", "more", Some(value)).await.expect("there is room again");
}

/// Whether the image holds every answered change, and nothing that was never asked for.
fn check(image: &Image, answered: &Answered) {
    for name in ["a", "b", "c"] {
        let held = image.topic(name).map_or(0, |topic| topic.partition_count());
        let first = match name {
            "a" => 1,
            "b" => 2,
            _ => 3,
        };
        // One change may have been under way.
        let allowed: Vec<i32> = match answered.get(name) {
            None => vec![0, first],
            Some(count) if *count == first => vec![first, first + 4],
            Some(0) => vec![0],
            Some(count) if name == "b" => vec![*count, 0],
            Some(count) => vec![*count],
        };
        assert!(allowed.contains(&held), "{name} has {held} partitions after {answered:?}");
    }
    let mut numbers: Vec<u32> = image.topics().flat_map(|topic| topic.numbers.clone()).collect();
    numbers.sort_unstable();
    let given = numbers.len();
    numbers.dedup();
    assert_eq!(numbers.len(), given, "no partition number is given twice");
    assert!(numbers.last().is_none_or(|last| *last < image.next_partition_number()));
}

async fn start(disk: &MemDisk) -> Option<Arc<Node>> {
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    Node::start(config(&[]), shared, Events::silent(NodeId(1))).await.ok()
}

/// The metadata log is crash-tested at every call that changes the disk: what was answered is there
/// after a power cut, whatever of the rest survives.
#[tokio::test(flavor = "multi_thread")]
async fn an_answered_change_survives_a_power_cut_at_any_point() {
    let whole = MemDisk::new();
    let node = start(&whole).await.expect("starts");
    let begun = whole.operations();
    let all = change_until_halted(&node).await;
    assert_eq!(all, Answered::from([("a", 5), ("b", 0), ("c", 7)]));
    let operations = whole.operations();
    node.stopping.cancel();
    let mut answered_counts = std::collections::BTreeSet::new();
    for operation in begun..operations {
        let disk = MemDisk::new();
        disk.fail_operation(operation, Fault::Halt);
        let Some(node) = start(&disk).await else { continue };
        let answered = change_until_halted(&node).await;
        answered_counts.insert(answered.len());
        node.stopping.cancel();
        for how in [Crash::ForgetUnsynced, Crash::Seeded(operation), Crash::Seeded(!operation)] {
            let survivor = disk.crash(how);
            let node = start(&survivor).await.expect("the next start finds a sound log");
            check(&node.controller.image(), &answered);
            node.stopping.cancel();
        }
    }
    assert!(answered_counts.len() > 2, "the crashes came at different points: {answered_counts:?}");
}
