//! Group coordinators: one per partition of `__consumer_offsets`, driven from here.
//!
//! ```text
//! request ─▶ lock of its shard ─▶ coordinator::runtime decides ─▶ answer, or records
//!                                                                   │ a task while an append is open
//!                 answer ◀─ replay ◀─ committed by all in sync ◀─ one batch into the partition
//! ```
//!
//! No lock is held across a wait, an idle shard costs no task, and one timer serves them all. A
//! shard whose log was never written is served without opening it. Read the modules in this order.

mod env;
mod shard;

mod append;
mod load;
mod metadata;
mod timer;

mod kafka;
mod rocketmq;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use duolog_bridge::translate::properties::java_hash;
use duolog_coordinator::error::GroupError;
use duolog_coordinator::group::event::{DeletedTopic, Event};
use duolog_coordinator::group::shard::GroupShard;
use duolog_coordinator::shard::Answer;
use duolog_log_core::gate::{GatePoint, GateSubject};
use duolog_log_core::ids::TopicId;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use self::env::Env;
pub use self::rocketmq::NoticeSink;
use self::shard::Shard;
use crate::clock;
use crate::config::Config;
use crate::config::topic::Overrides;
use crate::controller::image::Topic;
use crate::controller::topics::{Door, IfExists, NewTopic};
use crate::controller::{Controller, ControllerError, names};
use crate::instruments::{Instruments, Passage};
use crate::limits::{COORDINATORS_LOADING_MAX, EVENTS_ON_THEIR_WAY_MAX};
use crate::partitions::Partitions;

/// Longest that a request waits for its coordinator to have read its log, where the protocol has no
/// word for "not yet".
const READY_LIMIT: Duration = Duration::from_secs(3);

/// What `__consumer_offsets` is created with.
#[derive(Clone, Copy, Debug)]
struct TopicSettings {
    partitions: i32,
    segment_bytes: i32,
}

/// The coordinators over one `__consumer_offsets`.
#[derive(Debug)]
struct Shards {
    topic: TopicId,
    all: Vec<Arc<Shard>>,
}

/// All coordinators of this node.
pub struct Coordinators {
    env: Arc<Env>,
    partitions: Arc<Partitions>,
    instruments: Arc<Instruments>,
    topic: TopicSettings,
    shards: ArcSwapOption<Shards>,
    /// Held while `shards` is replaced.
    replacing: Mutex<()>,
    on_their_way: Arc<Semaphore>,
    stopping: CancellationToken,
}

impl fmt::Debug for Coordinators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shards = self.shards.load();
        f.debug_struct("Coordinators")
            .field("shards", &shards.as_ref().map(|shards| shards.all.len()))
            .finish_non_exhaustive()
    }
}

