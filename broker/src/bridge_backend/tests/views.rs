//! Kafka's batches as RocketMQ clients read them.

use std::sync::Arc;

use duolog_bridge::backend::ReadRequest;
use duolog_bridge::remoting::RemotingCommand;
use duolog_bridge::remoting::message::Message;
use duolog_log_core::record::compression::Compressor;
use duolog_log_core::record::{BatchBuilder, BatchParams, Compression, NewRecord};

use super::{pull_through, text};
use crate::bridge_backend::batches::BatchCache;
use crate::bridge_backend::read;
use crate::limits::DECODED_CACHE_BYTES;
use crate::testing::rocketmq::{RemotingClient, offsets, plant, tagged_batch};
use crate::testing::served::TestNode;

/// Records of one batch.
const LARGE: i64 = 10_000;

fn large_batch(compression: Compression) -> bytes::BytesMut {
    // A base offset of the client's choice means nothing.
    let params = BatchParams { compression, base_offset: 777, ..BatchParams::default() };
    let values: Vec<String> = (0..LARGE).map(|number| format!("value {number:0100}")).collect();
    let records: Vec<_> = values.iter().map(|value| ("", value.as_bytes())).collect();
    tagged_batch(params, &records)
}

/// The body of each message, with its queue offset.
fn bodies(answer: &RemotingCommand) -> Vec<(i64, String)> {
    let mut rest = &answer.body[..];
    let mut bodies = Vec::new();
    while !rest.is_empty() {
        let message = Message::decode(&mut rest).expect("a message");
        let body = String::from_utf8(message.body.to_vec()).expect("text");
        bodies.push((message.queue_offset, body));
    }
    bodies
}

/// Case B126: queue offset is offset, wherever one begins in batches of ten thousand.
#[tokio::test(flavor = "multi_thread")]
async fn a_pull_may_begin_at_any_record_of_a_large_batch() {
    let node = TestNode::start(&["message.max.bytes=4000000"]).await;
    node.create_topic("t", &[]).await;
    let partition = node.partition("t", 0);
    for compression in [Compression::Lz4, Compression::None, Compression::Zstd] {
        plant(&partition, large_batch(compression)).await;
    }
    let client = RemotingClient::new(&node.rocketmq());
    for offset in [0, 1, 31, 32, 4095, 4096, 9_967, 9_968, 9_999, 10_000, 19_999, 20_001, 29_999] {
        let answer = client.pull("t", offset, &[]).await;
        let seen = bodies(&answer);
        // A pull may end with its batch.
        let left = (LARGE - offset % LARGE).min(32);
        assert!((left..=32).contains(&(seen.len() as i64)), "from {offset}: {}", seen.len());
        let expected = (offset..).map(|at| (at, format!("value {:0100}", at % LARGE)));
        assert!(seen.into_iter().zip(expected).all(|(one, other)| one == other), "from {offset}");
    }
    node.stop().await;
}

/// Pitfall 5: a batch is decoded once, however many pulls it takes to get through it.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_batch_is_decoded_once_for_all_its_pulls() {
    let node = TestNode::start(&["message.max.bytes=4000000"]).await;
    node.create_topic("t", &[]).await;
    let partition = node.partition("t", 0);
    plant(&partition, large_batch(Compression::Zstd)).await;
    let topic = node.node.controller.image().topic("t").expect("t").queues.clone();
    let cache = BatchCache::new(DECODED_CACHE_BYTES);
    let mut first = None;
    for offset in (0..LARGE).step_by(32) {
        let (bytes_max, records_max, tags) = (1 << 18, 32, None);
        let request =
            ReadRequest { topic: &topic, partition: 0, offset, bytes_max, records_max, tags };
        let read = read::read(&node.node, &cache, &partition, &request).await.expect("read");
        let [batch] = &read.batches[..] else { panic!("one batch at {offset}") };
        assert!(Arc::ptr_eq(batch, first.get_or_insert_with(|| batch.clone())), "at {offset}");
    }
    node.stop().await;
}

/// Case B127: null keys and values, empty ones, and a tombstone as the last record.
#[tokio::test(flavor = "multi_thread")]
async fn nulls_and_empty_values_are_messages_and_the_lag_reaches_zero() {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[]).await;
    let mut builder = BatchBuilder::new(BatchParams::default());
    let pairs: [(Option<&str>, Option<&str>); 5] = [
        (Some("k"), None),
        (Some("k"), Some("")),
        (None, None),
        (Some(""), Some("")),
        (None, None),
    ];
    for (key, value) in pairs {
        let record = NewRecord {
            timestamp: crate::clock::now_ms(),
            key: key.map(str::as_bytes),
            value: value.map(str::as_bytes),
            headers: &[],
        };
        builder.append(&record).expect("a small batch");
    }
    plant(&node.partition("t", 0), builder.finish(&mut Compressor::new()).expect("records")).await;
    let client = RemotingClient::new(&node.rocketmq());
    let answer = client.pull("t", 0, &[]).await;
    assert_eq!(offsets(&answer), [0, 1, 2, 3, 4]);
    let mut rest = &answer.body[..];
    for (at, (_, value)) in pairs.iter().enumerate() {
        let message = Message::decode(&mut rest).expect("a message");
        assert!(message.body.is_empty(), "{at}");
        let properties = String::from_utf8_lossy(message.properties).into_owned();
        let is_tombstone = properties.contains("KAFKA_TOMBSTONE\u{1}true");
        assert_eq!(is_tombstone, value.is_none(), "{at}: {properties}");
    }
    let end = pull_through(&client, "t", 5, &[("sysFlag", "5"), ("commitOffset", "5")]).await;
    assert!(end.is_empty());
    let group = [("consumerGroup", "g"), ("topic", "t")];
    let lag = "\"brokerOffset\":5,\"consumerOffset\":5,";
    // The position of a pull is committed without anybody waiting for it.
    let read = async {
        while !text(&client.call(208, &group, b"").await).contains(lag) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::testing::served::LIMIT, read).await.expect("lag 0");
    node.stop().await;
}
