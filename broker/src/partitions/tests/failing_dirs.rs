//! Log directories whose device fails while the node runs.

use std::path::Path;

use duolog_log_core::event::EventKind;
use duolog_log_core::gate::{GateAction, GatePoint};

use super::dirs::{STORAGE_ERROR, TWO, create, described, fetch, leader, places, stopped};
use super::*;
use crate::kafka::codec::messages::alter_replica_log_dirs_request::{
    AlterReplicaLogDir, AlterReplicaLogDirTopic,
};
use crate::kafka::codec::messages::{
    AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse, DescribeLogDirsRequest,
    DescribeLogDirsResponse,
};
use crate::testing::served::{Client, eventually};

/// With what is written synced before it is answered.
const SYNCED: [&str; 2] = ["log.dirs=/a,/b", "log.flush.interval.messages=1"];

/// The directories that are told to have failed.
fn told(node: &TestNode) -> Vec<String> {
    let events = node.told.events().into_iter();
    let offline = events.filter(|event| event.kind == EventKind::LogDirOffline);
    offline.filter_map(|event| Some(event.cause?.to_string())).collect()
}

/// Error code of each directory.
async fn errors(client: &mut Client) -> Vec<i16> {
    let request = DescribeLogDirsRequest { topics: None };
    let response: DescribeLogDirsResponse = client.call(4, &request).await;
    response.results.iter().map(|dir| dir.error_code).collect()
}

async fn alter(client: &mut Client, topic: &str, path: &str) -> i16 {
    let topics = vec![AlterReplicaLogDirTopic { name: topic.into(), partitions: vec![0] }];
    let dirs = vec![AlterReplicaLogDir { path: path.into(), topics }];
    let answer: AlterReplicaLogDirsResponse =
        client.call(2, &AlterReplicaLogDirsRequest { dirs }).await;
    answer.results[0].partitions[0].error_code
}

