//! What one server called things: ids by the names that steps give them, and back.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::batches;
use super::script::Step;
use super::wire::bytes_of_hex;
use crate::hex::hex;

/// What a name stands for that no answer has given a value.
const UNBOUND: [(&str, i64); 5] =
    [("pid", 4242), ("epoch", 0), ("gen", 0), ("mepoch", 0), ("session", 77)];
/// How far behind the run's beginning `$now` is, so that times of records are no times of the run.
const BEFORE_MS: i64 = 3_600_000;
/// Records of a run lie within this of `$now`.
const RUN_MS: i64 = 1_000_000;
const DAY_MS: i64 = 86_400_000;

/// Names of ids, for one server.
#[derive(Debug)]
pub struct Bindings {
    now: i64,
    /// Whether texts are compared too.
    texts: bool,
    values: BTreeMap<String, Value>,
}

impl Bindings {
    pub fn new(clock_ms: i64) -> Self {
        Self { now: clock_ms - BEFORE_MS, texts: false, values: BTreeMap::new() }
    }

    /// Leaves the texts of errors in.
    pub fn keep_texts(&mut self) {
        self.texts = true;
    }

    fn bind(&mut self, kind: &str, name: &str, value: &Value) {
        self.values.insert(format!("{kind}:{name}"), value.clone());
    }

    /// A request's body with values for names, batches as bytes.
    pub fn resolve(&self, body: &Value) -> anyhow::Result<Value> {
        Ok(match body {
            Value::String(text) if text.starts_with('$') => self.look_up(&text[1..]),
            Value::Array(all) => all
                .iter()
                .map(|each| self.resolve(each))
                .collect::<anyhow::Result<Vec<_>>>()?
                .into(),
            Value::Object(fields) => {
                let mut resolved = Map::new();
                for (name, value) in fields {
                    let mut value = self.resolve(value)?;
                    if let ("Records", Some(specs)) = (name.as_str(), value.as_array()) {
                        value = hex(&batches::build(specs)?).into();
                    }
                    resolved.insert(name.clone(), value);
                }
                resolved.into()
            }
            other => other.clone(),
        })
    }

    fn look_up(&self, text: &str) -> Value {
        let at = text.find(['+', '-']).unwrap_or(text.len());
        let (name, moved) = text.split_at(at);
        let moved: i64 = moved.parse().unwrap_or(0);
        let kind = name.split(':').next().unwrap_or_default();
        let unbound = || match (kind, UNBOUND.iter().find(|(each, _)| *each == kind)) {
            ("tid", _) => "f".repeat(32).into(),
            (_, Some((_, number))) => (*number).into(),
            _ => "nobody".into(),
        };
        let value = match name {
            "now" => self.now.into(),
            _ => self.values.get(name).cloned().unwrap_or_else(unbound),
        };
        match value.as_i64() {
            Some(number) => (number + moved).into(),
            None => value,
        }
    }

    /// Learns ids from the answer to `step`.
    pub fn learn(&mut self, step: &Step, answer: &Value) {
        for topic in answer["Topics"].as_array().into_iter().flatten() {
            if let (Some(name), true) = (topic["Name"].as_str(), topic["TopicId"].is_string()) {
                let known = topic["TopicId"] != "0".repeat(32);
                if known && topic["ErrorCode"] == 0 {
                    self.bind("tid", name, &topic["TopicId"]);
                }
            }
        }
        let Some(name) = &step.bind else { return };
        for (field, kind) in [
            ("ProducerId", "pid"),
            ("ProducerEpoch", "epoch"),
            ("MemberId", "member"),
            ("GenerationId", "gen"),
            ("MemberEpoch", "mepoch"),
            ("SessionId", "session"),
        ] {
            let value = &answer[field];
            let is_none = value.is_null() || *value == "" || value.as_i64() == Some(-1);
            let is_sessionless = kind == "session" && *value == 0;
            if !is_none && !is_sessionless {
                self.bind(kind, name, value);
            }
        }
    }

