use std::sync::Arc;

use super::*;
use crate::dispatch::Answer;
use crate::fake::{Client, FakeBackend};
use crate::remoting::message::Message;

const HEART_BEAT: i32 = 34;
const RUNNING_INFO: i32 = 307;
const CONSUME_DIRECTLY: i32 = 309;

/// A member of group `g` that reads topic `t`.
const BEAT: &str = r#"{"clientID":"c1","consumerDataSet":[{"groupName":"g","subscriptionDataSet":[
    {"topic":"t","subString":"*"}]}]}"#;

async fn stage() -> (FakeBackend, Client, Client) {
    let backend = FakeBackend::new();
    backend.add_topic("t", 1);
    backend.write_tagged("t", 0, &[("a", "first"), ("b", "second")]);
    let member = Client::new(backend.clone());
    assert_eq!(member.call(HEART_BEAT, &[], BEAT.as_bytes()).await.code, 0);
    let admin = member.at(member.session.door());
    (backend, member, admin)
}

fn request(code: i32, fields: &[(&str, &str)]) -> RemotingCommand {
    let mut request = RemotingCommand::request(code, 9, SerializeType::Binary);
    request.ext_fields = fields.iter().copied().collect();
    request
}

/// What the member is asked, and what comes back when it answers as `answer` makes it.
async fn relayed(
    member: &mut Client,
    admin: &Client,
    request: RemotingCommand,
    answer: impl FnOnce(&RemotingCommand) -> RemotingCommand,
) -> (RemotingCommand, RemotingCommand) {
    let mut asking = admin.begin(request);
    let asked = tokio::select! {
        asked = member.inbox.recv() => *asked.expect("a request"),
        _ = &mut asking => panic!("answered before the member did"),
    };
    let session = Arc::clone(&member.session);
    let _nothing = member.dispatcher.dispatch(&session, answer(&asked));
    let answer = asking.await.map(Answer::into_command).expect("an answer");
    (asked, answer)
}

#[tokio::test]
async fn a_member_is_asked_and_its_answer_comes_back_as_it_is() {
    let (_backend, mut member, admin) = stage().await;
    let fields = [("consumerGroup", "g"), ("clientId", "c1"), ("jstackEnable", "true")];
    let info = |asked: &RemotingCommand| {
        let answer = asked.response(ResponseCode::SUCCESS);
        answer.with_remark("r").with_field("x", 1).with_body(&b"{}"[..])
    };
    let (asked, answer) = relayed(&mut member, &admin, request(RUNNING_INFO, &fields), info).await;
    assert_eq!(asked.code, RUNNING_INFO);
    assert_eq!(asked.ext_fields.get("jstackEnable"), Some("true"));
    assert_eq!((answer.code, answer.opaque, &*answer.body), (0, 9, &b"{}"[..]));
    assert_eq!((answer.remark.as_deref(), answer.ext_fields.get("x")), (Some("r"), Some("1")));
    // In the encoding of whoever asked.
    assert_eq!(answer.serialize, SerializeType::Binary);
}

#[tokio::test]
async fn a_message_goes_along_to_be_consumed() {
    let (backend, mut member, admin) = stage().await;
    let view = backend.partition(&backend.topic("t").expect("t"), 0).await.expect("a queue");
    let address = crate::translate::queue::PseudoAddress::new(view.number, 1).expect("small");
    let store_host = backend.config().broker_address;
    let id = MessageId { store_host, address }.to_string();
    let fields =
        [("consumerGroup", "g"), ("clientId", "c1"), ("msgId", id.as_str()), ("topic", "t")];
    let done = |asked: &RemotingCommand| asked.response(ResponseCode::SUCCESS);
    let (asked, answer) =
        relayed(&mut member, &admin, request(CONSUME_DIRECTLY, &fields), done).await;
    assert_eq!(answer.code, 0);
    let field = |name| asked.ext_fields.get(name);
    assert_eq!((field("brokerName"), field("topicSysFlag")), (Some("broker-a"), Some("0")));
    assert_eq!(field("groupSysFlag"), Some("0"));
    let message = Message::decode(&mut &*asked.body).expect("a message");
    assert_eq!((message.body, message.queue_offset), (&b"second"[..], 1));
    let absent = [("consumerGroup", "g"), ("clientId", "c1"), ("msgId", "none")];
    let answer = admin.send(request(CONSUME_DIRECTLY, &absent)).await.expect("an answer");
    let remark = "can not find message by the id, none";
    assert_eq!((answer.code, answer.remark.as_deref()), (1, Some(remark)));
}

#[tokio::test(start_paused = true)]
async fn who_is_not_there_or_silent_is_named() {
    let (_backend, member, admin) = stage().await;
    let fields = [("consumerGroup", "g"), ("clientId", "c2")];
    let answer = admin.send(request(RUNNING_INFO, &fields)).await.expect("an answer");
    let remark = "The Consumer <g> <c2> not online";
    assert_eq!((answer.code, answer.remark.as_deref()), (1, Some(remark)));
    let fields = [("consumerGroup", "g"), ("clientId", "c1")];
    let answer = admin.send(request(RUNNING_INFO, &fields)).await.expect("an answer");
    assert_eq!(answer.code, 207);
    let remark = answer.remark.expect("a remark");
    assert!(remark.starts_with("consumer <g> <c1> Timeout: "), "{remark}");
    // What it says too late reaches nobody.
    let late = request(0, &[]).response(ResponseCode::SUCCESS);
    assert!(member.send(late).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn too_many_open_questions_are_refused() {
    let (_backend, mut member, admin) = stage().await;
    let fields = [("consumerGroup", "g"), ("clientId", "c1")];
    let mut open = Vec::new();
    for _ in 0..crate::limits::CLIENT_CALLS_MAX {
        let mut asking = admin.begin(request(RUNNING_INFO, &fields));
        assert!(futures_poll(&mut asking).await.is_none());
        assert!(member.inbox.try_recv().is_ok());
        open.push(asking);
    }
    let answer = admin.send(request(RUNNING_INFO, &fields)).await.expect("an answer");
    assert_eq!(answer.code, 1);
    drop(open);
    let mut asking = admin.begin(request(RUNNING_INFO, &fields));
    assert!(futures_poll(&mut asking).await.is_none(), "there is room again");
}

/// What the future gives if it is polled once.
async fn futures_poll<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
    use std::task::Poll;
    std::future::poll_fn(|context| {
        Poll::Ready(match std::pin::Pin::new(&mut *future).poll(context) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        })
    })
    .await
}
