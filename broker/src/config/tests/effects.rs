//! Settings of a node, each by what changes with it.

mod replies;
mod settings;

use std::sync::Arc;

use duolog_bridge::dispatch::{Dispatched, Dispatcher};
use duolog_bridge::remoting::{RemotingCommand, SerializeType};
use duolog_bridge::session::{Door, Session};
use duolog_log_core::gate::{GateAction, GatePoint};
use duolog_log_core::ids::{ProducerEpoch, ProducerId};
use duolog_log_core::record::{BatchParams, ProducerSequence};
use tokio::sync::mpsc;

use crate::bridge_backend::BridgeBackend;
use crate::kafka::codec::messages::fetch_request::{FetchPartition, FetchTopic};
use crate::kafka::codec::messages::{FetchRequest, FetchResponse};
use crate::testing::rocketmq::send_fields;
use crate::testing::served::{Attempts, LIMIT, TestNode, batch, batch_of, eventually};

const SEND_MESSAGE_V2: i32 = 310;
const PULL_MESSAGE: i32 = 11;
const GET_ROUTE: i32 = 105;

/// A RocketMQ client's way into a node.
struct RocketMq {
    dispatcher: Dispatcher<BridgeBackend>,
    broker: Arc<Session>,
    namesrv: Arc<Session>,
}

impl RocketMq {
    fn of(node: &TestNode) -> Self {
        let address = ([127, 0, 0, 1], 10911).into();
        let dispatcher = BridgeBackend::dispatcher(node.node.clone(), address);
        let open = |door| dispatcher.open(door, address, mpsc::channel(1).0);
        let (broker, namesrv) = (open(Door::Broker), open(Door::NameServer));
        Self { dispatcher, broker, namesrv }
    }

    async fn ask_namesrv(&self, code: i32, fields: &[(&str, &str)]) -> RemotingCommand {
        self.ask_at(&self.namesrv, code, fields, &[]).await
    }

    async fn ask(&self, code: i32, fields: &[(&str, &str)], body: &[u8]) -> RemotingCommand {
        let session = if code == GET_ROUTE { &self.namesrv } else { &self.broker };
        self.ask_at(session, code, fields, body).await
    }

