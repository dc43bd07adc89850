//! A topic's configuration: its own overrides over the node's defaults.

use std::collections::BTreeMap;

use duolog_bridge::translate::keys::KeyIndex;
use duolog_bridge::translate::send::KeySource;
use duolog_log_core::record::Compression;

use super::key::{self, Key};
use super::values::{ConfigError, Values};

/// What a topic itself sets, by key name; checked before it is stored.
pub type Overrides = BTreeMap<String, String>;

/// Whose clock stamps a record (`message.timestamp.type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampType {
    /// The producer's; stored as sent.
    CreateTime,
    /// The node's at append; rewrites the batch's timestamps and CRC.
    LogAppendTime,
}

/// What happens to old data (`cleanup.policy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleanup {
    /// Segments past `retention.ms` or `retention.bytes` go.
    pub delete: bool,
    /// The newest record of each key stays.
    pub compact: bool,
}

/// Every setting of one topic, resolved. Times in ms, sizes in bytes; -1 is "no limit" where noted.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicConfig {
    /// A segment rolls before it grows past this.
    pub segment_bytes: i32,
    /// A segment rolls when its first record is older than this.
    pub segment_ms: i64,
    /// Bound of an index file.
    pub segment_index_bytes: i32,
    /// Bytes of log between two index entries.
    pub index_interval_bytes: i32,
    /// Age at which a segment may go; -1: never.
    pub retention_ms: i64,
    /// Size of the partition beyond which its oldest segments go; -1: never.
    pub retention_bytes: i64,
    /// Time between a file's renaming to `.deleted` and its removal.
    pub file_delete_delay_ms: i64,
    /// Delete, compact or both.
    pub cleanup: Cleanup,
    /// Part of the log that must be new before it is compacted again.
    pub min_cleanable_dirty_ratio: f64,
    /// Age before which a record is not compacted.
    pub min_compaction_lag_ms: i64,
    /// Age after which a record is compacted however little is new.
    pub max_compaction_lag_ms: i64,
    /// How long tombstones stay after their first compaction.
    pub delete_retention_ms: i64,
    /// Records after which the log is synced; 1: every acknowledgement follows the sync.
    pub flush_messages: i64,
    /// Age at which appended records are synced; `i64::MAX`: left to the page cache.
    pub flush_ms: i64,
    /// The largest record batch accepted from Kafka producers.
    pub max_message_bytes: i32,
    /// The codec that batches are stored with; `None`: as they were sent.
    pub compression: Option<Compression>,
    /// Whose clock stamps a record.
    pub timestamp_type: TimestampType,
    /// How far in the past a CreateTime may be.
    pub timestamp_before_max_ms: i64,
    /// How far in the future a CreateTime may be.
    pub timestamp_after_max_ms: i64,
    /// Idle time after which a producer's sequence state is forgotten: no topic's own, but the node's.
    pub producer_id_expiration_ms: i64,
    /// Replicas that acks=all needs.
    pub min_insync_replicas: i32,
    /// RocketMQ's permission bits: 4 read, 2 write, 1 inherit.
    pub rmq_perm: i32,
    /// Queues shown to RocketMQ readers; `None`: all partitions.
    pub rmq_read_queues: Option<i32>,
    /// Queues shown to RocketMQ writers; `None`: all partitions.
    pub rmq_write_queues: Option<i32>,
    /// RocketMQ's `message.type`, where the topic sets it: what is not set is no attribute.
    pub message_type: Option<String>,
    /// Which property of a RocketMQ message becomes its record's key.
    pub rmq_key_source: KeySource,
    /// Whose records RocketMQ's queries by key find.
    pub rmq_key_index: KeyIndex,
    /// RocketMQ's `order`.
    pub rmq_order: bool,
    /// RocketMQ's `topicSysFlag`.
    pub rmq_sys_flag: i32,
    /// RocketMQ's other attributes.
    pub rmq_attributes: BTreeMap<String, String>,
}

