use std::time::Duration;

use super::*;
use crate::fake::{Client, FakeBackend};
use crate::remoting::message::Message;
use crate::remoting::{RemotingCommand, SerializeType};
use crate::session::Door;

const POP: i32 = 200_050;
const ACK: i32 = 200_051;

/// Four messages in each of the two queues of t, tags A and B in turn.
fn backend() -> FakeBackend {
    let backend = FakeBackend::new();
    backend.add_topic("t", 2);
    for queue in 0..2 {
        for _ in 0..2 {
            backend.write_tagged("t", queue, &[("A", "a"), ("B", "b")]);
        }
    }
    backend
}

fn request(changes: &[(&str, &str)]) -> RemotingCommand {
    let mut request = RemotingCommand::request(POP, 7, SerializeType::Json);
    let fields = [
        ("consumerGroup", "g"),
        ("topic", "t"),
        ("queueId", "0"),
        ("maxMsgNums", "32"),
        ("invisibleTime", "1000"),
        ("pollTime", "0"),
        ("bornTime", "0"),
        ("initMode", "0"),
        ("exp", "*"),
        ("expType", "TAG"),
        ("order", "false"),
    ];
    for (name, value) in fields.iter().chain(changes) {
        request.ext_fields.push(name, value);
    }
    request
}

async fn pop(client: &Client, changes: &[(&str, &str)]) -> RemotingCommand {
    client.send(request(changes)).await.expect("an answer")
}

/// Queue, offset and reconsume count of each message.
fn messages(answer: &RemotingCommand) -> Vec<(i32, i64, i32)> {
    let mut rest = &answer.body[..];
    let mut all = Vec::new();
    while !rest.is_empty() {
        let message = Message::decode(&mut rest).expect("a message");
        all.push((message.queue_id, message.queue_offset, message.reconsume_times));
    }
    all
}

fn field<'a>(answer: &'a RemotingCommand, name: &str) -> &'a str {
    answer.ext_fields.get(name).unwrap_or("none")
}

async fn ack(client: &Client, offset: i64, popped: &str) {
    let (offset, handle) = (offset.to_string(), format!("0 {popped} 1000 0 0 broker-a 0 0"));
    let fields = [
        ("consumerGroup", "g"),
        ("topic", "t"),
        ("queueId", "0"),
        ("offset", &*offset),
        ("extraInfo", &*handle),
    ];
    assert_eq!(client.call(ACK, &fields, &[]).await.code, 0);
}

#[tokio::test]
async fn what_is_popped_comes_again_with_a_count_unless_it_is_acknowledged() {
    let backend = backend();
    let client = Client::new(backend.clone());
    let first = pop(&client, &[("maxMsgNums", "3")]).await;
    assert_eq!((first.code, first.remark.as_deref()), (0, Some("FOUND")));
    assert_eq!(messages(&first), [(0, 0, 0), (0, 1, 0), (0, 2, 0)]);
    assert_eq!(field(&first, "startOffsetInfo"), "0 0 0");
    assert_eq!(field(&first, "msgOffsetInfo"), "0 0 0,1,2");
    assert_eq!((field(&first, "restNum"), field(&first, "reviveQid")), ("1", "0"));
    assert_eq!(field(&first, "invisibleTime"), "1000");
    assert_eq!(field(&first, "orderCountInfo"), "none");
    let second = pop(&client, &[]).await;
    assert_eq!(messages(&second), [(0, 3, 0)]);
    let none = pop(&client, &[]).await;
    assert_eq!((none.code, none.remark.as_deref()), (210, Some("NO_MESSAGE_IN_QUEUE")));
    ack(&client, 1, field(&first, "popTime")).await;
    assert_eq!(backend.committed("g", "t", 0), Some(0));
    backend.advance_ms(1000);
    let again = pop(&client, &[("maxMsgNums", "2")]).await;
    assert_eq!(messages(&again), [(0, 0, 1), (0, 2, 1)]);
    assert_eq!(field(&again, "msgOffsetInfo"), "0 0 0,2");
    ack(&client, 0, field(&first, "popTime")).await;
    assert_eq!(backend.committed("g", "t", 0), Some(0), "an old handle is worth nothing");
    ack(&client, 0, field(&again, "popTime")).await;
    assert_eq!(backend.committed("g", "t", 0), Some(2));
}

