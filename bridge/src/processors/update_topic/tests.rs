use super::*;
use crate::fake::{Client, FakeBackend};

async fn update(client: &Client, changes: &[(&str, &str)]) -> (i32, Option<String>) {
    let fields = [
        ("topic", "made"),
        ("defaultTopic", "TBW102"),
        ("readQueueNums", "3"),
        ("writeQueueNums", "2"),
        ("perm", "6"),
        ("topicFilterType", "SINGLE_TAG"),
        ("topicSysFlag", "1"),
        ("order", "false"),
        ("attributes", ""),
    ];
    let answer = client.call(17, &[&fields, changes].concat(), b"").await;
    (answer.code, answer.remark)
}

#[tokio::test]
async fn a_topic_is_created_and_changed() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    assert_eq!(update(&client, &[]).await, (0, None));
    let made = backend.topic("made").expect("a topic");
    assert_eq!((made.partitions, made.read_queues, made.write_queues), (3, 3, 2));
    assert_eq!((made.perm, made.sys_flag, made.order), (6, 1, false));
    let changes =
        [("readQueueNums", "1"), ("writeQueueNums", "0"), ("perm", "4"), ("order", "true")];
    assert_eq!(update(&client, &changes).await, (0, None));
    let changed = backend.topic("made").expect("a topic");
    assert_eq!(changed.id, made.id);
    assert_eq!((changed.partitions, changed.read_queues, changed.write_queues), (3, 1, 0));
    assert_eq!((changed.perm, changed.order), (4, true));
}

#[tokio::test]
async fn an_alias_changes_the_topic_behind_it() {
    let backend = FakeBackend::new();
    backend.add_topic("or.ders", 1);
    let client = Client::new(backend.clone());
    assert_eq!(update(&client, &[("topic", "or_ders")]).await, (0, None));
    assert_eq!(backend.topics().len(), 1);
    assert_eq!(backend.topic("or.ders").expect("a topic").partitions, 3);
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table")]
async fn refused() {
    let backend = FakeBackend::new();
    backend.add_topic("old", 1);
    let client = Client::new(backend.clone());
    let counts = |read: &str, write: &str| {
        format!(
            "readQueueNums[{read}] and writeQueueNums[{write}] must be 0 to 16384, one of them \
             above 0"
        )
    };
    let types = "UNSPECIFIED, MIXED, TRANSACTION, PRIORITY, FIFO, DELAY, LITE, NORMAL";
    for (changes, code, remark) in [
        (&[("topic", "")][..], 29, "The specified topic is blank.".to_owned()),
        (&[("topic", "TBW102")], 29, "The topic[TBW102] is conflict with system topic.".into()),
        (
            &[("topic", "rmq_sys_q")],
            29,
            "The topic[rmq_sys_q] is conflict with system topic.".into(),
        ),
        (&[("topicFilterType", "X")], 1, "topicFilterType = [X] value invalid".into()),
        (
            &[("topicFilterType", "MULTI_TAG")],
            29,
            "topicFilterType MULTI_TAG is not supported, use SINGLE_TAG".into(),
        ),
        (&[("readQueueNums", "0"), ("writeQueueNums", "0")], 29, counts("0", "0")),
        (&[("readQueueNums", "-1")], 29, counts("-1", "2")),
        (&[("writeQueueNums", "16385")], 29, counts("3", "16385")),
        (&[("perm", "9")], 29, "perm[9] must be 0 to 7".into()),
        (
            &[("attributes", "+message.type=MIXED")],
            29,
            "MIXED message type is not supported.".into(),
        ),
        (&[("attributes", "+message.type=ODD")], 1, format!("value is not in set: [{types}]")),
        (&[("attributes", "+what=1")], 1, "unsupported key: what".into()),
        (&[("attributes", "what")], 1, "delete attribute format is wrong: what".into()),
        (&[("attributes", "what=1")], 1, "add/alter attribute format is wrong: what".into()),
        (
            &[("attributes", "-message.type")],
            1,
            "only add attribute is supported while creating topic. key: message.type".into(),
        ),
        (
            &[("topic", "old"), ("attributes", "-message.type")],
            1,
            "attempt to delete a nonexistent key: message.type".into(),
        ),
        (
            &[("attributes", "+message.type=FIFO,+message.type=NORMAL")],
            1,
            "alter duplication key. key: message.type".into(),
        ),
        (
            &[("attributes", "+cleanup.policy=COMPACTION")],
            29,
            "attribute cleanup.policy=COMPACTION is not supported".into(),
        ),
        (
            &[("topic", "old"), ("attributes", "+queue.type=SimpleCQ")],
            1,
            "attempt to update an unchangeable attribute. key: queue.type".into(),
        ),
        (
            &[("attributes", "+reserve.time=5")],
            29,
            "attribute reserve.time=5 is not supported".into(),
        ),
        (&[("attributes", "+reserve.time=x")], 1, "For input string: \"x\"".into()),
    ] {
        assert_eq!(update(&client, changes).await, (code, Some(remark)), "{changes:?}");
    }
    assert_eq!(backend.topics().len(), 1);
    let (code, remark) = update(&client, &[("perm", "x")]).await;
    assert_eq!(code, 1);
    assert!(remark.expect("a remark").contains("<perm>"));
}

#[tokio::test]
async fn attributes_come_and_go() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    let attributes = || {
        let made = backend.topic("made").expect("a topic");
        made.attributes.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>()
    };
    for (change, expected) in [
        (
            "+message.type=FIFO,+queue.type=SimpleCQ",
            &["message.type=FIFO", "queue.type=SimpleCQ"][..],
        ),
        ("+message.type=NORMAL", &["message.type=NORMAL", "queue.type=SimpleCQ"]),
        ("", &["message.type=NORMAL", "queue.type=SimpleCQ"]),
        ("-message.type", &["queue.type=SimpleCQ"]),
        ("+rmq.key.index=rmq", &["queue.type=SimpleCQ", "rmq.key.index=rmq"]),
        ("-rmq.key.index", &["queue.type=SimpleCQ"]),
        ("+rmq.key.source=none", &["queue.type=SimpleCQ", "rmq.key.source=none"]),
        ("-rmq.key.source", &["queue.type=SimpleCQ"]),
    ] {
        assert_eq!(update(&client, &[("attributes", change)]).await, (0, None), "{change}");
        assert_eq!(attributes(), expected, "{change}");
    }
}