/// Checks one override as IncrementalAlterConfigs and CreateTopics do.
///
/// Errors with Kafka's text for the client.
pub fn check_override(name: &str, value: &str) -> Result<(), String> {
    let Some(key) = key::topic_key(name) else {
        return Err(format!("Unknown topic config name: {name}"));
    };
    key.check_named(value)
}

/// Checks overrides that are right each alone for what they say together.
///
/// Errors with Kafka's text for the client. Source: `LogConfig.validateTopicLogConfigValues`.
pub fn check_together(values: &Values, overrides: &Overrides) -> Result<(), String> {
    const KEYS: [&str; 2] = ["min.compaction.lag.ms", "max.compaction.lag.ms"];
    if !KEYS.iter().any(|key| overrides.contains_key(*key)) {
        return Ok(());
    }
    let read = Resolver { values, overrides };
    let lag = |key| read.parse::<i64>(key).map_err(|error| error.to_string());
    let [min, max] = KEYS;
    let (min_ms, max_ms) = (lag(min)?, lag(max)?);
    if min_ms > max_ms {
        return Err(format!("conflict topic config setting {min} ({min_ms}) > {max} ({max_ms})"));
    }
    Ok(())
}

/// The value that `key` has on this node when the topic does not set it.
pub fn default_value(values: &Values, key: &Key) -> Option<String> {
    for synonym in &key.synonyms {
        let Some((value, _)) = values.set_value(synonym) else { continue };
        let unit = unit_ms(synonym);
        return match value.trim().parse::<i64>() {
            Ok(number) if unit != 1 && number >= 0 => Some(number.saturating_mul(unit).to_string()),
            _ => Some(value.to_owned()),
        };
    }
    key.default.map(str::to_owned)
}

/// What one unit of a broker key is in the unit of the topic key that it gives the default of.
fn unit_ms(broker_key: &str) -> i64 {
    if broker_key.ends_with(".hours") {
        3_600_000
    } else if broker_key.ends_with(".minutes") {
        60_000
    } else {
        1
    }
}

