//! RocketMQ's half messages: stored in `__rmq.half` until their producers say how they ended, then
//! carried to their queues, or nowhere.

mod kind;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use duolog_coordinator::delivery::{Delivers, StoredMessage};
use duolog_coordinator::record::half::{HalfMessage, Immunity, Record};
use duolog_coordinator::txn::rocketmq::check_back::CheckConfig;
use duolog_coordinator::txn::rocketmq::error::HalfError;
use duolog_coordinator::txn::rocketmq::event::{Due, Ending, Event, Key, Response};
use duolog_coordinator::txn::rocketmq::shard::HalfShard;
use duolog_log_core::ids::{Offset, TopicId, TopicPartition};

use self::kind::Prepared;
use super::courier::{Courier, Source};
use super::env::Parts;
use super::service;
use super::shard::Shard;
use crate::controller::Controller;
use crate::controller::names::HALF_TOPIC;
use crate::partitions::Partition;

/// A producer group's half messages are decided by one of so many coordinators.
const PARTITIONS: i32 = 4;

/// Who asks producers about half messages.
pub trait CheckSink: Send + Sync {
    /// It is time to ask about the open ones of coordinator `index`. Called from within it: must
    /// neither block nor ask a coordinator.
    fn round(&self, index: i32);
}

/// A half message that is stored.
#[derive(Clone, Debug)]
pub struct StoredHalf {
    /// Its offset in the log of half messages.
    pub offset: i64,
    /// That log.
    pub partition: Arc<Partition>,
}

/// All half messages of this node.
pub struct Halves {
    courier: Arc<Courier<Prepared>>,
    controller: Arc<Controller>,
    config: CheckConfig,
    checks: Arc<OnceLock<Arc<dyn CheckSink>>>,
    /// Names those that are being stored.
    next: AtomicU64,
}

impl fmt::Debug for Halves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Halves").field("service", &self.courier.service).finish_non_exhaustive()
    }
}

impl Halves {
    /// No coordinator yet. Call it inside the runtime that they shall run on.
    pub fn new(parts: Parts) -> Arc<Self> {
        let (controller, config) = (parts.controller.clone(), parts.config.rocketmq.checks);
        let checks = Arc::<OnceLock<Arc<dyn CheckSink>>>::default();
        let courier = Courier::new(parts, PARTITIONS, |env, flush, courier| {
            Prepared::new(env, flush, config, checks.clone(), courier)
        });
        Arc::new(Self { courier, controller, config, checks, next: AtomicU64::new(0) })
    }

    /// Begins to read what the last run left, and to look at the clock. Once.
    pub fn start(&self) {
        self.courier.start();
    }

    /// Says, once, who asks producers.
    pub fn set_checks(&self, sink: Arc<dyn CheckSink>) {
        // There is one bridge.
        let _ = self.checks.set(sink);
    }

    /// Ends the coordinators if `__rmq.half` itself was deleted.
    pub fn topic_deleted(&self, topic: TopicId) {
        self.courier.topic_deleted(topic);
    }

    /// Stores a half message; once this returns every replica in sync has it.
    pub async fn store(&self, half: HalfMessage) -> Result<StoredHalf, HalfError> {
        let shard = self.shard_of(&half.group).await?;
        let key = Key::New(self.next.fetch_add(1, Ordering::Relaxed));
        match ask(&shard, Event::Store { key, half }).await? {
            Response::Stored(offset) => {
                Ok(StoredHalf { offset: offset.0, partition: shard.partition().clone() })
            }
            _ => Err(HalfError::NotAvailable),
        }
    }

    /// The coordinator whose log is the partition with this cluster-wide number.
    pub fn index_of(&self, partition_number: u32) -> Option<i32> {
        let image = self.controller.image();
        let numbers = &image.topic(HALF_TOPIC)?.numbers;
        let index = numbers.iter().position(|number| *number == partition_number)?;
        i32::try_from(index).ok()
    }

    /// The cluster-wide number of a coordinator's partition.
    pub fn number_of(&self, index: i32) -> Option<u32> {
        let image = self.controller.image();
        image.topic(HALF_TOPIC)?.numbers.get(usize::try_from(index).ok()?).copied()
    }

