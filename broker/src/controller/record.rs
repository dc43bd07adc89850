//! Keys and values of the metadata log, `__duolog_metadata-0`. Layout: docs/formats.md.
//!
//! A key is a type (i16) and its fields; a value a version (i16) and its fields; both big endian.
//! Text has a u16 length, lists and maps a u32 count. A record without a value takes its key away.
//! The last record of a key is the state, so the log may be compacted at any point.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use duolog_bridge::backend::SubscriptionGroup;
use duolog_log_core::ids::TopicId;

use crate::config::topic::Overrides;
use crate::data_dir::DirectoryId;

/// What a configuration belongs to; the numbers of Kafka's `ConfigResource.Type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConfigScope {
    /// The dynamic defaults of all nodes (resource name empty) or one node's values (its id).
    Broker = 4,
    /// What clients are asked to push.
    ClientMetrics = 16,
    /// A Kafka group's values.
    Group = 32,
}

/// A topic as stored: what its name means until it is deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicRecord {
    /// Another one after deletion and new creation.
    pub id: TopicId,
    /// Not for clients to write to.
    pub internal: bool,
    /// The cluster-wide number of each partition, in order; never given twice.
    pub numbers: Vec<u32>,
    /// What the topic itself sets.
    pub overrides: Overrides,
}

/// Where a topic's partitions are, on a node that has, or has had, several log directories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// The directory of each partition, in order.
    pub dirs: Vec<DirectoryId>,
    /// Partitions whose copy in another directory is about to take their place, and that directory.
    pub moves: BTreeMap<i32, DirectoryId>,
}

/// One change of the metadata. `None` takes the key away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetadataRecord {
    /// The cluster's id, written once.
    Cluster {
        /// 16 random bytes.
        id: TopicId,
    },
    /// A topic under its stored name.
    Topic {
        /// Stored name.
        name: Arc<str>,
        /// What it is now.
        topic: Option<TopicRecord>,
    },
    /// A deleted topic whose folders may still be there.
    DeletedTopic {
        /// Its id.
        id: TopicId,
        /// Its stored name; `None` once the folders are gone.
        name: Option<Arc<str>>,
    },
    /// Dynamic configuration.
    Config {
        /// What kind of thing is configured.
        scope: ConfigScope,
        /// Which of them.
        name: String,
        /// All that is set.
        values: Option<Overrides>,
    },
    /// A RocketMQ group's configuration.
    SubscriptionGroup {
        /// The group's name.
        name: Arc<str>,
        /// Its configuration; `None`: deleted.
        group: Option<SubscriptionGroup>,
    },
    /// A value of the NameServer's key/value store.
    Kv {
        /// Its namespace.
        namespace: String,
        /// Its key there.
        key: String,
        /// `None`: deleted.
        value: Option<String>,
    },
    /// All producer ids below this one are given out.
    NextProducerId(i64),
    /// All partition numbers below this one are given out.
    NextPartitionNumber(u32),
    /// The epoch in which the node leads since its last start.
    LeaderEpoch(i32),
    /// In which log directories a topic is.
    Places {
        /// The topic's id.
        id: TopicId,
        /// `None`: nothing is noted.
        places: Option<Places>,
    },
    /// The level of a feature that somebody has changed.
    FeatureLevel {
        /// Its name.
        name: String,
        /// The level in force.
        level: i16,
        /// How many changes of levels there were with this one.
        epoch: i64,
    },
}

