//! Filters by tag over a real log: through the index where it pays, by the batches elsewhere.

use std::path::Path;

use duolog_bridge::dispatch::Answer;
use duolog_bridge::translate::properties::java_hash;
use duolog_log_core::record::{BatchParams, Compression};

use super::pull_through;
use crate::bridge_backend::batches::BatchCache;
use crate::bridge_backend::read;
use crate::limits::DECODED_CACHE_BYTES;
use crate::testing::rocketmq::{RemotingClient, offsets, plant, tagged_batch};
use crate::testing::served::{LIMIT, TestNode};
use duolog_bridge::backend::ReadRequest;

/// Batches of ten records each.
const BATCH: i64 = 10;

/// The tag of the record at an offset: a rare one, two with one hash, none, one that is no ASCII.
fn tag_at(offset: i64) -> &'static str {
    match offset {
        1507 | 1508 | 2990 => "rare",
        offset if offset % 97 == 0 => "Aa",
        offset if offset % 97 == 1 => "BB",
        offset if offset % 5 == 2 => "",
        offset if offset % 97 == 3 => "étiquette-標籤",
        _ => "common",
    }
}

fn tagged(tag: &str, end: i64) -> Vec<i64> {
    (0..end).filter(|offset| tag_at(*offset) == tag).collect()
}

/// Topic `t` with `end` records, in batches of each compression in turn.
async fn fill(node: &TestNode, end: i64) {
    let partition = node.partition("t", 0);
    let value = vec![b'x'; 500];
    let kinds = [Compression::None, Compression::Lz4, Compression::None, Compression::Zstd];
    for (batch, compression) in (0..end / BATCH).zip(kinds.into_iter().cycle()) {
        let params = BatchParams { compression, ..BatchParams::default() };
        let of_batch = batch * BATCH..(batch + 1) * BATCH;
        let records: Vec<_> = of_batch.map(|offset| (tag_at(offset), &value[..])).collect();
        plant(&partition, tagged_batch(params, &records)).await;
    }
}

async fn filled(end: i64) -> TestNode {
    let node = TestNode::start(&[]).await;
    // Small segments: the index is kept in a file for those that are sealed.
    node.create_topic("t", &[("segment.bytes", "1048576")]).await;
    fill(&node, end).await;
    node
}

/// Pitfall 15, cases B89: as the consume queue's filter, by hash, whoever wrote the records.
async fn assert_filters(client: &RemotingClient, end: i64) {
    for tag in ["rare", "common", "étiquette-標籤"] {
        let seen = pull_through(client, "t", 0, &[("subscription", tag)]).await;
        assert_eq!(seen, tagged(tag, end), "{tag}");
    }
    let either = pull_through(client, "t", 0, &[("subscription", "rare || Aa")]).await;
    let mut expected = [tagged("rare", end), tagged("Aa", end), tagged("BB", end)].concat();
    expected.sort_unstable();
    assert_eq!(either, expected, "Aa and BB have one hash; the client tells them apart");
    assert!(pull_through(client, "t", 0, &[("subscription", "nowhere")]).await.is_empty());
    let late = pull_through(client, "t", 1508, &[("subscription", "rare")]).await;
    assert_eq!(late, [1508, 2990], "from within a batch");
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_are_found_wherever_a_pull_begins() {
    let node = filled(6000).await;
    let client = RemotingClient::new(&node.rocketmq());
    assert_filters(&client, 6000).await;
    assert_filters(&client, 6000).await;
    node.stop().await;
}

/// The side index is derived: spoilt or lost, it is made anew.
#[tokio::test(flavor = "multi_thread")]
async fn a_spoilt_index_is_made_anew() {
    let node = filled(6000).await;
    assert_filters(&RemotingClient::new(&node.rocketmq()), 6000).await;
    let mut disk = node.stop().await;
    let path = Path::new("/data/t-0/00000000000000000000.tags");
    for spoil in [
        |content: &mut Vec<u8>| content[100] ^= 1,
        |content: &mut Vec<u8>| content.truncate(content.len() / 2),
        |content: &mut Vec<u8>| content.clear(),
    ] {
        let mut content = disk.content(path).expect("the index of a sealed segment");
        spoil(&mut content);
        disk.overwrite(path, &content);
        let node = TestNode::start_on(disk, &[]).await;
        assert_filters(&RemotingClient::new(&node.rocketmq()), 6000).await;
        disk = node.stop().await;
    }
}

/// Whole ranges are passed without a batch of them being decoded.
#[tokio::test(flavor = "multi_thread")]
async fn batches_without_the_tag_are_not_decoded() {
    let node = filled(6000).await;
    let partition = node.partition("t", 0);
    let topic = node.node.controller.image().topic("t").expect("t").queues.clone();
    let cache = BatchCache::new(DECODED_CACHE_BYTES);
    let rare = [java_hash("rare")];
    let request = ReadRequest {
        topic: &topic,
        partition: 0,
        offset: 0,
        bytes_max: 1 << 20,
        records_max: 32,
        tags: Some(&rare),
    };
    let read = read::read(&node.node, &cache, &partition, &request).await.expect("read");
    let bases: Vec<i64> = read.batches.iter().map(|batch| batch.base_offset()).collect();
    assert_eq!(bases, [1500, 2990]);
    let decoded = |offset| cache.find((partition.topic_id, 0), offset).is_some();
    let near = (0..5000).step_by(10).filter(|base| decoded(*base)).collect::<Vec<_>>();
    assert_eq!(near, [1500, 2990]);
    assert!(read.next_offset > 5000, "{}", read.next_offset);
    node.stop().await;
}

/// Near the end the batches themselves are looked at; a burst behind a held pull goes by the index.
#[tokio::test(flavor = "multi_thread")]
async fn a_held_pull_finds_its_tag_in_what_arrives() {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[]).await;
    let client = RemotingClient::new(&node.rocketmq());
    let partition = node.partition("t", 0);
    plant(&partition, tagged_batch(BatchParams::default(), &[("common", b"a")])).await;
    let mut held = client.hold("t", 1, "600000", &[("subscription", "rare")]).await;
    for _ in 0..300 {
        let other = [("common", &b"b"[..]); 10];
        plant(&partition, tagged_batch(BatchParams::default(), &other)).await;
    }
    assert!(futures_util::poll!(&mut held).is_pending(), "none of them is wanted");
    let found = plant(&partition, tagged_batch(BatchParams::default(), &[("rare", b"c")])).await;
    let answer = tokio::time::timeout(LIMIT, held).await.expect("woken");
    let answer = answer.map(Answer::into_command).expect("an answer");
    assert_eq!((answer.code, offsets(&answer)), (0, vec![found]), "{:?}", answer.ext_fields);
    node.stop().await;
}
