//! MirrorMaker 2 copies topics and the positions of groups from a real Kafka into Duolog, and back.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use duolog_tests::cluster::Launch;
use duolog_tests::hex::hex;
use duolog_tests::peer::Peer;
use duolog_tests::program::Program;
use duolog_tests::stock::{Client, Driver, kafka_tool_in, program, turn};
use duolog_tests::topics::create_kafka_topic;
use duolog_tests::wait;
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(300);
const PARTITIONS: usize = 2;
const RECORDS_EACH: usize = 50;

fn mirror(folder: &Path, real: &str, duolog: &str) -> anyhow::Result<Program> {
    let mut lines = vec![
        "clusters=real,duolog".to_owned(),
        format!("real.bootstrap.servers={real}"),
        format!("duolog.bootstrap.servers={duolog}"),
        "real->duolog.enabled=true".to_owned(),
        "real->duolog.topics=born.in.real".to_owned(),
        "duolog->real.enabled=true".to_owned(),
        "duolog->real.topics=born.in.duolog".to_owned(),
        "groups=readers".to_owned(),
        "sync.group.offsets.enabled=true".to_owned(),
        "plugin.discovery=service_load".to_owned(),
        // Every record's place is told, so that positions are translated to the record.
        "offset.lag.max=0".to_owned(),
    ];
    for topic in ["", "checkpoints.topic.", "heartbeats.topic.", "offset-syncs.topic."] {
        lines.push(format!("{topic}replication.factor=1"));
    }
    for topic in ["offset", "status", "config"] {
        lines.push(format!("{topic}.storage.replication.factor=1"));
    }
    for what in ["emit.checkpoints", "sync.group.offsets", "refresh.topics", "refresh.groups"] {
        lines.push(format!("{what}.interval.seconds=1"));
    }
    let path = folder.join("mirror.properties");
    fs::write(&path, lines.join("\n"))?;
    let mut command = program("connect-4.3.1", "org.apache.kafka.connect.mirror.MirrorMaker");
    command.arg(path);
    Program::start(command)
}

/// Where records are born, and where they are copied to.
struct Side {
    driver: Driver,
    address: String,
    topic: &'static str,
    /// What the other side calls the topic.
    copy: &'static str,
}

impl Side {
    fn open(address: String, topic: &'static str, copy: &'static str) -> anyhow::Result<Self> {
        create_kafka_topic(&address, topic, i32::try_from(PARTITIONS)?)?;
        let mut driver = Driver::start(Client::Kafka431, &address)?;
        driver.call("producer id=w c.linger.ms=5")?;
        Ok(Self { driver, address, topic, copy })
    }

    /// Writes records with keys, values and headers, numbered from `first` on.
    fn write(&mut self, first: usize) -> anyhow::Result<()> {
        for number in first..first + RECORDS_EACH {
            let text = |what: &str| hex(format!("{what} {number}").as_bytes());
            let place = format!("topic={} partition={}", self.topic, number % PARTITIONS);
            let content = format!("key={} value={}", text("key"), text("value"));
            let header = format!("h={}:{}", text("name"), text("header"));
            self.driver.tell(&format!("send id=w {place} {content} {header}"))?;
        }
        let answers = self.driver.call("flush id=w")?;
        ensure!(answers.iter().all(|answer| answer["offset"].is_i64()), "{answers:?}");
        Ok(())
    }

    fn read(&mut self, topic: &str) -> anyhow::Result<Vec<Value>> {
        let mut lines = self.driver.call(&format!("read topic={topic}"))?;
        for line in &mut lines {
            line["topic"] = Value::Null;
        }
        lines.sort_by_key(|line| (line["partition"].as_i64(), line["offset"].as_i64()));
        Ok(lines)
    }

    /// Reads a topic as a member of the group until it has so many records, and leaves; returns the values.
    fn read_as_group(
        &mut self,
        member: &str,
        topic: &str,
        count: usize,
    ) -> anyhow::Result<Vec<String>> {
        self.driver.call(&format!("join name={member} group=readers topics={topic}"))?;
        let values = wait::until("the group reads", LIMIT, || {
            let events = self.driver.events();
            let own = events.iter().filter(|event| event["member"] == member);
            let values: Vec<String> =
                own.filter_map(|event| Some(event["value"].as_str()?.to_owned())).collect();
            ensure!(values.len() >= count, "{} of {count}", values.len());
            Ok(values)
        })?;
        self.driver.call(&format!("leave name={member}"))?;
        Ok(values)
    }

