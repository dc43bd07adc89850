//! Rule 5: below the last stable offset, without control records and aborted data. No client can
//! write transactions yet, so their batches are planted.

use duolog_bridge::dispatch::Answer;
use duolog_log_core::record::{BatchParams, TransactionOutcome};

use super::{pull_through, text};
use crate::testing::rocketmq::{
    RemotingClient, field, offsets, plant, plant_marker, tagged_batch, transactional_batch,
};
use crate::testing::served::{LIMIT, TestNode};

const LONGER_THAN_THE_TEST: &str = "600000";

/// A topic whose first partition holds, by offset: 0 1 plain, 2 3 aborted, 4 plain among them, 5
/// the marker, 6 7 committed, 8 the marker, 9 aborted, 10 the marker.
async fn node() -> TestNode {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[]).await;
    let partition = node.partition("t", 0);
    let plain = |values: &[&str]| {
        let records: Vec<_> = values.iter().map(|value| ("", value.as_bytes())).collect();
        tagged_batch(BatchParams::default(), &records)
    };
    plant(&partition, plain(&["a", "b"])).await;
    plant(&partition, transactional_batch(7, 0, &["doomed", "doomed"])).await;
    plant(&partition, plain(&["c"])).await;
    plant_marker(&partition, 7, TransactionOutcome::Abort).await;
    plant(&partition, transactional_batch(7, 2, &["d", "e"])).await;
    plant_marker(&partition, 7, TransactionOutcome::Commit).await;
    plant(&partition, transactional_batch(8, 0, &["doomed"])).await;
    let last = plant_marker(&partition, 8, TransactionOutcome::Abort).await;
    assert_eq!(last, 10);
    node
}

/// Cases B37, B128; pitfalls 3 and 6: no hole is an illegal offset, wherever a client begins.
#[tokio::test(flavor = "multi_thread")]
async fn pulls_pass_markers_and_aborted_data_without_a_correction() {
    let node = node().await;
    let client = RemotingClient::new(&node.rocketmq());
    let deliverable = [0, 1, 4, 6, 7];
    for from in 0..=11 {
        let expected: Vec<i64> = deliverable.into_iter().filter(|offset| *offset >= from).collect();
        assert_eq!(pull_through(&client, "t", from, &[]).await, expected, "from {from}");
        for count in ["1", "2"] {
            let few = pull_through(&client, "t", from, &[("maxMsgNums", count)]).await;
            assert_eq!(few, expected, "from {from} by {count}");
        }
    }
    let end = client.pull("t", 11, &[]).await;
    assert_eq!((end.code, field(&end, "maxOffset")), (19, 11));
    node.stop().await;
}

/// Cases B35, B37; pitfall 3.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_at_or_above_the_stable_offset_is_shown() {
    let node = node().await;
    let client = RemotingClient::new(&node.rocketmq());
    let partition = node.partition("t", 0);
    plant(&partition, transactional_batch(9, 0, &["open"])).await;
    plant(&partition, tagged_batch(BatchParams::default(), &[("", b"behind")])).await;
    assert_eq!(partition.offsets().high_watermark, 13);
    let answer = client.pull("t", 10, &[]).await;
    assert_eq!((answer.code, field(&answer, "nextBeginOffset")), (20, 11));
    assert_eq!(field(&answer, "maxOffset"), 11);
    assert_eq!(pull_through(&client, "t", 0, &[]).await, [0, 1, 4, 6, 7]);
    assert_eq!(client.pull("t", 12, &[]).await.code, 21, "beyond what is shown");
    let queue = [("topic", "t"), ("queueId", "0")];
    assert_eq!(field(&client.call(30, &queue, b"").await, "offset"), 11);
    let late = [&queue[..], &[("timestamp", "9000000000000")]].concat();
    assert_eq!(field(&client.call(29, &late, b"").await, "offset"), 11);
    node.stop().await;
}

