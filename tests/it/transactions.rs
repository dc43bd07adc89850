//! Transactions of the stock Kafka clients (v2 of the Java client 4.3.1, v1 of the others), read by
//! consumers of both protocols and looked at with Kafka's tools; one is cut by kill -9.

mod hanging;
mod readers;

use std::sync::MutexGuard;
use std::time::Duration;

use anyhow::{Context, ensure};
use duolog_tests::cluster::{Launch, Node};
use duolog_tests::hex::hex;
use duolog_tests::http;
use duolog_tests::stock::{Client, Driver, kafka_tool, mqadmin, turn};
use duolog_tests::topics::create_kafka_topic;
use duolog_tests::wait;
use serde_json::json;

const LIMIT: Duration = Duration::from_secs(120);

struct Stage {
    node: Node,
    launch: Launch,
    _folder: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

fn stage(change: impl FnOnce(Launch) -> Launch) -> Stage {
    let turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let launch = change(Launch::new(folder.path()).expect("ports"));
    let node = launch.start().expect("a node");
    Stage { node, launch, _folder: folder, _turn: turn }
}

/// A transactional producer that has initialized its transactions.
fn producer(driver: &mut Driver, id: &str, transactional_id: &str) {
    // librdkafka bounds how long a batch may wait by the transaction's timeout.
    let config = format!("c.transactional.id={transactional_id} c.linger.ms=5");
    driver.call(&format!("producer id={id} {config}")).expect("a producer");
    driver.call(&format!("init id={id}")).expect("transactions are initialized");
}

/// Writes values in turn to two partitions, in the open transaction.
fn write(driver: &mut Driver, id: &str, topic: &str, values: &[&str]) {
    for (number, value) in values.iter().enumerate() {
        let partition = number % 2;
        let record = format!("topic={topic} partition={partition} value={}", hex(value));
        driver.tell(&format!("send id={id} {record}")).expect("a send");
    }
    let answers = driver.call(&format!("flush id={id}")).expect("a flush");
    assert!(answers.iter().all(|answer| answer["offset"].is_i64()), "{answers:?}");
}

/// One transaction with these values, ended by `end`.
fn transaction(driver: &mut Driver, id: &str, topic: &str, values: &[&str], end: &str) {
    driver.call(&format!("begin id={id}")).expect("a transaction");
    write(driver, id, topic, values);
    driver.call(&format!("{end} id={id}")).expect("the transaction ends");
}

/// All values of a topic, sorted.
fn read(driver: &mut Driver, topic: &str, isolation: &str) -> Vec<String> {
    let lines = driver
        .call(&format!("read topic={topic} c.isolation.level={isolation}"))
        .expect("the records");
    let value = |line: &serde_json::Value| line["value"].as_str().unwrap_or_default().to_owned();
    let mut values: Vec<String> = lines.iter().map(value).collect();
    values.sort();
    values
}

fn hexed(values: &[&str]) -> Vec<String> {
    let mut values: Vec<String> = values.iter().map(hex).collect();
    values.sort();
    values
}

fn seen(driver: &Driver, member: &str) -> Vec<String> {
    let events = driver.events();
    let own = events.iter().filter(|event| event["member"] == member);
    let mut seen: Vec<String> =
        own.filter_map(|event| event["value"].as_str()).map(str::to_owned).collect();
    seen.sort();
    seen
}

/// Sum of the column `Diff` of `mqadmin consumerProgress`.
fn diff(node: &Node, group: &str, topic: &str) -> anyhow::Result<i64> {
    let text = mqadmin(&node.namesrv(), "consumerProgress", &["-g", group])?;
    let rows = text.lines().filter(|line| line.split_whitespace().any(|word| word == topic));
    let mut sum = None;
    for row in rows {
        let column = row.split_whitespace().nth(5).with_context(|| row.to_owned())?;
        sum = Some(sum.unwrap_or(0) + column.parse::<i64>().with_context(|| row.to_owned())?);
    }
    sum.with_context(|| format!("no row of {topic}:\n{text}"))
}

/// KTX-01, KTX-04, cases B35, B37, B128; mapping's pitfalls 3, 6 and 7.
#[test]
fn what_is_committed_is_read_by_both_protocols_and_what_is_aborted_by_none() {
    let stage = stage(|launch| launch);
    let node = &stage.node;
    for client in Client::KAFKA {
        let topic = format!("txn_{}", client.name().replace(['.', '-'], "_"));
        create_kafka_topic(&node.kafka(), &topic, 2).expect("a topic");
        let mut rocketmq = Driver::start(Client::Rocketmq498, &node.namesrv()).expect("a driver");
        rocketmq.call(&format!("join name=r group=g_{topic} topic={topic}")).expect("a member");
        let mut kafka = Driver::start(client, &node.kafka()).expect("a driver");
        producer(&mut kafka, "p", &topic);
        transaction(&mut kafka, "p", &topic, &["a", "b", "c"], "commit");
        transaction(&mut kafka, "p", &topic, &["d", "e"], "abort");
        transaction(&mut kafka, "p", &topic, &["f"], "commit");
        transaction(&mut kafka, "p", &topic, &["g"], "abort");
        let committed = hexed(&["a", "b", "c", "f"]);
        wait::until("the push consumer has what is committed", LIMIT, || {
            let seen = seen(&rocketmq, "r");
            ensure!(seen == committed, "{seen:?} instead of {committed:?}");
            // Behind the last record there are markers, and the aborted record.
            let diff = diff(node, &format!("g_{topic}"), &topic)?;
            ensure!(diff == 0, "{diff} left to consume");
            Ok(())
        })
        .expect("RocketMQ reads it");
        assert_eq!(read(&mut kafka, &topic, "read_committed"), committed, "{client:?}");
        let all = hexed(&["a", "b", "c", "d", "e", "f", "g"]);
        assert_eq!(read(&mut kafka, &topic, "read_uncommitted"), all, "{client:?}");
        assert_eq!(seen(&rocketmq, "r"), committed, "nothing came later");
        kafka.call("close id=p").expect("the producer closes");
    }
}

#[test]
fn a_second_producer_of_a_transactional_id_fences_the_first() {
    let stage = stage(|launch| launch);
    let node = &stage.node;
    for client in Client::KAFKA {
        let topic = format!("fenced_{}", client.name().replace(['.', '-'], "_"));
        create_kafka_topic(&node.kafka(), &topic, 2).expect("a topic");
        let mut zombie = Driver::start(client, &node.kafka()).expect("a driver");
        producer(&mut zombie, "p", &topic);
        zombie.call("begin id=p").expect("a transaction");
        write(&mut zombie, "p", &topic, &["lost"]);
        let mut heir = Driver::start(client, &node.kafka()).expect("a driver");
        producer(&mut heir, "p", &topic);
        transaction(&mut heir, "p", &topic, &["kept"], "commit");
        let refused = zombie.call("commit id=p").expect_err("it is fenced").to_string();
        let told = refused.to_lowercase();
        assert!(told.contains("fenced") || told.contains("epoch"), "{client:?}: {refused}");
        assert_eq!(read(&mut heir, &topic, "read_committed"), hexed(&["kept"]), "{client:?}");
        heir.call("close id=p").expect("the producer closes");
    }
}

/// KTX-01: every third transaction of the copy is aborted, and nothing is lost or doubled.
#[test]
fn consume_transform_produce_copies_each_record_once() {
    let stage = stage(|launch| launch);
    let node = &stage.node;
    for client in Client::KAFKA {
        let name = client.name().replace(['.', '-'], "_");
        let (from, to) = (format!("from_{name}"), format!("to_{name}"));
        create_kafka_topic(&node.kafka(), &from, 2).expect("a topic");
        create_kafka_topic(&node.kafka(), &to, 2).expect("a topic");
        let mut kafka = Driver::start(client, &node.kafka()).expect("a driver");
        let values: Vec<String> = (0..40).map(|number| format!("{number:02}")).collect();
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        kafka.call("producer id=plain").expect("a producer");
        write(&mut kafka, "plain", &from, &values);
        producer(&mut kafka, "p", &format!("copy_{name}"));
        let copy = format!("transform id=p group=copy_{name} from={from} to={to} count=40 abort=3");
        let told = kafka.call(&copy).expect("the copy");
        assert_eq!(told[0]["copied"], 40, "{told:?}");
        assert!(told[0]["aborted"].as_i64() > Some(0), "{told:?}");
        assert_eq!(read(&mut kafka, &to, "read_committed"), hexed(&values), "{client:?}");
        let arguments =
            ["--bootstrap-server", &node.kafka(), "--describe", "--group", &format!("copy_{name}")];
        wait::until("the group's positions count", LIMIT, || {
            let text = kafka_tool("kafka-consumer-groups", &arguments, "")?;
            let lags = text.lines().filter(|line| line.contains(&from));
            let lags: Vec<_> = lags.map(|line| line.split_whitespace().nth(5)).collect();
            ensure!(lags == [Some("0"), Some("0")], "{client:?}: {text}");
            Ok(())
        })
        .expect("all is consumed");
    }
}

/// Runs `kafka-transactions` on a node.
fn transactions(node: &Node, arguments: &[&str]) -> String {
    let mut all = vec!["--bootstrap-server".to_owned(), node.kafka()];
    all.extend(arguments.iter().map(|text| (*text).to_owned()));
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    kafka_tool("kafka-transactions", &all, "").expect("kafka-transactions")
}

#[test]
fn kafkas_tools_show_transactions_and_read_their_log() {
    let stage = stage(|launch| launch.set("transaction.state.log.num.partitions", 2));
    let node = &stage.node;
    create_kafka_topic(&node.kafka(), "tools", 2).expect("a topic");
    let mut kafka = Driver::start(Client::Kafka431, &node.kafka()).expect("a driver");
    producer(&mut kafka, "p", "open-id");
    producer(&mut kafka, "q", "done-id");
    transaction(&mut kafka, "q", "tools", &["a"], "commit");
    kafka.call("begin id=p").expect("a transaction");
    write(&mut kafka, "p", "tools", &["b", "c"]);
    let listed = wait::until("the markers are written", LIMIT, || {
        let listed = transactions(node, &["list"]);
        ensure!(listed.contains("CompleteCommit"), "{listed}");
        Ok(listed)
    })
    .expect("one is committed");
    let row = |text: &str, id: &str| {
        let line = text.lines().find(|line| line.contains(id)).map(str::to_owned);
        line.unwrap_or_else(|| panic!("no {id} in\n{text}"))
    };
    assert!(row(&listed, "open-id").contains("Ongoing"), "{listed}");
    assert!(row(&listed, "done-id").contains("CompleteCommit"), "{listed}");
    let matching = transactions(node, &["list", "--transactional-id-pattern", "open-.*"]);
    assert!(matching.contains("open-id") && !matching.contains("done-id"), "{matching}");
    let described = transactions(node, &["describe", "--transactional-id", "open-id"]);
    let described = row(&described, "open-id");
    assert!(described.contains("Ongoing") && described.contains("tools-0,tools-1"), "{described}");
    let producers =
        transactions(node, &["describe-producers", "--topic", "tools", "--partition", "1"]);
    assert!(producers.lines().count() >= 2, "{producers}");
    kafka.call("commit id=p").expect("committed");
    drop(kafka);
    let data = stage.launch.data_dir();
    assert!(stage.node.stop().expect("a stop").success());
    let mut decoded = String::new();
    for partition in 0..2 {
        let log = data.join(format!("__transaction_state-{partition}/00000000000000000000.log"));
        if log.exists() {
            let arguments = ["--transaction-log-decoder", "--files", &log.to_string_lossy()];
            decoded += &kafka_tool("kafka-dump-log", &arguments, "").expect("it reads the log");
        }
    }
    // States by number: ongoing, to be committed, committed.
    let states = [1, 2, 4].map(|state| format!("\"transactionStatus\":{state}"));
    let ids = ["open-id", "done-id", "\"topic\":\"tools\""].map(str::to_owned);
    for text in ids.iter().chain(&states) {
        assert!(decoded.contains(text), "no {text} in\n{decoded}");
    }
}

/// Design's promise 4 for transactions: once EndTxn is answered the transaction ends so, whatever happens to the node.
#[test]
fn a_transaction_cut_between_its_decision_and_its_markers_is_completed_by_the_next_start() {
    let stage = stage(|launch| launch.flag("--control"));
    let (node, launch) = (stage.node, stage.launch);
    create_kafka_topic(&node.kafka(), "cut", 2).expect("a topic");
    let mut ended = Vec::new();
    for (client, end) in [(Client::Kafka431, "commit"), (Client::Kafka282, "abort")] {
        let mut kafka = Driver::start(client, &node.kafka()).expect("a driver");
        producer(&mut kafka, "p", &format!("cut-{end}"));
        kafka.call("begin id=p").expect("a transaction");
        write(&mut kafka, "p", "cut", &[end, &format!("{end} too")]);
        ended.push((kafka, end));
    }
    let arm = json!({"arm": {"point": "txn.marker.before", "action": "hold"}});
    http::gates(&node.http(), &arm).expect("a gate");
    for (kafka, end) in &mut ended {
        kafka.call(&format!("{end} id=p")).expect("it is decided");
    }
    drop(ended);
    node.kill().expect("kill -9");
    let node = launch.start().expect("a node");
    let mut kafka = Driver::start(Client::Kafka431, &node.kafka()).expect("a driver");
    wait::until("both transactions are completed", LIMIT, || {
        let listed = transactions(&node, &["list"]);
        let states = ["CompleteCommit", "CompleteAbort"];
        ensure!(states.iter().all(|state| listed.contains(state)), "{listed}");
        Ok(())
    })
    .expect("the next start completes them");
    let committed = hexed(&["commit", "commit too"]);
    assert_eq!(read(&mut kafka, "cut", "read_committed"), committed);
    // Nobody is left to hold anything up.
    producer(&mut kafka, "p", "cut-abort");
    transaction(&mut kafka, "p", "cut", &["next"], "commit");
    let committed = hexed(&["commit", "commit too", "next"]);
    assert_eq!(read(&mut kafka, "cut", "read_committed"), committed);
}
