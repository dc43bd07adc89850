use crate::backend::{PopBackend, PopFresh, PopQueue, PopTake};
use crate::fake::{Client, FakeBackend};
use crate::remoting::message::Message;

#[tokio::test]
async fn a_peek_shows_what_nobody_had_and_takes_nothing() {
    let backend = FakeBackend::new();
    let topic = backend.add_topic("t", 2);
    backend.write_tagged("t", 0, &[("", "m"); 3]);
    let client = Client::new(backend.clone());
    let peek = async |count: &str| {
        let fields =
            [("consumerGroup", "g"), ("topic", "t"), ("queueId", "-1"), ("maxMsgNums", count)];
        let answer = client.call(200_052, &fields, &[]).await;
        let (mut rest, mut offsets) = (&answer.body[..], Vec::new());
        while !rest.is_empty() {
            offsets.push(Message::decode(&mut rest).expect("a message").queue_offset);
        }
        let left = answer.ext_fields.get("restNum").unwrap_or("none").to_owned();
        (answer.code, offsets, left)
    };
    for _ in 0..2 {
        assert_eq!(peek("2").await, (0, vec![0, 1], "3".to_owned()));
    }
    let queue = PopQueue { group: "g", topic: &topic, partition: 0 };
    backend.pop_begin(queue, 0).await.expect("begun");
    let fresh = Some(PopFresh { from: 0, next: 2, offsets: vec![0, 1] });
    assert_eq!(backend.pop_take(queue, PopTake { fresh, ..PopTake::default() }).await, Ok(true));
    assert_eq!(peek("9").await, (0, vec![2], "1".to_owned()));
    let fresh = Some(PopFresh { from: 2, next: 3, offsets: vec![2] });
    assert_eq!(backend.pop_take(queue, PopTake { fresh, ..PopTake::default() }).await, Ok(true));
    assert_eq!(peek("9").await, (19, vec![], "0".to_owned()));
}

#[tokio::test]
async fn a_queue_that_cannot_be_looked_at_hides_no_other() {
    let backend = FakeBackend::new();
    backend.add_topic("t", 2);
    backend.write_tagged("t", 1, &[("", "m")]);
    backend.lose_log("t", 0);
    let client = Client::new(backend);
    for (queue, code) in [("-1", 0), ("1", 0), ("0", 14)] {
        let fields =
            [("consumerGroup", "g"), ("topic", "t"), ("queueId", queue), ("maxMsgNums", "9")];
        assert_eq!(client.call(200_052, &fields, &[]).await.code, code, "{queue}");
    }
}
