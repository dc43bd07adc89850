//! Groups of the consumer protocol (KIP-848) with the stock clients and tools.

use std::collections::BTreeSet;
use std::sync::MutexGuard;
use std::time::Duration;

use anyhow::ensure;
use duolog_tests::cluster::{Launch, Node};
use duolog_tests::groups::{PARTITIONS, Share, join_and_leave};
use duolog_tests::stock::{Client, Driver, kafka_tool, turn};
use duolog_tests::topics::create_kafka_topic;
use duolog_tests::wait;

const LIMIT: Duration = Duration::from_secs(120);
/// A member speaks the consumer protocol.
const CONSUMER: &str = "c.group.protocol=consumer";

struct Stage {
    node: Node,
    launch: Launch,
    _folder: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

/// A node whose members are heard of every 300 ms, and are out after 8 s.
fn stage() -> Stage {
    let turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch::new(folder.path())
        .expect("ports")
        .set("group.consumer.min.heartbeat.interval.ms", 300)
        .set("group.consumer.heartbeat.interval.ms", 300)
        .set("group.consumer.min.session.timeout.ms", 8000)
        .set("group.consumer.session.timeout.ms", 8000)
        .set("group.consumer.assignment.interval.ms", 100)
        .set("group.initial.rebalance.delay.ms", 0)
        .set("offsets.topic.num.partitions", 1);
    let node = launch.start().expect("a node");
    Stage { node, launch, _folder: folder, _turn: turn }
}

fn groups_tool(node: &Node, arguments: &[&str]) -> anyhow::Result<String> {
    let address = node.kafka();
    let all: Vec<&str> =
        ["--bootstrap-server", &address].iter().chain(arguments).copied().collect();
    kafka_tool("kafka-consumer-groups", &all, "")
}

/// The words of the line that has `word`.
fn line_with(text: &str, word: &str) -> anyhow::Result<Vec<String>> {
    let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let found = lines.find(|words| words.contains(&word));
    ensure!(found.is_some(), "no line with {word}:\n{text}");
    Ok(found.unwrap_or_default().into_iter().map(str::to_owned).collect())
}

/// Waits until each member has what `check` wants, all partitions by member.
fn settle(
    members: &mut [(&mut Driver, &str)],
    check: impl Fn(&[BTreeSet<String>]) -> bool,
) -> Vec<BTreeSet<String>> {
    let settled = wait::until("the members settle", LIMIT, || {
        let mut all = Vec::new();
        for (driver, name) in members.iter_mut() {
            all.push(driver.assignment(name)?.into_iter().collect::<BTreeSet<_>>());
        }
        ensure!(check(&all), "{all:?}");
        Ok(all)
    });
    settled.expect("they settle")
}

/// All `count` partitions, each with one member, evenly.
fn is_shared(all: &[BTreeSet<String>], count: usize) -> bool {
    let sum: usize = all.iter().map(BTreeSet::len).sum();
    let each = count / all.len();
    let union: BTreeSet<&String> = all.iter().flatten().collect();
    sum == count
        && union.len() == count
        && all.iter().all(|of| (each..=each + 1).contains(&of.len()))
}

#[test]
fn consumers_of_the_new_protocol_share_partitions_as_they_join_and_leave() {
    let stage = stage();
    let clients = [Client::Kafka431, Client::Librdkafka, Client::Kafka431];
    let start = |client| Driver::start(client, &stage.node.kafka()).expect("a driver");
    let mut drivers: Vec<Driver> = clients.into_iter().map(start).collect();
    create_kafka_topic(&stage.node.kafka(), "shared", PARTITIONS).expect("a topic");
    join_and_leave(&mut drivers, "g_new", "shared", Share::Uniform).expect("the shares");
}

#[test]
fn a_member_that_is_killed_is_replaced_and_positions_survive_a_killed_node() {
    let Stage { node, launch, _folder, _turn } = stage();
    create_kafka_topic(&node.kafka(), "killed", 4).expect("a topic");
    let start = |node: &Node| Driver::start(Client::Kafka431, &node.kafka()).expect("a driver");
    let (mut first, mut second) = (start(&node), start(&node));
    for (driver, name) in [(&mut first, "a"), (&mut second, "b")] {
        driver
            .call(&format!("join name={name} group=g topics=killed {CONSUMER}"))
            .expect("a member");
    }
    settle(&mut [(&mut first, "a"), (&mut second, "b")], |all| is_shared(all, 4));
    drop(second);
    settle(&mut [(&mut first, "a")], |all| is_shared(all, 4));
    // The group goes on over a kill -9 of the node: same member, same partitions.
    let text = groups_tool(&node, &["--describe", "--members", "--group", "g"]).expect("a tool");
    let before = line_with(&text, "g").expect("a member");
    node.kill().expect("killed");
    let node = launch.start().expect("the node again");
    let after = wait::until("the member goes on", LIMIT, || {
        let text = groups_tool(&node, &["--describe", "--members", "--group", "g"])?;
        line_with(&text, "g")
    });
    assert_eq!(after.expect("a member"), before);
    first.call("producer id=p").expect("a producer");
    for partition in 0..4 {
        first
            .tell(&format!("send id=p topic=killed partition={partition} value=61"))
            .expect("sent");
    }
    assert_eq!(first.call("flush id=p").expect("flushed").len(), 4);
    wait::until("the records come", LIMIT, || {
        let seen = first.events().iter().filter(|event| event["member"] == "a").count();
        ensure!(seen == 4, "{seen}");
        Ok(())
    })
    .expect("they come");
}

#[test]
fn a_regular_expression_is_resolved_by_the_server() {
    let stage = stage();
    let address = stage.node.kafka();
    for topic in ["rx-one", "no-rx-two"] {
        create_kafka_topic(&address, topic, 2).expect("a topic");
    }
    let mut driver = Driver::start(Client::Kafka431, &address).expect("a driver");
    driver.call(&format!("join name=m group=g regex=rx-.* {CONSUMER}")).expect("a member");
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>();
    let first = names(&["rx-one-0", "rx-one-1"]);
    settle(&mut [(&mut driver, "m")], |all| all == [first.clone()]);
    create_kafka_topic(&address, "rx-three", 1).expect("a topic");
    let second = names(&["rx-one-0", "rx-one-1", "rx-three-0"]);
    settle(&mut [(&mut driver, "m")], |all| all == [second.clone()]);
    driver.call("leave name=m").expect("left");
}

#[test]
fn a_group_changes_its_protocol_while_members_go_on_and_tools_tell_which() {
    let stage = stage();
    let node = &stage.node;
    create_kafka_topic(&node.kafka(), "live", 4).expect("a topic");
    let start = || Driver::start(Client::Kafka431, &node.kafka()).expect("a driver");
    let (mut old, mut new) = (start(), start());
    let classic = "c.group.protocol=classic c.heartbeat.interval.ms=300";
    let listed = |group_type: &str| {
        let told = wait::until("the tool tells the type", LIMIT, || {
            let text = groups_tool(node, &["--list", "--type"])?;
            let words = line_with(&text, "g")?;
            ensure!(words[1].eq_ignore_ascii_case(group_type), "{text}");
            Ok(())
        });
        told.expect("the type");
    };
    old.call(&format!("join name=old group=g topics=live {classic}")).expect("a member");
    settle(&mut [(&mut old, "old")], |all| is_shared(all, 4));
    listed("classic");
    new.call(&format!("join name=new group=g topics=live {CONSUMER}")).expect("a member");
    settle(&mut [(&mut old, "old"), (&mut new, "new")], |all| is_shared(all, 4));
    listed("consumer");
    let text = groups_tool(node, &["--describe", "--state", "--group", "g"]).expect("a tool");
    let state = line_with(&text, "g").expect("a line");
    assert!(
        state.contains(&"Stable".to_owned()) && state.contains(&"uniform".to_owned()),
        "{text}"
    );
    new.call("leave name=new").expect("left");
    settle(&mut [(&mut old, "old")], |all| is_shared(all, 4));
    listed("classic");
    // And all the way: the last classic member leaves.
    new.call(&format!("join name=new group=g topics=live {CONSUMER}")).expect("a member");
    old.call("leave name=old").expect("left");
    settle(&mut [(&mut new, "new")], |all| is_shared(all, 4));
    listed("consumer");
    new.call("leave name=new").expect("left");
}

#[test]
fn the_stock_tool_resets_and_deletes_positions_and_groups() {
    let stage = stage();
    let node = &stage.node;
    create_kafka_topic(&node.kafka(), "tooled", 2).expect("a topic");
    let mut driver = Driver::start(Client::Kafka431, &node.kafka()).expect("a driver");
    driver.call("producer id=p").expect("a producer");
    for partition in [0, 0, 1] {
        driver
            .tell(&format!("send id=p topic=tooled partition={partition} value=61"))
            .expect("sent");
    }
    driver.call("flush id=p").expect("flushed");
    driver.call(&format!("join name=m group=g topics=tooled {CONSUMER}")).expect("a member");
    let position = |partition: &str, expected: &str| {
        wait::until("the tool tells the position", LIMIT, || {
            let text = groups_tool(node, &["--describe", "--offsets", "--group", "g"])?;
            let row = |line: &&str| {
                let words: Vec<&str> = line.split_whitespace().collect();
                words.get(1) == Some(&"tooled") && words.get(2) == Some(&partition)
            };
            let told = text.lines().find(row).map(|line| line.split_whitespace().nth(3));
            ensure!(told.flatten() == Some(expected), "{text}");
            Ok(())
        })
        .expect("the position");
    };
    position("0", "2");
    position("1", "1");
    let delete = ["--delete-offsets", "--group", "g", "--topic", "tooled"];
    let refused = groups_tool(node, &delete).map(|text| text.contains("subscribed"));
    assert!(!matches!(refused, Ok(false)), "positions of a live subscription stay: {refused:?}");
    driver.call("leave name=m").expect("left");
    let reset =
        ["--reset-offsets", "--to-earliest", "--execute", "--group", "g", "--topic", "tooled"];
    groups_tool(node, &reset).expect("reset");
    position("0", "0");
    groups_tool(node, &["--delete-offsets", "--group", "g", "--topic", "tooled:1"])
        .expect("deleted");
    let text = groups_tool(node, &["--describe", "--offsets", "--group", "g"]).expect("a tool");
    assert!(line_with(&text, "1").is_err(), "position 1 is gone:\n{text}");
    let text = groups_tool(node, &["--list", "--state"]).expect("a tool");
    assert!(line_with(&text, "g").expect("listed").contains(&"Empty".to_owned()), "{text}");
    groups_tool(node, &["--delete", "--group", "g"]).expect("deleted");
    let text = groups_tool(node, &["--list"]).expect("a tool");
    assert!(line_with(&text, "g").is_err(), "{text}");
}

#[test]
fn kafkas_own_reader_of_the_log_reads_every_record_of_a_group() {
    let stage = stage();
    let node = &stage.node;
    create_kafka_topic(&node.kafka(), "dumped", 2).expect("a topic");
    let mut driver = Driver::start(Client::Kafka431, &node.kafka()).expect("a driver");
    driver.call(&format!("join name=m group=g regex=dum.* {CONSUMER}")).expect("a member");
    settle(&mut [(&mut driver, "m")], |all| is_shared(all, 2));
    driver.call("leave name=m").expect("left");
    let log = stage.launch.data_dir().join("__consumer_offsets-0/00000000000000000000.log");
    let arguments = ["--offsets-decoder", "--files", log.to_str().expect("UTF-8")];
    let text = kafka_tool("kafka-dump-log", &arguments, "").expect("it reads the log");
    for kind in [
        "CONSUMER_GROUP_METADATA",
        "CONSUMER_GROUP_MEMBER_METADATA",
        "CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA",
        "CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER",
        "CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT",
        "CONSUMER_GROUP_REGULAR_EXPRESSION",
    ] {
        assert!(text.contains(&format!("\"type\":\"{}\"", type_of(kind))), "{kind}:\n{text}");
    }
}

/// The number that the tool prints for a type of record.
fn type_of(kind: &str) -> &'static str {
    match kind {
        "CONSUMER_GROUP_METADATA" => "3",
        "CONSUMER_GROUP_MEMBER_METADATA" => "5",
        "CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA" => "6",
        "CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER" => "7",
        "CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT" => "8",
        _ => "16",
    }
}
