use std::sync::Arc;

use super::*;
use crate::dispatch::Answer;
use crate::fake::{Client, FakeBackend};

const HEART_BEAT: i32 = 34;
const SEND_MESSAGE_V2: i32 = 310;
const SEND_REPLY_MESSAGE_V2: i32 = 325;
const REPLY_TOPIC: &str = "DefaultCluster_REPLY_TOPIC";

/// A requester that the node knows, and the client that replies.
async fn pair(backend: &FakeBackend) -> (Client, Client) {
    let requester = Client::new(backend.clone());
    let replier = requester.at(requester.session.door());
    let beat = br#"{"clientID":"c1","producerDataSet":[{"groupName":"p"}]}"#;
    assert_eq!(requester.call(HEART_BEAT, &[], beat).await.code, 0);
    (requester, replier)
}

fn fields<'a>(topic: &'a str, properties: &'a str) -> [(&'a str, &'a str); 9] {
    [
        ("a", "replies"),
        ("b", topic),
        ("c", "TBW102"),
        ("d", "4"),
        ("e", "0"),
        ("f", "0"),
        ("g", "1600000000000"),
        ("h", "7"),
        ("i", properties),
    ]
}

fn reply(properties: &str) -> RemotingCommand {
    let mut request = RemotingCommand::request(SEND_REPLY_MESSAGE_V2, 5, SerializeType::Json);
    request.ext_fields = fields(REPLY_TOPIC, properties).into_iter().collect();
    request.with_body(&b"pong"[..])
}

const TO_C1: &str = "MSG_TYPE\u{1}reply\u{2}CORRELATION_ID\u{1}7\u{2}REPLY_TO_CLIENT\u{1}c1\u{2}";

/// Sends the reply; the requester answers what is handed to it with `code`. What it was handed, and
/// what the replier hears.
async fn exchange(
    requester: &mut Client,
    replier: &Client,
    code: ResponseCode,
) -> (RemotingCommand, RemotingCommand) {
    let mut sending = replier.begin(reply(TO_C1));
    let handed = tokio::select! {
        handed = requester.inbox.recv() => *handed.expect("a reply"),
        _ = &mut sending => panic!("answered before the requester did"),
    };
    assert!(!handed.is_one_way());
    let session = Arc::clone(&requester.session);
    let _nothing = requester.dispatcher.dispatch(&session, handed.response(code));
    let answer = sending.await.map(Answer::into_command).expect("an answer");
    (handed, answer)
}

#[tokio::test]
async fn a_reply_reaches_the_client_that_waits_and_is_stored() {
    let backend = FakeBackend::new();
    let (mut requester, replier) = pair(&backend).await;
    let (handed, answer) = exchange(&mut requester, &replier, ResponseCode::SUCCESS).await;
    assert_eq!((handed.code, &*handed.body), (326, &b"pong"[..]));
    let field = |name| handed.ext_fields.get(name).unwrap_or_default().to_owned();
    let pushed_at = format!("{TO_C1}PUSH_REPLY_TIME\u{1}1700000000000\u{2}");
    assert_eq!(field("properties"), pushed_at);
    assert_eq!((field("topic"), field("queueId")), (REPLY_TOPIC.to_owned(), "0".to_owned()));
    assert_eq!((field("flag"), field("bornTimestamp")), ("7".into(), "1600000000000".to_owned()));
    assert_eq!(field("storeHost"), "127.0.0.1:10911");
    assert_eq!((answer.code, answer.ext_fields.get("queueOffset")), (0, Some("0")));
    assert_eq!(answer.ext_fields.get("msgId").map(str::len), Some(32));
    let topic = backend.topic(REPLY_TOPIC).expect("made by the first reply");
    assert_eq!((topic.partitions, topic.perm), (1, 6));
}

#[tokio::test]
async fn a_reply_that_need_not_be_stored_is_not() {
    let backend = FakeBackend::new();
    backend.configure(|config| config.store_replies = false);
    let (mut requester, replier) = pair(&backend).await;
    let (_, answer) = exchange(&mut requester, &replier, ResponseCode::SUCCESS).await;
    let field = |name| answer.ext_fields.get(name);
    assert_eq!((answer.code, field("msgId"), field("queueOffset")), (0, Some("0"), Some("0")));
    assert!(backend.topic(REPLY_TOPIC).is_none());
}

#[tokio::test]
async fn a_reply_that_reaches_nobody_is_refused_in_the_originals_words_and_stored() {
    let backend = FakeBackend::new();
    let (mut requester, replier) = pair(&backend).await;
    let (_, answer) = exchange(&mut requester, &replier, ResponseCode::SYSTEM_ERROR).await;
    assert_eq!((answer.code, answer.remark.as_deref()), (1, Some("push reply message to c1fail.")));
    // It goes away while the reply is on its way.
    let mut sending = replier.begin(reply(TO_C1));
    tokio::select! {
        handed = requester.inbox.recv() => assert!(handed.is_some()),
        _ = &mut sending => panic!("answered before the requester did"),
    }
    requester.dispatcher.close(&requester.session);
    let answer = sending.await.map(Answer::into_command).expect("an answer");
    assert_eq!((answer.code, answer.remark.as_deref()), (1, Some("push reply message to c1fail.")));
    let answer = replier.send(reply(TO_C1)).await.expect("an answer");
    let remark = "push reply message fail, channel of <c1> not found.";
    assert_eq!((answer.code, answer.remark.as_deref()), (1, Some(remark)));
    let answer = replier.send(reply("MSG_TYPE\u{1}reply\u{2}")).await.expect("an answer");
    let remark = "reply message properties[REPLY_TO_CLIENT] is null";
    assert_eq!((answer.code, answer.remark.as_deref()), (1, Some(remark)));
    assert_eq!(backend.appends().len(), 4);
}

/// The client that answers makes the reply topic's name of it.
#[tokio::test]
async fn a_request_is_stored_with_the_clusters_name() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    for properties in ["REPLY_TO_CLIENT\u{1}c1", "CLUSTER\u{1}x\u{2}REPLY_TO_CLIENT\u{1}c1\u{2}"] {
        let answer = client.call(SEND_MESSAGE_V2, &fields("t", properties), b"ping").await;
        assert_eq!(answer.code, 0);
    }
    let topic = backend.topic("t").expect("a topic");
    let request = crate::backend::ReadRequest {
        topic: &topic,
        partition: 0,
        offset: 0,
        bytes_max: usize::MAX,
        records_max: usize::MAX,
        tags: None,
    };
    let read = backend.read(request).await.expect("a log");
    let clusters = read.batches.iter().flat_map(|batch| batch.decoded()).map(|record| {
        let cluster = record.headers.iter().find(|header| header.key == b"CLUSTER");
        cluster.and_then(|header| header.value).map(<[u8]>::to_vec)
    });
    let clusters: Vec<_> = clusters.collect();
    assert_eq!(clusters, [Some(b"DefaultCluster".to_vec()), Some(b"x".to_vec())]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_answer_is_given_up() {
    let backend = FakeBackend::new();
    let (_requester, replier) = pair(&backend).await;
    let answer = replier.send(reply(TO_C1)).await.expect("an answer");
    assert_eq!((answer.code, answer.remark.as_deref()), (1, Some("push reply message to c1fail.")));
}
