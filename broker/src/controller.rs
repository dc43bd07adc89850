//! What the cluster is: topics, ids, configurations, groups.
//!
//! One [`Image`] holds it all and is published whole. A change is decided on the image, written to
//! the metadata log, synced, then applied through the same function as at start, and only then
//! answered. Changes happen one at a time.

pub mod image;
mod log;
pub mod names;
pub mod record;
pub mod topics;

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use duolog_bridge::backend::SubscriptionGroup;
use duolog_log_core::ids::TopicId;

use self::image::{Change, Image};
use self::log::MetadataLog;
pub use self::log::MetadataLogError;
use self::record::{ConfigScope, MetadataRecord};
use crate::config::change::{self, ChangeError, KeyChange};
use crate::partitions::Partitions;
use crate::random;

/// Why a change of the metadata was refused. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControllerError {
    /// There is one of this name.
    #[error("Topic '{0}' already exists.")]
    TopicExists(String),
    /// Not a name that a topic may have, or one too like another's.
    #[error("{0}")]
    InvalidTopicName(String),
    /// None of this name.
    #[error("This server does not host this topic-partition.")]
    UnknownTopic,
    /// None of this id.
    #[error("This server does not host this topic ID.")]
    UnknownTopicId,
    /// A number of partitions that cannot be.
    #[error("{0}")]
    InvalidPartitions(String),
    /// More replicas than nodes, or none.
    #[error("{0}")]
    InvalidReplicationFactor(String),
    /// Replicas that cannot be placed so.
    #[error("{0}")]
    InvalidReplicaAssignment(String),
    /// A setting that is unknown, wrong, or not acted on yet.
    #[error("{0}")]
    InvalidConfig(String),
    /// Not for clients to change.
    #[error("{0}")]
    NotAllowed(String),
    /// `delete.topic.enable=false`.
    #[error("Topic deletion is disabled.")]
    DeletionDisabled,
    /// A bound of the node.
    #[error("{0}")]
    LimitReached(String),
    /// The metadata log cannot be written.
    #[error("metadata log: {0}")]
    NotWritable(String),
}

impl From<ChangeError> for ControllerError {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::InvalidConfig(text) => Self::InvalidConfig(text),
            ChangeError::InvalidRequest(text) => Self::NotAllowed(text),
        }
    }
}

/// Ids of one block: `first` inclusive, `end` exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerIds {
    /// The first id that is free.
    pub first: i64,
    /// The first id that is not of this block.
    pub end: i64,
}

/// Ids given out with one write of the metadata log (Kafka's `ProducerIdsBlock`).
const PRODUCER_IDS_BLOCK: i64 = 1000;

/// The one that changes the metadata.
#[derive(Debug)]
pub struct Controller {
    image: ArcSwap<Image>,
    log: tokio::sync::Mutex<MetadataLog>,
    producer_ids: tokio::sync::Mutex<ProducerIds>,
    partitions: Arc<Partitions>,
}

impl Controller {
    /// Reads the metadata log into an image and takes up its work. `image` holds the node's static
    /// configuration.
    ///
    /// Errors: the log cannot be read; a record in it is not known to this version.
    pub async fn open(image: Image, partitions: Arc<Partitions>) -> Result<Self, MetadataLogError> {
        let (log, image) = MetadataLog::open(image, &partitions).await?;
        image.topics().for_each(|topic| partitions.put_topic(topic));
        Ok(Self {
            image: ArcSwap::from_pointee(image),
            log: tokio::sync::Mutex::new(log),
            producer_ids: tokio::sync::Mutex::new(ProducerIds { first: 0, end: 0 }),
            partitions,
        })
    }

    /// The metadata now, for as long as one request needs it.
    pub fn image(&self) -> Guard<Arc<Image>> {
        self.image.load()
    }

