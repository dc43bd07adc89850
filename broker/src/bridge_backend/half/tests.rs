//! Half messages from a send to their end, through the RocketMQ door.

use std::collections::BTreeMap;

use duolog_bridge::dispatch::Dispatcher;
use duolog_bridge::remoting::RemotingCommand;
use duolog_bridge::remoting::message::Message;
use duolog_bridge::translate::properties::Properties;
use duolog_log_core::gate::{GateAction, GatePoint};

use super::*;
use crate::testing::rocketmq::{RemotingClient, field, offsets, send_fields};
use crate::testing::served::{Attempts, TestNode, eventually};

const SEND: i32 = 310;
const END: i32 = 37;
const RESUME: i32 = 323;

/// Rounds follow one another at once, and nobody is immune.
const QUICK: &[&str] = &[
    "rocketmq.transactionTimeOut=0",
    "rocketmq.transactionCheckInterval=1",
    "rocketmq.flushIntervalCommitLog=1",
];

/// As often as it takes.
const PATIENT: &str = "rocketmq.transactionCheckMax=1000000000";

fn at_once() -> Vec<&'static str> {
    [QUICK, &[PATIENT]].concat()
}

async fn send(client: &RemotingClient, group: &str, key: &str) -> RemotingCommand {
    let properties =
        format!("UNIQ_KEY\u{1}{key}\u{2}TRAN_MSG\u{1}true\u{2}PGROUP\u{1}{group}\u{2}");
    let born = clock::now_ms().to_string();
    let fields = send_fields("t", &[("i", &*properties), ("f", "4"), ("g", &*born)]);
    let answer = client.call(SEND, &fields, key.as_bytes()).await;
    assert_eq!((answer.code, answer.remark.as_deref()), (0, None));
    answer
}

/// What END_TRANSACTION says of the half message of this answer.
fn named(answer: &RemotingCommand) -> BTreeMap<&'static str, String> {
    let id = answer.ext_fields.get("msgId").expect("an id");
    let physical = i64::from_str_radix(&id[16..], 16).expect("an offset");
    BTreeMap::from([
        ("commitLogOffset", physical.to_string()),
        ("tranStateTableOffset", field(answer, "queueOffset").to_string()),
        ("msgId", answer.ext_fields.get("transactionId").expect("an id").to_owned()),
    ])
}

/// What END_TRANSACTION says of the half message of this question.
fn asked_about(question: &RemotingCommand) -> BTreeMap<&'static str, String> {
    ["commitLogOffset", "tranStateTableOffset", "msgId"]
        .map(|name| (name, question.ext_fields.get(name).expect(name).to_owned()))
        .into()
}

async fn end(
    client: &RemotingClient,
    half: &BTreeMap<&'static str, String>,
    group: &str,
    how: &str,
    is_asked: &str,
) -> RemotingCommand {
    let mut fields = vec![
        ("producerGroup", group),
        ("commitOrRollback", how),
        ("fromTransactionCheck", is_asked),
    ];
    fields.extend(half.iter().map(|(name, value)| (*name, value.as_str())));
    client.call(END, &fields, b"").await
}

