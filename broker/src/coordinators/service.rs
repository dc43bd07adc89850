//! All coordinators of one kind: their topic, one shard for each of its partitions.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use duolog_bridge::translate::properties::java_hash;
use duolog_coordinator::shard::{Answer, Shard as Machine};
use duolog_log_core::ids::TopicId;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::kind::{Error, Event, Kind};
use super::shard::Shard;
use crate::clock;
use crate::config::topic::Overrides;
use crate::controller::ControllerError;
use crate::controller::image::Topic;
use crate::controller::topics::{Door, IfExists, NewTopic};
use crate::limits::COORDINATORS_LOADING_MAX;
use crate::partitions::Partitions;

/// Longest that a request waits for its coordinator to have read its log, where the protocol has no
/// word for "not yet".
const READY_LIMIT: Duration = Duration::from_secs(3);

/// What the internal topic is created with.
#[derive(Clone, Copy, Debug)]
pub(super) struct TopicSettings {
    pub(super) partitions: i32,
    pub(super) segment_bytes: i32,
    pub(super) cleanup: Cleanup,
}

/// How an internal topic gets rid of what nobody needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cleanup {
    /// By key.
    Compacted,
    /// Its coordinator raises the start of its log.
    Trimmed,
}

impl Cleanup {
    fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Compacted => &[("cleanup.policy", "compact")],
            Self::Trimmed => &[
                ("cleanup.policy", "delete"),
                ("retention.ms", "-1"),
                ("retention.bytes", "-1"),
                // RocketMQ's messages obey its own `maxMessageSize`.
                ("max.message.bytes", "75497472"),
            ],
        }
    }
}

/// The coordinators over one internal topic.
#[derive(Debug)]
pub(super) struct Shards<K: Kind> {
    topic: TopicId,
    pub(super) all: Vec<Arc<Shard<K>>>,
}

/// All coordinators of one kind.
pub(super) struct Service<K: Kind> {
    pub(super) kind: Arc<K>,
    partitions: Arc<Partitions>,
    topic: TopicSettings,
    shards: ArcSwapOption<Shards<K>>,
    /// Held while `shards` is replaced.
    replacing: Mutex<()>,
    stopping: CancellationToken,
}

impl<K: Kind> fmt::Debug for Service<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shards = self.shards.load();
        f.debug_struct("Service")
            .field("shards", &shards.as_ref().map(|shards| shards.all.len()))
            .finish_non_exhaustive()
    }
}

impl<K: Kind> Service<K> {
    /// No coordinators yet.
    pub(super) fn new(
        kind: K,
        partitions: Arc<Partitions>,
        topic: TopicSettings,
        stopping: CancellationToken,
    ) -> Self {
        Self {
            kind: Arc::new(kind),
            partitions,
            topic,
            shards: ArcSwapOption::empty(),
            replacing: Mutex::new(()),
            stopping,
        }
    }

    /// Looks at the clock until the node stops, then ends all coordinators.
    pub(super) async fn run(&self) {
        tokio::select! {
            () = self.stopping.cancelled() => {}
            () = self.run_timer() => {}
        }
        // What is held would keep connections from ending.
        self.resign();
    }

    /// The internal topic, created on first need.
    ///
    /// Errors: it cannot be created.
    pub(super) async fn topic(&self) -> Result<Arc<Topic>, ControllerError> {
        let controller = &self.kind.env().controller;
        if let Some(topic) = controller.image().topic(K::TOPIC) {
            return Ok(topic.clone());
        }
        let segment_bytes = self.topic.segment_bytes.to_string();
        let own = [("compression.type", "producer"), ("segment.bytes", segment_bytes.as_str())];
        let overrides = self.topic.cleanup.settings().iter().chain(&own);
        let topic = NewTopic {
            name: K::TOPIC.into(),
            partitions: self.topic.partitions,
            overrides: overrides
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect::<Overrides>(),
            door: Door::Node,
        };
        controller.create_topic(topic, IfExists::Return).await
    }

    /// The coordinator of `name`, with its log read; the topic is created on first need.
    ///
    /// Errors: there cannot be one; it is still loading after some seconds.
    pub(super) async fn ready_shard(&self, name: &str) -> Result<Arc<Shard<K>>, Error<K>> {
        if self.shards().is_none() {
            self.topic().await.map_err(|error| {
                tracing::warn!(%error, topic = K::TOPIC, "an internal topic cannot be created");
                K::Machine::overloaded()
            })?;
        }
        let shard = self.shard(name)?;
        ready(&shard).await?;
        Ok(shard)
    }

    /// The coordinators, if there is a topic for them.
    pub(super) fn shards(&self) -> Option<Arc<Shards<K>>> {
        if let Some(shards) = self.shards.load_full() {
            return Some(shards);
        }
        let topic = self.kind.env().controller.image().topic(K::TOPIC)?.clone();
        let replacing = self.replacing.lock();
        if let Some(shards) = self.shards.load_full() {
            return Some(shards);
        }
        if self.stopping.is_cancelled() {
            return None;
        }
        let found =
            (0..topic.partition_count()).filter_map(|index| self.partitions.find(topic.id, index));
        let shard = |(index, partition)| Arc::new(Shard::new(index, partition, self.kind.clone()));
        let all = found.enumerate().map(shard).collect();
        let shards = Arc::new(Shards { topic: topic.id, all });
        self.shards.store(Some(shards.clone()));
        drop(replacing);
        self.handle().spawn(load_all(shards.clone()));
        Some(shards)
    }

