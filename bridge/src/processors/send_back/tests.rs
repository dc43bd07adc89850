use std::sync::Arc;

use duolog_log_core::gate::GatePoint;
use duolog_log_core::record::{Header, NewRecord};

use crate::backend::{Backend, PERM_READ, Passage, ReadRequest, SubscriptionGroup};
use crate::fake::{Client, FakeBackend, payload};
use crate::remoting::RemotingCommand;
use crate::translate::again::Again;
use crate::translate::names::stored_topic;
use crate::translate::queue::PseudoAddress;

const TRIED_ONCE: i32 = 0;

fn physical(number: u32, offset: i64) -> String {
    PseudoAddress::new(number, offset).expect("an address").physical().to_string()
}

async fn send_back(client: &Client, number: u32, offset: i64, level: i32) -> RemotingCommand {
    let (place, level) = (physical(number, offset), level.to_string());
    let fields = [
        ("group", "g"),
        ("offset", place.as_str()),
        ("delayLevel", level.as_str()),
        ("originMsgId", "whatever"),
        ("originTopic", "t1"),
        ("unitMode", "false"),
        ("maxReconsumeTimes", "2"),
    ];
    client.call(36, &fields, b"").await
}

/// What stands in the first queue of a topic, as it would be sent back again.
async fn all(backend: &FakeBackend, name: &str) -> Vec<Again> {
    let stored = stored_topic(name).expect("a name");
    let Some(topic) = backend.topic(&stored) else { return Vec::new() };
    let (bytes_max, records_max) = (usize::MAX, usize::MAX);
    let request =
        ReadRequest { topic: &topic, partition: 0, offset: 0, bytes_max, records_max, tags: None };
    let read = backend.read(request).await.expect("a log");
    let batches = read.batches.iter();
    batches
        .flat_map(|batch| {
            let door = batch.door(&topic.name);
            batch.decoded().iter().map(move |record| Again::of(&record, door)).collect::<Vec<_>>()
        })
        .collect()
}

fn number_of(backend: &FakeBackend, name: &str) -> u32 {
    let stored = stored_topic(name).expect("a name");
    let topic = backend.topic(&stored).expect("the topic");
    (0..9)
        .find(|number| {
            backend.partition_by_number(*number).is_some_and(|(at, _)| at.id == topic.id)
        })
        .expect("a number")
}

#[tokio::test]
async fn a_message_comes_again_after_ever_longer_delays_and_then_is_dead() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 1);
    backend.write_tagged("t1", 0, &[("A", "body")]);
    backend.listen();
    let client = Client::new(backend.clone());
    let first = number_of(&backend, "t1");
    let (mut number, mut offset) = (first, 0);
    // Levels 3 and 4 are 10 s and 30 s.
    for (times, delay_ms, level) in [(1, 10_000, "3"), (2, 30_000, "4")] {
        let answer = send_back(&client, number, offset, TRIED_ONCE).await;
        assert_eq!((answer.code, answer.remark.as_deref()), (0, None));
        backend.advance_ms(delay_ms - 1);
        assert_eq!(backend.fire(), 0);
        backend.advance_ms(1);
        assert_eq!(backend.fire(), 1);
        let messages = all(&backend, "%RETRY%g").await;
        let message = messages.last().expect("a retry");
        assert_eq!(message.reconsume_times(), times);
        assert_eq!(message.property("RETRY_TOPIC"), Some("t1"));
        assert_eq!(message.property("TAGS"), Some("A"));
        assert_eq!(message.property("DELAY"), Some(level));
        assert_eq!(message.property("REAL_TOPIC"), Some("%RETRY%g"));
        (number, offset) = (number_of(&backend, "%RETRY%g"), i64::from(times) - 1);
    }
    assert_eq!(send_back(&client, number, offset, TRIED_ONCE).await.code, 0);
    assert_eq!(backend.fire(), 0);
    let dead = all(&backend, "%DLQ%g").await;
    let [message] = dead.as_slice() else { panic!("one dead letter: {dead:?}") };
    assert_eq!((message.reconsume_times(), message.property("RETRY_TOPIC")), (3, Some("t1")));
    let id = crate::translate::queue::MessageId {
        store_host: "127.0.0.1:10911".parse().expect("an address"),
        address: PseudoAddress::new(first, 0).expect("an address"),
    };
    assert_eq!(message.property("ORIGIN_MESSAGE_ID"), Some(id.to_string().as_str()));
    let told = backend.told();
    let kinds: Vec<_> = told.iter().filter_map(|event| event.split(' ').next()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "sendback").count(), 3, "{told:?}");
    assert_eq!(kinds.iter().filter(|kind| **kind == "dlq.store").count(), 1, "{told:?}");
    let topic = backend.topic(&stored_topic("%DLQ%g").expect("a name")).expect("dead letters");
    assert_eq!((topic.perm, topic.partitions), (6, 1), "they can be read");
}

