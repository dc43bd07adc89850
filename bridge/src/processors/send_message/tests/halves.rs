//! Half messages.

use duolog_log_core::gate::GatePoint;

use super::*;
use crate::backend::{BackendError, Durability, HalfEnding, Passage};
use crate::translate::queue::MessageId;

const PROPERTIES: &str = "UNIQ_KEY\u{1}0A\u{2}TRAN_MSG\u{1}true\u{2}PGROUP\u{1}pg\u{2}\
                          CHECK_IMMUNITY_TIME_IN_SECONDS\u{1}60\u{2}TAGS\u{1}a\u{2}k\u{1}v\u{2}";

#[tokio::test]
async fn a_half_message_is_stored_where_nobody_sees_it() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    let sent = [("i", PROPERTIES), ("e", "2"), ("f", "4"), ("h", "7")];
    let answer = send_to(&client, V2, &sent, b"body").await;
    assert_eq!((answer.code, field(&answer, "transactionId")), (0, Some("0A")));
    assert_eq!((field(&answer, "queueId"), field(&answer, "queueOffset")), (Some("2"), Some("0")));
    let id = MessageId::parse(field(&answer, "msgId").expect("an id")).expect("an id");
    assert_eq!((id.address.partition_number(), id.address.offset()), (77, 0));
    assert!(stored(&backend, "t1").await.is_empty(), "the topic is made, and empty");
    let (half, ended) = backend.halves().remove(0);
    assert_eq!((&*half.topic, half.queue_id, &*half.group), ("t1", 2, "pg"));
    assert_eq!((half.born_ms, half.immunity.as_deref()), (1_600_000_000_000, Some("60")));
    assert_eq!((ended, &*half.client_id), (None, ""));
    // Committed it is the message that was sent, and says that it was in a transaction.
    let view = backend.half(77, 0).await.expect("there").expect("a half message");
    assert!(backend.end_half(&view, HalfEnding::Commit, "c".into()).await.expect("ended"));
    let headers = [
        ("UNIQ_KEY", "0A"),
        ("TRAN_MSG", "true"),
        ("PGROUP", "pg"),
        ("CHECK_IMMUNITY_TIME_IN_SECONDS", "60"),
        ("TAGS", "a"),
        ("k", "v"),
        ("__transactionId__", "0A"),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    assert_eq!(stored(&backend, "t1").await, [(2, "body".to_owned(), headers)]);
    let topic = backend.topic("t1").expect("a topic");
    let request = ReadRequest {
        topic: &topic,
        partition: 2,
        offset: 0,
        bytes_max: 1,
        records_max: 1,
        tags: None,
    };
    let read = backend.read(request).await.expect("a log");
    let record = read.batches[0].decoded().record(0).expect("a record");
    let origin = crate::translate::message::origin(record.headers).expect("an origin");
    assert_eq!((origin.sys_flag, origin.flag), (8, 7));
}

#[tokio::test]
async fn what_makes_a_half_message() {
    let prepared = |rest: &str| format!("UNIQ_KEY\u{1}0A\u{2}TRAN_MSG\u{1}TRUE\u{2}{rest}");
    let (group, retried) = (prepared(""), prepared("DELAY\u{1}3\u{2}"));
    for (properties, times, expected) in [
        (&*group, "0", 1),
        (&*group, "1", 1),
        ("TRAN_MSG\u{1}false\u{2}", "0", 0),
        ("TRAN_MSG\u{1}1\u{2}", "0", 0),
        // Refused, as a delayed message in a transaction, and as a delayed message.
        (&*retried, "0", 0),
        (&*retried, "1", 0),
    ] {
        let backend = FakeBackend::new();
        let client = Client::new(backend.clone());
        send_to(&client, V2, &[("i", properties), ("j", times)], b"x").await;
        assert_eq!(backend.halves().len(), expected, "{properties:?} {times}");
        if let Some((half, _)) = backend.halves().first() {
            assert_eq!(
                (&*half.group, half.immunity.as_deref()),
                ("p1", None),
                "as the request says"
            );
        }
    }
}

#[tokio::test]
async fn a_message_in_a_transaction_is_neither_delayed_nor_in_a_batch() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    for delay in ["DELAY\u{1}3", "TIMER_DELAY_SEC\u{1}3", "TIMER_DELIVER_MS\u{1}1700000000000"] {
        let properties = format!("TRAN_MSG\u{1}true\u{2}{delay}\u{2}");
        let answer = send_to(&client, V2, &[("i", &properties)], b"x").await;
        assert_eq!(answer.code, 13, "{delay:?}");
        let remark = answer.remark.expect("a remark");
        assert!(remark.contains("a message in a transaction cannot be delayed"), "{remark}");
    }
    let batch = message(b"x", b"TRAN_MSG\x01true\x02");
    assert_eq!(send_to(&client, BATCH, &[("m", "true")], &batch).await.code, 13);
    assert_eq!((backend.halves().len(), backend.topics().len()), (0, 0));
}

#[tokio::test]
async fn refusals_of_half_messages_are_those_of_sends() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    let sent = [("i", PROPERTIES)];
    let large = format!("{PROPERTIES}x\u{1}{}\u{2}", "x".repeat(32_767 - PROPERTIES.len() - 3));
    let refused = send_to(&client, V2, &[("i", &large)], b"x").await;
    assert_eq!(refused.code, 13, "no room for the id of the transaction");
    for (answer, code) in [
        (Err(BackendError::NotEnoughReplicas), 1),
        (Err(BackendError::LimitReached { reason: "too many half messages are open".into() }), 1),
        (Err(BackendError::RecordTooLarge { bytes: 2, bytes_max: 1 }), 13),
        (Ok(Stored::FlushDiskTimeout), 10),
    ] {
        backend.answer_append(answer.clone());
        assert_eq!(send_to(&client, V2, &sent, b"x").await.code, code, "{answer:?}");
    }
    assert_eq!(backend.halves().len(), 1, "the last was stored");
    let waits = format!("{PROPERTIES}WAIT\u{1}false\u{2}");
    assert_eq!(send_to(&client, V2, &[("i", &waits)], b"x").await.code, 0);
    assert_eq!(backend.appends().last(), Some(&Durability::Written));
    backend.arm(GatePoint::HalfStored, Passage::Fail);
    let answer = send_to(&client, V2, &sent, b"x").await;
    assert_eq!((answer.code, backend.halves().len()), (1, 3), "stored, and not answered well");
}