/// A stored record that this version cannot read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataRecordError {
    /// Ends before its fields do.
    #[error("metadata record ends before its field {0}")]
    Truncated(&'static str),
    /// Written by a newer version.
    #[error("unknown metadata record type {0}: was it written by a newer version?")]
    UnknownType(i16),
    /// Written by a newer version.
    #[error("unknown version {version} of metadata record type {kind}")]
    UnknownVersion {
        /// Its type.
        kind: i16,
        /// Its version.
        version: i16,
    },
    /// Not UTF-8, or a number that means nothing.
    #[error("invalid field {0} in a metadata record")]
    Invalid(&'static str),
    /// Bytes follow the last field.
    #[error("{0} bytes follow the last field of a metadata record")]
    TrailingBytes(usize),
}

/// A text that no record can hold; nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a text of {bytes} bytes, at most {} can be kept", u16::MAX)]
pub struct TextTooLong {
    /// Its length.
    pub bytes: usize,
}

type Result<T> = std::result::Result<T, MetadataRecordError>;

const CLUSTER: i16 = 0;
const TOPIC: i16 = 1;
const DELETED_TOPIC: i16 = 2;
const CONFIG: i16 = 3;
const SUBSCRIPTION_GROUP: i16 = 4;
const KV: i16 = 5;
const NEXT_PRODUCER_ID: i16 = 6;
const NEXT_PARTITION_NUMBER: i16 = 7;
const LEADER_EPOCH: i16 = 8;
const PLACES: i16 = 9;
const FEATURE_LEVEL: i16 = 10;

/// The only version of every value so far.
const VERSION: i16 = 0;

impl MetadataRecord {
    /// The key and value to store.
    ///
    /// Errors when a text is longer than its length can say.
    pub fn encode(&self) -> std::result::Result<(Bytes, Option<Bytes>), TextTooLong> {
        let mut key = Writer::default();
        let mut value = Writer::default();
        value.out.put_i16(VERSION);
        let present = match self {
            Self::Cluster { id } => {
                key.out.put_i16(CLUSTER);
                value.out.put_slice(&id.0);
                true
            }
            Self::Topic { name, topic } => {
                key.out.put_i16(TOPIC);
                key.text(name);
                topic.as_ref().map(|topic| value.topic(topic)).is_some()
            }
            Self::DeletedTopic { id, name } => {
                key.out.put_i16(DELETED_TOPIC);
                key.out.put_slice(&id.0);
                name.as_ref().map(|name| value.text(name)).is_some()
            }
            Self::Config { scope, name, values } => {
                key.out.put_i16(CONFIG);
                key.out.put_u8(*scope as u8);
                key.text(name);
                values.as_ref().map(|values| value.map(values)).is_some()
            }
            Self::SubscriptionGroup { name, group } => {
                key.out.put_i16(SUBSCRIPTION_GROUP);
                key.text(name);
                group.as_ref().map(|group| value.subscription_group(group)).is_some()
            }
            Self::Kv { namespace, key: name, value: text } => {
                key.out.put_i16(KV);
                key.text(namespace);
                key.text(name);
                text.as_ref().map(|text| value.text(text)).is_some()
            }
            Self::NextProducerId(next) => {
                key.out.put_i16(NEXT_PRODUCER_ID);
                value.out.put_i64(*next);
                true
            }
            Self::NextPartitionNumber(next) => {
                key.out.put_i16(NEXT_PARTITION_NUMBER);
                value.out.put_u32(*next);
                true
            }
            Self::LeaderEpoch(epoch) => {
                key.out.put_i16(LEADER_EPOCH);
                value.out.put_i32(*epoch);
                true
            }
            Self::Places { id, places } => {
                key.out.put_i16(PLACES);
                key.out.put_slice(&id.0);
                places.as_ref().map(|places| value.places(places)).is_some()
            }
            Self::FeatureLevel { name, level, epoch } => {
                key.out.put_i16(FEATURE_LEVEL);
                key.text(name);
                value.out.put_i16(*level);
                value.out.put_i64(*epoch);
                true
            }
        };
        match key.too_long.or(value.too_long) {
            Some(too_long) => Err(too_long),
            None => Ok((key.out.freeze(), present.then(|| value.out.freeze()))),
        }
    }

    /// Reads a stored key and value.
    ///
    /// Errors when this version does not know the record: a node must not start on half of it.
    pub fn decode(key: &[u8], value: Option<&[u8]>) -> Result<Self> {
        let mut key = Reader(key);
        let kind = i16::from_be_bytes(key.array("type")?);
        let mut value = value.map(Reader);
        if let Some(value) = &mut value {
            let version = i16::from_be_bytes(value.array("version")?);
            if version != VERSION {
                return Err(MetadataRecordError::UnknownVersion { kind, version });
            }
        }
        let record = Self::decode_fields(kind, &mut key, value.as_mut())?;
        key.end()?;
        value.map_or(Ok(()), |value| value.end())?;
        Ok(record)
    }

    fn decode_fields(
        kind: i16,
        key: &mut Reader<'_>,
        value: Option<&mut Reader<'_>>,
    ) -> Result<Self> {
        let missing = MetadataRecordError::Truncated("value");
        Ok(match kind {
            CLUSTER => Self::Cluster { id: TopicId(value.ok_or(missing)?.array("id")?) },
            TOPIC => Self::Topic {
                name: key.text("name")?.into(),
                topic: value.map(Reader::topic).transpose()?,
            },
            DELETED_TOPIC => Self::DeletedTopic {
                id: TopicId(key.array("id")?),
                name: value.map(|value| value.text("name").map(Arc::from)).transpose()?,
            },
            CONFIG => Self::Config {
                scope: match u8::from_be_bytes(key.array("scope")?) {
                    4 => ConfigScope::Broker,
                    16 => ConfigScope::ClientMetrics,
                    32 => ConfigScope::Group,
                    _ => return Err(MetadataRecordError::Invalid("scope")),
                },
                name: key.text("name")?,
                values: value.map(|value| value.map("values")).transpose()?,
            },
            SUBSCRIPTION_GROUP => {
                let name: Arc<str> = key.text("name")?.into();
                let group =
                    value.map(|value| value.subscription_group(name.clone())).transpose()?;
                Self::SubscriptionGroup { name, group }
            }
            KV => Self::Kv {
                namespace: key.text("namespace")?,
                key: key.text("key")?,
                value: value.map(|value| value.text("value")).transpose()?,
            },
            NEXT_PRODUCER_ID => {
                Self::NextProducerId(i64::from_be_bytes(value.ok_or(missing)?.array("next")?))
            }
            NEXT_PARTITION_NUMBER => {
                Self::NextPartitionNumber(u32::from_be_bytes(value.ok_or(missing)?.array("next")?))
            }
            LEADER_EPOCH => Self::LeaderEpoch(value.ok_or(missing)?.i32("epoch")?),
            PLACES => Self::Places {
                id: TopicId(key.array("id")?),
                places: value.map(Reader::places).transpose()?,
            },
            FEATURE_LEVEL => {
                let value = value.ok_or(missing)?;
                Self::FeatureLevel {
                    name: key.text("name")?,
                    level: i16::from_be_bytes(value.array("level")?),
                    epoch: value.i64("epoch")?,
                }
            }
            _ => return Err(MetadataRecordError::UnknownType(kind)),
        })
    }
}

#[derive(Default)]
struct Writer {
    out: BytesMut,
    /// The first text whose length does not fit; what is written is then of no use.
    too_long: Option<TextTooLong>,
}

impl Writer {
    fn text(&mut self, text: &str) {
        let Ok(length) = u16::try_from(text.len()) else {
            self.too_long = self.too_long.or(Some(TextTooLong { bytes: text.len() }));
            return;
        };
        self.out.put_u16(length);
        self.out.put_slice(text.as_bytes());
    }

    fn count(&mut self, count: usize) {
        self.out.put_u32(u32::try_from(count).unwrap_or(u32::MAX));
    }

    fn map(&mut self, map: &BTreeMap<String, String>) {
        self.count(map.len());
        for (key, value) in map {
            self.text(key);
            self.text(value);
        }
    }

    fn flag(&mut self, flag: bool) {
        self.out.put_u8(u8::from(flag));
    }

    fn topic(&mut self, topic: &TopicRecord) {
        self.out.put_slice(&topic.id.0);
        self.flag(topic.internal);
        self.count(topic.numbers.len());
        topic.numbers.iter().for_each(|number| self.out.put_u32(*number));
        self.map(&topic.overrides);
    }

    fn places(&mut self, places: &Places) {
        self.count(places.dirs.len());
        places.dirs.iter().for_each(|id| self.out.put_slice(&id.0));
        self.count(places.moves.len());
        for (partition, id) in &places.moves {
            self.out.put_i32(*partition);
            self.out.put_slice(&id.0);
        }
    }

    fn subscription_group(&mut self, group: &SubscriptionGroup) {
        self.flag(group.consume_enable);
        self.flag(group.consume_from_min_enable);
        self.flag(group.consume_broadcast_enable);
        self.flag(group.consume_message_orderly);
        self.out.put_i32(group.retry_queues);
        self.out.put_i32(group.retry_times_max);
        self.text(&group.retry_policy);
        self.out.put_i64(group.broker_id);
        self.out.put_i64(group.broker_when_slow);
        self.flag(group.notify_consumer_ids_changed);
        self.out.put_i32(group.sys_flag);
        self.out.put_i32(group.consume_timeout_minutes);
        self.map(&group.attributes);
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N]> {
        let (head, tail) =
            self.0.split_first_chunk().ok_or(MetadataRecordError::Truncated(field))?;
        self.0 = tail;
        Ok(*head)
    }

    fn end(&self) -> Result<()> {
        match self.0.len() {
            0 => Ok(()),
            left => Err(MetadataRecordError::TrailingBytes(left)),
        }
    }

    fn text(&mut self, field: &'static str) -> Result<String> {
        let length = u16::from_be_bytes(self.array(field)?);
        let (head, tail) = self
            .0
            .split_at_checked(usize::from(length))
            .ok_or(MetadataRecordError::Truncated(field))?;
        self.0 = tail;
        let text = std::str::from_utf8(head).map_err(|_| MetadataRecordError::Invalid(field))?;
        Ok(text.to_owned())
    }

    /// A count of elements of at least `size` bytes each, so never more than the bytes left.
    fn count(&mut self, size: usize, field: &'static str) -> Result<usize> {
        let count = u32::from_be_bytes(self.array(field)?) as usize;
        if count > self.0.len() / size {
            return Err(MetadataRecordError::Truncated(field));
        }
        Ok(count)
    }

    fn map(&mut self, field: &'static str) -> Result<BTreeMap<String, String>> {
        let count = self.count(4, field)?;
        (0..count).map(|_| Ok((self.text(field)?, self.text(field)?))).collect()
    }

    fn flag(&mut self, field: &'static str) -> Result<bool> {
        Ok(self.array(field)? != [0])
    }

    fn i32(&mut self, field: &'static str) -> Result<i32> {
        Ok(i32::from_be_bytes(self.array(field)?))
    }

    fn i64(&mut self, field: &'static str) -> Result<i64> {
        Ok(i64::from_be_bytes(self.array(field)?))
    }

    fn topic(&mut self) -> Result<TopicRecord> {
        let id = TopicId(self.array("id")?);
        let internal = self.flag("internal")?;
        let count = self.count(4, "numbers")?;
        let numbers: Result<Vec<u32>> =
            (0..count).map(|_| Ok(u32::from_be_bytes(self.array("numbers")?))).collect();
        Ok(TopicRecord { id, internal, numbers: numbers?, overrides: self.map("overrides")? })
    }

    fn places(&mut self) -> Result<Places> {
        let count = self.count(16, "dirs")?;
        let dirs: Result<Vec<_>> = (0..count).map(|_| Ok(TopicId(self.array("dirs")?))).collect();
        let count = self.count(20, "moves")?;
        let moves: Result<_> =
            (0..count).map(|_| Ok((self.i32("moves")?, TopicId(self.array("moves")?)))).collect();
        Ok(Places { dirs: dirs?, moves: moves? })
    }

    fn subscription_group(&mut self, name: Arc<str>) -> Result<SubscriptionGroup> {
        Ok(SubscriptionGroup {
            name,
            consume_enable: self.flag("consume_enable")?,
            consume_from_min_enable: self.flag("consume_from_min_enable")?,
            consume_broadcast_enable: self.flag("consume_broadcast_enable")?,
            consume_message_orderly: self.flag("consume_message_orderly")?,
            retry_queues: self.i32("retry_queues")?,
            retry_times_max: self.i32("retry_times_max")?,
            retry_policy: self.text("retry_policy")?,
            broker_id: self.i64("broker_id")?,
            broker_when_slow: self.i64("broker_when_slow")?,
            notify_consumer_ids_changed: self.flag("notify_consumer_ids_changed")?,
            sys_flag: self.i32("sys_flag")?,
            consume_timeout_minutes: self.i32("consume_timeout_minutes")?,
            attributes: self.map("attributes")?,
        })
    }
}

#[cfg(test)]
mod tests;