impl Coordinators {
    /// No coordinators yet. Call it inside the runtime that they shall run on.
    pub fn new(
        config: &Config,
        controller: Arc<Controller>,
        partitions: Arc<Partitions>,
        instruments: Arc<Instruments>,
        stopping: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            env: Arc::new(Env::new(config, controller, instruments.events.clone())),
            partitions,
            instruments,
            topic: TopicSettings {
                partitions: config.group.offsets_topic_partitions,
                segment_bytes: config.group.offsets_topic_segment_bytes,
            },
            shards: ArcSwapOption::empty(),
            replacing: Mutex::new(()),
            on_their_way: Arc::new(Semaphore::new(EVENTS_ON_THEIR_WAY_MAX)),
            stopping,
        })
    }

    /// Begins to read the groups that the last run left, and to look at the clock. Once.
    pub fn start(self: &Arc<Self>) {
        let coordinators = self.clone();
        self.env.handle.spawn(async move {
            tokio::select! {
                () = coordinators.stopping.cancelled() => {}
                () = coordinators.run_timer() => {}
            }
            // Joins that are held would keep their connections from ending.
            coordinators.resign();
        });
        let _ = self.shards();
    }

    /// Has the coordinators of a deleted topic's groups forget the positions on it; ends them all
    /// if it was `__consumer_offsets` itself.
    pub fn topic_deleted(&self, topic: &DeletedTopic) {
        let Some(shards) = self.shards.load_full() else { return };
        if shards.topic == topic.id {
            return self.resign();
        }
        for shard in &shards.all {
            shard.topic_deleted(topic);
        }
    }

    /// `__consumer_offsets`, created on first need.
    ///
    /// Errors: it cannot be created.
    pub async fn offsets_topic(&self) -> Result<Arc<Topic>, ControllerError> {
        if let Some(topic) = self.env.controller.image().topic(names::OFFSETS_TOPIC) {
            return Ok(topic.clone());
        }
        let overrides = [
            ("cleanup.policy", "compact".to_owned()),
            ("compression.type", "producer".to_owned()),
            ("segment.bytes", self.topic.segment_bytes.to_string()),
        ];
        let topic = NewTopic {
            name: names::OFFSETS_TOPIC.into(),
            partitions: self.topic.partitions,
            overrides: overrides
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect::<Overrides>(),
            door: Door::Node,
        };
        self.env.controller.create_topic(topic, IfExists::Return).await
    }

    /// Sees to it that a group has a coordinator, creating `__consumer_offsets` on first need, and
    /// that it has read its log, as far as that takes no more than a few seconds.
    ///
    /// Errors: `CoordinatorNotAvailable` if there cannot be one; `CoordinatorLoadInProgress`.
    pub async fn prepare(&self, group: &str) -> Result<(), GroupError> {
        self.ready_shard(group).await.map(drop)
    }

    async fn ready_shard(&self, group: &str) -> Result<Arc<Shard>, GroupError> {
        if self.shards().is_none() {
            self.offsets_topic().await.map_err(|error| {
                tracing::warn!(%error, "__consumer_offsets cannot be created");
                GroupError::CoordinatorNotAvailable
            })?;
        }
        let shard = self.shard(group)?;
        match tokio::time::timeout(READY_LIMIT, shard.ready()).await {
            Ok(()) => Ok(shard),
            Err(_) => Err(GroupError::CoordinatorLoadInProgress),
        }
    }

    /// The coordinators, if there is a topic for them.
    fn shards(&self) -> Option<Arc<Shards>> {
        if let Some(shards) = self.shards.load_full() {
            return Some(shards);
        }
        let topic = self.env.controller.image().topic(names::OFFSETS_TOPIC)?.clone();
        let replacing = self.replacing.lock();
        if let Some(shards) = self.shards.load_full() {
            return Some(shards);
        }
        if self.stopping.is_cancelled() {
            return None;
        }
        let found =
            (0..topic.partition_count()).filter_map(|index| self.partitions.find(topic.id, index));
        let shard = |(index, partition)| Arc::new(Shard::new(index, partition, self.env.clone()));
        let all = found.enumerate().map(shard).collect();
        let shards = Arc::new(Shards { topic: topic.id, all });
        self.shards.store(Some(shards.clone()));
        drop(replacing);
        self.env.handle.spawn(load_all(shards.clone()));
        Some(shards)
    }

    /// The coordinator of a group. Errors: `NotCoordinator` before there is one.
    fn shard(&self, group: &str) -> Result<Arc<Shard>, GroupError> {
        let shards = self.shards().ok_or(GroupError::NotCoordinator)?;
        let shard = shards.all.get(partition_of(group, shards.all.len()));
        shard.cloned().ok_or(GroupError::NotCoordinator)
    }

    /// Has the group's coordinator decide `event`; the answer may take as long as a rebalance does.
    async fn ask(&self, group: &str, event: Event) -> Answer<GroupShard> {
        answered(self.shard(group)?.submit(event)).await
    }

    /// As [`Self::ask`] to every coordinator: each one's answer.
    async fn ask_all(&self, event: &Event) -> Vec<Answer<GroupShard>> {
        let shards = self.shards();
        let all = shards.iter().flat_map(|shards| &shards.all);
        let asked: Vec<_> = all.map(|shard| shard.submit(event.clone())).collect();
        let mut answers = Vec::with_capacity(asked.len());
        for answer in asked {
            answers.push(answered(answer).await);
        }
        answers
    }

    /// Stays at `point` for as long as a gate says.
    ///
    /// Errors: a gate makes the request fail; one that it drops gets no answer before the node
    /// stops.
    async fn pass(&self, point: GatePoint, subject: GateSubject<'_>) -> Result<(), GroupError> {
        match self.instruments.pass(point, subject).await {
            Passage::Go => Ok(()),
            Passage::Fail => Err(GroupError::CoordinatorNotAvailable),
            Passage::Drop => {
                self.stopping.cancelled().await;
                Err(GroupError::NotCoordinator)
            }
        }
    }

    async fn run_timer(&self) {
        loop {
            let due = self.env.timer.due().await;
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

async fn answered(answer: oneshot::Receiver<Answer<GroupShard>>) -> Answer<GroupShard> {
    answer.await.unwrap_or(Err(GroupError::NotCoordinator))
}

/// Reads the logs of all shards, a few at a time; those that requests ask for come first of
/// themselves.
async fn load_all(shards: Arc<Shards>) {
    let workers = (0..COORDINATORS_LOADING_MAX).map(|worker| {
        let shards = shards.clone();
        async move {
            for shard in shards.all.iter().skip(worker).step_by(COORDINATORS_LOADING_MAX) {
                shard.ready().await;
            }
        }
    });
    futures_util::future::join_all(workers).await;
    tracing::debug!(shards = shards.all.len(), at_ms = clock::tick_ms(), "groups are read");
}

/// The partition of `__consumer_offsets` that a group belongs to: `Utils.abs(hashCode) % count`.
fn partition_of(group: &str, count: usize) -> usize {
    // Java's Utils.abs makes 0 of the one number that has no positive counterpart.
    let positive = java_hash(group).checked_abs().unwrap_or_default();
    usize::try_from(positive).unwrap_or_default() % count.max(1)
}

#[cfg(test)]
mod tests;
