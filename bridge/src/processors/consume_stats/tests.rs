use super::*;

/// Case B133, and markers behind the last message.
#[test]
fn a_lag_is_never_negative_and_reaches_zero() {
    let ends = Ends { deliverable_end: 17, end: 20 };
    for (position, shown) in
        [(0, 0), (5, 5), (16, 16), (17, 20), (19, 20), (20, 20), (1_000_000_000, 20)]
    {
        assert_eq!(shown_position(ends, position), shown, "{position}");
    }
    assert_eq!(shown_position(Ends { deliverable_end: 0, end: 0 }, 7), 0, "a queue that is empty");
}

use crate::backend::{Backend, Subscription};
use crate::fake::{Client, FakeBackend};

const STATS: i32 = 208;

/// Three messages in queue 0 of t1 and a marker behind them; the group has read `position` of them.
async fn backend(position: i64) -> FakeBackend {
    let backend = FakeBackend::new();
    backend.add_topic("other", 1);
    let topic = backend.add_topic("t1", 2);
    backend.write_tagged("t1", 0, &[("", "a"), ("", "b")]);
    backend.advance_ms(10);
    backend.write_tagged("t1", 0, &[("", "c")]);
    backend.skip("t1", 0, 1);
    backend.commit_offset("g", &topic, 0, position).await.expect("committed");
    backend
}

async fn stats(backend: &FakeBackend, fields: &[(&str, &str)]) -> String {
    let client = Client::new(backend.clone());
    let fields = [&[("consumerGroup", "g")], fields].concat();
    let answer = client.call(STATS, &fields, b"").await;
    assert_eq!((answer.code, answer.remark), (0, None));
    String::from_utf8(answer.body.to_vec()).expect("text")
}

/// One row as the body has it.
fn row(topic: &str, queue: i32, end: i64, position: i64, time: i64) -> String {
    format!(
        "{{\"brokerName\":\"broker-a\",\"queueId\":{queue},\"topic\":\"{topic}\"}}:\
         {{\"brokerOffset\":{end},\"consumerOffset\":{position},\"lastTimestamp\":{time},\
         \"pullOffset\":{position}}}"
    )
}

fn body(rows: &[String]) -> String {
    format!("{{\"consumeTps\":0.0,\"offsetTable\":{{{}}}}}", rows.join(","))
}

#[tokio::test]
async fn positions_ends_and_times() {
    let start = FakeBackend::new().now_ms();
    for (position, shown, time) in [
        (0, 0, 0),
        (1, 1, start),
        (2, 2, start),
        (3, 4, start + 10),
        (4, 4, start + 10),
        (9, 4, start + 10),
    ] {
        let backend = backend(position).await;
        let rows = [row("t1", 0, 4, shown, time), row("t1", 1, 0, 0, 0)];
        assert_eq!(stats(&backend, &[]).await, body(&rows), "{position}");
    }
}

#[tokio::test]
async fn which_topics() {
    let backend = backend(1).await;
    let start = backend.now_ms() - 10;
    let t1 = [row("t1", 0, 4, 1, start), row("t1", 1, 0, 0, 0)];
    let other = [row("other", 0, 0, 0, 0)];
    assert_eq!(stats(&backend, &[("topic", "t1")]).await, body(&t1));
    assert_eq!(stats(&backend, &[("topic", "other")]).await, body(&other));
    assert_eq!(stats(&backend, &[("topic", "nowhere")]).await, body(&[]));
    let both = [&other[..], &t1].concat();
    assert_eq!(stats(&backend, &[("topicList", "other;nowhere;t1;")]).await, body(&both));
    let repeated = "t1;other;".repeat(1_000);
    assert_eq!(stats(&backend, &[("topicList", &repeated)]).await, body(&both), "each once");
    for blank in ["", " ", ";;"] {
        let fields = [("topic", "other"), ("topicList", blank)];
        assert_eq!(stats(&backend, &fields).await, body(&other), "{blank:?}: no list");
    }
    // A live group is asked for what it subscribes to alone; a list is not sifted.
    backend
        .register(
            "g",
            Subscription {
                topic: "other".into(),
                expression: "*".into(),
                expression_type: "TAG".into(),
                tags: Vec::new(),
                tag_hashes: Vec::new(),
                version: 1,
                class_filter_mode: false,
            },
        )
        .await;
    assert_eq!(stats(&backend, &[]).await, body(&[]));
    assert_eq!(stats(&backend, &[("topic", "t1")]).await, body(&[]));
    assert_eq!(stats(&backend, &[("topicList", "t1")]).await, body(&t1));
    let unknown = stats(&backend, &[("consumerGroup", "nobody")]).await;
    assert_eq!(unknown, body(&[]));
}

#[tokio::test]
async fn a_damaged_queue_keeps_nobody_from_the_others() {
    let backend = backend(2).await;
    backend.write_tagged("t1", 1, &[("", "sound")]);
    let start = backend.now_ms() - 10;
    backend.spoil("t1", 0, 2);
    let rows = [row("t1", 0, 4, 2, start), row("t1", 1, 1, 0, 0)];
    assert_eq!(stats(&backend, &[]).await, body(&rows), "what was consumed can be read");
    backend.spoil("t1", 0, 0);
    let rows = [row("t1", 0, 4, 2, 0), row("t1", 1, 1, 0, 0)];
    assert_eq!(stats(&backend, &[]).await, body(&rows));
}
