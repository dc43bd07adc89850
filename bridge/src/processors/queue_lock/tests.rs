use crate::fake::{Client, FakeBackend};

const LOCK: i32 = 41;
const UNLOCK: i32 = 42;

fn body(client: &str, queues: &[(&str, i32)]) -> String {
    let queues: Vec<String> = queues
        .iter()
        .map(|(topic, id)| {
            format!(r#"{{"brokerName":"broker-a","queueId":{id},"topic":"{topic}"}}"#)
        })
        .collect();
    let queues = queues.join(",");
    format!(
        r#"{{"clientId":"{client}","consumerGroup":"g","mqSet":[{queues}],"onlyThisBroker":true}}"#
    )
}

async fn lock(connection: &Client, client: &str, queues: &[(&str, i32)]) -> String {
    let answer = connection.call(LOCK, &[], body(client, queues).as_bytes()).await;
    assert_eq!((answer.code, answer.remark), (0, None));
    String::from_utf8(answer.body.to_vec()).expect("text")
}

#[tokio::test]
async fn a_lock_answers_what_the_client_holds_in_the_order_asked() {
    let connection = Client::new(FakeBackend::new());
    let answer = lock(&connection, "a", &[("t", 2), ("t", 0)]).await;
    assert_eq!(
        answer,
        r#"{"lockOKMQSet":[{"brokerName":"broker-a","queueId":2,"topic":"t"},{"brokerName":"broker-a","queueId":0,"topic":"t"}]}"#
    );
    let answer = lock(&connection, "b", &[("t", 0), ("t", 1)]).await;
    assert_eq!(answer, r#"{"lockOKMQSet":[{"brokerName":"broker-a","queueId":1,"topic":"t"}]}"#);
    let freed = connection.call(UNLOCK, &[], body("a", &[("t", 0)]).as_bytes()).await;
    assert_eq!((freed.code, freed.remark, freed.body.len()), (0, None, 0));
    let answer = lock(&connection, "b", &[("t", 2), ("t", 0)]).await;
    assert_eq!(answer, r#"{"lockOKMQSet":[{"brokerName":"broker-a","queueId":0,"topic":"t"}]}"#);
    assert_eq!(lock(&connection, "c", &[]).await, r#"{"lockOKMQSet":[]}"#);
}

#[tokio::test]
async fn a_queue_is_one_whatever_its_topic_is_called() {
    let backend = FakeBackend::new();
    backend.add_topic("orders.v1", 1);
    let connection = Client::new(backend);
    lock(&connection, "a", &[("orders_v1", 0)]).await;
    assert_eq!(lock(&connection, "b", &[("orders.v1", 0)]).await, r#"{"lockOKMQSet":[]}"#);
}

#[tokio::test]
async fn what_is_no_request_for_locks_is_refused_and_locks_nothing() {
    let connection = Client::new(FakeBackend::new());
    for (body, word) in [
        ("", ""),
        ("{", ""),
        (r#"{"clientId":"a","mqSet":[{"topic":"t","queueId":0}]}"#, "consumerGroup"),
        (r#"{"consumerGroup":"g","mqSet":[{"topic":"t","queueId":0}]}"#, "clientId"),
        (r#"{"clientId":"a","consumerGroup":"g","mqSet":[{"topic":"t","queueId":"x"}]}"#, ""),
    ] {
        for code in [LOCK, UNLOCK] {
            let answer = connection.call(code, &[], body.as_bytes()).await;
            assert_eq!(answer.code, 1, "{body}");
            assert!(answer.remark.expect("words").contains(word), "{body}");
        }
    }
    let answer = lock(&connection, "b", &[("t", 0)]).await;
    assert!(answer.contains(r#""queueId":0"#), "{answer}");
}