/// A device that no longer reads, or writes, or syncs: its directory is refused as a whole, the other one is
/// served, and the next start finds what was there.
#[tokio::test(flavor = "multi_thread")]
async fn a_directory_whose_device_fails_is_offline_and_the_rest_is_served() {
    for operation in ["read", "write", "sync"] {
        let node = TestNode::start_on(stopped().await, &SYNCED).await;
        let mut client = node.connect().await;
        create(&node, "unwritten", 2).await;
        assert_eq!(places(&node, "unwritten"), ["/a", "/b"]);
        node.listen();
        node.disk.break_below(Path::new("/b"), operation);
        let code = match operation {
            "read" => fetch(&mut client, "b").await.0,
            _ => client.produce("b", 1, batch(&["lost"])).await.0,
        };
        assert_eq!(code, STORAGE_ERROR, "{operation}");
        eventually("it is told", || !told(&node).is_empty()).await;
        assert_eq!(client.produce("b", 1, batch(&["lost"])).await.0, STORAGE_ERROR);
        assert_eq!(fetch(&mut client, "b").await, (STORAGE_ERROR, 0));
        assert_eq!(leader(&mut client, "b").await, (5, -1, 1), "{operation}");
        assert_eq!(leader(&mut client, "a").await, (0, 1, 0), "{operation}");
        assert_eq!(client.produce("a", 1, batch(&["more"])).await, (0, 1));
        assert!(fetch(&mut client, "a").await.1 > 0);
        assert_eq!(errors(&mut client).await, [0, STORAGE_ERROR], "{operation}");
        let unwritten = node.partition("unwritten", 1).reader().await;
        assert!(matches!(unwritten, Err(AppendError::Log(_))), "{operation}");
        create(&node, "new", 2).await;
        assert_eq!(places(&node, "new"), ["/a", "/a"]);
        let told = told(&node);
        assert!(matches!(&told[..], [one] if one.starts_with("/b: ")), "{operation}: {told:?}");
        assert!(!node.node.lost.is_cancelled());
        let disk = node.stop().await;
        let is_clean = |dir: &str| disk.content(&Path::new(dir).join(".kafka_cleanshutdown"));
        assert!(is_clean("/a").is_some() && is_clean("/b").is_none(), "{operation}");

        let node = TestNode::start_on(disk, &SYNCED).await;
        let mut client = node.connect().await;
        assert!(fetch(&mut client, "b").await.1 > 0, "{operation}");
        assert_eq!(client.produce("b", 1, batch(&["more"])).await.0, 0, "{operation}");
        assert_eq!(errors(&mut client).await, [0, 0], "{operation}");
        node.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_metadata_log_or_any_directory_the_node_cannot_go_on() {
    for (settings, broken, text) in [
        (TWO[0], "/a", "the log directory /a has failed, which holds the metadata log: "),
        ("log.dirs=/a", "/a", "all log directories in /a have failed: "),
    ] {
        let node = TestNode::start(&[settings]).await;
        let mut client = node.connect().await;
        create(&node, "t", 1).await;
        node.disk.break_below(Path::new(broken), "write");
        assert_eq!(client.produce("t", 1, batch(&["lost"])).await.0, STORAGE_ERROR);
        tokio::time::timeout(served::LIMIT, node.node.lost.cancelled()).await.expect("in time");
        let loss = node.node.partitions.shared().log_dirs.loss().expect("a reason");
        assert!(loss.starts_with(text), "{loss}");
    }
}

/// Writers are told to try again, readers go on, and with room it goes on without a start.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_takes_no_directory_offline() {
    let node = TestNode::start_on(stopped().await, &SYNCED).await;
    let mut client = node.connect().await;
    node.listen();
    assert_eq!(client.produce("b", 1, batch(&["more"])).await, (0, 1));
    node.disk.set_capacity(Some(node.disk.used_bytes()));
    for _ in 0..3 {
        assert_eq!(client.produce("b", 1, batch(&["lost"])).await.0, STORAGE_ERROR);
        assert!(fetch(&mut client, "b").await.1 > 0);
    }
    assert_eq!(errors(&mut client).await, [0, 0]);
    assert_eq!(told(&node), Vec::<String>::new());
    node.disk.set_capacity(None);
    assert_eq!(client.produce("b", 1, batch(&["more"])).await, (0, 2));
    node.stop().await;
}

/// A partition stays where it is when the directory fails to which it was to move.
#[tokio::test(flavor = "multi_thread")]
async fn a_move_ends_with_its_target() {
    let node = TestNode::start_on(stopped().await, &TWO).await;
    let mut client = node.connect().await;
    let gate = node.arm(GatePoint::LogDirReplaceBefore, "a", GateAction::Hold);
    assert_eq!(alter(&mut client, "a", "/b").await, 0);
    node.caught(gate).await;
    node.disk.break_below(Path::new("/b"), "rename");
    node.node.instruments.release(gate);
    let partition = node.partition("a", 0);
    eventually("the move ends", || partition.movement().is_none()).await;
    assert_eq!(places(&node, "a"), ["/a"]);
    assert_eq!(client.produce("a", 1, batch(&["more"])).await, (0, 1));
    assert_eq!(described(&mut client).await[1].1, STORAGE_ERROR);
    let node = TestNode::start_on(node.stop().await, &TWO).await;
    assert_eq!(node.connect().await.produce("a", 1, batch(&["more"])).await, (0, 2));
    node.stop().await;
}

/// What was to leave a directory that fails is refused, and leaves it once a start finds it again.
#[tokio::test(flavor = "multi_thread")]
async fn a_move_waits_for_its_source_to_come_back() {
    let node = TestNode::start_on(stopped().await, &TWO).await;
    let mut client = node.connect().await;
    let gate = node.arm(GatePoint::LogDirCopy, "b", GateAction::Hold);
    assert_eq!(alter(&mut client, "b", "/a").await, 0);
    node.caught(gate).await;
    node.disk.break_below(Path::new("/b"), "read");
    node.node.instruments.release(gate);
    let partition = node.partition("b", 0);
    eventually("the move ends", || partition.movement().is_none()).await;
    assert_eq!(client.produce("b", 1, batch(&["lost"])).await.0, STORAGE_ERROR);
    let node = TestNode::start_on(node.stop().await, &TWO).await;
    let is_moved = || places(&node, "b") == ["/a"] && node.partition("b", 0).movement().is_none();
    eventually("it is moved", is_moved).await;
    assert_eq!(node.connect().await.produce("b", 1, batch(&["more"])).await, (0, 1));
    node.stop().await;
}
