use crate::backend::Backend;
use crate::fake::{Client, FakeBackend};

#[tokio::test]
async fn ends_and_last_writes() {
    let backend = FakeBackend::new();
    backend.change_topic("t1", |topic| {
        (topic.partitions, topic.read_queues, topic.write_queues) = (3, 1, 2);
    });
    backend.write_tagged("t1", 0, &[("", "a")]);
    backend.skip("t1", 0, 2);
    backend.advance_ms(60_001);
    backend.skip("t1", 1, 3);
    backend.set_log_start("t1", 1, 3);
    let stored = backend.now_ms() - 60_001;
    let answer = Client::new(backend).call(202, &[("topic", "t1")], b"").await;
    let row = |queue: i32, time: i64, max: i64, min: i64| {
        format!(
            "{{\"brokerName\":\"broker-a\",\"queueId\":{queue},\"topic\":\"t1\"}}:\
             {{\"lastUpdateTimestamp\":{time},\"maxOffset\":{max},\"minOffset\":{min}}}"
        )
    };
    assert_eq!(
        String::from_utf8_lossy(&answer.body),
        format!(
            "{{\"offsetTable\":{{{},{}}},\"topicPutTps\":0.0}}",
            row(0, stored, 3, 0),
            row(1, 0, 3, 3)
        ),
        "the queues that either side sees; the time of the last message, not of a marker"
    );
}

#[tokio::test]
async fn a_rate_is_what_was_appended_in_the_last_minute() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 2);
    backend.write_tagged("t1", 0, &[("", "old"); 50]);
    backend.advance_ms(59_000);
    backend.write_tagged("t1", 0, &[("", "new"); 4]);
    backend.write_tagged("t1", 1, &[("", "new"); 2]);
    for (later_ms, expected) in [(0, "0.9333333333333333"), (1001, "0.1"), (59_000, "0.0")] {
        backend.advance_ms(later_ms);
        let answer = Client::new(backend.clone()).call(202, &[("topic", "t1")], b"").await;
        let body = String::from_utf8(answer.body.to_vec()).expect("text");
        assert!(body.ends_with(&format!("\"topicPutTps\":{expected}}}")), "{expected}: {body}");
    }
}

#[tokio::test]
async fn a_topic_that_is_not_there() {
    let answer = Client::new(FakeBackend::new()).call(202, &[("topic", "t1")], b"").await;
    assert_eq!((answer.code, answer.remark.as_deref()), (17, Some("topic[t1] not exist")));
}

#[tokio::test]
async fn a_damaged_queue_has_its_ends_and_no_time() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 2);
    backend.write_tagged("t1", 0, &[("", "a")]);
    backend.write_tagged("t1", 1, &[("", "b")]);
    backend.spoil("t1", 0, 0);
    let stored = backend.now_ms();
    let answer = Client::new(backend).call(202, &[("topic", "t1")], b"").await;
    let text = String::from_utf8_lossy(&answer.body);
    for expected in
        ["\"lastUpdateTimestamp\":0,\"maxOffset\":1", &format!("{stored},\"maxOffset\":1")]
    {
        assert!(text.contains(expected), "{expected} in {text}");
    }
}
