//! What every Kafka client is asked to do, whatever its language and version.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::groups::{self, Share, each_came_once, join_and_leave};
use crate::hex::hex;
use crate::matrix::{self, Cell};
use crate::stock::{Client, Driver};
use crate::topics::{await_stable, create_kafka_topic};
use crate::wait;

const LIMIT: Duration = Duration::from_secs(60);

/// One thing that a client is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Case {
    /// Reads back what it wrote with every compression: keys, values, headers, timestamps.
    Records,
    /// A second member joins and leaves; each record comes exactly once.
    Group,
    /// Commits and aborts; `read_committed` sees what is committed and nothing else.
    Transactions,
    /// A second producer of a transactional id fences the first.
    Fencing,
    /// Consume, transform, produce with aborts among it: each record is copied once.
    Copy,
    /// Creates, describes, lists and deletes a topic.
    Administration,
}

impl Case {
    pub const ALL: [Self; 6] = [
        Self::Records,
        Self::Group,
        Self::Transactions,
        Self::Fencing,
        Self::Copy,
        Self::Administration,
    ];

    /// Whether the client can be asked for it at all.
    pub fn suits(self, client: Client) -> bool {
        match self {
            Self::Transactions | Self::Fencing | Self::Copy => client.has_transactions(),
            Self::Records | Self::Group | Self::Administration => true,
        }
    }

    fn run(self, client: Client, kafka: &str) -> anyhow::Result<String> {
        match self {
            Self::Records => records(client, kafka),
            Self::Group => group(client, kafka),
            Self::Transactions => transactions(client, kafka),
            Self::Fencing => fencing(client, kafka),
            Self::Copy => copy(client, kafka),
            Self::Administration => administration(client, kafka),
        }
    }
}

/// Clients × cases: what was seen, or what was wrong.
#[derive(Debug)]
pub struct Report {
    cases: Vec<Case>,
    outcomes: BTreeMap<(Client, Case), Result<String, String>>,
}

impl Report {
    /// Asks each client for those of the cases that suit it, against the node at this bootstrap address.
    pub fn of(clients: &[Client], cases: &[Case], kafka: &str) -> Self {
        let mut outcomes = BTreeMap::new();
        for client in clients.iter().copied() {
            for case in cases.iter().copied().filter(|case| case.suits(client)) {
                let outcome = case.run(client, kafka).map_err(|error| format!("{error:#}"));
                outcomes.insert((client, case), outcome);
            }
        }
        Self { cases: cases.to_vec(), outcomes }
    }

    /// A line for each client, a column for each case, and what was wrong below.
    pub fn text(&self) -> String {
        let mut text = format!("{:<14}", "client");
        for case in &self.cases {
            let _ = write!(text, " {:>20}", format!("{case:?}"));
        }
        let mut clients: Vec<Client> = self.outcomes.keys().map(|(client, _)| *client).collect();
        clients.dedup();
        let mut faults = String::new();
        for client in clients {
            let _ = write!(text, "\n{:<14}", client.name());
            for case in self.cases.iter().copied() {
                let word = match self.outcomes.get(&(client, case)) {
                    Some(Ok(seen)) => seen,
                    Some(Err(fault)) => {
                        let _ = write!(faults, "\n{} {case:?}: {fault}", client.name());
                        "WRONG"
                    }
                    None => "has none",
                };
                let _ = write!(text, " {word:>20}");
            }
        }
        text + "\n" + &faults
    }

    /// Fails unless every case that was asked for and suits one of these clients is there and went well.
    pub fn complete(&self, clients: &[Client]) -> anyhow::Result<()> {
        for client in clients {
            for case in self.cases.iter().copied().filter(|case| case.suits(*client)) {
                let outcome = self.outcomes.get(&(*client, case));
                let outcome = outcome.with_context(|| format!("no {case:?} of {client:?}"))?;
                ensure!(outcome.is_ok(), "{client:?} {case:?}: {outcome:?}");
            }
        }
        Ok(())
    }
}

/// A name of its own for what one case of one client makes.
fn named(what: &str, client: Client) -> String {
    format!("{what}_{}", client.name().replace(['.', '-'], "_"))
}

