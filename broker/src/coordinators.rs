//! Coordinators: one for groups per partition of `__consumer_offsets`, one for transactions per
//! partition of `__transaction_state`, driven from here.
//!
//! ```text
//! request ─▶ lock of its shard ─▶ coordinator::runtime decides ─▶ answer, or records
//!                                                                   │ a task while an append is open
//!                 answer ◀─ replay ◀─ committed by all in sync ◀─ one batch into the partition
//! ```
//!
//! No lock is held across a wait, an idle shard costs no task, and one timer serves all of a kind.
//! A shard whose log was never written is served without opening it. Read the modules in this
//! order.

mod env;
mod kind;
mod shard;

mod append;
mod load;
mod metadata;
mod timer;

mod courier;
mod service;

mod groups;
mod kafka;
mod rocketmq;

pub mod halves;
pub mod inflight;
pub mod timers;
pub mod transactions;

use std::fmt;
use std::sync::Arc;

use duolog_coordinator::error::GroupError;
use duolog_coordinator::group::event::{DeletedTopic, Event};
use duolog_coordinator::group::shard::GroupShard;
use duolog_coordinator::shard::Answer;
use duolog_log_core::gate::{GatePoint, GateSubject};
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

pub use self::env::Parts;
use self::groups::Groups;
pub use self::rocketmq::NoticeSink;
use self::service::{Cleanup, Service, TopicSettings};
use self::shard::Shard;
use crate::controller::ControllerError;
use crate::controller::image::Topic;
use crate::instruments::{Instruments, Passage};
use crate::limits::EVENTS_ON_THEIR_WAY_MAX;

/// All group coordinators of this node.
pub struct Coordinators {
    groups: Service<Groups>,
    instruments: Arc<Instruments>,
    on_their_way: Arc<Semaphore>,
    stopping: CancellationToken,
}

impl fmt::Debug for Coordinators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coordinators").field("groups", &self.groups).finish_non_exhaustive()
    }
}

impl Coordinators {
    /// No coordinators yet. Call it inside the runtime that they shall run on.
    pub fn new(parts: Parts) -> Arc<Self> {
        let Parts { config, controller, partitions, instruments, stopping } = parts;
        let topic = TopicSettings {
            partitions: config.group.offsets_topic_partitions,
            segment_bytes: config.group.offsets_topic_segment_bytes,
            cleanup: Cleanup::Compacted,
        };
        let groups = Groups::new(&config, controller, instruments.events.clone());
        Arc::new(Self {
            groups: Service::new(groups, partitions, topic, stopping.clone()),
            instruments,
            on_their_way: Arc::new(Semaphore::new(EVENTS_ON_THEIR_WAY_MAX)),
            stopping,
        })
    }

    /// Begins to read the groups that the last run left, and to look at the clock. Once.
    pub fn start(self: &Arc<Self>) {
        let coordinators = self.clone();
        self.groups.handle().spawn(async move { coordinators.groups.run().await });
        let _ = self.groups.shards();
    }

    /// Has the coordinators of a deleted topic's groups forget the positions on it; ends them all
    /// if it was `__consumer_offsets` itself.
    pub fn topic_deleted(&self, topic: &DeletedTopic) {
        if self.groups.topic_deleted(topic.id) {
            return;
        }
        let shards = self.groups.present();
        for shard in shards.iter().flat_map(|shards| &shards.all) {
            shard.topic_deleted(topic);
        }
    }

    /// `__consumer_offsets`, created on first need.
    ///
    /// Errors: it cannot be created.
    pub async fn offsets_topic(&self) -> Result<Arc<Topic>, ControllerError> {
        self.groups.topic().await
    }

    /// The partition of `__consumer_offsets` that a group belongs to.
    pub fn partition_of(&self, group: &str) -> i32 {
        self.groups.partition_of(group)
    }

    /// Sees to it that a group has a coordinator, creating `__consumer_offsets` on first need, and
    /// that it has read its log, as far as that takes no more than a few seconds.
    ///
    /// Errors: `CoordinatorNotAvailable` if there cannot be one; `CoordinatorLoadInProgress`.
    pub async fn prepare(&self, group: &str) -> Result<(), GroupError> {
        self.ready_shard(group).await.map(drop)
    }

    async fn ready_shard(&self, group: &str) -> Result<Arc<Shard<Groups>>, GroupError> {
        self.groups.ready_shard(group).await
    }

    /// The coordinator of a group. Errors: `NotCoordinator` before there is one.
    fn shard(&self, group: &str) -> Result<Arc<Shard<Groups>>, GroupError> {
        self.groups.shard(group)
    }

    /// Has the group's coordinator decide `event`; the answer may take as long as a rebalance does.
    async fn ask(&self, group: &str, event: Event) -> Answer<GroupShard> {
        self.groups.ask(group, event).await
    }

    /// Waits until a group's positions, as they are now, are on disk; for so long in the hope that they
    /// come to that by themselves.
    ///
    /// Errors: the disk failed.
    pub async fn on_disk(&self, group: &str, patience_ms: i64) -> Result<(), GroupError> {
        // Without a coordinator there is no position.
        let Ok(shard) = self.shard(group) else { return Ok(()) };
        let log = shard.partition();
        let on_disk = append::on_disk(log, log.offsets().log_end, patience_ms).await;
        on_disk.map_err(|_| GroupError::CoordinatorNotAvailable)
    }

    /// As [`Self::ask`] to every coordinator: each one's answer.
    async fn ask_all(&self, event: &Event) -> Vec<Answer<GroupShard>> {
        self.groups.ask_all(event).await
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
}

async fn answered(answer: oneshot::Receiver<Answer<GroupShard>>) -> Answer<GroupShard> {
    service::answered::<Groups>(answer).await
}

#[cfg(test)]
pub(crate) mod tests;
