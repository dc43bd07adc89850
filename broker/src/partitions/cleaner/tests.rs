use std::collections::BTreeMap;
use std::path::Path;

use bytes::BytesMut;
use duolog_log_core::log::ReadMinimum;
use duolog_log_core::record::{
    BatchBuilder, BatchParams, DecodedBatch, Decompressor, NewRecord, SharedBatches,
};
use duolog_log_core::storage::disk::Disk;

use super::*;
use crate::testing::coordinator_of;
use crate::testing::served::{Client, TestNode, batch, eventually};

const SETTINGS: [&str; 2] = ["log.cleaner.backoff.ms=10", "log.cleaner.threads=2"];

/// Everything that is new is compacted.
const COMPACTED: [(&str, &str); 2] =
    [("cleanup.policy", "compact"), ("min.cleanable.dirty.ratio", "0.0")];

fn keyed(key: &str, value: Option<&str>) -> BytesMut {
    let mut builder = BatchBuilder::new(BatchParams::default());
    let (key, value) = (Some(key.as_bytes()), value.map(str::as_bytes));
    let timestamp = crate::clock::now_ms();
    builder.append(&NewRecord { timestamp, key, value, headers: &[] }).expect("a small batch");
    builder.finish_uncompressed().expect("records")
}

/// Offset and value of each record, by what a reader from the start sees.
fn content(partition: &Partition) -> Vec<(i64, String)> {
    let reader = partition.open_reader().expect("open");
    let (mut found, mut next) = (Vec::new(), reader.log_start_offset());
    let mut decompressor = Decompressor::new();
    loop {
        let read = reader.read(next, 1 << 20, i64::MAX, ReadMinimum::OneBatch).expect("readable");
        if read.pieces.is_empty() {
            return found;
        }
        next = read.next_offset;
        for (_, bytes) in read.pieces.into_iter().flat_map(SharedBatches::new).map(Result::unwrap) {
            let decoded = DecodedBatch::decode(&bytes, &mut decompressor, 8 << 20).expect("whole");
            found.extend(decoded.iter().map(|record| {
                let value = record.value.unwrap_or_default().to_vec();
                (record.offset, String::from_utf8(value).expect("text"))
            }));
        }
    }
}

/// Ten keys, thirty values, sealed.
async fn fill(client: &mut Client, partition: &Arc<Partition>) {
    for i in 0..30 {
        let record = keyed(&format!("{}", i % 10), Some(&format!("value {i}")));
        assert_eq!(client.produce(&partition.topic, 1, record).await.0, 0);
    }
    partition.roll().await.expect("rolled");
}

