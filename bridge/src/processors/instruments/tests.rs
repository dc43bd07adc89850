use super::*;
use crate::fake::{Client, FakeBackend};
use crate::remoting::{RemotingCommand, SerializeType};
use crate::session::Door;

fn send() -> RemotingCommand {
    let mut request = RemotingCommand::request(310, 1, SerializeType::Json);
    for (name, value) in [
        ("a", "p"),
        ("b", "t1"),
        ("c", "TBW102"),
        ("d", "1"),
        ("e", "0"),
        ("f", "0"),
        ("g", "1"),
        ("h", "0"),
    ] {
        request.ext_fields.push(name, value);
    }
    request.with_body("x")
}

fn pull() -> RemotingCommand {
    pull_from("0")
}

fn pull_from(offset: &str) -> RemotingCommand {
    let mut request = RemotingCommand::request(11, 1, SerializeType::Json);
    for (name, value) in [
        ("consumerGroup", "g"),
        ("topic", "t1"),
        ("queueId", "0"),
        ("queueOffset", offset),
        ("maxMsgNums", "32"),
        ("sysFlag", "4"),
        ("commitOffset", "0"),
        ("suspendTimeoutMillis", "0"),
        ("subVersion", "0"),
    ] {
        request.ext_fields.push(name, value);
    }
    request
}

fn route() -> RemotingCommand {
    RemotingCommand::request(105, 1, SerializeType::Json).with_field("topic", "t1")
}

#[tokio::test]
async fn what_happens_at_the_doors_is_told() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    let name_server = client.at(Door::NameServer);
    client.send(send()).await.expect("an answer");
    assert!(backend.told().is_empty(), "nobody listens");
    backend.listen();
    client.send(send()).await.expect("an answer");
    let heartbeat = br#"{"clientID":"c1","consumerDataSet":[{"groupName":"g"}]}"#;
    client.call(34, &[], heartbeat).await;
    client.send(pull()).await.expect("an answer");
    name_server.send(route()).await.expect("an answer");
    assert_eq!(
        backend.told(),
        [
            "produce.recv t1-0 127.0.0.1:50000",
            "produce.ack t1-0 @1 127.0.0.1:50000",
            "rmq.heartbeat c1 g",
            "deliver t1-0 @0 c1",
            "rmq.pull t1-0 @2 c1 FOUND",
            "route.query t1-0 127.0.0.1:50000",
        ]
    );
}

#[tokio::test]
async fn a_position_that_a_rule_moves_is_told() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    for _ in 0..6 {
        client.send(send()).await.expect("an answer");
    }
    backend.listen();
    let position = |group| [("consumerGroup", group), ("topic", "t1"), ("queueId", "0")];
    client.call(14, &position("g"), b"").await;
    let none = [("setZeroIfNotFound", "false")];
    client.call(14, &[&position("g")[..], &none].concat(), b"").await;
    backend.set_log_start("t1", 0, 3);
    client.call(14, &position("g"), b"").await;
    let moved = ["offset.reset t1-0 @0 127.0.0.1:50000 group g: no position, the queue is young"];
    assert_eq!(backend.told(), moved, "no answer, no reset");
    for (offset, expected) in [
        ("0", Some("offset.reset t1-0 @3 127.0.0.1:50000 group g: 0 is not from 3 to 6")),
        ("4", None),
        ("6", None),
        ("9", Some("offset.reset t1-0 @6 127.0.0.1:50000 group g: 9 is not from 3 to 6")),
    ] {
        client.send(pull_from(offset)).await.expect("an answer");
        let told = backend.told();
        let reset = told.iter().find(|line| line.starts_with("offset.reset"));
        assert_eq!(reset.map(String::as_str), expected, "{told:?}");
    }
}

#[tokio::test]
async fn gates_fail_or_drop_requests() {
    let backend = FakeBackend::new();
    let client = Client::new(backend.clone());
    let name_server = client.at(Door::NameServer);
    client.send(send()).await.expect("an answer");
    for (point, client, request) in [
        (GatePoint::ProduceReceived, &client, send()),
        (GatePoint::ProduceAckBefore, &client, send()),
        (GatePoint::DeliverBefore, &client, pull()),
        (GatePoint::RouteQuery, &name_server, route()),
    ] {
        backend.arm(point, Passage::Fail);
        let answer = client.send(request.clone()).await.expect("an answer");
        let remark = format!("the gate {point} refuses the request");
        assert_eq!((answer.code, answer.remark), (1, Some(remark)));
        backend.arm(point, Passage::Drop);
        let mut answer = client.begin(request.clone());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(answer.as_mut().poll(&mut context).is_pending(), "{point}: never answered");
        backend.arm(point, Passage::Go);
        assert_eq!(client.send(request).await.expect("an answer").code, 0);
    }
}