/// KPR-01: exact bodies, keys and headers under every compression.
fn records(client: Client, kafka: &str) -> anyhow::Result<String> {
    let cells = Cell::all(&[client]);
    for cell in &cells {
        create_kafka_topic(kafka, &cell.topic(), matrix::PARTITIONS)?;
    }
    let table = matrix::Table::fill(&[(client, kafka.to_owned())])?;
    table.complete(&[client], |_, _| false)?;
    Ok(format!("{} compressions", cells.len()))
}

/// KCO-02, KCO-04: shares change as a member comes and goes, and each record comes to one of the two, once.
fn group(client: Client, kafka: &str) -> anyhow::Result<String> {
    let topic = named("group", client);
    create_kafka_topic(kafka, &topic, groups::PARTITIONS)?;
    let mut drivers = vec![Driver::start(client, kafka)?, Driver::start(client, kafka)?];
    join_and_leave(&mut drivers, &format!("of_{topic}"), &topic, Share::Even)?;
    each_came_once(&drivers)?;
    Ok("16, 8/8, 16".to_owned())
}

/// A transactional producer that has initialized its transactions.
fn producer(driver: &mut Driver, transactional_id: &str) -> anyhow::Result<()> {
    let config = format!("c.transactional.id={transactional_id} c.linger.ms=5");
    driver.call(&format!("producer id=p {config}"))?;
    driver.call("init id=p")?;
    Ok(())
}

/// Writes values in turn to two partitions; in a transaction if the producer has begun one.
fn write(driver: &mut Driver, id: &str, topic: &str, values: &[&str]) -> anyhow::Result<()> {
    for (number, value) in values.iter().enumerate() {
        let value = hex(value.as_bytes());
        let record = format!("topic={topic} partition={} value={value}", number % 2);
        driver.tell(&format!("send id={id} {record}"))?;
    }
    let answers = driver.call(&format!("flush id={id}"))?;
    ensure!(answers.len() == values.len(), "{answers:?}");
    ensure!(answers.iter().all(|answer| answer["offset"].is_i64()), "{answers:?}");
    Ok(())
}

/// One transaction with these values, ended by `end`.
fn transaction(driver: &mut Driver, topic: &str, values: &[&str], end: &str) -> anyhow::Result<()> {
    driver.call("begin id=p")?;
    write(driver, "p", topic, values)?;
    driver.call(&format!("{end} id=p"))?;
    Ok(())
}

/// Ends both partitions with a plain record: some consumers show no position behind the last marker.
fn close(driver: &mut Driver, topic: &str) -> anyhow::Result<()> {
    driver.call("producer id=plain")?;
    write(driver, "plain", topic, &["end", "end"])?;
    driver.call("close id=plain")?;
    Ok(())
}

/// Fails unless the topic has these values, in any order, and the plain ones of [`close`].
fn reads(driver: &mut Driver, topic: &str, isolation: &str, values: &[&str]) -> anyhow::Result<()> {
    let ends = ["end", "end"].into_iter();
    let mut expected: Vec<String> =
        values.iter().copied().chain(ends).map(|value| hex(value.as_bytes())).collect();
    expected.sort();
    let lines = driver.call(&format!("read topic={topic} c.isolation.level={isolation}"))?;
    let value = |line: &Value| line["value"].as_str().unwrap_or_default().to_owned();
    let mut found: Vec<String> = lines.iter().map(value).collect();
    found.sort();
    ensure!(found == expected, "{isolation}: {found:?} instead of {expected:?}");
    Ok(())
}

/// KTX-01, KTX-04.
fn transactions(client: Client, kafka: &str) -> anyhow::Result<String> {
    let topic = named("txn", client);
    create_kafka_topic(kafka, &topic, 2)?;
    let mut driver = Driver::start(client, kafka)?;
    producer(&mut driver, &topic)?;
    transaction(&mut driver, &topic, &["a", "b", "c"], "commit")?;
    transaction(&mut driver, &topic, &["d", "e"], "abort")?;
    transaction(&mut driver, &topic, &["f"], "commit")?;
    transaction(&mut driver, &topic, &["g"], "abort")?;
    close(&mut driver, &topic)?;
    await_stable(kafka, &topic, 2)?;
    reads(&mut driver, &topic, "read_committed", &["a", "b", "c", "f"])?;
    reads(&mut driver, &topic, "read_uncommitted", &["a", "b", "c", "d", "e", "f", "g"])?;
    driver.call("close id=p")?;
    Ok("4 of 7 committed".to_owned())
}

