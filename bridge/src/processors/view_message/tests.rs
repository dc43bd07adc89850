use crate::backend::Backend;
use crate::fake::{Client, FakeBackend};
use crate::remoting::message::Message;
use crate::translate::queue::PseudoAddress;

fn physical(number: u32, offset: i64) -> String {
    PseudoAddress::new(number, offset).expect("an address").physical().to_string()
}

/// Two topics of two queues each; their partitions are numbered in that order.
#[tokio::test]
async fn a_message_is_found_without_its_topic() {
    let backend = FakeBackend::new();
    backend.add_topic("t.1", 2);
    backend.add_topic("t2", 2);
    backend.write_tagged("t.1", 1, &[("A", "first"), ("B", "second")]);
    backend.write_tagged("t2", 0, &[("", "other")]);
    backend.skip("t2", 0, 1);
    let client = Client::new(backend.clone());
    for (number, offset, expected) in
        [(1, 0, ("t_1", 1, "first")), (1, 1, ("t_1", 1, "second")), (2, 0, ("t2", 0, "other"))]
    {
        let answer = client.call(33, &[("offset", &physical(number, offset))], b"").await;
        assert_eq!((answer.code, answer.remark.as_deref()), (0, None));
        let message = Message::decode(&mut &answer.body[..]).expect("one message");
        let body = std::str::from_utf8(message.body).expect("text");
        assert_eq!((message.topic, message.queue_id, body), expected);
        assert_eq!(message.physical_offset.to_string(), physical(number, offset));
    }
    for (number, offset) in [(0, 0), (1, 2), (2, 1), (3, 0), (77, 0)] {
        let address = physical(number, offset);
        let answer = client.call(33, &[("offset", &address)], b"").await;
        let remark = format!("can not find message by the offset, {address}");
        assert_eq!((answer.code, answer.remark), (1, Some(remark)), "{number} {offset}");
    }
    assert_eq!(client.call(33, &[("offset", "-1")], b"").await.code, 1);
    let deleted = backend.topic("t2").expect("t2");
    backend.delete_topic(&deleted).await.expect("deleted");
    assert_eq!(client.call(33, &[("offset", &physical(2, 0))], b"").await.code, 1);
}
