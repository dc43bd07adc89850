use duolog_log_core::storage::disk::Disk;
use duolog_log_core::testing::mem_disk::Fault;

use super::*;
use crate::kafka::codec::messages::fetch_request::{FetchPartition, FetchTopic};
use crate::kafka::codec::messages::{FetchRequest, FetchResponse};
use crate::testing::served::{Client, TestNode, batch, eventually};

async fn read(client: &mut Client) -> usize {
    let partition = FetchPartition { partition_max_bytes: 1 << 20, ..FetchPartition::default() };
    let topic =
        FetchTopic { topic: "t".into(), partitions: vec![partition], ..FetchTopic::default() };
    let (max_bytes, topics) = (1 << 20, vec![topic]);
    let request = FetchRequest { max_bytes, topics, ..FetchRequest::default() };
    let response: FetchResponse = client.call(12, &request).await;
    response.responses[0].partitions[0].records.as_ref().expect("records").len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_rests_keeps_no_batch_in_memory_and_is_read_from_its_file() {
    let node = TestNode::start(&[]).await;
    let topic = node.create_topic("t", &[]).await;
    let mut client = node.connect().await;
    client.produce("t", 1, batch(&["first"])).await;
    let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
    let budget = partition.shared.tail_budget.clone();
    // The metadata log keeps its own.
    let others = || budget.used_bytes();
    partition.rest_when_idle();
    let (held, size) = (others(), read(&mut client).await);
    assert!(held > 0, "one look is not enough to call it idle");
    partition.rest_when_idle();
    eventually("the batch is let go of", || others() < held).await;
    let rested = others();
    assert_eq!(read(&mut client).await, size);
    // It is told once only, until there is something new.
    partition.rest_when_idle();
    client.produce("t", 1, batch(&["second"])).await;
    assert!(others() > rested);
    assert!(read(&mut client).await > size);
    partition.rest_when_idle();
    partition.rest_when_idle();
    eventually("the batch is let go of", || others() <= rested).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_never_written_is_neither_opened_nor_closed() {
    let node = TestNode::start(&[]).await;
    let topic = node.create_topic("t", &[]).await;
    let mut client = node.connect().await;
    assert_eq!(read(&mut client).await, 0);
    keep_house(node.node.partitions.clone(), node.node.stopping.clone()).await;
    rest(node.node.partitions.clone()).await;
    for index in 0..2 {
        let partition = node.node.partitions.find(topic.id, index).expect("a partition");
        assert!(partition.is_untouched() && !partition.was_opened());
        assert!(node.disk.list(&partition.dir()).is_err(), "there is no folder");
    }
    // Nor is it after an unclean stop, which opens everything else.
    let disk = node.disk.kill();
    drop(node);
    let node = TestNode::start_on(disk, &[]).await;
    eventually("all is recovered", || node.node.partitions.is_recovered()).await;
    let partition = node.node.partitions.find(topic.id, 1).expect("a partition");
    assert!(partition.is_untouched() && !partition.was_opened());
    let mut client = node.connect().await;
    assert_eq!(client.produce("t", 1, batch(&["v"])).await, (0, 0));
    assert!(!node.node.partitions.find(topic.id, 0).expect("a partition").is_untouched());
    // The folder that there is now is known to the next start.
    let disk = node.stop().await;
    let node = TestNode::start_on(disk, &[]).await;
    let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
    assert!(!partition.is_untouched());
    let mut client = node.connect().await;
    assert!(read(&mut client).await > 0);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_full_disk_retention_deletes_what_is_sealed_though_nothing_can_be_rolled() {
    let node = TestNode::start(&[]).await;
    let settings = [("segment.bytes", "1048576"), ("segment.ms", "1"), ("retention.ms", "1")];
    let topic = node.create_topic("t", &settings).await;
    let mut client = node.connect().await;
    let large = "x".repeat(400_000);
    for _ in 0..3 {
        client.produce("t", 1, batch(&[&large])).await;
    }
    let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
    eventually("the sealed segment is on disk", || partition.synced() == 2).await;
    node.disk.set_capacity(Some(0));
    let starts_at = |offset| {
        partition.keep_house();
        partition.offsets().log_start == offset
    };
    eventually("the sealed segment is gone", || starts_at(2)).await;
    assert_eq!(partition.offsets().log_end, 3);
    node.disk.set_capacity(None);
    eventually("so is the last one", || starts_at(3)).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_is_written_again_only_when_it_says_something_else() {
    let node = TestNode::start(&["replica.high.watermark.checkpoint.interval.ms=3600000"]).await;
    node.create_topic("t", &[]).await;
    let mut client = node.connect().await;
    client.produce("t", 1, batch(&["a"])).await;
    let partitions = node.node.partitions.clone();
    let last = Arc::new(AtomicU64::new(0));
    let write = || write_changed(partitions.clone(), Checkpoint::HighWatermark, last.clone());
    let calls = || node.disk.operations();
    write().await;
    let before = calls();
    write().await;
    assert_eq!(calls(), before, "nothing has changed");
    client.produce("t", 1, batch(&["b"])).await;
    let before = calls();
    write().await;
    assert!(calls() > before);
    // A failed write is made good.
    client.produce("t", 1, batch(&["c"])).await;
    node.disk.fail_operation(calls(), Fault::Full);
    write().await;
    let before = calls();
    write().await;
    assert!(calls() > before);
    node.create_topic("another", &[]).await;
    let before = calls();
    write().await;
    assert!(calls() > before, "a topic came");
    node.stop().await;
}
