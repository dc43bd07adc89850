//! What the cluster is: topics, ids, configurations, groups.
//!
//! One [`Image`] holds it all and is published whole. A change is decided on the image, written to
//! the metadata log, synced, then applied through the same function as at start, and only then
//! answered. Changes happen one at a time, in the hands of the log's `owner`, which finishes them
//! even when nobody waits for the answer any more.

mod deletions;
pub mod image;
mod log;
pub mod names;
mod owner;
mod places;
pub mod record;
pub mod routes;
pub mod topics;

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use duolog_bridge::backend::SubscriptionGroup;
use duolog_log_core::ids::TopicId;
use tokio::sync::{mpsc, oneshot};

use self::deletions::Deletions;
use self::image::Image;
use self::log::MetadataLog;
pub use self::log::{METADATA_TOPIC_ID, MetadataLogError};
use self::owner::{Command, Owner};
use self::record::{ConfigScope, MetadataRecord};
use self::routes::Routes;
use crate::config::change::{self, Alteration, ChangeError, KeyChange};
use crate::config::topic::Overrides;
use crate::config::values::Values;
use crate::instruments::Instruments;
use crate::kafka::features::{FEATURES, FeatureUpdate};
use crate::limits::{KV_BYTES_MAX, KV_VALUES_MAX, METADATA_CHANGES_MAX};
use crate::partitions::Partitions;
use crate::random;

/// Why a change of the metadata was refused. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControllerError {
    /// There is one of this name.
    #[error("Topic '{0}' already exists.")]
    TopicExists(String),
    /// One of this name was deleted and its folders are not gone yet.
    #[error("Topic '{0}' is marked for deletion.")]
    TopicBeingDeleted(String),
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
    /// A level that a feature cannot have.
    #[error("{0}")]
    InvalidFeatureLevel(String),
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

/// The one that changes the metadata.
#[derive(Debug)]
pub struct Controller {
    image: Arc<ArcSwap<Image>>,
    owner: mpsc::Sender<Command>,
    partitions: Arc<Partitions>,
    deletions: Deletions,
    routes: Arc<Routes>,
}

impl Controller {
    /// Reads the metadata log into an image and takes up its work. `image` holds the node's static
    /// configuration.
    ///
    /// Errors: the log cannot be read; a record in it is not known to this version; a partition is in
    /// two log directories.
    pub async fn open(
        image: Image,
        partitions: Arc<Partitions>,
        instruments: Arc<Instruments>,
    ) -> Result<Self, MetadataLogError> {
        let (log, mut image) = MetadataLog::open(image, &partitions).await?;
        partitions.shared().hints_are_for(image.topics().map(|topic| topic.id));
        let notes = partitions.shared().settle(&image)?;
        if !notes.is_empty() {
            log.append(&notes).await?;
        }
        for note in notes {
            image.apply(note)?;
        }
        image.topics().for_each(|topic| partitions.put_topic(topic, image.places(topic.id)));
        let image = Arc::new(ArcSwap::from_pointee(image));
        let (owner, commands) = mpsc::channel(METADATA_CHANGES_MAX);
        let routes = Arc::new(Routes::new(instruments));
        let (shared, published) = (partitions.clone(), routes.clone());
        tokio::spawn(Owner::new(log, image.clone(), shared, published).run(commands));
        Ok(Self { image, owner, partitions, deletions: Deletions::default(), routes })
    }

    /// What the name server shows of topics.
    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    /// The metadata now, for as long as one request needs it.
    pub fn image(&self) -> Guard<Arc<Image>> {
        self.image.load()
    }

