//! Replies, traces, and how resets reach members.

use super::{GET_ROUTE, RocketMq};
use crate::testing::rocketmq::send_fields;
use crate::testing::served::TestNode;

const SEND_REPLY_MESSAGE_V2: i32 = 325;
const REPLY_TOPIC: &str = "DefaultCluster_REPLY_TOPIC";

#[tokio::test(flavor = "multi_thread")]
async fn replies_are_stored_unless_the_node_is_told_not_to() {
    for (setting, stored) in [
        ("rocketmq.storeReplyMessageEnable=true", true),
        ("rocketmq.storeReplyMessageEnable=false", false),
    ] {
        let node = TestNode::start(&[setting]).await;
        let fields = send_fields(REPLY_TOPIC, &[]);
        let answer = RocketMq::of(&node).ask(SEND_REPLY_MESSAGE_V2, &fields, b"v").await;
        assert_eq!(answer.code, 1, "nobody waits for it");
        let topic = node.node.controller.image().topic(REPLY_TOPIC).is_some();
        assert_eq!(topic, stored, "{setting}");
        node.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_trace_topic_is_there_from_the_start_if_the_node_is_told_so() {
    let trace = "RMQ_SYS_TRACE_TOPIC";
    for (setting, before, queues) in
        [("rocketmq.traceTopicEnable=true", 0, 1), ("rocketmq.traceTopicEnable=false", 17, 4)]
    {
        let node = TestNode::start(&[setting]).await;
        let rocketmq = RocketMq::of(&node);
        let route = rocketmq.ask(GET_ROUTE, &[("topic", trace)], &[]).await;
        assert_eq!(route.code, before, "{setting}");
        assert_eq!(rocketmq.send(trace, b"v").await, 0);
        let topic = node.node.controller.image().topic(trace).expect("a topic").partition_count();
        assert_eq!(topic, queues, "{setting}");
        node.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_needs_live_members_only_where_they_are_told_at_once() {
    const RESET: i32 = 222;
    for (setting, code) in [
        ("rocketmq.useServerSideResetOffset=true", 0),
        ("rocketmq.useServerSideResetOffset=false", 206),
    ] {
        let node = TestNode::start(&[setting]).await;
        let rocketmq = RocketMq::of(&node);
        assert_eq!(rocketmq.send("t", b"v").await, 0);
        // Makes the group and its positions.
        assert_eq!(rocketmq.pull("t", 0).await.0, 0);
        for queue in ["0", "1", "2", "3"] {
            let fields =
                [("consumerGroup", "g"), ("topic", "t"), ("queueId", queue), ("commitOffset", "0")];
            assert_eq!(rocketmq.ask(15, &fields, &[]).await.code, 0);
        }
        let fields = [("topic", "t"), ("group", "g"), ("timestamp", "-1"), ("isForce", "true")];
        assert_eq!(rocketmq.ask(RESET, &fields, &[]).await.code, code, "{setting}");
        node.stop().await;
    }
}
