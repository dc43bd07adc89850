//! Creating, growing, configuring and deleting topics.

use std::sync::Arc;

use duolog_log_core::ids::TopicId;

use super::image::{Image, Topic};
use super::names;
use super::record::{MetadataRecord, TopicRecord};
use super::{Controller, ControllerError, METADATA_TOPIC_ID};
use crate::config::change::{self, Alteration};
use crate::config::topic::{Overrides, check_override, check_together};
use crate::limits::{PARTITION_NUMBERS_MAX, TOPIC_PARTITIONS_MAX};

/// Who asks for a topic, which decides what names there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// A Kafka client.
    Kafka,
    /// A RocketMQ client, or the node on its behalf.
    RocketMq,
    /// The node itself.
    Node,
}

/// A topic to create.
#[derive(Clone, Debug)]
pub struct NewTopic {
    /// Stored name.
    pub name: Arc<str>,
    /// How many partitions.
    pub partitions: i32,
    /// What the topic itself sets.
    pub overrides: Overrides,
    /// Who asks.
    pub door: Door,
}

/// What becomes of a topic that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfExists {
    /// It is an error.
    Refuse,
    /// It is what was wanted.
    Return,
}

/// Checks `topic` against the image: name, partitions, settings.
pub fn check_new(image: &Image, topic: &NewTopic) -> Result<(), ControllerError> {
    names::check(&topic.name).map_err(ControllerError::InvalidTopicName)?;
    if topic.door == Door::Kafka && topic.name.starts_with(names::ROCKETMQ_PREFIX) {
        return Err(ControllerError::InvalidTopicName(format!(
            "Topic name is invalid: the prefix '{}' belongs to RocketMQ's names",
            names::ROCKETMQ_PREFIX
        )));
    }
    if image.topic(&topic.name).is_some() {
        return Err(ControllerError::TopicExists(topic.name.to_string()));
    }
    if image.deleted().values().any(|name| *name == topic.name) {
        return Err(ControllerError::TopicBeingDeleted(topic.name.to_string()));
    }
    if let Some(other) = image.colliding_topic(&topic.name) {
        return Err(ControllerError::InvalidTopicName(format!(
            "Topic '{}' collides with existing topic: {}",
            topic.name, other.name
        )));
    }
    if topic.partitions <= 0 {
        return Err(ControllerError::InvalidPartitions(
            "Number of partitions was set to an invalid non-positive value.".to_owned(),
        ));
    }
    check_count(topic.partitions)?;
    // What the node keeps its own state in is its own to set.
    for (key, value) in topic.overrides.iter().filter(|_| topic.door != Door::Node) {
        check_override(key, value).map_err(ControllerError::InvalidConfig)?;
    }
    check_together(image.values(), &topic.overrides).map_err(ControllerError::InvalidConfig)
}

fn check_count(partitions: i32) -> Result<(), ControllerError> {
    if partitions > TOPIC_PARTITIONS_MAX {
        return Err(ControllerError::InvalidPartitions(format!(
            "{partitions} partitions, a topic may have {TOPIC_PARTITIONS_MAX}"
        )));
    }
    Ok(())
}

/// The `count` next partition numbers, and the record that says they are given out.
fn numbers(
    next: u32,
    count: usize,
) -> Result<(std::ops::Range<u32>, MetadataRecord), ControllerError> {
    let end = u32::try_from(count).ok().and_then(|count| next.checked_add(count));
    let end = end.filter(|end| *end <= PARTITION_NUMBERS_MAX).ok_or_else(|| {
        ControllerError::LimitReached(format!(
            "the cluster has given out {next} of {PARTITION_NUMBERS_MAX} partition numbers"
        ))
    })?;
    Ok((next..end, MetadataRecord::NextPartitionNumber(end)))
}

impl Controller {
    /// Creates `topics` in one write; each has its own outcome. Waits while one of the same name is
    /// being deleted.
    pub async fn create_topics(
        self: &Arc<Self>,
        topics: Vec<NewTopic>,
        if_exists: IfExists,
    ) -> Vec<Result<Arc<Topic>, ControllerError>> {
        let count = topics.len();
        let names: Vec<_> = topics.iter().map(|topic| topic.name.clone()).collect();
        self.deletions_ended(&names).await;
        let decide = move |image: &Image| Ok(decide_creations(image, &topics, if_exists));
        let decided = self.change(decide).await;
        match decided {
            Ok(outcomes) => {
                let image = self.image();
                let created = |name: &Arc<str>| {
                    image.topic(name).cloned().ok_or(ControllerError::UnknownTopic)
                };
                outcomes
                    .into_iter()
                    .zip(&names)
                    .map(|(outcome, name)| outcome.and_then(|()| created(name)))
                    .collect()
            }
            Err(error) => vec![Err(error); count],
        }
    }

