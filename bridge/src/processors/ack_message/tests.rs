use crate::backend::{PopBackend, PopFresh, PopOffsets, PopQueue, PopTake};
use crate::fake::{Client, FakeBackend};

/// Five messages of queue 1 of t, popped by g at time 70.
async fn popped() -> (FakeBackend, Client) {
    let backend = FakeBackend::new();
    let topic = backend.add_topic("t", 2);
    backend.write_tagged("t", 1, &[("", "m"); 5]);
    let queue = PopQueue { group: "g", topic: &topic, partition: 1 };
    backend.pop_begin(queue, 0).await.expect("begun");
    let fresh = Some(PopFresh { from: 0, next: 5, offsets: (0..5).collect() });
    let take = PopTake { fresh, popped_ms: 70, until_ms: 1 << 60, ..PopTake::default() };
    assert_eq!(backend.pop_take(queue, take).await, Ok(true));
    let client = Client::new(backend.clone());
    (backend, client)
}

#[tokio::test]
async fn an_acknowledgement_counts_for_the_delivery_that_it_names() {
    let (backend, client) = popped().await;
    let ack = async |changes: &[(&str, &str)]| {
        let mut fields = vec![
            ("consumerGroup", "g"),
            ("topic", "t"),
            ("queueId", "1"),
            ("offset", "0"),
            ("extraInfo", "0 70 1000 0 0 broker-a 1 0"),
        ];
        for (name, value) in changes {
            fields.retain(|(known, _)| known != name);
            fields.push((*name, *value));
        }
        let answer = client.call(200_051, &fields, &[]).await;
        (answer.code, answer.remark.unwrap_or_default())
    };
    assert_eq!(ack(&[("extraInfo", "0 71 1000 0 0 broker-a 1 0")]).await, (0, String::new()));
    assert_eq!(backend.committed("g", "t", 1), Some(0));
    for _ in 0..2 {
        assert_eq!(ack(&[]).await, (0, String::new()));
        assert_eq!(backend.committed("g", "t", 1), Some(1));
    }
    let outside = "offset is illegal, key:t@1, commit:6, store:0~5".to_owned();
    assert_eq!(ack(&[("offset", "6")]).await, (208, outside));
    assert_eq!(ack(&[("topic", "nowhere")]).await.0, 17);
    let (code, remark) = ack(&[("queueId", "2")]).await;
    assert!(code == 13 && remark.starts_with("queueId[2] is illegal, topic:[t]"), "{remark}");
    let short = "getReviveQid fail, extraInfoStrs length 2".to_owned();
    assert_eq!(ack(&[("extraInfo", "0 70")]).await, (1, short));
}

#[tokio::test]
async fn a_batch_acknowledges_by_bits_and_passes_over_what_is_not_there() {
    let (backend, client) = popped().await;
    // Bits 0, 2 and 7.
    let of = |topic: &str, queue: i32| {
        format!(
            "{{\"b\":\"hQ==\",\"c\":\"g\",\"it\":1000,\"pt\":70,\"q\":{queue},\"r\":\"0\",\
             \"rq\":0,\"so\":0,\"t\":\"{topic}\"}}"
        )
    };
    let acks = [of("nowhere", 1), of("t", 9), of("t", 1)].join(",");
    let body = format!("{{\"acks\":[{acks}],\"brokerName\":\"broker-a\"}}");
    assert_eq!(client.call(200_151, &[], body.as_bytes()).await.code, 0);
    assert_eq!(backend.committed("g", "t", 1), Some(1));
    let topic = backend.add_topic("t", 2);
    let queue = PopQueue { group: "g", topic: &topic, partition: 1 };
    let offsets = PopOffsets { first: 1, bits: vec![0b111] };
    assert_eq!(backend.pop_settle(queue, offsets, 70).await, Ok(2), "2 was acknowledged");
    for body in ["", "{}", "{\"acks\":[]}"] {
        assert_eq!(client.call(200_151, &[], body.as_bytes()).await.code, 208);
    }
    assert_eq!(client.call(200_151, &[], b"{\"acks\":7}").await.code, 1);
}

#[tokio::test]
async fn what_fails_of_a_batch_keeps_nothing_else_from_being_acknowledged() {
    let (backend, client) = popped().await;
    backend.fail_settling(&[0]);
    let of = |queue: i32| {
        format!("{{\"b\":\"AQ==\",\"c\":\"g\",\"pt\":70,\"q\":{queue},\"so\":0,\"t\":\"t\"}}")
    };
    let body = format!("{{\"acks\":[{},{}],\"brokerName\":\"broker-a\"}}", of(0), of(1));
    assert_ne!(client.call(200_151, &[], body.as_bytes()).await.code, 0);
    assert_eq!(backend.committed("g", "t", 1), Some(1));
}
