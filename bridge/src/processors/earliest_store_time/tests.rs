use crate::backend::Backend;
use crate::fake::{Client, FakeBackend};

#[tokio::test]
async fn the_first_message_that_is_left() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 2);
    let start = backend.now_ms();
    backend.write_tagged("t1", 0, &[("", "a")]);
    backend.advance_ms(7);
    backend.skip("t1", 0, 2);
    backend.write_tagged("t1", 0, &[("", "b")]);
    let client = Client::new(backend.clone());
    let earliest = async |topic: &str, queue: &str| {
        let answer = client.call(32, &[("topic", topic), ("queueId", queue)], b"").await;
        assert_eq!((answer.code, answer.remark.as_deref()), (0, None));
        answer.ext_fields.get("timestamp").expect("a time").parse::<i64>().expect("a number")
    };
    assert_eq!(earliest("t1", "0").await, start);
    backend.set_log_start("t1", 0, 1);
    assert_eq!(earliest("t1", "0").await, start + 7, "markers have no store time");
    backend.set_log_start("t1", 0, 4);
    for (topic, queue) in [("t1", "0"), ("t1", "1"), ("t1", "77"), ("nowhere", "0")] {
        assert_eq!(earliest(topic, queue).await, -1, "{topic} {queue}");
    }
}
