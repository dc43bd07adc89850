mod batches;
mod delays;
mod halves;

use std::io::Write as _;
use std::sync::Arc;

use super::*;
use crate::backend::{PERM_READ, ReadRequest, SubscriptionGroup};
use crate::fake::{Client, FakeBackend};
use crate::remoting::RemotingCommand;
use crate::translate::origin::Origin;
use crate::translate::send::{KeySource, Tombstones};

const FAQ: &str = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details.";
const V2: i32 = 310;
const BATCH: i32 = 320;

async fn send_to(
    client: &Client,
    code: i32,
    changes: &[(&str, &str)],
    body: &[u8],
) -> RemotingCommand {
    let fields = [
        ("a", "p1"),
        ("b", "t1"),
        ("c", "TBW102"),
        ("d", "4"),
        ("e", "0"),
        ("f", "0"),
        ("g", "1600000000000"),
        ("h", "0"),
        ("i", "UNIQ_KEY\u{1}0A\u{2}"),
    ];
    client.call(code, &[&fields, changes].concat(), body).await
}

fn field<'a>(answer: &'a RemotingCommand, name: &str) -> Option<&'a str> {
    answer.ext_fields.get(name)
}

/// Everything in the fake's topic: queue, value, headers.
async fn stored(backend: &FakeBackend, topic: &str) -> Vec<(i32, String, Vec<(String, String)>)> {
    let Some(topic) = backend.topic(topic) else { return Vec::new() };
    let mut all = Vec::new();
    for partition in 0..topic.partitions {
        let (bytes_max, records_max) = (usize::MAX, usize::MAX);
        let request =
            ReadRequest { topic: &topic, partition, offset: 0, bytes_max, records_max, tags: None };
        let read = backend.read(request).await.expect("a log");
        for record in read.batches.iter().flat_map(|batch| batch.decoded()) {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let shown = record.headers.iter().filter(|header| header.key != b"__rmq");
            let headers =
                shown.map(|header| (text(header.key), text(header.value.unwrap_or(b"-"))));
            all.push((partition, text(record.value.unwrap_or(b"-")), headers.collect()));
        }
    }
    all
}

