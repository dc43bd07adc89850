//! Timers on a node whose disk fails, and whose gates hold.

use std::collections::BTreeSet;
use std::path::Path;

use bytes::Bytes;
use duolog_bridge::translate::origin::{ORIGIN_HEADER, Origin};
use duolog_coordinator::delivery::StoredMessage;
use duolog_log_core::event::Events;
use duolog_log_core::gate::GateAction;
use duolog_log_core::ids::{NodeId, TopicPartition};
use duolog_log_core::log::ReadMinimum;
use duolog_log_core::record::{
    BatchHeader, DecodedBatch, Decompressor, Header, NewRecord as LogRecord, SharedBatches,
};
use duolog_log_core::storage::disk::Disk;
use duolog_log_core::testing::mem_disk::{Crash, Fault, MemDisk};

use super::*;
use crate::node::Node;
use crate::testing::served::{TestNode, config, eventually};

const BORN_MS: i64 = 1_234;

fn origin() -> Origin {
    Origin {
        flag: 1,
        sys_flag: 0,
        born_host: "10.0.0.1:7".parse().expect("an address"),
        store_timestamp_ms: 5,
        reconsume_times: 0,
        born_timestamp_ms: Some(BORN_MS),
    }
}

/// A message called `name` for a queue of `t`.
fn timed(queue: i32, due_ms: i64, name: &str) -> TimedMessage {
    let origin = origin().encode();
    let headers = [Header { key: ORIGIN_HEADER.as_bytes(), value: Some(origin.as_slice()) }];
    let (key, value) = (Some(name.as_bytes()), Some(&b"body"[..]));
    let record = LogRecord { timestamp: BORN_MS, key, value, headers: &headers };
    let mut payload = Vec::new();
    record.encode_payload(&mut payload);
    let message = StoredMessage { timestamp_ms: BORN_MS, payload: payload.into() };
    TimedMessage { due_ms, target: TopicPartition::new("t", queue), id: name.into(), message }
}

/// What stands in a queue of `t`.
async fn batches(node: &Node, queue: i32) -> Vec<(BatchHeader, DecodedBatch)> {
    let Some(topic) = node.controller.image().topic("t").cloned() else { return Vec::new() };
    let partition = node.partitions.find(topic.id, queue).expect("a partition");
    let reader = partition.reader().await.expect("a log");
    let (mut batches, mut offset, end) = (Vec::new(), 0, reader.log_end_offset());
    while offset < end {
        let read = reader.read(offset, 1 << 20, end, ReadMinimum::OneBatch).expect("sound");
        for batch in read.pieces.into_iter().flat_map(SharedBatches::new) {
            let (header, bytes) = batch.expect("a batch");
            let mut decompressor = Decompressor::default();
            let decoded = DecodedBatch::decode_verified(&bytes, &mut decompressor, 1 << 20);
            batches.push((header, decoded.expect("a batch")));
        }
        offset = read.next_offset;
    }
    batches
}

async fn names(node: &Node, queue: i32) -> Vec<String> {
    let batches = batches(node, queue).await;
    let records = batches.iter().flat_map(|(_, batch)| batch.iter());
    records.map(|record| String::from_utf8_lossy(record.key.expect("a key")).into_owned()).collect()
}

fn is_at_rest(node: &Node) -> bool {
    node.timers.waiting_count() == 0 && node.timers.on_their_way_count() == 0
}

