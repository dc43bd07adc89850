use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use duolog_coordinator::group::event::OffsetFetch;
use duolog_log_core::ids::TopicId;
use duolog_log_core::log::{AppendOrigin, ReadMinimum};
use duolog_log_core::record::batch::TimestampType;
use duolog_log_core::record::{
    BatchParams, DecodedBatch, Decompressor, ProducerSequence, SharedBatches,
};
use duolog_log_core::replication::partition::Acks;
use duolog_log_core::storage::checkpoint::CLEANER_FILE;
use tempfile::TempDir;

use super::*;
use crate::config::args::ServeArgs;
use crate::controller::topics::{Door, IfExists, NewTopic};
use crate::partitions::append::{Flush, Payload};
use crate::testing::coordinator_of;
use crate::testing::served::batch_of;

mod again;
mod refusals;
mod transactions;

fn config(dir: &Path) -> Config {
    let args = ServeArgs { data_dir: Some(dir.to_owned()), ..ServeArgs::default() };
    Config::load(&args, std::iter::empty()).expect("settings")
}

/// Runs on a runtime of its own: what a node has spawned, and so its hold on the directory, ends with
/// it.
fn alone<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(work)
}

fn imported(to: &Path, from: &Path) -> Result<Report, ImportError> {
    imported_all(to, &[from])
}

fn imported_all(to: &Path, from: &[&Path]) -> Result<Report, ImportError> {
    let from: Vec<_> = from.iter().map(|dir| dir.to_path_buf()).collect();
    alone(run(config(to), &from))
}

/// A node of several log directories.
fn config_of(dirs: &[&Path]) -> Config {
    let dirs: Vec<_> = dirs.iter().map(|dir| dir.display().to_string()).collect();
    let assignments = vec![format!("log.dirs={}", dirs.join(","))];
    let args = ServeArgs { assignments, ..ServeArgs::default() };
    Config::load(&args, std::iter::empty()).expect("settings")
}

async fn try_start(dir: &Path) -> Result<Arc<Node>, StartError> {
    let disk = Arc::new(FileDisk::new(64, 16));
    Node::start(Arc::new(config(dir)), disk, Events::silent(NodeId(1))).await
}

async fn start(dir: &Path) -> Arc<Node> {
    try_start(dir).await.expect("a node")
}

async fn create(node: &Arc<Node>, name: &str, overrides: &[(&str, &str)]) -> TopicId {
    let overrides =
        overrides.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let topic = NewTopic { name: name.into(), partitions: 2, overrides, door: Door::Kafka };
    node.controller.create_topic(topic, IfExists::Refuse).await.expect("created").id
}

/// Appends one record of producer 4711 to partition 0; its offset.
async fn append(node: &Arc<Node>, topic: TopicId, sequence: i32) -> i64 {
    append_of(node, topic, 4711, sequence).await
}

async fn append_of(node: &Arc<Node>, topic: TopicId, producer: i64, sequence: i32) -> i64 {
    let producer = ProducerSequence {
        id: duolog_log_core::ids::ProducerId(producer),
        epoch: duolog_log_core::ids::ProducerEpoch(0),
        base_sequence: sequence,
    };
    let params = BatchParams { producer: Some(producer), ..BatchParams::default() };
    let bytes = batch_of(params, &["a value"]);
    let size = bytes.len();
    let payload = Payload::Batch {
        bytes,
        record_count: 1,
        timestamp_type: TimestampType::CreateTime,
        max_timestamp: crate::clock::now_ms(),
        origin: AppendOrigin::Client,
    };
    let partition = node.partitions.find(topic, 0).expect("a partition");
    let answer = partition.append(payload, size, Acks::All, Flush::Topic).await.expect("placed");
    answer.await.expect("an answer").expect("appended").base_offset
}