fn newest() -> Vec<(i64, String)> {
    (20..30).map(|i| (i, format!("value {i}"))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compacted_topic_keeps_the_newest_of_each_key_over_restarts() {
    let node = TestNode::start(&SETTINGS).await;
    let topic = node.create_topic("t", &COMPACTED).await;
    let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
    let mut client = node.connect().await;
    node.listen();
    fill(&mut client, &partition).await;
    // The newest batches are in memory as they were written; the files have the rest.
    partition.command(Command::Rest);
    eventually("compacted", || content(&partition) == newest()).await;
    eventually("told", || node.told.of(EventKind::LogCompact, "t").len() == 1).await;
    let file = Path::new("/data/cleaner-offset-checkpoint");
    assert_eq!(node.disk.content(file), Some(b"0\n1\nt 0 30\n".to_vec()));
    let refused = client.produce("t", 1, batch(&["without a key"])).await;
    assert_eq!(refused.0, 87, "INVALID_RECORD");
    assert_eq!(client.produce("t", 1, keyed("0", None)).await, (0, 30));
    let disk = node.stop().await;
    let node = TestNode::start_on(disk, &SETTINGS).await;
    let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
    partition.reader().await.expect("a log");
    assert_eq!(partition.cleaned_to(), Some(30));
    partition.roll().await.expect("rolled");
    let mut expected = newest();
    expected.remove(0);
    expected.push((30, String::new()));
    eventually("compacted again", || content(&partition) == expected).await;
    // A topic of the same name is another one.
    node.node.delete_topic(topic.id).await.expect("deleted");
    assert_eq!(node.disk.content(file), Some(b"0\n0\n".to_vec()));
    let again = node.create_topic("t", &COMPACTED).await;
    let partition = node.node.partitions.find(again.id, 0).expect("a partition");
    assert_eq!(partition.cleaned_to(), None);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn compaction_begins_and_ends_with_the_topics_policy() {
    let node = TestNode::start(&SETTINGS).await;
    let topic = node.create_topic("t", &[("min.cleanable.dirty.ratio", "0.0")]).await;
    let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
    let mut client = node.connect().await;
    fill(&mut client, &partition).await;
    assert!(!partition.may_be_dirty());
    let set = |value: &str| {
        let change = crate::config::change::Change::Set(value.to_owned());
        vec![("cleanup.policy".to_owned(), change)]
    };
    let controller = &node.node.controller;
    controller.alter_topic_config(topic.id, set("compact,delete")).await.expect("altered");
    partition.command(Command::Rest);
    eventually("compacted", || content(&partition) == newest()).await;
    controller.alter_topic_config(topic.id, set("delete")).await.expect("altered");
    fill(&mut client, &partition).await;
    assert!(!partition.may_be_dirty());
    assert!(matches!(partition.plan_compaction().await, Ok(None)));
    assert_eq!(content(&partition).len(), 40);
    // Its gaps are no damage, though the policy knows of none.
    let disk = node.disk.kill();
    drop(node);
    let node = TestNode::start_on(disk, &SETTINGS).await;
    let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
    partition.reader().await.expect("a log");
    assert_eq!(content(&partition).len(), 40);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_compacted_where_it_is_switched_off() {
    let settings = ["log.cleaner.enable=false", "log.cleaner.backoff.ms=1"];
    let node = TestNode::start(&settings).await;
    let topic = node.create_topic("t", &COMPACTED).await;
    let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
    fill(&mut node.connect().await, &partition).await;
    for _ in 0..50 {
        node.connect().await.ping().await;
    }
    assert_eq!(partition.cleaned_to(), None);
    // It is due all the same.
    let settings = Settings::of(node.node.controller.image().values());
    assert_eq!(clean_dirtiest(&node.node, settings, &Arc::default()).await, 1);
    assert_eq!(partition.cleaned_to(), Some(30));
    node.stop().await;
}

/// Case B32: one log that cannot be read does not keep the others from being compacted.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_log_is_told_of_and_the_others_go_on() {
    let node = TestNode::start(&["log.cleaner.backoff.ms=10"]).await;
    let (mut all, mut client) = (Vec::new(), node.connect().await);
    for name in ["bad", "good", "large"] {
        let topic = node.create_topic(name, &[("max.message.bytes", "4194304")]).await;
        let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
        if name == "large" {
            let large = keyed("1", Some(&"x".repeat(3 << 20)));
            assert_eq!(client.produce(name, 1, large).await.0, 0);
        }
        fill(&mut client, &partition).await;
        all.push((topic, partition));
    }
    let path = all[0].1.dir().join("00000000000000000000.log");
    let mut bytes = node.disk.content(&path).expect("a file");
    *bytes.last_mut().expect("bytes") ^= 1;
    node.disk.overwrite(&path, &bytes);
    for (topic, partition) in &all {
        let set = |key: &str, value: &str| {
            (key.to_owned(), crate::config::change::Change::Set(value.to_owned()))
        };
        let changes = vec![
            set("cleanup.policy", "compact"),
            set("min.cleanable.dirty.ratio", "0.0"),
            set("max.message.bytes", "102400"),
        ];
        node.node.controller.alter_topic_config(topic.id, changes).await.expect("altered");
        partition.command(Command::Rest);
    }
    eventually("compacted", || content(&all[1].1) == newest()).await;
    let shifted: Vec<_> = newest().into_iter().map(|(at, value)| (at + 1, value)).collect();
    eventually("compacted", || content(&all[2].1) == shifted).await;
    eventually("left alone", || all[0].1.uncleanable.load(Ordering::Acquire)).await;
    assert_eq!(node.disk.content(&path), Some(bytes));
    node.stop().await;
}

/// The map's size, its load and the pace are settings of the running node.
#[tokio::test(flavor = "multi_thread")]
async fn a_small_map_and_a_slow_pace_only_take_longer() {
    let settings = [
        "log.cleaner.backoff.ms=10",
        "log.cleaner.dedupe.buffer.size=240",
        "log.cleaner.io.buffer.load.factor=0.5",
        "log.cleaner.io.max.bytes.per.second=100000000",
    ];
    let node = TestNode::start(&settings).await;
    let values = node.node.controller.image().values().clone();
    let read = Settings::of(&values);
    assert_eq!((read.memory_bytes, read.load_factor), (240, 0.5));
    let topic = node.create_topic("t", &COMPACTED).await;
    let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
    fill(&mut node.connect().await, &partition).await;
    partition.command(Command::Rest);
    eventually("all of it", || partition.cleaned_to() == Some(30)).await;
    let left: BTreeMap<_, _> = content(&partition).into_iter().collect();
    assert!(newest().iter().all(|(offset, value)| left.get(offset) == Some(value)));
    node.stop().await;
}

#[test]
fn what_is_read_and_written_is_paid_for_by_time() {
    let (throttle, now) = (Throttle::default(), Instant::now());
    assert_eq!(throttle.wait(1000, 1000.0, now), Duration::from_secs(1));
    assert_eq!(throttle.wait(500, 1000.0, now), Duration::from_millis(1500));
    let later = now + Duration::from_secs(10);
    assert_eq!(
        throttle.wait(100, 1000.0, later),
        Duration::from_millis(100),
        "nothing is saved up"
    );
    assert_eq!(Throttle::default().wait(u64::MAX, f64::MAX, now), Duration::ZERO);
}

/// A coordinator reads the same out of a compacted log as out of the whole one.
#[tokio::test(flavor = "multi_thread")]
async fn group_positions_are_the_same_after_compaction() {
    let settings = [
        "log.cleaner.backoff.ms=10",
        "log.cleaner.min.cleanable.ratio=0.0",
        "offsets.topic.num.partitions=1",
    ];
    let node = TestNode::start(&settings).await;
    node.create_topic("t", &[]).await;
    let commit = |group: &str, offset: i64| crate::coordinators::tests::commit(group, "t", offset);
    coordinator_of("g", &node.node).await;
    for offset in 0..40 {
        for group in ["g", "h", "i"] {
            let committed = commit(group, offset);
            node.node.coordinators.commit_offsets("c", committed).await.expect("committed");
        }
    }
    let topic = node.node.controller.image().topic("__consumer_offsets").cloned().expect("it");
    let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
    let before = partition.bytes();
    partition.roll().await.expect("rolled");
    eventually("compacted", || partition.bytes() < before / 10).await;
    let disk = node.stop().await;
    let node = TestNode::start_on(disk, &settings).await;
    coordinator_of("g", &node.node).await;
    for group in ["g", "h", "i"] {
        let asked = crate::coordinators::tests::fetch(group, "t");
        let found = node.node.coordinators.fetch_offsets(asked).await.expect("fetched");
        assert_eq!(found[0].partitions[0].offset, 39, "{group}");
    }
    assert!(node.disk.list(&partition.dir()).is_ok());
    node.stop().await;
}
