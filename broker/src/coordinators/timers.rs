//! RocketMQ's messages that wait for their time: stored in `rmq_sys_timer`, carried to their topics
//! when they are due.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use duolog_coordinator::delivery::Delivers;
use duolog_coordinator::record::timer::{TimedMessage, TimerRecord};
use duolog_coordinator::timer::error::TimerError;
use duolog_coordinator::timer::event::{Event, Key, Notice, Response, Waiting};
use duolog_coordinator::timer::shard::TimerShard;
use duolog_log_core::event::{Event as Observed, EventKind, Protocol};
use duolog_log_core::gate::GatePoint;
use duolog_log_core::ids::TopicId;

use super::courier::{Carries, Courier, Source};
use super::env::{Env, Parts};
use super::kind::Kind;
use super::shard::Shard;
use crate::clock;
use crate::controller::image::Topic;
use crate::controller::{ControllerError, names};
use crate::instruments::Instruments;
use crate::partitions::Partition;
use crate::partitions::append::Flush;

/// Timers are decided by one coordinator, as the original has one wheel.
const PARTITIONS: i32 = 1;

/// A message that is stored until its time.
#[derive(Clone, Debug)]
pub struct StoredTimer {
    /// Its offset in the log of timers.
    pub offset: i64,
    /// That log.
    pub partition: Arc<Partition>,
}

/// All timers of this node.
pub struct Timers {
    courier: Arc<Courier<Timing>>,
    instruments: Arc<Instruments>,
    next: AtomicU64,
}

impl fmt::Debug for Timers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timers").field("service", &self.courier.service).finish_non_exhaustive()
    }
}

impl Timers {
    /// No coordinator yet. Call it inside the runtime that it shall run on.
    pub fn new(parts: Parts) -> Arc<Self> {
        let instruments = parts.instruments.clone();
        let courier =
            Courier::new(parts, PARTITIONS, |env, flush, courier| Timing { env, flush, courier });
        Arc::new(Self { courier, instruments, next: AtomicU64::new(0) })
    }

    /// Begins to read what the last run left, and to look at the clock. Once.
    pub fn start(&self) {
        self.courier.start();
    }

    /// Ends the coordinator if `rmq_sys_timer` itself was deleted.
    pub fn topic_deleted(&self, topic: TopicId) {
        self.courier.topic_deleted(topic);
    }

    /// `rmq_sys_timer`, created on first need.
    ///
    /// Errors: it cannot be created.
    pub async fn topic(&self) -> Result<Arc<Topic>, ControllerError> {
        self.courier.service.topic().await
    }

    /// Stores a message until its time; once this returns every replica in sync has it.
    pub async fn store(&self, timed: TimedMessage) -> Result<StoredTimer, TimerError> {
        let shard = self.shard().await?;
        let key = Key::Message(self.next.fetch_add(1, Ordering::Relaxed));
        let told = self.instruments.events.is_listening().then(|| {
            let (topic, partition) = (&timed.target.topic, timed.target.partition);
            format!("for {topic}-{partition} at {}", timed.due_ms)
        });
        let answer = super::service::answered::<Timing>(shard.submit(Event::Store { key, timed }));
        let Response::Stored(offset) = answer.await? else { return Err(TimerError::NotAvailable) };
        let partition = shard.partition().clone();
        if let Some(cause) = told {
            self.instruments.events.emit(|| {
                Observed::new(EventKind::DelayStore, clock::now_ms())
                    .at(&partition.topic, partition.index)
                    .offset(offset)
                    .protocol(Protocol::RocketMq)
                    .cause(cause)
            });
        }
        Ok(StoredTimer { offset: offset.0, partition })
    }

    /// Takes back the messages for `topic` with this id that are due in `[from_ms, to_ms)`; returns
    /// whether there were any.
    pub async fn recall(
        &self,
        topic: &str,
        id: &str,
        (from_ms, to_ms): (i64, i64),
    ) -> Result<bool, TimerError> {
        let Some(shard) = self.courier.service.shard_at(0) else { return Ok(false) };
        shard.ready().await;
        let find = Event::Find { id: id.into(), from_ms, to_ms };
        let Response::Found(found) = answer(&shard, find).await? else { return Ok(false) };
        let reader = shard.partition().reader().await.map_err(|_| TimerError::NotAvailable)?;
        let mut source = Source::new(reader);
        let mut recalled = false;
        for Waiting { due_ms, offset } in found {
            let timed = source.find(offset.0, |record| {
                TimerRecord::message(record.key.unwrap_or_default(), record.value?)
            });
            let timed = timed.map_err(|_| TimerError::NotAvailable)?;
            if timed.is_some_and(|timed| *timed.id == *id && *timed.target.topic == *topic) {
                let recall = Event::Recall(Waiting { due_ms, offset });
                recalled |= answer(&shard, recall).await? == Response::Recalled(true);
            }
        }
        Ok(recalled)
    }

    /// Messages that wait for their time.
    pub fn waiting_count(&self) -> usize {
        let shard = self.courier.service.present().and_then(|shards| shards.all.first().cloned());
        shard.and_then(|shard| shard.read(TimerShard::waiting_count)).unwrap_or_default()
    }

    /// Messages whose time has come and of which it is not noted yet that they have arrived.
    pub fn on_their_way_count(&self) -> usize {
        let shard = self.courier.service.present().and_then(|shards| shards.all.first().cloned());
        let count = |machine: &TimerShard| machine.deliveries().message_count();
        shard.and_then(|shard| shard.read(count)).unwrap_or_default()
    }

    async fn shard(&self) -> Result<Arc<Shard<Timing>>, TimerError> {
        let service = &self.courier.service;
        if let Some(shards) = service.present()
            && let Some(shard) = shards.all.first()
            && shard.is_serving()
        {
            return Ok(shard.clone());
        }
        // Any name leads to the first one.
        service.ready_shard("").await?;
        service.shard_at(0).ok_or(TimerError::NotCoordinator)
    }
}

async fn answer(shard: &Arc<Shard<Timing>>, event: Event) -> Result<Response, TimerError> {
    super::service::answered::<Timing>(shard.submit(event)).await
}

/// Timer coordinators, as one kind of coordinator.
struct Timing {
    env: Env,
    flush: Flush,
    courier: std::sync::Weak<Courier<Self>>,
}

impl Kind for Timing {
    type Machine = TimerShard;
    type Memory = ();
    const TOPIC: &'static str = names::TIMER_TOPIC;
    const CONTENT: &'static str = "timers";

    fn env(&self) -> &Env {
        &self.env
    }

    fn machine(&self) -> TimerShard {
        TimerShard::new()
    }

    fn loading() -> TimerError {
        TimerError::Loading
    }

    fn flush(&self) -> Flush {
        self.flush
    }

    fn tell(&self, index: i32, notice: Notice, (): &mut ()) {
        let Some(courier) = self.courier.upgrade() else { return };
        match notice {
            Notice::Deliver(target) => courier.deliver(index, target),
            Notice::Trim(offset) => courier.trim(index, offset),
        }
    }
}

impl Carries for Timing {
    const GATE: GatePoint = GatePoint::DelayFire;
    const EVENT: EventKind = EventKind::DelayFire;
}

#[cfg(test)]
mod tests;
