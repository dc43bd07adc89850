//! Messages in hand: what groups have taken from partitions and not settled, kept in
//! `__share_group_state`; what was delivered too often is carried to its dead letters.

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use duolog_coordinator::delivery::Delivers;
use duolog_coordinator::group::event::OwnPositions;
use duolog_coordinator::inflight::error::InflightError;
use duolog_coordinator::inflight::event::{Ask, Event, Key, Notice, Response};
use duolog_coordinator::inflight::shard::InflightShard;
use duolog_coordinator::record::share::SharePartition;
use duolog_coordinator::runtime::Runtime;
use duolog_coordinator::time::Now;
use duolog_log_core::event::EventKind;
use duolog_log_core::gate::GatePoint;
use duolog_log_core::ids::TopicId;

use super::courier::{Carries, Courier};
use super::env::{Env, Parts};
use super::kind::Kind;
use super::service;
use super::shard::Shard;
use crate::clock;
use crate::controller::image::Topic;
use crate::controller::{ControllerError, names};
use crate::partitions::append::Flush;

/// Kafka's `share.coordinator.state.topic.num.partitions`.
const PARTITIONS: i32 = 50;

/// Who acts on news of messages in hand. Called from within a coordinator: must neither block nor ask
/// one.
pub trait InflightSink: Send + Sync {
    /// Something may be taken now.
    fn ready(&self, share: &SharePartition);

    /// Something was delivered too often.
    fn dead(&self, share: SharePartition);

    /// The window's start is to be committed as the group's position, unless that is not the window's
    /// own.
    fn position(&self, share: SharePartition, own: OwnPositions, offset: i64);
}

/// All messages in hand on this node.
pub struct Inflight {
    courier: Arc<Courier<InHand>>,
    sink: Arc<OnceLock<Arc<dyn InflightSink>>>,
}

impl fmt::Debug for Inflight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inflight").field("service", &self.courier.service).finish_non_exhaustive()
    }
}

impl Inflight {
    /// No coordinator yet. Call it inside the runtime that they shall run on.
    pub fn new(parts: Parts) -> Arc<Self> {
        let sink = Arc::<OnceLock<Arc<dyn InflightSink>>>::default();
        let kept = sink.clone();
        let courier = Courier::new(parts, PARTITIONS, |env, _, courier| {
            // What a power cut takes is delivered again; a copy is carried once its note is on disk.
            InHand { env, sink: kept, courier }
        });
        Arc::new(Self { courier, sink })
    }

    /// Begins to read what the last run left, and to look at the clock, telling `sink` what comes of
    /// it. Once.
    pub fn start(&self, sink: Arc<dyn InflightSink>) {
        // There is one bridge.
        if self.sink.set(sink).is_ok() {
            self.courier.start();
        }
    }

    /// `__share_group_state`, created on first need.
    ///
    /// Errors: it cannot be created.
    pub async fn topic(&self) -> Result<Arc<Topic>, ControllerError> {
        self.courier.service.topic().await
    }

    /// Forgets what groups have taken of a deleted topic, or ends the coordinators if it was theirs.
    pub fn topic_deleted(&self, topic: TopicId) {
        self.courier.topic_deleted(topic);
        let shards = self.courier.service.present();
        for shard in shards.iter().flat_map(|shards| &shards.all) {
            shard.notify(Event::TopicGone(topic));
        }
    }

    /// Forgets what a deleted group has taken.
    pub fn group_deleted(&self, group: &str) {
        let group: Arc<str> = group.into();
        let shards = self.courier.service.present();
        for shard in shards.iter().flat_map(|shards| &shards.all) {
            shard.notify(Event::GroupGone(group.clone()));
        }
    }

    /// Has a window's coordinator decide.
    pub async fn ask(&self, share: &SharePartition, ask: Ask) -> Result<Response, InflightError> {
        let shard = self.shard_of(share).await?;
        let event = Event::Of { key: Key::Window(share.clone()), ask };
        service::answered::<InHand>(shard.submit(event)).await
    }

    /// See [`InflightShard::positions`].
    pub fn positions(&self, share: &SharePartition) -> Option<[Option<i64>; 2]> {
        self.read(share, |machine| machine.positions(share)).flatten()
    }

