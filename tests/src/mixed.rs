//! All kinds of RocketMQ's messages at once while the node is killed; judged by the log itself and by what the consumers
//! saw.
//!
//! The stock client (`tests/interop/java/MixedLoad.java`) sends each message once and never again, so what was
//! acknowledged must be in its topic exactly once, and what was not, once at most.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::cluster::{Launch, Node};
use crate::hex::unhex;
use crate::http;
use crate::program::Program;
use crate::seed::Seeded;
use crate::stock::{self, Client, Driver};
use crate::topics::{create_kafka_topic, set_pop};
use crate::wait;

const KINDS: [&str; 5] = ["plain", "delayed", "transactional", "ordered", "popped"];
const QUEUES: i32 = 4;
/// Acknowledged of all kinds between two kills.
const BETWEEN: std::ops::Range<usize> = 20..300;
const LIMIT: Duration = Duration::from_secs(300);

/// A message that a topic holds: queue, offset and key.
type Place = (i64, i64, String);

/// Runs all kinds of load, kills the node `kills` times and starts it again, and judges. Returns a line about it.
///
/// # Errors
///
/// A promise was broken, or something took too long.
pub fn survive(seed: u64, kills: usize) -> anyhow::Result<String> {
    let mut random = Seeded::new(seed);
    let folder = tempfile::tempdir()?;
    let launch = Launch::new(folder.path())?
        .set("rocketmq.transactionTimeOut", 0)
        .set("rocketmq.transactionCheckInterval", 200)
        .set("rocketmq.transactionCheckMax", 1_000_000_000);
    let mut node = launch.start()?;
    for kind in KINDS {
        create_kafka_topic(&node.kafka(), kind, QUEUES)?;
    }
    set_pop(&node.broker(), "popped", "mixed-popped")?;
    let mut load = stock::program(Client::Rocketmq550.name(), "MixedLoad");
    load.arg(node.namesrv());
    let mut load = Program::start(load)?;
    for _ in 0..kills {
        await_sent(&mut load, random.within(BETWEEN))?;
        node.kill()?;
        node = launch.start()?;
    }
    await_sent(&mut load, random.within(BETWEEN))?;
    load.tell("quiet")?;
    await_ended(&load)?;
    settle(&node)?;
    let mut kafka = Driver::start(Client::Kafka431, &node.kafka())?;
    let mut stored = BTreeMap::new();
    for kind in KINDS {
        let lines = kafka.call(&format!("read topic={kind}"))?;
        let places: anyhow::Result<Vec<Place>> = lines.iter().map(place).collect();
        stored.insert(kind, places?);
    }
    await_consumed(&mut load, &stored)?;
    let told = load.stop()?;
    for kind in KINDS {
        judge_stored(kind, &stored[kind], &told).context(kind)?;
    }
    judge_order(&told)?;
    ensure!(node.stop()?.success(), "a clean stop after all that");
    let again = KINDS.map(|kind| format!("{kind} {}", repeated(kind, &told)));
    let sent = told.iter().filter(|event| event["event"] == "sent").count();
    Ok(format!("seed {seed}: {sent} acknowledged; consumed more than once: {}", again.join(", ")))
}

/// Waits until so many sends more are acknowledged, some of each kind.
fn await_sent(load: &mut Program, more: usize) -> anyhow::Result<()> {
    let sent = |load: &Program| {
        let events = load.events();
        let mut counts = BTreeMap::new();
        for event in events.iter().filter(|event| event["event"] == "sent") {
            *counts.entry(event["kind"].to_string()).or_insert(0) += 1;
        }
        counts
    };
    let before = sent(load);
    let waited = wait::until("more is acknowledged", LIMIT, || {
        let after = sent(load);
        let of =
            |counts: &BTreeMap<String, usize>, kind: &str| counts.get(kind).copied().unwrap_or(0);
        let all = after.values().sum::<usize>() - before.values().sum::<usize>();
        let each = after.keys().filter(|kind| of(&after, kind) > of(&before, kind)).count();
        ensure!(all >= more && each == KINDS.len(), "{before:?}, then {after:?}");
        Ok(())
    });
    waited.with_context(|| load.log())?;
    load.lives()
}

/// Waits until every sender has heard of its last message.
fn await_ended(load: &Program) -> anyhow::Result<()> {
    let waited = wait::until("the senders end", LIMIT, || {
        let ended = load.events().iter().filter(|event| event["event"] == "ended").count();
        ensure!(ended == KINDS.len(), "{ended} have ended");
        Ok(())
    });
    waited.with_context(|| load.log())
}

