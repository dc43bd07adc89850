//! A topic's attributes: `+key=value,-key`. Source: AttributeParser, AttributeUtil,
//! TopicAttributes.

use std::collections::{BTreeMap, BTreeSet};

use crate::processors::Refusal;
use crate::response_code::ResponseCode;

/// Which values an attribute may have.
enum Values {
    /// One of these, any of which may follow the other.
    Any(&'static [&'static str]),
    /// One of these, once and for all. Only the first is served.
    Fixed(&'static [&'static str]),
    /// A number from -1 on. Only -1, the default, is served.
    Number,
}

/// In the order in which the original prints the set of message types.
const MESSAGE_TYPES: &[&str] =
    &["UNSPECIFIED", "MIXED", "TRANSACTION", "PRIORITY", "FIFO", "DELAY", "LITE", "NORMAL"];

fn values(key: &str) -> Option<Values> {
    Some(match key {
        "message.type" => Values::Any(MESSAGE_TYPES),
        // Ours: what becomes the key that Kafka sees.
        "rmq.key.source" => Values::Any(&["keys", "shardingkey", "none"]),
        // Ours: whose records queries by key find.
        "rmq.key.index" => Values::Any(&["all", "rmq"]),
        "queue.type" => Values::Fixed(&["SimpleCQ", "BatchCQ"]),
        "cleanup.policy" => Values::Fixed(&["DELETE", "COMPACTION"]),
        "reserve.time" | "lite.topic.expiration" => Values::Number,
        _ => return None,
    })
}

/// The attributes that `changes` makes of `old`; `None` is a topic that is not there yet.
pub(super) fn change(
    changes: &str,
    old: Option<&BTreeMap<String, String>>,
) -> Result<BTreeMap<String, String>, Refusal> {
    let mut attributes = old.cloned().unwrap_or_default();
    let mut seen = BTreeSet::new();
    for change in changes.split(',').filter(|change| !change.is_empty()) {
        match change.split_once('=') {
            Some((key, value)) => {
                let Some(key) = key.strip_prefix('+') else {
                    return Err(error(format!("add/alter attribute format is wrong: {key}")));
                };
                check(key, &mut seen)?;
                set(key, value, &mut attributes, old.is_none())?;
            }
            None => {
                let Some(key) = change.strip_prefix('-') else {
                    return Err(error(format!("delete attribute format is wrong: {change}")));
                };
                check(key, &mut seen)?;
                delete(key, &mut attributes, old.is_none())?;
            }
        }
    }
    Ok(attributes)
}

fn check<'a>(key: &'a str, seen: &mut BTreeSet<&'a str>) -> Result<(), Refusal> {
    if key.is_empty() || key.contains(['+', '-']) {
        return Err(error("kv string format wrong.".into()));
    }
    if !seen.insert(key) {
        return Err(error(format!("alter duplication key. key: {key}")));
    }
    Ok(())
}

fn set(
    key: &str,
    value: &str,
    attributes: &mut BTreeMap<String, String>,
    is_new: bool,
) -> Result<(), Refusal> {
    match values(key) {
        None => return Err(error(format!("unsupported key: {key}"))),
        Some(Values::Any(allowed)) => {
            verify(value, allowed)?;
            if value == "MIXED" {
                return Err(invalid("MIXED message type is not supported.".into()));
            }
        }
        Some(Values::Fixed(allowed)) => {
            if !is_new {
                return Err(unchangeable(key));
            }
            verify(value, allowed)?;
            if allowed.first() != Some(&value) {
                return Err(invalid(format!("attribute {key}={value} is not supported")));
            }
        }
        Some(Values::Number) => {
            if value.parse::<i64>().is_err() {
                return Err(error(format!("For input string: \"{value}\"")));
            }
            if value != "-1" {
                return Err(invalid(format!("attribute {key}={value} is not supported")));
            }
        }
    }
    attributes.insert(key.to_owned(), value.to_owned());
    Ok(())
}

fn delete(
    key: &str,
    attributes: &mut BTreeMap<String, String>,
    is_new: bool,
) -> Result<(), Refusal> {
    if is_new {
        return Err(error(format!(
            "only add attribute is supported while creating topic. key: {key}"
        )));
    }
    if !attributes.contains_key(key) {
        return Err(error(format!("attempt to delete a nonexistent key: {key}")));
    }
    if matches!(values(key), Some(Values::Fixed(_))) {
        return Err(unchangeable(key));
    }
    attributes.remove(key);
    Ok(())
}

fn verify(value: &str, allowed: &[&str]) -> Result<(), Refusal> {
    if allowed.contains(&value) {
        return Ok(());
    }
    Err(error(format!("value is not in set: [{}]", allowed.join(", "))))
}

fn unchangeable(key: &str) -> Refusal {
    error(format!("attempt to update an unchangeable attribute. key: {key}"))
}

fn error(remark: String) -> Refusal {
    Refusal::new(ResponseCode::SYSTEM_ERROR, remark)
}

fn invalid(remark: String) -> Refusal {
    Refusal::new(ResponseCode::INVALID_PARAMETER, remark)
}
