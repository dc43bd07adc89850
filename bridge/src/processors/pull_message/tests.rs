mod held;

use std::time::Duration;

use duolog_log_core::record::{Header, NewRecord};

use super::*;
use crate::backend::{Subscription, SubscriptionGroup};
use crate::dispatch::BoxFuture;
use crate::fake::{self, Client, FakeBackend};
use crate::limits::ADDRESS_OFFSET_BITS;
use crate::remoting::message::Message;
use crate::remoting::{RemotingCommand, SerializeType};

const PULL: i32 = 11;
const BY_REQUEST: &str = "4";
const BY_HEARTBEAT: &str = "0";
const HELD: &str = "6";
const HELD_BY_HEARTBEAT: &str = "2";

/// Ten messages in queue 2 of t1 (4 queues), tags A and B in turn, from offset 5 on; then three
/// offsets of nothing.
fn backend() -> FakeBackend {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 4);
    backend.skip("t1", 2, 5);
    for _ in 0..5 {
        backend.write_tagged("t1", 2, &[("A", "a"), ("B", "b")]);
    }
    backend.skip("t1", 2, 3);
    backend.set_log_start("t1", 2, 5);
    backend
}

fn request(changes: &[(&str, &str)]) -> RemotingCommand {
    let mut request = RemotingCommand::request(PULL, 7, SerializeType::Json);
    let fields = [
        ("consumerGroup", "g"),
        ("topic", "t1"),
        ("queueId", "2"),
        ("queueOffset", "5"),
        ("maxMsgNums", "32"),
        ("sysFlag", BY_REQUEST),
        ("commitOffset", "0"),
        ("suspendTimeoutMillis", "15000"),
        ("subscription", "*"),
        ("subVersion", "0"),
        ("expressionType", "TAG"),
    ];
    for (name, value) in fields.iter().chain(changes) {
        request.ext_fields.push(name, value);
    }
    request
}

async fn pull(client: &Client, changes: &[(&str, &str)]) -> RemotingCommand {
    client.send(request(changes)).await.expect("an answer")
}

fn offsets(answer: &RemotingCommand) -> Vec<i64> {
    let mut rest = &answer.body[..];
    let mut offsets = Vec::new();
    while !rest.is_empty() {
        offsets.push(Message::decode(&mut rest).expect("a message").queue_offset);
    }
    offsets
}

/// Code, remark, nextBeginOffset, and the offsets of the messages.
fn seen(answer: &RemotingCommand) -> (i32, &str, &str, Vec<i64>) {
    let next = answer.ext_fields.get("nextBeginOffset").unwrap_or("none");
    (answer.code, answer.remark.as_deref().unwrap_or(""), next, offsets(answer))
}

#[tokio::test]
async fn offsets_inside_and_outside() {
    let client = Client::new(backend());
    for (offset, expected) in [
        ("5", (0, "FOUND", "18", (5..15).collect())),
        ("9", (0, "FOUND", "18", (9..15).collect())),
        ("14", (0, "FOUND", "18", vec![14])),
        ("15", (20, "NO_MATCHED_MESSAGE", "18", vec![])),
        ("17", (20, "NO_MATCHED_MESSAGE", "18", vec![])),
        ("18", (19, "OFFSET_OVERFLOW_ONE", "18", vec![])),
        ("19", (21, "OFFSET_OVERFLOW_BADLY", "18", vec![])),
        ("1018", (21, "OFFSET_OVERFLOW_BADLY", "18", vec![])),
        ("4", (21, "OFFSET_TOO_SMALL", "5", vec![])),
        ("0", (21, "OFFSET_TOO_SMALL", "5", vec![])),
        ("-1", (21, "OFFSET_TOO_SMALL", "5", vec![])),
    ] {
        let answer = pull(&client, &[("queueOffset", offset)]).await;
        assert_eq!(seen(&answer), expected, "{offset}");
        assert_eq!(answer.ext_fields.get("minOffset"), Some("5"));
        assert_eq!(answer.ext_fields.get("maxOffset"), Some("18"));
        assert_eq!(answer.ext_fields.get("suggestWhichBrokerId"), Some("0"));
        assert_eq!(answer.opaque, 7);
    }
}

/// Case B92: every nextBeginOffset that is answered is legal when it is asked.
#[tokio::test]
async fn a_correction_needs_no_second_one() {
    let client = Client::new(backend());
    for offset in [-1, 0, 4, 5, 17, 18, 19, 1018, i64::MAX, i64::MIN] {
        let answer = pull(&client, &[("queueOffset", &offset.to_string())]).await;
        let next = answer.ext_fields.get("nextBeginOffset").expect("an offset").to_owned();
        let again = pull(&client, &[("queueOffset", &next)]).await;
        assert_ne!(again.code, 21, "{offset} then {next}");
    }
}

