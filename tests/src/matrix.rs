//! Every producer × every compression × every consumer of the stock clients.
//!
//! A cell is one topic, written by one client with one compression ([`Cell::records`]) and read by
//! every client. The readers' lines are judged against what docs/differences.md and `duolog explain
//! mapping` promise ([`expect`]).

pub mod expect;
pub mod record;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::thread;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::cluster::Node;
use crate::show;
use crate::stock::{Client, Driver};
use crate::topics::{create_kafka_topic, create_rocketmq_topic};
use record::{Mode, Record};

/// Partitions of each cell's topic; the last one stays empty.
pub const PARTITIONS: i32 = 3;

/// One topic, and who writes it how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    pub writer: Client,
    pub compression: &'static str,
}

impl Cell {
    /// Every producer × every compression it has, of these clients.
    pub fn all(writers: &[Client]) -> Vec<Self> {
        let cells = writers.iter().map(|writer| {
            writer.compressions().iter().map(|compression| Self { writer: *writer, compression })
        });
        cells.flatten().collect()
    }

    /// A name that both protocols allow.
    pub fn topic(self) -> String {
        format!("matrix_{}_{}", self.writer.name().replace('.', "_"), self.compression)
    }

    /// What is written, in the order of the sends.
    pub fn records(self) -> Vec<Record> {
        if !self.writer.speaks_kafka() {
            return record::of_rocketmq();
        }
        let mut records = record::of_kafka();
        for record in &mut records {
            if !self.writer.writes_null_headers() {
                record.headers.retain(|(_, value)| value.is_some());
            }
            if !self.writer.orders_headers() {
                record.headers = grouped(&record.headers);
            }
        }
        records
    }
}

/// Headers of one name together, in the order of the names' first: what a map keeps of them.
pub fn grouped<T: Clone>(headers: &[(String, T)]) -> Vec<(String, T)> {
    let mut headers = headers.to_vec();
    let names: Vec<String> = headers.iter().map(|(name, _)| name.clone()).collect();
    headers.sort_by_key(|(name, _)| names.iter().position(|one| one == name));
    headers
}

/// How a client reads a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reader {
    pub client: Client,
    /// `read`'s `via=`: RocketMQ clients from 4.6 on have two pull consumers.
    pub via: &'static str,
}

impl Reader {
    /// Every way to read that the client has.
    pub fn all(client: Client) -> Vec<Self> {
        let ways: &[&str] = match client {
            Client::Rocketmq550 | Client::Rocketmq498 => &["pull", "lite"],
            Client::Rocketmq440 => &["pull"],
            _ => &["assign"],
        };
        ways.iter().map(|via| Self { client, via }).collect()
    }

    fn name(self) -> String {
        format!("{}/{}", self.client.name(), self.via)
    }
}

/// How a (cell, reader) pair went: the number of records that were right, or what was wrong.
pub type Outcome = Result<usize, String>;

/// All outcomes of a run.
#[derive(Debug, Default)]
pub struct Table {
    outcomes: BTreeMap<(Cell, Reader), Outcome>,
}

impl Table {
    /// One JVM for each client: all write their cells at once, then all read all cells. The topics
    /// must exist.
    pub fn fill(clients: &[(Client, String)]) -> anyhow::Result<Self> {
        let mut drivers = Vec::new();
        for (client, address) in clients {
            drivers.push(Driver::start(*client, address)?);
        }
        let names: Vec<Client> = clients.iter().map(|(client, _)| *client).collect();
        let cells = Cell::all(&names);
        in_parallel(&mut drivers, |driver| {
            let client = driver.client();
            let own = cells.iter().filter(|cell| cell.writer == client);
            own.map(|cell| write(driver, *cell)).collect::<anyhow::Result<Vec<()>>>()
        })?;
        let found = in_parallel(&mut drivers, |driver| {
            let mut found = Vec::new();
            for reader in Reader::all(driver.client()) {
                for cell in &cells {
                    found.push(((*cell, reader), read(driver, *cell, reader)));
                }
            }
            Ok(found)
        })?;
        Ok(Self { outcomes: found.into_iter().flatten().collect() })
    }

    /// A line for each cell, a column for each reader, and what was wrong below.
    pub fn text(&self) -> String {
        let readers: Vec<Reader> = {
            let mut readers: Vec<_> = self.outcomes.keys().map(|(_, reader)| *reader).collect();
            readers.sort();
            readers.dedup();
            readers
        };
        let mut text = format!("{:<24}", "written by");
        for reader in &readers {
            let _ = write!(text, " {:>19}", reader.name());
        }
        let mut faults = String::new();
        let mut last = None;
        for ((cell, reader), outcome) in &self.outcomes {
            if last.replace(*cell) != Some(*cell) {
                let _ = write!(
                    text,
                    "\n{:<24}",
                    format!("{} {}", cell.writer.name(), cell.compression)
                );
            }
            let word = match outcome {
                Ok(count) => count.to_string(),
                Err(_) => "WRONG".to_owned(),
            };
            let _ = write!(text, " {word:>19}");
            if let Err(fault) = outcome {
                let _ = write!(faults, "\n{} read by {}: {fault}", cell.topic(), reader.name());
            }
        }
        text + "\n" + &faults
    }

