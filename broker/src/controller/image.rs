//! The metadata as one immutable value: published whole, replaced whole.
//!
//! [`Image::apply`] is the only way it changes, live and at replay alike.

mod shared_map;

use std::collections::BTreeMap;
use std::sync::Arc;

use duolog_bridge::backend::{self, SubscriptionGroup};
use duolog_bridge::translate::send::{TimestampBounds, Tombstones};
use duolog_log_core::ids::TopicId;

use self::shared_map::SharedMap;
use super::record::{ConfigScope, MetadataRecord, Places, TopicRecord};
use crate::config::topic::{Overrides, TopicConfig};
use crate::config::values::{ConfigError, Source, Values};
use crate::telemetry::subscriptions::Subscriptions;

/// A topic as it stands.
#[derive(Debug)]
pub struct Topic {
    /// Stored name.
    pub name: Arc<str>,
    /// Its identity.
    pub id: TopicId,
    /// Not for clients to write to.
    pub internal: bool,
    /// The cluster-wide number of each partition, in order.
    pub numbers: Vec<u32>,
    /// What the topic itself sets.
    pub overrides: Overrides,
    /// Everything resolved.
    pub config: Arc<TopicConfig>,
    /// The same topic in the bridge's terms.
    pub queues: Arc<backend::Topic>,
}

impl Topic {
    /// How many partitions there are.
    pub fn partition_count(&self) -> i32 {
        i32::try_from(self.numbers.len()).unwrap_or(i32::MAX)
    }

    /// Whether partition `index` exists.
    pub fn has_partition(&self, index: i32) -> bool {
        (0..self.partition_count()).contains(&index)
    }
}

/// Topics under each of their names.
#[derive(Clone, Debug, Default)]
struct Topics {
    by_name: SharedMap<Arc<str>, Arc<Topic>>,
    by_id: SharedMap<TopicId, Arc<Topic>>,
    /// Names with a dot, under the same name with `_` instead: what RocketMQ clients can write.
    by_alias: SharedMap<String, Arc<str>>,
}

/// All metadata at one moment.
#[derive(Clone, Debug)]
pub struct Image {
    cluster_id: TopicId,
    topics: Arc<Topics>,
    deleted: BTreeMap<TopicId, Arc<str>>,
    places: Arc<SharedMap<TopicId, Arc<Places>>>,
    configs: BTreeMap<(ConfigScope, String), Overrides>,
    groups: Arc<SharedMap<Arc<str>, Arc<SubscriptionGroup>>>,
    kv: Arc<BTreeMap<(String, String), String>>,
    next_producer_id: i64,
    next_partition_number: u32,
    leader_epoch: Option<i32>,
    /// Levels of features that were changed, each with the number of that change.
    features: BTreeMap<String, (i16, i64)>,
    /// What clients are asked to push; another one whenever its settings change.
    telemetry: Arc<Subscriptions>,
    static_values: Arc<Values>,
    values: Arc<Values>,
}

/// What [`Image::apply`] changed, for those who hold more than the image.
#[derive(Debug)]
pub enum Change {
    /// A topic came, grew or has other settings.
    TopicPut(Arc<Topic>),
    /// A topic went.
    TopicGone(Arc<Topic>),
    /// Every topic may have other settings.
    AllTopics,
    /// Nothing that is kept elsewhere.
    Other,
}

impl Image {
    /// The metadata of a cluster that has none yet, on a node with these static `values`.
    pub fn empty(values: Values) -> Self {
        let values = Arc::new(values);
        Self {
            cluster_id: TopicId::ZERO,
            topics: Arc::default(),
            deleted: BTreeMap::new(),
            places: Arc::default(),
            configs: BTreeMap::new(),
            groups: Arc::default(),
            kv: Arc::default(),
            next_producer_id: 0,
            next_partition_number: 0,
            leader_epoch: None,
            features: BTreeMap::new(),
            telemetry: Arc::default(),
            static_values: values.clone(),
            values,
        }
    }

    /// The cluster's id; zero before the first record.
    pub fn cluster_id(&self) -> TopicId {
        self.cluster_id
    }

    /// The topic stored under exactly this name.
    pub fn topic(&self, name: &str) -> Option<&Arc<Topic>> {
        self.topics.by_name.get(name)
    }

    /// The topic of this id.
    pub fn topic_by_id(&self, id: TopicId) -> Option<&Arc<Topic>> {
        self.topics.by_id.get(&id)
    }

    /// The topic that `name` means to a RocketMQ client: `_` may stand for a dot.
    pub fn topic_by_alias(&self, name: &str) -> Option<&Arc<Topic>> {
        self.topic(name).or_else(|| self.topic(self.topics.by_alias.get(name)?))
    }