#[tokio::test]
async fn a_queue_that_was_never_written_to() {
    let client = Client::new(backend());
    for (topic, offset, expected) in [
        ("t1", "0", (19, "NO_MESSAGE_IN_QUEUE", "0", vec![])),
        ("t1", "5", (21, "NO_MESSAGE_IN_QUEUE", "0", vec![])),
        ("t1", "-1", (21, "NO_MESSAGE_IN_QUEUE", "0", vec![])),
        ("TBW102", "0", (19, "NO_MESSAGE_IN_QUEUE", "0", vec![])),
    ] {
        let changes = [("topic", topic), ("queueId", "0"), ("queueOffset", offset)];
        assert_eq!(seen(&pull(&client, &changes).await), expected, "{topic} {offset}");
    }
}

#[tokio::test]
async fn counts_and_sizes_are_bounded() {
    let backend = backend();
    backend.add_topic("big", 1);
    for _ in 0..3 {
        backend.write_tagged("big", 0, &[("", &"x".repeat(100_000))]);
    }
    backend.write_tagged("big", 0, &[("", "y"); 50]);
    let client = Client::new(backend);
    for (count, expected) in [("2", 2), ("0", 1), ("-5", 1)] {
        let answer = pull(&client, &[("maxMsgNums", count)]).await;
        assert_eq!(offsets(&answer).len(), expected, "{count}");
    }
    let big = |offset| [("topic", "big"), ("queueId", "0"), ("queueOffset", offset)];
    let answer = pull(&client, &big("0")).await;
    assert_eq!(seen(&answer), (0, "FOUND", "2", vec![0, 1]), "256 KiB");
    let answer = pull(&client, &[&big("3")[..], &[("maxMsgNums", "1000")]].concat()).await;
    assert_eq!(offsets(&answer).len(), 32);
    assert_eq!(answer.ext_fields.get("nextBeginOffset"), Some("35"));
}

#[tokio::test]
async fn a_message_larger_than_the_bound_comes_alone() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 4);
    backend.write_tagged("t1", 2, &[("", &"x".repeat(300_000)), ("", "y")]);
    let answer = pull(&Client::new(backend), &[("queueOffset", "0")]).await;
    assert_eq!(seen(&answer), (0, "FOUND", "1", vec![0]));
}

/// Case B89: what does not match is passed over, and the hash is Java's.
#[tokio::test]
async fn tags() {
    let backend = backend();
    backend.add_topic("tags", 1);
    let same_hash = [("Aa", "1"), ("BB", "2"), ("", "3"), ("日本", "4")];
    backend.write_tagged("tags", 0, &same_hash);
    let client = Client::new(backend);
    for (subscription, expected) in [
        ("A", (0, "FOUND", "18", vec![5, 7, 9, 11, 13])),
        ("A || B", (0, "FOUND", "18", (5..15).collect())),
        ("C", (20, "NO_MATCHED_MESSAGE", "18", vec![])),
        ("", (0, "FOUND", "18", (5..15).collect())),
    ] {
        let answer = pull(&client, &[("subscription", subscription)]).await;
        assert_eq!(seen(&answer), expected, "{subscription}");
    }
    let queue = [("topic", "tags"), ("queueId", "0"), ("queueOffset", "0")];
    for (subscription, expected) in [
        ("Aa", (0, "FOUND", "4", vec![0, 1])),
        ("日本", (0, "FOUND", "4", vec![3])),
        ("none", (20, "NO_MATCHED_MESSAGE", "4", vec![])),
    ] {
        let changes = [&queue[..], &[("subscription", subscription)]].concat();
        assert_eq!(seen(&pull(&client, &changes).await), expected, "{subscription}");
    }
}