/// Reads `key=value,key=value`.
fn read_attributes(text: &str) -> BTreeMap<String, String> {
    let pairs = key::list(text).into_iter().filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// RocketMQ's attributes that have a key of their own.
const ATTRIBUTE_KEYS: [&str; 3] = [MESSAGE_TYPE, KEY_SOURCE, KEY_INDEX];

const MESSAGE_TYPE: &str = "message.type";
const KEY_SOURCE: &str = "rmq.key.source";
const KEY_INDEX: &str = "rmq.key.index";

/// RocketMQ's attributes as overrides.
pub fn attribute_overrides(attributes: &BTreeMap<String, String>) -> Overrides {
    let mut overrides = Overrides::new();
    let mut others = Vec::new();
    for (key, value) in attributes {
        if ATTRIBUTE_KEYS.contains(&key.as_str()) {
            overrides.insert(key.clone(), value.clone());
        } else {
            others.push(format!("{key}={value}"));
        }
    }
    if !others.is_empty() {
        overrides.insert("rmq.attributes".to_owned(), others.join(","));
    }
    overrides
}

impl TopicConfig {
    /// RocketMQ's attributes and ours, as far as the topic sets them.
    pub fn attributes(&self) -> BTreeMap<String, String> {
        let mut attributes = self.rmq_attributes.clone();
        let message_type = self.message_type.clone();
        attributes.extend(message_type.map(|value| (MESSAGE_TYPE.to_owned(), value)));
        let key_source = match self.rmq_key_source {
            KeySource::Keys => None,
            KeySource::ShardingKey => Some("shardingkey"),
            KeySource::Nothing => Some("none"),
        };
        let key_source = key_source.map(|name| (KEY_SOURCE.to_owned(), name.to_owned()));
        attributes.extend(key_source);
        let key_index = match self.rmq_key_index {
            KeyIndex::All => None,
            KeyIndex::Rmq => Some((KEY_INDEX.to_owned(), "rmq".to_owned())),
        };
        attributes.extend(key_index);
        attributes
    }

    /// Resolves every setting: `overrides`, else the node's `values`, else Kafka's default.
    ///
    /// Errors: `InvalidValue`, which [`check_override`] excludes for stored overrides.
    pub fn resolve(values: &Values, overrides: &Overrides) -> Result<Self, ConfigError> {
        let read = Resolver { values, overrides };
        let policies = read.text("cleanup.policy")?;
        let policies = key::list(&policies);
        Ok(Self {
            segment_bytes: read.parse("segment.bytes")?,
            segment_ms: read.parse("segment.ms")?,
            segment_index_bytes: read.parse("segment.index.bytes")?,
            index_interval_bytes: read.parse("index.interval.bytes")?,
            retention_ms: read.parse("retention.ms")?,
            retention_bytes: read.parse("retention.bytes")?,
            file_delete_delay_ms: read.parse("file.delete.delay.ms")?,
            cleanup: Cleanup {
                delete: policies.contains(&"delete"),
                compact: policies.contains(&"compact"),
            },
            min_cleanable_dirty_ratio: read.parse("min.cleanable.dirty.ratio")?,
            min_compaction_lag_ms: read.parse("min.compaction.lag.ms")?,
            max_compaction_lag_ms: read.parse("max.compaction.lag.ms")?,
            delete_retention_ms: read.parse("delete.retention.ms")?,
            flush_messages: read.parse("flush.messages")?,
            flush_ms: read.parse("flush.ms")?,
            max_message_bytes: read.parse("max.message.bytes")?,
            compression: match read.text("compression.type")?.as_str() {
                "producer" => None,
                "uncompressed" => Some(Compression::None),
                name => Compression::ALL.into_iter().find(|codec| codec.name() == name),
            },
            timestamp_type: match read.text("message.timestamp.type")?.as_str() {
                "LogAppendTime" => TimestampType::LogAppendTime,
                _ => TimestampType::CreateTime,
            },
            timestamp_before_max_ms: read.parse("message.timestamp.before.max.ms")?,
            timestamp_after_max_ms: read.parse("message.timestamp.after.max.ms")?,
            producer_id_expiration_ms: values.parse("producer.id.expiration.ms")?,
            min_insync_replicas: read.parse("min.insync.replicas")?,
            rmq_perm: read.parse("rmq.perm")?,
            rmq_read_queues: Some(read.parse("rmq.read.queues")?).filter(|queues| *queues >= 0),
            rmq_write_queues: Some(read.parse("rmq.write.queues")?).filter(|queues| *queues >= 0),
            message_type: overrides.get(MESSAGE_TYPE).cloned(),
            rmq_key_source: KeySource::from_name(&read.text(KEY_SOURCE)?).unwrap_or_default(),
            rmq_key_index: KeyIndex::from_name(&read.text(KEY_INDEX)?).unwrap_or_default(),
            rmq_order: read.parse("rmq.order")?,
            rmq_sys_flag: read.parse("rmq.sys.flag")?,
            rmq_attributes: read_attributes(&read.text("rmq.attributes")?),
        })
    }
}

struct Resolver<'a> {
    values: &'a Values,
    overrides: &'a Overrides,
}

impl Resolver<'_> {
    fn text(&self, name: &'static str) -> Result<String, ConfigError> {
        if let Some(value) = self.overrides.get(name) {
            return Ok(value.clone());
        }
        key::topic_key(name).and_then(|key| default_value(self.values, key)).ok_or_else(|| {
            ConfigError::UnknownKey { key: name.to_owned(), origin: "topic".into(), nearest: None }
        })
    }

    fn parse<T: std::str::FromStr>(&self, name: &'static str) -> Result<T, ConfigError> {
        let value = self.text(name)?;
        value.trim().parse().map_err(|_| ConfigError::InvalidValue {
            key: name,
            value: value.clone(),
            origin: "topic".to_owned(),
            reason: format!("expected a value of type {}", std::any::type_name::<T>()),
        })
    }
}

#[cfg(test)]
mod tests;