    /// Half messages that coordinator `index` has or had at these offsets; `None` where there is
    /// none, or no more.
    pub async fn find(
        &self,
        index: i32,
        offsets: &[i64],
    ) -> Result<Vec<Option<HalfMessage>>, HalfError> {
        let shard = self.shard_at(index).await?;
        let reader = shard.partition().reader().await.map_err(|_| HalfError::NotAvailable)?;
        let mut source = Source::new(reader);
        let find = |offset: &i64| {
            let read = source.find(*offset, |record| {
                Record::half(record.key.unwrap_or_default(), record.value?)
            });
            read.map_err(|_| HalfError::NotAvailable)
        };
        offsets.iter().map(find).collect()
    }

    /// Decides how a half message ends; returns whether this was the word that counts.
    pub async fn end(&self, index: i32, offset: i64, ending: Ending) -> Result<bool, HalfError> {
        self.ended(index, Event::End { key: Key::Half(Offset(offset)), ending }).await
    }

    /// Which half messages of coordinator `index` something is to be done about, behind `after`.
    pub async fn due(
        &self,
        index: i32,
        after: Offset,
        count: usize,
    ) -> Result<Vec<Due>, HalfError> {
        let shard = self.shard_at(index).await?;
        match ask(&shard, Event::Due { after, count }).await? {
            Response::Due(due) => Ok(due),
            _ => Err(HalfError::NotAvailable),
        }
    }

    /// Notes that a producer is about to be asked, and returns the how manieth time it is; `None`:
    /// it need not be.
    pub async fn check(&self, index: i32, half: Offset) -> Result<Option<i32>, HalfError> {
        let shard = self.shard_at(index).await?;
        match ask(&shard, Event::Check { key: Key::Half(half) }).await? {
            Response::Checked(times) => Ok(times),
            _ => Err(HalfError::NotAvailable),
        }
    }

    /// Gives a half message up: `message` goes to `target` in its place.
    pub async fn give_up(
        &self,
        index: i32,
        half: Offset,
        target: TopicPartition,
        message: StoredMessage,
    ) -> Result<bool, HalfError> {
        self.ended(index, Event::GiveUp { key: Key::Half(half), target, message }).await
    }

    /// How long the producer of a message with this immunity may end it unasked.
    pub fn unasked_ms(&self, immunity: Immunity) -> Option<i64> {
        match immunity {
            Immunity::Default => None,
            Immunity::Unreadable => Some(self.config.timeout_ms),
            Immunity::Seconds(seconds) => {
                Some((i64::from(seconds) * 1_000).max(self.config.timeout_ms))
            }
        }
    }

    /// Half messages whose end is not decided, as far as the logs were read.
    pub fn open_count(&self) -> usize {
        self.count(HalfShard::open_count)
    }

    /// Messages that are decided and of which it is not noted yet that they have arrived.
    pub fn on_their_way_count(&self) -> usize {
        self.count(|shard| shard.deliveries().message_count())
    }

    /// Both, once all logs were read.
    pub fn figures(&self) -> Option<(usize, usize)> {
        let shards = self.courier.service.present();
        let mut all = shards.iter().flat_map(|shards| &shards.all);
        all.all(|shard| shard.is_serving()).then(|| (self.open_count(), self.on_their_way_count()))
    }

    fn count(&self, count: impl Fn(&HalfShard) -> usize) -> usize {
        let shards = self.courier.service.present();
        let all = shards.iter().flat_map(|shards| &shards.all);
        all.filter_map(|shard| shard.read(&count)).sum()
    }

    async fn ended(&self, index: i32, event: Event) -> Result<bool, HalfError> {
        let shard = self.shard_at(index).await?;
        match ask(&shard, event).await? {
            Response::Ended { now } => Ok(now),
            _ => Err(HalfError::NotAvailable),
        }
    }

    async fn shard_of(&self, group: &str) -> Result<Arc<Shard<Prepared>>, HalfError> {
        let service = &self.courier.service;
        if let Ok(shard) = service.shard(group)
            && shard.is_serving()
        {
            return Ok(shard);
        }
        service.ready_shard(group).await
    }

    async fn shard_at(&self, index: i32) -> Result<Arc<Shard<Prepared>>, HalfError> {
        let shard = self.courier.service.shard_at(index).ok_or(HalfError::NotCoordinator)?;
        if !shard.is_serving() {
            service::ready::<Prepared>(&shard).await?;
        }
        Ok(shard)
    }
}

async fn ask(shard: &Arc<Shard<Prepared>>, event: Event) -> Result<Response, HalfError> {
    service::answered::<Prepared>(shard.submit(event)).await
}

#[cfg(test)]
mod tests;