    async fn ask_at(
        &self,
        session: &Arc<Session>,
        code: i32,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> RemotingCommand {
        let request =
            RemotingCommand::request(code, 1, SerializeType::Json).with_body(body.to_vec());
        let request =
            fields.iter().fold(request, |request, (name, value)| request.with_field(name, value));
        let answer = match self.dispatcher.dispatch(session, request) {
            Dispatched::Now(answer) => answer,
            Dispatched::Later(answer) => {
                tokio::time::timeout(LIMIT, answer).await.expect("an answer in time")
            }
        };
        answer.expect("an answer").into_command()
    }

    /// The code of a send to queue 0 of `topic`.
    async fn send(&self, topic: &str, body: &[u8]) -> i32 {
        let fields = send_fields(topic, &[("g", "1")]);
        self.ask(SEND_MESSAGE_V2, &fields, body).await.code
    }

    /// Code and next offset of a pull of up to 32 messages from `offset` on, held for up to a minute.
    async fn pull(&self, topic: &str, offset: i64) -> (i32, i64) {
        let offset = offset.to_string();
        let fields = [
            ("consumerGroup", "g"),
            ("topic", topic),
            ("queueId", "0"),
            ("queueOffset", &offset),
            ("maxMsgNums", "32"),
            ("sysFlag", "6"),
            ("commitOffset", "0"),
            ("suspendTimeoutMillis", "60000"),
            ("subscription", "*"),
            ("subVersion", "0"),
        ];
        let answer = self.ask(PULL_MESSAGE, &fields, &[]).await;
        (answer.code, answer.field("nextBeginOffset").unwrap_or(-1))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rocketmqs_sends_obey_their_settings() {
    let settings = [
        "rocketmq.maxMessageSize=1024",
        "rocketmq.defaultTopicQueueNums=2",
        "rocketmq.brokerClusterName=lab",
        "rocketmq.brokerName=broker-z",
    ];
    let node = TestNode::start(&settings).await;
    let rocketmq = RocketMq::of(&node);
    assert_eq!(rocketmq.send("t", &[b'v'; 1025]).await, 13, "too large");
    assert_eq!(rocketmq.send("t", &[b'v'; 1024]).await, 0);
    let partitions = node.node.controller.image().topic("t").expect("created").partition_count();
    assert_eq!(partitions, 2, "fewer than the client asks for");
    let route = rocketmq.ask(GET_ROUTE, &[("topic", "t")], &[]).await;
    let text = String::from_utf8_lossy(&route.body).into_owned();
    assert!(text.contains("\"lab\"") && text.contains("\"broker-z\""), "{text}");
    node.stop().await;

    let node = TestNode::start(&["rocketmq.autoCreateTopicEnable=false"]).await;
    assert_eq!(RocketMq::of(&node).send("t", b"v").await, 17, "there is no such topic");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rocketmqs_pulls_obey_their_settings() {
    let settings = ["rocketmq.maxTransferCountOnMessageInMemory=2"];
    let node = TestNode::start(&settings).await;
    let rocketmq = RocketMq::of(&node);
    for _ in 0..3 {
        assert_eq!(rocketmq.send("t", b"v").await, 0);
    }
    assert_eq!(rocketmq.pull("t", 0).await, (0, 2));
    node.stop().await;

    let node = TestNode::start(&["rocketmq.maxTransferBytesOnMessageInMemory=1000"]).await;
    let rocketmq = RocketMq::of(&node);
    for _ in 0..3 {
        assert_eq!(rocketmq.send("t", &[b'v'; 600]).await, 0);
    }
    assert_eq!(rocketmq.pull("t", 0).await, (0, 1));
    node.stop().await;

    let node = TestNode::start(&["rocketmq.autoCreateSubscriptionGroup=false"]).await;
    let rocketmq = RocketMq::of(&node);
    assert_eq!(rocketmq.send("t", b"v").await, 0);
    assert_eq!(rocketmq.pull("t", 0).await.0, 26, "there is no such group");
    node.stop().await;

    // CHECK_CLIENT_CONFIG of an SQL92 subscription.
    let body = br#"{"clientId":"c","group":"g","subscriptionData":{"topic":"t","subString":"a > 1","expressionType":"SQL92"}}"#;
    for (setting, code) in
        [("rocketmq.enablePropertyFilter=true", 0), ("rocketmq.enablePropertyFilter=false", 1)]
    {
        let node = TestNode::start(&[setting]).await;
        assert_eq!(RocketMq::of(&node).ask(46, &[], body).await.code, code, "{setting}");
        node.stop().await;
    }

    // Without long polling a pull at the end waits a second and not the minute that it asks for.
    let node = TestNode::start(&["rocketmq.longPollingEnable=false"]).await;
    let rocketmq = RocketMq::of(&node);
    assert_eq!(rocketmq.send("t", b"v").await, 0);
    assert_eq!(rocketmq.pull("t", 1).await.0, 19);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_send_waits_for_the_disk_as_long_as_it_is_told() {
    let settings = ["rocketmq.flushDiskType=SYNC_FLUSH", "rocketmq.syncFlushTimeout=50"];
    let node = TestNode::start(&settings).await;
    let rocketmq = RocketMq::of(&node);
    // In time, unless the machine has other things to do.
    let attempts = Attempts::at("a sync within 50 ms");
    while rocketmq.send("t", b"v").await != 0 {
        attempts.again().await;
    }
    let gate = node.arm(GatePoint::FlushBefore, "t", GateAction::Hold);
    assert_eq!(rocketmq.send("t", b"v").await, 10, "FLUSH_DISK_TIMEOUT");
    node.node.instruments.release(gate);
    node.stop().await;

    // Nobody waits, but it is on the disk soon.
    let node = TestNode::start(&["rocketmq.flushIntervalCommitLog=20"]).await;
    assert_eq!(RocketMq::of(&node).send("t", b"v").await, 0);
    let topic = node.node.controller.image().topic("t").expect("created").id;
    let partition = node.node.partitions.find(topic, 0).expect("a partition");
    eventually("the record is synced", || partition.synced() == 1).await;
    node.stop().await;
}

/// How long a group without positions is sent to the newest: never while the partition counts as held in memory.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_position_depends_on_how_much_counts_as_memory() {
    const QUERY_CONSUMER_OFFSET: i32 = 14;
    let fields = [("consumerGroup", "new"), ("topic", "t"), ("queueId", "0")];
    for (setting, code) in [
        ("rocketmq.accessMessageInMemoryMaxRatio=40", 0),
        ("rocketmq.accessMessageInMemoryMaxRatio=0", 22),
    ] {
        let node = TestNode::start(&[setting]).await;
        let rocketmq = RocketMq::of(&node);
        assert_eq!(rocketmq.send("t", b"v").await, 0);
        assert_eq!(rocketmq.ask(QUERY_CONSUMER_OFFSET, &fields, &[]).await.code, code, "{setting}");
        node.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_fetch_gives_no_more_than_the_node_allows() {
    let node = TestNode::start(&["fetch.max.bytes=60000"]).await;
    node.create_topic("t", &[]).await;
    let mut client = node.connect().await;
    for _ in 0..3 {
        client.produce("t", 1, batch(&["v".repeat(25_000).as_str()])).await;
    }
    let partition = FetchPartition {
        partition: 0,
        fetch_offset: 0,
        partition_max_bytes: i32::MAX,
        ..FetchPartition::default()
    };
    let request = FetchRequest {
        max_bytes: i32::MAX,
        topics: vec![FetchTopic {
            topic: "t".into(),
            partitions: vec![partition],
            ..FetchTopic::default()
        }],
        ..FetchRequest::default()
    };
    let response: FetchResponse = client.call(12, &request).await;
    let bytes = response.responses[0].partitions[0].records.as_ref().map_or(0, |r| r.len());
    assert!((50_000..=60_000).contains(&bytes), "{bytes}");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_checkpoint_is_written_when_its_time_has_come() {
    for (key, file) in [
        ("log.flush.offset.checkpoint.interval.ms", "recovery-point-offset-checkpoint"),
        ("log.flush.start.offset.checkpoint.interval.ms", "log-start-offset-checkpoint"),
        ("replica.high.watermark.checkpoint.interval.ms", "replication-offset-checkpoint"),
    ] {
        let node = TestNode::start(&[&format!("{key}=20")]).await;
        let topic = node.create_topic("t", &[("flush.messages", "1")]).await;
        let mut client = node.connect().await;
        for value in ["a", "b"] {
            client.produce("t", 1, batch(&[value])).await;
        }
        let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
        partition.delete_records(1).await.expect("deleted");
        let path = std::path::Path::new("/data").join(file);
        eventually(key, || {
            let content = node.disk.content(&path).unwrap_or_default();
            String::from_utf8_lossy(&content).lines().any(|line| line.starts_with("t 0 "))
        })
        .await;
        node.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_producer_is_forgotten_when_its_time_has_come() {
    let settings = ["producer.id.expiration.ms=40", "producer.id.expiration.check.interval.ms=10"];
    let node = TestNode::start(&settings).await;
    node.create_topic("t", &[]).await;
    let mut client = node.connect().await;
    let from = |base_sequence| {
        let (id, epoch) = (ProducerId(7), ProducerEpoch(0));
        let producer = Some(ProducerSequence { id, epoch, base_sequence });
        batch_of(BatchParams { producer, ..BatchParams::default() }, &["v"])
    };
    assert_eq!(client.produce("t", 1, from(0)).await, (0, 0));
    let forgotten = async {
        // 45 OUT_OF_ORDER_SEQUENCE_NUMBER as long as it is known.
        while client.produce("t", 1, from(5)).await.0 != 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, forgotten).await.expect("forgotten in time");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_hear_of_changes_unless_the_node_says_no() {
    const HEART_BEAT: i32 = 34;
    const NOTIFY_CONSUMER_IDS_CHANGED: i32 = 40;
    for (setting, heard) in [
        ("rocketmq.notifyConsumerIdsChangedEnable=true", Some(NOTIFY_CONSUMER_IDS_CHANGED)),
        ("rocketmq.notifyConsumerIdsChangedEnable=false", None),
    ] {
        let node = TestNode::start(&[setting]).await;
        let mut rocketmq = RocketMq::of(&node);
        let (outbox, mut notices) = mpsc::channel(8);
        let address = ([127, 0, 0, 1], 10911).into();
        for outbox in [outbox, mpsc::channel(1).0] {
            rocketmq.broker = rocketmq.dispatcher.open(Door::Broker, address, outbox);
            let client = rocketmq.broker.id();
            let body = format!(
                r#"{{"clientID":"c@{client:?}","producerDataSet":[],"consumerDataSet":[{{
                "groupName":"g","consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING",
                "consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","unitMode":false,
                "subscriptionDataSet":[{{"topic":"t","subString":"*","subVersion":1}}]}}]}}"#
            );
            assert_eq!(rocketmq.ask(HEART_BEAT, &[], body.as_bytes()).await.code, 0);
        }
        // The first hears of the second before the second is answered.
        assert_eq!(notices.try_recv().ok().map(|notice| notice.code), heard, "{setting}");
        node.stop().await;
    }
}