/// Keys and values of the first queue.
async fn keys_and_values(backend: &FakeBackend, topic: &str) -> Vec<(String, String)> {
    let topic = backend.topic(topic).expect("the topic");
    let (bytes_max, records_max) = (usize::MAX, usize::MAX);
    let (partition, offset, tags) = (0, 0, None);
    let request = ReadRequest { topic: &topic, partition, offset, bytes_max, records_max, tags };
    let read = backend.read(request).await.expect("a log");
    let text = |bytes: Option<&[u8]>| {
        bytes.map_or("null".into(), |bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    let records = read.batches.iter().flat_map(|batch| batch.decoded());
    records.map(|record| (text(record.key), text(record.value))).collect()
}

/// The topic says which property is the key that Kafka sees.
#[tokio::test]
async fn the_key_is_what_the_topic_says() {
    let properties = "UNIQ_KEY\u{1}0A\u{2}KEYS\u{1}k1 k2\u{2}__SHARDINGKEY\u{1}s\u{2}";
    for (source, expected) in
        [(KeySource::Keys, "k1 k2"), (KeySource::ShardingKey, "s"), (KeySource::Nothing, "null")]
    {
        let backend = FakeBackend::new();
        backend.change_topic("t1", |topic| topic.key_source = source);
        let client = Client::new(backend.clone());
        let message = message(b"b", properties.as_bytes());
        assert_eq!(send_to(&client, V2, &[("i", properties)], b"a").await.code, 0);
        assert_eq!(send_to(&client, BATCH, &[("m", "true")], &message).await.code, 0);
        let pairs = keys_and_values(&backend, "t1").await;
        let expected = ["a", "b"].map(|body| (expected.to_owned(), body.to_owned()));
        assert_eq!(pairs, expected, "{source:?}");
        for (_, _, headers) in stored(&backend, "t1").await {
            assert!(headers.contains(&("KEYS".into(), "k1 k2".into())), "kept as a property");
        }
    }
}

/// Case B127: a null value only where compaction gives it a meaning, and only by its property.
#[tokio::test]
async fn tombstones_are_for_compacted_topics() {
    let tombstone = "UNIQ_KEY\u{1}0A\u{2}KEYS\u{1}k\u{2}KAFKA_TOMBSTONE\u{1}true\u{2}";
    let backend = FakeBackend::new();
    backend.add_topic("plain", 4);
    backend.change_topic("compacted", |topic| topic.tombstones = Tombstones::Allowed);
    let client = Client::new(backend.clone());
    let refused = send_to(&client, V2, &[("b", "plain"), ("i", tombstone)], b"0").await;
    assert_eq!(refused.code, 13);
    assert!(refused.remark.expect("a remark").contains("KAFKA_TOMBSTONE is for compacted topics"));
    let refused = send_to(&client, V2, &[("b", "not-there"), ("i", tombstone)], b"0").await;
    assert_eq!((refused.code, backend.topic("not-there")), (13, None));
    let compacted = [("b", "compacted"), ("i", tombstone)];
    assert_eq!(send_to(&client, V2, &compacted, b"two").await.code, 13, "it has a body");
    assert_eq!(send_to(&client, V2, &compacted, b"0").await.code, 0);
    let refused = send_to(&client, V2, &[("b", "compacted")], b"0").await;
    assert_eq!(refused.code, 13, "compaction would drop a record without a key");
    assert!(refused.remark.expect("a remark").contains("no message without a key"));
    let stored = keys_and_values(&backend, "compacted").await;
    assert_eq!(stored, [("k".into(), "null".into())]);
}

async fn bodies(backend: &FakeBackend, topic: &str) -> Vec<(i32, String)> {
    stored(backend, topic).await.into_iter().map(|(queue, body, _)| (queue, body)).collect()
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.into(), value.into())
}

#[tokio::test]
async fn a_message_is_stored_and_answered() {
    let backend = FakeBackend::new();
    backend.add_topic("other", 2);
    backend.add_topic("t1", 4);
    let client = Client::new(backend.clone());
    let changes = [("e", "3"), ("i", "UNIQ_KEY\u{1}0A\u{2}TAGS\u{1}TagA"), ("h", "5"), ("j", "2")];
    for (code, offset, id) in [
        (V2, "0", "7F00000100002A9F0000050000000000"),
        (V2, "1", "7F00000100002A9F0000050000000001"),
    ] {
        let answer = send_to(&client, code, &changes, b"hello").await;
        assert_eq!((answer.code, answer.remark.as_deref()), (0, None));
        assert_eq!(field(&answer, "msgId"), Some(id));
        assert_eq!(field(&answer, "queueId"), Some("3"));
        assert_eq!(field(&answer, "queueOffset"), Some(offset));
        assert_eq!(field(&answer, "transactionId"), Some("0A"));
        assert_eq!(field(&answer, "MSG_REGION"), Some("DefaultRegion"));
        assert_eq!(field(&answer, "TRACE_ON"), Some("true"));
    }
    let headers = vec![pair("UNIQ_KEY", "0A"), pair("TAGS", "TagA")];
    let one = (3, "hello".to_owned(), headers);
    assert_eq!(stored(&backend, "t1").await, [one.clone(), one]);
    let topic = backend.topic("t1").expect("a topic");
    let (bytes_max, records_max) = (1, 1);
    let request =
        ReadRequest { topic: &topic, partition: 3, offset: 0, bytes_max, records_max, tags: None };
    let read = backend.read(request).await.expect("a log");
    let record = read.batches[0].decoded().record_at(0).expect("a record");
    assert_eq!(record.timestamp, 1_600_000_000_000);
    let origin = record.headers.iter().find(|header| header.key == b"__rmq").expect("an origin");
    let origin = Origin::decode(origin.value.expect("a value")).expect("an origin");
    assert_eq!((origin.flag, origin.reconsume_times), (5, 2));
    assert_eq!(origin.born_host, client.session.peer());
    assert_eq!(origin.store_timestamp_ms, backend.now_ms());
}

#[tokio::test]
async fn long_names() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    let fields = [
        ("producerGroup", "p1"),
        ("topic", "t1"),
        ("defaultTopic", "TBW102"),
        ("defaultTopicQueueNums", "4"),
        ("queueId", "1"),
        ("sysFlag", "0"),
        ("bornTimestamp", "1600000000000"),
        ("flag", "0"),
        ("properties", "UNIQ_KEY\u{1}0A\u{2}"),
    ];
    let answer = client.call(10, &fields, b"hello").await;
    assert_eq!((answer.code, field(&answer, "queueId")), (0, Some("1")));
    assert_eq!(bodies(&backend, "t1").await, [(1, "hello".to_owned())]);
    let answer = client.call(10, &fields[1..], b"hello").await;
    assert_eq!(answer.remark.as_deref(), Some("the custom field <producerGroup> is null"));
}

