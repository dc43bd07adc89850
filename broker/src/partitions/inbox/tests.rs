//! Who writes an append: its own thread, with all that waits beside it, or a task.

use duolog_bridge::backend::{NewRecord, NewRecords};
use duolog_log_core::gate::{GateAction, GateFilter, GatePoint};
use duolog_log_core::log::ReadMinimum;
use duolog_log_core::record::{self, SharedBatches};
use duolog_log_core::replication::partition::Acks;

use super::*;
use crate::partitions::append::{Flush, Payload};
use crate::testing::served::{LIMIT, TestNode, eventually};

/// A node of one thread, on which a task goes on only while the test waits.
async fn opened() -> (TestNode, Arc<Partition>) {
    let node = TestNode::start(&[]).await;
    let topic = node.create_topic("t", &[]).await;
    let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
    partition.opened().await;
    eventually("the owner rests", || {
        matches!(partition.inbox.0.lock().owner, OwnerPlace::Resting(_))
    })
    .await;
    (node, partition)
}

fn place(partition: &Arc<Partition>, value: &str) -> Placed {
    let mut payload = Vec::new();
    let record = record::NewRecord { value: Some(value.as_bytes()), ..Default::default() };
    record.encode_payload(&mut payload);
    let record = NewRecord { timestamp_ms: crate::clock::now_ms(), payload: payload.into() };
    let payload = Payload::Records(NewRecords::One(record));
    partition.try_append(payload, value.len(), Acks::Leader, Flush::Topic).expect("room")
}

async fn record_counts(partition: &Arc<Partition>) -> Vec<i32> {
    let reader = partition.reader().await.expect("a sound log");
    let end = reader.log_end_offset();
    let read = reader.read(0, 1 << 20, end, ReadMinimum::OneBatch).expect("readable");
    let batches = read.pieces.into_iter().flat_map(SharedBatches::new);
    batches.map(|batch| batch.expect("whole").0.record_count).collect()
}

#[tokio::test]
async fn an_append_that_finds_the_owner_at_rest_is_written_on_its_own_thread() {
    let (_node, partition) = opened().await;
    let placed = place(&partition, "a");
    assert_eq!(partition.offsets().log_end, 0, "a place is all it has");
    let answer = placed.begin().try_recv().expect("nothing was awaited").expect("appended");
    assert_eq!((answer.base_offset, partition.offsets().log_end), (0, 1));
}

#[tokio::test]
async fn what_was_placed_beside_an_append_is_written_with_it_in_order() {
    let (_node, partition) = opened().await;
    let placed: Vec<_> = ["a", "b", "c"].map(|value| place(&partition, value)).into();
    let mut offsets = Vec::new();
    for placed in placed {
        let answer = placed.begin().try_recv().expect("nothing was awaited");
        offsets.push(answer.expect("appended").base_offset);
    }
    assert_eq!(offsets, [0, 1, 2]);
    assert_eq!(record_counts(&partition).await, [3], "one batch");
}

#[tokio::test]
async fn a_dropped_append_is_written_by_a_task() {
    let (_node, partition) = opened().await;
    drop(place(&partition, "a"));
    eventually("it is written", || partition.offsets().log_end == 1).await;
}

#[tokio::test]
async fn a_gate_holds_a_task_and_not_the_thread_of_the_append() {
    let (node, partition) = opened().await;
    let gates = &node.node.instruments.gates;
    let gate = gates.arm(GatePoint::ProduceAppendBefore, GateFilter::default(), GateAction::Hold);
    let answer = place(&partition, "a").begin();
    eventually("it stands at the gate", || gates.list().iter().any(|armed| armed.hits > 0)).await;
    let late = place(&partition, "b").begin();
    assert_eq!(partition.offsets().log_end, 0);
    node.node.instruments.release(gate.expect("armed"));
    assert_eq!(answer.await.expect("answered").expect("appended").base_offset, 0);
    assert_eq!(late.await.expect("answered").expect("appended").base_offset, 1);
    assert_eq!(record_counts(&partition).await, [1, 1], "two rounds");
}

#[tokio::test]
async fn a_closed_log_is_opened_though_its_append_is_only_placed() {
    let node = TestNode::start(&[]).await;
    let topic = node.create_topic("t", &[]).await;
    let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
    let placed = place(&partition, "a");
    // As a request behind it on the same connection waits, which holds up what would begin it.
    tokio::time::timeout(LIMIT, partition.opened()).await.expect("it is opened meanwhile");
    assert_eq!(placed.begin().await.expect("answered").expect("appended").base_offset, 0);
}

/// A partition that a task is about to open, in vain: it has not begun yet. And the answer to who wants it.
async fn failing() -> (TestNode, Arc<Partition>, oneshot::Receiver<AppendResult>) {
    let node = TestNode::start(&[]).await;
    let topic = node.create_topic("t", &[]).await;
    let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
    node.disk.set_capacity(Some(0));
    let answer = place(&partition, "a").begin();
    (node, partition, answer)
}

#[tokio::test]
async fn a_deletion_that_meets_an_opening_which_fails_is_final() {
    let (node, partition, answer) = failing().await;
    partition.delete().await;
    let refused = answer.await.expect("answered").expect_err("it could not be opened");
    assert!(matches!(refused, AppendError::Log(_)), "{refused:?}");
    node.disk.set_capacity(None);
    assert!(partition.is_gone());
    let late = place(&partition, "b").begin().await.expect("answered");
    assert!(matches!(late, Err(AppendError::Deleted)), "{late:?}");
    partition.delete().await;
    assert!(!partition.was_opened());
}

#[tokio::test]
async fn a_stop_that_meets_an_opening_which_fails_is_final() {
    let (node, partition, answer) = failing().await;
    let stopped = partition.stop().await;
    assert!(matches!(stopped, Err(AppendError::Log(_))), "{stopped:?}");
    answer.await.expect("answered").expect_err("it could not be opened");
    node.disk.set_capacity(None);
    let late = place(&partition, "b").begin().await.expect("answered");
    assert!(matches!(late, Err(AppendError::Stopping)), "{late:?}");
    assert!(!partition.was_opened());
    partition.stop().await.expect("it has ended");
}
