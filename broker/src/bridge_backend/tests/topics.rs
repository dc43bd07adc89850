//! Topics and their switches through both protocols' doors.

use duolog_bridge::dispatch::Answer;
use duolog_bridge::remoting::message::Message;
use duolog_bridge::translate::send::{KeySource, Tombstones};
use duolog_log_core::log::ReadMinimum;
use duolog_log_core::record::DecodedBatch;
use duolog_log_core::record::batch::SharedBatches;
use duolog_log_core::record::compression::Decompressor;

use super::text;
use crate::kafka::codec::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use crate::kafka::codec::messages::metadata_request::MetadataRequestTopic;
use crate::kafka::codec::messages::{
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, MetadataRequest,
    MetadataResponse,
};
use crate::testing::rocketmq::{RemotingClient, offsets, send_fields};
use crate::testing::served::{Client, LIMIT, TestNode};

/// A hold that nothing but an event of the test ends.
const LONGER_THAN_THE_TEST: &str = "600000";

/// The keys of all records of partition 0, as Kafka has them.
async fn keys(node: &TestNode, topic: &str) -> Vec<Option<String>> {
    let partition = node.partition(topic, 0);
    let reader = partition.reader().await.expect("a log");
    let read = reader.read(0, 1 << 20, i64::MAX, ReadMinimum::OneBatch).expect("read");
    let mut keys = Vec::new();
    for batch in read.pieces.into_iter().flat_map(SharedBatches::new) {
        let (_, bytes) = batch.expect("a batch");
        let decoded = DecodedBatch::decode(&bytes, &mut Decompressor::new(), 1 << 20);
        let decoded = decoded.expect("a batch");
        let text = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
        keys.extend(decoded.iter().map(|record| record.key.map(text)));
    }
    keys
}

async fn create(client: &RemotingClient, attributes: &str) {
    let fields = [
        ("topic", "t"),
        ("defaultTopic", "TBW102"),
        ("readQueueNums", "1"),
        ("writeQueueNums", "1"),
        ("perm", "6"),
        ("topicFilterType", "SINGLE_TAG"),
        ("order", "false"),
        ("attributes", attributes),
    ];
    let answer = client.call(17, &fields, b"").await;
    assert_eq!((answer.code, answer.remark), (0, None), "{attributes}");
}

async fn send(client: &RemotingClient) {
    let properties = "UNIQ_KEY\u{1}0A\u{2}KEYS\u{1}k1 k2\u{2}__SHARDINGKEY\u{1}shard\u{2}";
    let fields = send_fields("t", &[("i", properties)]);
    assert_eq!(client.call(310, &fields, b"body").await.code, 0);
}

/// Sets a topic's key as kafka-configs does; the error code.
async fn alter(kafka: &mut Client, name: &str, value: &str) -> i16 {
    let request = IncrementalAlterConfigsRequest {
        resources: vec![AlterConfigsResource {
            resource_type: 2,
            resource_name: "t".into(),
            configs: vec![AlterableConfig {
                name: name.into(),
                config_operation: 0,
                value: Some(value.into()),
            }],
        }],
        validate_only: false,
    };
    let response: IncrementalAlterConfigsResponse = kafka.call(1, &request).await;
    response.responses[0].error_code
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_that_kafka_sees_is_set_through_either_door() {
    let node = TestNode::start(&[]).await;
    let client = RemotingClient::new(&node.rocketmq());
    let mut kafka = node.connect().await;
    let config = async || text(&client.call(351, &[("topic", "t")], b"").await).to_owned();
    create(&client, "").await;
    send(&client).await;
    assert!(config().await.contains("\"attributes\":{}"), "what nobody set is no attribute");
    create(&client, "+rmq.key.source=shardingkey").await;
    send(&client).await;
    assert!(config().await.contains("\"rmq.key.source\":\"shardingkey\""));
    assert_eq!(alter(&mut kafka, "rmq.key.source", "none").await, 0);
    send(&client).await;
    assert!(config().await.contains("\"rmq.key.source\":\"none\""));
    assert_ne!(alter(&mut kafka, "rmq.key.source", "tags").await, 0, "refused");
    assert_eq!(alter(&mut kafka, "rmq.key.source", "keys").await, 0);
    send(&client).await;
    let expected = [Some("k1 k2"), Some("shard"), None, Some("k1 k2")];
    assert_eq!(keys(&node, "t").await, expected.map(|key| key.map(str::to_owned)));
    node.stop().await;
}

/// As recorded of a 5.5.0 broker: an attribute is what was set, and goes when it is taken away.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_type_shows_where_it_is_set() {
    let node = TestNode::start(&[]).await;
    let client = RemotingClient::new(&node.rocketmq());
    let mut kafka = node.connect().await;
    for (attributes, shown) in [
        ("", "{}"),
        ("+message.type=FIFO", "{\"message.type\":\"FIFO\"}"),
        ("", "{\"message.type\":\"FIFO\"}"),
        ("-message.type", "{}"),
    ] {
        create(&client, attributes).await;
        let config = client.call(351, &[("topic", "t")], b"").await;
        let expected = format!("\"attributes\":{shown}");
        assert!(text(&config).contains(&expected), "{attributes}: {}", text(&config));
    }
    assert_eq!(alter(&mut kafka, "message.type", "DELAY").await, 0);
    let config = client.call(351, &[("topic", "t")], b"").await;
    assert!(text(&config).contains("{\"message.type\":\"DELAY\"}"));
    node.stop().await;
}

