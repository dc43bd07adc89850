//! RocketMQ's transactions by the stock producers: committed, rolled back, asked about; and with the
//! node killed at each step.

use std::sync::MutexGuard;
use std::time::Duration;

use anyhow::{Context, ensure};
use duolog_tests::cluster::{Launch, Node};
use duolog_tests::hex::hex;
use duolog_tests::http;
use duolog_tests::stock::{Client, Driver, turn};
use duolog_tests::topics::create_kafka_topic;
use duolog_tests::wait;
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(120);

struct Stage {
    node: Node,
    launch: Launch,
    _folder: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

/// A node that asks about half messages at once, and again and again.
fn stage() -> Stage {
    let turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch::new(folder.path()).expect("ports").flag("--control");
    let launch =
        launch.set("rocketmq.transactionTimeOut", 0).set("rocketmq.transactionCheckInterval", 200);
    let launch = launch.set("rocketmq.transactionCheckMax", 1_000_000_000);
    let node = launch.start().expect("a node");
    Stage { node, launch, _folder: folder, _turn: turn }
}

/// Sends a half message; how it was answered.
fn prepare(driver: &mut Driver, id: &str, topic: &str, body: &str, state: &str) -> Value {
    let body = hex(body);
    let command = format!("prepare id={id} topic={topic} body={body} state={state}");
    driver.call(&command).expect("an answer").remove(0)
}

fn decide(driver: &mut Driver, id: &str, body: &str, state: &str) {
    let body = hex(body);
    driver.call(&format!("decide id={id} body={body} state={state}")).expect("decided");
}

/// Waits until the node has settled every half message, and has delivered what was committed.
fn settled(node: &Node) {
    wait::until("every half message is settled", LIMIT, || {
        let (_, page) = http::get(&node.http(), "/metrics")?;
        let figure = |state: &str| {
            let series = format!("duolog_half_messages{{state=\"{state}\"}} ");
            let line = page.lines().find_map(|line| line.strip_prefix(&series));
            line.context("the series")?.parse::<usize>().context("a number")
        };
        let (open, decided) = (figure("open")?, figure("decided")?);
        ensure!((open, decided) == (0, 0), "{open} open, {decided} decided");
        Ok(())
    })
    .expect("all is settled");
}

/// The bodies in a topic, sorted, as a consumer of this driver reads them.
fn read(driver: &mut Driver, topic: &str) -> Vec<String> {
    let lines = driver.call(&format!("read topic={topic}")).expect("read");
    let mut bodies: Vec<String> =
        lines.iter().map(|line| line["value"].as_str().expect("a body").to_owned()).collect();
    bodies.sort();
    bodies
}

fn hexed(bodies: &[&str]) -> Vec<String> {
    let mut bodies: Vec<String> = bodies.iter().map(hex).collect();
    bodies.sort();
    bodies
}

/// Who was asked about a message, so far.
fn asked(driver: &Driver, body: &str) -> Vec<String> {
    let body = hex(body);
    let events = driver.events();
    let checks =
        events.iter().filter(|event| event["event"] == "checked" && event["body"] == *body);
    checks.map(|event| event["member"].as_str().unwrap_or_default().to_owned()).collect()
}

fn wait_asked(driver: &Driver, body: &str, by: &str) {
    let who = driver.client();
    wait::until("the producer is asked", LIMIT, || {
        let asked = asked(driver, body);
        ensure!(asked.iter().any(|member| member == by), "{who:?}: {body}: {asked:?}");
        Ok(())
    })
    .expect("it is asked");
}

#[test]
fn transactions_of_each_stock_producer_end_as_it_says() {
    let stage = stage();
    let node = &stage.node;
    let mut kafka = Driver::start(Client::Kafka431, &node.kafka()).expect("a driver");
    for client in Client::ROCKETMQ {
        let topic = format!("t{}", client.name().replace(['.', '-'], ""));
        create_kafka_topic(&node.kafka(), &topic, 2).expect("a topic");
        let mut driver = Driver::start(client, &node.namesrv()).expect("a driver");
        driver.call("transactor id=one group=g").expect("a producer");
        for (body, state) in [("committed", "COMMIT_MESSAGE"), ("gone", "ROLLBACK_MESSAGE")] {
            let answer = prepare(&mut driver, "one", &topic, body, state);
            assert_eq!(answer["status"], "SEND_OK", "{client:?}: {answer}");
            assert_eq!(answer["transactionId"], answer["msgId"], "{client:?}: {answer}");
        }
        // Not known at first, then asked about until it is.
        for (body, state) in [("late", "COMMIT_MESSAGE"), ("never", "ROLLBACK_MESSAGE")] {
            let answer = prepare(&mut driver, "one", &topic, body, "UNKNOW");
            assert_eq!(answer["state"], "UNKNOW", "{client:?}: {answer}");
            wait_asked(&driver, body, "one");
            decide(&mut driver, "one", body, state);
        }
        settled(node);
        // The sender goes without a word: another member of the group knows. A client of 5.5.0 finds
        // the broker when it first sends, and only then says who it is.
        driver.call("transactor id=two group=g").expect("a producer");
        decide(&mut driver, "two", "inherited", "COMMIT_MESSAGE");
        for (id, body, state) in
            [("two", "of two", "ROLLBACK_MESSAGE"), ("one", "inherited", "UNKNOW")]
        {
            let answer = prepare(&mut driver, id, &topic, body, state);
            assert_eq!(answer["status"], "SEND_OK", "{client:?}: {answer}");
        }
        driver.call("retire id=one").expect("gone");
        wait_asked(&driver, "inherited", "two");
        settled(node);
        let expected = hexed(&["committed", "late", "inherited"]);
        assert_eq!(read(&mut driver, &topic), expected, "{client:?}");
        assert_eq!(read(&mut kafka, &topic), expected, "{client:?}");
    }
}

fn arm(node: &Node, point: &str, topic: &str) {
    let arm = json!({"arm": {"point": point, "topic": topic, "action": "hold"}});
    http::gates(&node.http(), &arm).expect("a gate");
}

fn wait_caught(node: &Node, point: &str) {
    wait::until("the gate catches", LIMIT, || {
        let listed = http::gates(&node.http(), &json!("list"))?;
        let gates = listed["gates"].as_array().context("gates")?;
        let is_caught = |gate: &Value| gate["point"] == point && gate["hits"] != 0;
        ensure!(gates.iter().any(is_caught), "{listed}");
        Ok(())
    })
    .expect("it is caught");
}

/// The half message is stored and its producer was not told; it is decided and not in its queue; it
/// is in its queue, and that is not on disk, so not noted.
#[test]
fn a_node_killed_at_any_step_delivers_what_was_committed_once() {
    let Stage { mut node, launch, _folder, _turn } = stage();
    let mut driver = Driver::start(Client::Rocketmq550, &node.namesrv()).expect("a driver");
    driver.call("transactor id=p group=g").expect("a producer");
    let steps = ["half.stored", "half.deliver", "flush.before"];
    for (number, step) in steps.into_iter().enumerate() {
        let topic = format!("killed{number}");
        create_kafka_topic(&node.kafka(), &topic, 1).expect("a topic");
        decide(&mut driver, "p", step, "COMMIT_MESSAGE");
        prepare(&mut driver, "p", &topic, "before", "COMMIT_MESSAGE");
        settled(&node);
        arm(&node, step, &topic);
        let command = format!("prepare id=p topic={topic} body={} state=COMMIT_MESSAGE", hex(step));
        if step == "half.stored" {
            // No answer comes before the node's end.
            driver.tell(&command).expect("a send");
            wait_caught(&node, step);
            node.kill().expect("kill -9");
            let answer = driver.answer("prepare").expect("an answer").remove(0);
            assert!(answer["failed"].is_string(), "{answer}");
        } else {
            driver.call(&command).expect("an answer");
            wait_caught(&node, step);
            node.kill().expect("kill -9");
        }
        node = launch.start().expect("a node");
        settled(&node);
        let expected = hexed(&["before", step]);
        let mut kafka = Driver::start(Client::Kafka431, &node.kafka()).expect("a driver");
        assert_eq!(read(&mut kafka, &topic), expected, "{step}");
        assert_eq!(read(&mut driver, &topic), expected, "{step}");
    }
}
