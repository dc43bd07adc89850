//! Groups of both kinds: who is assigned what, separate positions on one topic, tag filters, where
//! a new group starts, and that the tools of both protocols tell the same.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::MutexGuard;
use std::time::Duration;

use anyhow::{Context, ensure};
use duolog_tests::cluster::{Launch, Node};
use duolog_tests::groups::{HEEDFUL, PARTITIONS, Share, join_and_leave};
use duolog_tests::hex::hex;
use duolog_tests::stock::{Client, Driver, kafka_tool, mqadmin, turn};
use duolog_tests::topics::{create_kafka_topic, create_rocketmq_topic};
use duolog_tests::wait;

const LIMIT: Duration = Duration::from_secs(120);

struct Stage {
    node: Node,
    _folder: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

fn stage() -> Stage {
    let turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let node = Launch::new(folder.path()).expect("ports").start().expect("a node");
    Stage { node, _folder: folder, _turn: turn }
}

fn drivers(clients: [Client; 3], address: &str) -> Vec<Driver> {
    clients.map(|client| Driver::start_with(client, address, HEEDFUL).expect("a driver")).into()
}

/// Writes records of a Kafka producer in turn to the partitions, value and tag as given.
fn write_with_kafka(driver: &mut Driver, topic: &str, records: &[(&str, &str)], partitions: usize) {
    driver.call(&format!("producer id={topic}")).expect("a producer");
    for (number, (value, tag)) in records.iter().enumerate() {
        let partition = number % partitions;
        let (value, tag) = (hex(value), hex(tag));
        let record = format!("partition={partition} value={value} h={}:{tag}", hex("TAGS"));
        driver.tell(&format!("send id={topic} topic={topic} {record}")).expect("a send");
    }
    let answers = driver.call(&format!("flush id={topic}")).expect("a flush");
    assert_eq!(answers.len(), records.len());
    assert!(answers.iter().all(|answer| answer["offset"].is_i64()), "{answers:?}");
    driver.call(&format!("close id={topic}")).expect("the producer closes");
}

/// Waits until the driver's members have seen exactly these values, in any order.
fn await_values(driver: &Driver, member: &str, expected: &[&str]) {
    let mut expected: Vec<String> = expected.iter().map(hex).collect();
    expected.sort();
    wait::until("the member's records", LIMIT, || {
        let events = driver.events();
        let own = events.iter().filter(|event| event["member"] == member);
        let mut seen: Vec<&str> = own.filter_map(|event| event["value"].as_str()).collect();
        seen.sort_unstable();
        ensure!(seen == expected, "{seen:?} instead of {expected:?}");
        Ok(())
    })
    .expect("the records arrive");
}

/// Position, end and lag of each partition.
type Progress = BTreeMap<i32, [i64; 3]>;

/// Rows of a tool's table that name the topic: partition, position, end and lag by column.
fn rows(text: &str, topic: &str, columns: [usize; 4]) -> anyhow::Result<Progress> {
    let mut progress = Progress::new();
    for line in text.lines().filter(|line| line.split_whitespace().any(|word| word == topic)) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |place: usize| {
            let column = columns.get(place).context("a column")?;
            let word = words.get(*column).with_context(|| line.to_owned())?;
            word.parse::<i64>().with_context(|| line.to_owned())
        };
        progress.insert(i32::try_from(number(0)?)?, [number(1)?, number(2)?, number(3)?]);
    }
    ensure!(!progress.is_empty(), "no row of {topic}:\n{text}");
    Ok(progress)
}

/// What `kafka-consumer-groups --describe` tells.
fn told_by_kafka(node: &Node, group: &str, topic: &str) -> anyhow::Result<Progress> {
    let arguments = ["--bootstrap-server", &node.kafka(), "--describe", "--group", group];
    let text = kafka_tool("kafka-consumer-groups", &arguments, "")?;
    rows(&text, topic, [2, 3, 4, 5])
}

/// What `mqadmin consumerProgress` tells.
fn told_by_rocketmq(node: &Node, group: &str, topic: &str) -> anyhow::Result<Progress> {
    let text = mqadmin(&node.namesrv(), "consumerProgress", &["-g", group])?;
    rows(&text, topic, [2, 4, 3, 5])
}

