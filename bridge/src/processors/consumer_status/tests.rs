use std::sync::Arc;

use super::*;
use crate::dispatch::Answer;
use crate::fake::{Client, FakeBackend};

const HEART_BEAT: i32 = 34;
const STATUS: i32 = 223;

async fn member(node: &Client, id: &str) -> Client {
    let member = node.at(node.session.door());
    let beat = format!("{{\"clientID\":\"{id}\",\"consumerDataSet\":[{{\"groupName\":\"g\"}}]}}");
    assert_eq!(member.call(HEART_BEAT, &[], beat.as_bytes()).await.code, 0);
    member
}

async fn answer_next(member: &mut Client, body: &str) {
    let asked = *member.inbox.recv().await.expect("a request");
    if asked.code != GET_CONSUMER_STATUS_FROM_CLIENT {
        // News of its group.
        let asked = *member.inbox.recv().await.expect("a request");
        return answer(member, &asked, body);
    }
    answer(member, &asked, body);
}

fn answer(member: &Client, asked: &RemotingCommand, body: &str) {
    assert_eq!(asked.code, GET_CONSUMER_STATUS_FROM_CLIENT);
    assert_eq!(asked.ext_fields.get("topic"), Some("t"));
    let answer = asked.response(ResponseCode::SUCCESS).with_body(body.as_bytes().to_vec());
    let session = Arc::clone(&member.session);
    let _nothing = member.dispatcher.dispatch(&session, answer);
}

#[tokio::test(start_paused = true)]
async fn each_member_tells_where_it_stands_and_silent_ones_are_left_out() {
    let admin = Client::new(FakeBackend::new());
    let mut first = member(&admin, "c1").await;
    let _silent = member(&admin, "c2").await;
    let mut request = RemotingCommand::request(STATUS, 1, SerializeType::Json);
    request.ext_fields = [("topic", "t"), ("group", "g")].into_iter().collect();
    let asking = admin.begin(request);
    let table = r#"{{"brokerName":"broker-a","queueId":0,"topic":"t"}:5}"#;
    let body = format!("{{\"messageQueueTable\":{table}}}");
    let (answered, ()) = tokio::join!(asking, answer_next(&mut first, &body));
    let answered = answered.map(Answer::into_command).expect("an answer");
    let expected = format!("{{\"consumerTable\":{{\"c1\":{table}}},\"messageQueueTable\":{{}}}}");
    assert_eq!(String::from_utf8_lossy(&answered.body), expected);
    let answered = admin.call(STATUS, &[("topic", "t"), ("group", "h")], &[]).await;
    let remark = "No Any Consumer online in the consumer group: [h]";
    assert_eq!((answered.code, answered.remark.as_deref()), (1, Some(remark)));
}
