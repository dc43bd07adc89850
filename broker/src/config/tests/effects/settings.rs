//! Settings by RocketMQ's names that a running node takes.

use super::{GET_ROUTE, RocketMq, SEND_MESSAGE_V2};
use crate::testing::rocketmq::send_fields;
use crate::testing::served::TestNode;

const UPDATE_BROKER_CONFIG: i32 = 25;
const GET_BROKER_CONFIG: i32 = 26;

impl RocketMq {
    async fn change(&self, settings: &str) -> (i32, String) {
        let answer = self.ask(UPDATE_BROKER_CONFIG, &[], settings.as_bytes()).await;
        (answer.code, answer.remark.unwrap_or_default())
    }

    async fn settings(&self) -> String {
        let answer = self.ask(GET_BROKER_CONFIG, &[], &[]).await;
        String::from_utf8_lossy(&answer.body).into_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_change_while_the_node_runs() {
    let node = TestNode::start(&["rocketmq.brokerPermission=6"]).await;
    let rocketmq = RocketMq::of(&node);
    assert_eq!(rocketmq.send("t", b"v").await, 0);
    assert_eq!(rocketmq.change("brokerPermission=4").await, (0, String::new()));
    let answer = rocketmq.ask(SEND_MESSAGE_V2, &send_fields("t", &[]), b"v").await;
    let remark = "the broker[127.0.0.1] sending message is forbidden";
    assert_eq!((answer.code, answer.remark.as_deref()), (16, Some(remark)));
    assert_eq!(rocketmq.pull("t", 0).await.0, 0);
    assert_eq!(rocketmq.change("brokerPermission=2\nmaxMessageSize=3").await.0, 0);
    assert_eq!(rocketmq.send("t", b"abc").await, 0);
    assert_eq!(rocketmq.send("t", b"abcd").await, 13);
    assert_eq!(rocketmq.pull("t", 0).await.0, 16);
    let settings = rocketmq.settings().await;
    for line in
        ["brokerPermission=2", "maxMessageSize=3", "listenPort=10911", "fileReservedTime=168"]
    {
        assert!(settings.lines().any(|told| told == line), "no {line} in:\n{settings}");
    }
    // RocketMQ's age of files is the logs'.
    assert_eq!(rocketmq.change("fileReservedTime=48").await.0, 0);
    let image = node.node.controller.image();
    assert_eq!(image.values().text("log.retention.ms"), Some("172800000"));
    drop(image);
    assert!(rocketmq.settings().await.contains("\nfileReservedTime=48\n"));
    // All or none; fixed, unknown and idle ones are named.
    for (settings, named) in [
        ("maxMessageSize=4\nlistenPort=1", "rocketmq.listenPort"),
        ("maxMessageSize=4\nnope=1", "rocketmq.nope"),
        ("maxMessageSize=4\ntransientStorePoolEnable=true", "transientStorePoolEnable"),
        ("maxMessageSize=-1", "maxMessageSize"),
        ("fileReservedTime=soon", "fileReservedTime"),
    ] {
        let (code, remark) = rocketmq.change(settings).await;
        assert!(code == 29 && remark.contains(named), "{settings}: {code} {remark}");
    }
    assert!(rocketmq.settings().await.contains("\nmaxMessageSize=3\n"));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn routes_tell_the_order_configuration_where_they_are_to() {
    const PUT_KV_CONFIG: i32 = 100;
    for (setting, told) in
        [("rocketmq.orderMessageEnable=true", true), ("rocketmq.orderMessageEnable=false", false)]
    {
        let node = TestNode::start(&[setting]).await;
        let rocketmq = RocketMq::of(&node);
        assert_eq!(rocketmq.send("t", b"v").await, 0);
        let fields = [("namespace", "ORDER_TOPIC_CONFIG"), ("key", "t"), ("value", "broker-a:4")];
        assert_eq!(rocketmq.ask_namesrv(PUT_KV_CONFIG, &fields).await.code, 0);
        let route = rocketmq.ask(GET_ROUTE, &[("topic", "t")], &[]).await;
        let route = String::from_utf8_lossy(&route.body).into_owned();
        assert_eq!(route.contains("\"orderTopicConf\":\"broker-a:4\""), told, "{setting}: {route}");
        node.stop().await;
    }
}