/// Pitfall 3: a long poll that waited for the high watermark would sleep on.
#[tokio::test(flavor = "multi_thread")]
async fn a_held_pull_wakes_when_only_the_stable_offset_moves() {
    for (outcome, expected) in
        [(TransactionOutcome::Commit, vec![11, 12]), (TransactionOutcome::Abort, vec![12])]
    {
        let node = node().await;
        let client = RemotingClient::new(&node.rocketmq());
        let partition = node.partition("t", 0);
        plant(&partition, transactional_batch(9, 0, &["open"])).await;
        plant(&partition, tagged_batch(BatchParams::default(), &[("", b"behind")])).await;
        let held = client.hold("t", 11, LONGER_THAN_THE_TEST, &[]).await;
        plant_marker(&partition, 9, outcome).await;
        let answer = tokio::time::timeout(LIMIT, held).await.expect("woken");
        let answer = answer.map(Answer::into_command).expect("an answer");
        assert_eq!((answer.code, offsets(&answer)), (0, expected), "{outcome:?}");
        node.stop().await;
    }
}

/// A marker is nothing for the client, but its position passes it (case B128).
#[tokio::test(flavor = "multi_thread")]
async fn a_held_pull_passes_a_marker_and_tells_so_when_its_time_is_up() {
    let node = node().await;
    let client = RemotingClient::new(&node.rocketmq());
    let partition = node.partition("t", 0);
    plant(&partition, transactional_batch(9, 0, &["doomed"])).await;
    let held = client.hold("t", 11, "3000", &[]).await;
    plant_marker(&partition, 9, TransactionOutcome::Abort).await;
    let answer = tokio::time::timeout(LIMIT, held).await.expect("time is up");
    let answer = answer.map(Answer::into_command).expect("an answer");
    assert_eq!((answer.code, field(&answer, "nextBeginOffset")), (20, 13));
    assert!(pull_through(&client, "t", 13, &[]).await.is_empty());
    node.stop().await;
}

/// Cases B128, B133; pitfall 7: what lies behind the last message is no lag.
#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_read_all_has_no_lag_before_a_trailing_marker() {
    let node = node().await;
    let client = RemotingClient::new(&node.rocketmq());
    // Asking makes the group.
    client.pull("t", 0, &[]).await;
    for (position, shown) in [("5", 5), ("7", 7), ("8", 11), ("9", 11), ("11", 11)] {
        let commit =
            [("consumerGroup", "g"), ("topic", "t"), ("queueId", "0"), ("commitOffset", position)];
        assert_eq!(client.call(15, &commit, b"").await.code, 0);
        let stats = client.call(208, &[("consumerGroup", "g"), ("topic", "t")], b"").await;
        let expected = format!("\"brokerOffset\":11,\"consumerOffset\":{shown},");
        assert!(text(&stats).contains(&expected), "{position}: {}", text(&stats));
        let untold = format!("{expected}\"lastTimestamp\":0,");
        assert!(!text(&stats).contains(&untold), "time of the last message consumed");
    }
    let topic = client.call(202, &[("topic", "t")], b"").await;
    let untold = "{\"lastUpdateTimestamp\":0,\"maxOffset\":11";
    assert!(!text(&topic).contains(untold), "time of the last message: {}", text(&topic));
    node.stop().await;
}

/// All of a queue may be nothing for readers.
#[tokio::test(flavor = "multi_thread")]
async fn a_queue_of_aborted_data_alone_has_no_message() {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[]).await;
    let partition = node.partition("t", 0);
    plant(&partition, transactional_batch(7, 0, &["doomed"; 40])).await;
    plant_marker(&partition, 7, TransactionOutcome::Abort).await;
    let dispatcher = node.rocketmq();
    let client = RemotingClient::new(&dispatcher);
    let answer = client.pull("t", 0, &[]).await;
    assert_eq!((answer.code, field(&answer, "nextBeginOffset")), (20, 41));
    assert!(pull_through(&client, "t", 0, &[]).await.is_empty());
    let stats = client.call(202, &[("topic", "t")], b"").await;
    assert!(text(&stats).contains("{\"lastUpdateTimestamp\":0,\"maxOffset\":41,\"minOffset\":0}"));
    tokio::time::timeout(LIMIT, node.stop()).await.expect("nothing hangs");
}