/// Tombstones follow `cleanup.policy`.
#[tokio::test(flavor = "multi_thread")]
async fn tombstones_follow_the_cleanup_policy() {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[]).await;
    let topic = node.node.controller.image().topic("t").expect("t").queues.clone();
    assert_eq!((topic.tombstones, topic.key_source), (Tombstones::Refused, KeySource::Keys));
    let offsets = node.node.open_coordinators().await;
    assert!(offsets.is_ok());
    let image = node.node.controller.image();
    let compacted =
        image.topics_sorted().iter().find(|topic| topic.config.cleanup.compact).cloned();
    assert_eq!(compacted.expect("of the node's own").queues.tombstones, Tombstones::Allowed);
    node.stop().await;
}

/// Pitfall 27: first sends and Kafka's first look, all at once, make one topic with one number of
/// partitions, whichever door was first.
#[tokio::test(flavor = "multi_thread")]
async fn both_doors_at_once_make_one_topic() {
    let node = TestNode::start(&[]).await;
    let dispatcher = node.rocketmq();
    for round in 0..5 {
        let name = format!("made{round}");
        let sends = (0..20).map(|_| {
            let (client, name) = (RemotingClient::new(&dispatcher), name.clone());
            tokio::spawn(async move {
                let fields = send_fields(&name, &[]);
                client.call(310, &fields, b"body").await.code
            })
        });
        let sends: Vec<_> = sends.collect();
        let looks = (0..5).map(|_| {
            let name = name.clone();
            let kafka = node.connect();
            async move {
                let mut kafka = kafka.await;
                let request = MetadataRequest {
                    topics: Some(vec![MetadataRequestTopic {
                        name: Some(name.as_str().into()),
                        ..MetadataRequestTopic::default()
                    }]),
                    allow_auto_topic_creation: true,
                    ..MetadataRequest::default()
                };
                let response: MetadataResponse = kafka.call(9, &request).await;
                response.topics[0].partitions.len()
            }
        });
        let looks = futures_util::future::join_all(looks).await;
        for send in sends {
            assert_eq!(send.await.expect("sent"), 0);
        }
        let topic = node.node.controller.image().topic(&name).cloned().expect("made");
        assert!([1, 4].contains(&topic.partition_count()), "{}", topic.partition_count());
        let seen: Vec<_> = looks.into_iter().filter(|count| *count > 0).collect();
        let all = usize::try_from(topic.partition_count()).expect("few");
        assert!(seen.iter().all(|count| *count == all), "{seen:?} of {all}");
        assert_eq!(keys(&node, &name).await.len(), 20, "all sends are in its first partition");
    }
    node.stop().await;
}

/// A message from a clock far ahead keeps its born timestamp for RocketMQ; to Kafka's searches and
/// to retention it is of now.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_clock_moves_no_timestamp_of_a_record() {
    let node = TestNode::start(&[]).await;
    let client = RemotingClient::new(&node.rocketmq());
    create(&client, "").await;
    let before = crate::clock::now_ms();
    for born in ["9223372036854775807", "-1"] {
        let fields = send_fields("t", &[("g", born)]);
        assert_eq!(client.call(310, &fields, b"body").await.code, 0, "{born}");
    }
    let pulled = client.pull("t", 0, &[]).await;
    let mut rest = &pulled.body[..];
    for born in [i64::MAX, -1] {
        let message = Message::decode(&mut rest).expect("a message");
        assert_eq!(message.born_timestamp_ms, born);
    }
    let reader = node.partition("t", 0).reader().await.expect("a log");
    let read = reader.read(0, 1 << 20, i64::MAX, ReadMinimum::OneBatch).expect("read");
    for batch in read.pieces.into_iter().flat_map(SharedBatches::new) {
        let (header, _) = batch.expect("a batch");
        assert!((before..=crate::clock::now_ms()).contains(&header.max_timestamp));
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_waits_for_a_built_in_topic_and_ends_with_the_node() {
    let node = TestNode::start(&[]).await;
    let client = RemotingClient::new(&node.rocketmq());
    let (pulled, awaited) = ("TBW102", "DefaultCluster_REPLY_TOPIC");
    let idle = client.hold(pulled, 0, LONGER_THAN_THE_TEST, &[]).await;
    let held = client.hold(awaited, 0, LONGER_THAN_THE_TEST, &[]).await;
    let sent = client.call(310, &send_fields(awaited, &[]), b"reply").await;
    assert_eq!(sent.code, 0, "{:?}", sent.remark);
    let answer = tokio::time::timeout(LIMIT, held).await.expect("woken");
    let answer = answer.map(Answer::into_command).expect("an answer");
    assert_eq!((answer.code, offsets(&answer)), (0, vec![0]));
    node.node.stopping.cancel();
    let answer = tokio::time::timeout(LIMIT, idle).await.expect("ended");
    assert_eq!(answer.map(Answer::into_command).expect("an answer").code, 19);
    node.stop().await;
}
