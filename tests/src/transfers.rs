//! Transfers between accounts, made in transactions by a worker while the node and the worker are killed; judged by what
//! stock readers of both protocols see afterwards.
//!
//! A transfer is a record of [`ORDERS`]; the worker (`tests/interop/java/TransferWorker.java`) makes of it one record in
//! [`DEBITS`] and one in [`CREDITS`], in one transaction with its position, which it calls an attempt.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::cluster::{Launch, Node};
use crate::groups::EAGER;
use crate::hex::{hex, unhex};
use crate::http;
use crate::program::Program;
use crate::stock::{self, Client, Driver};
use crate::topics::{await_stable, create_kafka_topic};
use crate::wait;

const ORDERS: &str = "orders";
const DEBITS: &str = "debits";
const CREDITS: &str = "credits";
const PARTITIONS: i32 = 2;
const ACCOUNTS: usize = 7;
/// Ordered before each crash: some eight transactions of five, so that there is always one to be cut.
const ORDERED_EACH: usize = 40;
/// Every such attempt of a worker is aborted by itself.
const ABORT_EVERY: &str = "4";
const LIMIT: Duration = Duration::from_secs(300);

/// When something is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// While a partition is about to be added to a transaction.
    Adding,
    /// While the end of a transaction is asked for.
    Ending,
    /// While a transaction is decided, but one of its markers not written.
    Marking,
    /// After some more transactions, wherever the next one is.
    Anywhere,
}

impl Moment {
    /// The gate that holds it.
    fn point(self) -> Option<&'static str> {
        match self {
            Self::Adding => Some("txn.add"),
            Self::Ending => Some("txn.end.recv"),
            Self::Marking => Some("txn.marker.before"),
            Self::Anywhere => None,
        }
    }
}

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    Node,
    Worker,
    Both,
}

/// One crash: what is killed, when, and at the how manieth passing.
#[derive(Clone, Copy, Debug)]
pub struct Crash {
    pub victim: Victim,
    pub moment: Moment,
    pub nth: u64,
}

/// A record as a reader tells it: topic, partition, offset, value in hex.
type Entry = (String, i64, i64, String);

/// A node, a worker on it, readers that live through all crashes, and what must come out.
pub struct Bank {
    launch: Launch,
    node: Option<Node>,
    worker: Option<Program>,
    workers: usize,
    kafka: Driver,
    push: Driver,
    ordered: usize,
    /// Attempts that the workers said they had committed, and those they were to abort.
    committed: BTreeSet<String>,
    aborted: BTreeSet<String>,
}

impl Bank {
    /// A node with `--control` and a worker.
    pub fn open(launch: Launch) -> anyhow::Result<Self> {
        let launch = launch.flag("--control").set("group.initial.rebalance.delay.ms", 0);
        let node = launch.start()?;
        for topic in [ORDERS, DEBITS, CREDITS] {
            create_kafka_topic(&node.kafka(), topic, PARTITIONS)?;
        }
        let mut kafka = Driver::start(Client::Kafka431, &node.kafka())?;
        kafka.call("producer id=orders c.linger.ms=0")?;
        let mut push = Driver::start_with(Client::Rocketmq550, &node.namesrv(), EAGER)?;
        for topic in [DEBITS, CREDITS] {
            push.call(&format!("join name={topic} group=push_{topic} topic={topic}"))?;
        }
        let mut bank = Self {
            launch,
            node: Some(node),
            worker: None,
            workers: 0,
            kafka,
            push,
            ordered: 0,
            committed: BTreeSet::new(),
            aborted: BTreeSet::new(),
        };
        bank.start_worker()?;
        Ok(bank)
    }

    fn node(&self) -> anyhow::Result<&Node> {
        self.node.as_ref().context("a node")
    }

    fn worker(&mut self) -> anyhow::Result<&mut Program> {
        self.worker.as_mut().context("a worker")
    }

    /// The next worker, under the transactional id of all.
    fn start_worker(&mut self) -> anyhow::Result<()> {
        let mut command = stock::program(Client::Kafka431.name(), "TransferWorker");
        let name = format!("worker{}", self.workers);
        let address = self.node()?.kafka();
        command.args([&address, &name, "transfers", ORDERS, DEBITS, CREDITS, ABORT_EVERY]);
        self.workers += 1;
        self.worker = Some(Program::start(command)?);
        Ok(())
    }

