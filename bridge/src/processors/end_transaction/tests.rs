use std::sync::Arc;

use bytes::Bytes;
use duolog_log_core::gate::GatePoint;

use super::*;
use crate::backend::{Durability, NewHalf, NewRecord, Passage};
use crate::fake::{Client, FakeBackend};
use crate::remoting::RemotingCommand;

const END: i32 = 37;

async fn store(backend: &FakeBackend, immunity: Option<&str>) -> i64 {
    let half = NewHalf {
        topic: Arc::from("t1"),
        queue_id: 0,
        group: Arc::from("pg"),
        client_id: Arc::from(""),
        born_ms: backend.now_ms(),
        immunity: immunity.map(str::to_owned),
        record: NewRecord { timestamp_ms: 7, payload: Bytes::from_static(&[1, 1, 0]) },
    };
    let stored = backend.store_half(half, Durability::Configured).await.expect("stored");
    let address = PseudoAddress::new(stored.partition_number, stored.base_offset);
    address.expect("an address").physical()
}

async fn end(client: &Client, physical: i64, changes: &[(&str, &str)]) -> RemotingCommand {
    let (physical, offset) = (physical.to_string(), (physical & 0xFFFF).to_string());
    let fields = [
        ("topic", "t1"),
        ("producerGroup", "pg"),
        ("tranStateTableOffset", &*offset),
        ("commitLogOffset", &*physical),
        ("commitOrRollback", "8"),
        ("fromTransactionCheck", "false"),
        ("msgId", "0A"),
        ("transactionId", "0A"),
        ("bname", "broker-a"),
    ];
    client.call(END, &[&fields, changes].concat(), b"").await
}

fn stage() -> (FakeBackend, Client) {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 1);
    (backend.clone(), Client::new(backend))
}

#[tokio::test]
async fn a_half_message_is_committed_once_or_rolled_back() {
    let (backend, client) = stage();
    let (first, second) = (store(&backend, None).await, store(&backend, None).await);
    for (physical, ending) in
        [(first, "8"), (first, "8"), (first, "12"), (second, "12"), (second, "8")]
    {
        let answer = end(&client, physical, &[("commitOrRollback", ending)]).await;
        assert_eq!((answer.code, answer.remark.as_deref()), (0, None));
    }
    let endings: Vec<_> = backend.halves().into_iter().map(|(_, ending)| ending).collect();
    assert_eq!(endings, [Some(HalfEnding::Commit), Some(HalfEnding::Rollback)]);
    let topic = backend.topic("t1").expect("a topic");
    assert_eq!(backend.partition(&topic, 0).await.expect("a queue").last_stable_offset, 1);
    assert_eq!(backend.enders()[0], "127.0.0.1:50000", "as long as no id is known");
}

#[tokio::test]
async fn unknown_changes_nothing() {
    let (backend, client) = stage();
    let half = store(&backend, None).await;
    for from_check in ["false", "true"] {
        let changes = [("commitOrRollback", "0"), ("fromTransactionCheck", from_check)];
        assert_eq!(end(&client, half, &changes).await.code, 0);
    }
    let answer = end(&client, half, &[("commitOrRollback", "4")]).await;
    assert_eq!(answer.code, 1);
    assert!(answer.remark.expect("a remark").contains("commitOrRollback 4"));
    assert_eq!(backend.halves()[0].1, None);
}

#[tokio::test]
async fn refusals_have_the_originals_words() {
    let (backend, client) = stage();
    let half = store(&backend, None).await;
    let unknown = "Find prepared transaction message failed";
    for (physical, changes, remark) in [
        (half, ("producerGroup", "other"), "The producer group wrong"),
        (half, ("tranStateTableOffset", "5"), "The transaction state table offset wrong"),
        (half + 1, ("msgId", "x"), unknown),
        (0, ("msgId", "x"), unknown),
        (-1, ("msgId", "x"), unknown),
        (i64::MAX, ("msgId", "x"), unknown),
        (
            half,
            ("commitLogOffset", "x"),
            "the custom field <commitLogOffset> is not a 64-bit integer: \"x\"",
        ),
    ] {
        let answer = end(&client, physical, &[changes]).await;
        assert_eq!((answer.code, answer.remark.as_deref()), (1, Some(remark)));
    }
    let answer = client.call(END, &[], b"").await;
    assert_eq!(answer.remark.as_deref(), Some("the custom field <producerGroup> is null"));
    assert_eq!(backend.halves()[0].1, None);
}

/// Its producer has the time that the message gives it; then it has to be asked.
#[tokio::test]
async fn after_its_own_immunity_only_an_answer_to_a_question_counts() {
    let (backend, client) = stage();
    let (short, long) = (store(&backend, Some("1")).await, store(&backend, Some("60")).await);
    let plain = store(&backend, None).await;
    backend.advance_ms(6_000);
    assert_eq!(end(&client, short, &[("commitOrRollback", "12")]).await.code, 0, "6 s at least");
    backend.advance_ms(54_001);
    let late = end(&client, long, &[]).await;
    assert_eq!((late.code, late.remark.as_deref()), (604, None));
    assert_eq!(end(&client, plain, &[]).await.code, 0);
    assert_eq!(end(&client, long, &[("fromTransactionCheck", "true")]).await.code, 0);
    assert!(backend.halves().iter().all(|(_, ending)| ending.is_some()));
}

#[tokio::test]
async fn a_gate_catches_answers_to_questions_alone() {
    let (backend, client) = stage();
    let half = store(&backend, None).await;
    backend.arm(GatePoint::CheckReply, Passage::Fail);
    assert_eq!(end(&client, half, &[("fromTransactionCheck", "true")]).await.code, 1);
    assert_eq!(backend.halves()[0].1, None);
    assert_eq!(end(&client, half, &[]).await.code, 0);
}
