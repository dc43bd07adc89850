//! One of the servers under comparison: connections to it, and what it has called things.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::bindings::Bindings;
use super::script::Step;
use super::wire::Wire;
use crate::raw_client::Connection;

const LIMIT: Duration = Duration::from_secs(120);
/// Some requests a real Kafka never answers.
const SILENT: Duration = Duration::from_secs(30);
/// How long an answer may say that something is still under way.
const UNDER_WAY_LIMIT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(10);
/// A broker of Kafka's applies what its controller has committed a moment later, and no request tells when.
const APPLIED: Duration = Duration::from_millis(150);
/// COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT_TRANSACTIONS.
const UNDER_WAY: [i64; 4] = [14, 15, 16, 51];
const CHANGES: [&str; 9] = [
    "CreateTopics",
    "DeleteTopics",
    "CreatePartitions",
    "AlterConfigs",
    "IncrementalAlterConfigs",
    "AlterPartitionReassignments",
    "AlterClientQuotas",
    "AlterUserScramCredentials",
    "ElectLeaders",
];
/// The client name of every request.
const CLIENT: &str = "same";

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Duolog,
    Kafka,
}

/// A server and what is known of it.
pub struct Side {
    who: Who,
    address: String,
    wire: Wire,
    bindings: Bindings,
    connections: BTreeMap<u8, Connection>,
    /// Requests whose answers are taken later.
    open: BTreeMap<u8, Step>,
    next_id: i32,
}

fn clock_ms() -> anyhow::Result<i64> {
    Ok(i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?)
}

/// Every number in a field of error codes, and every text.
fn says(answer: &Value, wanted: &dyn Fn(&Value) -> bool) -> bool {
    match answer {
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            let counts = name.ends_with("ErrorCode") || value.is_string();
            (counts && wanted(value)) || says(value, wanted)
        }),
        Value::Array(all) => all.iter().any(|each| says(each, wanted)),
        _ => false,
    }
}

impl Side {
    /// A server at `host:port`.
    pub fn new(who: Who, address: &str) -> anyhow::Result<Self> {
        Ok(Self {
            who,
            address: address.to_owned(),
            wire: Wire::default(),
            bindings: Bindings::new(clock_ms()?),
            connections: BTreeMap::new(),
            open: BTreeMap::new(),
            next_id: 0,
        })
    }

    /// Compares the texts of errors too.
    pub fn keep_texts(&mut self) {
        self.bindings.keep_texts();
    }

    /// Has both kinds of coordinator ready, which clients wait for too.
    pub fn prepare(&mut self) -> anyhow::Result<()> {
        for kind in [0, 1] {
            let step = Step::new("FindCoordinator", 3, json!({"Key": "any", "KeyType": kind}));
            let start = Instant::now();
            while self.ask(&step)?["ErrorCode"] != 0 {
                ensure!(start.elapsed() < LIMIT, "no coordinator of kind {kind}");
                std::thread::sleep(PAUSE);
            }
        }
        let group = json!({"Groups": [{"GroupId": "any", "Topics": null}]});
        self.ask_until_settled(&Step::new("OffsetFetch", 8, group))?;
        let ids = json!({"TransactionalIds": ["any"]});
        self.ask_until_settled(&Step::new("DescribeTransactions", 0, ids))?;
        Ok(())
    }

    /// The masked answer to a step; `"closed"` when there is none because the server closed, `"none"`
    /// when none is due.
    pub fn perform(&mut self, step: &Step) -> anyhow::Result<Value> {
        if step.api == "Answer" {
            let open = self.open.remove(&step.connection).context("no request is open there")?;
            let answer = self.receive(&open)?;
            self.bindings.learn(&open, &answer);
            return Ok(self.bindings.mask(&answer));
        }
        if step.later {
            self.send(step)?;
            self.open.insert(step.connection, step.clone());
            return Ok("later".into());
        }
        let answer = self.ask_until_settled(step)?;
        self.bindings.learn(step, &answer);
        if self.who == Who::Kafka && CHANGES.contains(&step.api.as_str()) {
            std::thread::sleep(APPLIED);
        }
        if matches!(step.api.as_str(), "EndTxn" | "InitProducerId") {
            self.settle_transaction(step)?;
        }
        Ok(self.bindings.mask(&answer))
    }

