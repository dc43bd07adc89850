//! Where two answers differ, field by field.

use std::fmt;

use serde_json::Value;

use super::script::Step;

/// What tells the elements of a list apart.
const IDENTITIES: [&str; 20] = [
    "Name",
    "Topic",
    "TopicName",
    "TopicId",
    "Index",
    "PartitionIndex",
    "Partition",
    "PartitionId",
    "GroupId",
    "Group",
    "TransactionalId",
    "ResourceType",
    "ResourceName",
    "ApiKey",
    "MemberId",
    "User",
    "Key",
    "ProducerId",
    "Path",
    "BrokerId",
];

/// One field that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// As `Topics[t].Partitions[0].ErrorCode`; empty for the whole answer.
    pub path: String,
    /// Null where there is none.
    pub kafka: Value,
    /// Null where there is none.
    pub duolog: Value,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: kafka {}, duolog {}", self.path, self.kafka, self.duolog)
    }
}

/// All differences of two masked answers to one step.
pub fn differences(kafka: &Value, duolog: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(String::new(), kafka, duolog, &mut found);
    found
}

fn identity(value: &Value) -> Option<String> {
    let fields = value.as_object()?;
    let words = IDENTITIES.iter().filter_map(|name| fields.get(*name));
    let words: Vec<String> = words.map(|value| value.to_string().replace('"', "")).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

fn identities(all: &[Value]) -> Option<Vec<String>> {
    let names: Vec<String> = all.iter().map(identity).collect::<Option<_>>()?;
    let unique = names.iter().collect::<std::collections::BTreeSet<_>>().len() == names.len();
    unique.then_some(names)
}

fn compare(path: String, kafka: &Value, duolog: &Value, found: &mut Vec<Difference>) {
    match (kafka, duolog) {
        (Value::Object(left), Value::Object(right)) => {
            let names = left.keys().chain(right.keys().filter(|name| !left.contains_key(*name)));
            for name in names {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                let none = Value::Null;
                let side = |fields: &serde_json::Map<_, _>| fields.get(name).cloned();
                let (left, right) = (side(left), side(right));
                let (left, right) = (left.as_ref(), right.as_ref());
                compare(path, left.unwrap_or(&none), right.unwrap_or(&none), found);
            }
        }
        (Value::Array(left), Value::Array(right)) => lists(&path, left, right, found),
        _ if kafka == duolog => {}
        _ => found.push(Difference { path, kafka: kafka.clone(), duolog: duolog.clone() }),
    }
}

fn lists(path: &str, left: &[Value], right: &[Value], found: &mut Vec<Difference>) {
    let none = Value::Null;
    if let (Some(lefts), Some(rights)) = (identities(left), identities(right)) {
        let only_right = rights.iter().filter(|name| !lefts.contains(name));
        for name in lefts.iter().chain(only_right) {
            let of = |names: &[String], all: &[Value]| {
                names.iter().position(|each| each == name).map(|index| all[index].clone())
            };
            let (left, right) = (of(&lefts, left), of(&rights, right));
            let (left, right) = (left.as_ref().unwrap_or(&none), right.as_ref().unwrap_or(&none));
            compare(format!("{path}[{name}]"), left, right, found);
        }
        return;
    }
    for index in 0..left.len().max(right.len()) {
        let (left, right) = (left.get(index), right.get(index));
        let (left, right) = (left.unwrap_or(&none), right.unwrap_or(&none));
        compare(format!("{path}[{index}]"), left, right, found);
    }
}

/// A difference that is there on purpose.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// `*` for all.
    pub api: &'static str,
    /// What the step's line contains.
    pub step: &'static str,
    /// What the field's path contains.
    pub path: &'static str,
    /// What Kafka says, or contains behind a `~`; empty for anything.
    pub kafka: &'static str,
    /// What Duolog says, likewise.
    pub duolog: &'static str,
    /// As in docs/differences.md.
    pub why: &'static str,
}

impl Known {
    /// Whether this is that difference.
    pub fn covers(&self, step: &Step, difference: &Difference) -> bool {
        let is = |pattern: &str, value: &Value| {
            let text = value.to_string();
            match pattern.strip_prefix('~') {
                Some(part) => text.contains(part),
                None => pattern.is_empty() || text == pattern,
            }
        };
        (self.api == "*" || self.api == step.api)
            && step.to_string().contains(self.step)
            && difference.path.contains(self.path)
            && is(self.kafka, &difference.kafka)
            && is(self.duolog, &difference.duolog)
    }
}
