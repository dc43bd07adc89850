//! Moves on a node with two log directories.

use std::path::Path;

use duolog_log_core::event::{EventKind, Events};
use duolog_log_core::gate::{GateAction, GatePoint};
use duolog_log_core::ids::NodeId;
use duolog_log_core::record::SharedBatches;
use duolog_log_core::storage::disk::Disk;
use duolog_log_core::testing::mem_disk::{Crash, Fault, MemDisk};

use super::*;
use crate::controller::topics::{Door, IfExists, NewTopic};
use crate::kafka::codec::messages::alter_replica_log_dirs_request::{
    AlterReplicaLogDir, AlterReplicaLogDirTopic,
};
use crate::kafka::codec::messages::fetch_request::{FetchPartition, FetchTopic};
use crate::kafka::codec::messages::{
    AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse, DescribeLogDirsRequest,
    DescribeLogDirsResponse, FetchRequest, FetchResponse,
};
use crate::testing::served::{self, Attempts, Client, TestNode, batch, eventually};

const TWO: [&str; 2] = ["log.dirs=/a,/b", "log.flush.interval.messages=1"];

async fn create(node: &TestNode, name: &str) -> Arc<Partition> {
    // A segment for every few batches.
    let settings = [("index.interval.bytes", "0"), ("segment.index.bytes", "40")];
    let overrides =
        settings.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let topic = NewTopic { name: name.into(), partitions: 1, overrides, door: Door::Kafka };
    node.node.controller.create_topic(topic, IfExists::Refuse).await.expect("created");
    partition(node, name)
}

fn partition(node: &TestNode, topic: &str) -> Arc<Partition> {
    let id = node.node.controller.image().topic(topic).expect("a topic").id;
    node.node.partitions.find(id, 0).expect("a partition")
}

async fn alter(client: &mut Client, topic: &str, path: &str) -> i16 {
    let topics = vec![AlterReplicaLogDirTopic { name: topic.into(), partitions: vec![0] }];
    let dirs = vec![AlterReplicaLogDir { path: path.into(), topics }];
    let answer: AlterReplicaLogDirsResponse =
        client.call(2, &AlterReplicaLogDirsRequest { dirs }).await;
    answer.results[0].partitions[0].error_code
}

/// Of each directory the partitions: name, whether it is a copy on its way, what that lacks.
async fn described(client: &mut Client) -> Vec<Vec<(String, bool, i64)>> {
    let request = DescribeLogDirsRequest { topics: None };
    let answer: DescribeLogDirsResponse = client.call(4, &request).await;
    let of =
        |dir: &crate::kafka::codec::messages::describe_log_dirs_response::DescribeLogDirsResult| {
            let partitions = dir.topics.iter().flat_map(|topic| {
                topic
                    .partitions
                    .iter()
                    .map(|one| (topic.name.to_string(), one.is_future_key, one.offset_lag))
            });
            partitions.collect()
        };
    answer.results.iter().map(of).collect()
}

/// The offset behind what a fetch from `offset` on gives, which begins there.
async fn fetched(client: &mut Client, topic: &str, offset: i64) -> i64 {
    let partition = FetchPartition {
        partition_max_bytes: 500,
        fetch_offset: offset,
        ..FetchPartition::default()
    };
    let topic =
        FetchTopic { topic: topic.into(), partitions: vec![partition], ..FetchTopic::default() };
    let request =
        FetchRequest { max_bytes: 1 << 20, topics: vec![topic], ..FetchRequest::default() };
    let answer: FetchResponse = client.call(12, &request).await;
    let partition = &answer.responses[0].partitions[0];
    assert_eq!(partition.error_code, 0, "at {offset}");
    let mut next = offset;
    let records = partition.records.iter();
    for piece in records.flat_map(|records| records.pieces().to_vec()) {
        for batch in SharedBatches::new(piece) {
            let (header, _) = batch.expect("whole");
            assert_eq!(header.base_offset, next, "no gap");
            next = header.last_offset() + 1;
        }
    }
    next
}

