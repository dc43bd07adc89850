use duolog_bridge::remoting::RemotingCommand;
use duolog_bridge::session::Door;
use duolog_log_core::gate::{GateAction, GateFilter};

use super::*;
use crate::config::change::Change;
use crate::testing::rocketmq::RemotingClient;
use crate::testing::served::{TestNode, eventually};

/// What the name server says of topic `t`: the queues to write, or the code.
async fn route(client: &RemotingClient) -> Result<String, i32> {
    let answer: RemotingCommand = client.call(105, &[("topic", "t")], b"").await;
    if answer.code != 0 {
        return Err(answer.code);
    }
    let body = String::from_utf8_lossy(&answer.body).into_owned();
    let (_, count) = body.rsplit_once("\"writeQueueNums\":").expect("queues");
    Ok(count.chars().take_while(char::is_ascii_digit).collect())
}

async fn set_write_queues(node: &TestNode, count: i32) {
    let topic = node.node.controller.image().topic("t").expect("created").id;
    let change = ("rmq.write.queues".to_owned(), Change::Set(count.to_string()));
    node.node.controller.alter_topic_config(topic, vec![change]).await.expect("changed");
}

fn told(node: &TestNode, kind: EventKind) -> Vec<String> {
    let cause = |event: Event| event.cause.as_deref().unwrap_or_default().to_owned();
    node.told.of(kind, "t").into_iter().map(cause).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_is_told_with_its_topic_and_with_what_changes_it() {
    let node = TestNode::start(&[]).await;
    let client = RemotingClient::at(&node.rocketmq(), Door::NameServer);
    node.listen();
    node.create_topic("t", &[]).await;
    assert_eq!(route(&client).await, Ok("2".to_owned()));
    set_write_queues(&node, 1).await;
    assert_eq!(route(&client).await, Ok("1".to_owned()));
    let topic = node.node.controller.image().topic("t").expect("created").id;
    let retention = ("retention.ms".to_owned(), Change::Set("60000".to_owned()));
    node.node.controller.alter_topic_config(topic, vec![retention]).await.expect("changed");
    assert!(node.node.open_coordinators().await.is_ok(), "a topic that no name server shows");
    let routes = told(&node, EventKind::RouteRegister);
    let expected = ["2 queues to read, 2 to write, perm 6", "2 queues to read, 1 to write, perm 6"];
    assert_eq!(routes, expected, "retention is no matter of routes");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_keeps_a_route_from_the_name_server_and_nothing_else() {
    let node = TestNode::start(&[]).await;
    let client = RemotingClient::at(&node.rocketmq(), Door::NameServer);
    node.listen();
    let gate = node.arm(GatePoint::RoutePublish, "t", GateAction::Hold);
    node.create_topic("t", &[]).await;
    node.create_topic("other", &[]).await;
    assert_eq!(client.call(105, &[("topic", "other")], b"").await.code, 0, "another passes");
    assert_eq!(route(&client).await, Err(17));
    let list = client.call(206, &[], b"").await;
    assert!(!String::from_utf8_lossy(&list.body).contains("\"t\""));
    assert!(told(&node, EventKind::RouteRegister).is_empty());
    let mut kafka = node.connect().await;
    let records = crate::testing::served::batch(&["v"]);
    assert_eq!(kafka.produce("t", -1, records).await, (0, 0), "the topic itself is there");
    assert!(node.node.instruments.release(gate));
    eventually("the route is published", || !told(&node, EventKind::RouteRegister).is_empty())
        .await;
    assert_eq!(route(&client).await, Ok("2".to_owned()));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_route_is_not_replaced_by_an_older_one() {
    let node = TestNode::start(&[]).await;
    let client = RemotingClient::at(&node.rocketmq(), Door::NameServer);
    node.create_topic("t", &[]).await;
    node.listen();
    let nth = |nth| GateFilter { nth: Some(nth), ..GateFilter::default() };
    let gates = &node.node.instruments.gates;
    let point = GatePoint::RoutePublish;
    let first = gates.arm(point, nth(1), GateAction::Hold).expect("a gate");
    let second = gates.arm(point, nth(2), GateAction::Hold).expect("a gate");
    set_write_queues(&node, 1).await;
    set_write_queues(&node, 0).await;
    assert_eq!(route(&client).await, Ok("2".to_owned()), "as before both");
    assert!(node.node.instruments.release(second));
    eventually("the newer one is there", || told(&node, EventKind::RouteRegister).len() == 1).await;
    assert_eq!(route(&client).await, Ok("0".to_owned()));
    assert!(node.node.instruments.release(first));
    set_write_queues(&node, 2).await;
    assert_eq!(route(&client).await, Ok("2".to_owned()));
    let routes = told(&node, EventKind::RouteRegister);
    assert_eq!(routes.len(), 2, "the older one came too late: {routes:?}");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_gate_drops_is_told_with_the_next_change() {
    for action in [GateAction::Drop, GateAction::Fail] {
        let node = TestNode::start(&[]).await;
        let client = RemotingClient::at(&node.rocketmq(), Door::NameServer);
        let gate = node.arm(GatePoint::RoutePublish, "t", action);
        let topic = node.create_topic("t", &[]).await.id;
        assert_eq!(route(&client).await, Err(17), "{action:?}");
        node.node.instruments.release(gate);
        assert_eq!(route(&client).await, Err(17), "{action:?}: nobody tells it again");
        set_write_queues(&node, 1).await;
        assert_eq!(route(&client).await, Ok("1".to_owned()), "{action:?}");
        let gate = node.arm(GatePoint::RoutePublish, "t", action);
        set_write_queues(&node, 2).await;
        assert_eq!(route(&client).await, Ok("1".to_owned()), "{action:?}");
        node.node.delete_topic(topic).await.expect("deleted");
        node.node.instruments.release(gate);
        node.create_topic("t", &[]).await;
        assert_eq!(route(&client).await, Ok("2".to_owned()), "{action:?}: another topic");
        node.stop().await;
    }
}