    /// [`InflightShard::positions`], and [`InflightShard::is_own`] of `position` at the same moment.
    pub fn judge(
        &self,
        share: &SharePartition,
        position: Option<i64>,
    ) -> (Option<[Option<i64>; 2]>, bool) {
        let judge =
            |machine: &InflightShard| (machine.positions(share), machine.is_own(share, position));
        self.read(share, judge).unwrap_or((None, true))
    }

    /// See [`InflightShard::is_committing`]; as long as nobody can say, it may be.
    pub fn is_committing(&self, share: &SharePartition, offset: i64) -> bool {
        self.read(share, |machine| machine.is_committing(share, offset)).unwrap_or(true)
    }

    /// See [`InflightShard::dead`].
    pub fn dead(&self, share: &SharePartition, count: usize) -> Vec<(i64, u16)> {
        let now_ms = clock::now_ms();
        self.read(share, |machine| machine.dead(share, now_ms, count)).unwrap_or_default()
    }

    /// Messages that were taken and are not done.
    pub fn flight_count(&self) -> usize {
        let shards = self.courier.service.present();
        let all = shards.iter().flat_map(|shards| &shards.all);
        all.filter_map(|shard| shard.read(InflightShard::flight_count)).sum()
    }

    /// Copies for the dead letters of which it is not noted yet that they have arrived.
    pub fn on_their_way_count(&self) -> usize {
        let shards = self.courier.service.present();
        let all = shards.iter().flat_map(|shards| &shards.all);
        let count = |machine: &InflightShard| machine.deliveries().message_count();
        all.filter_map(|shard| shard.read(count)).sum()
    }

    fn read<T>(&self, share: &SharePartition, look: impl FnOnce(&InflightShard) -> T) -> Option<T> {
        self.courier.service.shard(&name(share)).ok()?.read(look)
    }

    async fn shard_of(&self, share: &SharePartition) -> Result<Arc<Shard<InHand>>, InflightError> {
        let service = &self.courier.service;
        let name = name(share);
        if let Ok(shard) = service.shard(&name)
            && shard.is_serving()
        {
            return Ok(shard);
        }
        service.ready_shard(&name).await
    }
}

/// What decides which coordinator a window has. Source: Kafka's `SharePartitionKey`.
fn name(share: &SharePartition) -> String {
    format!("{}:{}:{}", share.group, share.topic, share.partition)
}

/// Coordinators of messages in hand, as one kind of coordinator.
struct InHand {
    env: Env,
    sink: Arc<OnceLock<Arc<dyn InflightSink>>>,
    courier: Weak<Courier<Self>>,
}

impl Kind for InHand {
    type Machine = InflightShard;
    type Memory = ();
    const TOPIC: &'static str = names::SHARE_TOPIC;
    const CONTENT: &'static str = "messages in hand";

    fn env(&self) -> &Env {
        &self.env
    }

    fn machine(&self) -> InflightShard {
        InflightShard::new()
    }

    fn loading() -> InflightError {
        InflightError::Loading
    }

    fn flush(&self) -> Flush {
        Flush::Topic
    }

    fn tell(&self, index: i32, notice: Notice, (): &mut ()) {
        match notice {
            Notice::Deliver(target) => {
                if let Some(courier) = self.courier.upgrade() {
                    courier.deliver(index, target);
                }
            }
            Notice::Trim(offset) => {
                if let Some(courier) = self.courier.upgrade() {
                    courier.trim(index, offset);
                }
            }
            Notice::Ready(share) => {
                if let Some(sink) = self.sink.get() {
                    sink.ready(&share);
                }
            }
            Notice::Dead(share) => {
                if let Some(sink) = self.sink.get() {
                    sink.dead(share);
                }
            }
            Notice::Position { share, own, offset } => {
                if let Some(sink) = self.sink.get() {
                    sink.position(share, own, offset);
                }
            }
        }
    }

    /// Topics that were deleted meanwhile take their windows along.
    fn loaded(&self, runtime: &mut Runtime<InflightShard>, (): &mut (), now: Now) {
        let image = self.env.controller.image();
        let mut gone: Vec<TopicId> =
            runtime.shard().windows().map(|(share, _)| share.topic).collect();
        gone.sort_unstable();
        gone.dedup();
        gone.retain(|topic| image.topic_by_id(*topic).is_none());
        for topic in gone {
            runtime.notify(Event::TopicGone(topic), now);
        }
    }
}

impl Carries for InHand {
    const GATE: GatePoint = GatePoint::DeadLetterDeliver;
    const EVENT: EventKind = EventKind::DeadLetterStore;
}