fn folders(disk: &MemDisk, dir: &str) -> Vec<String> {
    let entries = disk.list(Path::new(dir)).expect("a folder").into_iter();
    let dirs = entries.filter(|entry| entry.kind == EntryKind::Dir).map(|entry| entry.name);
    dirs.filter(|name| !name.starts_with("__") && !name.ends_with("-delete")).collect()
}

async fn moved(partition: &Arc<Partition>, to: &str) {
    let is_there = || partition.log_dir().path() == Path::new(to) && !partition.is_moving();
    eventually("the partition is there", is_there).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_and_readers_notice_nothing_of_a_move() {
    let node = TestNode::start(&TWO).await;
    let partition = create(&node, "t").await;
    let (mut admin, mut writer) = (node.connect().await, node.connect().await);
    let mut reader = node.connect().await;
    let written = tokio::spawn(async move {
        for number in 0..150 {
            assert_eq!(writer.produce("t", 1, batch(&["value"])).await, (0, number));
        }
    });
    let read = tokio::spawn(async move {
        let mut next = 0;
        let attempts = Attempts::at("all is read");
        while next < 150 {
            next = fetched(&mut reader, "t", next).await;
            attempts.again().await;
        }
    });
    for to in ["/b", "/a", "/b"] {
        assert_eq!(alter(&mut admin, "t", to).await, 0);
        moved(&partition, to).await;
    }
    written.await.expect("written");
    read.await.expect("read");
    assert_eq!(folders(&node.disk, "/a"), Vec::<String>::new());
    assert_eq!(folders(&node.disk, "/b"), ["t-0"]);
    assert_eq!(described(&mut admin).await, [vec![], vec![("t".to_owned(), false, 0)]]);
    let node = TestNode::start_on(node.stop().await, &TWO).await;
    assert_eq!(super::tests::partition(&node, "t").log_dir().path(), Path::new("/b"));
    let (mut client, mut next) = (node.connect().await, 0);
    while next < 150 {
        next = fetched(&mut client, "t", next).await;
    }
    assert_eq!(client.produce("t", 1, batch(&["more"])).await, (0, 150));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_waits_is_shown_and_can_be_taken_back() {
    let node = TestNode::start(&TWO).await;
    create(&node, "t").await;
    let mut client = node.connect().await;
    for number in 0..4 {
        assert_eq!(client.produce("t", 1, batch(&["value"])).await, (0, number));
    }
    node.node.partitions.shared().movers.acquire_many(2).await.expect("all turns").forget();
    assert_eq!(alter(&mut client, "t", "/b").await, 0);
    assert_eq!(alter(&mut client, "t", "/b").await, 0, "it is on its way");
    let present = ("t".to_owned(), false, 0);
    let future = ("t".to_owned(), true, 4);
    assert_eq!(described(&mut client).await, [vec![present.clone()], vec![future.clone()]]);
    assert_eq!(alter(&mut client, "t", "/a").await, 0, "it stays");
    assert_eq!(described(&mut client).await, [vec![present.clone()], vec![]]);
    assert_eq!(folders(&node.disk, "/b"), Vec::<String>::new());
    // A start goes on with a move.
    assert_eq!(alter(&mut client, "t", "/b").await, 0);
    assert_eq!(folders(&node.disk, "/b").len(), 1);
    let node = TestNode::start_on(node.stop().await, &TWO).await;
    moved(&super::tests::partition(&node, "t"), "/b").await;
    let mut client = node.connect().await;
    assert!(fetched(&mut client, "t", 0).await > 0);
    // What goes with its topic is no copy of the next topic of that name.
    let turns = node.node.partitions.shared().movers.acquire_many(2).await.expect("all turns");
    assert_eq!(alter(&mut client, "t", "/a").await, 0);
    let id = super::tests::partition(&node, "t").topic_id;
    node.node.delete_topic(id).await.expect("deleted");
    assert_eq!(folders(&node.disk, "/a"), Vec::<String>::new());
    drop(turns);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_cannot_be_is_refused() {
    let node = TestNode::start(&TWO).await;
    create(&node, "t").await;
    let mut client = node.connect().await;
    for (topic, path, code) in [
        ("t", "/c", 57),
        ("t", "b", 57),
        ("none", "/b", 3),
        ("__duolog_metadata", "/b", 3),
        ("t", "/a", 0),
    ] {
        assert_eq!(alter(&mut client, topic, path).await, code, "{topic} to {path}");
    }
    // Nothing moves while it is not known what another directory holds.
    let disk = node.stop().await;
    let write = duolog_log_core::storage::checkpoint::write;
    write(&disk, Path::new("/off"), b"", Durability::Synced).expect("a file");
    let node = TestNode::start_on(disk, &["log.dirs=/a,/b,/off"]).await;
    let mut client = node.connect().await;
    for (path, code) in [("/b", 56), ("/off", 56), ("/a", 0)] {
        assert_eq!(alter(&mut client, "t", path).await, code, "to {path}");
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_are_deleted_meanwhile_stay_deleted() {
    let node = TestNode::start(&TWO).await;
    let partition = create(&node, "t").await;
    let mut client = node.connect().await;
    for number in 0..20 {
        assert_eq!(client.produce("t", 1, batch(&["value"])).await, (0, number));
    }
    let turns = node.node.partitions.shared().movers.acquire_many(2).await.expect("all turns");
    assert_eq!(alter(&mut client, "t", "/b").await, 0);
    assert_eq!(partition.delete_records(13).await.expect("deleted"), 13);
    partition.keep_house();
    drop(turns);
    moved(&partition, "/b").await;
    assert_eq!(partition.offsets().log_start, 13);
    let node = TestNode::start_on(node.stop().await, &TWO).await;
    let partition = super::tests::partition(&node, "t");
    partition.opened().await;
    assert_eq!((partition.offsets().log_start, partition.offsets().log_end), (13, 20));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_gate_of_a_move_holds_it_and_a_kill_there_loses_nothing() {
    let present = ("t".to_owned(), false, 0);
    let future = |lag| ("t".to_owned(), true, lag);
    for (point, shown, lacks) in [
        (GatePoint::LogDirCopy, [vec![present.clone()], vec![future(4)]], 5),
        (GatePoint::LogDirReplaceBefore, [vec![present.clone()], vec![future(0)]], 1),
        (GatePoint::LogDirReplaceAfter, [vec![], vec![present.clone()]], 0),
    ] {
        let node = TestNode::start(&TWO).await;
        create(&node, "t").await;
        let mut client = node.connect().await;
        for number in 0..4 {
            assert_eq!(client.produce("t", 1, batch(&["value"])).await, (0, number));
        }
        let gate = node.arm(point, "t", GateAction::Hold);
        assert_eq!(alter(&mut client, "t", "/b").await, 0);
        node.caught(gate).await;
        assert_eq!(described(&mut client).await, shown, "{point}");
        assert_eq!(client.produce("t", 1, batch(&["more"])).await, (0, 4), "{point}");
        let future = described(&mut client).await.into_iter().flatten().find(|one| one.1);
        assert_eq!(future.map_or(0, |one| one.2), lacks, "{point}");
        let disk = node.disk.kill();
        node.node.stopping.cancel();
        let node = TestNode::start_on(disk, &TWO).await;
        moved(&super::tests::partition(&node, "t"), "/b").await;
        let (mut client, mut next) = (node.connect().await, 0);
        while next < 5 {
            next = fetched(&mut client, "t", next).await;
        }
        assert_eq!(described(&mut client).await, [vec![], vec![present.clone()]], "{point}");
        node.stop().await;
    }
}

/// Killed before the old folder went, started without the directory that it is in, and with it again.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_move_left_in_a_directory_that_is_offline_goes_when_that_is_back() {
    let node = TestNode::start(&TWO).await;
    create(&node, "a").await;
    let moving = create(&node, "b").await;
    assert_eq!(moving.log_dir().path(), Path::new("/b"));
    let mut client = node.connect().await;
    assert_eq!(client.produce("b", 1, batch(&["value"])).await, (0, 0));
    let gate = node.arm(GatePoint::LogDirReplaceAfter, "b", GateAction::Hold);
    assert_eq!(alter(&mut client, "b", "/a").await, 0);
    node.caught(gate).await;
    let disk = node.disk.kill();
    node.node.stopping.cancel();
    disk.rename(Path::new("/b"), Path::new("/away")).expect("away");
    let write = duolog_log_core::storage::checkpoint::write;
    write(&disk, Path::new("/b"), b"", Durability::Synced).expect("a file");
    let node = TestNode::start_on(disk, &TWO).await;
    assert_eq!(node.connect().await.produce("b", 1, batch(&["value"])).await, (0, 1));
    let disk = node.stop().await;
    disk.remove(Path::new("/b")).expect("removed");
    disk.rename(Path::new("/away"), Path::new("/b")).expect("back");
    let node = TestNode::start_on(disk, &TWO).await;
    assert_eq!(super::tests::partition(&node, "b").log_dir().path(), Path::new("/a"));
    assert_eq!(folders(&node.disk, "/b"), Vec::<String>::new());
    assert_eq!(node.connect().await.produce("b", 1, batch(&["value"])).await, (0, 2));
    node.stop().await;
}

/// Killed before the old folder went, and again at any call of the start that is to remove it.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_move_left_is_known_for_that_however_often_a_start_is_interrupted() {
    let node = TestNode::start(&TWO).await;
    create(&node, "t").await;
    let mut client = node.connect().await;
    assert_eq!(client.produce("t", 1, batch(&["value"])).await, (0, 0));
    let gate = node.arm(GatePoint::LogDirReplaceAfter, "t", GateAction::Hold);
    assert_eq!(alter(&mut client, "t", "/b").await, 0);
    node.caught(gate).await;
    let left = node.disk.kill();
    node.node.stopping.cancel();
    let mut interrupted = 0;
    for at in 0.. {
        let disk = left.kill();
        disk.fail_operation(disk.operations() + at, Fault::Halt);
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let (config, silent) = (served::config(&TWO), Events::silent(NodeId(1)));
        let started = Node::start(config, shared, silent).await;
        if let Ok(node) = &started {
            node.stopping.cancel();
        }
        let is_over = !disk.is_halted();
        interrupted += usize::from(!is_over);
        for disk in [disk.kill(), disk.crash(Crash::ForgetUnsynced)] {
            let node = TestNode::start_on(disk, &TWO).await;
            let partition = super::tests::partition(&node, "t");
            assert_eq!(partition.log_dir().path(), Path::new("/b"), "call {at}");
            assert_eq!(folders(&node.disk, "/a"), Vec::<String>::new(), "call {at}");
            let mut client = node.connect().await;
            assert_eq!(client.produce("t", 1, batch(&["more"])).await, (0, 1), "call {at}");
            // Once one start has found it gone the move is forgotten.
            let node = TestNode::start_on(node.stop().await, &TWO).await;
            let image = node.node.controller.image().clone();
            let places = image.places(partition.topic_id).expect("noted");
            assert!(places.moves.is_empty(), "call {at}: {places:?}");
            node.stop().await;
        }
        if is_over {
            break;
        }
    }
    assert!(interrupted > 5, "{interrupted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_takes_along_what_a_move_could_not_remove() {
    let node = TestNode::start(&TWO).await;
    let partition = create(&node, "t").await;
    let mut client = node.connect().await;
    assert_eq!(client.produce("t", 1, batch(&["value"])).await, (0, 0));
    let gate = node.arm(GatePoint::LogDirReplaceAfter, "t", GateAction::Hold);
    assert_eq!(alter(&mut client, "t", "/b").await, 0);
    node.caught(gate).await;
    // Others may come before the rename.
    let next = node.disk.operations();
    (next..next + 30).for_each(|call| node.disk.fail_operation(call, Fault::Full));
    assert!(node.node.instruments.release(gate), "it stood");
    eventually("the move has ended", || !partition.is_moving()).await;
    node.disk.clear_faults();
    assert_eq!([folders(&node.disk, "/a"), folders(&node.disk, "/b")], [["t-0"], ["t-0"]]);
    node.node.delete_topic(partition.topic_id).await.expect("deleted");
    assert_eq!(folders(&node.disk, "/a"), Vec::<String>::new());
    assert_eq!(folders(&node.disk, "/b"), Vec::<String>::new());
    create(&node, "t").await;
    assert_eq!(client.produce("t", 1, batch(&["value"])).await, (0, 0));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_a_gate_refuses_is_tried_again_and_told_once() {
    let node = TestNode::start(&TWO).await;
    let partition = create(&node, "t").await;
    node.listen();
    let mut client = node.connect().await;
    assert_eq!(client.produce("t", 1, batch(&["value"])).await, (0, 0));
    let gates = [GatePoint::LogDirCopy, GatePoint::LogDirReplaceBefore]
        .map(|point| node.arm(point, "t", GateAction::Fail));
    assert_eq!(alter(&mut client, "t", "/b").await, 0);
    for gate in gates {
        node.caught(gate).await;
        assert!(partition.is_moving());
        assert!(node.node.instruments.release(gate), "it stood");
    }
    moved(&partition, "/b").await;
    let told = node.told.of(EventKind::LogDirMove, "t");
    let told: Vec<_> = told.iter().map(|event| (event.offset, event.cause.as_deref())).collect();
    assert_eq!(told, [(Some(duolog_log_core::ids::Offset(1)), Some("/b"))]);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_longest_name_of_a_topic_does_not_hide_its_copy_from_a_start() {
    let node = TestNode::start(&TWO).await;
    let name = "n".repeat(249);
    create(&node, &name).await;
    let mut client = node.connect().await;
    assert_eq!(client.produce(&name, 1, batch(&["value"])).await, (0, 0));
    let gate = node.arm(GatePoint::LogDirCopy, &name, GateAction::Hold);
    assert_eq!(alter(&mut client, &name, "/b").await, 0);
    node.caught(gate).await;
    let node = TestNode::start_on(node.stop().await, &TWO).await;
    moved(&super::tests::partition(&node, &name), "/b").await;
    let mut client = node.connect().await;
    assert_eq!(fetched(&mut client, &name, 0).await, 1);
    node.stop().await;
}

/// The machine stops, or the process, at calls all over a move; what was acknowledged is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_at_any_call_of_a_move_loses_nothing() {
    let (mut at, mut halted, mut before, mut after) = (0, 0, 0, 0);
    loop {
        let node = TestNode::start(&TWO).await;
        let moving = create(&node, "t").await;
        let mut client = node.connect().await;
        for number in 0..4 {
            assert_eq!(client.produce("t", 1, batch(&["value"])).await, (0, number));
        }
        let disk = node.disk.clone();
        disk.fail_operation(disk.operations() + at, Fault::Halt);
        let begun = alter(&mut client, "t", "/b").await;
        if begun == 0 {
            eventually("the move ends", || !moving.is_moving()).await;
        }
        let more = client.produce("t", 1, batch(&["value"])).await;
        let acknowledged = if more.0 == 0 { 5 } else { 4 };
        let is_over = !disk.is_halted();
        halted += usize::from(!is_over);
        node.node.stopping.cancel();
        let left = [disk.crash(Crash::ForgetUnsynced), disk.crash(Crash::Seeded(at)), disk.kill()];
        for disk in left {
            let node = TestNode::start_on(disk, &TWO).await;
            let mut client = node.connect().await;
            let (mut next, attempts) = (0, Attempts::at("all is there"));
            while next < acknowledged {
                next = fetched(&mut client, "t", next).await;
                attempts.again().await;
            }
            let partition = super::tests::partition(&node, "t");
            if partition.log_dir().path() == Path::new("/a") {
                before += 1
            } else {
                after += 1
            }
            let offset = partition.offsets().log_end;
            assert_eq!(client.produce("t", 1, batch(&["next"])).await, (0, offset), "call {at}");
            node.stop().await;
        }
        if is_over {
            break;
        }
        at += 6;
    }
    assert!(halted > 5 && before > 3 && after > 3, "{halted} {before} {after}");
}