#[tokio::test]
async fn the_broker_chooses_every_queue_in_its_turn() {
    let backend = FakeBackend::new();
    backend.change_topic("t1", |topic| {
        (topic.partitions, topic.read_queues, topic.write_queues) = (4, 4, 3);
    });
    let client = Client::new(backend.clone());
    let mut queues = Vec::new();
    for queue_id in ["-1", "-5", "-1", "-1", "-1", "-1"] {
        let answer = send_to(&client, V2, &[("e", queue_id)], b"x").await;
        queues.push(field(&answer, "queueId").expect("a queue").to_owned());
    }
    queues.sort();
    assert_eq!(queues, ["0", "0", "1", "1", "2", "2"]);
}

#[tokio::test]
async fn a_new_topic_follows_the_template() {
    let backend = FakeBackend::new();
    backend.change_topic("mine", |topic| {
        (topic.write_queues, topic.perm) = (2, 5);
    });
    backend.change_topic("closed", |topic| topic.perm = 6);
    let client = Client::new(backend.clone());
    for (topic, asked, template, queues, perm) in [
        ("four", "4", "TBW102", 4, 6),
        ("sixteen", "16", "TBW102", 8, 6),
        ("TBW102", "4", "TBW102", 8, 7),
        ("%RETRY%g", "4", "TBW102", 1, 6),
        ("%DLQ%g", "4", "TBW102", 1, 6),
        ("a%b", "3", "TBW102", 3, 6),
    ] {
        let changes = [("b", topic), ("d", asked), ("c", template)];
        assert_eq!(send_to(&client, V2, &changes, b"x").await.code, 0, "{topic}");
        let made = client.dispatcher.shared().topic(topic).expect("a topic");
        assert_eq!((made.read_queues, made.write_queues), (queues, queues), "{topic}");
        assert_eq!(made.perm, perm, "{topic}");
    }
    // Its permission is read and inherit: the new topic may be read alone, which the send finds.
    let answer = send_to(&client, V2, &[("b", "like_mine"), ("c", "mine")], b"x").await;
    assert_eq!(answer.code, 16);
    for (topic, template) in [("t8", "nothing"), ("t9", "closed")] {
        let answer = send_to(&client, V2, &[("b", topic), ("c", template)], b"x").await;
        assert_eq!(answer.code, 17);
        let remark = format!("topic[{topic}] not exist, apply first please!{FAQ}");
        assert_eq!(answer.remark, Some(remark));
        assert!(backend.topic(topic).is_none());
    }
    backend.configure(|config| config.auto_create_topic = false);
    assert_eq!(send_to(&client, V2, &[("b", "t10")], b"x").await.code, 17);
}

#[tokio::test]
async fn concurrent_first_sends_make_one_topic() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    let sends = (0..20).map(|index| {
        let queues = (index % 4 + 1).to_string();
        let client = &client;
        async move { send_to(client, V2, &[("d", &queues)], b"x").await.code }
    });
    for code in futures_in_order(sends).await {
        assert_eq!(code, 0);
    }
    assert_eq!(bodies(&backend, "t1").await.len(), 20);
    assert_eq!(backend.topics().len(), 1);
}

async fn futures_in_order<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut all = Vec::new();
    for future in futures {
        all.push(future.await);
    }
    all
}

