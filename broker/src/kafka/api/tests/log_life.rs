//! What lies before a log's start is gone for both protocols, and stays gone.

use duolog_log_core::log::ReadMinimum;

use crate::kafka::codec::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use crate::kafka::codec::messages::fetch_request::{FetchPartition, FetchTopic};
use crate::kafka::codec::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use crate::kafka::codec::messages::{
    DeleteRecordsRequest, DeleteRecordsResponse, FetchRequest, FetchResponse, ListOffsetsRequest,
    ListOffsetsResponse,
};
use crate::testing::served::{Client, TestNode, batch_of};

async fn delete(client: &mut Client, version: i16, offset: i64) -> (i16, i64) {
    let partitions = vec![DeleteRecordsPartition { partition_index: 0, offset }];
    let topics = vec![DeleteRecordsTopic { name: "t".into(), partitions }];
    let request = DeleteRecordsRequest { topics, timeout_ms: 1000 };
    let response: DeleteRecordsResponse = client.call(version, &request).await;
    let partition = &response.topics[0].partitions[0];
    (partition.error_code, partition.low_watermark)
}

/// The log start and its leader epoch.
async fn earliest(client: &mut Client) -> (i64, i32) {
    let partition = ListOffsetsPartition { timestamp: -2, ..ListOffsetsPartition::default() };
    let topics = vec![ListOffsetsTopic { name: "t".into(), partitions: vec![partition] }];
    let request = ListOffsetsRequest { topics, ..ListOffsetsRequest::default() };
    let response: ListOffsetsResponse = client.call(7, &request).await;
    let partition = &response.topics[0].partitions[0];
    (partition.offset, partition.leader_epoch)
}

/// Error code, high watermark, log start and bytes.
async fn fetch(client: &mut Client, fetch_offset: i64) -> (i16, i64, i64, usize) {
    let partition =
        FetchPartition { fetch_offset, partition_max_bytes: 1 << 20, ..FetchPartition::default() };
    let topic =
        FetchTopic { topic: "t".into(), partitions: vec![partition], ..FetchTopic::default() };
    let (max_bytes, topics) = (1 << 20, vec![topic]);
    let request = FetchRequest { max_bytes, topics, ..FetchRequest::default() };
    let response: FetchResponse = client.call(12, &request).await;
    let partition = &response.responses[0].partitions[0];
    let bytes = partition.records.as_ref().map_or(0, |records| records.len());
    (partition.error_code, partition.high_watermark, partition.log_start_offset, bytes)
}

/// Case B28: a start inside a batch; the batch is given whole, what lies before the start is refused.
#[tokio::test(flavor = "multi_thread")]
async fn records_are_deleted_up_to_an_offset_and_stay_deleted() {
    let node = TestNode::start(&[]).await;
    let topic = node.create_topic("t", &[]).await;
    let mut client = node.connect().await;
    let ten = ["v"; 10];
    let params = duolog_log_core::record::BatchParams {
        compression: duolog_log_core::record::Compression::None,
        ..Default::default()
    };
    assert_eq!(earliest(&mut client).await, (0, 0), "an epoch begins before the first record");
    client.produce("t", 1, batch_of(params, &ten)).await;
    let size = fetch(&mut client, 0).await.3;
    client.produce("t", 1, batch_of(params, &ten)).await;
    for version in 0..=2 {
        assert_eq!(delete(&mut client, version, 4).await, (0, 4));
    }
    assert_eq!(delete(&mut client, 2, 2).await, (0, 4), "a lower offset changes nothing");
    assert_eq!(delete(&mut client, 2, 21).await, (1, -1));
    assert_eq!(delete(&mut client, 2, -2).await, (1, -1));
    assert_eq!(earliest(&mut client).await, (4, 0));
    assert_eq!(fetch(&mut client, 3).await, (1, -1, -1, 0), "OFFSET_OUT_OF_RANGE");
    assert_eq!(fetch(&mut client, 4).await, (0, 20, 4, 2 * size));
    assert_eq!(fetch(&mut client, 20).await, (0, 20, 4, 0));
    assert_eq!(fetch(&mut client, 21).await.0, 1);
    let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
    assert_eq!(partition.offsets().log_start, 4, "RocketMQ's minimum is the same number");
    let disk = node.stop().await;
    let node = TestNode::start_on(disk, &[]).await;
    let mut client = node.connect().await;
    assert_eq!(earliest(&mut client).await, (4, 0));
    assert_eq!(delete(&mut client, 2, -1).await, (0, 20));
    assert_eq!(earliest(&mut client).await, (20, 0));
    assert_eq!(client.produce("t", 1, batch_of(params, &["next"])).await, (0, 20));
    let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
    let reader = partition.reader().await.expect("a log");
    assert!(reader.read(19, 100, 21, ReadMinimum::OneBatch).is_err());
    node.stop().await;
}

/// A topic's codec is what batches are stored with, by whichever door they came.
#[tokio::test(flavor = "multi_thread")]
async fn batches_are_stored_with_the_topics_codec() {
    use duolog_log_core::record::{BatchHeader, BatchParams, Compression};
    let node = TestNode::start(&[]).await;
    let mut client = node.connect().await;
    for (name, stored) in [("gzip", Compression::Gzip), ("uncompressed", Compression::None)] {
        let topic = node.create_topic(name, &[("compression.type", name)]).await;
        let sent = batch_of(BatchParams::default(), &["some value", "some value"]);
        assert_eq!(client.produce(name, 1, sent).await, (0, 0));
        let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
        let reader = partition.reader().await.expect("a log");
        let read = reader.read(0, 1 << 20, 2, ReadMinimum::OneBatch).expect("readable");
        let header = BatchHeader::parse(&read.pieces[0]).expect("a batch");
        assert_eq!(header.compression(), Ok(stored));
        assert_eq!(header.record_count, 2);
    }
    node.stop().await;
}
