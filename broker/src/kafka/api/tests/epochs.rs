//! Where leader epochs ended, as consumers ask it to see whether what they read was lost.

use duolog_log_core::gate::{GateAction, GatePoint};
use duolog_log_core::record::BatchParams;

use super::data::fetch_request;
use crate::kafka::codec::Records;
use crate::kafka::codec::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use crate::kafka::codec::messages::{
    FetchRequest, FetchResponse, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
};
use crate::testing::served::{Client, TestNode, batch, batch_of, eventually, produce_request};

/// Epoch and end offset that are answered for `epoch` of partition 0.
async fn end_of(client: &mut Client, epoch: i32) -> (i32, i64) {
    let partition =
        OffsetForLeaderPartition { partition: 0, current_leader_epoch: -1, leader_epoch: epoch };
    let topic = OffsetForLeaderTopic { topic: "t".into(), partitions: vec![partition] };
    let request = OffsetForLeaderEpochRequest { replica_id: -1, topics: vec![topic] };
    let response: OffsetForLeaderEpochResponse = client.call(4, &request).await;
    let found = &response.topics[0].partitions[0];
    assert_eq!(found.error_code, 0);
    (found.leader_epoch, found.end_offset)
}

async fn produce(client: &mut Client, records: usize) {
    let produced = client.produce("t", -1, batch_of(BatchParams::default(), &vec!["v"; records]));
    assert_eq!(produced.await.0, 0);
}

/// As LeaderEpochFileCache.endOffsetFor: a consumer whose position a deletion and a restart have made the first one is
/// not told that its records are lost.
#[tokio::test(flavor = "multi_thread")]
async fn an_epoch_whose_records_were_all_deleted_ended_where_the_log_begins() {
    let node = TestNode::start(&[]).await;
    let topic = node.create_topic("t", &[]).await;
    let mut client = node.connect().await;
    assert_eq!(end_of(&mut client, 0).await, (0, 0), "this epoch, and nothing written");
    assert_eq!(end_of(&mut client, 1).await, (-1, -1), "an epoch to come");
    produce(&mut client, 100).await;
    assert_eq!(end_of(&mut client, 0).await, (0, 100));
    let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
    assert_eq!(partition.delete_records(100).await, Ok(100));

    let node = TestNode::start_on(node.stop().await, &[]).await;
    let mut client = node.connect().await;
    let before_any_write = [end_of(&mut client, 0).await, end_of(&mut client, 1).await];
    assert_eq!(before_any_write, [(0, 100), (1, 100)]);
    produce(&mut client, 50).await;
    let answers = [end_of(&mut client, 0).await, end_of(&mut client, 1).await];
    assert_eq!(answers, [(0, 100), (1, 150)]);
    assert_eq!(end_of(&mut client, 2).await, (-1, -1));

    // An epoch without a record of its own in the log, and one that has some.
    let node = TestNode::start_on(node.stop().await, &[]).await;
    let node = TestNode::start_on(node.stop().await, &[]).await;
    let mut client = node.connect().await;
    let mut answers = Vec::new();
    for epoch in [0, 1, 2, 3, 4] {
        answers.push(end_of(&mut client, epoch).await);
    }
    assert_eq!(answers, [(0, 100), (1, 150), (1, 150), (3, 150), (-1, -1)]);
    let topic = node.node.controller.image().topic("t").expect("kept").id;
    let partition = node.node.partitions.find(topic, 0).expect("a partition");
    assert_eq!(partition.delete_records(120).await, Ok(120));
    assert_eq!(end_of(&mut client, 0).await, (0, 120), "its successor begins there now");
    produce(&mut client, 1).await;
    assert_eq!(end_of(&mut client, 1).await, (1, 150));
    node.stop().await;
}

/// As Partition.readRecords: error, and epoch and end of the log that the client's parts from.
#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_after_an_epoch_is_told_where_it_parts_or_that_nothing_is_known() {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[]).await;
    produce(&mut node.connect().await, 4).await;
    // The last epoch is that of the third start: the second one writes nothing.
    let node = TestNode::start_on(node.stop().await, &[]).await;
    let node = TestNode::start_on(node.stop().await, &[]).await;
    let mut client = node.connect().await;
    produce(&mut client, 4).await;
    let topic = node.node.controller.image().topic("t").expect("kept").id;
    let partition = node.node.partitions.find(topic, 0).expect("a partition");
    assert_eq!(partition.delete_records(2).await, Ok(2));
    for (offset, epoch, told) in [
        (4, 0, (0, -1, -1)),
        (5, 0, (0, 0, 4)),
        (4, 1, (0, 0, 4)),
        (8, 2, (0, -1, -1)),
        (9, 2, (0, 2, 8)),
        (4, 3, (1, -1, -1)),
        (1, 0, (1, -1, -1)),
        (1, 1, (1, -1, -1)),
    ] {
        let mut request = fetch_request("t", &[(0, offset)]);
        request.topics[0].partitions[0].last_fetched_epoch = epoch;
        let response: FetchResponse = client.call(12, &request).await;
        let found = &response.responses[0].partitions[0];
        let diverging = &found.diverging_epoch;
        let answer = (found.error_code, diverging.epoch, diverging.end_offset);
        assert_eq!(answer, told, "at {offset} after epoch {epoch}");
    }
    node.stop().await;
}

/// As FetchIsolation.of: only a replica, present or future, reads beyond the high watermark.
#[tokio::test(flavor = "multi_thread")]
async fn a_debugging_consumer_sees_no_more_than_others() {
    let node = TestNode::start(&[]).await;
    let topic = node.create_topic("t", &[]).await;
    let gate = node.arm(GatePoint::HighWatermarkBefore, "t", GateAction::Hold);
    let mut client = node.connect().await;
    client.send(9, &produce_request("t", -1, batch(&["v"]).freeze())).await;
    let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
    eventually("it is in the log", || partition.offsets().log_end == 1).await;
    let mut reader = node.connect().await;
    let request = FetchRequest { replica_id: -2, ..fetch_request("t", &[(0, 0)]) };
    let response: FetchResponse = reader.call(12, &request).await;
    let found = &response.responses[0].partitions[0];
    assert_eq!((found.error_code, found.high_watermark), (0, 0));
    assert!(found.records.as_ref().is_some_and(Records::is_empty));
    assert!(node.node.instruments.release(gate));
    node.stop().await;
}