/// Nothing is stored and no topic made, whatever is wrong.
#[tokio::test]
async fn refused_sends_change_nothing() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 4);
    backend.change_topic("closed", |topic| topic.perm = PERM_READ);
    backend.change_topic("own", |topic| topic.internal = true);
    let client = Client::new(backend.clone());
    let long = "x".repeat(128);
    let wide = format!("k\u{1}{}\u{2}", "v".repeat(32768));
    let size = "the message is illegal, maybe msg body or properties length not matched. msg body \
                length limit 4194304B, msg properties length limit 32KB.";
    let config = "readQueueNums=4, writeQueueNums=4, perm=RW-, topicFilterType=SINGLE_TAG, \
                  topicSysFlag=0, order=false, attributes={}]";
    let queue = |queue_id: &str, topic: &str, config: &str| {
        format!(
            "request queueId[{queue_id}] is illegal, TopicConfig [topicName={topic}, {config} \
             Producer: 127.0.0.1:50000"
        )
    };
    let none = config.replace("=4", "=0");
    for (changes, code, remark) in [
        (&[("b", "")][..], 29, "The specified topic is blank.".to_owned()),
        (
            &[("b", "a.b")],
            29,
            "The specified topic: a.b, contains illegal characters, allowing only \
             ^[%|a-zA-Z0-9_-]+$"
                .into(),
        ),
        (
            &[("b", &long)],
            29,
            format!("The specified topic: {long}, is longer than topic max length: 127"),
        ),
        (
            &[("b", "SCHEDULE_TOPIC_XXXX")],
            16,
            "Sending message to topic[SCHEDULE_TOPIC_XXXX] is forbidden.".into(),
        ),
        (&[("b", "own")], 16, "Sending message to topic[own] is forbidden.".into()),
        (&[("b", "closed")], 16, "the topic[closed] sending message is forbidden".into()),
        (&[("e", "4")], 29, queue("4", "t1", config)),
        (&[("e", "99")], 29, queue("99", "t1", config)),
        (&[("b", "new"), ("e", "4")], 29, queue("4", "new", config)),
        (&[("b", "new"), ("d", "0")], 29, queue("0", "new", &none)),
        (&[("b", "new"), ("d", "-3"), ("e", "-1")], 29, queue("-1", "new", &none)),
        (&[("b", "new"), ("i", &wide)], 13, size.into()),
        (
            &[("b", &format!("%RETRY%{}", "g".repeat(130)))],
            26,
            format!("subscription group not exist, {} {FAQ}", "g".repeat(130)),
        ),
    ] {
        let answer = send_to(&client, V2, changes, b"x").await;
        assert_eq!((answer.code, answer.remark.as_deref()), (code, Some(&*remark)), "{changes:?}");
        assert_eq!(field(&answer, "MSG_REGION"), Some("DefaultRegion"));
        assert_eq!(field(&answer, "TRACE_ON"), Some("true"));
    }
    let answer = send_to(&client, V2, &[], &vec![0; 4 * 1024 * 1024 + 1]).await;
    assert_eq!((answer.code, answer.remark.as_deref()), (13, Some(size)));
    let answer = send_to(&client, V2, &[], b"").await;
    assert_eq!(answer.remark.as_deref(), Some("the message body is empty"));
    assert!(backend.topic("new").is_none());
    assert_eq!(bodies(&backend, "t1").await, []);
}

#[tokio::test]
async fn the_largest_body_is_taken() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    let answer = send_to(&client, V2, &[], &vec![b'z'; 4 * 1024 * 1024]).await;
    assert_eq!(answer.code, 0);
}

/// What is not built yet is refused, not stored as if it had not been asked for.
#[tokio::test]
async fn unbuilt_features() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    for changes in [
        &[("i", "TRAN_MSG\u{1}true\u{2}DELAY\u{1}3\u{2}")][..],
        &[(
            "i",
            "UNIQ_KEY\u{1}u\u{2}TRAN_MSG\u{1}true\u{2}TIMER_DELIVER_MS\u{1}1700000000000\u{2}",
        )],
        &[("f", "4")],
        &[("f", "12")],
    ] {
        let answer = send_to(&client, V2, changes, b"x").await;
        assert_eq!(answer.code, 13, "{changes:?}");
        assert!(answer.remark.is_some_and(|remark| remark.contains("not stored")), "{changes:?}");
    }
    assert!(backend.topics().is_empty());
    for properties in ["DELAY\u{1}0\u{2}", "TRAN_MSG\u{1}false\u{2}"] {
        assert_eq!(send_to(&client, V2, &[("i", properties)], b"x").await.code, 0);
    }
}

#[tokio::test]
async fn fields_that_are_missing_or_malformed_are_named() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    for (name, value) in [("e", "abc"), ("e", "2147483648"), ("g", "x"), ("f", ""), ("d", "4.0")] {
        let answer = send_to(&client, V2, &[(name, value)], b"x").await;
        assert_eq!(answer.code, 1);
        assert!(answer.remark.expect("a remark").contains(&format!("<{name}>")), "{name}");
    }
    let answer = client.call(V2, &[], b"x").await;
    assert_eq!(answer.remark.as_deref(), Some("the custom field <a> is null"));
    assert!(backend.topics().is_empty());
}

#[tokio::test]
async fn a_compressed_body_is_stored_plain() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    zlib.write_all(&[b'p'; 5000]).expect("memory");
    let packed = zlib.finish().expect("memory");
    assert_eq!(send_to(&client, V2, &[("f", "1")], &packed).await.code, 0);
    assert_eq!(bodies(&backend, "t1").await, [(0, "p".repeat(5000))]);
    let answer = send_to(&client, V2, &[("f", "1")], b"not zlib").await;
    assert_eq!(answer.code, 13);
    assert_eq!(bodies(&backend, "t1").await.len(), 1);
}

