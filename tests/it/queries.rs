//! How RocketMQ's messages are found again: by key, by id, by trace; and how clients that were told no name server find
//! one.

use std::time::Duration;

use anyhow::{Context, ensure};
use duolog_bridge::remoting::message::Message;
use duolog_tests::cluster::{Launch, Node};
use duolog_tests::hex::hex;
use duolog_tests::raw_client::Connection;
use duolog_tests::stock::{Client, Driver, turn};
use duolog_tests::topics::create_rocketmq_topic;
use duolog_tests::wait;
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(120);
const QUERY_MESSAGE: i32 = 12;

/// Sends a message; its id.
fn send(driver: &mut Driver, message: &str) -> String {
    driver.tell(&format!("send id=p {message}")).expect("a send");
    let answers = driver.call("flush id=p").expect("a flush");
    let [answer] = <[Value; 1]>::try_from(answers).expect("one answer");
    assert_eq!(answer["status"], "SEND_OK", "{answer}");
    answer["msgId"].as_str().expect("an id").to_owned()
}

/// Bodies of the messages with this key.
fn query(connection: &mut Connection, topic: &str, key: &str) -> anyhow::Result<Vec<String>> {
    let end = i64::MAX.to_string();
    let fields = [
        ("topic", topic),
        ("key", key),
        ("maxNum", "64"),
        ("beginTimestamp", "0"),
        ("endTimestamp", &end),
    ];
    let answer = connection.remoting(QUERY_MESSAGE, &fields, b"")?;
    ensure!(answer.code()? == 0, "{answer:?}");
    let (mut rest, mut bodies) = (&answer.body[..], Vec::new());
    while !rest.is_empty() {
        let message = Message::decode(&mut rest).context("a message")?;
        bodies.push(String::from_utf8_lossy(message.body).into_owned());
    }
    Ok(bodies)
}

/// What stock producers and consumers of two generations tell of a message is found by its id and by its key.
#[test]
fn a_message_leaves_a_trace_that_is_found_by_its_id_and_its_key() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let node = Launch::new(folder.path()).expect("ports").start().expect("a node");
    let namesrv = node.namesrv();
    create_rocketmq_topic(&node.broker(), &namesrv, "traced", 1).expect("a topic");
    let mut connection = Connection::open(&node.broker(), LIMIT).expect("a connection");
    for client in [Client::Rocketmq550, Client::Rocketmq498] {
        let mut driver = Driver::start(client, &namesrv).expect("a driver");
        driver.call("producer id=p trace=true").expect("a producer");
        let group = format!("g_{}", client.name().replace('.', "_"));
        driver
            .call(&format!("join name=m group={group} topic=traced trace=true"))
            .expect("a member");
        let key = format!("of-{group}");
        let keys = hex(format!("{key} another"));
        let id = send(&mut driver, &format!("topic=traced keys={keys} body={}", hex("body")));
        wait::until("all of the trace", LIMIT, || {
            let by_id = query(&mut connection, "RMQ_SYS_TRACE_TOPIC", &id)?;
            for kind in ["Pub", "SubBefore", "SubAfter"] {
                let told = by_id.iter().any(|body| {
                    body.split('\u{2}').any(|span| span.starts_with(kind) && span.contains(&id))
                });
                // The end of a consumption names no key, so by id alone.
                ensure!(told, "no {kind} of {id} in {by_id:?}");
            }
            let by_key = query(&mut connection, "RMQ_SYS_TRACE_TOPIC", &key)?;
            ensure!(by_key.iter().any(|body| body.starts_with("Pub")), "{by_key:?}");
            Ok(())
        })
        .expect("a trace");
        assert_eq!(query(&mut connection, "traced", &key).expect("by key"), ["body"]);
        assert_eq!(query(&mut connection, "traced", &id).expect("by id"), ["body"]);
    }
    assert_eq!(query(&mut connection, "traced", "another").expect("by key"), ["body", "body"]);
}

/// The stock client's own search for a name server: the address that `rocketmq.namesrv.domain` names answers it.
#[test]
fn clients_that_were_told_no_name_server_ask_for_one() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let node = Launch::new(folder.path()).expect("ports").start().expect("a node");
    create_rocketmq_topic(&node.broker(), &node.namesrv(), "found", 1).expect("a topic");
    for (client, unit) in
        [(Client::Rocketmq550, ""), (Client::Rocketmq498, "unit=u1"), (Client::Rocketmq440, "")]
    {
        let mut driver = searching(client, &node);
        driver.call(&format!("producer id=p {unit}")).expect("a producer");
        let name = client.name();
        let group = format!("g_{}", name.replace('.', "_"));
        driver.call(&format!("join name=m group={group} topic=found {unit}")).expect("a member");
        send(&mut driver, &format!("topic=found body={}", hex(name)));
        wait::until("it comes", LIMIT, || {
            let events = driver.events();
            ensure!(events.iter().any(|event| event["value"] == hex(name)), "{events:?}");
            Ok(())
        })
        .expect("the message");
    }
}

fn searching(client: Client, node: &Node) -> Driver {
    let options = format!(
        "-Drocketmq.namesrv.domain={} -Drocketmq.namesrv.domain.subgroup=nsaddr",
        node.http()
    );
    Driver::start_with(client, "-", &options).expect("a driver")
}
