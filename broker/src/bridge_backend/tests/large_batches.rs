//! A Kafka producer's large compressed batch, of which a RocketMQ consumer takes 32 records at a time.

use std::sync::Arc;

use duolog_bridge::backend::ReadRequest;
use duolog_log_core::record::{BatchParams, Compression};

use super::pull_through;
use crate::bridge_backend::batches::BatchCache;
use crate::bridge_backend::read;
use crate::limits::DECODED_CACHE_BYTES;
use crate::testing::rocketmq::{RemotingClient, plant, tagged_batch};
use crate::testing::served::TestNode;

const RECORDS: i64 = 10_000;
const PULL: usize = 32;

/// Topic `t` with one batch.
async fn filled(compression: Compression) -> TestNode {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[]).await;
    let params = BatchParams { compression, ..BatchParams::default() };
    let values: Vec<String> = (0..RECORDS).map(|offset| format!("value {offset}")).collect();
    let records: Vec<_> = values.iter().map(|value| ("", value.as_bytes())).collect();
    plant(&node.partition("t", 0), tagged_batch(params, &records)).await;
    node
}

#[tokio::test(flavor = "multi_thread")]
async fn each_record_of_a_batch_of_ten_thousand_is_pulled_once() {
    for compression in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd]
    {
        let node = filled(compression).await;
        let client = RemotingClient::new(&node.rocketmq());
        let pulled = pull_through(&client, "t", 0, &[("maxMsgNums", "32")]).await;
        assert_eq!(pulled, (0..RECORDS).collect::<Vec<_>>(), "{compression:?}");
        node.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_decoded_once_however_often_it_is_asked_for() {
    let node = filled(Compression::Zstd).await;
    let partition = node.partition("t", 0);
    let topic = node.node.controller.image().topic("t").expect("t").queues.clone();
    let cache = BatchCache::new(DECODED_CACHE_BYTES);
    let mut first = None;
    for offset in (0..RECORDS).step_by(PULL) {
        let request = ReadRequest {
            topic: &topic,
            partition: 0,
            offset,
            bytes_max: 1 << 20,
            records_max: PULL,
            tags: None,
        };
        let read = read::read(&node.node, &cache, &partition, &request).await.expect("read");
        let [batch] = &read.batches[..] else { panic!("{} batches", read.batches.len()) };
        let first = first.get_or_insert_with(|| batch.clone());
        assert!(Arc::ptr_eq(first, batch), "decoded again at {offset}");
    }
    node.stop().await;
}