    fn name_of(&self, kind: &str, value: &Value) -> String {
        let is_it = |(name, bound): &(&String, &Value)| {
            name.strip_prefix(kind).is_some_and(|rest| rest.starts_with(':')) && *bound == value
        };
        match self.values.iter().find(is_it) {
            Some((name, _)) => format!("${name}"),
            None => format!("${kind}:?"),
        }
    }

    fn time(&self, ms: i64) -> Value {
        if (0..RUN_MS).contains(&(ms - self.now)) {
            return format!("$now+{}", ms - self.now).into();
        }
        if (ms - self.now).abs() < DAY_MS {
            return "now".into();
        }
        ms.into()
    }

    /// An answer without what no two servers have in common; lists are sorted.
    pub fn mask(&self, answer: &Value) -> Value {
        self.masked("", answer)
    }

    fn masked(&self, field: &str, value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let kept = fields.iter().filter(|(name, _)| {
                    !is_left_out(name) && (self.texts || !name.ends_with("ErrorMessage"))
                });
                kept.map(|(name, value)| (name.clone(), self.masked(name, value)))
                    .collect::<Map<_, _>>()
                    .into()
            }
            Value::Array(all) => {
                let mut all: Vec<Value> = all.iter().map(|each| self.masked(field, each)).collect();
                merge(&mut all);
                all.sort_by_cached_key(Value::to_string);
                all.into()
            }
            Value::String(text) => self.masked_text(field, text, value),
            Value::Number(_) => match (field, value.as_i64()) {
                ("ProducerId", Some(0..)) => self.name_of("pid", value).into(),
                ("SessionId", Some(1..)) => "$session".into(),
                (_, Some(ms)) => self.time(ms),
                (_, None) => value.clone(),
            },
            other => other.clone(),
        }
    }

    fn masked_text(&self, field: &str, text: &str, value: &Value) -> Value {
        match field {
            "MemberId" | "Leader" if !text.is_empty() => self.name_of("member", value).into(),
            "TopicId" if text.bytes().any(|digit| digit != b'0') => {
                self.name_of("tid", value).into()
            }
            "Records" => {
                let producer = |id: i64| self.name_of("pid", &id.into());
                let time = |ms: i64| self.time(ms).to_string();
                match batches::describe(&bytes_of_hex(text), producer, time) {
                    Ok(batches) => batches.into(),
                    Err(error) => format!("unreadable: {error}").into(),
                }
            }
            _ => value.clone(),
        }
    }
}

/// A topic that a request names twice may be answered once or twice: its partitions are told together.
fn merge(all: &mut Vec<Value>) {
    let mut merged: Vec<Value> = Vec::new();
    for mut each in std::mem::take(all) {
        let same =
            |other: &Value, name: &str| each.get(name).is_some() && other[name] == each[name];
        let list = ["Partitions", "PartitionResponses"].into_iter().find(|it| each[*it].is_array());
        let topic = merged.iter_mut().find(|it| same(it, "Name") || same(it, "TopicId"));
        let known = list.and_then(|list| Some((list, topic?[list].as_array_mut()?)));
        match known {
            Some((list, partitions)) => {
                let more = each[list].take();
                partitions.extend(more.as_array().cloned().unwrap_or_default());
                partitions.sort_by_cached_key(Value::to_string);
            }
            None => merged.push(each),
        }
    }
    *all = merged;
}

/// Fields that say who the server is, where it is, and how it puts things.
fn is_left_out(name: &str) -> bool {
    const NAMES: [&str; 20] = [
        "ThrottleTimeMs",
        "ClusterId",
        "Host",
        "Port",
        "Rack",
        "ControllerId",
        "ClientHost",
        "ClientId",
        "LogDir",
        "TotalBytes",
        "UsableBytes",
        "FinalizedFeaturesEpoch",
        "NodeEndpoints",
        "Documentation",
        "DirectoryId",
        "ReplicaDirectoryId",
        "IsCordoned",
        "CoordinatorEpoch",
        "LastFetchTimestamp",
        "LastCaughtUpTimestamp",
    ];
    NAMES.contains(&name)
}
