//! Power cuts at every call that changes the disk, under both promises to have synced before the answer.

use std::sync::Arc;

use duolog_bridge::dispatch::Dispatched;
use duolog_bridge::remoting::{RemotingCommand, SerializeType};
use duolog_bridge::session::Door;
use duolog_log_core::event::Events;
use duolog_log_core::ids::NodeId;
use duolog_log_core::log::{AppendOrigin, ReadMinimum};
use duolog_log_core::record::batch::TimestampType;
use duolog_log_core::record::{DecodedBatch, Decompressor, SharedBatches};
use duolog_log_core::replication::partition::Acks;
use duolog_log_core::storage::disk::Disk;
use duolog_log_core::testing::mem_disk::{Crash, Fault, MemDisk};
use tokio::sync::mpsc;

use super::append::{AppendError, Flush, Payload};
use crate::bridge_backend::BridgeBackend;
use crate::node::Node;
use crate::testing::rocketmq::send_fields;
use crate::testing::served::{self, TestNode, batch};

mod damage;
mod dirs;
mod failing_dirs;
mod flushes;
mod stop;

const TOPIC: &str = "t";
const WRITES: usize = 6;
/// More calls than the writes of a run need; the search for the last one ends before.
const CALLS_MAX: u64 = 500;
const SEND_MESSAGE_V2: i32 = 310;

/// Who promises that an answer follows the fsync.
#[derive(Clone, Copy, Debug)]
enum Promise {
    /// `flush.messages=1`, for Kafka's producers.
    FlushMessages,
    /// `flushDiskType=SYNC_FLUSH`, for RocketMQ's.
    SyncFlush,
}

impl Promise {
    fn settings(self) -> &'static [&'static str] {
        match self {
            Self::FlushMessages => &[],
            Self::SyncFlush => &["rocketmq.flushDiskType=SYNC_FLUSH"],
        }
    }

    fn overrides(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::FlushMessages => &[("flush.messages", "1")],
            Self::SyncFlush => &[],
        }
    }

    /// Writes until the disk stops; returns the text of each acknowledged record at its offset.
    async fn write(self, node: &TestNode) -> Vec<(i64, String)> {
        match self {
            Self::FlushMessages => produce(node).await,
            Self::SyncFlush => send(node).await,
        }
    }
}

fn text(number: usize) -> String {
    format!("record {number}")
}

async fn produce(node: &TestNode) -> Vec<(i64, String)> {
    let mut acknowledged = Vec::new();
    let mut client = node.connect().await;
    for number in 0..WRITES {
        let text = text(number);
        let (code, offset) = client.produce(TOPIC, 1, batch(&[&text])).await;
        if code != 0 {
            break;
        }
        acknowledged.push((offset, text));
    }
    acknowledged
}

async fn send(node: &TestNode) -> Vec<(i64, String)> {
    let mut acknowledged = Vec::new();
    let address = ([127, 0, 0, 1], 10911).into();
    let dispatcher = BridgeBackend::dispatcher(node.node.clone(), address);
    let (outbox, _notices) = mpsc::channel(1);
    let session = dispatcher.open(Door::Broker, address, outbox);
    for number in 0..WRITES {
        let text = text(number);
        let fields = send_fields(TOPIC, &[("g", "1")]);
        let request = RemotingCommand::request(SEND_MESSAGE_V2, 1, SerializeType::Json)
            .with_body(text.clone().into_bytes());
        let request =
            fields.iter().fold(request, |request, (name, value)| request.with_field(name, value));
        let answer = match dispatcher.dispatch(&session, request) {
            Dispatched::Now(answer) => answer,
            Dispatched::Later(answer) => answer.await,
        };
        let answer = answer.expect("a send is answered").into_command();
        // 10 FLUSH_DISK_TIMEOUT says that the message is stored and not that it is safe.
        if answer.code != 0 {
            break;
        }
        acknowledged.push((answer.field("queueOffset").expect("an offset"), text));
    }
    acknowledged
}

/// Offset and value of every record of partition 0 after a start on `disk`.
async fn recovered(disk: &MemDisk, promise: Promise) -> Vec<(i64, String)> {
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let config = served::config(promise.settings());
    let node = Node::start(config, shared, Events::silent(NodeId(1))).await.expect("it starts");
    let topic = node.controller.image().topic(TOPIC).expect("created before the cut").id;
    let partition = node.partitions.find(topic, 0).expect("its partition");
    let reader = partition.reader().await.expect("a sound log");
    let end = reader.log_end_offset();
    let read = reader.read(0, usize::MAX >> 1, end, ReadMinimum::OneBatch).expect("readable");
    assert_eq!(read.next_offset, end, "all of it");
    let mut records = Vec::new();
    let mut decompressor = Decompressor::new();
    for batch in read.pieces.into_iter().flat_map(SharedBatches::new) {
        let (_, bytes) = batch.expect("whole batches");
        let decoded = DecodedBatch::decode(&bytes, &mut decompressor, 1 << 20).expect("sound");
        for record in &decoded {
            let value = String::from_utf8(record.value.unwrap_or_default().to_vec());
            records.push((record.offset, value.expect("text")));
        }
    }
    node.stopping.cancel();
    records
}