/// Both tools must tell this of the group.
fn tools_agree(node: &Node, group: &str, topic: &str, expected: &Progress) {
    let told = wait::until("Kafka's tool tells the group's positions", LIMIT, || {
        let told = told_by_kafka(node, group, topic)?;
        ensure!(told == *expected, "{told:?} instead of {expected:?}");
        Ok(told)
    });
    assert_eq!(told.expect("kafka-consumer-groups"), *expected);
    assert_eq!(told_by_rocketmq(node, group, topic).expect("consumerProgress"), *expected);
}

#[test]
fn rocketmq_consumers_share_queues_as_they_join_and_leave() {
    let stage = stage();
    let namesrv = stage.node.namesrv();
    let mut drivers = drivers(Client::ROCKETMQ, &namesrv);
    for (share, topic) in [(Share::Average, "members_avg"), (Share::Circle, "members_circle")] {
        create_rocketmq_topic(&stage.node.broker(), &namesrv, topic, PARTITIONS).expect("a topic");
        join_and_leave(&mut drivers, &format!("g_{topic}"), topic, share).expect("the shares");
    }
}

#[test]
fn kafka_consumers_share_partitions_as_they_join_and_leave() {
    let stage = stage();
    let mut drivers = drivers(Client::KAFKA, &stage.node.kafka());
    let topic = "members_range";
    create_kafka_topic(&stage.node.kafka(), topic, PARTITIONS).expect("a topic");
    join_and_leave(&mut drivers, "g_members_range", topic, Share::Range).expect("the shares");
}

/// A value of the metrics page.
fn metric(node: &Node, series: &str) -> anyhow::Result<u64> {
    let mut stream = TcpStream::connect(node.http())?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    let mut lines = page.lines().filter_map(|line| line.strip_prefix(series));
    Ok(lines.next().with_context(|| format!("{series} in {page}"))?.trim().parse()?)
}

#[test]
fn stock_kafka_consumers_fetch_in_sessions() {
    let stage = stage();
    let node = &stage.node;
    let topic = "in_sessions";
    create_kafka_topic(&node.kafka(), topic, 3).expect("a topic");
    for (number, mut driver) in drivers(Client::KAFKA, &node.kafka()).into_iter().enumerate() {
        let incremental = "duolog_fetches_total{kind=\"incremental\"}";
        let before = metric(node, incremental).expect("the metrics");
        driver
            .call(&format!("join name=m group=sessions_{number} topics={topic}"))
            .expect("a member");
        let (mut written, mut values) = (Vec::new(), Vec::new());
        values.extend((0..number * 4).map(|old| format!("v{old}")));
        for round in 0..4 {
            written.push(format!("v{}", number * 4 + round));
            let value = written.last().expect("a value").as_str();
            write_with_kafka(&mut driver, topic, &[(value, "t")], 3);
            values.push(value.to_owned());
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            await_values(&driver, "m", &values);
        }
        // Each record that came after the first was news of a session; librdkafka has none (it always
        // sends session id 0 and epoch -1).
        let after = metric(node, incremental).expect("the metrics");
        let client = driver.client();
        let sessions = metric(node, "duolog_fetch_sessions").expect("the metrics");
        if client == Client::Librdkafka {
            assert_eq!(after, before);
        } else {
            assert!(
                after >= before + 3 && sessions > 0,
                "{client:?}: {before}, {after}, {sessions}"
            );
        }
        driver.call("leave name=m").expect("the member leaves");
    }
}

#[test]
fn both_kinds_of_group_keep_positions_of_their_own_on_one_topic() {
    let stage = stage();
    let node = &stage.node;
    let topic = "shared";
    create_kafka_topic(&node.kafka(), topic, 2).expect("a topic");
    let mut kafka = Driver::start(Client::Kafka431, &node.kafka()).expect("a driver");
    let mut rocketmq = Driver::start(Client::Rocketmq550, &node.namesrv()).expect("a driver");
    write_with_kafka(&mut kafka, topic, &[("a", "t"), ("b", "t"), ("c", "t"), ("d", "t")], 2);
    kafka.call(&format!("join name=k group=kafka_group topics={topic}")).expect("a member");
    await_values(&kafka, "k", &["a", "b", "c", "d"]);
    kafka.call("leave name=k").expect("the member leaves");
    write_with_kafka(&mut kafka, topic, &[("e", "t"), ("f", "t"), ("g", "t")], 2);
    rocketmq.call(&format!("join name=r group=rocketmq_group topic={topic}")).expect("a member");
    await_values(&rocketmq, "r", &["a", "b", "c", "d", "e", "f", "g"]);
    let expected =
        |positions: [[i64; 3]; 2]| Progress::from([(0, positions[0]), (1, positions[1])]);
    // Before it leaves: a member that leaves at once stores what it had noted until then, not what
    // its listener has seen.
    tools_agree(node, "rocketmq_group", topic, &expected([[4, 4, 0], [3, 3, 0]]));
    rocketmq.call("leave name=r").expect("the member leaves");
    tools_agree(node, "kafka_group", topic, &expected([[2, 4, 2], [2, 3, 1]]));
    // Each goes on from its own position.
    kafka.call(&format!("join name=k2 group=kafka_group topics={topic}")).expect("a member");
    await_values(&kafka, "k2", &["e", "f", "g"]);
    kafka.call("leave name=k2").expect("the member leaves");
    tools_agree(node, "kafka_group", topic, &expected([[4, 4, 0], [3, 3, 0]]));
}

