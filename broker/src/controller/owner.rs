//! The owner of the metadata log: the only one that writes it and changes the image.
//!
//! It is a task of its own and takes one change after the other. Whoever asked may go away
//! meanwhile: what was begun is finished, so that the log never says what the image does not.

use std::sync::Arc;

use arc_swap::ArcSwap;
use duolog_log_core::ids::ProducerId;
use tokio::sync::{mpsc, oneshot};

use super::image::{Change, Image, Topic};
use super::log::{MetadataLog, MetadataLogError};
use super::record::MetadataRecord;
use super::routes::Routes;
use super::{ControllerError, ProducerIds};
use crate::log_dirs::LogDirs;
use crate::partitions::Partitions;

/// Ids given out with one write of the metadata log (Kafka's `ProducerIdsBlock`).
const PRODUCER_IDS_BLOCK: i64 = 1000;

/// What the owner can be asked to do.
pub(super) enum Command {
    /// Decide on the newest image, write what was decided, make it the image, answer.
    Change(Decide),
    /// Give out a producer id.
    ProducerId(oneshot::Sender<Result<i64, ControllerError>>),
}

/// Decides a change; `None` when nothing has to be written, which is answered already.
pub(super) type Decide = Box<dyn FnOnce(&Image) -> Option<Decided> + Send>;

/// A change to be written.
pub(super) struct Decided {
    records: Vec<MetadataRecord>,
    answer: Box<dyn FnOnce(Result<(), ControllerError>) + Send>,
}

/// Asks for what `decide` returns: records to write, and the answer once they are written.
pub(super) fn change<T: Send + 'static>(
    decide: impl FnOnce(&Image) -> Result<(Vec<MetadataRecord>, T), ControllerError> + Send + 'static,
    reply: oneshot::Sender<Result<T, ControllerError>>,
) -> Command {
    Command::Change(Box::new(move |image| match decide(image) {
        Ok((records, answer)) if !records.is_empty() => {
            let answer = Box::new(move |written: Result<(), ControllerError>| {
                // Nobody may wait any more.
                drop(reply.send(written.map(|()| answer)));
            });
            Some(Decided { records, answer })
        }
        decided => {
            drop(reply.send(decided.map(|(_, answer)| answer)));
            None
        }
    }))
}

/// See the module.
pub(super) struct Owner {
    log: MetadataLog,
    image: Arc<ArcSwap<Image>>,
    partitions: Arc<Partitions>,
    routes: Arc<Routes>,
    producer_ids: ProducerIds,
}

impl Owner {
    pub(super) fn new(
        log: MetadataLog,
        image: Arc<ArcSwap<Image>>,
        partitions: Arc<Partitions>,
        routes: Arc<Routes>,
    ) -> Self {
        Self { log, image, partitions, routes, producer_ids: ProducerIds { first: 0, end: 0 } }
    }

    /// Works until nobody can ask any more.
    pub(super) async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        while let Some(command) = commands.recv().await {
            match command {
                Command::Change(decide) => {
                    let decided = decide(&self.image.load());
                    if let Some(decided) = decided {
                        (decided.answer)(self.write(decided.records).await);
                    }
                }
                Command::ProducerId(reply) => drop(reply.send(self.next_producer_id().await)),
            }
        }
    }

    /// Writes `records`, synced, and makes them part of the image.
    async fn write(&self, mut records: Vec<MetadataRecord>) -> Result<(), ControllerError> {
        let before = self.image.load_full();
        let places = places(&self.partitions.shared().log_dirs, &before, &records);
        records.extend(places);
        let mut image = (*before).clone();
        let mut changes = Vec::with_capacity(records.len());
        for record in &records {
            let change = image.apply(record.clone());
            changes
                .push(change.map_err(|error| ControllerError::InvalidConfig(error.to_string()))?);
        }
        let written = self.log.append(&records).await;
        written.map_err(|error| match error {
            MetadataLogError::TooLong(error) => ControllerError::InvalidConfig(error.to_string()),
            error => ControllerError::NotWritable(error.to_string()),
        })?;
        // Partitions first: whoever finds a topic in the image must find its partitions.
        let image = Arc::new(image);
        let mut publications = Vec::new();
        for change in changes {
            match change {
                Change::TopicPut(topic) => {
                    self.partitions.put_topic(&topic, image.places(topic.id));
                    let before = before.topic_by_id(topic.id).map(|topic| &topic.queues);
                    publications.extend(self.routes.begin(before, &topic.queues));
                }
                Change::AllTopics => {
                    let put = |topic: &Arc<Topic>| {
                        self.partitions.put_topic(topic, image.places(topic.id));
                    };
                    image.topics().for_each(put);
                }
                Change::TopicGone(topic) => self.routes.forget(topic.id),
                Change::Other => {}
            }
        }
        self.image.store(image);
        publications.into_iter().for_each(|publication| self.routes.publish(publication));
        Ok(())
    }

    async fn next_producer_id(&mut self) -> Result<i64, ControllerError> {
        if self.producer_ids.first == self.producer_ids.end {
            let first = self.image.load().next_producer_id();
            let end = first.checked_add(PRODUCER_IDS_BLOCK);
            // Partitions refuse those of deliveries from clients.
            let end = end.filter(|end| !ProducerId(*end).is_of_delivery()).ok_or_else(|| {
                ControllerError::LimitReached("no producer ids are left".to_owned())
            })?;
            self.write(vec![MetadataRecord::NextProducerId(end)]).await?;
            self.producer_ids = ProducerIds { first, end };
        }
        let id = self.producer_ids.first;
        self.producer_ids.first += 1;
        Ok(id)
    }
}

/// Where the partitions that `records` make go, to be noted with them; nothing on a node with one log
/// directory.
fn places(dirs: &LogDirs, image: &Image, records: &[MetadataRecord]) -> Vec<MetadataRecord> {
    let mut notes = Vec::new();
    for record in records {
        let MetadataRecord::Topic { name, topic } = record else { continue };
        let held = image.topic(name);
        let noted = held.and_then(|held| image.places(held.id));
        match topic {
            None => notes.extend(noted.and(held).map(|held| (held.id, None))),
            Some(topic) if dirs.all().len() > 1 || noted.is_some() => {
                let mut places = noted.cloned().unwrap_or_default();
                let more = topic.numbers.len().saturating_sub(places.dirs.len());
                places.dirs.extend(dirs.with_fewest(more));
                if more > 0 {
                    notes.push((topic.id, Some(places)));
                }
            }
            Some(_) => {}
        }
    }
    notes.into_iter().map(|(id, places)| MetadataRecord::Places { id, places }).collect()
}