#[tokio::test]
async fn what_is_asked_for_must_be_there_and_allowed() {
    let backend = backend();
    backend.change_topic("closed", |topic| topic.perm = 2);
    let mut off = SubscriptionGroup::with_defaults("off".into());
    off.consume_enable = false;
    backend.put_subscription_group(off).await.expect("stored");
    let client = Client::new(backend.clone());
    let faq = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details.";
    let jms = "The broker does not support consumer to filter message by JMS";
    for (changes, code, remark, forbidden) in [
        (
            &[("topic", "nowhere")][..],
            17,
            format!("topic[nowhere] not exist, apply first please! {faq}"),
            None,
        ),
        (
            &[("topic", "closed"), ("queueId", "0")],
            16,
            "the topic[closed] pulling message is forbidden".into(),
            Some("3"),
        ),
        (
            &[("queueId", "4")],
            29,
            "queueId[4] is illegal, topic:[t1] topicConfig.readQueueNums:[4] \
             consumer:[/127.0.0.1:50000]"
                .into(),
            None,
        ),
        (
            &[("queueId", "-1")],
            29,
            "queueId[-1] is illegal, topic:[t1] topicConfig.readQueueNums:[4] \
             consumer:[/127.0.0.1:50000]"
                .into(),
            None,
        ),
        (
            &[("consumerGroup", "a b")],
            26,
            format!("subscription group [a b] does not exist, {faq}"),
            None,
        ),
        (
            &[("consumerGroup", "off")],
            16,
            "subscription group no permission, off".into(),
            Some("2"),
        ),
        (&[("subscription", "||")], 23, "parse the consumer's subscription failed".into(), None),
        (&[("expressionType", "JMS")], 1, jms.into(), None),
        (
            &[("sysFlag", BY_HEARTBEAT)],
            24,
            format!("the consumer's group info not exist{faq}"),
            None,
        ),
    ] {
        let answer = pull(&client, changes).await;
        assert_eq!((answer.code, answer.remark), (code, Some(remark)), "{changes:?}");
        assert_eq!(answer.ext_fields.get("forbiddenType"), forbidden, "{changes:?}");
    }
    backend.configure(|config| config.broker_permission = 2);
    let answer = pull(&client, &[]).await;
    let remark = "the broker[127.0.0.1] pulling message is forbidden";
    assert_eq!((answer.code, answer.remark.as_deref()), (16, Some(remark)));
    assert_eq!(answer.ext_fields.get("forbiddenType"), Some("1"));
}

#[tokio::test]
async fn malformed_fields_are_named() {
    let client = Client::new(backend());
    for (name, value) in [("queueId", "abc"), ("queueOffset", ""), ("queueId", "2147483648")] {
        let answer = pull(&client, &[(name, value)]).await;
        assert_eq!(answer.code, 1);
        assert!(answer.remark.expect("a remark").contains(&format!("<{name}>")), "{name}");
    }
    let answer = client.send(RemotingCommand::request(PULL, 1, SerializeType::Json)).await;
    assert_eq!(
        answer.expect("an answer").remark.as_deref(),
        Some("the custom field <consumerGroup> is null")
    );
}

#[tokio::test]
async fn a_new_group_gets_a_configuration_unless_it_may_not() {
    let backend = backend();
    let client = Client::new(backend.clone());
    pull(&client, &[]).await;
    assert!(backend.subscription_group("g").is_some());
    backend.configure(|config| config.auto_create_subscription_group = false);
    let answer = pull(&client, &[("consumerGroup", "other")]).await;
    assert_eq!(answer.code, 26);
    assert!(backend.subscription_group("other").is_none());
}

#[tokio::test]
async fn the_position_that_comes_along_is_committed() {
    let backend = backend();
    let client = Client::new(backend.clone());
    pull(&client, &[("commitOffset", "9")]).await;
    assert_eq!(backend.committed("g", "t1", 2), None, "the flag is not set");
    pull(&client, &[("commitOffset", "9"), ("sysFlag", "5")]).await;
    assert_eq!(backend.committed("g", "t1", 2), Some(9));
    pull(&client, &[("commitOffset", "-1"), ("sysFlag", "5")]).await;
    assert_eq!(backend.committed("g", "t1", 2), Some(9));
    pull(&client, &[("commitOffset", "10"), ("sysFlag", "5"), ("queueOffset", "0")]).await;
    assert_eq!(backend.committed("g", "t1", 2), Some(10), "a pull from outside commits too");
}

fn subscription(expression: &str, expression_type: &str, version: i64) -> Subscription {
    let hashes =
        if expression == "*" { Vec::new() } else { vec![i32::from(expression.as_bytes()[0])] };
    Subscription {
        topic: "t1".into(),
        expression: expression.into(),
        expression_type: expression_type.into(),
        tags: Vec::new(),
        tag_hashes: hashes,
        version,
        class_filter_mode: false,
    }
}

#[tokio::test]
async fn the_heartbeats_subscription_filters() {
    let backend = backend();
    let client = Client::new(backend.clone());
    backend.register("g", subscription("B", "TAG", 5)).await;
    for (version, expected) in [
        ("5", (0, "FOUND", "18", vec![6, 8, 10, 12, 14])),
        ("4", (0, "FOUND", "18", vec![6, 8, 10, 12, 14])),
        // Newer than the heartbeat's: unfiltered, where the original answers 25.
        ("6", (0, "FOUND", "18", (5..15).collect())),
    ] {
        let answer = pull(&client, &[("sysFlag", BY_HEARTBEAT), ("subVersion", version)]).await;
        assert_eq!(seen(&answer), expected, "{version}");
    }
    let faq = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details.";
    backend.add_topic("t2", 4);
    let answer = pull(&client, &[("sysFlag", BY_HEARTBEAT), ("topic", "t2")]).await;
    assert_eq!(answer.code, 24);
    assert_eq!(answer.remark, Some(format!("the consumer's subscription not exist{faq}")));
}