/// Waits until nothing waits for its time or its end any more.
fn settle(node: &Node) -> anyhow::Result<()> {
    wait::until("every message is where it belongs", LIMIT, || {
        let (_, page) = http::get(&node.http(), "/metrics")?;
        let waiting =
            ["duolog_timers_waiting", "duolog_timers_on_their_way", "duolog_half_messages"];
        let figures: Vec<&str> =
            page.lines().filter(|line| waiting.iter().any(|name| line.starts_with(name))).collect();
        ensure!(figures.len() == 4, "the logs are not read yet: {figures:?}");
        ensure!(figures.iter().all(|line| line.ends_with(" 0")), "{figures:?}");
        Ok(())
    })
}

/// Waits until each message of the topics was consumed by its group, and those that were sent back came again.
fn await_consumed(load: &mut Program, stored: &BTreeMap<&str, Vec<Place>>) -> anyhow::Result<()> {
    let waited = wait::until("everything is consumed", LIMIT, || {
        let events = load.events();
        let consumed: BTreeSet<&str> = events
            .iter()
            .filter(|event| event["event"] == "consumed")
            .filter_map(|event| event["key"].as_str())
            .collect();
        for (kind, places) in stored {
            let mut missing = places.iter().filter(|place| !consumed.contains(place.2.as_str()));
            ensure!(missing.next().is_none(), "{kind}: {missing:?}");
        }
        Ok(())
    });
    waited.with_context(|| load.log())
}

/// What was acknowledged is there once, unless it was to be rolled back; what was not, once at most; nothing else is.
fn judge_stored(kind: &str, stored: &[Place], told: &[Value]) -> anyhow::Result<()> {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, _, key) in stored {
        *times.entry(key).or_default() += 1;
    }
    let of_kind = told.iter().filter(|event| event["kind"] == kind && event["event"] != "ended");
    for event in of_kind {
        let key = event["key"].as_str().context("a key")?;
        let found = times.get(key).copied().unwrap_or_default();
        let rolled_back = kind == "transactional" && event["wanted"] == false;
        match event["event"].as_str() {
            Some("sent") if rolled_back => ensure!(found == 0, "{key} was rolled back: {found}"),
            Some("sent") => ensure!(found == 1, "{key} is there {found} times"),
            Some("failed") if kind == "transactional" => {
                ensure!(found == 0, "{key} was never decided: {found}");
            }
            Some("failed") => ensure!(found <= 1, "{key} is there {found} times"),
            _ => ensure!(found > 0, "{key} was consumed and is not there"),
        }
    }
    let sends = told.iter().filter(|event| event["event"] == "sent" || event["event"] == "failed");
    let known: BTreeSet<&str> = sends.filter_map(|event| event["key"].as_str()).collect();
    let strange: Vec<_> = times.keys().filter(|key| !known.contains(*key)).collect();
    ensure!(strange.is_empty(), "nobody sent {strange:?}");
    Ok(())
}

/// Of each queue, nothing was seen before what stands in front of it.
fn judge_order(told: &[Value]) -> anyhow::Result<()> {
    let mut next: BTreeMap<i64, i64> = BTreeMap::new();
    let seen = told.iter().filter(|event| event["kind"] == "ordered" && event["queue"].is_i64());
    for event in seen {
        let (queue, offset, _) = place_of(event, "queue")?;
        let next = next.entry(queue).or_default();
        ensure!(offset <= *next, "queue {queue}: {offset} was consumed before {next}");
        *next = (*next).max(offset + 1);
    }
    Ok(())
}

/// Messages that their group saw to the end more than once.
fn repeated(kind: &str, told: &[Value]) -> usize {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    let consumed =
        told.iter().filter(|event| event["event"] == "consumed" && event["kind"] == kind);
    for key in consumed.filter_map(|event| event["key"].as_str()) {
        *times.entry(key).or_default() += 1;
    }
    times.values().filter(|times| **times > 1).count()
}

/// A line of a Kafka reader: its value is the key in hex.
fn place(line: &Value) -> anyhow::Result<Place> {
    let (partition, offset, _) = place_of(line, "partition")?;
    let key = unhex(line["value"].as_str().context("a value")?)?;
    Ok((partition, offset, key))
}

fn place_of(line: &Value, queue: &str) -> anyhow::Result<Place> {
    let number = |name: &str| line[name].as_i64().with_context(|| format!("{name} of {line}"));
    let key = line["key"].as_str().unwrap_or_default().to_owned();
    Ok((number(queue)?, number("offset")?, key))
}