/// A source with a topic of three records, of which the first is deleted.
async fn source(dir: &Path) -> TopicId {
    let node = start(dir).await;
    let topic = create(&node, "orders", &[]).await;
    for sequence in 0..3 {
        append(&node, topic, sequence).await;
    }
    node.partitions.find(topic, 0).expect("it").delete_records(1).await.expect("deleted");
    node.stop().await;
    topic
}

fn folders() -> (TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().expect("a folder");
    let (from, to) = (dir.path().join("kafka"), dir.path().join("duolog"));
    (dir, from, to)
}

async fn has_all_positions(node: &Arc<Node>) {
    coordinator_of("readers", node).await;
    let asked = OffsetFetch { group: "readers".into(), member: None, topics: None };
    let positions = node.coordinators.fetch_offsets(asked).await.expect("positions");
    let all = positions.iter().flat_map(|topic| &topic.partitions);
    assert_eq!(all.map(|partition| partition.offset).sum::<i64>(), 15, "{positions:?}");
}

#[test]
fn topics_keep_ids_offsets_producers_and_epochs() {
    let (_dir, from, to) = folders();
    let topic = alone(source(&from));
    // As if that broker had been elected often.
    fs::write(from.join("orders-0/leader-epoch-checkpoint"), "0\n1\n57 0\n").expect("written");
    fs::create_dir(from.join("__transaction_state-3")).expect("made");
    fs::create_dir(from.join("gone-0.0123456789abcdef0123456789abcdef-delete")).expect("made");
    let report = imported(&to, &from).expect("imported");
    assert!(report.clean);
    let imported = &report.topics[0];
    assert_eq!((report.topics.len(), &*imported.topic, imported.partitions), (1, "orders", 1));
    assert_eq!(imported.id, topic.to_string());
    assert!(report.left_out.contains(&"__transaction_state-3".to_owned()), "{report:?}");
    alone(async {
        let node = start(&to).await;
        assert!(node.leader_epoch() > 57);
        assert!(node.controller.next_producer_id().await.expect("an id") > 4711);
        let partition = node.partitions.find(topic, 0).expect("a partition");
        let reader = partition.reader().await.expect("a log");
        let offsets = partition.offsets();
        assert_eq!((offsets.log_start, offsets.high_watermark, offsets.log_end), (1, 3, 3));
        let read = reader.read(1, 1 << 20, 3, ReadMinimum::OneBatch).expect("readable");
        assert_eq!(read.next_offset, 3);
        assert_eq!(append(&node, topic, 2).await, 2, "a repeated send is known");
        assert_eq!(append(&node, topic, 3).await, 3);
        node.stop().await;
    });
}

#[test]
fn what_was_compacted_there_is_compacted_here() {
    let (_dir, from, to) = folders();
    let topic = alone(source(&from));
    fs::write(from.join(CLEANER_FILE), "0\n1\norders 0 2\n").expect("written");
    imported(&to, &from).expect("imported");
    let checkpoint = fs::read_to_string(to.join(CLEANER_FILE)).expect("a checkpoint");
    assert_eq!(checkpoint, "0\n1\norders 0 2\n");
    alone(async {
        let node = start(&to).await;
        let image = node.controller.image().clone();
        assert!(image.topic_by_id(topic).expect("it").config.cleanup.compact);
        node.stop().await;
    });
}

/// A node that has run in `dir` once.
fn started_once(dir: &Path) {
    alone(async { start(dir).await.stop().await });
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry")) {
        let place = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &place);
        } else {
            fs::copy(entry.path(), place).expect("copied");
        }
    }
}

/// As if that broker had led in `epoch` when it wrote the batches in `log`. No CRC covers it.
fn write_epoch(log: &Path, epoch: i32) {
    let mut bytes = fs::read(log).expect("a log");
    let mut at = 0;
    while at < bytes.len() {
        bytes[at + 12..at + 16].copy_from_slice(&epoch.to_be_bytes());
        let size = i32::from_be_bytes(bytes[at + 8..at + 12].try_into().expect("four bytes"));
        at += 12 + usize::try_from(size).expect("a size");
    }
    fs::write(log, bytes).expect("written");
}

