//! What a reader must see of a record, in its own protocol or in the other.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::record::Record;
use super::{Cell, Reader, grouped};
use crate::hex::hex;

/// Properties that the RocketMQ client or broker adds of its own.
const ADDED: [&str; 8] = [
    "CLUSTER",
    "CONSUME_START_TIME",
    "MAX_OFFSET",
    "MIN_OFFSET",
    "MSG_REGION",
    "TRACE_ON",
    "UNIQ_KEY",
    "WAIT",
];
/// Header names that have a meaning to RocketMQ and therefore do not pass from Kafka (those that
/// the cells use).
const RESERVED: [&str; 2] = ["DELAY", "TRAN_MSG"];
/// The header with the RocketMQ fields that Kafka has no place for; its first byte is the version.
const RMQ_HEADER: &str = "__rmq";

/// Compares a line that a reader printed with the record that the cell's writer sent.
pub fn check(cell: Cell, reader: Reader, record: &Record, line: &Value) -> anyhow::Result<()> {
    let value = record.value.as_deref();
    match (cell.writer.speaks_kafka(), reader.client.speaks_kafka()) {
        (true, true) => by_kafka(reader, record, line)?,
        (true, false) => {
            // The client has no body where the frame has an empty one; the properties tell which.
            bytes(line, "value", value.filter(|value| !value.is_empty()))?;
            ensure!(
                line["bornTimestamp"].as_i64() == record.timestamp,
                "{}",
                line["bornTimestamp"]
            );
            ensure!(line["properties"].get("UNIQ_KEY").is_none(), "an invented UNIQ_KEY");
            properties(line, view_of_kafka(record))?;
        }
        (false, true) => {
            bytes(line, "key", record.key.as_deref())?;
            bytes(line, "value", value)?;
            headers_of_rocketmq(record, line)?;
        }
        (false, false) => {
            bytes(line, "value", value)?;
            ensure!(line["flag"] == record.flag, "flag {}", line["flag"]);
            ensure!(line["reconsumeTimes"] == 0, "reconsumeTimes {}", line["reconsumeTimes"]);
            let id = line["properties"]["UNIQ_KEY"].as_str().context("UNIQ_KEY")?;
            ensure!(line["msgId"] == id, "msgId {} beside UNIQ_KEY {id}", line["msgId"]);
            properties(line, sent_properties(record))?;
        }
    }
    Ok(())
}

/// What a Kafka client must see of a Kafka client's record, as far as its own API can tell it.
fn by_kafka(reader: Reader, record: &Record, line: &Value) -> anyhow::Result<()> {
    let client = reader.client;
    let told = |bytes: &&[u8]| client.tells_empty_from_absent() || !bytes.is_empty();
    bytes(line, "key", record.key.as_deref().filter(told))?;
    bytes(line, "value", record.value.as_deref().filter(told))?;
    let kind = line["timestampType"].as_str();
    let expected = client.tells_timestamp_type().then_some("CreateTime");
    ensure!(kind == expected, "{}", line["timestampType"]);
    ensure!(line["timestamp"].as_i64() == record.timestamp, "{}", line["timestamp"]);
    let headers = record.headers.iter();
    let mut expected: Vec<_> =
        headers.map(|(name, value)| (name.clone(), value.as_deref().map(hex))).collect();
    if !client.orders_headers() {
        expected = grouped(&expected);
    }
    ensure!(kafka_headers(line)? == expected, "headers {}", line["headers"]);
    Ok(())
}

fn bytes(line: &Value, field: &str, expected: Option<&[u8]>) -> anyhow::Result<()> {
    let expected = expected.map(hex);
    ensure!(
        line[field].as_str() == expected.as_deref(),
        "{field} {} not {expected:?}",
        line[field]
    );
    Ok(())
}