    /// Where the coordinators run.
    pub(super) fn handle(&self) -> &tokio::runtime::Handle {
        &self.kind.env().handle
    }

    /// The coordinators that are there already.
    pub(super) fn present(&self) -> Option<Arc<Shards<K>>> {
        self.shards.load_full()
    }

    /// The partition of the internal topic that `name` belongs to, were it created now or not.
    pub(super) fn partition_of(&self, name: &str) -> i32 {
        let image = self.kind.env().controller.image();
        let count =
            image.topic(K::TOPIC).map_or(self.topic.partitions, |topic| topic.partition_count());
        let partition = partition_of(name, usize::try_from(count).unwrap_or_default());
        i32::try_from(partition).unwrap_or_default()
    }

    /// The coordinator of `name`. Errors: `NotCoordinator` before there is one.
    pub(super) fn shard(&self, name: &str) -> Result<Arc<Shard<K>>, Error<K>> {
        let shards = self.shards().ok_or_else(K::Machine::resigned)?;
        let shard = shards.all.get(partition_of(name, shards.all.len()));
        shard.cloned().ok_or_else(K::Machine::resigned)
    }

    /// The coordinator of one partition of the topic.
    pub(super) fn shard_at(&self, index: i32) -> Option<Arc<Shard<K>>> {
        self.shards()?.all.get(usize::try_from(index).ok()?).cloned()
    }

    /// Has the coordinator of `name` decide `event`; the answer may take its time.
    pub(super) async fn ask(&self, name: &str, event: Event<K>) -> Answer<K::Machine> {
        answered::<K>(self.shard(name)?.submit(event)).await
    }

    /// As [`Self::ask`] to every coordinator: each one's answer.
    pub(super) async fn ask_all(&self, event: &Event<K>) -> Vec<Answer<K::Machine>> {
        let shards = self.shards();
        let all = shards.iter().flat_map(|shards| &shards.all);
        let asked: Vec<_> = all.map(|shard| shard.submit(event.clone())).collect();
        let mut answers = Vec::with_capacity(asked.len());
        for answer in asked {
            answers.push(answered::<K>(answer).await);
        }
        answers
    }

    /// Ends all coordinators if `topic` was theirs; returns whether it was.
    pub(super) fn topic_deleted(&self, topic: TopicId) -> bool {
        let is_own = self.present().is_some_and(|shards| shards.topic == topic);
        if is_own {
            self.resign();
        }
        is_own
    }

    async fn run_timer(&self) {
        loop {
            let due = self.kind.env().timer.due().await;
            let Some(shards) = self.shards.load_full() else { continue };
            for shard in due.iter().filter_map(|index| shards.all.get(*index)) {
                shard.tick();
            }
        }
    }

    /// Ends all coordinators: what waits is answered `NotCoordinator`.
    fn resign(&self) {
        let replacing = self.replacing.lock();
        let shards = self.shards.swap(None);
        drop(replacing);
        for shard in shards.iter().flat_map(|shards| &shards.all) {
            shard.resign();
        }
    }
}

/// Waits until a coordinator has read its log, for some seconds.
///
/// Errors: it takes longer.
pub(super) async fn ready<K: Kind>(shard: &Arc<Shard<K>>) -> Result<(), Error<K>> {
    match tokio::time::timeout(READY_LIMIT, shard.ready()).await {
        Ok(()) => Ok(()),
        Err(_) => Err(K::loading()),
    }
}

/// The answer, or the refusal of a coordinator that ended before.
pub(super) async fn answered<K: Kind>(
    answer: oneshot::Receiver<Answer<K::Machine>>,
) -> Answer<K::Machine> {
    answer.await.unwrap_or_else(|_| Err(K::Machine::resigned()))
}

/// Reads the logs of all shards, a few at a time; those that requests ask for come first of
/// themselves.
async fn load_all<K: Kind>(shards: Arc<Shards<K>>) {
    let workers = (0..COORDINATORS_LOADING_MAX).map(|worker| {
        let shards = shards.clone();
        async move {
            for shard in shards.all.iter().skip(worker).step_by(COORDINATORS_LOADING_MAX) {
                shard.ready().await;
            }
        }
    });
    futures_util::future::join_all(workers).await;
    let at_ms = clock::tick_ms();
    tracing::debug!(shards = shards.all.len(), at_ms, "{} are read", K::CONTENT);
}

/// The partition of an internal topic that a name belongs to: `Utils.abs(hashCode) % count`.
pub(super) fn partition_of(name: &str, count: usize) -> usize {
    // Java's Utils.abs makes 0 of the one number that has no positive counterpart.
    let positive = java_hash(name).checked_abs().unwrap_or_default();
    usize::try_from(positive).unwrap_or_default() % count.max(1)
}