    /// Creates one topic.
    pub async fn create_topic(
        self: &Arc<Self>,
        topic: NewTopic,
        if_exists: IfExists,
    ) -> Result<Arc<Topic>, ControllerError> {
        let outcome = self.create_topics(vec![topic], if_exists).await.pop();
        outcome.unwrap_or(Err(ControllerError::UnknownTopic))
    }

    /// Gives a topic `total` partitions. Errors: that is not more than it has.
    pub async fn create_partitions(
        &self,
        topic: TopicId,
        total: i32,
    ) -> Result<(), ControllerError> {
        self.change(move |image| {
            let topic = image.topic_by_id(topic).ok_or(ControllerError::UnknownTopic)?;
            check_more_partitions(topic, total)?;
            let more = usize::try_from(total - topic.partition_count()).unwrap_or_default();
            let (numbers, given) = numbers(image.next_partition_number(), more)?;
            let mut record = stored(topic);
            record.numbers.extend(numbers);
            let name = topic.name.clone();
            Ok((vec![given, MetadataRecord::Topic { name, topic: Some(record) }], ()))
        })
        .await
    }

    /// Changes a topic's own settings, all or none.
    pub async fn alter_topic_config(
        &self,
        topic: TopicId,
        alteration: impl Into<Alteration>,
    ) -> Result<(), ControllerError> {
        let alteration = alteration.into();
        self.change(move |image| {
            let topic = image.topic_by_id(topic).ok_or(ControllerError::UnknownTopic)?;
            let changes = alteration.changes(&topic.overrides);
            let overrides = change::topic(image.values(), &topic.overrides, &changes)?;
            if overrides == topic.overrides {
                return Ok((Vec::new(), ()));
            }
            let record = TopicRecord { overrides, ..stored(topic) };
            let name = topic.name.clone();
            Ok((vec![MetadataRecord::Topic { name, topic: Some(record) }], ()))
        })
        .await
    }
}

/// Topics that another server has made, with what its logs ask of this node.
#[derive(Clone, Debug)]
pub struct Imported {
    /// With the ids that they have there.
    pub topics: Vec<(TopicId, NewTopic)>,
    /// The node leads in a later epoch than any that wrote there.
    pub leader_epoch: i32,
    /// No producer id below it is given out.
    pub next_producer_id: i64,
}

impl Controller {
    /// Makes topics of another server topics of this one, all or none. One that is here already, by
    /// name and id, is left as it is, but for the partitions that it has more there.
    ///
    /// Errors: those of [`check_import`].
    pub async fn import_topics(&self, imported: Imported) -> Result<(), ControllerError> {
        self.change(move |image| {
            let decided = decide_import(image, imported);
            Ok((decided.map_err(|(_, error)| error)?, ()))
        })
        .await
    }
}

/// Which topic is refused, and why.
type Refusal = (Arc<str>, ControllerError);

/// What [`Controller::import_topics`] would refuse.
///
/// Errors: `TopicExists` for a name that has another id here; `NotAllowed` for an id that is reserved
/// or that of a topic of another name, and for partitions that would come to a topic by which groups
/// are found; those of [`check_new`].
pub fn check_import(image: &Image, imported: &Imported) -> Result<(), Refusal> {
    decide_import(image, imported.clone()).map(drop)
}

fn decide_import(image: &Image, imported: Imported) -> Result<Vec<MetadataRecord>, Refusal> {
    let mut records = Vec::new();
    let mut staged = image.clone();
    for (id, topic) in imported.topics {
        let name = topic.name.clone();
        let decided = decide_imported(&mut staged, id, topic);
        records.extend(decided.map_err(|error| (name, error))?);
    }
    if image.leader_epoch().is_none_or(|epoch| epoch < imported.leader_epoch) {
        records.push(MetadataRecord::LeaderEpoch(imported.leader_epoch));
    }
    if image.next_producer_id() < imported.next_producer_id {
        records.push(MetadataRecord::NextProducerId(imported.next_producer_id));
    }
    Ok(records)
}