    /// A topic whose name Kafka could not tell from `name` in metrics: `.` and `_` are the same
    /// there, so the second of them is refused.
    pub fn colliding_topic(&self, name: &str) -> Option<&Arc<Topic>> {
        let alias = alias(name);
        let other = match self.topics.by_alias.get(&alias) {
            Some(other) => self.topic(other),
            None => self.topic(&alias),
        };
        other.filter(|topic| &*topic.name != name)
    }

    /// All topics, in no order.
    pub fn topics(&self) -> impl Iterator<Item = &Arc<Topic>> {
        self.topics.by_name.values()
    }

    /// All topics, sorted by stored name.
    pub fn topics_sorted(&self) -> Vec<Arc<Topic>> {
        let mut topics: Vec<_> = self.topics().cloned().collect();
        topics.sort_by(|a, b| a.name.cmp(&b.name));
        topics
    }

    /// Deleted topics whose folders may still be there.
    pub fn deleted(&self) -> &BTreeMap<TopicId, Arc<str>> {
        &self.deleted
    }

    /// In which log directories a topic is, if that was ever noted.
    pub fn places(&self, topic: TopicId) -> Option<&Places> {
        self.places.get(&topic).map(|places| &**places)
    }

    /// Whether groups see the same in both: topics and what is set for single groups.
    pub fn is_same_to_groups(&self, other: &Self) -> bool {
        let of_groups = |image: &Self| -> Vec<_> {
            let all = image.configs.iter().filter(|((scope, _), _)| *scope == ConfigScope::Group);
            all.map(|(key, values)| (key.clone(), values.clone())).collect()
        };
        Arc::ptr_eq(&self.topics, &other.topics)
            && of_groups(self) == of_groups(other)
            && self.assignment_interval_ms() == other.assignment_interval_ms()
    }

    /// `group.consumer.assignment.interval.ms` where it was set while the node runs.
    pub fn assignment_interval_ms(&self) -> Option<i32> {
        let set = self.values.set_value("group.consumer.assignment.interval.ms");
        let (value, _) = set.filter(|(_, source)| *source == Source::Dynamic)?;
        value.trim().parse().ok()
    }

    /// What is set dynamically for one resource.
    pub fn config(&self, scope: ConfigScope, name: &str) -> Option<&Overrides> {
        self.configs.get(&(scope, name.to_owned()))
    }

    /// What has something set, by name.
    pub fn configured(&self, scope: ConfigScope) -> impl Iterator<Item = &str> {
        let all = self.configs.keys().filter(move |(held, _)| *held == scope);
        all.map(|(_, name)| name.as_str())
    }

    /// The node's configuration as it was at start.
    pub fn static_values(&self) -> &Arc<Values> {
        &self.static_values
    }

    /// A RocketMQ group's configuration.
    pub fn subscription_group(&self, name: &str) -> Option<&Arc<SubscriptionGroup>> {
        self.groups.get(name)
    }

    /// All configured RocketMQ groups, sorted by name.
    pub fn subscription_groups(&self) -> Vec<Arc<SubscriptionGroup>> {
        let mut groups: Vec<_> = self.groups.values().cloned().collect();
        groups.sort_by(|a, b| a.name.cmp(&b.name));
        groups
    }

    /// A value of the NameServer's key/value store.
    pub fn kv(&self, namespace: &str, key: &str) -> Option<&String> {
        self.kv.get(&(namespace.to_owned(), key.to_owned()))
    }

    /// Whether a namespace holds any value.
    pub fn has_kv_of(&self, namespace: &str) -> bool {
        if self.kv.is_empty() {
            return false;
        }
        let from = (namespace.to_owned(), String::new());
        self.kv.range(from..).next().is_some_and(|((known, _), _)| known == namespace)
    }

    /// All values of a namespace, by key.
    pub fn kv_of(&self, namespace: &str) -> BTreeMap<String, String> {
        let from = (namespace.to_owned(), String::new());
        let of_namespace = self.kv.range(from..).take_while(|((known, _), _)| known == namespace);
        of_namespace.map(|((_, key), value)| (key.clone(), value.clone())).collect()
    }

    /// How many values the NameServer's store holds, and their bytes, names included.
    pub fn kv_size(&self) -> (usize, usize) {
        let one = |((namespace, key), value): (&(String, String), &String)| {
            namespace.len() + key.len() + value.len()
        };
        (self.kv.len(), self.kv.iter().map(one).sum())
    }