/// Name and hex value of each header, in order.
fn kafka_headers(line: &Value) -> anyhow::Result<Vec<(String, Option<String>)>> {
    let headers = line["headers"].as_array().context("headers")?.iter();
    let headers = headers.map(|pair| {
        let name = unhex(pair[0].as_str().unwrap_or_default());
        (name, pair[1].as_str().map(str::to_owned))
    });
    Ok(headers.collect())
}

fn unhex(hex: &str) -> String {
    let digits = hex.as_bytes().chunks(2);
    let bytes = digits.map(|pair| {
        std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok())
    });
    String::from_utf8_lossy(&bytes.flatten().collect::<Vec<u8>>()).into_owned()
}

/// The message's properties, but for those that client and broker add.
fn properties(line: &Value, expected: BTreeMap<String, String>) -> anyhow::Result<()> {
    let found = line["properties"].as_object().context("properties")?.iter();
    let found: BTreeMap<String, String> = found
        .filter(|(name, _)| !ADDED.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect();
    ensure!(found == expected, "properties {found:?} not {expected:?}");
    Ok(())
}

/// What a RocketMQ client sent and must get back.
fn sent_properties(record: &Record) -> BTreeMap<String, String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut properties = BTreeMap::new();
    for (name, value) in &record.headers {
        properties.insert(name.clone(), text(value.as_deref().unwrap_or_default()));
    }
    properties.extend(record.tags.clone().map(|tags| ("TAGS".to_owned(), tags)));
    properties.extend(record.key.as_deref().map(|keys| ("KEYS".to_owned(), text(keys))));
    properties
}

/// Text as RocketMQ can carry it: UTF-8 without its two separators.
fn carried(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains(['\u{1}', '\u{2}']))
}

/// The properties that a record written by Kafka shows to RocketMQ.
fn view_of_kafka(record: &Record) -> BTreeMap<String, String> {
    let mut properties = BTreeMap::new();
    let mut put = |name: &str, value: &str| properties.insert(name.to_owned(), value.to_owned());
    if let Some(key) = record.key.as_deref() {
        match carried(key) {
            Some(text) => {
                put("KEYS", text);
            }
            None => {
                put("KEYS", &hex(key));
                put("KAFKA_KEY_ENC", "hex");
            }
        }
    }
    if record.value.is_none() {
        put("KAFKA_TOMBSTONE", "true");
    }
    for (name, value) in &record.headers {
        if RESERVED.contains(&name.as_str()) {
            continue;
        }
        let name = match carried(name.as_bytes()) {
            Some(name) => name.to_owned(),
            None => format!("KAFKA_H_{}", hex(name.as_bytes())),
        };
        match value.as_deref().map(|value| (carried(value), hex(value))) {
            Some((Some(text), _)) => {
                put(&name, text);
            }
            Some((None, hexed)) => {
                put(&name, &hexed);
                put(&format!("{name}.enc"), "hex");
            }
            None => {
                put("KAFKA_NULL_HEADERS", &name);
            }
        }
    }
    properties
}

/// The headers that a message written by RocketMQ shows to Kafka.
fn headers_of_rocketmq(record: &Record, line: &Value) -> anyhow::Result<()> {
    let mut found = BTreeMap::new();
    for (name, value) in kafka_headers(line)? {
        ensure!(found.insert(name.clone(), value.unwrap_or_default()).is_none(), "two {name}");
    }
    let rmq = found.remove(RMQ_HEADER).context("no header with RocketMQ's own fields")?;
    ensure!(rmq.starts_with("00"), "version of {RMQ_HEADER}: {rmq}");
    ensure!(found.get("UNIQ_KEY").is_some_and(|id| !id.is_empty()), "no UNIQ_KEY");
    found.retain(|name, _| !ADDED.contains(&name.as_str()));
    let sent = sent_properties(record).into_iter();
    let expected = sent.map(|(name, value)| (name, hex(value.as_bytes()))).collect();
    ensure!(found == expected, "headers {found:?} not {expected:?}");
    Ok(())
}
