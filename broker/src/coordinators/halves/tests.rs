//! Half messages on a node whose disk fails, and whose gates hold.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use duolog_bridge::translate::origin::{ORIGIN_HEADER, Origin};
use duolog_log_core::event::{EventKind, Events};
use duolog_log_core::gate::{GateAction, GatePoint};
use duolog_log_core::ids::NodeId;
use duolog_log_core::log::ReadMinimum;
use duolog_log_core::record::{
    DecodedBatch, Decompressor, Header, NewRecord as LogRecord, SharedBatches,
};
use duolog_log_core::storage::disk::Disk;
use duolog_log_core::testing::mem_disk::{Crash, Fault, MemDisk};

use super::*;
use crate::clock;
use crate::config::topic::Overrides;
use crate::controller::topics::{Door, IfExists, NewTopic};
use crate::node::Node;
use crate::testing::served::{LIMIT, TestNode, config, eventually};

const BORN_MS: i64 = 1_234;

fn origin() -> Origin {
    Origin {
        flag: 1,
        sys_flag: 8,
        born_host: "10.0.0.1:7".parse().expect("an address"),
        store_timestamp_ms: 5,
        reconsume_times: 0,
        born_timestamp_ms: Some(BORN_MS),
    }
}

fn target(queue: i32) -> TopicPartition {
    TopicPartition::new("t", queue)
}

/// A message called `name` for a queue of `t`.
fn half(queue: i32, name: &str, body: &[u8]) -> HalfMessage {
    let origin = origin().encode();
    let headers = [Header { key: ORIGIN_HEADER.as_bytes(), value: Some(origin.as_slice()) }];
    let (key, value) = (Some(name.as_bytes()), Some(body));
    let record = LogRecord { timestamp: BORN_MS, key, value, headers: &headers };
    let mut payload = Vec::new();
    record.encode_payload(&mut payload);
    HalfMessage {
        target: target(queue),
        group: "p".into(),
        client: "c".into(),
        immunity: Immunity::Default,
        born_ms: clock::now_ms(),
        message: StoredMessage { timestamp_ms: BORN_MS, payload: payload.into() },
    }
}

async fn batches(node: &Node, queue: i32) -> Vec<DecodedBatch> {
    let Some(topic) = node.controller.image().topic("t").cloned() else { return Vec::new() };
    let partition = node.partitions.find(topic.id, queue).expect("a partition");
    let reader = partition.reader().await.expect("a log");
    let (mut batches, mut offset) = (Vec::new(), 0);
    while offset < reader.log_end_offset() {
        let end = reader.log_end_offset();
        let read = reader.read(offset, 1 << 20, end, ReadMinimum::OneBatch).expect("a batch");
        for batch in read.pieces.into_iter().flat_map(SharedBatches::new) {
            let (_, bytes) = batch.expect("a batch");
            let decoded = DecodedBatch::decode_verified(&bytes, &mut Decompressor::new(), 1 << 24);
            batches.push(decoded.expect("a sound batch"));
        }
        offset = read.next_offset;
    }
    batches
}

async fn names(node: &Node, queue: i32) -> Vec<String> {
    let batches = batches(node, queue).await;
    let records = batches.iter().flat_map(DecodedBatch::iter);
    records.map(|record| String::from_utf8_lossy(record.key.expect("a key")).into_owned()).collect()
}