    /// All producer ids below this one are given out.
    pub fn next_producer_id(&self) -> i64 {
        self.next_producer_id
    }

    /// All partition numbers below this one are given out.
    pub fn next_partition_number(&self) -> u32 {
        self.next_partition_number
    }

    /// The epoch in which the node leads its partitions; `None` before its first start.
    pub fn leader_epoch(&self) -> Option<i32> {
        self.leader_epoch
    }

    /// What clients are asked to push.
    pub fn telemetry(&self) -> &Arc<Subscriptions> {
        &self.telemetry
    }

    /// The level of a feature, if it was ever changed.
    pub fn feature_level(&self, name: &str) -> Option<i16> {
        self.features.get(name).map(|(level, _)| *level)
    }

    /// How many changes of levels there were.
    pub fn features_epoch(&self) -> i64 {
        self.features.values().map(|(_, epoch)| *epoch).max().unwrap_or_default()
    }

    /// The node's configuration with what was set while it runs.
    pub fn values(&self) -> &Arc<Values> {
        &self.values
    }

    /// Every record that makes this image out of nothing.
    pub fn records(&self) -> Vec<MetadataRecord> {
        let cluster = MetadataRecord::Cluster { id: self.cluster_id };
        let topics = self.topics_sorted().into_iter().map(|topic| MetadataRecord::Topic {
            name: topic.name.clone(),
            topic: Some(TopicRecord {
                id: topic.id,
                internal: topic.internal,
                numbers: topic.numbers.clone(),
                overrides: topic.overrides.clone(),
            }),
        });
        let places = self.topics_sorted().into_iter().filter_map(|topic| {
            let places = self.places(topic.id)?.clone();
            Some(MetadataRecord::Places { id: topic.id, places: Some(places) })
        });
        let deleted = self
            .deleted
            .iter()
            .map(|(id, name)| MetadataRecord::DeletedTopic { id: *id, name: Some(name.clone()) });
        let configs = self.configs.iter().map(|((scope, name), values)| MetadataRecord::Config {
            scope: *scope,
            name: name.clone(),
            values: Some(values.clone()),
        });
        let groups = self.subscription_groups().into_iter().map(|group| {
            let name = group.name.clone();
            MetadataRecord::SubscriptionGroup { name, group: Some((*group).clone()) }
        });
        let kv = self.kv.iter().map(|((namespace, key), value)| MetadataRecord::Kv {
            namespace: namespace.clone(),
            key: key.clone(),
            value: Some(value.clone()),
        });
        // The configuration first: topics resolve their defaults from it.
        [cluster]
            .into_iter()
            .chain(configs)
            .chain(topics)
            .chain(places)
            .chain(deleted)
            .chain(groups)
            .chain(kv)
            .chain([
                MetadataRecord::NextProducerId(self.next_producer_id),
                MetadataRecord::NextPartitionNumber(self.next_partition_number),
            ])
            .chain(self.leader_epoch.map(MetadataRecord::LeaderEpoch))
            .chain(self.features.iter().map(|(name, (level, epoch))| {
                let name = name.clone();
                MetadataRecord::FeatureLevel { name, level: *level, epoch: *epoch }
            }))
            .collect()
    }

    /// Makes `record` part of the image.
    ///
    /// Errors when a stored setting no longer resolves, which the checks before storing exclude.
    pub fn apply(&mut self, record: MetadataRecord) -> Result<Change, ConfigError> {
        match record {
            MetadataRecord::Cluster { id } => self.cluster_id = id,
            MetadataRecord::Topic { name, topic: Some(topic) } => {
                return self.put_topic(name, topic);
            }
            MetadataRecord::Topic { name, topic: None } => return Ok(self.remove_topic(&name)),
            MetadataRecord::DeletedTopic { id, name: Some(name) } => {
                self.deleted.insert(id, name);
            }
            MetadataRecord::DeletedTopic { id, name: None } => {
                self.deleted.remove(&id);
            }
            MetadataRecord::Config { scope, name, values } => {
                match values {
                    Some(values) => self.configs.insert((scope, name), values),
                    None => self.configs.remove(&(scope, name)),
                };
                match scope {
                    ConfigScope::Broker => return self.resolve_all(),
                    ConfigScope::ClientMetrics => self.telemetry = self.resolve_telemetry(),
                    ConfigScope::Group => {}
                }
            }
            MetadataRecord::SubscriptionGroup { name, group } => {
                let groups = Arc::make_mut(&mut self.groups);
                match group {
                    Some(group) => groups.insert(name, Arc::new(group)),
                    None => drop(groups.remove(&*name)),
                }
            }
            MetadataRecord::Kv { namespace, key, value } => {
                let kv = Arc::make_mut(&mut self.kv);
                match value {
                    Some(value) => kv.insert((namespace, key), value),
                    None => kv.remove(&(namespace, key)),
                };
            }
            MetadataRecord::NextProducerId(next) => self.next_producer_id = next,
            MetadataRecord::NextPartitionNumber(next) => self.next_partition_number = next,
            MetadataRecord::LeaderEpoch(epoch) => self.leader_epoch = Some(epoch),
            MetadataRecord::Places { id, places } => {
                let held = Arc::make_mut(&mut self.places);
                match places {
                    Some(places) => held.insert(id, Arc::new(places)),
                    None => drop(held.remove(&id)),
                }
            }
            MetadataRecord::FeatureLevel { name, level, epoch } => {
                self.features.insert(name, (level, epoch));
            }
        }
        Ok(Change::Other)
    }

