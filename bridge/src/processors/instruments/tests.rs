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
    let mut request = RemotingCommand::request(11, 1, SerializeType::Json);
    for (name, value) in [
        ("consumerGroup", "g"),
        ("topic", "t1"),
        ("queueId", "0"),
        ("queueOffset", "0"),
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
