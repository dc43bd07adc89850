//! Metadata of many megabytes: what is acknowledged is there after a start, and snapshots are cut into batches.

use duolog_log_core::event::Events;
use duolog_log_core::ids::NodeId;
use duolog_log_core::storage::disk::Disk;
use duolog_log_core::testing::mem_disk::{Crash, Fault, MemDisk};

use super::*;
use crate::node::Node;
use crate::testing::served::{TestNode, config};

/// As much as a text may have in a record, or nearly.
const VALUE_BYTES: usize = 60 * 1024;

fn kv(key: usize, content: &str) -> MetadataRecord {
    let value = Some(content.repeat(VALUE_BYTES));
    MetadataRecord::Kv { namespace: "n".to_owned(), key: key.to_string(), value }
}

/// Writes while the log's owner has nothing to do.
async fn write(node: &TestNode, records: &[MetadataRecord]) {
    let partition = node.node.partitions.metadata().expect("open");
    MetadataLog { partition }.append(records).await.expect("acknowledged");
}

fn without_epoch(image: &Image) -> Vec<MetadataRecord> {
    let records = image.records().into_iter();
    records.filter(|record| !matches!(record, MetadataRecord::LeaderEpoch(_))).collect()
}

async fn start(disk: &MemDisk) -> Option<Arc<Node>> {
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    Node::start(config(&[]), shared, Events::silent(NodeId(1))).await.ok()
}

/// The bound of what batches decompress to is none of a plain batch's.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_more_bytes_than_a_batch_may_decompress_to_is_there_after_a_start() {
    let node = TestNode::start(&[]).await;
    let records: Vec<_> = (0..600).map(|key| kv(key, "v")).collect();
    assert!(records.iter().map(size_of).sum::<u64>() > DECOMPRESSED_BYTES_MAX as u64);
    write(&node, &records).await;
    let node = TestNode::start_on(node.stop().await, &[]).await;
    let image = node.node.controller.image().clone();
    assert!((0..600).all(|key| image.kv("n", &key.to_string()).is_some()));
    node.stop().await;
}

/// A log that the next start compacts into a snapshot of several batches, and the image that it makes.
async fn grown() -> (MemDisk, Vec<MetadataRecord>) {
    let node = TestNode::start(&[]).await;
    node.create_topic("kept", &[("retention.ms", "5")]).await;
    let gone = node.create_topic("gone", &[]).await;
    node.node.delete_topic(gone.id).await.expect("deleted");
    let mut image = Image::clone(&node.node.controller.image());
    for content in ["a", "b", "c", "d", "e"] {
        let records: Vec<_> = (0..20).map(|key| kv(key, content)).collect();
        write(&node, &records).await;
        for record in records {
            image.apply(record).expect("valid");
        }
    }
    (node.stop().await, without_epoch(&image))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_is_several_batches_and_takes_the_place_of_what_was_before() {
    let (disk, records) = grown().await;
    let node = TestNode::start_on(disk, &[]).await;
    assert_eq!(without_epoch(&node.node.controller.image()), records);
    let metadata = node.node.partitions.metadata().expect("open");
    let offsets = metadata.offsets();
    let reader = metadata.reader().await.expect("open");
    let read = reader.read(offsets.log_start, usize::MAX, offsets.log_end, ReadMinimum::OneBatch);
    let mut sizes = Vec::new();
    for piece in read.expect("readable").pieces {
        sizes.extend(SharedBatches::new(piece).map(|batch| batch.expect("sound").1.len()));
    }
    let (all, largest) = (sizes.iter().sum::<usize>(), sizes.iter().max().copied());
    assert!((20 * VALUE_BYTES..21 * VALUE_BYTES).contains(&all), "each value once: {sizes:?}");
    assert!(largest.is_some_and(|largest| largest < 18 * VALUE_BYTES), "{sizes:?}");
    let node = TestNode::start_on(node.stop().await, &[]).await;
    assert_eq!(without_epoch(&node.node.controller.image()), records);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_power_cut_at_any_call_of_a_compaction_changes_nothing() {
    let (grown, records) = grown().await;
    let whole = grown.kill();
    let begun = whole.operations();
    let node = start(&whole).await.expect("starts");
    assert!(node.partitions.metadata().expect("open").offsets().log_start > 0, "compacted");
    let operations = whole.operations();
    node.stopping.cancel();
    for operation in begun..operations {
        let disk = grown.kill();
        disk.fail_operation(operation, Fault::Halt);
        if let Some(node) = start(&disk).await {
            node.stopping.cancel();
        }
        let node = start(&disk.crash(Crash::ForgetUnsynced)).await.expect("starts again");
        assert_eq!(without_epoch(&node.controller.image()), records, "cut at {operation}");
        node.stopping.cancel();
    }
}
