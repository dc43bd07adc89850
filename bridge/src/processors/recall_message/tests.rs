use crate::backend::Backend;
use crate::fake::{Client, FakeBackend};
use crate::remoting::RemotingCommand;
use crate::translate::recall::RecallHandle;

async fn send_timed(client: &Client) -> String {
    let properties = "UNIQ_KEY\u{1}0A\u{2}TIMER_DELAY_SEC\u{1}60\u{2}";
    let fields = [
        ("a", "p"),
        ("b", "t1"),
        ("c", "TBW102"),
        ("d", "4"),
        ("e", "0"),
        ("f", "0"),
        ("g", "1600000000000"),
        ("h", "0"),
        ("i", properties),
    ];
    let answer = client.call(310, &fields, b"body").await;
    answer.ext_fields.get("recallHandle").expect("a handle").to_owned()
}

async fn recall(client: &Client, topic: &str, handle: &str) -> RemotingCommand {
    client
        .call(370, &[("topic", topic), ("recallHandle", handle), ("producerGroup", "p")], b"")
        .await
}

#[tokio::test]
async fn a_recalled_message_does_not_arrive_and_a_second_recall_is_answered_alike() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    let handle = send_timed(&client).await;
    for _ in 0..2 {
        let answer = recall(&client, "t1", &handle).await;
        assert_eq!((answer.code, answer.ext_fields.get("msgId")), (0, Some("0A")));
        assert_eq!(answer.ext_fields.get("MSG_REGION"), Some("DefaultRegion"));
    }
    backend.advance_ms(60_000);
    assert_eq!(backend.fire(), 0);
}

#[tokio::test]
async fn what_cannot_be_recalled_is_refused_in_the_originals_words() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    let good = send_timed(&client).await;
    let now_ms = backend.now_ms();
    let handle = |topic: &str, broker_name: &str, time_ms: i64| {
        RecallHandle { topic, broker_name, time_ms, id: "0A" }.encode()
    };
    for (topic, handle, code, remark) in [
        ("no", good.clone(), 17, "recall failed, the topic[no] not exist"),
        ("t1", "v1".to_owned(), 604, "recall handle is invalid"),
        ("t1", handle("t2", "broker-a", now_ms + 9), 604, "recall failed, topic not match"),
        ("t1", handle("t1", "b", now_ms + 9), 604, "recall failed, broker service not available"),
        ("t1", handle("t1", "broker-a", now_ms), 604, "recall failed, timestamp invalid"),
        (
            "t1",
            handle("t1", "broker-a", now_ms + 259_200_000),
            604,
            "recall failed, timestamp invalid",
        ),
    ] {
        let answer = recall(&client, topic, &handle).await;
        assert_eq!((answer.code, answer.remark.as_deref()), (code, Some(remark)));
    }
    backend.configure(|config| config.recall = false);
    let answer = recall(&client, "t1", &good).await;
    let remark = Some("recall failed, operation is forbidden");
    assert_eq!((answer.code, answer.remark.as_deref()), (16, remark));
    backend.advance_ms(60_000);
    assert_eq!(backend.fire(), 1, "nothing was taken back");
}
