//! Transactions that hang, found and ended by hand with `kafka-transactions`: one script for Duolog and for a real Kafka,
//! both with [`SETTINGS`].

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::ensure;
use duolog_log_core::ids::{ProducerEpoch, ProducerId};
use duolog_log_core::record::{BatchBuilder, BatchKind, BatchParams, NewRecord, ProducerSequence};
use kafka_protocol::messages::{FindCoordinatorRequest, InitProducerIdRequest, TransactionalId};
use kafka_protocol::protocol::StrBytes;

use crate::raw_client::Connection;
use crate::raw_kafka::{self, PRODUCE_VERSION};
use crate::stock::{Client, Driver, kafka_tool_in};
use crate::topics::{await_stable, create_kafka_topic};
use crate::wait;

/// Without the first nothing hangs; without the second records with old times may go meanwhile.
pub const SETTINGS: [(&str, &str); 2] =
    [("transaction.partition.verification.enable", "false"), ("log.retention.ms", "-1")];
/// What a real Kafka's tool printed, below the workspace.
pub const GOLDEN: &str = "tests/golden/kafka-transactions/hanging.txt";
const LIMIT: Duration = Duration::from_secs(120);
const TOPIC: &str = "hang";
const ACKS_ALL: i16 = -1;
/// A producer that no coordinator knows.
const STRANGER: (i64, i16) = (424_242, 3);
const TRANSACTION_KEY: i8 = 1;
/// Columns with times.
const TIMES: [&str; 4] =
    ["LastTimestamp", "Duration(min)", "CurrentTransactionStartTimeMs", "TransactionDurationMs"];

/// Leaves two transactions hanging and one open, and looks, finds and aborts; what the tool printed, step by step.
pub fn script(kafka: &str) -> anyhow::Result<String> {
    create_kafka_topic(kafka, TOPIC, 2)?;
    let mut connection = Connection::open(kafka, LIMIT)?;
    let known = producer_id(&mut connection, "hanging")?;
    hang(&mut connection, 0, known, "hanging")?;
    hang(&mut connection, 1, STRANGER, "unknown")?;
    let mut driver = Driver::start(Client::Kafka431, kafka)?;
    driver.call("producer id=p c.transactional.id=open c.linger.ms=0")?;
    driver.call("init id=p")?;
    driver.call("begin id=p")?;
    driver.tell(&format!("send id=p topic={TOPIC} partition=0 value=00"))?;
    driver.call("flush id=p")?;
    let mut steps = Steps { driver, kafka, known: known.0, text: String::new() };
    let find = ["find-hanging", "--broker-id", "1"];
    steps.run(&["list"])?;
    steps.run(&["describe", "--transactional-id", "hanging"])?;
    steps.run(&["describe", "--transactional-id", "open"])?;
    steps.run(&["describe", "--transactional-id", "missing"])?;
    steps.run(&["describe-producers", "--topic", TOPIC, "--partition", "0"])?;
    steps.run(&find)?;
    steps.run(&["find-hanging", "--topic", TOPIC, "--partition", "1"])?;
    steps.run(&["find-hanging"])?;
    steps.run(&["abort", "--topic", TOPIC, "--partition", "0", "--start-offset", "1"])?;
    let (id, epoch) = (STRANGER.0.to_string(), STRANGER.1.to_string());
    let by_hand = ["abort", "--topic", TOPIC, "--partition", "1", "--producer-id", &id];
    let older = ["--producer-epoch", "2", "--coordinator-epoch", "5"];
    steps.run(&[&by_hand[..], &older].concat())?;
    let right = ["--producer-epoch", &epoch, "--coordinator-epoch", "5"];
    steps.run(&[&by_hand[..], &right].concat())?;
    steps.run(&["abort", "--topic", TOPIC, "--partition", "0", "--start-offset", "0"])?;
    steps.run(&find)?;
    steps.run(&["describe-producers", "--topic", TOPIC, "--partition", "1"])?;
    steps.run(&["forceTerminateTransaction", "--transactionalId", "open"])?;
    await_stable(kafka, TOPIC, 2)?;
    steps.run(&["describe", "--transactional-id", "open"])?;
    steps.run(&["describe-producers", "--topic", TOPIC, "--partition", "0"])?;
    Ok(steps.text)
}

/// The lines that only one of two texts has.
pub fn difference(expected: &str, told: &str) -> String {
    let only = |one: &str, other: &str, mark: &str| {
        let lines = one.lines().filter(|line| !other.lines().any(|known| known == *line));
        lines.map(|line| format!("{mark} {line}\n")).collect::<String>()
    };
    only(expected, told, "-") + &only(told, expected, "+") + "in\n" + told
}