    fn put_topic(&mut self, name: Arc<str>, record: TopicRecord) -> Result<Change, ConfigError> {
        let topic = Arc::new(resolve(&self.values, name, record)?);
        let topics = Arc::make_mut(&mut self.topics);
        if topic.name.contains('.') {
            topics.by_alias.insert(alias(&topic.name), topic.name.clone());
        }
        topics.by_id.insert(topic.id, topic.clone());
        topics.by_name.insert(topic.name.clone(), topic.clone());
        Ok(Change::TopicPut(topic))
    }

    fn remove_topic(&mut self, name: &str) -> Change {
        let topics = Arc::make_mut(&mut self.topics);
        let Some(topic) = topics.by_name.remove(name) else { return Change::Other };
        topics.by_id.remove(&topic.id);
        if name.contains('.') {
            topics.by_alias.remove(&alias(name));
        }
        Change::TopicGone(topic)
    }

    fn resolve_telemetry(&self) -> Arc<Subscriptions> {
        let all = self.configs.iter();
        let all = all.filter(|((scope, _), _)| *scope == ConfigScope::ClientMetrics);
        let all = all.map(|((_, name), values)| (name.as_str(), values));
        Arc::new(Subscriptions::resolve(all))
    }

    /// Lays the dynamic values over the static ones and resolves every topic anew.
    fn resolve_all(&mut self) -> Result<Change, ConfigError> {
        let mut values = (*self.static_values).clone();
        let dynamic = self.configs.iter().filter(|((scope, _), _)| *scope == ConfigScope::Broker);
        for (key, value) in dynamic.flat_map(|(_, overrides)| overrides) {
            values.set(key, value, Source::Dynamic, &|| "metadata log".to_owned())?;
        }
        self.values = Arc::new(values);
        for topic in self.topics_sorted() {
            let record = TopicRecord {
                id: topic.id,
                internal: topic.internal,
                numbers: topic.numbers.clone(),
                overrides: topic.overrides.clone(),
            };
            self.put_topic(topic.name.clone(), record)?;
        }
        Ok(Change::AllTopics)
    }
}

/// The name that a RocketMQ client must write for a name with dots.
fn alias(name: &str) -> String {
    name.replace('.', "_")
}

/// Resolves a stored topic's settings.
pub(super) fn resolve(
    values: &Values,
    name: Arc<str>,
    record: TopicRecord,
) -> Result<Topic, ConfigError> {
    let config = TopicConfig::resolve(values, &record.overrides)?;
    let partitions = i32::try_from(record.numbers.len()).unwrap_or(i32::MAX);
    let queues = backend::Topic {
        name: name.clone(),
        id: record.id,
        partitions,
        read_queues: config.rmq_read_queues.unwrap_or(partitions).min(partitions),
        write_queues: config.rmq_write_queues.unwrap_or(partitions).min(partitions),
        perm: config.rmq_perm,
        sys_flag: config.rmq_sys_flag,
        order: config.rmq_order,
        internal: record.internal,
        key_source: config.rmq_key_source,
        key_index: config.rmq_key_index,
        tombstones: if config.cleanup.compact { Tombstones::Allowed } else { Tombstones::Refused },
        timestamps: TimestampBounds {
            before_max_ms: config.timestamp_before_max_ms,
            after_max_ms: config.timestamp_after_max_ms,
        },
        attributes: config.attributes(),
    };
    Ok(Topic {
        name,
        id: record.id,
        internal: record.internal,
        numbers: record.numbers,
        overrides: record.overrides,
        config: Arc::new(config),
        queues: Arc::new(queues),
    })
}

#[cfg(test)]
mod tests;
