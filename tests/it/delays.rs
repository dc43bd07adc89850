//! Delays and retries of stock RocketMQ clients: what is delayed arrives whole and not early, what was
//! recalled never, and what a listener fails with comes again until it is a dead letter.

use std::sync::MutexGuard;
use std::time::Duration;

use anyhow::{Context, ensure};
use duolog_tests::cluster::{Launch, Node};
use duolog_tests::hex::hex;
use duolog_tests::stock::{Client, Driver, mqadmin, turn};
use duolog_tests::topics::create_rocketmq_topic;
use duolog_tests::wait;
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(120);

struct Stage {
    node: Node,
    _folder: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

fn stage(settings: &[(&str, &str)]) -> Stage {
    let turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch::new(folder.path()).expect("ports");
    let launch = settings.iter().fold(launch, |launch, (key, value)| launch.set(key, value));
    let node = launch.start().expect("a node");
    Stage { node, _folder: folder, _turn: turn }
}

/// Sends one message with a property that is RocketMQ's own; the answer.
fn send(driver: &mut Driver, topic: &str, body: &str, (name, value): (&str, &str)) -> Value {
    let reserved = format!("{}:{}", hex(name), hex(value));
    let user = format!("{}:{}", hex("user"), hex("kept"));
    let (body, tag) = (hex(body), "tags=A");
    let message = format!("topic={topic} queue=0 body={body} {tag} p={user} reserved={reserved}");
    driver.tell(&format!("send id=p {message}")).expect("a send");
    let answers = driver.call("flush id=p").expect("a flush");
    let [answer] = <[Value; 1]>::try_from(answers).expect("one answer");
    assert_eq!(answer["status"], "SEND_OK", "{answer}");
    answer
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Levels 1 and 2 at the times that the original has for them, and a time.
#[test]
fn delayed_messages_arrive_whole_and_not_early() {
    let stage = stage(&[("rocketmq.recallMessageEnable", "true")]);
    let namesrv = stage.node.namesrv();
    create_rocketmq_topic(&stage.node.broker(), &namesrv, "later", 1).expect("a topic");
    let mut drivers =
        Client::ROCKETMQ.map(|client| Driver::start(client, &namesrv).expect("a driver"));
    let asked = [("DELAY", "2", 5_000), ("TIMER_DELAY_MS", "2500", 2_500), ("DELAY", "1", 1_000)];
    for driver in &mut drivers {
        driver.call("producer id=p").expect("a producer");
        for (name, value, _) in asked {
            send(driver, "later", &format!("{name}={value}"), (name, value));
        }
    }
    // Only the newest client knows of recalls; who waits an hour is not waited for here.
    let [newest, ..] = &mut drivers;
    let answer = send(newest, "later", "recalled", ("TIMER_DELAY_SEC", "3600"));
    let handle = answer["recallHandle"].as_str().expect("a recall handle");
    let recalled = newest.call(&format!("recall id=p topic=later handle={handle}"));
    let recalled = recalled.expect("a recall");
    assert_eq!(recalled[0]["id"], answer["msgId"]);

    newest.call("await topic=later queue=0 end=9").expect("all of them");
    for driver in &mut drivers {
        let seen = driver.call("read topic=later").expect("the messages");
        assert_eq!(seen.len(), 9, "{}", driver.client().name());
        for message in &seen {
            let of = |(name, value, _): &&(&str, &str, i64)| {
                message["value"] == hex(format!("{name}={value}"))
            };
            let (name, value, delay_ms) = asked.iter().find(of).expect("one of those sent");
            let waited_ms = number(&message["storeTimestamp"]) - number(&message["bornTimestamp"]);
            assert!(waited_ms >= *delay_ms, "{name}={value} after {waited_ms} ms: {message}");
            let properties = &message["properties"];
            assert_eq!(properties["user"], "kept", "{message}");
            assert_eq!(properties["TAGS"], "A", "{message}");
            assert_eq!(properties["REAL_TOPIC"], "later", "{message}");
            assert_eq!(properties[*name], *value, "{message}");
        }
    }
}

/// The retries of a listener that always fails, by how often the message came back.
fn tries(driver: &Driver, member: &str) -> Vec<i64> {
    let events = driver.events();
    let own = events.iter().filter(|event| event["member"] == member);
    own.map(|event| number(&event["reconsumeTimes"])).collect()
}

/// With all levels at a second: a message is tried, comes back twice, and is a dead letter then,
/// which can be read and sent again.
#[test]
fn what_a_listener_fails_with_comes_back_and_is_a_dead_letter_then() {
    let stage = stage(&[("rocketmq.messageDelayLevel", "1s 1s 1s 1s 1s 1s")]);
    let (namesrv, broker) = (stage.node.namesrv(), stage.node.broker());
    let mut drivers =
        Client::ROCKETMQ.map(|client| Driver::start(client, &namesrv).expect("a driver"));
    for (index, driver) in drivers.iter_mut().enumerate() {
        let topic = format!("failing{index}");
        create_rocketmq_topic(&broker, &namesrv, &topic, 1).expect("a topic");
        driver.call("producer id=p").expect("a producer");
        let join = format!("join name=m group=g{index} topic={topic} fail=100 max=2");
        driver.call(&join).expect("a member");
        send(driver, &topic, "poison", ("KEYS", "k"));
    }
    for (index, driver) in drivers.iter_mut().enumerate() {
        let name = driver.client().name();
        wait::until("the message was tried three times", LIMIT, || {
            let tries = tries(driver, "m");
            ensure!(tries == [0, 1, 2], "{name}: {tries:?}");
            Ok(())
        })
        .expect("three tries");
        let dead = wait::until("the dead letter", LIMIT, || {
            let dead = driver.call(&format!("read topic=%DLQ%g{index}"))?;
            dead.into_iter().next().context("none yet")
        });
        let dead = dead.expect("a dead letter");
        let properties = &dead["properties"];
        assert_eq!(dead["value"], hex("poison"), "{name}: {dead}");
        assert_eq!(number(&dead["reconsumeTimes"]), 3, "{name}: {dead}");
        assert_eq!(properties["RETRY_TOPIC"], format!("failing{index}"), "{name}: {dead}");
        assert!(properties["ORIGIN_MESSAGE_ID"].is_string(), "{name}: {dead}");
        assert_eq!(properties["user"], "kept", "{name}: {dead}");
        assert_eq!(properties["KEYS"], "k", "{name}: {dead}");
        // Sent again, it is a message like any other.
        driver.call("leave name=m").expect("it leaves");
        let topic = format!("again{index}");
        create_rocketmq_topic(&broker, &namesrv, &topic, 1).expect("a topic");
        driver.call(&format!("join name=n group=n{index} topic={topic}")).expect("a member");
        send(driver, &topic, "poison", ("KEYS", "k"));
        wait::until("it is consumed", LIMIT, || {
            ensure!(tries(driver, "n") == [0], "{name}: not yet");
            Ok(())
        })
        .expect("consumed");
    }
    let text = mqadmin(&namesrv, "topicList", &[]).expect("topicList");
    for topic in ["%RETRY%g0", "%DLQ%g0"] {
        assert!(text.lines().any(|line| line.trim() == topic), "no {topic} in\n{text}");
    }
}