/// The log itself reads them there, and takes no earlier one.
#[test]
fn epochs_are_read_in_the_batches_where_no_file_says_them() {
    for file in [None, Some("0\n1\n57"), Some("0\n0\n")] {
        let (_dir, from, to) = folders();
        let topic = alone(source(&from));
        write_epoch(&from.join("orders-0/00000000000000000000.log"), 57);
        let epochs = from.join("orders-0/leader-epoch-checkpoint");
        match file {
            Some(text) => fs::write(&epochs, text).expect("written"),
            None => fs::remove_file(&epochs).expect("removed"),
        }
        imported(&to, &from).expect("imported");
        alone(async {
            let node = start(&to).await;
            assert!(node.leader_epoch() > 57);
            assert_eq!(append(&node, topic, 3).await, 3);
            node.stop().await;
        });
    }
}

/// Another log directory of the broker in `from`, with partition 3 of the topic.
fn second_dir(from: &Path) -> PathBuf {
    let second = from.with_file_name("second");
    copy(from, &second);
    fs::rename(second.join("orders-0"), second.join("orders-3")).expect("renamed");
    for file in looking::CHECKPOINTS.map(|file| second.join(file)).iter().filter(|f| f.exists()) {
        let text = fs::read_to_string(file).expect("text");
        fs::write(file, text.replace("orders 0 ", "orders 3 ")).expect("written");
    }
    second
}

#[test]
fn a_brokers_log_directories_are_taken_over_together_or_one_after_the_other() {
    let (_dir, from, to) = folders();
    let topic = alone(source(&from));
    let second = second_dir(&from);
    let check = |to: &Path| {
        alone(async {
            let node = start(to).await;
            for (index, place) in [(0, "orders-0"), (3, "orders-3")] {
                let partition = node.partitions.find(topic, index).expect("a partition");
                partition.reader().await.expect("a log");
                let offsets = partition.offsets();
                assert_eq!((offsets.log_start, offsets.log_end), (1, 3), "{index}");
                assert!(to.join(place).exists());
            }
            assert_eq!(node.partitions.of_topic(topic).expect("it").len(), 4);
            node.stop().await;
        });
    };
    let report = imported_all(&to, &[&from, &second, &from]).expect("imported");
    assert_eq!((report.topics[0].partitions, &*report.topics[0].missing), (4, [1, 2].as_slice()));
    check(&to);

    let other = to.with_file_name("other");
    assert!(imported(&other, &from).expect("imported").topics[0].missing.is_empty());
    let report = imported(&other, &second).expect("imported");
    assert_eq!((report.topics[0].partitions, &*report.topics[0].missing), (4, [1, 2].as_slice()));
    check(&other);
    assert_eq!(imported(&other, &from).expect("nothing to do").topics[0].partitions, 4);

    copy(&from.join("orders-0"), &second.join("orders-0"));
    let refused = imported_all(&to, &[&from, &second]).expect_err("twice").to_string();
    assert!(refused.contains("orders-0 is the same partition"), "{refused}");
}

/// The coordinators of the importing node would have forgotten them before their topic was there.
#[test]
fn positions_wait_for_the_topics_of_another_log_directory() {
    let (_dir, from, to) = folders();
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/kafka-log-dir"), &from);
    let second = from.with_file_name("second");
    copy(&from, &second);
    for (dir, prefix) in [(&from, "orders"), (&second, "__consumer_offsets")] {
        for entry in fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("an entry")) {
            if entry.file_name().to_string_lossy().starts_with(prefix) {
                fs::remove_dir_all(entry.path()).expect("removed");
            }
        }
    }
    fs::remove_dir_all(second.join("table-0")).expect("removed");
    imported(&to, &from).expect("imported");
    imported(&to, &second).expect("imported");
    alone(async {
        let node = start(&to).await;
        has_all_positions(&node).await;
        node.stop().await;
    });
}

