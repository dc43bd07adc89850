//! A node with several log directories, of which one may be offline.

use std::path::Path;

use duolog_log_core::storage::checkpoint::{Durability, RECOVERY_POINT_FILE, read_offsets, write};

use super::*;
use crate::controller::topics::{Door, IfExists, NewTopic};
use crate::kafka::codec::messages::fetch_request::{FetchPartition, FetchTopic};
use crate::kafka::codec::messages::metadata_request::MetadataRequestTopic;
use crate::kafka::codec::messages::{
    DescribeLogDirsRequest, DescribeLogDirsResponse, FetchRequest, FetchResponse, MetadataRequest,
    MetadataResponse,
};
use crate::testing::served::Client;

pub(super) const TWO: [&str; 1] = ["log.dirs=/a,/b"];
pub(super) const STORAGE_ERROR: i16 = 56;

pub(super) async fn create(node: &TestNode, name: &str, partitions: i32) {
    let overrides = Default::default();
    let topic = NewTopic { name: name.into(), partitions, overrides, door: Door::Kafka };
    node.node.controller.create_topic(topic, IfExists::Refuse).await.expect("created");
}

/// The directory of each partition of a topic, as the node says.
pub(super) fn places(node: &TestNode, topic: &str) -> Vec<String> {
    let id = node.node.controller.image().topic(topic).expect("a topic").id;
    let partitions = node.node.partitions.of_topic(id).expect("its partitions");
    let path = |partition: &Arc<crate::partitions::Partition>| {
        partition.log_dir().path().display().to_string()
    };
    partitions.iter().map(path).collect()
}

/// Error code and bytes of a fetch of partition 0 from its begin on.
pub(super) async fn fetch(client: &mut Client, topic: &str) -> (i16, usize) {
    let partition = FetchPartition { partition_max_bytes: 1 << 20, ..FetchPartition::default() };
    let topic =
        FetchTopic { topic: topic.into(), partitions: vec![partition], ..FetchTopic::default() };
    let (max_bytes, topics) = (1 << 20, vec![topic]);
    let request = FetchRequest { max_bytes, topics, ..FetchRequest::default() };
    let response: FetchResponse = client.call(12, &request).await;
    let partition = &response.responses[0].partitions[0];
    (partition.error_code, partition.records.as_ref().map_or(0, |records| records.len()))
}

/// Error and leader of partition 0, and how many of its replicas are offline.
pub(super) async fn leader(client: &mut Client, topic: &str) -> (i16, i32, usize) {
    let topic = MetadataRequestTopic { name: Some(topic.into()), ..Default::default() };
    let request = MetadataRequest { topics: Some(vec![topic]), ..MetadataRequest::default() };
    let response: MetadataResponse = client.call(9, &request).await;
    let partition = &response.topics[0].partitions[0];
    (partition.error_code, partition.leader_id, partition.offline_replicas.len())
}

/// Each directory: error, and its partitions.
pub(super) async fn described(client: &mut Client) -> Vec<(String, i16, Vec<String>)> {
    let request = DescribeLogDirsRequest { topics: None };
    let response: DescribeLogDirsResponse = client.call(4, &request).await;
    let results = response.results.into_iter().map(|dir| {
        let names = dir.topics.iter().flat_map(|topic| {
            topic.partitions.iter().map(|one| format!("{}-{}", topic.name, one.partition_index))
        });
        (dir.log_dir.to_string(), dir.error_code, names.collect())
    });
    results.collect()
}

