//! Delays, recalls and retries over the whole node: what clients of both protocols see of them.

use duolog_bridge::remoting::RemotingCommand;
use duolog_bridge::remoting::message::Message;
use duolog_bridge::translate::properties::Properties;

use crate::testing::rocketmq::{RemotingClient, field, offsets, send_fields};
use crate::testing::served::{TestNode, eventually};

/// Level 1 is due at once, the others never in a test's time.
const LEVELS: &str = "rocketmq.messageDelayLevel=0s 1d 0s 0s 1d";

async fn send(client: &RemotingClient, topic: &str, properties: &str) -> RemotingCommand {
    let properties = format!("UNIQ_KEY\u{1}0A\u{2}{properties}");
    client.call(310, &send_fields(topic, &[("i", &properties)]), b"body").await
}

/// Waits until queue 0 of a topic has a message at `offset`; the answer that has it.
async fn arrived(client: &RemotingClient, topic: &str, offset: i64) -> RemotingCommand {
    let began = std::time::Instant::now();
    loop {
        let answer = client.pull(topic, offset, &[]).await;
        if answer.code == 0 && offsets(&answer).contains(&offset) {
            return answer;
        }
        assert!(began.elapsed() < crate::testing::served::LIMIT, "{topic}: {:?}", answer.remark);
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}

fn property(answer: &RemotingCommand, name: &str) -> Option<String> {
    let message = Message::decode(&mut &answer.body[..]).expect("a message");
    let text = std::str::from_utf8(message.properties).expect("text");
    Properties(text).get(name).map(str::to_owned)
}

#[tokio::test(flavor = "multi_thread")]
async fn delayed_messages_reach_their_topic_with_their_own_properties() {
    let node = TestNode::start(&[LEVELS]).await;
    let client = RemotingClient::new(&node.rocketmq());
    let answer = send(&client, "t", "DELAY\u{1}2\u{2}").await;
    assert_eq!((answer.code, field(&answer, "queueOffset")), (0, 0), "{:?}", answer.remark);
    let answer = send(&client, "t", "DELAY\u{1}1\u{2}TAGS\u{1}A\u{2}").await;
    assert_eq!((answer.code, field(&answer, "queueOffset")), (0, 1));
    let seen = arrived(&client, "t", 0).await;
    assert_eq!(property(&seen, "TAGS").as_deref(), Some("A"));
    assert_eq!(property(&seen, "REAL_TOPIC").as_deref(), Some("t"), "the broker's own word");
    assert_eq!(property(&seen, "DELAY").as_deref(), Some("1"));
    let message = Message::decode(&mut &seen.body[..]).expect("a message");
    assert_eq!(message.born_timestamp_ms, 1_600_000_000_000);
    assert!(message.store_timestamp_ms > message.born_timestamp_ms);
    assert_eq!(node.node.timers.waiting_count(), 1, "level 2 waits");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limits_of_timers_are_the_nodes_and_a_recalled_one_is_gone() {
    let settings = ["rocketmq.timerMaxDelaySec=60", "rocketmq.recallMessageEnable=true"];
    let node = TestNode::start(&settings).await;
    let client = RemotingClient::new(&node.rocketmq());
    let answer = send(&client, "t", "TIMER_DELAY_SEC\u{1}61\u{2}").await;
    assert_eq!(answer.code, 13);
    assert!(answer.remark.expect("a remark").contains("the max delay 60000ms"));
    let answer = send(&client, "t", "TIMER_DELAY_SEC\u{1}59\u{2}").await;
    assert_eq!((answer.code, node.node.timers.waiting_count()), (0, 1));
    let handle = answer.ext_fields.get("recallHandle").expect("a handle").to_owned();
    let fields = [("topic", "t"), ("recallHandle", handle.as_str()), ("producerGroup", "p")];
    let answer = client.call(370, &fields, b"").await;
    assert_eq!((answer.code, answer.ext_fields.get("msgId")), (0, Some("0A")));
    assert_eq!(node.node.timers.waiting_count(), 0);
    node.stop().await;
    let node = TestNode::start(&["rocketmq.timerWheelEnable=false"]).await;
    let client = RemotingClient::new(&node.rocketmq());
    assert_eq!(send(&client, "t", "TIMER_DELAY_SEC\u{1}1\u{2}").await.code, 1);
    node.stop().await;
}

/// Levels 3 and 4 are due at once here: two retries, then a dead letter, which a restart keeps.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_back_comes_again_and_is_a_dead_letter_at_last() {
    let node = TestNode::start(&[LEVELS]).await;
    let client = RemotingClient::new(&node.rocketmq());
    assert_eq!(send(&client, "t", "").await.code, 0);
    let mut answer = arrived(&client, "t", 0).await;
    for (topic, offset) in [("%RETRY%g", 0), ("%RETRY%g", 1), ("%DLQ%g", 0)] {
        let message = Message::decode(&mut &answer.body[..]).expect("a message");
        let place = message.physical_offset.to_string();
        let fields = [
            ("group", "g"),
            ("offset", place.as_str()),
            ("delayLevel", "0"),
            ("maxReconsumeTimes", "2"),
        ];
        let sent_back = client.call(36, &fields, b"").await;
        assert_eq!((sent_back.code, sent_back.remark.as_deref()), (0, None), "{topic} {offset}");
        answer = arrived(&client, topic, offset).await;
        assert_eq!(property(&answer, "RETRY_TOPIC").as_deref(), Some("t"));
    }
    let message = Message::decode(&mut &answer.body[..]).expect("a message");
    assert_eq!((message.reconsume_times, message.body), (3, &b"body"[..]));
    let on_their_way = || node.node.timers.on_their_way_count() == 0;
    eventually("all is known to have arrived", on_their_way).await;
    let node = TestNode::start_on(node.stop().await, &[LEVELS]).await;
    let client = RemotingClient::new(&node.rocketmq());
    arrived(&client, "%DLQ%g", 0).await;
    assert_eq!(offsets(&client.pull("%RETRY%g", 0, &[]).await), [0, 1]);
    node.stop().await;
}
