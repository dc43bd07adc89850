//! Pop by the stock push consumer: all is consumed, what fails comes back and is a dead letter in the
//! end, and a node that is killed remembers what is in whose hands.

use std::collections::BTreeMap;
use std::sync::MutexGuard;
use std::time::Duration;

use anyhow::{Context, ensure};
use duolog_tests::cluster::{Launch, Node};
use duolog_tests::hex::hex;
use duolog_tests::http;
use duolog_tests::stock::{Client, Driver, mqadmin, turn};
use duolog_tests::topics::create_rocketmq_topic;
use duolog_tests::wait;
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(120);

struct Stage {
    node: Node,
    launch: Launch,
    _folder: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

fn stage() -> Stage {
    let turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch::new(folder.path()).expect("ports");
    let node = launch.start().expect("a node");
    Stage { node, launch, _folder: folder, _turn: turn }
}

fn admin(node: &Node, command: &str, arguments: &[&str]) -> String {
    mqadmin(&node.namesrv(), command, arguments).expect(command)
}

/// Has a group pop from a topic, by the stock tool.
fn set_pop(node: &Node, topic: &str, group: &str) {
    let broker = node.broker();
    let arguments = ["-b", &broker, "-t", topic, "-g", group, "-m", "POP", "-n", "8"];
    let said = admin(node, "setConsumeMode", &arguments);
    assert!(said.contains("success"), "{said}");
}

fn send(driver: &mut Driver, topic: &str, body: &str, tag: &str) {
    let body = hex(body);
    driver.tell(&format!("send id=p topic={topic} body={body} tags={tag}")).expect("a send");
}

/// What a member was given: by body, the reconsume counts in the order in which they came.
fn given(driver: &Driver, member: &str) -> BTreeMap<String, Vec<i64>> {
    let mut given: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for event in driver.events().iter().filter(|event| event["member"] == member) {
        let body = event["value"].as_str().expect("a body").to_owned();
        let times = event["reconsumeTimes"].as_i64().expect("a count");
        given.entry(body).or_default().push(times);
    }
    given
}

fn figure(node: &Node, series: &str) -> anyhow::Result<usize> {
    let (_, page) = http::get(&node.http(), "/metrics")?;
    let line = page.lines().find_map(|line| line.strip_prefix(&format!("{series} ")));
    line.context("the series")?.parse().context("a number")
}

fn wait_in_hand(node: &Node, count: usize) {
    wait::until("so many are in hand", LIMIT, || {
        let in_hand = figure(node, "duolog_messages_in_hand")?;
        ensure!(in_hand == count, "{in_hand} in hand");
        Ok(())
    })
    .expect("so many");
}

/// The lag that `mqadmin consumerProgress` tells.
fn lag(node: &Node, group: &str) -> Option<i64> {
    let text = admin(node, "consumerProgress", &["-g", group]);
    let total = text.lines().find_map(|line| line.strip_prefix("Consume Diff Total:"));
    total?.trim().parse().ok()
}

#[test]
fn a_stock_pop_consumer_gets_all_and_what_fails_again_until_it_is_dead() {
    let stage = stage();
    let node = &stage.node;
    let mut driver = Driver::start(Client::Rocketmq550, &node.namesrv()).expect("a driver");
    driver.call("producer id=p").expect("a producer");
    for (topic, group, more) in
        [("all", "g1", ""), ("failing", "g2", "fail=1"), ("held", "g3", "invisible=5000")]
    {
        create_rocketmq_topic(&node.broker(), &node.namesrv(), topic, 4).expect("a topic");
        set_pop(node, topic, group);
        if group == "g3" {
            // Two deliveries, then the dead letters.
            admin(node, "updateSubGroup", &["-b", &node.broker(), "-g", group, "-r", "1"]);
        }
        driver.call(&format!("pop name={group} group={group} topic={topic} {more}")).expect("in");
    }
    for number in 0..40 {
        send(&mut driver, "all", &number.to_string(), "A");
    }
    send(&mut driver, "failing", "fails once", "A");
    send(&mut driver, "held", "poison", "hold");
    driver.call("flush id=p").expect("sent");
    let name = "all of it";
    wait::until(name, LIMIT, || {
        let (all, failing) = (given(&driver, "g1"), given(&driver, "g2"));
        ensure!(all.len() == 40, "{} of 40", all.len());
        ensure!(failing.values().next().map(Vec::as_slice) == Some(&[0, 1]), "{failing:?}");
        ensure!(lag(node, "g1") == Some(0), "no position yet");
        Ok(())
    })
    .expect(name);
    assert!(given(&driver, "g1").values().all(|times| *times == [0]), "each once");
    let dead = wait::until("the dead letter", LIMIT, || {
        let dead = driver.call("read topic=%DLQ%g3")?;
        dead.into_iter().next().context("none yet")
    });
    let dead: Value = dead.expect("a dead letter");
    assert_eq!(dead["value"], hex("poison"), "{dead}");
    assert_eq!(dead["reconsumeTimes"], 2, "{dead}");
    assert_eq!(dead["properties"]["RETRY_TOPIC"], "held", "{dead}");
    assert_eq!(dead["properties"]["TAGS"], "hold", "{dead}");
    // A delivery that reached the listener too late is not shown to it.
    let shown = given(&driver, "g3").remove(&hex("poison")).unwrap_or_default();
    assert!([&[0, 1][..], &[0], &[1]].contains(&&shown[..]), "{shown:?}");
    wait_in_hand(node, 0);
    assert_eq!(driver.call("read topic=%DLQ%g3").expect("read").len(), 1, "once");
}

#[test]
fn a_killed_node_neither_gives_out_again_what_was_acknowledged_nor_loses_the_rest() {
    let Stage { mut node, launch, _folder, _turn } = stage();
    create_rocketmq_topic(&node.broker(), &node.namesrv(), "t", 2).expect("a topic");
    set_pop(&node, "t", "g");
    // What is held may come back as often as it takes.
    admin(&node, "updateSubGroup", &["-b", &node.broker(), "-g", "g", "-r", "10000"]);
    let mut driver = Driver::start(Client::Rocketmq550, &node.namesrv()).expect("a driver");
    driver.call("producer id=p").expect("a producer");
    driver.call("pop name=m group=g topic=t invisible=5000").expect("in");
    for number in 0..20 {
        send(&mut driver, "t", &format!("go {number}"), "A");
        if number % 4 == 0 {
            send(&mut driver, "t", &format!("hold {number}"), "hold");
        }
    }
    driver.call("flush id=p").expect("sent");
    wait::until("each was given out", LIMIT, || {
        let given = given(&driver, "m");
        ensure!(given.len() == 25, "{} of 25", given.len());
        Ok(())
    })
    .expect("each");
    wait_in_hand(&node, 5);
    let before = given(&driver, "m");
    node.kill().expect("kill -9");
    node = launch.start().expect("a node");
    wait::until("what was held comes again", LIMIT, || {
        let after = given(&driver, "m");
        let grown = after.iter().filter(|(body, times)| times.len() > before[*body].len());
        ensure!(grown.count() == 5, "{after:?}");
        Ok(())
    })
    .expect("again");
    driver.call("release name=m").expect("released");
    wait_in_hand(&node, 0);
    for (body, times) in given(&driver, "m") {
        if body.starts_with(&hex("go")) {
            assert_eq!(times, before[&body], "acknowledged, and back: {body}");
        } else {
            assert!(times.len() > 1 && times.is_sorted_by(|a, b| a < b), "{body}: {times:?}");
        }
    }
    wait::until("the position is at the end", LIMIT, || {
        ensure!(lag(&node, "g") == Some(0), "not yet");
        Ok(())
    })
    .expect("the end");
}