/// KTX-02: what the first producer had open is aborted, and it cannot end it any more.
fn fencing(client: Client, kafka: &str) -> anyhow::Result<String> {
    let topic = named("fenced", client);
    create_kafka_topic(kafka, &topic, 2)?;
    let mut zombie = Driver::start(client, kafka)?;
    producer(&mut zombie, &topic)?;
    zombie.call("begin id=p")?;
    write(&mut zombie, "p", &topic, &["lost"])?;
    let mut heir = Driver::start(client, kafka)?;
    producer(&mut heir, &topic)?;
    transaction(&mut heir, &topic, &["kept"], "commit")?;
    let refused = zombie.call("commit id=p").err().context("the first producer could commit")?;
    let told = format!("{refused:#}").to_lowercase();
    // 47, 90: sarama names codes that it does not know by number.
    let words = ["fenced", "epoch", "newer producer", "code = 47", "code = 90"];
    ensure!(words.iter().any(|word| told.contains(word)), "{told}");
    close(&mut heir, &topic)?;
    await_stable(kafka, &topic, 2)?;
    reads(&mut heir, &topic, "read_committed", &["kept"])?;
    Ok("fenced".to_owned())
}

/// KTX-01: every third transaction of the copy is aborted, and nothing is lost or doubled.
fn copy(client: Client, kafka: &str) -> anyhow::Result<String> {
    let (from, to) = (named("from", client), named("to", client));
    create_kafka_topic(kafka, &from, 2)?;
    create_kafka_topic(kafka, &to, 2)?;
    let mut driver = Driver::start(client, kafka)?;
    let values: Vec<String> = (0..40).map(|number| format!("{number:02}")).collect();
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    driver.call("producer id=source")?;
    write(&mut driver, "source", &from, &values)?;
    driver.call("close id=source")?;
    producer(&mut driver, &to)?;
    let told = driver
        .call(&format!("transform id=p group=of_{to} from={from} to={to} count=40 abort=3"))?;
    let told = told.first().context("an answer")?;
    ensure!(told["copied"] == 40 && told["aborted"].as_i64() > Some(0), "{told}");
    close(&mut driver, &to)?;
    await_stable(kafka, &to, 2)?;
    reads(&mut driver, &to, "read_committed", &values)?;
    Ok(format!("40, aborts: {}", told["aborted"]))
}

/// KCL-01, KCL-02 by a client's own admin calls: a topic from its creation to its end.
fn administration(client: Client, kafka: &str) -> anyhow::Result<String> {
    let topic = named("admin", client);
    let mut driver = Driver::start(client, kafka)?;
    driver.call(&format!("create topic={topic} partitions=5 key=retention.ms value=123456789"))?;
    listed(&mut driver, &topic, true)?;
    let described = driver.call(&format!("describe topic={topic} key=retention.ms"))?;
    let described = described.first().context("a description")?;
    let right = described["partitions"] == 5 && described["value"] == "123456789";
    ensure!(right, "{described}");
    driver.call(&format!("delete topic={topic}"))?;
    listed(&mut driver, &topic, false)?;
    Ok("5 partitions".to_owned())
}

/// Waits until the client's list of topics has the topic, or has it no more.
fn listed(driver: &mut Driver, topic: &str, wanted: bool) -> anyhow::Result<()> {
    wait::until("the list of topics is right", LIMIT, || {
        let told = driver.call("topics")?;
        let topics = told.first().and_then(|line| line["topics"].as_array());
        let found = topics.context("a list")?.iter().any(|name| *name == *topic);
        ensure!(found == wanted, "listed: {found}");
        Ok(())
    })
}