#[tokio::test]
async fn a_level_of_the_consumers_choice_goes_before_and_a_negative_one_ends_it() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 1);
    backend.write_tagged("t1", 0, &[("", "body")]);
    let client = Client::new(backend.clone());
    assert_eq!(send_back(&client, 0, 0, 1).await.code, 0);
    backend.advance_ms(1_000);
    assert_eq!(backend.fire(), 1);
    assert_eq!(send_back(&client, 0, 0, -1).await.code, 0);
    assert_eq!(all(&backend, "%DLQ%g").await.len(), 1);
}

/// A Kafka producer's record comes again with its key, and a null value stays one; what it claims of
/// an earlier life is not believed.
#[tokio::test]
async fn kafkas_records_come_again_as_they_are() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 1);
    let headers = [Header { key: b"RETRY_TOPIC", value: Some(b"forged") }];
    let record = NewRecord { key: Some(b"k"), value: None, headers: &headers, timestamp: 0 };
    backend.write("t1", 0, vec![(7, payload(&record))]);
    let client = Client::new(backend.clone());
    assert_eq!(send_back(&client, 0, 0, TRIED_ONCE).await.code, 0);
    backend.advance_ms(10_000);
    assert_eq!(backend.fire(), 1);
    let retried = all(&backend, "%RETRY%g").await;
    let [message] = retried.as_slice() else { panic!("one retry") };
    assert_eq!(message.property("RETRY_TOPIC"), Some("t1"));
    assert_eq!(message.property("KEYS"), Some("k"));
    assert_eq!(message.property("KAFKA_TOMBSTONE"), Some("true"));
}

#[tokio::test]
async fn what_cannot_be_sent_back_is_refused_in_the_originals_words() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 1);
    backend.write_tagged("t1", 0, &[("", "body")]);
    let client = Client::new(backend.clone());
    let answer = send_back(&client, 0, 5, 0).await;
    let remark = format!("look message by offset failed, {}", physical(0, 5));
    assert_eq!((answer.code, answer.remark), (1, Some(remark)));
    let retry = stored_topic("%RETRY%g").expect("a name").into_owned();
    backend.change_topic(&retry, |topic| topic.perm = PERM_READ);
    let answer = send_back(&client, 0, 0, 0).await;
    let remark = Some("the topic[%RETRY%g] sending message is forbidden");
    assert_eq!((answer.code, answer.remark.as_deref()), (16, remark));
    let mut group = SubscriptionGroup::with_defaults(Arc::from("g"));
    group.retry_queues = 0;
    backend.put_subscription_group(group).await.expect("stored");
    assert_eq!(send_back(&client, 0, 0, 0).await.code, 0, "such a group wants nothing back");
    backend.configure(|config| config.broker_permission = PERM_READ);
    let answer = send_back(&client, 0, 0, 0).await;
    let remark = Some("the broker[127.0.0.1] sending message is forbidden");
    assert_eq!((answer.code, answer.remark.as_deref()), (16, remark));
    backend.delete_subscription_group("g").await.expect("deleted");
    backend.configure(|config| config.auto_create_subscription_group = false);
    assert_eq!(send_back(&client, 0, 0, 0).await.code, 26);
    backend.arm(GatePoint::SendBackReceived, Passage::Fail);
    let answer = send_back(&client, 0, 0, 0).await;
    assert_eq!(answer.remark.as_deref(), Some("the gate sendback.recv refuses the request"));
    backend.advance_ms(i64::from(i32::MAX));
    assert_eq!((backend.fire(), all(&backend, "%DLQ%g").await.len()), (0, 0));
}
