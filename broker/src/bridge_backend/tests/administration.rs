//! Figures that mqadmin prints.

use duolog_log_core::record::BatchParams;

use super::text;
use crate::clock;
use crate::testing::rocketmq::{RemotingClient, field, offsets, plant, tagged_batch};
use crate::testing::served::TestNode;

/// A value of brokerStatus.
async fn status(client: &RemotingClient, name: &str) -> String {
    let answer = client.call(28, &[], b"").await;
    let (_, rest) = text(&answer).split_once(&format!("\"{name}\":\"")).expect(name);
    rest.split('"').next().expect("a value").to_owned()
}

async fn earliest(client: &RemotingClient) -> i64 {
    status(client, "earliestMessageTimeStamp").await.parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_earliest_message_is_that_of_all_topics() {
    let node = TestNode::start(&[]).await;
    let client = RemotingClient::new(&node.rocketmq());
    assert_eq!(earliest(&client).await, -1);
    let one = || tagged_batch(BatchParams::default(), &[("", b"a")]);
    let before = clock::now_ms();
    for topic in ["t", "u"] {
        node.create_topic(topic, &[]).await;
        plant(&node.partition(topic, 0), one()).await;
        // Another millisecond, so that the two differ.
        while clock::now_ms() <= earliest(&client).await {
            tokio::task::yield_now().await;
        }
    }
    let first = earliest(&client).await;
    assert!((before..=clock::now_ms()).contains(&first), "{first}");
    let queue = [("topic", "t"), ("queueId", "0")];
    assert_eq!(field(&client.call(32, &queue, b"").await, "timestamp"), first);
    // The log starts later, by retention or because somebody said so.
    node.partition("t", 0).delete_records(-1).await.expect("deleted");
    let second = earliest(&client).await;
    assert!(second > first, "{second} after {first}");
    let id = node.node.controller.image().topic("u").expect("u").id;
    node.node.delete_topic(id).await.expect("deleted");
    assert_eq!(earliest(&client).await, -1);
    node.stop().await;
}

/// What was pulled and not consumed is in flight; what was pulled and appended lately has a rate.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_flight_and_how_fast_it_goes() {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[]).await;
    let client = RemotingClient::new(&node.rocketmq());
    let records = [("", &b"a"[..]); 120];
    plant(&node.partition("t", 0), tagged_batch(BatchParams::default(), &records)).await;
    let topic = client.call(202, &[("topic", "t")], b"").await;
    assert!(text(&topic).ends_with("\"topicPutTps\":2.0}"), "{}", text(&topic));
    client.pull("t", 120, &[]).await;
    let commit = [("consumerGroup", "g"), ("topic", "t"), ("queueId", "0"), ("commitOffset", "10")];
    assert_eq!(client.call(15, &commit, b"").await.code, 0);
    assert_eq!(offsets(&client.pull("t", 10, &[]).await).len(), 32);
    let stats = client.call(208, &[("consumerGroup", "g"), ("topic", "t")], b"").await;
    let row = "\"brokerOffset\":120,\"consumerOffset\":10,";
    assert!(text(&stats).contains(row), "{}", text(&stats));
    assert!(text(&stats).contains("\"pullOffset\":42}"), "{}", text(&stats));
    assert!(!text(&stats).contains("\"consumeTps\":0.0"), "{}", text(&stats));
    let other = client.call(208, &[("consumerGroup", "h"), ("topic", "t")], b"").await;
    assert!(text(&other).contains("\"consumeTps\":0.0"), "another group's");
    node.stop().await;
}
