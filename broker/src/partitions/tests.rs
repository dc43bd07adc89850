//! Power cuts at every call that changes the disk, under both promises to have synced before the answer.

use std::sync::Arc;

use duolog_bridge::dispatch::Dispatched;
use duolog_bridge::remoting::{RemotingCommand, SerializeType};
use duolog_bridge::session::Door;
use duolog_log_core::event::Events;
use duolog_log_core::ids::NodeId;
use duolog_log_core::log::ReadMinimum;
use duolog_log_core::record::{DecodedBatch, Decompressor, SharedBatches};
use duolog_log_core::storage::disk::Disk;
use duolog_log_core::testing::mem_disk::{Crash, Fault, MemDisk};
use tokio::sync::mpsc;

use crate::bridge_backend::BridgeBackend;
use crate::node::Node;
use crate::testing::served::{self, TestNode, batch};

const TOPIC: &str = "t";
const WRITES: usize = 6;
/// More calls than the writes of a run need; the search for the last one ends before.
const CALLS_MAX: u64 = 500;
const SEND_MESSAGE_V2: i32 = 310;

/// Who promises that an answer follows the fsync (design rule 4).
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
        let fields = [
            ("a", "producers"),
            ("b", TOPIC),
            ("c", "TBW102"),
            ("d", "4"),
            ("e", "0"),
            ("f", "0"),
            ("g", "1"),
            ("h", "0"),
        ];
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