    /// Decides on the newest image, writes what was decided, and makes it the image.
    ///
    /// `decide` returns the records to write and what to answer; without records nothing is written.
    async fn change<T>(
        &self,
        decide: impl FnOnce(&Image) -> Result<(Vec<MetadataRecord>, T), ControllerError>,
    ) -> Result<T, ControllerError> {
        let log = self.log.lock().await;
        let (records, answer) = decide(&self.image.load())?;
        if records.is_empty() {
            return Ok(answer);
        }
        let mut image = (**self.image.load()).clone();
        let mut changes = Vec::with_capacity(records.len());
        for record in &records {
            let change = image.apply(record.clone());
            changes
                .push(change.map_err(|error| ControllerError::InvalidConfig(error.to_string()))?);
        }
        log.append(&records)
            .await
            .map_err(|error| ControllerError::NotWritable(error.to_string()))?;
        // Partitions first: whoever finds a topic in the image must find its partitions.
        let image = Arc::new(image);
        for change in changes {
            match change {
                Change::TopicPut(topic) => self.partitions.put_topic(&topic),
                Change::AllTopics => {
                    image.topics().for_each(|topic| self.partitions.put_topic(topic));
                }
                Change::TopicGone(_) | Change::Other => {}
            }
        }
        self.image.store(image);
        Ok(answer)
    }

    /// Gives out a producer id, never twice.
    pub async fn next_producer_id(&self) -> Result<i64, ControllerError> {
        let mut block = self.producer_ids.lock().await;
        if block.first == block.end {
            *block = self
                .change(|image| {
                    let first = image.next_producer_id();
                    let end = first.checked_add(PRODUCER_IDS_BLOCK).ok_or_else(|| {
                        ControllerError::LimitReached("no producer ids are left".to_owned())
                    })?;
                    let records = vec![MetadataRecord::NextProducerId(end)];
                    Ok((records, ProducerIds { first, end }))
                })
                .await?;
        }
        let id = block.first;
        block.first += 1;
        Ok(id)
    }

    /// Changes what is set dynamically for one node (its id) or for all of them (an empty name):
    /// all changes or none.
    pub async fn alter_broker_config(
        &self,
        name: &str,
        changes: Vec<KeyChange>,
    ) -> Result<(), ControllerError> {
        self.change(|image| {
            let scope = ConfigScope::Broker;
            let held = image.config(scope, name).cloned().unwrap_or_default();
            let values = change::broker(image.values(), &held, &changes)?;
            if values == held {
                return Ok((Vec::new(), ()));
            }
            let values = Some(values).filter(|values| !values.is_empty());
            Ok((vec![MetadataRecord::Config { scope, name: name.to_owned(), values }], ()))
        })
        .await
    }

    /// Creates or changes a RocketMQ group's configuration.
    pub async fn put_subscription_group(
        &self,
        group: SubscriptionGroup,
    ) -> Result<(), ControllerError> {
        self.change(|image| {
            let unchanged =
                image.subscription_group(&group.name).is_some_and(|held| **held == group);
            let name = group.name.clone();
            let record = MetadataRecord::SubscriptionGroup { name, group: Some(group) };
            Ok((if unchanged { Vec::new() } else { vec![record] }, ()))
        })
        .await
    }

    /// Deletes a RocketMQ group's configuration, if there is one.
    pub async fn delete_subscription_group(&self, name: &str) -> Result<(), ControllerError> {
        self.change(|image| {
            let record = MetadataRecord::SubscriptionGroup { name: name.into(), group: None };
            let is_there = image.subscription_group(name).is_some();
            Ok((if is_there { vec![record] } else { Vec::new() }, ()))
        })
        .await
    }

    /// Stores a value of the NameServer's store; `None` deletes it.
    pub async fn put_kv(
        &self,
        namespace: &str,
        key: &str,
        value: Option<String>,
    ) -> Result<(), ControllerError> {
        self.change(|image| {
            let unchanged = image.kv(namespace, key) == value.as_ref();
            let (namespace, key) = (namespace.to_owned(), key.to_owned());
            let record = MetadataRecord::Kv { namespace, key, value };
            Ok((if unchanged { Vec::new() } else { vec![record] }, ()))
        })
        .await
    }

    /// An id that no topic has.
    fn fresh_topic_id(image: &Image) -> Result<TopicId, ControllerError> {
        loop {
            let id =
                random::uuid().map_err(|error| ControllerError::NotWritable(error.to_string()))?;
            if image.topic_by_id(id).is_none() && !image.deleted().contains_key(&id) {
                return Ok(id);
            }
        }
    }
}

#[cfg(test)]
mod tests;