/// Keys and values by offset.
async fn records(node: &Arc<Node>, topic: &str, partition: i32) -> Vec<(i64, String, String)> {
    let id = node.controller.image().topic(topic).expect("imported").id;
    let partition = node.partitions.find(id, partition).expect("a partition");
    let reader = partition.reader().await.expect("a log");
    let (mut next, end) = (reader.log_start_offset(), reader.log_end_offset());
    let text = |bytes: Option<&[u8]>| String::from_utf8(bytes.unwrap_or_default().to_vec());
    let mut found = Vec::new();
    while next < end {
        let read = reader.read(next, 1 << 20, end, ReadMinimum::OneBatch).expect("readable");
        next = read.next_offset;
        for (_, batch) in read.pieces.into_iter().flat_map(SharedBatches::new).map(Result::unwrap) {
            let batch = DecodedBatch::decode(&batch, &mut Decompressor::new(), 1 << 20);
            found.extend(batch.expect("a batch").iter().map(|record| {
                let (key, value) = (text(record.key), text(record.value));
                (record.offset, key.expect("text"), value.expect("text"))
            }));
        }
    }
    found
}

/// tests/golden/kafka-log-dir: what a real broker has written, compacted and left.
#[test]
fn a_real_brokers_folder_is_served_with_its_groups() {
    let (_dir, from, to) = folders();
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/kafka-log-dir"), &from);
    let report = imported(&to, &from).expect("imported");
    let topics: Vec<_> =
        report.topics.iter().map(|topic| (&*topic.topic, topic.partitions)).collect();
    assert_eq!(topics, [("__consumer_offsets", 1), ("orders", 2), ("table", 1)]);
    assert!(report.clean && report.topics.iter().all(|topic| topic.missing.is_empty()));
    assert!(!to.join("table-0/00000000000000000002.log.deleted").exists());
    alone(async {
        let node = start(&to).await;
        let (first, second) =
            (records(&node, "orders", 0).await, records(&node, "orders", 1).await);
        assert_eq!((first.len(), second.len()), (12, 8));
        assert_eq!(
            first.iter().map(|record| record.0).collect::<Vec<_>>(),
            (0..12).collect::<Vec<_>>()
        );
        let mut values: Vec<_> =
            first.into_iter().chain(second).map(|(_, key, value)| (key, value)).collect();
        values.sort();
        let mut expected: Vec<_> =
            (1..=20).map(|i| (format!("k{i}"), format!("value {i}"))).collect();
        expected.sort();
        assert_eq!(values, expected);
        let table = records(&node, "table", 0).await;
        let newest: BTreeMap<_, _> =
            table.iter().map(|(_, key, value)| (&**key, &**value)).collect();
        assert_eq!(newest, BTreeMap::from([("a", "6"), ("b", "6")]));
        assert!(table.len() < 12, "the broker has compacted it");
        let image = node.controller.image().clone();
        assert!(image.topic("table").expect("it").config.cleanup.compact);
        assert!(image.topic("__consumer_offsets").expect("it").internal);
        drop(image);
        has_all_positions(&node).await;
        node.stop().await;
    });
}

/// Without the mark of a clean stop every log is read through, and the rest stays.
#[test]
fn a_broker_that_was_killed_is_taken_over_too() {
    let (_dir, from, to) = folders();
    let topic = alone(source(&from));
    fs::remove_file(from.join(CLEAN_SHUTDOWN_FILE)).expect("removed");
    let log = from.join("orders-0/00000000000000000000.log");
    let mut torn = fs::read(&log).expect("a log");
    torn.extend_from_slice(&[0; 40]);
    fs::write(&log, torn).expect("written");
    assert!(!imported(&to, &from).expect("imported").clean);
    assert!(!to.join(CLEAN_SHUTDOWN_FILE).exists());
    alone(async {
        let node = start(&to).await;
        let partition = node.partitions.find(topic, 0).expect("a partition");
        partition.reader().await.expect("a log");
        assert_eq!(partition.offsets().log_end, 3);
        node.stop().await;
    });
}
