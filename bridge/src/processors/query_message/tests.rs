use crate::fake::{Client, FakeBackend};
use crate::limits::QUERIES_MAX;
use crate::remoting::RemotingCommand;
use crate::remoting::message::Message;
use crate::translate::keys::KeyIndex;

async fn send(client: &Client, queue: &str, keys: &str, unique: &str, body: &str) {
    let properties = format!("KEYS\u{1}{keys}\u{2}UNIQ_KEY\u{1}{unique}\u{2}");
    let fields = [
        ("a", "p"),
        ("b", "t1"),
        ("c", "TBW102"),
        ("d", "4"),
        ("e", queue),
        ("f", "0"),
        ("g", "1600000000000"),
        ("h", "0"),
        ("i", properties.as_str()),
    ];
    assert_eq!(client.call(310, &fields, body.as_bytes()).await.code, 0);
}

async fn ask(client: &Client, key: &str, count: &str, times: (i64, i64)) -> RemotingCommand {
    let (begin, end) = (times.0.to_string(), times.1.to_string());
    let fields = [
        ("topic", "t1"),
        ("key", key),
        ("maxNum", count),
        ("beginTimestamp", &begin),
        ("endTimestamp", &end),
    ];
    client.call(12, &fields, b"").await
}

fn bodies(answer: &RemotingCommand) -> Vec<String> {
    let mut rest = &answer.body[..];
    let mut bodies = Vec::new();
    while !rest.is_empty() {
        let message = Message::decode(&mut rest).expect("a message");
        bodies.push(String::from_utf8_lossy(message.body).into_owned());
    }
    bodies
}

const ALWAYS: (i64, i64) = (0, i64::MAX);

#[tokio::test]
async fn messages_are_found_by_each_of_their_keys() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 4);
    let client = Client::new(backend.clone());
    send(&client, "0", "k1 k2", "0A", "first").await;
    backend.advance_ms(1000);
    send(&client, "3", "k2 k3", "0B", "second").await;
    backend.advance_ms(1000);
    send(&client, "1", "k2", "0C", "third").await;
    // A Kafka producer's: its key is what RocketMQ calls KEYS.
    let record = duolog_log_core::record::NewRecord {
        key: Some(b"k3"),
        value: Some(b"of kafka"),
        ..Default::default()
    };
    let mut payload = Vec::new();
    record.encode_payload(&mut payload);
    backend.advance_ms(1000);
    backend.write("t1", 2, vec![(5, payload)]);
    for (key, expected) in [
        ("k1", &["first"][..]),
        ("k2", &["first", "second", "third"]),
        ("k3", &["second", "of kafka"]),
        ("0B", &["second"]),
        ("0A", &["first"]),
    ] {
        let answer = ask(&client, key, "32", ALWAYS).await;
        assert_eq!(
            (answer.code, bodies(&answer)),
            (0, expected.iter().map(|b| (*b).to_owned()).collect()),
            "{key}"
        );
        for field in ["indexLastUpdateTimestamp", "indexLastUpdatePhyoffset"] {
            assert!(answer.ext_fields.get(field).is_some(), "stock clients read {field}");
        }
    }
    assert_eq!(bodies(&ask(&client, "k2", "2", ALWAYS).await), ["second", "third"], "the newest");
    let start = 1_700_000_000_000;
    for (times, expected) in [
        ((start + 1, i64::MAX), &["second", "third"][..]),
        ((0, start), &["first"]),
        ((start + 1000, start + 1000), &["second"]),
    ] {
        assert_eq!(bodies(&ask(&client, "k2", "32", times).await), expected, "{times:?}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 1);
    let client = Client::new(backend);
    let remark = "can not find message, maybe time range not correct";
    send(&client, "0", "k1", "0A", "first").await;
    for key in ["k", "k1 ", "K1", "0A0A", ""] {
        let answer = ask(&client, key, "32", ALWAYS).await;
        assert_eq!((answer.code, answer.remark.as_deref()), (22, Some(remark)), "{key:?}");
    }
    let fields = [
        ("topic", "nowhere"),
        ("key", "k1"),
        ("maxNum", "32"),
        ("beginTimestamp", "0"),
        ("endTimestamp", "9"),
    ];
    assert_eq!(client.call(12, &fields, b"").await.code, 22);
}

/// A look through a whole log takes its time; so few are at it at once.
#[tokio::test]
async fn too_many_at_once_are_told_so() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 1);
    let client = Client::new(backend);
    send(&client, "0", "k1", "0A", "first").await;
    let shared = client.dispatcher.shared();
    let busy = shared.queries.acquire_many(u32::try_from(QUERIES_MAX).expect("few")).await;
    assert_eq!(ask(&client, "k1", "32", ALWAYS).await.code, 2);
    drop(busy);
    assert_eq!(ask(&client, "k1", "32", ALWAYS).await.code, 0);
}