/// The bodies that a consumer of the queue gets, once there are `count`.
async fn seen(client: &RemotingClient, topic: &str, count: usize) -> Vec<String> {
    let attempts = Attempts::at("the messages come");
    loop {
        let answer = client.pull(topic, 0, &[]).await;
        if offsets(&answer).len() >= count {
            let mut rest = &answer.body[..];
            let mut bodies = Vec::new();
            while !rest.is_empty() {
                let message = Message::decode(&mut rest).expect("a message");
                bodies.push(String::from_utf8_lossy(message.body).into_owned());
            }
            return bodies;
        }
        attempts.again().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn committed_is_seen_once_rolled_back_never_and_open_ones_hold_nobody_up() {
    let node = TestNode::start(&["rocketmq.flushIntervalCommitLog=1"]).await;
    let dispatcher = node.rocketmq();
    let client = RemotingClient::new(&dispatcher);
    let told = node.listen().clone();
    let mut halves = BTreeMap::new();
    for key in ["open", "committed", "rolled back"] {
        halves.insert(key, named(&send(&client, "pg", key).await));
    }
    assert_eq!(offsets(&client.pull("t", 0, &[]).await), [0_i64; 0]);
    // A message like any other passes them.
    client.call(SEND, &send_fields("t", &[]), b"plain").await;
    assert_eq!(seen(&client, "t", 1).await, ["plain"]);
    for (key, how) in [("committed", "8"), ("rolled back", "12"), ("committed", "8"), ("open", "0")]
    {
        assert_eq!(end(&client, &halves[key], "pg", how, "false").await.code, 0, "{key}");
    }
    assert_eq!(seen(&client, "t", 2).await, ["plain", "committed"]);
    eventually("it is noted", || node.node.halves.on_their_way_count() == 0).await;
    assert_eq!(node.node.halves.open_count(), 1);
    for (kind, count) in [
        (EventKind::HalfStore, 3),
        (EventKind::HalfCommit, 1),
        (EventKind::HalfRollback, 1),
        (EventKind::HalfDeliver, 1),
    ] {
        assert_eq!(told.of(kind, "t").len(), count, "{kind}");
    }
    let unknown = end(&client, &halves["open"], "other", "8", "false").await;
    assert_eq!((unknown.code, unknown.remark.as_deref()), (1, Some("The producer group wrong")));
    // After a restart what is open can be committed, and the rest is as it was.
    drop((client, dispatcher));
    let node = TestNode::start_on(node.stop().await, &[]).await;
    let dispatcher = node.rocketmq();
    let client = RemotingClient::new(&dispatcher);
    for key in ["rolled back", "committed", "open"] {
        assert_eq!(end(&client, &halves[key], "pg", "8", "false").await.code, 0, "{key}");
    }
    assert_eq!(seen(&client, "t", 3).await, ["plain", "committed", "open"]);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sender_is_asked_until_it_knows() {
    let node = TestNode::start(&at_once()).await;
    let dispatcher = node.rocketmq();
    let mut sender = RemotingClient::new(&dispatcher);
    let mut other = RemotingClient::new(&dispatcher);
    sender.beat_as_producer("z", "pg").await;
    let half = named(&send(&sender, "pg", "k1").await);
    for times in 1..=3 {
        let question = sender.asked().await;
        assert_eq!((question.code, question.is_one_way()), (39, true));
        assert_eq!(asked_about(&question), half, "where it always was");
        let message = Message::decode(&mut &question.body[..]).expect("a message");
        assert_eq!((message.topic, message.body), ("t", &b"k1"[..]));
        let properties = Properties(std::str::from_utf8(message.properties).expect("text"));
        assert_eq!(properties.get("TRANSACTION_CHECK_TIMES"), Some(&*times.to_string()));
        assert_eq!(properties.get("PGROUP"), Some("pg"));
        assert_eq!(end(&sender, &half, "pg", "0", "true").await.code, 0);
    }
    // The sender is gone: another member of the group answers.
    other.beat_as_producer("a", "pg").await;
    dispatcher.close(&sender.session);
    let question = other.asked().await;
    assert_eq!(asked_about(&question), half);
    assert_eq!(end(&other, &half, "pg", "8", "true").await.code, 0);
    assert_eq!(seen(&other, "t", 1).await, ["k1"]);
    node.stop().await;
}

/// Nobody is there to be asked: that counts for nothing, also over a restart.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_producer_no_question_is_counted() {
    let node = TestNode::start(&at_once()).await;
    let dispatcher = node.rocketmq();
    let client = RemotingClient::new(&dispatcher);
    let half = named(&send(&client, "pg", "k1").await);
    drop((client, dispatcher));
    let node = TestNode::start_on(node.stop().await, &at_once()).await;
    let dispatcher = node.rocketmq();
    let mut producer = RemotingClient::new(&dispatcher);
    producer.beat_as_producer("p", "pg").await;
    let question = producer.asked().await;
    assert_eq!(asked_about(&question), half);
    let message = Message::decode(&mut &question.body[..]).expect("a message");
    let properties = Properties(std::str::from_utf8(message.properties).expect("text"));
    assert_eq!(properties.get("TRANSACTION_CHECK_TIMES"), Some("1"));
    assert_eq!(end(&producer, &half, "pg", "12", "true").await.code, 0);
    assert_eq!(node.node.halves.open_count(), 0);
    node.stop().await;
}

/// What a question is asked fifteen times for is given up, and can be taken up again.
#[tokio::test(flavor = "multi_thread")]
async fn who_never_knows_loses_the_message_to_the_topic_for_that() {
    let settings = [QUICK, &["rocketmq.transactionCheckMax=2"]].concat();
    let node = TestNode::start(&settings).await;
    let dispatcher = node.rocketmq();
    let told = node.listen().clone();
    let mut producer = RemotingClient::new(&dispatcher);
    producer.beat_as_producer("p", "pg").await;
    let half = named(&send(&producer, "pg", "k1").await);
    for _ in 0..2 {
        assert_eq!(asked_about(&producer.asked().await), half);
    }
    let lost = "TRANS_CHECK_MAX_TIME_TOPIC";
    assert_eq!(seen(&producer, lost, 1).await, ["k1"]);
    assert_eq!(end(&producer, &half, "pg", "8", "true").await.code, 0, "too late, without harm");
    assert_eq!(told.of(EventKind::HalfDiscard, "t").len(), 1);
    let answer = producer.pull(lost, 0, &[]).await;
    let message = Message::decode(&mut &answer.body[..]).expect("a message");
    let properties = Properties(std::str::from_utf8(message.properties).expect("text"));
    for (name, value) in
        [("REAL_TOPIC", "t"), ("REAL_QID", "0"), ("TRANSACTION_CHECK_TIMES", "2"), ("PGROUP", "pg")]
    {
        assert_eq!(properties.get(name), Some(value), "{name}");
    }
    // mqadmin resumeCheckHalfMessage: it is asked about anew, and this time the producer knows.
    let id = format!("7F00000100002A9F{:016X}", message.physical_offset);
    let fields = [("topic", lost), ("msgId", &*id)];
    assert_eq!(producer.call(RESUME, &fields, b"").await.code, 0);
    let question = producer.asked().await;
    assert_ne!(asked_about(&question), half, "it is another half message now");
    assert_eq!(end(&producer, &asked_about(&question), "pg", "8", "true").await.code, 0);
    assert_eq!(seen(&producer, "t", 1).await, ["k1"]);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_keeps_questions_and_a_message_may_be_immune() {
    let node = TestNode::start(&at_once()).await;
    let dispatcher = node.rocketmq();
    let mut producer = RemotingClient::new(&dispatcher);
    producer.beat_as_producer("p", "pg").await;
    let gate = node.arm(GatePoint::CheckDispatch, "t", GateAction::Hold);
    let properties = "UNIQ_KEY\u{1}i\u{2}TRAN_MSG\u{1}true\u{2}PGROUP\u{1}pg\u{2}\
                      CHECK_IMMUNITY_TIME_IN_SECONDS\u{1}600\u{2}";
    let born = clock::now_ms().to_string();
    let immune = send_fields("t", &[("i", properties), ("g", &*born)]);
    assert_eq!(producer.call(SEND, &immune, b"immune").await.code, 0);
    let half = named(&send(&producer, "pg", "asked").await);
    node.caught(gate).await;
    assert!(producer.is_unasked());
    node.node.instruments.release(gate);
    assert_eq!(asked_about(&producer.asked().await), half);
    assert_eq!(end(&producer, &half, "pg", "12", "true").await.code, 0);
    eventually("the other is left", || node.node.halves.open_count() == 1).await;
    node.stop().await;
}

/// Many are asked about, some at a time, each once in a round.
#[tokio::test(flavor = "multi_thread")]
async fn a_round_asks_about_all_that_is_open() {
    let settings = ["rocketmq.transactionTimeOut=0", "rocketmq.flushIntervalCommitLog=1"];
    let node = TestNode::start(&settings).await;
    let dispatcher = node.rocketmq();
    let mut producer = RemotingClient::new(&dispatcher);
    producer.beat_as_producer("p", "pg").await;
    let count = crate::limits::HALVES_AT_ONCE * 2 + 3;
    let mut halves = Vec::new();
    for number in 0..count {
        halves.push(named(&send(&producer, "pg", &format!("k{number}")).await));
    }
    let checks = round(&node, &dispatcher);
    let mut asked = Vec::new();
    for _ in 0..count {
        asked.push(asked_about(&producer.asked().await));
    }
    drop(checks);
    asked.sort();
    halves.sort();
    assert_eq!(asked, halves);
    for half in &halves {
        assert_eq!(end(&producer, half, "pg", "12", "true").await.code, 0);
    }
    assert_eq!(node.node.halves.open_count(), 0);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sender_is_asked_first_and_the_others_take_turns() {
    use duolog_bridge::backend::{ClientFacts, Member};
    use duolog_bridge::session::SessionId;
    let node = TestNode::start(&[]).await;
    let checks = CheckBack::new(node.node.clone());
    let member = |id: &str| Member {
        client: ClientFacts {
            client_id: id.into(),
            language: 0,
            version: 0,
            address: "127.0.0.1:1".parse().expect("an address"),
            session: SessionId(1),
        },
        last_heartbeat_ms: 0,
    };
    let members = ["a", "b", "c"].map(member);
    let half = |client: &str| HalfMessage {
        target: TopicPartition::new("t", 0),
        group: "pg".into(),
        client: client.into(),
        immunity: Immunity::Default,
        born_ms: 0,
        message: StoredMessage { timestamp_ms: 0, payload: bytes::Bytes::new() },
    };
    let mut firsts = BTreeMap::new();
    for _ in 0..6 {
        let asked = checks.in_turn(&half("b"), &members);
        assert_eq!((asked.len(), &*asked[0].client.client_id), (3, "b"));
        let first = checks.in_turn(&half("gone"), &members)[0].client.client_id.to_string();
        *firsts.entry(first).or_insert(0) += 1;
    }
    assert!(firsts.len() > 1, "not one alone: {firsts:?}");
    assert!(checks.in_turn(&half("b"), &[]).is_empty());
    node.stop().await;
}

/// Begins a round of every coordinator now.
fn round(node: &TestNode, dispatcher: &Dispatcher<BridgeBackend>) -> Arc<CheckBack> {
    use crate::coordinators::halves::CheckSink;
    let checks = CheckBack::new(node.node.clone());
    checks.connect(dispatcher.clone());
    for index in 0..4 {
        checks.round(index);
    }
    checks
}

#[test]
fn refusals_are_told_apart() {
    let reason = "too many half messages are open".to_owned();
    for (error, expected) in [
        (HalfError::TooMany, BackendError::LimitReached { reason }),
        (
            HalfError::TooLarge,
            BackendError::RecordTooLarge { bytes: 4_194_305, bytes_max: 4_194_304 },
        ),
        (
            HalfError::Loading,
            BackendError::NotWritable {
                reason: "the partition of half messages is still loading".to_owned(),
            },
        ),
    ] {
        assert_eq!(refusal(4_194_304, &error), expected);
    }
}
