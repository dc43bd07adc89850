//! Pulls that wait.

use super::*;

/// A pull held at the end of queue 2, in its first wait.
fn begin_held(client: &Client, changes: &[(&str, &str)]) -> BoxFuture<Option<RemotingCommand>> {
    let fields = [&[("queueOffset", "18"), ("sysFlag", HELD)], changes].concat();
    let mut answer = client.begin(request(&fields));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(answer.as_mut().poll(&mut context).is_pending(), "the pull is held");
    Box::pin(async { answer.await.map(crate::dispatch::Answer::into_command) })
}

fn held(client: &Client) -> usize {
    client.dispatcher.held_pulls()
}

#[tokio::test(start_paused = true)]
async fn a_held_pull_is_woken_by_a_message() {
    let backend = backend();
    let client = Client::new(backend.clone());
    let began = tokio::time::Instant::now();
    let answer = begin_held(&client, &[]);
    assert_eq!(held(&client), 1);
    backend.write_tagged("t1", 1, &[("A", "another queue's")]);
    backend.write_tagged("t1", 2, &[("A", "new")]);
    let answer = answer.await.expect("an answer");
    assert_eq!(seen(&answer), (0, "FOUND", "19", vec![18]));
    assert_eq!(answer.ext_fields.get("maxOffset"), Some("19"));
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(held(&client), 0);
}

#[tokio::test(start_paused = true)]
async fn a_held_pull_ends_in_the_time_the_client_asked_for() {
    let client = Client::new(backend());
    for (asked, expected) in [("15000", 15_000), ("20", 20), ("0", 0), ("-7", 0)] {
        let began = tokio::time::Instant::now();
        let mut changes = vec![("suspendTimeoutMillis", asked)];
        changes.extend([("queueOffset", "18"), ("sysFlag", HELD)]);
        let answer = pull(&client, &changes).await;
        assert_eq!(seen(&answer), (19, "OFFSET_OVERFLOW_ONE", "18", vec![]), "{asked}");
        let elapsed = began.elapsed().as_millis();
        assert!((expected..expected + 2).contains(&elapsed), "{asked}: {elapsed}");
    }
    let began = tokio::time::Instant::now();
    pull(
        &client,
        &[
            ("queueOffset", "18"),
            ("sysFlag", HELD),
            ("suspendTimeoutMillis", "9223372036854775807"),
        ],
    )
    .await;
    let elapsed = began.elapsed().as_millis() as u64;
    assert!(elapsed <= HOLD_MS_MAX + 1, "a bound of ours");
    assert_eq!(held(&client), 0);
}

#[tokio::test(start_paused = true)]
async fn without_long_polling_the_node_says_how_long() {
    let backend = backend();
    backend.configure(|config| config.long_polling = false);
    let client = Client::new(backend);
    let began = tokio::time::Instant::now();
    let answer = begin_held(&client, &[]).await.expect("an answer");
    assert_eq!(answer.code, 19);
    assert_eq!(began.elapsed().as_millis() / 10, 100);
}

#[tokio::test(start_paused = true)]
async fn a_held_pull_ends_with_its_topic() {
    let backend = backend();
    let client = Client::new(backend.clone());
    let answer = begin_held(&client, &[]);
    let topic = backend.topic("t1").expect("a topic");
    backend.delete_topic(&topic).await.expect("deleted");
    assert_eq!(answer.await.expect("an answer").code, 17);
    backend.add_topic("t1", 4);
    let answer = begin_held(&client, &[("queueOffset", "0")]);
    let topic = backend.topic("t1").expect("a topic");
    backend.delete_topic(&topic).await.expect("deleted");
    backend.add_topic("t1", 4);
    backend.write_tagged("t1", 2, &[("A", "a")]);
    let answer = answer.await.expect("an answer");
    assert_eq!(seen(&answer), (0, "FOUND", "1", vec![0]), "one of the same name");
    assert_eq!(held(&client), 0);
}

#[tokio::test(start_paused = true)]
async fn a_built_in_topic_that_nobody_has_sent_to_is_waited_for() {
    let backend = backend();
    let client = Client::new(backend.clone());
    let reply = "DefaultCluster_REPLY_TOPIC";
    for topic in [reply, "TBW102"] {
        let began = tokio::time::Instant::now();
        let answer =
            begin_held(&client, &[("topic", topic), ("queueId", "0"), ("queueOffset", "0")]);
        let answer = answer.await.expect("an answer");
        assert_eq!(seen(&answer), (19, "NO_MESSAGE_IN_QUEUE", "0", vec![]), "{topic}");
        assert_eq!(began.elapsed().as_secs(), 15);
    }
    let answer = begin_held(&client, &[("topic", reply), ("queueId", "0"), ("queueOffset", "0")]);
    let began = tokio::time::Instant::now();
    backend.add_topic(reply, 1);
    backend.write_tagged(reply, 0, &[("", "a")]);
    let answer = answer.await.expect("an answer");
    assert_eq!(seen(&answer), (0, "FOUND", "1", vec![0]));
    assert!(began.elapsed() <= crate::backend::LOOK_FOR_TOPIC + Duration::from_millis(1));
}