#[tokio::test(flavor = "multi_thread")]
async fn due_messages_arrive_once_in_the_order_of_their_times_and_as_new_ones() {
    let node = TestNode::start(&["rocketmq.flushIntervalCommitLog=1"]).await;
    node.create_topic("t", &[]).await;
    node.listen();
    let now_ms = clock::now_ms();
    for (name, due_ms) in [("late", now_ms + 300), ("early", now_ms - 5), ("soon", now_ms + 150)] {
        node.node.timers.store(timed(1, due_ms, name)).await.expect("stored");
    }
    eventually("all have arrived", || is_at_rest(&node.node)).await;
    assert_eq!(names(&node.node, 1).await, ["early", "soon", "late"]);
    let (_, batch) = batches(&node.node, 1).await.pop().expect("a batch");
    let record = batch.iter().last().expect("a record");
    assert!(record.timestamp >= now_ms + 300, "not before its time");
    let header = record.headers.into_iter().find(|header| header.key == ORIGIN_HEADER.as_bytes());
    let value = header.and_then(|header| header.value).expect("an origin");
    let expected = Origin { store_timestamp_ms: record.timestamp, ..origin() };
    assert_eq!(Origin::decode(value), Some(expected));
    let fired = node.told.of(EventKind::DelayFire, "t");
    assert_eq!(
        fired.iter().filter_map(|event| event.offset).map(|o| o.0).collect::<Vec<_>>(),
        [0, 1, 2]
    );
    assert_eq!(node.told.of(EventKind::DelayStore, names::TIMER_TOPIC).len(), 3);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_gate_drops_or_fails_is_tried_again_and_what_it_holds_waits() {
    let node = TestNode::start(&["rocketmq.flushIntervalCommitLog=1"]).await;
    node.create_topic("t", &[]).await;
    for action in [GateAction::Drop, GateAction::Fail, GateAction::Hold] {
        let gate = node.arm(GatePoint::DelayFire, "t", action);
        node.node.timers.store(timed(0, 0, &format!("{action:?}"))).await.expect("stored");
        node.caught(gate).await;
        assert!(!is_at_rest(&node.node));
        node.node.instruments.release(gate);
        eventually("it has arrived", || is_at_rest(&node.node)).await;
    }
    assert_eq!(names(&node.node, 0).await, ["Drop", "Fail", "Hold"]);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_delivered_holds_nothing_up() {
    let node = TestNode::start(&["rocketmq.flushIntervalCommitLog=1"]).await;
    node.create_topic("t", &[("segment.bytes", "1048576")]).await;
    let mut large = timed(0, 0, "large");
    large.message.payload = Bytes::from(vec![0; 2_000_000]);
    let mut nowhere = timed(0, 0, "nowhere");
    nowhere.target = TopicPartition::new("no-such-topic", 0);
    for timed in [large, nowhere, timed(7, 0, "no such queue"), timed(0, 0, "small")] {
        // The log of timers takes what a batch may be; what is larger is refused at the door.
        let name = timed.target.clone();
        let stored = node.node.timers.store(timed).await;
        assert!(stored.is_ok() || name.partition == 0, "{stored:?}");
    }
    eventually("the others have arrived", || is_at_rest(&node.node)).await;
    assert_eq!(names(&node.node, 0).await, ["small"]);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recalled_message_never_arrives() {
    let node = TestNode::start(&["rocketmq.flushIntervalCommitLog=1"]).await;
    node.create_topic("t", &[]).await;
    let hold = node.arm(GatePoint::DelayFire, "t", GateAction::Hold);
    let due_ms = clock::now_ms() + 600_000;
    let timers = &node.node.timers;
    let recall = |name| timers.recall("t", name, (due_ms, due_ms + 1));
    assert_eq!(recall("a").await, Ok(false), "there is no log yet");
    for name in ["a", "b"] {
        timers.store(timed(0, due_ms, name)).await.expect("stored");
    }
    assert_eq!((recall("a").await, recall("a").await), (Ok(true), Ok(false)));
    assert_eq!(timers.waiting_count(), 1);
    node.node.instruments.release(hold);
    let disk = node.stop().await;
    let node = TestNode::start_on(disk, &[]).await;
    eventually("the log is read", || node.node.timers.waiting_count() == 1).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_cannot_be_read_is_read_later_though_nobody_asks() {
    let node = TestNode::start(&["rocketmq.flushIntervalCommitLog=1"]).await;
    node.create_topic("t", &[]).await;
    node.node.timers.store(timed(0, clock::now_ms() + 600_000, "a")).await.expect("stored");
    let disk = node.stop().await;
    let file = format!("/data/{}-0/00000000000000000000.log", names::TIMER_TOPIC);
    let path = Path::new(&file);
    let sound = disk.content(path).expect("a file");
    let mut damaged = sound.clone();
    *damaged.last_mut().expect("a batch") ^= 1;
    disk.overwrite(path, &damaged);
    let node = TestNode::start_on(disk.clone(), &[]).await;
    let shard = node.node.timers.courier.service.shard_at(0).expect("a coordinator");
    shard.ready().await;
    assert!(!shard.is_serving());
    disk.overwrite(path, &sound);
    eventually("the log is read", || node.node.timers.waiting_count() == 1).await;
    node.stop().await;
}

/// What was answered, and would be after a power cut.
type Kept = BTreeSet<String>;

const SETTINGS: &[&str] =
    &["rocketmq.flushIntervalCommitLog=1", "rocketmq.flushDiskType=SYNC_FLUSH"];

async fn start(disk: &MemDisk) -> Option<Arc<Node>> {
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    Node::start(config(SETTINGS), shared, Events::silent(NodeId(1))).await.ok()
}

/// Stores messages that are due at once and lets them be delivered, until the disk stops.
async fn deliver_until_halted(node: &Arc<Node>, disk: &MemDisk) -> Kept {
    use crate::config::topic::Overrides;
    use crate::controller::topics::{Door, IfExists, NewTopic};
    let overrides = Overrides::new();
    let topic = NewTopic { name: "t".into(), partitions: 2, overrides, door: Door::Kafka };
    let mut kept = Kept::new();
    if node.controller.create_topic(topic, IfExists::Return).await.is_err() {
        return kept;
    }
    for (queue, name) in [(0, "a"), (1, "b"), (0, "c")] {
        let work = async {
            let stored = node.timers.store(timed(queue, 0, name)).await.ok()?;
            stored.partition.synced_to(stored.offset + 1).await.ok()
        };
        let halted = eventually("the disk stops", || disk.is_halted());
        let is_kept = tokio::select! {
            kept = work => kept.is_some(),
            () = halted => false,
        };
        if is_kept {
            kept.insert(name.to_owned());
        }
    }
    eventually("all is delivered or the disk stops", || is_at_rest(node) || disk.is_halted()).await;
    kept
}

async fn check(disk: &MemDisk, kept: &Kept, what: &str) {
    let node = start(disk).await.expect("the next start finds sound logs");
    let mut found: Vec<String> = Vec::new();
    let began = std::time::Instant::now();
    loop {
        assert!(began.elapsed() < crate::testing::served::LIMIT, "{what}: {kept:?} but {found:?}");
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        if !is_at_rest(&node) {
            continue;
        }
        found = [names(&node, 0).await, names(&node, 1).await].concat();
        let different: BTreeSet<_> = found.iter().cloned().collect();
        assert_eq!(different.len(), found.len(), "{what}: twice in {found:?}");
        if different.is_superset(kept) {
            break;
        }
    }
    node.stopping.cancel();
}

/// Crashes at every call that changes the disk, the process alone or with the machine: each message
/// whose store was answered arrives once.
#[tokio::test(flavor = "multi_thread")]
async fn each_message_arrives_once_though_a_crash_comes_at_any_call() {
    let whole = MemDisk::new();
    let node = start(&whole).await.expect("starts");
    let begun = whole.operations();
    assert_eq!(deliver_until_halted(&node, &whole).await.len(), 3);
    let operations = whole.operations();
    node.stopping.cancel();
    let mut counts = BTreeSet::new();
    for operation in begun..operations {
        let disk = MemDisk::new();
        disk.fail_operation(operation, Fault::Halt);
        let Some(node) = start(&disk).await else { continue };
        let kept = deliver_until_halted(&node, &disk).await;
        counts.insert(kept.len());
        node.stopping.cancel();
        for how in [Crash::ForgetUnsynced, Crash::Seeded(operation), Crash::Seeded(!operation)] {
            check(&disk.crash(how), &kept, &format!("{operation} {how:?}")).await;
        }
        check(&disk.kill(), &kept, &format!("{operation} killed")).await;
    }
    assert!(counts.len() > 2, "the crashes came at different points: {counts:?}");
}