#[tokio::test]
async fn one_pop_takes_from_all_queues_what_it_may() {
    let client = Client::new(backend());
    let all = pop(&client, &[("queueId", "-1"), ("maxMsgNums", "6")]).await;
    let (starts, offsets) = (field(&all, "startOffsetInfo"), field(&all, "msgOffsetInfo"));
    assert!(["0 0 0;0 1 0", "0 1 0;0 0 0"].contains(&starts), "{starts}");
    assert!(["0 0 0,1,2,3;0 1 0,1", "0 1 0,1,2,3;0 0 0,1"].contains(&offsets), "{offsets}");
    assert_eq!((messages(&all).len(), field(&all, "restNum")), (6, "2"));
    let rest = pop(&client, &[("queueId", "-1")]).await;
    assert_eq!(messages(&rest).len(), 2);
}

#[tokio::test]
async fn what_does_not_match_is_passed_over() {
    let backend = backend();
    let client = Client::new(backend.clone());
    let tagged = pop(&client, &[("exp", "B || C"), ("maxMsgNums", "1")]).await;
    assert_eq!(messages(&tagged), [(0, 1, 0)]);
    let by_property = [("exp", "TAGS = 'B'"), ("expType", "SQL92")];
    assert_eq!(messages(&pop(&client, &by_property).await), [(0, 3, 0)]);
    assert_eq!(backend.committed("g", "t", 0), Some(1), "up to the first in hand");
    let none = pop(&client, &[("queueId", "1"), ("exp", "C")]).await;
    assert_eq!((none.code, backend.committed("g", "t", 1)), (210, Some(4)));
    for (changes, code) in [
        ([("exp", "||"), ("expType", "TAG")], 23),
        ([("exp", "a >"), ("expType", "SQL92")], 23),
        ([("exp", "a"), ("expType", "ODD")], 1),
    ] {
        assert_eq!(pop(&client, &changes).await.code, code, "{changes:?}");
    }
}

#[tokio::test]
async fn in_order_a_queue_is_blocked_while_something_is_in_hand() {
    let backend = backend();
    let client = Client::new(backend.clone());
    let ordered = [("order", "true"), ("maxMsgNums", "2")];
    let first = pop(&client, &ordered).await;
    assert_eq!(messages(&first), [(0, 0, 0), (0, 1, 0)]);
    assert_eq!((field(&first, "reviveQid"), field(&first, "orderCountInfo")), ("999", "0 0 0"));
    let blocked = pop(&client, &ordered).await;
    assert_eq!((blocked.code, field(&blocked, "restNum")), (210, "0"));
    ack(&client, 1, field(&first, "popTime")).await;
    backend.advance_ms(1000);
    let again = pop(&client, &ordered).await;
    assert_eq!(messages(&again), [(0, 0, 1), (0, 2, 0)]);
    assert_eq!(field(&again, "orderCountInfo"), "0 qo0%0 1;0 0 0");
    let attempt = [("order", "true"), ("maxMsgNums", "2"), ("queueId", "1"), ("attemptId", "x")];
    for _ in 0..2 {
        assert_eq!(messages(&pop(&client, &attempt).await), [(1, 0, 0), (1, 1, 0)]);
    }
}

