//! When records are on disk, and what becomes of a flush that does not succeed.

use bytes::BytesMut;
use duolog_log_core::gate::{GateAction, GateFilter, GatePoint};
use duolog_log_core::log::AppendOrigin;
use duolog_log_core::record::TimestampType;
use duolog_log_core::replication::partition::Acks;
use duolog_log_core::testing::mem_disk::Fault;

use super::*;
use crate::partitions::append::{AppendResult, Payload};
use crate::testing::served::{TestNode, batch, eventually};

async fn partition(node: &TestNode, overrides: &[(&str, &str)]) -> Arc<Partition> {
    let topic = node.create_topic("t", overrides).await;
    let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
    partition.opened().await;
    partition
}

async fn append(partition: &Arc<Partition>, bytes: BytesMut, flush: Flush) -> AppendResult {
    let (size, max_timestamp) = (bytes.len(), clock::now_ms());
    let payload = Payload::Batch {
        bytes,
        record_count: 1,
        timestamp_type: TimestampType::CreateTime,
        max_timestamp,
        origin: AppendOrigin::Client,
    };
    let placed = partition.try_append(payload, size, Acks::Leader, flush).expect("room");
    placed.begin().await.expect("an answer")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sooner_flush_does_not_wait_for_a_later_one() {
    let node = TestNode::start(&[]).await;
    let partition = partition(&node, &[("flush.ms", "3600000")]).await;
    append(&partition, batch(&["kafka"]), Flush::Topic).await.expect("appended");
    append(&partition, batch(&["rocketmq"]), Flush::Within(1)).await.expect("appended");
    eventually("both are on disk", || partition.synced() == 2).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_at_a_flush_ends_nothing() {
    // No checkpoint takes the fault.
    let node = TestNode::start(&["replica.high.watermark.checkpoint.interval.ms=3600000"]).await;
    let partition = partition(&node, &[("index.interval.bytes", "1")]).await;
    append(&partition, batch(&["a"]), Flush::Topic).await.expect("appended");
    // The append itself is written, the index entry with which its flush begins is not.
    node.disk.fail_operation(node.disk.operations() + 1, Fault::Full);
    append(&partition, batch(&["b"]), Flush::Now).await.expect("appended");
    append(&partition, batch(&["c"]), Flush::Now).await.expect("the partition takes writes");
    eventually("all are on disk", || partition.synced() == 3).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flush_that_a_gate_lets_vanish_is_made_up_for_by_the_next() {
    for point in [GatePoint::FlushBefore, GatePoint::FlushAfter] {
        let node = TestNode::start(&[]).await;
        let partition = partition(&node, &[]).await;
        let gates = &node.node.instruments.gates;
        let filter = GateFilter { topic: Some("t".to_owned()), ..GateFilter::default() };
        let gate = gates.arm(point, filter, GateAction::Drop).expect("armed");
        append(&partition, batch(&["a"]), Flush::Now).await.expect("appended");
        eventually("it is caught", || gates.list().iter().any(|gate| gate.hits > 0)).await;
        assert_eq!(partition.synced(), 0, "{point}: nobody knows");
        assert!(node.node.instruments.release(gate));
        append(&partition, batch(&["b"]), Flush::Within(1)).await.expect("appended");
        eventually("both are on disk", || partition.synced() == 2).await;
        node.stop().await;
    }
}

/// As UnifiedLog.append, which flushes before it answers: a power cut takes less than `flush.messages` acknowledged
/// records.
#[tokio::test(flavor = "multi_thread")]
async fn as_many_unsynced_records_as_call_for_a_flush_are_shown_and_answered_after_it() {
    let node = TestNode::start(&[]).await;
    let partition = partition(&node, &[("flush.messages", "3")]).await;
    let filter = GateFilter { topic: Some("t".to_owned()), ..GateFilter::default() };
    let gates = &node.node.instruments.gates;
    let gate = gates.arm(GatePoint::FlushBefore, filter, GateAction::Hold).expect("armed");
    for value in ["a", "b"] {
        append(&partition, batch(&[value]), Flush::Topic).await.expect("answered at once");
    }
    let third = tokio::spawn({
        let partition = partition.clone();
        async move { append(&partition, batch(&["c"]), Flush::Topic).await }
    });
    eventually("a flush begins", || gates.list().iter().any(|gate| gate.hits > 0)).await;
    let offsets = partition.offsets();
    assert_eq!((offsets.log_end, offsets.high_watermark, partition.synced()), (2, 2, 0));
    assert!(!third.is_finished());
    assert!(node.node.instruments.release(gate));
    let appended = third.await.expect("no panic").expect("answered");
    assert_eq!((appended.base_offset, partition.synced()), (2, 3));
    assert_eq!(partition.offsets().high_watermark, 3);
    append(&partition, batch(&["d"]), Flush::Topic).await.expect("answered at once");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_partition_is_not_kept_until_its_flush_would_be_due() {
    let node = TestNode::start(&[]).await;
    let partition = partition(&node, &[("flush.ms", "3600000")]).await;
    append(&partition, batch(&["a"]), Flush::Topic).await.expect("appended");
    node.node.delete_topic(partition.topic_id).await.expect("deleted");
    let held = Arc::downgrade(&partition);
    drop(partition);
    eventually("nobody has it any more", || held.strong_count() == 0).await;
    node.stop().await;
}