    fn ask_until_settled(&mut self, step: &Step) -> anyhow::Result<Value> {
        let start = Instant::now();
        loop {
            let answer = self.ask(step)?;
            let under_way =
                |value: &Value| value.as_i64().is_some_and(|it| UNDER_WAY.contains(&it));
            let wanted =
                |value: &Value| Some(value.to_string().trim_matches('"')) == step.until.as_deref();
            let again = match &step.until {
                Some(_) => !says(&answer, &wanted) && start.elapsed() < LIMIT,
                None => says(&answer, &under_way) && start.elapsed() < UNDER_WAY_LIMIT,
            };
            if !again {
                return Ok(answer);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// An answer to EndTxn is not the end of what it began: waits until the markers are written.
    fn settle_transaction(&mut self, step: &Step) -> anyhow::Result<()> {
        let Some(id) = step.body["TransactionalId"].as_str() else { return Ok(()) };
        let ids = Step::new("DescribeTransactions", 0, json!({"TransactionalIds": [id]}));
        let start = Instant::now();
        loop {
            let answer = self.ask_until_settled(&ids)?;
            let state = answer["TransactionStates"][0]["TransactionState"].as_str();
            if !state.is_some_and(|state| state.starts_with("Prepare")) {
                return Ok(());
            }
            ensure!(start.elapsed() < LIMIT, "{id} stays {state:?}");
            std::thread::sleep(PAUSE);
        }
    }

    fn ask(&mut self, step: &Step) -> anyhow::Result<Value> {
        if self.send(step).is_err() {
            // Closed after an earlier answer: once more on a new connection.
            self.connections.remove(&step.connection);
            self.send(step)?;
        }
        if step.api == "Produce" && step.body["Acks"] == 0 && step.cut == 0 {
            return self.unanswered(step);
        }
        self.receive(step)
    }

    /// What follows a request that has no answer: the next one is answered, or the connection is closed.
    fn unanswered(&mut self, step: &Step) -> anyhow::Result<Value> {
        let probe = Step::new("ApiVersions", 0, json!({})).on(step.connection);
        if self.send(&probe).is_err() {
            self.connections.remove(&step.connection);
            return Ok("closed".into());
        }
        let answer = self.receive(&probe)?;
        Ok(if answer.is_string() { answer } else { "none".into() })
    }

    fn send(&mut self, step: &Step) -> anyhow::Result<()> {
        self.next_id += 1;
        let body = self.bindings.resolve(&step.body)?;
        let mut frame = self.wire.request(&step.api, step.version, self.next_id, CLIENT, &body);
        frame.truncate(frame.len().saturating_sub(step.cut).max(8));
        if !self.connections.contains_key(&step.connection) {
            let limit = if self.who == Who::Kafka { SILENT } else { LIMIT };
            self.connections.insert(step.connection, Connection::open(&self.address, limit)?);
        }
        let connection = self.connections.get_mut(&step.connection).context("just opened")?;
        connection.send_frame(&frame)
    }

    fn receive(&mut self, step: &Step) -> anyhow::Result<Value> {
        let connection = self.connections.get_mut(&step.connection).context("sent on it")?;
        let frame = match connection.receive_frame() {
            Ok(frame) => frame,
            Err(error) => {
                self.connections.remove(&step.connection);
                let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
                let timed_out =
                    matches!(kind, Some(io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut));
                return Ok(if timed_out { "silent" } else { "closed" }.into());
            }
        };
        let (_, answer) = self
            .wire
            .response(&step.api, step.version, &frame)
            .with_context(|| format!("the answer of {:?} to {step}", self.who))?;
        Ok(answer)
    }
}