#[tokio::test]
async fn a_group_begins_where_it_says_or_where_it_was() {
    let backend = backend();
    let topic = backend.add_topic("t", 2);
    backend.configure(|config| config.in_memory_bytes_max = 0);
    let client = Client::new(backend.clone());
    let last = pop(&client, &[("initMode", "1")]).await;
    assert_eq!(messages(&last), [(0, 3, 0)]);
    backend.configure(|config| config.in_memory_bytes_max = 1 << 30);
    let young = pop(&client, &[("initMode", "1"), ("queueId", "1"), ("maxMsgNums", "1")]).await;
    assert_eq!(messages(&young), [(1, 0, 0)]);
    backend.commit_offset("g", &topic, 0, 1).await.expect("committed");
    assert_eq!(messages(&pop(&client, &[]).await), [(0, 1, 0), (0, 2, 0), (0, 3, 0)]);
    backend.set_log_start("t", 0, 2);
    backend.advance_ms(1000);
    assert_eq!(messages(&pop(&client, &[]).await), [(0, 2, 1), (0, 3, 1)], "1 is gone");
    backend.commit_offset("g", &topic, 0, 9).await.expect("committed");
    assert_eq!(pop(&client, &[]).await.code, 210);
    assert_eq!(backend.committed("g", "t", 0), Some(4), "beyond the end there is nothing");
}

#[tokio::test]
async fn a_plan_that_did_not_come_true_is_made_anew() {
    let backend = backend();
    let client = Client::new(backend.clone());
    pop(&client, &[("maxMsgNums", "2")]).await;
    backend.advance_ms(1000);
    backend.settle_meanwhile(0);
    let again = pop(&client, &[("maxMsgNums", "2")]).await;
    assert_eq!(messages(&again), [(0, 1, 1), (0, 2, 0)]);
    backend.set_pop_room(3);
    assert_eq!(messages(&pop(&client, &[]).await), [(0, 3, 0)]);
    backend.write_tagged("t", 0, &[("A", "a")]);
    assert_eq!(pop(&client, &[]).await.code, 210, "as much is in hand as may be");
}

#[tokio::test]
async fn refusals_are_the_originals() {
    let backend = backend();
    let client = Client::new(backend.clone());
    let now = crate::backend::Backend::now_ms(&backend);
    let late = (now - 1_000).to_string();
    for (changes, code, remark) in [
        (vec![("topic", "nowhere")], 17, "topic[nowhere] not exist, apply first please! \nSee"),
        (
            vec![("queueId", "2")],
            29,
            "queueId[2] is illegal, topic:[t] topicConfig.readQueueNums:[2]",
        ),
        (
            vec![("maxMsgNums", "33")],
            29,
            "the broker[127.0.0.1] pop message's num is greater than 32",
        ),
        (vec![("consumerGroup", "a b")], 26, "subscription group [a b] does not exist, \nSee"),
        (vec![("bornTime", &*late)], 210, "the broker[127.0.0.1] pop message is timeout too much"),
        (vec![("invisibleTime", "x")], 1, "the custom field <invisibleTime>"),
    ] {
        let answer = pop(&client, &changes).await;
        let said = answer.remark.unwrap_or_default();
        assert_eq!(answer.code, code, "{changes:?}: {said}");
        assert!(said.starts_with(remark), "{changes:?}: {said}");
    }
    backend.change_topic("t", |topic| topic.perm = 2);
    assert_eq!(pop(&client, &[]).await.code, 16);
    let vip = client.at(Door::BrokerVip);
    assert_eq!(pop(&vip, &[]).await.code, 3, "as pulls, not at this door");
}

fn is_held(future: &mut crate::dispatch::BoxFuture<Option<Answer>>) -> bool {
    let waker = std::task::Waker::noop();
    future.as_mut().poll(&mut std::task::Context::from_waker(waker)).is_pending()
}