#[test]
fn tags_of_records_written_by_kafka_filter_for_every_rocketmq_client() {
    let stage = stage();
    let node = &stage.node;
    let topic = "tagged";
    create_kafka_topic(&node.kafka(), topic, 2).expect("a topic");
    let mut kafka = Driver::start(Client::Kafka431, &node.kafka()).expect("a driver");
    let records = [("a", "red"), ("b", "blue"), ("c", "grün"), ("d", "red"), ("e", "none")];
    write_with_kafka(&mut kafka, topic, &records, 2);
    for (number, client) in Client::ROCKETMQ.into_iter().enumerate() {
        let mut driver = Driver::start(client, &node.namesrv()).expect("a driver");
        let group = format!("filter_{number}");
        driver
            .call(&format!("join name=m group={group} topic={topic} tags=red||grün"))
            .expect("a member");
        await_values(&driver, "m", &["a", "c", "d"]);
        // The position passes what the filter left out.
        tools_agree(node, &group, topic, &Progress::from([(0, [3, 3, 0]), (1, [2, 2, 0])]));
        driver.call("leave name=m").expect("the member leaves");
        by_sql(&mut driver, node, topic, number);
    }
}

/// RCO-19, RFI-03 to RFI-10: a member by SQL92, and one whose expression is refused before it starts.
fn by_sql(driver: &mut Driver, node: &Node, topic: &str, number: usize) {
    // Groups of their own: a client that is refused goes on as a member.
    let mut join = |member: &str, sql: &str| {
        let group = format!("{member}_{number}");
        driver.call(&format!("join name={member} group={group} topic={topic} sql={}", hex(sql)))
    };
    let refused = join("refused", "TAGS > 'red'").expect_err("texts have no order");
    assert!(format!("{refused:#}").contains("Invalid MessageSelector"), "{refused:#}");
    join("sql", "TAGS IN ('blue', 'grün') OR NOT (TAGS = 'red') AND price IS NULL")
        .expect("a member");
    await_values(driver, "sql", &["b", "c", "e"]);
    let group = format!("sql_{number}");
    tools_agree(node, &group, topic, &Progress::from([(0, [3, 3, 0]), (1, [2, 2, 0])]));
    driver.call("leave name=sql").expect("the member leaves");
}

#[test]
fn a_new_rocketmq_group_starts_at_the_first_offset_of_a_small_log_and_a_known_one_where_it_was() {
    let stage = stage();
    let node = &stage.node;
    let topic = "first";
    create_kafka_topic(&node.kafka(), topic, 1).expect("a topic");
    let mut kafka = Driver::start(Client::Kafka431, &node.kafka()).expect("a driver");
    write_with_kafka(&mut kafka, topic, &[("a", "t"), ("b", "t")], 1);
    let mut driver = Driver::start(Client::Rocketmq498, &node.namesrv()).expect("a driver");
    // LAST would skip what is there, but the broker answers 0 while the log begins at 0 and is small.
    driver.call(&format!("join name=m1 group=late topic={topic} from=LAST")).expect("a member");
    await_values(&driver, "m1", &["a", "b"]);
    tools_agree(node, "late", topic, &Progress::from([(0, [2, 2, 0])]));
    driver.call("leave name=m1").expect("the member leaves");
    write_with_kafka(&mut kafka, topic, &[("c", "t")], 1);
    driver.call(&format!("join name=m2 group=late topic={topic} from=FIRST")).expect("a member");
    await_values(&driver, "m2", &["c"]);
    driver.call("leave name=m2").expect("the member leaves");
}
