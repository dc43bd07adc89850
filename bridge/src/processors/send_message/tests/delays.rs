//! Delayed sends: what waits, what is answered, and what arrives.

use super::*;

fn properties(pairs: &[(&str, &str)]) -> String {
    let all = [&[("UNIQ_KEY", "0A")], pairs].concat();
    all.iter().map(|(name, value)| format!("{name}\u{1}{value}\u{2}")).collect()
}

async fn send(
    client: &Client,
    pairs: &[(&str, &str)],
    changes: &[(&str, &str)],
) -> RemotingCommand {
    let properties = properties(pairs);
    send_to(client, V2, &[&[("i", properties.as_str())], changes].concat(), b"body").await
}

/// The property names of the only message in `topic`, sorted, without UNIQ_KEY.
async fn names(backend: &FakeBackend, topic: &str) -> Vec<(String, String)> {
    let [(_, _, headers)] = <[_; 1]>::try_from(stored(backend, topic).await).expect("one message");
    let mut headers: Vec<_> = headers.into_iter().filter(|(name, _)| name != "UNIQ_KEY").collect();
    headers.sort();
    headers
}

#[tokio::test]
async fn a_level_waits_so_long_and_arrives_as_it_was_sent() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    let answer =
        send(&client, &[("DELAY", "2"), ("TAGS", "A"), ("TIMER_DELAY_SEC", "9")], &[("e", "3")])
            .await;
    assert_eq!(answer.code, 0, "{:?}", answer.remark);
    assert_eq!((field(&answer, "queueId"), field(&answer, "queueOffset")), (Some("3"), Some("0")));
    assert_eq!(
        (field(&answer, "transactionId"), field(&answer, "recallHandle")),
        (Some("0A"), None)
    );
    let again = send(&client, &[("DELAY", "1")], &[("e", "1")]).await;
    assert_eq!(field(&again, "queueOffset"), Some("1"), "the offset among all that wait");
    backend.advance_ms(999);
    assert_eq!((backend.fire(), stored(&backend, "t1").await.len()), (0, 0));
    backend.advance_ms(1);
    assert_eq!(backend.fire(), 1);
    backend.advance_ms(4_000);
    assert_eq!(backend.fire(), 1);
    let all = stored(&backend, "t1").await;
    assert_eq!(all.iter().map(|(queue, ..)| *queue).collect::<Vec<_>>(), [1, 3]);
    let mut headers = all[1].2.clone();
    headers.sort();
    let expected = [
        ("DELAY", "2"),
        ("REAL_QID", "3"),
        ("REAL_TOPIC", "t1"),
        ("TAGS", "A"),
        ("UNIQ_KEY", "0A"),
    ];
    assert_eq!(headers, expected.map(|(name, value)| pair(name, value)));
}

#[tokio::test]
async fn a_time_is_answered_with_a_recall_handle() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    let answer = send(&client, &[("TIMER_DELAY_MS", "1500")], &[("e", "-1")]).await;
    let handle = field(&answer, "recallHandle").expect("a handle");
    let text = crate::translate::recall::decode(handle).expect("a handle");
    assert_eq!(text, "v1 t1 broker-a 1700000001001 0A");
    backend.advance_ms(1_500);
    assert_eq!(backend.fire(), 1);
    let expected = [
        ("REAL_QID", "0"),
        ("REAL_TOPIC", "t1"),
        ("TIMER_DELAY_MS", "1500"),
        ("TIMER_ENQUEUE_MS", "1700000000000"),
        ("TIMER_OUT_MS", "1700000001000"),
    ];
    assert_eq!(names(&backend, "t1").await, expected.map(|(name, value)| pair(name, value)));
}

#[tokio::test]
async fn what_is_past_or_no_delay_goes_to_the_topic_at_once() {
    for pairs in [
        &[("DELAY", "0")][..],
        &[("DELAY", "-3")],
        &[("TIMER_DELIVER_MS", "5")],
        &[("TIMER_DELAY_SEC", "0")],
    ] {
        let backend = FakeBackend::new();
        let client = Client::new(backend.clone());
        let answer = send(&client, pairs, &[]).await;
        assert_eq!((answer.code, field(&answer, "recallHandle")), (0, None), "{pairs:?}");
        let expected: Vec<_> = pairs.iter().map(|(name, value)| pair(name, value)).collect();
        assert_eq!(names(&backend, "t1").await, expected);
    }
}

#[tokio::test]
async fn refused_delays_store_nothing_and_make_no_topic() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    let refused = send(&client, &[("TIMER_DELAY_SEC", "259201")], &[]).await;
    assert_eq!(refused.code, 13);
    assert!(refused.remark.expect("a remark").starts_with("timer message illegal, the delay time"));
    assert_eq!(send(&client, &[("DELAY", "soon")], &[]).await.code, 1);
    let recall = [("TIMER_DEL_UNIQKEY", "t1+0A"), ("TIMER_DELAY_SEC", "5")];
    assert_eq!(send(&client, &recall, &[]).await.code, 13);
    backend.configure(|config| config.delays.timers = false);
    assert_eq!(send(&client, &[("TIMER_DELAY_SEC", "5")], &[]).await.code, 1);
    assert_eq!(backend.topic("t1"), None);
    let batch = message(b"b", properties(&[("DELAY", "1")]).as_bytes());
    assert_eq!(send_to(&client, BATCH, &[("m", "true")], &batch).await.code, 13);
}

/// A retry waits by its level; a dead letter waits for nothing, and an ordered consumer's is one.
#[tokio::test]
async fn retries_of_clients_wait_and_those_of_ordered_consumers_are_dead() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    let to_retry = [("b", "%RETRY%g"), ("j", "1")];
    assert_eq!(send(&client, &[("DELAY", "4")], &to_retry).await.code, 0);
    let answer = send(&client, &[("TIMER_DELAY_SEC", "4")], &to_retry).await;
    assert_eq!((answer.code, field(&answer, "recallHandle")), (0, None), "nobody recalls a retry");
    backend.advance_ms(30_000);
    assert_eq!(backend.fire(), 2);
    let queue = crate::backend::QueueKey { topic: Arc::from("t1"), queue_id: 0 };
    backend.lock_queues("g", "c", vec![queue]).await.expect("locked");
    backend.listen();
    assert_eq!(send(&client, &[("DELAY", "4")], &to_retry).await.code, 0);
    assert_eq!(backend.fire(), 0);
    let told = backend.told();
    let dead = crate::translate::names::stored_topic("%DLQ%g").expect("a name");
    let stored = format!("dlq.store {dead}-0 @0");
    assert!(told.iter().any(|event| event.starts_with(&stored)), "{told:?}");
    assert_eq!(names(&backend, &dead).await, [pair("DELAY", "-1")]);
}
