use super::*;

#[test]
fn bits_name_offsets_under_short_names_and_long_ones() {
    let short = br#"{"acks":[{"b":"hQE=","c":"g","it":60000,"pt":7,"q":3,"r":"0","rq":0,"so":100,"t":"t"}],"brokerName":"broker-a"}"#;
    let long = br#"{"acks":[{"bitSet":"hQE","consumerGroup":"g","popTime":7,"queueId":3,"startOffset":100,"topic":"t"}]}"#;
    let body = BatchAckMessageRequestBody::decode(short).expect("a body");
    assert_eq!(Ok(&body), BatchAckMessageRequestBody::decode(long).as_ref());
    let [ack] = &body.acks[..] else { panic!("{body:?}") };
    assert_eq!((&*ack.consumer_group, &*ack.topic, ack.queue_id), ("g", "t", 3));
    assert_eq!(ack.pop_time, 7);
    assert_eq!(ack.offsets.iter().collect::<Vec<_>>(), [100, 102, 107, 108]);
}

#[test]
fn odd_bodies_are_refused_and_none_overflows() {
    for body in ["{\"acks\":[{\"b\":\"*\"}]}", "{\"acks\":[{\"b\":\"A\"}]}", "{\"acks\":7}", "{"] {
        assert!(BatchAckMessageRequestBody::decode(body.as_bytes()).is_err(), "{body}");
    }
    let end = format!("{{\"acks\":[{{\"b\":\"/w==\",\"so\":{}}}]}}", i64::MAX - 2);
    let body = BatchAckMessageRequestBody::decode(end.as_bytes()).expect("a body");
    assert_eq!(body.acks.iter().flat_map(|ack| ack.offsets.iter()).count(), 3);
    let none = BatchAckMessageRequestBody::decode(b"{}").expect("a body");
    assert_eq!(none.acks, []);
}