    /// Fails unless every producer × compression × reader of these clients is there and right, but
    /// for what is `lost` (only a peer loses something).
    pub fn complete(
        &self,
        clients: &[Client],
        lost: impl Fn(Cell, Reader) -> bool,
    ) -> anyhow::Result<()> {
        for cell in Cell::all(clients) {
            for reader in clients.iter().flat_map(|client| Reader::all(*client)) {
                let outcome = self.outcomes.get(&(cell, reader));
                let outcome = outcome.with_context(|| format!("no cell {cell:?} {reader:?}"))?;
                ensure!(
                    outcome.is_err() == lost(cell, reader),
                    "{} by {}: {outcome:?}",
                    cell.topic(),
                    reader.name()
                );
            }
        }
        Ok(())
    }
}

/// Each of these producers × each compression it has × each of these consumers on one node, shown as a table:
/// fails unless every cell is right.
pub fn judge_node(node: &Node, clients: &[Client]) -> anyhow::Result<()> {
    for cell in Cell::all(clients) {
        let topic = cell.topic();
        if cell.writer.speaks_kafka() {
            create_kafka_topic(&node.kafka(), &topic, PARTITIONS)?;
        } else {
            create_rocketmq_topic(&node.broker(), &node.namesrv(), &topic, PARTITIONS)?;
        }
    }
    let address = |client: &Client| {
        let address = if client.speaks_kafka() { node.kafka() } else { node.namesrv() };
        (*client, address)
    };
    let table = Table::fill(&clients.iter().map(address).collect::<Vec<_>>())?;
    show(&table.text())?;
    table.complete(clients, |_, _| false)
}

/// Runs `work` for every driver at once; the first failure is the result.
fn in_parallel<T: Send>(
    drivers: &mut [Driver],
    work: impl Fn(&mut Driver) -> anyhow::Result<T> + Sync,
) -> anyhow::Result<Vec<T>> {
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> =
            drivers.iter_mut().map(|driver| scope.spawn(move || work(driver))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic in a driver's thread"))
            .collect()
    })
}

fn write(driver: &mut Driver, cell: Cell) -> anyhow::Result<()> {
    let topic = cell.topic();
    let records = cell.records();
    driver.call(&format!("producer id={topic} compression={}", cell.compression))?;
    for record in &records {
        driver.tell(&format!("send id={topic} topic={topic} {}", record.command()))?;
    }
    let answers = driver.call(&format!("flush id={topic}"))?;
    let answered: Vec<&Record> = records.iter().filter(|one| one.mode != Mode::Oneway).collect();
    let batch = answered.iter().filter(|one| one.mode == Mode::Batch).count();
    // A batch of RocketMQ has one answer, with the offset of its first message.
    let expected = answered.len() - batch.saturating_sub(1);
    ensure!(answers.len() == expected, "{topic}: {} answers to {expected} sends", answers.len());
    for (answer, record) in answers.iter().zip(answered) {
        let place = (answer["partition"].as_i64(), answer["offset"].as_i64());
        ensure!(
            place == (Some(record.partition.into()), Some(record.offset)),
            "{topic}: {answer} for partition {} offset {}",
            record.partition,
            record.offset
        );
    }
    for record in records.iter().filter(|one| one.mode == Mode::Oneway) {
        let end = record.offset + 1;
        driver.call(&format!("await topic={topic} queue={} end={end}", record.partition))?;
    }
    driver.call(&format!("close id={topic}"))?;
    Ok(())
}

fn read(driver: &mut Driver, cell: Cell, reader: Reader) -> Outcome {
    let lines = driver
        .call(&format!("read topic={} via={}", cell.topic(), reader.via))
        .map_err(|error| format!("{error:#}"))?;
    judge(cell, reader, &lines).map_err(|error| format!("{error:#}"))
}

/// Each partition in order, from offset 0, nothing missing and nothing more, each record as
/// promised.
fn judge(cell: Cell, reader: Reader, lines: &[Value]) -> anyhow::Result<usize> {
    let mut seen: BTreeMap<i64, Vec<&Value>> = BTreeMap::new();
    for line in lines {
        seen.entry(line["partition"].as_i64().context("a partition")?).or_default().push(line);
    }
    for partition in 0..PARTITIONS {
        let records = cell.records();
        let written: Vec<&Record> =
            records.iter().filter(|record| record.partition == partition).collect();
        let read = seen.remove(&i64::from(partition)).unwrap_or_default();
        ensure!(
            read.len() == written.len(),
            "partition {partition}: {} records instead of {}",
            read.len(),
            written.len()
        );
        for (line, record) in read.iter().zip(written) {
            ensure!(line["offset"] == record.offset, "{line} where {} is next", record.offset);
            expect::check(cell, reader, record, line)
                .with_context(|| format!("partition {partition} offset {}", record.offset))?;
        }
    }
    ensure!(seen.is_empty(), "partitions that the topic does not have: {:?}", seen.keys());
    Ok(lines.len())
}
