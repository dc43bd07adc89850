use super::*;
use crate::backend::BackendError;
use crate::fake::{Client, FakeBackend};
use crate::translate::queue::PseudoAddress;

const RESUME: i32 = 323;
const SEND: i32 = 310;
const STORED: &str = "__rmq.n.TRANS_CHECK_MAX_TIME_TOPIC";

/// Stores a half message and gives it up; its copy's id.
async fn give_up(backend: &FakeBackend, client: &Client) -> String {
    let properties = "UNIQ_KEY\u{1}0A\u{2}TRAN_MSG\u{1}true\u{2}PGROUP\u{1}pg\u{2}\
                      CHECK_IMMUNITY_TIME_IN_SECONDS\u{1}9\u{2}";
    let fields = [
        ("a", "p1"),
        ("b", "t1"),
        ("c", "TBW102"),
        ("d", "4"),
        ("e", "3"),
        ("f", "4"),
        ("g", "1600000000000"),
        ("h", "0"),
        ("i", properties),
    ];
    assert_eq!(client.call(SEND, &fields, b"body").await.code, 0);
    let (half, _) = backend.halves().pop().expect("a half message");
    let copy = half::given_up(&half.record, "t1", 3, 15).expect("a copy");
    backend.add_topic(STORED, 1);
    let offset = backend.append(STORED, 0, &copy);
    let topic = backend.topic(STORED).expect("a topic");
    let number = backend.partition(&topic, 0).await.expect("a queue").number;
    id(backend, number, offset)
}

fn id(backend: &FakeBackend, number: u32, offset: i64) -> String {
    let address = PseudoAddress::new(number, offset).expect("an address");
    MessageId { store_host: backend.config().broker_address, address }.to_string()
}

#[tokio::test]
async fn what_was_given_up_is_a_half_message_again() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    let id = give_up(&backend, &client).await;
    let fields = [("topic", GIVEN_UP_TOPIC), ("msgId", &*id)];
    let answer = client.call(RESUME, &fields, b"").await;
    assert_eq!((answer.code, answer.remark), (0, None));
    let halves = backend.halves();
    let [(first, _), (again, ended)] = &halves[..] else { panic!("two: {halves:?}") };
    assert_eq!((&*again.topic, again.queue_id, &*again.group), ("t1", 3, "pg"));
    assert_eq!((again.born_ms, again.immunity.as_deref()), (1_600_000_000_000, Some("9")));
    assert_eq!(again.record.payload, first.record.payload, "as it was");
    assert_eq!((*ended, again.record.timestamp_ms), (None, first.record.timestamp_ms));
}

#[tokio::test]
async fn only_what_was_given_up_is_put_back() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    let given_up = give_up(&backend, &client).await;
    backend.write_tagged("t1", 0, &[("", "plain")]);
    backend.write_tagged(STORED, 0, &[("", "never a half message")]);
    let number = |topic: &str| {
        let topic = backend.topic(topic).expect("a topic");
        let backend = backend.clone();
        async move { backend.partition(&topic, 0).await.expect("a queue").number }
    };
    let (plain, given) = (number("t1").await, number(STORED).await);
    let elsewhere = id(&backend, plain, 0);
    let (foreign, beyond) = (id(&backend, given, 1), id(&backend, given, 9));
    for id in ["", "x", &*elsewhere, &*foreign, &*beyond] {
        let answer = client.call(RESUME, &[("msgId", id)], b"").await;
        assert_eq!(answer.code, 1, "{id}");
        let remark = answer.remark.expect("a remark");
        assert!(remark.starts_with("Exception was thrown when putting message back"), "{remark}");
    }
    assert_eq!(client.call(RESUME, &[], b"").await.code, 1);
    backend.answer_append(Err(BackendError::Busy));
    let answer = client.call(RESUME, &[("msgId", &*given_up)], b"").await;
    let failed = "Put message back to RMQ_SYS_TRANS_HALF_TOPIC failed.";
    assert_eq!((answer.code, answer.remark.as_deref()), (1, Some(failed)));
    assert_eq!(backend.halves().len(), 1);
}