    /// The group's positions on a topic, as `kafka-consumer-groups` tells them, summed.
    fn position(&mut self, topic: &str) -> anyhow::Result<i64> {
        let address = self.address.clone();
        let arguments = ["--bootstrap-server", &address, "--describe", "--group", "readers"];
        let (_, text) = kafka_tool_in(&mut self.driver, "kafka-consumer-groups", &arguments, "")?;
        let rows = text.lines().filter(|line| line.split_whitespace().nth(1) == Some(topic));
        let positions: Vec<i64> = rows
            .map(|row| row.split_whitespace().nth(3).and_then(|word| word.parse().ok()))
            .collect::<Option<_>>()
            .with_context(|| text.clone())?;
        ensure!(positions.len() == PARTITIONS, "{text}");
        Ok(positions.iter().sum())
    }
}

/// Waits until the other side has the same records at the same places.
fn await_copy(from: &mut Side, to: &mut Side, mirror: &mut Program) -> anyhow::Result<()> {
    let records = from.read(from.topic)?;
    wait::until("the copy is whole", LIMIT, || {
        mirror.lives()?;
        let copied = to.read(from.copy)?;
        ensure!(copied.len() >= records.len(), "{} of {}", copied.len(), records.len());
        ensure!(copied == records, "{copied:?} instead of {records:?}");
        Ok(())
    })
    .with_context(|| mirror.log())
}

/// Waits until the other side has the group's positions.
fn await_positions(
    from: &Side,
    to: &mut Side,
    count: usize,
    mirror: &mut Program,
) -> anyhow::Result<()> {
    wait::until("the positions are there", LIMIT, || {
        mirror.lives()?;
        let position = to.position(from.copy)?;
        ensure!(position == i64::try_from(count)?, "{position} of {count}");
        Ok(())
    })
    .with_context(|| mirror.log())
}

#[test]
fn mirror_maker_copies_topics_and_positions_from_a_real_kafka_and_back() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let (ours, theirs) = (folder.path().join("duolog"), folder.path().join("kafka"));
    for path in [&ours, &theirs] {
        fs::create_dir_all(path).expect("a folder");
    }
    let launch = Launch::new(&ours).expect("ports").set("group.initial.rebalance.delay.ms", 0);
    let node = launch.start().expect("a node");
    let peer = Peer::start(&theirs, &[]).expect("a real Kafka");
    let side = |address, topic, copy| Side::open(address, topic, copy).expect("a topic");
    let mut real = side(peer.kafka(), "born.in.real", "real.born.in.real");
    let mut duolog = side(node.kafka(), "born.in.duolog", "duolog.born.in.duolog");
    for side in [&mut real, &mut duolog] {
        side.write(0).expect("records");
        side.read_as_group("first", side.topic, RECORDS_EACH).expect("the group reads");
    }
    let mut process = mirror(folder.path(), &real.address, &duolog.address).expect("a mirror");
    await_copy(&mut real, &mut duolog, &mut process).expect("into Duolog");
    await_copy(&mut duolog, &mut real, &mut process).expect("back");
    await_positions(&real, &mut duolog, RECORDS_EACH, &mut process).expect("into Duolog");
    await_positions(&duolog, &mut real, RECORDS_EACH, &mut process).expect("back");
    // A mirror that comes back goes on where it was, and the group reads on where it was on the other side.
    process.terminate().expect("it stops");
    for side in [&mut real, &mut duolog] {
        side.write(RECORDS_EACH).expect("records");
    }
    let mut process = mirror(folder.path(), &real.address, &duolog.address).expect("a mirror");
    await_copy(&mut real, &mut duolog, &mut process).expect("into Duolog");
    await_copy(&mut duolog, &mut real, &mut process).expect("back");
    process.terminate().expect("it stops");
    let copies = (real.copy, duolog.copy);
    for (from, to) in [(copies.0, &mut duolog), (copies.1, &mut real)] {
        let mut values =
            to.read_as_group("second", from, RECORDS_EACH).expect("the group reads on");
        let mut expected: Vec<String> = (RECORDS_EACH..2 * RECORDS_EACH)
            .map(|number| hex(format!("value {number}").as_bytes()))
            .collect();
        values.sort();
        expected.sort();
        assert_eq!(values, expected, "{from}");
    }
}