#[tokio::test]
async fn a_message_without_a_key_of_its_own_gets_one() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    for properties in ["", "a\u{1}b", "a\u{1}b\u{2}"] {
        let answer = send_to(&client, V2, &[("i", properties)], b"x").await;
        let key = field(&answer, "transactionId").expect("a key").to_owned();
        assert_eq!(key.len(), 32);
        let (_, _, headers) = stored(&backend, "t1").await.pop().expect("a message");
        assert!(headers.contains(&("UNIQ_KEY".into(), key)));
        assert_eq!(headers.contains(&pair("a", "b")), !properties.is_empty());
    }
}

#[tokio::test]
async fn how_the_append_ended() {
    let backend = FakeBackend::new();
    backend.add_topic("t1", 4);
    let client = Client::new(backend.clone());
    for (stored, code) in [
        (Stored::Ok, 0),
        (Stored::FlushDiskTimeout, 10),
        (Stored::ReplicaNotAvailable, 11),
        (Stored::FlushReplicaTimeout, 12),
    ] {
        backend.answer_append(Ok(stored));
        let answer = send_to(&client, V2, &[], b"x").await;
        assert_eq!(answer.code, code);
        assert!(field(&answer, "msgId").is_some(), "it is stored all the same");
    }
    let size = "the message is illegal, maybe msg body or properties length not matched. msg body \
                length limit 4194304B, msg properties length limit 32KB.";
    let topic = || "t1".to_owned();
    for (error, code, remark) in [
        (BackendError::RecordTooLarge { bytes: 9, bytes_max: 8 }, 13, size),
        (BackendError::NotEnoughReplicas, 1, "in-sync replicas not enough"),
        (BackendError::Busy, 2, "too many requests are waiting"),
        (BackendError::NotWritable { reason: "disk full".into() }, 14, "not writable: disk full"),
        (
            BackendError::NotLeader { topic: topic(), partition: 0 },
            14,
            "this node does not lead partition 0 of topic t1",
        ),
        (BackendError::UnknownTopic { topic: topic() }, 17, "topic t1 does not exist"),
    ] {
        backend.answer_append(Err(error));
        let answer = send_to(&client, V2, &[], b"x").await;
        assert_eq!((answer.code, answer.remark.as_deref()), (code, Some(remark)));
        assert_eq!(field(&answer, "msgId"), None);
    }
}

#[tokio::test]
async fn what_the_answer_waits_for() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    for properties in ["WAIT\u{1}true\u{2}", "", "WAIT\u{1}false\u{2}"] {
        send_to(&client, V2, &[("i", properties)], b"x").await;
    }
    let configured = Durability::Configured;
    assert_eq!(backend.appends(), [configured, configured, Durability::Written]);
}

fn message(body: &[u8], properties: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    let total = 4 + 4 + 4 + 4 + 4 + body.len() + 2 + properties.len();
    for word in [total, 0, 0, 0, body.len()] {
        message.extend_from_slice(&u32::try_from(word).expect("small").to_be_bytes());
    }
    message.extend_from_slice(body);
    message.extend_from_slice(&u16::try_from(properties.len()).expect("small").to_be_bytes());
    message.extend_from_slice(properties);
    message
}

/// Pitfall 29: the server caps the attempts, whatever the client counts.
#[tokio::test]
async fn what_came_back_too_often_goes_to_the_dead_letters() {
    let backend = FakeBackend::new();
    let mut group = SubscriptionGroup::with_defaults(Arc::from("g"));
    group.retry_times_max = 2;
    backend.put_subscription_group(group).await.expect("stored");
    let client = Client::new(backend.clone());
    for (changes, retried, dead) in [
        (&[("j", "2")][..], 1, 0),
        (&[("j", "3")], 1, 1),
        (&[("j", "3"), ("l", "3")], 2, 1),
        (&[("j", "4"), ("l", "3")], 2, 2),
    ] {
        let changes = [&[("b", "%RETRY%g")], changes].concat();
        assert_eq!(send_to(&client, V2, &changes, b"x").await.code, 0);
        let count = async |topic: &str| {
            let stored = crate::translate::names::stored_topic(topic).expect("a name");
            bodies(&backend, &stored).await.len()
        };
        assert_eq!(
            (count("%RETRY%g").await, count("%DLQ%g").await),
            (retried, dead),
            "{changes:?}"
        );
    }
}
