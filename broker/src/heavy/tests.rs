use std::thread::{self, ThreadId};

use bytes::BytesMut;
use duolog_log_core::record::builder::BatchParams;

use super::*;
use crate::kafka::codec::messages::ProduceResponse;
use crate::testing::rocketmq::{RemotingClient, offsets, tagged_batch};
use crate::testing::served::{TestNode, batch, produce_request};

/// One record of so many zeros.
fn zeros(compression: Compression, bytes: usize) -> BytesMut {
    let params = BatchParams { compression, ..BatchParams::default() };
    tagged_batch(params, &[("", &vec![0; bytes])])
}

#[tokio::test]
async fn small_batches_are_read_here_and_large_ones_aside() {
    let reading = BatchReading::default();
    let here = thread::current().id();
    let many = vec![("", &b"1234567890"[..]); 30_000];
    let rows = [
        (zeros(Compression::None, 1000), true),
        (zeros(Compression::None, 900_000), true),
        (zeros(Compression::None, 1_100_000), false),
        (zeros(Compression::Zstd, 200_000), true),
        (zeros(Compression::Zstd, 300_000), false),
        (zeros(Compression::Gzip, 3_000_000), false),
        (tagged_batch(BatchParams::default(), &many), true),
    ];
    for (batch, is_here) in rows {
        let batch = batch.freeze();
        let read = batch.clone();
        let reader = reading.read(&batch, move |decompressor, limit| -> Result<ThreadId, _> {
            duolog_log_core::record::DecodedBatch::decode(&read, decompressor, limit)?;
            Ok(thread::current().id())
        });
        let reader = reader.await.expect("a batch");
        assert_eq!(reader == here, is_here, "{} bytes", batch.len());
    }
    let bomb = zeros(Compression::Zstd, DECOMPRESSED_BYTES_MAX + 1).freeze();
    let read = bomb.clone();
    let refused = reading.read(&bomb, move |decompressor, limit| {
        duolog_log_core::record::DecodedBatch::decode(&read, decompressor, limit).map(drop)
    });
    let limit = DECOMPRESSED_BYTES_MAX;
    assert_eq!(refused.await, Err(RecordError::DecompressedTooLarge { limit }));
}

/// D1 of an attack: one batch of a few hundred bytes had everybody wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn nobody_else_waits_while_large_batches_are_read() {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[]).await;
    let dispatcher = node.rocketmq();
    let mut producers = Vec::new();
    for _ in 0..8 {
        producers.push(node.connect().await);
    }
    let mut other = node.connect().await;
    // As if others' batches took for ever.
    let semaphore = node.node.batches.aside.clone();
    let turns = u32::try_from(semaphore.available_permits()).expect("a few");
    let busy = semaphore.clone().acquire_many_owned(turns).await.expect("open");
    let large = zeros(Compression::Zstd, 1_000_000).freeze();
    for producer in &mut producers {
        producer.send(9, &produce_request("t", 1, large.clone())).await;
    }
    for offset in 0..20 {
        assert_eq!(other.produce("t", -1, batch(&["small"])).await, (0, offset));
        other.ping().await;
    }
    drop(busy);
    for producer in &mut producers {
        let (_, answer): (_, ProduceResponse) = producer.receive(9).await;
        assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
    }

    let client = RemotingClient::new(&dispatcher);
    let busy = semaphore.clone().acquire_many_owned(turns).await.expect("open");
    client.pull("t", 0, &[("maxMsgNums", "20")]).await;
    let mut large = Box::pin(client.pull("t", 20, &[]));
    assert!(futures_util::poll!(&mut large).is_pending());
    for _ in 0..20 {
        assert_eq!(offsets(&client.pull("t", 0, &[("maxMsgNums", "3")]).await), [0, 1, 2]);
    }
    drop(busy);
    assert_eq!(offsets(&large.await)[0], 20);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_client_that_goes_away_leaves_its_turn_to_others() {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[]).await;
    let large = zeros(Compression::Gzip, 2_000_000).freeze();
    for _ in 0..4 {
        let mut client = node.connect().await;
        client.send(9, &produce_request("t", 1, large.clone())).await;
        drop(client);
    }
    let mut client = node.connect().await;
    assert_eq!(client.produce("t", 1, BytesMut::from(&large[..])).await.0, 0);
    node.stop().await;
}
