//! What a seed asks: every key in every version, requests that are right, nearly right and wrong, and whole
//! ways of producers, groups and transactions between them.

mod draw;
mod flows;

use std::rc::Rc;

use serde_json::{Value, json};

use super::schema::Kind;
use super::script::Step;
use super::wire::Wire;
use crate::seed::Seeded;

/// Of those that each seed creates first.
const TOPICS: usize = 4;
const PARTITIONS: i64 = 3;

/// What a plan knows of a producer: what its next request should hold.
#[derive(Clone, Debug)]
struct Producer {
    name: String,
    transactional_id: Option<String>,
    /// By topic and partition.
    sequences: std::collections::BTreeMap<(String, i64), i64>,
}

/// Draws steps from a seed.
pub struct Plan {
    random: Seeded,
    wire: Rc<Wire>,
    /// In front of every name, so that seeds do not meet on a server.
    prefix: String,
    topics: Vec<String>,
    producers: Vec<Producer>,
    members: Vec<String>,
    groups: Vec<String>,
    made: usize,
    steps: Vec<Step>,
}

/// The first `count` steps, at least, of a seed.
pub fn steps(seed: u64, count: usize) -> Vec<Step> {
    let mut plan = Plan::new(seed);
    plan.begin();
    while plan.steps.len() < count {
        plan.next();
    }
    plan.steps
}

impl Plan {
    fn new(seed: u64) -> Self {
        let prefix = format!("s{seed}x");
        let groups = (0..4).map(|number| format!("{prefix}g{number}")).collect();
        Self {
            random: Seeded::new(seed),
            wire: Rc::default(),
            prefix,
            topics: Vec::new(),
            producers: Vec::new(),
            members: Vec::new(),
            groups,
            made: 0,
            steps: Vec::new(),
        }
    }

    /// `kind` and a number that was not there before.
    fn name(&mut self, kind: &str) -> String {
        self.made += 1;
        format!("{}{kind}{}", self.prefix, self.made)
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.random.within(0..100) < percent
    }

    fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.random.within(0..all.len())].clone()
    }

    /// Any version of an API.
    fn version(&mut self, api: &str) -> i16 {
        let versions = self.wire.message(api, Kind::Request).versions;
        self.version_in(versions.low, versions.high)
    }

    fn version_in(&mut self, low: i16, high: i16) -> i16 {
        low + self.random.within(0..usize::try_from(high - low + 1).expect("a range")) as i16
    }

    fn push(&mut self, api: &str, version: i16, body: Value) {
        self.steps.push(Step::new(api, version, body));
    }

    /// Topics to work with.
    fn begin(&mut self) {
        let configs = [
            json!([]),
            json!([{"Name": "cleanup.policy", "Value": "compact"}]),
            json!([{"Name": "message.timestamp.type", "Value": "LogAppendTime"}]),
            json!([{"Name": "max.message.bytes", "Value": "300"}]),
        ];
        for number in 0..TOPICS {
            let name = self.name("t");
            let partitions = if number == 0 { PARTITIONS } else { 1 };
            let topic = json!({"Name": name, "NumPartitions": partitions, "ReplicationFactor": 1,
                "Configs": configs[number % configs.len()]});
            self.push("CreateTopics", 7, json!({"Topics": [topic]}));
            let body = json!({"Topics": [{"Name": name}], "AllowAutoTopicCreation": false});
            self.push("Metadata", 12, body);
            self.topics.push(name);
        }
    }

    fn next(&mut self) {
        match self.random.within(0..100) {
            0..=69 => self.draw_request(),
            70..=78 => self.produce(),
            79..=83 => self.transaction(),
            84..=86 => self.older_transaction(),
            87..=89 => self.classic_group(),
            90..=91 => self.consumer_group(),
            92..=93 => self.fetch_session(),
            94..=95 => self.positions(),
            96 => self.topic_life(),
            _ => self.read_all(),
        }
    }
}

#[cfg(test)]
mod tests;