/// InitProducerId of a transactional id, once its coordinator is there.
fn producer_id(connection: &mut Connection, id: &str) -> anyhow::Result<(i64, i16)> {
    let key = StrBytes::from_string(id.to_owned());
    let find =
        FindCoordinatorRequest::default().with_key(key.clone()).with_key_type(TRANSACTION_KEY);
    let init = InitProducerIdRequest::default()
        .with_transactional_id(Some(TransactionalId(key)))
        .with_transaction_timeout_ms(60_000);
    wait::until("the transactional id's coordinator", LIMIT, || {
        let found = connection.kafka(2, &find)?;
        ensure!(found.error_code == 0, "FindCoordinator: error {}", found.error_code);
        let made = connection.kafka(4, &init)?;
        ensure!(made.error_code == 0, "InitProducerId: error {}", made.error_code);
        Ok((made.producer_id.0, made.producer_epoch))
    })
}

/// Two records in a transaction that no coordinator is told of, with times long past.
fn hang(
    connection: &mut Connection,
    partition: i32,
    (id, epoch): (i64, i16),
    transactional_id: &str,
) -> anyhow::Result<()> {
    let producer =
        ProducerSequence { id: ProducerId(id), epoch: ProducerEpoch(epoch), base_sequence: 0 };
    let kind = BatchKind::Transactional;
    let params = BatchParams { producer: Some(producer), kind, ..BatchParams::default() };
    let mut builder = BatchBuilder::new(params);
    for value in ["a", "b"] {
        let value = Some(value.as_bytes());
        builder.append(&NewRecord { timestamp: 1, key: None, value, headers: &[] })?;
    }
    let records = builder.finish_uncompressed()?.freeze();
    let named = TransactionalId(StrBytes::from_string(transactional_id.to_owned()));
    let request = raw_kafka::produce(TOPIC, partition, ACKS_ALL, records);
    let request = request.with_transactional_id(Some(named));
    let answer = raw_kafka::produced(connection.kafka(PRODUCE_VERSION, &request)?)?;
    ensure!(answer.error_code == 0, "Produce: error {}", answer.error_code);
    Ok(())
}

struct Steps<'a> {
    driver: Driver,
    kafka: &'a str,
    known: i64,
    text: String,
}

impl Steps<'_> {
    /// Runs the tool and notes arguments, exit code and what it printed.
    fn run(&mut self, arguments: &[&str]) -> anyhow::Result<()> {
        let all = [&["--bootstrap-server", self.kafka][..], arguments].concat();
        let (code, printed) = kafka_tool_in(&mut self.driver, "kafka-transactions", &all, "")?;
        writeln!(self.text, "$ {}", arguments.join(" "))?;
        for line in self.tidied(&printed) {
            writeln!(self.text, "{line}")?;
        }
        writeln!(self.text, "exit {code}")?;
        writeln!(self.text)?;
        Ok(())
    }

    /// Lines without padding, addresses, times and numbers that a node is free to choose; rows below a head sorted.
    fn tidied(&self, printed: &str) -> Vec<String> {
        let printed = printed.replace(self.kafka, "KAFKA");
        let mut lines = printed.lines().filter(|line| !line.trim_start().starts_with("at "));
        let mut tidied = Vec::new();
        let mut head = Vec::new();
        for line in &mut lines {
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.contains(&"ProducerId") {
                head = words;
                tidied.push(head.join(" "));
                break;
            }
            tidied.push(words.join(" "));
        }
        let mut rows = Vec::new();
        for line in lines {
            // Columns are parted by tabs; one of a table may be empty.
            let cells: Vec<&str> = line.split('\t').map(str::trim).collect();
            let cells = cells.iter().enumerate().map(|(at, cell)| {
                let column = head.get(at).copied().unwrap_or_default();
                match (column, *cell) {
                    (_, "None" | "") => *cell,
                    ("ProducerId", id) if id == self.known.to_string() => "KNOWN",
                    ("ProducerId", id) if id == STRANGER.0.to_string() => "STRANGER",
                    ("ProducerId", _) => "OPEN",
                    (column, _) if TIMES.contains(&column) => "~",
                    (_, cell) => cell,
                }
            });
            rows.push(cells.collect::<Vec<_>>().join(" | "));
        }
        rows.sort();
        tidied.extend(rows);
        tidied
    }
}