    /// Decides on the newest image, writes what was decided, and makes it the image. Once begun this
    /// comes to its end, also when the caller no longer waits.
    ///
    /// `decide` returns the records to write and what to answer; without records nothing is written.
    async fn change<T: Send + 'static>(
        &self,
        decide: impl FnOnce(&Image) -> Result<(Vec<MetadataRecord>, T), ControllerError>
        + Send
        + 'static,
    ) -> Result<T, ControllerError> {
        self.ask(|reply| owner::change(decide, reply)).await
    }

    /// Gives out a producer id, never twice.
    pub async fn next_producer_id(&self) -> Result<i64, ControllerError> {
        self.ask(Command::ProducerId).await
    }

    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, ControllerError>>) -> Command,
    ) -> Result<T, ControllerError> {
        let ended = || ControllerError::NotWritable("the node is stopping".to_owned());
        let (reply, answer) = oneshot::channel();
        self.owner.send(command(reply)).await.map_err(|_| ended())?;
        answer.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Changes what is set dynamically for one node (its id) or for all of them (an empty name):
    /// all changes or none.
    pub async fn alter_broker_config(
        &self,
        name: &str,
        alteration: impl Into<Alteration>,
    ) -> Result<(), ControllerError> {
        self.alter_config(ConfigScope::Broker, name, alteration.into(), change::broker).await
    }

    /// Changes what is set for one Kafka group, which need not exist: all changes or none.
    pub async fn alter_group_config(
        &self,
        name: &str,
        alteration: impl Into<Alteration>,
    ) -> Result<(), ControllerError> {
        self.alter_config(ConfigScope::Group, name, alteration.into(), change::group).await
    }

    /// Changes what clients are asked to push under `name`: all changes or none.
    pub async fn alter_client_metrics(
        &self,
        name: &str,
        alteration: Alteration,
    ) -> Result<(), ControllerError> {
        let checked = name.to_owned();
        let check = move |_: &Values, held: &Overrides, changes: &[KeyChange]| {
            change::client_metrics(&checked, held, changes)
        };
        self.alter_config(ConfigScope::ClientMetrics, name, alteration, check).await
    }

    async fn alter_config(
        &self,
        scope: ConfigScope,
        name: &str,
        alteration: Alteration,
        check: impl FnOnce(&Values, &Overrides, &[KeyChange]) -> Result<Overrides, ChangeError>
        + Send
        + 'static,
    ) -> Result<(), ControllerError> {
        let name = name.to_owned();
        self.change(move |image| {
            let held = image.config(scope, &name).cloned().unwrap_or_default();
            let values = check(image.values(), &held, &alteration.changes(&held))?;
            if values == held {
                return Ok((Vec::new(), ()));
            }
            let values = Some(values).filter(|values| !values.is_empty());
            Ok((vec![MetadataRecord::Config { scope, name, values }], ()))
        })
        .await
    }

    /// Changes levels of features on `node`: all of them or none; or only says whether that could be
    /// done.
    pub async fn update_features(
        &self,
        node: i32,
        updates: Vec<FeatureUpdate>,
        validate_only: bool,
    ) -> Result<(), ControllerError> {
        self.change(move |image| {
            for update in &updates {
                update.check(image, node).map_err(ControllerError::InvalidFeatureLevel)?;
            }
            let epoch = image.features_epoch() + 1;
            let mut records = Vec::new();
            for feature in FEATURES.iter().filter(|_| !validate_only) {
                let wanted = updates.iter().rev().find(|update| update.name == feature.name);
                let wanted = wanted.filter(|update| update.level != feature.level(image));
                records.extend(wanted.map(|update| MetadataRecord::FeatureLevel {
                    name: update.name.clone(),
                    level: update.level,
                    epoch,
                }));
            }
            Ok((records, ()))
        })
        .await
    }

    /// Creates or changes a RocketMQ group's configuration.
    pub async fn put_subscription_group(
        &self,
        group: SubscriptionGroup,
    ) -> Result<(), ControllerError> {
        self.change(move |image| {
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
        let name: Arc<str> = name.into();
        self.change(move |image| {
            let is_there = image.subscription_group(&name).is_some();
            let record = MetadataRecord::SubscriptionGroup { name, group: None };
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
        let (namespace, key) = (namespace.to_owned(), key.to_owned());
        self.change(move |image| {
            let unchanged = image.kv(&namespace, &key) == value.as_ref();
            if let Some(value) = &value {
                check_kv_room(image, &namespace, &key, value)?;
            }
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

/// Is there room for this value? What grows nothing always has it.
fn check_kv_room(
    image: &Image,
    namespace: &str,
    key: &str,
    value: &str,
) -> Result<(), ControllerError> {
    let (count, bytes) = image.kv_size();
    let held = image.kv(namespace, key);
    let grows = held.is_none_or(|held| held.len() < value.len());
    let names = namespace.len() + key.len();
    let (count, bytes) = match held {
        Some(held) => (count, bytes - held.len() + value.len()),
        None => (count + 1, bytes + names + value.len()),
    };
    if grows && (count > KV_VALUES_MAX || bytes > KV_BYTES_MAX) {
        return Err(ControllerError::LimitReached(format!(
            "the store of texts holds at most {KV_BYTES_MAX} bytes and {KV_VALUES_MAX} values"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
