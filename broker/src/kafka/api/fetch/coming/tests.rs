use super::*;
use crate::kafka::api::fetch::read::Isolation;
use crate::kafka::api::tests::data::fetch_request;
use crate::kafka::codec::messages::FetchResponse;
use crate::kafka::codec::{Records, Uuid};
use crate::kafka::fetch_sessions::{Ask, PartitionKey, TopicKey};
use crate::testing::served::{TestNode, batch, eventually};

fn ask(max_bytes: i32) -> Ask {
    Ask {
        key: PartitionKey { topic: TopicKey::Id(Uuid::ZERO), partition: 0 },
        name: Some("t".into()),
        fetch_offset: 0,
        max_bytes,
        leader_epoch: -1,
        last_fetched_epoch: -1,
    }
}

fn bounds() -> Bounds {
    Bounds {
        max_wait_ms: 0,
        min_bytes: 1,
        max_bytes: i32::MAX,
        isolation: Isolation::ReadUncommitted,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_batch_is_counted_once() {
    let node = TestNode::start(&[]).await;
    let topic = node.create_topic("t", &[]).await;
    let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
    let mut client = node.connect().await;
    let ask = ask(1 << 20);
    let source = Source::Partition(partition.clone());
    let wanted = [Wanted { ask: &ask, told: None, source }];
    let mut coming = Coming::nothing(&wanted);
    assert!(!coming.is_enough(&bounds(), 0, &wanted), "nothing has come");
    for count in 1..=3 {
        client.produce("t", 1, batch(&["v"])).await;
        let bytes = i64::try_from(partition.bytes()).expect("few");
        assert!(!coming.is_enough(&bounds(), bytes + 1, &wanted));
        assert_eq!((coming.0[0].next_offset, coming.0[0].bytes), (count, bytes));
        assert!(coming.is_enough(&bounds(), bytes, &wanted));
    }
    let mut again = Coming::nothing(&wanted);
    // What is behind the offset that has been come to is not there any more, and what was counted is.
    assert_eq!(partition.delete_records(3).await, Ok(3));
    assert!(again.is_enough(&bounds(), i64::MAX, &wanted), "the client is to hear of it");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_topic_is_something_to_tell() {
    let node = TestNode::start(&[]).await;
    let topic = node.create_topic("t", &[]).await;
    let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
    let ask = ask(1 << 20);
    let wanted = [Wanted { ask: &ask, told: None, source: Source::Partition(partition) }];
    let mut coming = Coming::nothing(&wanted);
    assert!(!coming.is_enough(&bounds(), 1, &wanted));
    node.node.delete_topic(topic.id).await.expect("deleted");
    assert!(coming.is_enough(&bounds(), 1, &wanted));
    node.stop().await;
}

/// As DelayedFetch.tryComplete, which counts bytes, not batches that fit.
#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_fetch_is_answered_once_as_much_has_come_as_it_asks_for() {
    let node = TestNode::start(&[]).await;
    let topic = node.create_topic("t", &[]).await;
    let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
    let (mut reader, mut writer) = (node.connect().await, node.connect().await);
    let bytes = i32::try_from(batch(&["v"]).len()).expect("few");
    let mut request = fetch_request("t", &[(0, 0)]);
    (request.max_wait_ms, request.min_bytes) = (i32::MAX, 2 * bytes + 1);
    request.topics[0].partitions[0].partition_max_bytes = 2 * bytes + 1;
    reader.send(12, &request).await;
    for _ in 0..3 {
        eventually("the fetch waits", || partition.is_awaited()).await;
        writer.produce("t", 1, batch(&["v"])).await;
    }
    let (_, response): (_, FetchResponse) = reader.receive(12).await;
    let found = &response.responses[0].partitions[0];
    let expected = usize::try_from(2 * bytes).expect("few");
    assert_eq!(found.records.as_ref().map(Records::len), Some(expected));
    node.stop().await;
}
