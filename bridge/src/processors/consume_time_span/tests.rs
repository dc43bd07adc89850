use crate::backend::Backend;
use crate::fake::{Client, FakeBackend};

/// Messages at 0, 10 and 20 ms, then a marker; asked 5 ms after the last.
async fn spans(position: Option<i64>) -> String {
    let backend = FakeBackend::new();
    let topic = backend.add_topic("t1", 1);
    for later_ms in [10, 10, 5] {
        backend.write_tagged("t1", 0, &[("", "a")]);
        backend.advance_ms(later_ms);
    }
    backend.skip("t1", 0, 1);
    if let Some(position) = position {
        backend.commit_offset("g", &topic, 0, position).await.expect("committed");
    }
    let fields = [("topic", "t1"), ("group", "g")];
    let answer = Client::new(backend).call(303, &fields, b"").await;
    assert_eq!(answer.code, 0);
    String::from_utf8(answer.body.to_vec()).expect("text")
}

#[tokio::test]
async fn what_was_consumed_and_how_long_the_next_waits() {
    let start = FakeBackend::new().now_ms();
    for (position, consumed, delay) in [
        (None, 0, 25),
        (Some(0), 0, 25),
        (Some(1), 0, 15),
        (Some(2), 10, 5),
        (Some(3), 20, 0),
        (Some(4), 20, 0),
        (Some(1_000_000), 20, 0),
    ] {
        let body = spans(position).await;
        for (name, expected) in [
            ("consumeTimeStamp", start + consumed),
            ("delayTime", delay),
            ("minTimeStamp", start),
            ("maxTimeStamp", start + 20),
        ] {
            let row = format!("\"{name}\":{expected},");
            assert!(body.contains(&row), "{position:?}: {row} in {body}");
        }
    }
}

#[tokio::test]
async fn an_empty_queue_has_no_times() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 1);
    let client = Client::new(backend);
    let answer = client.call(303, &[("topic", "t1"), ("group", "g")], b"").await;
    let body = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(body.contains("\"consumeTimeStamp\":-1,"), "{body}");
    assert!(body.contains("\"delayTime\":0,\"maxTimeStamp\":-1,"), "{body}");
    let answer = client.call(303, &[("topic", "nowhere"), ("group", "g")], b"").await;
    assert_eq!((answer.code, answer.remark.as_deref()), (17, Some("topic[nowhere] not exist")));
}

#[tokio::test]
async fn a_damaged_queue_has_no_times() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 2);
    backend.write_tagged("t1", 0, &[("", "a")]);
    backend.write_tagged("t1", 1, &[("", "b")]);
    backend.spoil("t1", 0, 0);
    let start = backend.now_ms();
    let answer = Client::new(backend).call(303, &[("topic", "t1"), ("group", "g")], b"").await;
    let text = String::from_utf8_lossy(&answer.body);
    for expected in [-1, start] {
        let expected = format!("\"minTimeStamp\":{expected},");
        assert!(text.contains(&expected), "{expected} in {text}");
    }
}