async fn store(node: &Node, half: HalfMessage) -> (i32, i64) {
    let stored = node.halves.store(half).await.expect("stored");
    (stored.partition.index, stored.offset)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_committed_message_is_in_its_queue_without_a_gap_and_others_are_nowhere() {
    let node = TestNode::start(&["rocketmq.flushIntervalCommitLog=1"]).await;
    node.create_topic("t", &[]).await;
    node.listen();
    let halves = &node.node.halves;
    let mut stored = Vec::new();
    for name in ["a", "b", "c", "open"] {
        stored.push(store(&node.node, half(1, name, b"body")).await);
    }
    let before_ms = clock::now_ms();
    let [(index, a), (_, b), (_, c), _] = stored[..] else { panic!("four") };
    assert_eq!(halves.end(index, c, Ending::Commit(target(1))).await, Ok(true));
    assert_eq!(halves.end(index, b, Ending::Rollback).await, Ok(true));
    assert_eq!(halves.end(index, a, Ending::Commit(target(1))).await, Ok(true));
    assert_eq!(halves.end(index, a, Ending::Commit(target(1))).await, Ok(false));
    assert_eq!(halves.end(index, 999, Ending::Rollback).await, Ok(false));
    eventually("both have arrived", || halves.on_their_way_count() == 0).await;
    assert_eq!(names(&node.node, 1).await, ["c", "a"], "in the order of the decisions");
    assert_eq!(halves.open_count(), 1);
    let offsets = node.partition("t", 1).offsets();
    assert_eq!((offsets.last_stable, offsets.log_end), (2, 2), "no marker, and nothing held up");
    let batch = batches(&node.node, 1).await.pop().expect("a batch");
    let record = batch.iter().last().expect("a record");
    assert_eq!(record.timestamp, BORN_MS, "when it was made");
    let header = record.headers.into_iter().find(|header| header.key == ORIGIN_HEADER.as_bytes());
    let read = Origin::decode(header.and_then(|header| header.value).expect("an origin"));
    let read = read.expect("an origin");
    assert!(read.store_timestamp_ms >= before_ms, "when it came to its queue");
    assert_eq!(read, Origin { store_timestamp_ms: read.store_timestamp_ms, ..origin() });
    assert_eq!(node.told.of(EventKind::HalfDeliver, "t").len(), 2);
    let found = halves.find(index, &[a, b, 3, 77]).await.expect("read");
    let names: Vec<bool> = found.iter().map(Option::is_some).collect();
    assert_eq!(names, [true, true, true, false], "settled ones are found while they are there");
    node.stop().await;
}

/// `maxMessageSize` binds them, not a batch's limit.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_message_is_stored_and_delivered() {
    let node = TestNode::start(&["rocketmq.flushIntervalCommitLog=1"]).await;
    node.create_topic("t", &[]).await;
    let body = vec![7; 4 * 1024 * 1024];
    let (index, offset) = store(&node.node, half(0, "large", &body)).await;
    let halves = &node.node.halves;
    assert_eq!(halves.end(index, offset, Ending::Commit(target(0))).await, Ok(true));
    eventually("it has arrived", || halves.on_their_way_count() == 0).await;
    assert_eq!(names(&node.node, 0).await, ["large"]);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_gate_drops_or_fails_is_tried_again_and_what_it_holds_waits() {
    let node = TestNode::start(&["rocketmq.flushIntervalCommitLog=1"]).await;
    node.create_topic("t", &[]).await;
    let halves = &node.node.halves;
    for action in [GateAction::Drop, GateAction::Fail, GateAction::Hold] {
        let gate = node.arm(GatePoint::HalfDeliver, "t", action);
        let (index, offset) = store(&node.node, half(0, &format!("{action:?}"), b"x")).await;
        assert_eq!(halves.end(index, offset, Ending::Commit(target(0))).await, Ok(true));
        node.caught(gate).await;
        assert_eq!(halves.on_their_way_count(), 1);
        node.node.instruments.release(gate);
        eventually("it has arrived", || halves.on_their_way_count() == 0).await;
    }
    assert_eq!(names(&node.node, 0).await, ["Drop", "Fail", "Hold"]);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_is_gone_holds_no_other_up() {
    let node = TestNode::start(&["rocketmq.flushIntervalCommitLog=1"]).await;
    node.create_topic("t", &[]).await;
    let halves = &node.node.halves;
    let mut nowhere = half(0, "nowhere", b"x");
    nowhere.target = TopicPartition::new("gone", 0);
    for half in [nowhere, half(7, "no such queue", b"x"), half(0, "here", b"x")] {
        let target = half.target.clone();
        let (index, offset) = store(&node.node, half).await;
        assert_eq!(halves.end(index, offset, Ending::Commit(target)).await, Ok(true));
    }
    eventually("all are settled", || halves.on_their_way_count() == 0).await;
    assert_eq!(names(&node.node, 0).await, ["here"]);
    node.stop().await;
}

/// Each key that the coordinators act on, by a value that is not its default.
#[tokio::test(flavor = "multi_thread")]
async fn the_nodes_keys_reach_the_coordinators() {
    let node = TestNode::start(&[
        "rocketmq.transactionTimeOut=7000",
        "rocketmq.transactionCheckInterval=2",
        "rocketmq.transactionCheckMax=3",
    ])
    .await;
    let config = node.node.config.rocketmq.checks;
    let expected =
        CheckConfig { timeout_ms: 7000, interval_ms: 2, times_max: 3, age_max_ms: 72 * 3_600_000 };
    assert_eq!(config, expected);
    let halves = &node.node.halves;
    assert_eq!(halves.unasked_ms(Immunity::Seconds(1)), Some(7000));
    assert_eq!(halves.unasked_ms(Immunity::Seconds(9)), Some(9000));
    assert_eq!(halves.unasked_ms(Immunity::Unreadable), Some(7000));
    assert_eq!(halves.unasked_ms(Immunity::Default), None);
    let asked = Arc::new(Rounds::default());
    halves.set_checks(asked.clone());
    let (index, _) = store(&node.node, half(0, "a", b"x")).await;
    eventually("rounds come", || asked.0.lock().len() > 2).await;
    assert!(asked.0.lock().iter().all(|of| *of == index));
    node.stop().await;
}

#[derive(Default)]
struct Rounds(parking_lot::Mutex<Vec<i32>>);

impl CheckSink for Rounds {
    fn round(&self, index: i32) {
        self.0.lock().push(index);
    }
}

const SETTINGS: &[&str] =
    &["rocketmq.flushIntervalCommitLog=1", "rocketmq.flushDiskType=SYNC_FLUSH"];

async fn start(disk: &MemDisk) -> Option<Arc<Node>> {
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    Node::start(config(SETTINGS), shared, Events::silent(NodeId(1))).await.ok()
}

/// What a client was told, and would be true after a power cut.
#[derive(Debug, Default)]
struct Told {
    /// Where each message lies.
    stored: BTreeMap<&'static str, (i32, i64)>,
    /// Whether it is committed.
    ended: BTreeMap<&'static str, bool>,
    /// Whose end was asked for, with or without an answer.
    asked: BTreeSet<&'static str>,
}

/// Stores messages and ends them, until the disk stops.
async fn work_until_halted(node: &Arc<Node>, disk: &MemDisk) -> Told {
    let overrides = Overrides::new();
    let topic = NewTopic { name: "t".into(), partitions: 2, overrides, door: Door::Kafka };
    let mut told = Told::default();
    if node.controller.create_topic(topic, IfExists::Return).await.is_err() {
        return told;
    }
    let work = async {
        for (queue, name, commit) in
            [(0, "a", Some(true)), (1, "b", Some(false)), (0, "c", None), (0, "d", Some(true))]
        {
            let Ok(stored) = node.halves.store(half(queue, name, b"x")).await else { return };
            let (log, offset) = (stored.partition, stored.offset);
            if log.synced_to(offset + 1).await.is_err() {
                return;
            }
            told.stored.insert(name, (log.index, offset));
            let Some(commit) = commit else { continue };
            told.asked.insert(name);
            let ending = if commit { Ending::Commit(target(queue)) } else { Ending::Rollback };
            if node.halves.end(log.index, offset, ending).await.is_err()
                || log.synced_to(log.offsets().log_end).await.is_err()
            {
                return;
            }
            told.ended.insert(name, commit);
        }
    };
    tokio::select! {
        () = work => {}
        () = eventually("the disk stops", || disk.is_halted()) => return told,
    }
    let is_over = || node.halves.on_their_way_count() == 0 || disk.is_halted();
    eventually("all is delivered or the disk stops", is_over).await;
    told
}

async fn check(disk: &MemDisk, told: &Told, what: &str) {
    let node = start(disk).await.expect("the next start finds sound logs");
    for (name, (index, offset)) in &told.stored {
        let found = node.halves.find(*index, &[*offset]).await;
        assert!(found.is_ok_and(|found| found[0].is_some()), "{what}: {name} is not found");
    }
    let is_loaded = || {
        node.halves
            .courier
            .service
            .present()
            .is_none_or(|shards| shards.all.iter().all(|shard| shard.is_serving()))
    };
    eventually("the logs are read", is_loaded).await;
    eventually("all is delivered", || node.halves.on_their_way_count() == 0).await;
    let seen = [names(&node, 0).await, names(&node, 1).await].concat();
    for name in ["a", "b", "c", "d"] {
        let times = seen.iter().filter(|seen| *seen == name).count();
        match told.ended.get(name) {
            Some(true) => assert_eq!(times, 1, "{what}: {name}, committed, of {seen:?}"),
            Some(false) => assert_eq!(times, 0, "{what}: {name}, rolled back"),
            None if told.asked.contains(name) && name != "b" => {
                assert!(times <= 1, "{what}: {name}")
            }
            None => assert_eq!(times, 0, "{what}: {name} is open"),
        }
    }
    // What is open can still be ended.
    if let Some((index, offset)) = told.stored.get("c") {
        let commit = Ending::Commit(target(1));
        assert_eq!(node.halves.end(*index, *offset, commit).await, Ok(true), "{what}");
        eventually("it is delivered", || node.halves.on_their_way_count() == 0).await;
        assert_eq!(names(&node, 1).await, ["c"], "{what}");
    }
    node.stopping.cancel();
}

/// Crashes at every call that changes the disk, the process alone or with the machine: what was
/// committed is there once, and nothing else is.
#[tokio::test(flavor = "multi_thread")]
async fn each_message_ends_as_was_said_though_a_crash_comes_at_any_call() {
    let whole = MemDisk::new();
    let node = start(&whole).await.expect("starts");
    let begun = whole.operations();
    assert_eq!(work_until_halted(&node, &whole).await.ended.len(), 3);
    let operations = whole.operations();
    node.stopping.cancel();
    let mut counts = BTreeSet::new();
    for operation in begun..operations {
        let disk = MemDisk::new();
        disk.fail_operation(operation, Fault::Halt);
        let Some(node) = start(&disk).await else { continue };
        let told = tokio::time::timeout(LIMIT, work_until_halted(&node, &disk)).await;
        let told = told.expect("it ends");
        counts.insert((told.stored.len(), told.ended.len()));
        node.stopping.cancel();
        for how in [Crash::ForgetUnsynced, Crash::Seeded(operation)] {
            check(&disk.crash(how), &told, &format!("{operation} {how:?}")).await;
        }
        check(&disk.kill(), &told, &format!("{operation} killed")).await;
    }
    assert!(counts.len() > 3, "the crashes came at different points: {counts:?}");
}

/// A message without a body that can be read is left out, and told of; it holds nothing up.
#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_no_record_are_no_message() {
    let node = TestNode::start(&["rocketmq.flushIntervalCommitLog=1"]).await;
    node.create_topic("t", &[]).await;
    let mut empty = half(0, "empty", b"x");
    empty.message.payload = Bytes::new();
    let halves = &node.node.halves;
    let (index, offset) = store(&node.node, empty).await;
    let found = halves.find(index, &[offset]).await.expect("read");
    assert!(found[0].as_ref().is_some_and(|half| half.message.payload.is_empty()));
    assert_eq!(halves.end(index, offset, Ending::Rollback).await, Ok(true));
    assert_eq!(halves.open_count(), 0);
    node.stop().await;
}