/// Pitfall 16, case B91: SQL92 is never taken for "everything".
#[tokio::test]
async fn an_sql_subscription_that_is_not_known_gives_nothing() {
    let backend = backend();
    let client = Client::new(backend.clone());
    let by_heartbeat = |version| [("sysFlag", BY_HEARTBEAT), ("subVersion", version)];
    assert_eq!(pull(&client, &by_heartbeat("5")).await.code, 24, "nobody has registered");
    backend.register("g", subscription("TAGS = 'A'", "SQL92", 5)).await;
    let expected = (0, "FOUND", "18", vec![5, 7, 9, 11, 13]);
    assert_eq!(seen(&pull(&client, &by_heartbeat("5")).await), expected);
    let latest = "the consumer's subscription not latest";
    backend.register("g", subscription("a >", "SQL92", 7)).await;
    let wrong = "The broker's consumer filter data is not exist!Your expression may be wrong! \
                 a value was expected at 3";
    for (version, code, remark) in [("8", 25, latest), ("7", 27, wrong)] {
        let answer = pull(&client, &by_heartbeat(version)).await;
        assert_eq!((answer.code, answer.remark.as_deref()), (code, Some(remark)));
    }
}

/// RFI-03: a Kafka producer's headers and key are properties like others; what is passed over is passed for good.
#[tokio::test]
async fn sql_filters_by_what_a_message_shows() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 4);
    let record = |key: &[u8], headers: &[(&str, &str)]| {
        let headers: Vec<Header<'_>> = headers
            .iter()
            .map(|(key, value)| Header { key: key.as_bytes(), value: Some(value.as_bytes()) })
            .collect();
        let record = NewRecord { key: Some(key), headers: &headers, ..NewRecord::default() };
        (1, fake::payload(&NewRecord { value: Some(b"v"), ..record }))
    };
    for number in 0..100 {
        let records = vec![
            record(b"k1", &[("price", &number.to_string()), ("colour", "red")]),
            record(b"k2", &[("price", "cheap"), ("DELAY", "3")]),
        ];
        backend.write("t1", 2, records);
    }
    let client = Client::new(backend);
    for (sql, expected) in [
        ("price >= 98", (0, "FOUND", "200", vec![196, 198])),
        ("KEYS = 'k2' AND price = 'cheap'", (0, "FOUND", "65", (1..64).step_by(2).collect())),
        ("colour IS NOT NULL AND price BETWEEN 0 AND 1", (0, "FOUND", "200", vec![0, 2])),
        ("DELAY = 3", (20, "NO_MATCHED_MESSAGE", "200", vec![])),
    ] {
        let changes = [("subscription", sql), ("expressionType", "SQL92"), ("queueOffset", "0")];
        assert_eq!(seen(&pull(&client, &changes).await), expected, "{sql}");
    }
}

/// Beyond 2^40 there are no message addresses; the queue is not passed over in silence.
#[tokio::test]
async fn the_end_of_the_address_space() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 4);
    let end = 1_i64 << ADDRESS_OFFSET_BITS;
    backend.skip("t1", 2, end - 1);
    backend.set_log_start("t1", 2, end - 1);
    backend.write_tagged("t1", 2, &[("", "last"), ("", "beyond")]);
    let client = Client::new(backend);
    let answer = pull(&client, &[("queueOffset", &(end - 1).to_string())]).await;
    assert_eq!(seen(&answer), (0, "FOUND", &*end.to_string(), vec![end - 1]));
    let answer = pull(&client, &[("queueOffset", &end.to_string())]).await;
    assert_eq!(answer.code, 1);
    assert!(answer.remark.expect("a remark").contains("2^40"));
}

#[tokio::test]
async fn a_message_looks_as_it_was_written() {
    let backend = backend();
    let client = Client::new(backend.clone());
    let answer = pull(&client, &[("maxMsgNums", "1")]).await;
    let mut rest = &answer.body[..];
    let message = Message::decode(&mut rest).expect("a message");
    assert_eq!((message.topic, message.queue_id, message.body), ("t1", 2, &b"a"[..]));
    assert_eq!(message.born_timestamp_ms, fake::BORN_MS);
    assert_eq!(message.store_timestamp_ms, backend.now_ms());
    assert_eq!(message.store_host, backend.config().broker_address);
    assert!(rest.is_empty());
}