/// One run whose disk stops at its `call`-th change after the topic is there; returns how many writes were
/// acknowledged.
async fn cut_power_at(call: u64, promise: Promise) -> usize {
    let node = TestNode::start(promise.settings()).await;
    node.create_topic(TOPIC, promise.overrides()).await;
    let disk = node.disk.clone();
    disk.fail_operation(disk.operations() + call, Fault::Halt);
    let acknowledged = promise.write(&node).await;
    node.node.stopping.cancel();
    for how in [Crash::ForgetUnsynced, Crash::Seeded(call), Crash::Seeded(!call)] {
        let records = recovered(&disk.crash(how), promise).await;
        for record in &acknowledged {
            assert!(records.contains(record), "{promise:?}, call {call}, {how:?}: {record:?} lost");
        }
        for (at, (offset, value)) in records.iter().enumerate() {
            assert_eq!(*offset, i64::try_from(at).expect("few"), "offsets without a gap");
            assert_eq!(*value, text(at), "what is there is what was sent, in order");
        }
    }
    acknowledged.len()
}

async fn cut_power_at_every_call(promise: Promise) {
    let mut counts = std::collections::BTreeSet::new();
    for call in 0..CALLS_MAX {
        let acknowledged = cut_power_at(call, promise).await;
        counts.insert(acknowledged);
        if acknowledged == WRITES {
            assert_eq!(counts.len(), WRITES + 1, "cuts after every number of answers: {counts:?}");
            return;
        }
    }
    panic!("{CALLS_MAX} calls were not enough for {WRITES} writes");
}

#[tokio::test(flavor = "multi_thread")]
async fn flush_messages_1_loses_nothing_acknowledged_to_a_power_cut() {
    cut_power_at_every_call(Promise::FlushMessages).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sync_flush_loses_nothing_acknowledged_to_a_power_cut() {
    cut_power_at_every_call(Promise::SyncFlush).await;
}

/// The files at the top that a clean start trusts.
const CHECKPOINTS: [&str; 3] = [
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
];

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_appended_after_a_stop() {
    let node = TestNode::start(&[]).await;
    let topic = node.create_topic(TOPIC, &[]).await;
    let mut client = node.connect().await;
    assert_eq!(client.produce(TOPIC, 1, batch(&["v"])).await, (0, 0));
    let used = node.node.partitions.find(topic.id, 0).expect("a partition");
    let unused = node.node.partitions.find(topic.id, 1).expect("a partition");
    drop(client);
    let kept = node.node.clone();
    let disk = node.stop().await;
    let marker = std::path::Path::new("/data/.kafka_cleanshutdown");
    assert!(disk.content(marker).is_some());
    for partition in [&used, &unused] {
        let bytes = batch(&["late"]);
        let payload = Payload::Batch {
            record_count: 1,
            timestamp_type: TimestampType::CreateTime,
            max_timestamp: 0,
            origin: AppendOrigin::Client,
            bytes,
        };
        let answer = partition.append(payload, 100, Acks::Leader, Flush::Topic).await;
        let answer = answer.expect("a place").await.expect("an answer");
        assert_eq!(answer, Err(AppendError::Stopping));
    }
    assert!(used.reader().await.is_err(), "it is not opened again either");
    assert!(unused.reader().await.is_err(), "nor read as an empty one");
    kept.stop().await;
}

/// Whatever call of a stop fails: where the marker of a clean stop is, the checkpoints are too.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_is_called_clean_only_with_its_checkpoints() {
    let mut marked = 0;
    for after in 0..CALLS_MAX {
        let node = TestNode::start(&[]).await;
        node.create_topic(TOPIC, &[]).await;
        let mut client = node.connect().await;
        assert_eq!(client.produce(TOPIC, 1, batch(&["v"])).await, (0, 0));
        drop(client);
        let disk = node.disk.clone();
        let fails_at = disk.operations() + after;
        disk.fail_operation(fails_at, Fault::Io);
        let left = node.stop().await;
        let of = |name: &str| left.content(&std::path::Path::new("/data").join(name));
        if of(".kafka_cleanshutdown").is_some() {
            marked += 1;
            for name in CHECKPOINTS {
                let text = of(name).map(|bytes| String::from_utf8(bytes).expect("text"));
                let text = text.unwrap_or_else(|| panic!("{name} is missing, call {after} failed"));
                assert!(name.starts_with("log-start") || text.contains("t 0 1"), "{name}: {text}");
            }
        }
        if disk.operations() <= fails_at {
            break;
        }
    }
    assert!(marked > 0, "a stop without a fault is clean");
}