    /// Orders some transfers more and kills while they are made; then all is started again.
    pub fn survive(&mut self, crash: Crash) -> anyhow::Result<()> {
        self.order()?;
        let held = match crash.moment.point() {
            Some(point) => Some(self.hold(point, crash.nth)?),
            None => {
                self.await_attempts(crash.nth)?;
                None
            }
        };
        if crash.victim != Victim::Node {
            let told = self.worker.take().context("a worker")?.kill()?;
            self.note(&told);
        }
        match held {
            _ if crash.victim != Victim::Worker => {
                self.node.take().context("a node")?.kill()?;
                self.node = Some(self.launch.start()?);
            }
            Some(gate) => {
                http::gates(&self.node()?.http(), &json!({ "release": gate }))?;
            }
            None => {}
        }
        if self.worker.is_none() {
            self.start_worker()?;
        }
        Ok(())
    }

    /// Writes orders: `transfer payer payee amount`.
    fn order(&mut self) -> anyhow::Result<()> {
        let orders = self.ordered..self.ordered + ORDERED_EACH;
        for number in orders {
            let (payer, payee) = accounts(number);
            let order = format!("t{number} {payer} {payee} {}", amount(number));
            let partition = number % usize::try_from(PARTITIONS)?;
            let record =
                format!("topic={ORDERS} partition={partition} value={}", hex(order.as_bytes()));
            self.kafka.tell(&format!("send id=orders {record}"))?;
        }
        let answers = self.kafka.call("flush id=orders")?;
        ensure!(answers.iter().all(|answer| answer["offset"].is_i64()), "{answers:?}");
        self.ordered += ORDERED_EACH;
        Ok(())
    }

    /// Waits until a new gate has caught its one passer; returns the gate.
    fn hold(&mut self, point: &str, nth: u64) -> anyhow::Result<Value> {
        let http = self.node()?.http();
        let arm = json!({ "arm": { "point": point, "action": "hold", "nth": nth } });
        let gate = http::gates(&http, &arm)?["gate"].clone();
        wait::until("a transaction is held", LIMIT, || {
            let listed = http::gates(&http, &json!("list"))?;
            let gates = listed["gates"].as_array().context("gates")?;
            let own = gates.iter().find(|one| one["gate"] == gate).context("the gate")?;
            ensure!(own["hits"] == 1, "{own}");
            Ok(())
        })
        .with_context(|| self.worker().map(|worker| worker.log()).unwrap_or_default())?;
        Ok(gate)
    }

    /// Waits until the worker has ended so many attempts more.
    fn await_attempts(&mut self, count: u64) -> anyhow::Result<()> {
        let worker = self.worker()?;
        let before = attempts(&worker.events()).count();
        wait::until("some transactions end", LIMIT, || {
            let after = attempts(&worker.events()).count();
            ensure!(u64::try_from(after - before)? >= count, "{before}, {after}");
            Ok(())
        })
        .with_context(|| worker.log())
    }

    fn note(&mut self, told: &[Value]) {
        for (event, attempt) in attempts(told) {
            let attempts =
                if event == "committed" { &mut self.committed } else { &mut self.aborted };
            attempts.insert(attempt.to_owned());
        }
    }

    /// Waits until every transfer is made, ends the worker and judges what every reader sees. Returns a line about it.
    pub fn close(mut self) -> anyhow::Result<String> {
        wait::until("every transfer is made", LIMIT, || {
            let made = self.read_kafka(CREDITS)?.len();
            ensure!(made >= self.ordered, "{made} of {}", self.ordered);
            Ok(())
        })
        .with_context(|| self.worker().map(|worker| worker.log()).unwrap_or_default())?;
        let told = self.worker.take().context("a worker")?.stop()?;
        self.note(&told);
        let kafka = self.node()?.kafka();
        let mut seen = BTreeSet::new();
        for topic in [DEBITS, CREDITS] {
            await_stable(&kafka, topic, PARTITIONS)?;
            let entries = self.read_kafka(topic)?;
            let records = entries.len();
            seen.extend(entries);
            ensure!(
                records == self.ordered,
                "{topic}: {records} records, {} ordered",
                self.ordered
            );
        }
        judge(&seen, self.ordered, &self.committed, &self.aborted)?;
        self.judge_rocketmq(&seen)?;
        let (committed, aborted) = (self.committed.len(), self.aborted.len());
        let told = (self.workers, self.ordered);
        Ok(format!(
            "{} workers, {} transfers: {committed} attempts committed, {aborted} aborted",
            told.0, told.1
        ))
    }

    fn read_kafka(&mut self, topic: &str) -> anyhow::Result<Vec<Entry>> {
        let lines =
            self.kafka.call(&format!("read topic={topic} c.isolation.level=read_committed"))?;
        lines.iter().map(entry).collect()
    }