/// Of a key that very many messages have, the newest are found, and their number costs little.
#[tokio::test]
async fn the_newest_of_many_are_found() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 1);
    let client = Client::new(backend.clone());
    for number in 0..1100 {
        send(&client, "0", "k", &format!("U{number}"), &number.to_string()).await;
    }
    for end in [i64::MAX, 1050, 0] {
        backend.end_index(end);
        assert_eq!(bodies(&ask(&client, "k", "3", ALWAYS).await), ["1097", "1098", "1099"]);
        assert_eq!(bodies(&ask(&client, "U3", "3", ALWAYS).await), ["3"]);
    }
}

/// A topic's switch leaves Kafka's keys out, whether the index is asked or the log is read.
#[tokio::test]
async fn keys_of_kafka_are_found_where_the_topic_says_so() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 1);
    let client = Client::new(backend.clone());
    let of_kafka = |count: usize| {
        let record = duolog_log_core::record::NewRecord {
            key: Some(b"k"),
            value: Some(b"of kafka"),
            ..Default::default()
        };
        let mut payload = Vec::new();
        record.encode_payload(&mut payload);
        backend.write("t1", 0, vec![(5, payload); count]);
    };
    send(&client, "0", "k", "0A", "of rocketmq").await;
    for count in [1, 1500] {
        of_kafka(count);
        backend.change_topic("t1", |topic| topic.key_index = KeyIndex::All);
        let found = bodies(&ask(&client, "k", "64", (0, i64::MAX)).await);
        assert!(found.iter().any(|body| body == "of kafka"), "{found:?}");
        backend.change_topic("t1", |topic| topic.key_index = KeyIndex::Rmq);
        assert_eq!(bodies(&ask(&client, "k", "64", ALWAYS).await), ["of rocketmq"]);
    }
}

/// Whatever of the log is indexed, the same is found.
#[tokio::test]
async fn the_index_says_where_the_messages_are_and_reading_finds_the_rest() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 1);
    let client = Client::new(backend.clone());
    for number in 0..1500 {
        send(
            &client,
            "0",
            &format!("k{}", number % 500),
            &format!("U{number}"),
            &number.to_string(),
        )
        .await;
    }
    for end in [i64::MAX, 1200, 600, 0] {
        backend.end_index(end);
        for (key, expected) in [("k7", &["7", "507", "1007"][..]), ("U1499", &["1499"])] {
            let answer = ask(&client, key, "32", ALWAYS).await;
            assert_eq!(
                (answer.code, bodies(&answer)),
                (0, expected.iter().map(|b| (*b).to_owned()).collect())
            );
        }
        assert_eq!(ask(&client, "none", "32", ALWAYS).await.code, 22);
    }
}

#[tokio::test]
async fn a_damaged_queue_keeps_nobody_from_the_others() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 4);
    let client = Client::new(backend.clone());
    send(&client, "0", "k", "0A", "before").await;
    send(&client, "0", "lost", "0B", "damaged").await;
    send(&client, "3", "k", "0C", "behind").await;
    backend.spoil("t1", 0, 0);
    let answer = ask(&client, "k", "32", ALWAYS).await;
    assert_eq!((answer.code, bodies(&answer)), (0, vec!["behind".to_owned()]));
    let answer = ask(&client, "lost", "32", ALWAYS).await;
    let remark = Some("batch at offset 0 cannot be read: spoilt");
    assert_eq!((answer.code, answer.remark.as_deref()), (1, remark), "it may be there");
}