/// What makes one more topic, or gives it its partitions, which becomes part of `staged`.
fn decide_imported(
    staged: &mut Image,
    id: TopicId,
    topic: NewTopic,
) -> Result<Vec<MetadataRecord>, ControllerError> {
    check_imported_id(staged, id, &topic.name)?;
    let held = staged.topic(&topic.name).filter(|held| held.id == id).cloned();
    let known = match &held {
        Some(held) => held.partition_count(),
        None => check_new(staged, &topic).map(|()| 0)?,
    };
    if topic.partitions <= known {
        return Ok(Vec::new());
    }
    check_count(topic.partitions)?;
    if held.is_some() && names::is_coordinators(&topic.name) {
        let more = topic.partitions;
        return Err(ControllerError::NotAllowed(format!(
            "it has {known} partitions here and {more} there, and what is kept in them is found by \
             that number: import all log directories of the broker at once, into a data directory \
             without this topic"
        )));
    }
    let more = usize::try_from(topic.partitions.saturating_sub(known)).unwrap_or_default();
    let (numbers, given) = numbers(staged.next_partition_number(), more)?;
    let mut record = match held {
        Some(held) => stored(&held),
        None => TopicRecord {
            id,
            internal: names::is_internal(&topic.name),
            numbers: Vec::new(),
            overrides: topic.overrides,
        },
    };
    record.numbers.extend(numbers);
    let records = vec![given, MetadataRecord::Topic { name: topic.name, topic: Some(record) }];
    for record in &records {
        let applied = staged.apply(record.clone());
        applied.map_err(|error| ControllerError::InvalidConfig(error.to_string()))?;
    }
    Ok(records)
}

/// A topic's data are found and deleted by its id: no two may share one.
fn check_imported_id(image: &Image, id: TopicId, name: &str) -> Result<(), ControllerError> {
    if id == TopicId::ZERO || id == METADATA_TOPIC_ID {
        return Err(ControllerError::NotAllowed(format!("the topic id {id} is reserved")));
    }
    let held = image.topic_by_id(id).map(|topic| &topic.name);
    match held.or_else(|| image.deleted().get(&id)).filter(|held| ***held != *name) {
        Some(held) => Err(ControllerError::NotAllowed(format!(
            "its id {id} is that of topic {held}: is one a copy of the other?"
        ))),
        None => Ok(()),
    }
}

/// Whether `topic` may have `total` partitions; with Kafka's words.
pub fn check_more_partitions(topic: &Topic, total: i32) -> Result<(), ControllerError> {
    let current = topic.partition_count();
    if total < current {
        return Err(ControllerError::InvalidPartitions(format!(
            "The topic {} currently has {current} partition(s); {total} would not be an increase.",
            topic.name
        )));
    }
    if total == current {
        return Err(ControllerError::InvalidPartitions(format!(
            "Topic already has {current} partition(s)."
        )));
    }
    check_count(total)
}

fn stored(topic: &Topic) -> TopicRecord {
    TopicRecord {
        id: topic.id,
        internal: topic.internal,
        numbers: topic.numbers.clone(),
        overrides: topic.overrides.clone(),
    }
}

/// What would come of creating `topics`, each held to those before it.
pub fn check_creations(image: &Image, topics: &[NewTopic]) -> Vec<Result<(), ControllerError>> {
    decide_creations(image, topics, IfExists::Refuse).1
}

type Creations = (Vec<MetadataRecord>, Vec<Result<(), ControllerError>>);

fn decide_creations(image: &Image, topics: &[NewTopic], if_exists: IfExists) -> Creations {
    let mut records = Vec::new();
    let mut next = image.next_partition_number();
    // Names that this very request creates, to which its later topics are held too.
    let mut staged = image.clone();
    let outcomes = topics
        .iter()
        .map(|topic| {
            let exists = staged.topic(&topic.name).is_some();
            if exists && if_exists == IfExists::Return {
                return Ok(());
            }
            check_new(&staged, topic)?;
            let count = usize::try_from(topic.partitions).unwrap_or_default();
            let (numbers, given) = numbers(next, count)?;
            next = numbers.end;
            let record = MetadataRecord::Topic {
                name: topic.name.clone(),
                topic: Some(TopicRecord {
                    id: Controller::fresh_topic_id(&staged)?,
                    internal: names::is_internal(&topic.name),
                    numbers: numbers.collect(),
                    overrides: topic.overrides.clone(),
                }),
            };
            let applied = staged.apply(record.clone());
            applied.map_err(|error| ControllerError::InvalidConfig(error.to_string()))?;
            records.extend([given, record]);
            Ok(())
        })
        .collect();
    (records, outcomes)
}

#[cfg(test)]
mod tests;