/// `a` and `b` with a record each, every one in the directory of its name, after a clean stop.
pub(super) async fn stopped() -> MemDisk {
    let node = TestNode::start(&TWO).await;
    let mut client = node.connect().await;
    for topic in ["a", "b"] {
        create(&node, topic, 1).await;
        assert_eq!(places(&node, topic), [format!("/{topic}")]);
        assert_eq!(client.produce(topic, 1, batch(&["kept"])).await, (0, 0));
    }
    node.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_are_spread_and_each_directory_knows_its_own() {
    let disk = stopped().await;
    for (dir, own, other) in [("/a", "a-0", "b-0"), ("/b", "b-0", "a-0")] {
        let at = |name: &str| Path::new(dir).join(name);
        assert!(disk.list(&at(own)).is_ok() && disk.list(&at(other)).is_err());
        assert!(disk.content(&at(".kafka_cleanshutdown")).is_some());
        assert!(disk.content(&at("meta.properties")).is_some());
        let points = read_offsets(&disk, Path::new(dir), RECOVERY_POINT_FILE).expect("written");
        let names: Vec<_> = points.keys().map(ToString::to_string).collect();
        assert!(names.contains(&own.to_owned()) && !names.contains(&other.to_owned()), "{names:?}");
    }
    let node = TestNode::start_on(disk, &TWO).await;
    let mut client = node.connect().await;
    create(&node, "many", 5).await;
    assert_eq!(places(&node, "many"), ["/a", "/b", "/a", "/b", "/a"]);
    create(&node, "c", 1).await;
    assert_eq!(places(&node, "c"), ["/b"]);
    assert!(fetch(&mut client, "a").await.1 > 0 && fetch(&mut client, "b").await.1 > 0);
    // Also what was never written is where it was.
    let node = TestNode::start_on(node.stop().await, &["log.dirs=/b,/a"]).await;
    assert_eq!(places(&node, "many"), ["/a", "/b", "/a", "/b", "/a"]);
    let mut client = node.connect().await;
    let of_a = ["a-0", "many-0", "many-2", "many-4"].map(str::to_owned).to_vec();
    let of_b = ["b-0", "c-0", "many-1", "many-3"].map(str::to_owned).to_vec();
    let expected = [("/b".to_owned(), 0, of_b), ("/a".to_owned(), 0, of_a)];
    assert_eq!(described(&mut client).await, expected);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_a_directory_that_cannot_be_opened_is_refused_until_it_can() {
    let disk = stopped().await;
    disk.rename(Path::new("/b"), Path::new("/away")).expect("away");
    write(&disk, Path::new("/b"), b"", Durability::Synced).expect("a file instead");
    let node = TestNode::start_on(disk, &TWO).await;
    let mut client = node.connect().await;
    assert_eq!(client.produce("b", 1, batch(&["lost"])).await.0, STORAGE_ERROR);
    assert_eq!(fetch(&mut client, "b").await, (STORAGE_ERROR, 0));
    assert_eq!(leader(&mut client, "b").await, (5, -1, 1));
    assert_eq!(leader(&mut client, "a").await, (0, 1, 0));
    assert_eq!(client.produce("a", 1, batch(&["more"])).await, (0, 1));
    create(&node, "new", 2).await;
    assert_eq!(places(&node, "new"), ["/a", "/a"]);
    let expected = [
        ("/a".to_owned(), 0, vec!["a-0".to_owned(), "new-0".to_owned(), "new-1".to_owned()]),
        ("/b".to_owned(), STORAGE_ERROR, Vec::new()),
    ];
    assert_eq!(described(&mut client).await, expected);
    let disk = node.stop().await;
    assert!(
        disk.content(Path::new("/a/.kafka_cleanshutdown")).is_some(),
        "what it could it closed"
    );

    disk.remove(Path::new("/b")).expect("removed");
    disk.rename(Path::new("/away"), Path::new("/b")).expect("back");
    let node = TestNode::start_on(disk, &TWO).await;
    let mut client = node.connect().await;
    assert_eq!(client.produce("b", 1, batch(&["more"])).await, (0, 1));
    assert_eq!(client.produce("a", 1, batch(&["more"])).await, (0, 2));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_is_taken_out_takes_its_partitions_along() {
    let node = TestNode::start_on(stopped().await, &["log.dirs=/a"]).await;
    let mut client = node.connect().await;
    assert_eq!(client.produce("b", 1, batch(&["lost"])).await.0, STORAGE_ERROR);
    assert_eq!(client.produce("a", 1, batch(&["more"])).await, (0, 1));
    // A topic of the same name is another one, and the old folder is not taken for its own.
    let id = node.node.controller.image().topic("b").expect("a topic").id;
    node.node.delete_topic(id).await.expect("deleted");
    create(&node, "b", 1).await;
    assert_eq!(client.produce("b", 1, batch(&["new"])).await, (0, 0));
    let node = TestNode::start_on(node.stop().await, &TWO).await;
    assert_eq!(places(&node, "b"), ["/a"]);
    let mut client = node.connect().await;
    assert_eq!(client.produce("b", 1, batch(&["more"])).await, (0, 1));
    let entries = node.disk.list(Path::new("/b")).expect("a folder");
    let stray = |name: &str| name.starts_with("b-0.") && name.ends_with("-stray");
    assert!(entries.iter().any(|entry| stray(&entry.name)), "{entries:?}");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_directory_joins_and_nothing_moves() {
    let node = TestNode::start(&["log.dirs=/a"]).await;
    create(&node, "t", 2).await;
    let node = TestNode::start_on(node.stop().await, &["log.dirs=/b,/a"]).await;
    assert_eq!(places(&node, "t"), ["/a", "/a"]);
    create(&node, "u", 3).await;
    assert_eq!(places(&node, "u"), ["/b", "/b", "/b"]);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_in_two_directories_is_refused_by_name() {
    let disk = stopped().await;
    let meta = disk.content(Path::new("/b/b-0/partition.metadata")).expect("written");
    disk.create_dir_all(Path::new("/a/b-0")).expect("a copy");
    write(&disk, Path::new("/a/b-0/partition.metadata"), &meta, Durability::Synced).expect("ok");
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let started = Node::start(served::config(&TWO), shared, Events::silent(NodeId(1))).await;
    let text = started.expect_err("which one?").to_string();
    assert!(text.contains("b-0 are found in both /a and /b"), "{text}");
}
