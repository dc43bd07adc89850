//! Every partition of this node, found by topic and number.

use std::sync::{Arc, OnceLock};

use dashmap::DashMap;
use duolog_log_core::ids::TopicId;

use super::{Partition, Shared};
use crate::controller::image::Topic;
use crate::controller::record::Places;

/// Every partition of this node.
#[derive(Debug)]
pub struct Partitions {
    by_topic: DashMap<TopicId, Arc<[Arc<Partition>]>>,
    metadata: OnceLock<Arc<Partition>>,
    shared: Arc<Shared>,
}

impl Partitions {
    /// No partitions yet.
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { by_topic: DashMap::new(), metadata: OnceLock::new(), shared }
    }

    /// What all of them share.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Partition `index` of the topic; `None` when there is none here.
    pub fn find(&self, topic: TopicId, index: i32) -> Option<Arc<Partition>> {
        let partitions = self.by_topic.get(&topic)?;
        partitions.get(usize::try_from(index).ok()?).cloned()
    }

    /// The partitions of a topic, by their index; `None` when there is no such topic here.
    pub fn of_topic(&self, topic: TopicId) -> Option<Arc<[Arc<Partition>]>> {
        self.by_topic.get(&topic).map(|partitions| partitions.clone())
    }

    /// Whether partition `index` of the topic is in a log directory that cannot be used.
    pub fn is_offline(&self, topic: TopicId, index: i32) -> bool {
        self.shared.log_dirs.has_offline_partitions()
            && self.find(topic, index).is_some_and(|partition| partition.is_offline())
    }

    /// All partitions of topics, in no order.
    pub fn all(&self) -> Vec<Arc<Partition>> {
        self.by_topic.iter().flat_map(|entry| entry.value().to_vec()).collect()
    }

    /// A topic came, grew, or has other settings. `places` says where its partitions are.
    pub fn put_topic(&self, topic: &Topic, places: Option<&Places>) {
        let mut partitions: Vec<_> =
            self.by_topic.get(&topic.id).map(|entry| entry.value().to_vec()).unwrap_or_default();
        partitions.iter().for_each(|partition| partition.set_config(&topic.config));
        let known = partitions.len();
        if known < topic.numbers.len() {
            let more = (0..).zip(&topic.numbers).skip(known);
            partitions.extend(more.map(|(index, number)| {
                let dir = self.shared.place_of(topic, index, places);
                dir.partition_came();
                Partition::new(topic, index, *number, dir, self.shared.clone())
            }));
            self.by_topic.insert(topic.id, partitions.into());
        }
    }

    /// A topic went: nobody finds its partitions any more. Returns them, to be ended.
    pub fn remove_topic(&self, topic: TopicId) -> Vec<Arc<Partition>> {
        let gone = self.by_topic.remove(&topic).map(|(_, partitions)| partitions.to_vec());
        let gone = gone.unwrap_or_default();
        gone.iter().for_each(|partition| partition.log_dir().partition_went());
        gone
    }

    /// The partition of the metadata log, which clients do not see.
    pub fn put_metadata(&self, topic: &Topic) -> Arc<Partition> {
        let dir = || self.shared.log_dirs.metadata().clone();
        let open = || Partition::new(topic, 0, 0, dir(), self.shared.clone());
        self.metadata.get_or_init(open).clone()
    }

    /// The partition of the metadata log, once it is open.
    pub fn metadata(&self) -> Option<Arc<Partition>> {
        self.metadata.get().cloned()
    }

    /// Whether every log that the last run left was opened and found whole.
    pub fn is_recovered(&self) -> bool {
        self.shared.log_dirs.online().all(|dir| dir.is_recovered())
    }
}