#[tokio::test(start_paused = true)]
async fn a_held_pull_ends_with_its_connection() {
    let backend = backend();
    let client = Client::new(backend.clone());
    let answers: Vec<_> = (0..50).map(|_| begin_held(&client, &[])).collect();
    assert_eq!(held(&client), 50);
    drop(answers);
    assert_eq!(held(&client), 0);
}

#[tokio::test(start_paused = true)]
async fn a_held_pull_ends_when_the_node_stops() {
    let backend = backend();
    let client = Client::new(backend.clone());
    let answer = begin_held(&client, &[]);
    backend.stop();
    assert_eq!(answer.await.expect("an answer").code, 19);
}

#[tokio::test(start_paused = true)]
async fn a_held_pull_goes_on_past_what_does_not_match() {
    let backend = backend();
    let client = Client::new(backend.clone());
    let began = tokio::time::Instant::now();
    let answer = tokio::spawn(begin_held(&client, &[("subscription", "A")]));
    for _ in 0..3 {
        backend.write_tagged("t1", 2, &[("B", "b")]);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!answer.is_finished());
    }
    backend.write_tagged("t1", 2, &[("B", "b"), ("A", "a")]);
    let answer = answer.await.expect("no panic").expect("an answer");
    assert_eq!(seen(&answer), (0, "FOUND", "23", vec![22]));
    assert_eq!(began.elapsed().as_millis() / 10, 300);
}

#[tokio::test(start_paused = true)]
async fn what_was_scanned_in_vain_need_not_be_scanned_again() {
    let backend = backend();
    let client = Client::new(backend.clone());
    let answer = tokio::spawn(begin_held(&client, &[("subscription", "A")]));
    tokio::time::sleep(Duration::from_secs(1)).await;
    backend.write_tagged("t1", 2, &[("B", "b"), ("B", "b")]);
    let answer = answer.await.expect("no panic").expect("an answer");
    assert_eq!(seen(&answer), (20, "NO_MATCHED_MESSAGE", "20", vec![]));
    assert_eq!(answer.ext_fields.get("maxOffset"), Some("20"));
}

/// Pitfall 3: an abort marker alone moves the stable end.
#[tokio::test(start_paused = true)]
async fn a_marker_moves_a_held_pull_on() {
    let backend = backend();
    let client = Client::new(backend.clone());
    let answer = tokio::spawn(begin_held(&client, &[]));
    backend.skip("t1", 2, 2);
    let answer = answer.await.expect("no panic").expect("an answer");
    assert_eq!(seen(&answer), (20, "NO_MATCHED_MESSAGE", "20", vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_changed_subscription_is_used_at_once() {
    let backend = backend();
    let client = Client::new(backend.clone());
    backend.register("g", subscription("A", "TAG", 1)).await;
    let answer = tokio::spawn(begin_held(&client, &[("sysFlag", HELD_BY_HEARTBEAT)]));
    backend.write_tagged("t1", 2, &[("B", "b")]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!answer.is_finished());
    backend.register("g", subscription("B", "TAG", 2)).await;
    client.dispatcher.subscription_changed("g");
    let answer = answer.await.expect("no panic").expect("an answer");
    assert_eq!(seen(&answer), (0, "FOUND", "19", vec![18]), "what was passed over matches now");
    backend.register("g", subscription("A", "TAG", 3)).await;
    let answer =
        tokio::spawn(begin_held(&client, &[("sysFlag", HELD_BY_HEARTBEAT), ("queueOffset", "19")]));
    tokio::task::yield_now().await;
    backend.consumer_leave("g", "c").await.expect("left");
    client.dispatcher.subscription_changed("g");
    assert_eq!(answer.await.expect("no panic").expect("an answer").code, 24);
    assert_eq!(held(&client), 0);
}

#[tokio::test(start_paused = true)]
async fn deleted_records_move_a_held_pull() {
    let backend = backend();
    let client = Client::new(backend.clone());
    let answer = begin_held(&client, &[]);
    backend.skip("t1", 2, 10);
    backend.set_log_start("t1", 2, 25);
    let answer = answer.await.expect("an answer");
    assert_eq!(seen(&answer), (21, "OFFSET_TOO_SMALL", "25", vec![]));
}

/// What a waiting pull costs; ten thousand idle consumers must not matter.
#[tokio::test]
async fn a_held_pull_is_small() {
    let client = Client::new(backend());
    let pull = handle(crate::processors::Call {
        shared: client.dispatcher.shared(),
        session: client.session.clone(),
        reply: crate::processors::Reply::to(&request(&[])),
        request: request(&[]),
    });
    let bytes = std::mem::size_of_val(&pull);
    assert!(bytes <= 1536, "{bytes} bytes");
}

#[tokio::test(start_paused = true)]
async fn the_time_ends_a_held_pull_though_each_look_finds_the_log_gone_on() {
    let backend = backend();
    let client = Client::new(backend.clone());
    let began = tokio::time::Instant::now();
    let held = [("subscription", "no-such-tag"), ("suspendTimeoutMillis", "15000")];
    let answer = begin_held(&client, &held);
    backend.be_busy(std::time::Duration::from_secs(1), 100);
    backend.write_tagged("t1", 2, &[("A", "first")]);
    assert_eq!(answer.await.expect("an answer").code, 20);
    assert_eq!(began.elapsed().as_secs(), 15);
}