#[tokio::test(start_paused = true)]
async fn a_pop_waits_until_something_comes_or_comes_again() {
    let backend = FakeBackend::new();
    let topic = backend.add_topic("t", 2);
    let client = Client::new(backend.clone());
    let held = [("queueId", "-1"), ("pollTime", "15000")];
    let mut one = client.begin(request(&held));
    assert!(is_held(&mut one));
    backend.write_tagged("t", 1, &[("A", "a")]);
    assert_eq!(messages(&one.await.expect("an answer").into_command()), [(1, 0, 0)]);
    let mut two = client.begin(request(&held));
    assert!(is_held(&mut two));
    let polling = [("consumerGroup", "g"), ("topic", "t"), ("queueId", "-1")];
    let waiting = client.call(200_055, &polling, &[]).await;
    assert_eq!(field(&waiting, "pollingNum"), "1");
    client.dispatcher.pop_ready("g", topic.id, 1);
    assert!(is_held(&mut two), "woken, but there is nothing yet");
    backend.advance_ms(1000);
    client.dispatcher.pop_ready("g", topic.id, 1);
    assert_eq!(messages(&two.await.expect("an answer").into_command()), [(1, 0, 1)]);
    let three = client.begin(request(&held));
    let began = tokio::time::Instant::now();
    assert_eq!(three.await.expect("an answer").code(), 210);
    assert!(began.elapsed() >= Duration::from_secs(15));
    let waiting = client.call(200_055, &polling, &[]).await;
    assert_eq!(field(&waiting, "pollingNum"), "0");
}

#[tokio::test(start_paused = true)]
async fn too_many_that_wait_are_told_so_and_a_deleted_topic_ends_a_wait() {
    use crate::backend::Backend;
    let backend = FakeBackend::new();
    let topic = backend.add_topic("t", 1);
    let client = Client::new(backend.clone());
    let held = [("pollTime", "15000")];
    let mut all = Vec::new();
    for _ in 0..=crate::limits::HELD_POPS_OF_QUEUE_MAX {
        let mut pop = client.begin(request(&held));
        assert!(is_held(&mut pop));
        all.push(pop);
        // Or else the runtime holds one up that polls so much.
        tokio::task::yield_now().await;
    }
    assert_eq!(pop(&client, &held).await.code, 209);
    backend.delete_topic(&topic).await.expect("deleted");
    let answer = all.pop().expect("one").await.expect("an answer");
    assert_eq!(answer.code(), 17);
}

#[tokio::test]
async fn what_was_taken_is_given_out_though_another_queue_cannot_be_looked_at() {
    let backend = backend();
    let client = Client::new(backend.clone());
    backend.lose_log("t", 1);
    // Each begins with another queue.
    for first in [0, 2] {
        let answer = pop(&client, &[("queueId", "-1"), ("maxMsgNums", "2")]).await;
        assert_eq!((answer.code, field(&answer, "startOffsetInfo")), (0, &*format!("0 0 {first}")));
        assert_eq!(messages(&answer), [(0, first, 0), (0, first + 1, 0)]);
    }
    for queue in ["-1", "1"] {
        let none = pop(&client, &[("queueId", queue)]).await;
        let remark = none.remark.unwrap_or_default();
        let fault = "this node does not lead partition 1 of topic t";
        assert_eq!((none.code, &*remark), (14, fault), "{queue}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_held_pop_goes_on_without_a_queue_that_is_gone_and_tries_it_again() {
    let backend = FakeBackend::new();
    backend.add_topic("t", 2);
    let client = Client::new(backend.clone());
    let held = [("queueId", "-1"), ("pollTime", "15000")];
    let begin = || {
        let mut pop = client.begin(request(&held));
        assert!(is_held(&mut pop));
        pop
    };
    let (mut one, mut two) = (begin(), begin());
    backend.lose_log("t", 1);
    assert!(is_held(&mut one) && is_held(&mut two));
    backend.write_tagged("t", 0, &[("A", "a")]);
    assert_eq!(messages(&one.await.expect("an answer").into_command()), [(0, 0, 0)]);
    assert!(is_held(&mut two), "nothing more");
    backend.add_topic("t", 2);
    backend.write_tagged("t", 1, &[("A", "a")]);
    let began = tokio::time::Instant::now();
    assert_eq!(messages(&two.await.expect("an answer").into_command()), [(1, 0, 0)]);
    assert!(began.elapsed() < Duration::from_secs(4));
    let mut three = begin();
    backend.lose_log("t", 1);
    assert!(is_held(&mut three));
    backend.lose_log("t", 0);
    assert_eq!(three.await.expect("an answer").code(), 14, "nothing is left to wait for");
}