    /// RocketMQ's readers see the same at the same places: by pull and lite pull now, by push all the time.
    fn judge_rocketmq(&mut self, seen: &BTreeSet<Entry>) -> anyhow::Result<()> {
        // The lite pull consumer tells no position behind the last marker.
        for topic in [DEBITS, CREDITS] {
            for partition in 0..PARTITIONS {
                let end = hex(b"end");
                let record = format!("topic={topic} partition={partition} value={end}");
                self.kafka.tell(&format!("send id=orders {record}"))?;
            }
        }
        let ends = self.kafka.call("flush id=orders")?.len();
        let whole = |entries: &BTreeSet<Entry>| -> anyhow::Result<()> {
            let records: BTreeSet<&Entry> =
                entries.iter().filter(|entry| entry.3 != hex(b"end")).collect();
            ensure!(
                entries.len() == records.len() + ends,
                "{} ends",
                entries.len() - records.len()
            );
            let all: BTreeSet<&Entry> = seen.iter().collect();
            let (more, less): (Vec<_>, Vec<_>) =
                (records.difference(&all).collect(), all.difference(&records).collect());
            ensure!(more.is_empty() && less.is_empty(), "beside: {more:?}, lacking: {less:?}");
            Ok(())
        };
        for via in ["pull", "lite"] {
            let mut entries = Vec::new();
            for topic in [DEBITS, CREDITS] {
                let lines = self.push.call(&format!("read topic={topic} via={via}"))?;
                entries.extend(lines.iter().map(entry).collect::<anyhow::Result<Vec<_>>>()?);
            }
            whole(&entries.into_iter().collect()).context(via)?;
        }
        wait::until("the push consumer has everything", LIMIT, || {
            let pushed: anyhow::Result<BTreeSet<Entry>> =
                self.push.events().iter().map(entry).collect();
            whole(&pushed?)
        })
    }
}

/// Each transfer is in both topics once, by one attempt, which nobody aborted; each committed attempt is there.
fn judge(
    seen: &BTreeSet<Entry>,
    ordered: usize,
    committed: &BTreeSet<String>,
    aborted: &BTreeSet<String>,
) -> anyhow::Result<()> {
    let mut made: BTreeMap<(String, &str), String> = BTreeMap::new();
    let mut visible = BTreeSet::new();
    for (topic, _, _, value) in seen {
        let text = unhex(value)?;
        let words: Vec<&str> = text.split(' ').collect();
        let [transfer, attempt, told] = words[..] else { anyhow::bail!("{text}") };
        ensure!(!aborted.contains(attempt), "{topic} shows {text}, which was aborted");
        let number = transfer.trim_start_matches('t').parse()?;
        ensure!(told == amount(number).to_string(), "{topic}: {text}");
        visible.insert(attempt.to_owned());
        let twin = made.insert((transfer.to_owned(), topic), attempt.to_owned());
        ensure!(twin.is_none(), "{topic} has {transfer} by {twin:?} and by {attempt}");
    }
    for number in 0..ordered {
        let of = |topic| made.get(&(format!("t{number}"), topic));
        let (debit, credit) = (of(DEBITS), of(CREDITS));
        ensure!(debit.is_some() && debit == credit, "t{number}: {debit:?}, {credit:?}");
    }
    let lost: Vec<_> = committed.difference(&visible).collect();
    ensure!(lost.is_empty(), "committed, but not seen: {lost:?}");
    Ok(())
}

/// `committed` or `aborting`, and the attempt.
fn attempts(events: &[Value]) -> impl Iterator<Item = (&str, &str)> {
    let told =
        events.iter().filter_map(|event| Some((event["event"].as_str()?, event["what"].as_str()?)));
    told.filter(|(event, _)| *event != "failed")
}

fn entry(line: &Value) -> anyhow::Result<Entry> {
    let text = |name: &str| line[name].as_str().map(str::to_owned).context("a record");
    let number = |name: &str| line[name].as_i64().context("a record");
    Ok((text("topic")?, number("partition")?, number("offset")?, text("value")?))
}

/// Who pays and who is paid.
fn accounts(number: usize) -> (String, String) {
    let payer = number % ACCOUNTS;
    let payee = (payer + 1 + number / ACCOUNTS % (ACCOUNTS - 1)) % ACCOUNTS;
    (format!("account{payer}"), format!("account{payee}"))
}

fn amount(number: usize) -> usize {
    1 + number * 31 % 97
}

#[cfg(test)]
mod tests;
