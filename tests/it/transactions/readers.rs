//! RocketMQ's consumers of every kind on topics that are written in transactions.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use duolog_tests::cluster::Node;
use duolog_tests::groups::EAGER;
use duolog_tests::http::{self, Events};
use duolog_tests::stock::{Client, Driver, mqadmin};
use duolog_tests::topics::create_kafka_topic;
use duolog_tests::wait;

use super::{LIMIT, hexed, producer, seen, stage, transaction, write};

const KINDS: [&str; 3] = ["push", "lite", "pull"];

/// A group for each kind of consumer.
fn join(driver: &mut Driver, topic: &str) {
    for kind in KINDS {
        let group = group(driver.client(), kind);
        let how = match kind {
            "push" => "join",
            _ => "follow",
        };
        driver
            .call(&format!("{how} name={kind} group={group} topic={topic} via={kind}"))
            .expect("a member");
    }
}

fn group(client: Client, kind: &str) -> String {
    format!("{}_{kind}", client.name().replace('.', "_"))
}

/// Waits until every consumer has seen these, once, and nothing else.
fn await_seen(drivers: &[Driver], values: &[&str]) {
    let expected = hexed(values);
    wait::until("every consumer has what is committed", LIMIT, || {
        for driver in drivers {
            for kind in KINDS {
                let seen = seen(driver, kind);
                let client = driver.client();
                ensure!(seen == expected, "{client:?} {kind}: {seen:?} instead of {expected:?}");
            }
        }
        Ok(())
    })
    .expect("they arrive");
}

/// Waits until `mqadmin consumerProgress` tells a total Diff of 0 for every group, and all have positions.
fn await_nothing_left(node: &Node, drivers: &[Driver]) {
    wait::until("nothing is left to consume", LIMIT, || {
        let text = mqadmin(&node.namesrv(), "consumerProgress", &[])?;
        let (_, page) = http::get(&node.http(), "/metrics")?;
        let told: BTreeMap<&str, &str> = text
            .lines()
            .filter_map(|line| {
                let mut words = line.split_whitespace();
                Some((words.next()?, words.next_back()?))
            })
            .collect();
        for driver in drivers {
            for kind in KINDS {
                let group = group(driver.client(), kind);
                let diff =
                    told.get(group.as_str()).with_context(|| format!("{group} in\n{text}"))?;
                ensure!(*diff == "0", "{group}: {diff} left\n{text}");
                // Of a queue without a position nothing is left either.
                let series = format!("duolog_group_offset{{group=\"{group}\",topic=\"kinds\"");
                let positions = page.lines().filter(|line| line.starts_with(&series)).count();
                ensure!(positions == 2, "{group}: {positions} positions");
            }
        }
        Ok(())
    })
    .expect("consumerProgress");
}

/// KTX-04, cases B35, B37, B128.
#[test]
fn consumers_of_every_kind_see_what_is_committed_only_and_have_nothing_left_behind_markers() {
    let stage = stage(|launch| launch.flag("--control"));
    let node = &stage.node;
    let events = Events::listen(&node.http()).expect("events");
    create_kafka_topic(&node.kafka(), "kinds", 2).expect("a topic");
    let mut kafka = Driver::start(Client::Kafka431, &node.kafka()).expect("a driver");
    producer(&mut kafka, "p", "kinds");
    transaction(&mut kafka, "p", "kinds", &["a", "b", "c"], "commit");
    transaction(&mut kafka, "p", "kinds", &["d", "e"], "abort");
    let mut drivers: Vec<Driver> = [Client::Rocketmq550, Client::Rocketmq498]
        .map(|client| Driver::start_with(client, &node.namesrv(), EAGER).expect("a driver"))
        .into();
    for driver in &mut drivers {
        join(driver, "kinds");
    }
    transaction(&mut kafka, "p", "kinds", &["f"], "commit");
    transaction(&mut kafka, "p", "kinds", &["g"], "abort");
    kafka.call("begin id=p").expect("a transaction");
    write(&mut kafka, "p", "kinds", &["h", "i", "j"]);
    await_seen(&drivers, &["a", "b", "c", "f"]);
    await_nothing_left(node, &drivers);
    kafka.call("commit id=p").expect("committed");
    transaction(&mut kafka, "p", "kinds", &["k"], "abort");
    await_seen(&drivers, &["a", "b", "c", "f", "h", "i", "j"]);
    await_nothing_left(node, &drivers);
    for driver in &mut drivers {
        for kind in KINDS {
            driver.call(&format!("leave name={kind}")).expect("no pull was refused");
        }
    }
    let pulls = events.of("rmq.pull").expect("events");
    let causes: Vec<&str> = pulls.iter().filter_map(|pull| pull["cause"].as_str()).collect();
    assert!(causes.contains(&"FOUND"), "{causes:?}");
    // What clients are told as OFFSET_ILLEGAL.
    let illegal = |cause: &&str| ["OFFSET_OVERFLOW_BADLY", "OFFSET_TOO_SMALL"].contains(cause);
    assert!(!causes.iter().any(illegal), "{causes:?}");
}

/// Mapping's pitfall 7, by the clients that let their user hold a pull.
#[test]
fn a_held_pull_ends_when_only_the_stable_offset_moves() {
    let stage = stage(|launch| launch);
    let node = &stage.node;
    create_kafka_topic(&node.kafka(), "held", 2).expect("a topic");
    let mut kafka = Driver::start(Client::Kafka431, &node.kafka()).expect("a driver");
    producer(&mut kafka, "p", "held");
    kafka.call("begin id=p").expect("a transaction");
    write(&mut kafka, "p", "held", &["a", "b"]);
    let mut drivers =
        Client::ROCKETMQ.map(|client| Driver::start(client, &node.namesrv()).expect("a driver"));
    for driver in &mut drivers {
        driver.call("hold name=h topic=held queue=0 offset=0").expect("a pull");
    }
    wait::until("every pull is there", LIMIT, || {
        let (_, page) = http::get(&node.http(), "/metrics")?;
        let series = "duolog_requests_total{protocol=\"rocketmq\",api=\"PULL_MESSAGE\"} ";
        let mut lines = page.lines().filter_map(|line| line.strip_prefix(series));
        let pulls: usize = lines.next().context("the series")?.parse()?;
        ensure!(pulls == drivers.len(), "{pulls}");
        Ok(())
    })
    .expect("they are held");
    let pulled = |driver: &Driver| {
        let events = driver.events();
        events.iter().find(|event| event["event"] == "pulled").cloned()
    };
    assert!(drivers.iter().all(|driver| pulled(driver).is_none()), "nothing is stable yet");
    kafka.call("commit id=p").expect("committed");
    for driver in &drivers {
        let told = wait::until("the pull ends", LIMIT, || pulled(driver).context("held"))
            .unwrap_or_else(|error| panic!("{:?}: {error:#}", driver.client()));
        // What only time ends is answered without a look at the log.
        assert_eq!(told["status"], "FOUND", "{told}");
    }
}
