//! Carries messages out of coordinators' logs into the partitions that they are meant for, each of
//! them once: what drives [`duolog_coordinator::delivery`].
//!
//! ```text
//! notice ─▶ one task for each coordinator and target:
//!   open notes ─▶ their log is on disk ─▶ messages read ─▶ appended to the target ─┐
//!        ▲──────────────── until there are no more ◀──────────────────────────────┤
//!                          done, in the coordinator's log ◀─ the target is on disk ┘
//! ```
//! What fails for a while is tried again; what can never be delivered is left out and told.

mod draft;
mod source;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::mem;
use std::sync::{Arc, Weak};
use std::time::Duration;

use duolog_bridge::backend::NewRecord;
use duolog_bridge::translate::origin;
use duolog_coordinator::delivery::{Delivers, OpenNote, StoredMessage};
use duolog_log_core::event::{Event, EventKind, Protocol};
use duolog_log_core::gate::{GatePoint, GateSubject};
use duolog_log_core::ids::{Offset, ProducerEpoch, ProducerId, TopicId, TopicPartition};
use duolog_log_core::log::LogError;
use duolog_log_core::producers::DeliveryPosition;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use self::draft::{Carried, Draft};
pub(super) use self::source::Source;
use super::append::on_disk;
use super::env::{Env, Parts};
use super::kind::Kind;
use super::service::{self, Cleanup, Service, TopicSettings};
use crate::clock;
use crate::config::FlushDiskType;
use crate::instruments::{Instruments, Passage};
use crate::partitions::append::{AppendError, Flush};
use crate::partitions::{Partition, Partitions};

/// Between two attempts at what failed.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Of the coordinators' own logs: small enough that what is done goes soon.
const SEGMENT_BYTES: i32 = 64 * 1024 * 1024;

/// Notes that are followed in one go.
const NOTES_AT_ONCE: usize = 16;

/// A kind of coordinator whose messages are carried.
pub(super) trait Carries: Kind<Machine: Delivers> {
    /// What a message passes on its way; what is dropped or fails there is tried again.
    const GATE: GatePoint;

    /// What is told of a message that has arrived.
    const EVENT: EventKind;

    /// The timestamp of its record, by which retention goes: it is in its target from now on, and so
    /// says its store timestamp in any case.
    fn timestamp_ms(_message: &StoredMessage, now_ms: i64) -> i64 {
        now_ms
    }
}

/// Where the deliveries of one coordinator to one target stand.
#[derive(Debug, Default)]
struct Progress {
    carrying: bool,
    /// There was news since the last look at the open notes.
    again: bool,
    confirming: bool,
    carried: Option<Confirmation>,
}

/// Up to a note all is in the target.
#[derive(Debug)]
struct Confirmation {
    /// Where the note stands.
    through: Offset,
    /// None is there any more.
    target: Option<Arc<Partition>>,
    /// Where the target ended then.
    end: i64,
}

type Way = (i32, TopicPartition);

/// All deliveries of one kind of coordinator, with the coordinators.
pub(super) struct Courier<K: Carries> {
    pub(super) service: Service<K>,
    partitions: Arc<Partitions>,
    instruments: Arc<Instruments>,
    /// How soon what was carried has to be on disk.
    flush_interval_ms: i64,
    ways: Mutex<BTreeMap<Way, Progress>>,
    stopping: CancellationToken,
}

impl<K: Carries> Courier<K> {
    /// No coordinator yet: `partitions` of them, of the kind that is made with its surroundings, what
    /// is flushed when, and this courier. Call it inside the runtime that they shall run on.
    pub(super) fn new(
        parts: Parts,
        partitions: i32,
        kind: impl FnOnce(Env, Flush, Weak<Self>) -> K,
    ) -> Arc<Self> {
        let Parts { config, controller, partitions: logs, instruments, stopping } = parts;
        let topic =
            TopicSettings { partitions, segment_bytes: SEGMENT_BYTES, cleanup: Cleanup::Trimmed };
        let flush_interval_ms = config.rocketmq.flush_interval_ms;
        let flush = match config.rocketmq.flush_disk_type {
            FlushDiskType::Sync => Flush::Now,
            FlushDiskType::Async => Flush::Within(flush_interval_ms),
        };
        Arc::new_cyclic(|courier| {
            let env = Env::new(controller, instruments.events.clone());
            let kind = kind(env, flush, courier.clone());
            let service = Service::new(kind, logs.clone(), topic, stopping.clone());
            let ways = Mutex::default();
            Self { service, partitions: logs, instruments, flush_interval_ms, ways, stopping }
        })
    }

    /// Begins to read what the last run left, and to look at the clock. Once.
    pub(super) fn start(self: &Arc<Self>) {
        let courier = self.clone();
        self.service.handle().spawn(async move { courier.service.run().await });
        let _ = self.service.shards();
    }

    /// Ends the coordinators if their own topic was deleted.
    pub(super) fn topic_deleted(&self, topic: TopicId) {
        self.service.topic_deleted(topic);
    }

    /// Follows the open notes of coordinator `index` for `target`. Does not wait.
    pub(super) fn deliver(self: &Arc<Self>, index: i32, target: TopicPartition) {
        let way = (index, target);
        {
            let mut ways = self.ways.lock();
            let progress = ways.entry(way.clone()).or_default();
            progress.again = true;
            if mem::replace(&mut progress.carrying, true) {
                return;
            }
        }
        let courier = self.clone();
        self.spawn(async move { courier.carry(&way).await });
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stopping = self.stopping.clone();
        self.service.handle().spawn(async move {
            tokio::select! {
                // What is left to do, the next start does.
                () = stopping.cancelled() => {}
                () = work => {}
            }
        });
    }

    async fn carry(self: &Arc<Self>, way: &Way) {
        loop {
            if let Some(progress) = self.ways.lock().get_mut(way) {
                progress.again = false;
            }
            while let Err(error) = self.carry_open(way).await {
                let (topic, partition) = (&way.1.topic, way.1.partition);
                tracing::debug!(%topic, partition, %error, "a delivery is tried again");
                tokio::time::sleep(RETRY_DELAY).await;
            }
            let mut ways = self.ways.lock();
            let Entry::Occupied(mut entry) = ways.entry(way.clone()) else { return };
            if entry.get().again {
                continue;
            }
            entry.get_mut().carrying = false;
            if !entry.get().confirming {
                entry.remove();
            }
            return;
        }
    }

    /// Follows what is open now, and what comes meanwhile.
    async fn carry_open(self: &Arc<Self>, way: &Way) -> Result<(), AppendError> {
        let (index, target) = way;
        let Some(shard) = self.service.shard_at(*index) else { return Ok(()) };
        let log = shard.partition();
        let producer = ProducerId::of_delivery(log.topic_id, *index);
        let (mut through, mut position) = (Offset(-1), None);
        loop {
            let open =
                |machine: &K::Machine| machine.deliveries().open(target, through, NOTES_AT_ONCE);
            let notes = shard.read(open).unwrap_or_default();
            let Some(last) = notes.last().map(|note| note.at) else { return Ok(()) };
            // A note that a power cut took must have had no effect.
            on_disk(log, last.plus(1).0, 0).await?;
            match self.find(target) {
                Some(partition) => {
                    if position.is_none() {
                        position = delivered(&partition, producer).await?;
                    }
                    let trip = Trip { courier: self, log, target: &partition, producer };
                    position = trip.append(&notes, position).await?.max(position);
                    self.confirm(way, last, Some(partition));
                }
                None => {
                    let (topic, partition) = (&target.topic, target.partition);
                    let messages: usize = notes.iter().map(|note| note.messages.len()).sum();
                    tracing::warn!(%topic, partition, messages,
                        "messages cannot be delivered and are lost: their queue is gone");
                    self.confirm(way, last, None);
                }
            }
            through = last;
        }
    }

    fn find(&self, target: &TopicPartition) -> Option<Arc<Partition>> {
        let image = self.service.kind.env().controller.image();
        let topic = image.topic(&target.topic)?.id;
        self.partitions.find(topic, target.partition)
    }

    /// Has the coordinator hear that all notes up to `through` are done, once the target is on disk
    /// as far as it is now. Without a target there is nothing to wait for.
    fn confirm(self: &Arc<Self>, way: &Way, through: Offset, target: Option<Arc<Partition>>) {
        let end = target.as_ref().map_or(0, |target| target.offsets().log_end);
        {
            let mut ways = self.ways.lock();
            let progress = ways.entry(way.clone()).or_default();
            progress.carried = Some(Confirmation { through, target, end });
            if mem::replace(&mut progress.confirming, true) {
                return;
            }
        }
        let (courier, way) = (self.clone(), way.clone());
        self.spawn(async move {
            while let Some(Confirmation { through, target, end }) = courier.next_to_confirm(&way) {
                let kept = match &target {
                    Some(target) => on_disk(target, end, courier.flush_interval_ms).await,
                    None => Ok(()),
                };
                match kept {
                    Ok(()) | Err(AppendError::Deleted) => courier.say_done(&way, through).await,
                    Err(error) => {
                        let (topic, partition) = (&way.1.topic, way.1.partition);
                        tracing::debug!(%topic, partition, %error,
                            "a delivery is not known to be on disk: its notes stay open");
                    }
                }
            }
        });
    }

    fn next_to_confirm(&self, way: &Way) -> Option<Confirmation> {
        let mut ways = self.ways.lock();
        let Entry::Occupied(mut entry) = ways.entry(way.clone()) else { return None };
        let next = entry.get_mut().carried.take();
        if next.is_none() {
            entry.get_mut().confirming = false;
            if !entry.get().carrying {
                entry.remove();
            }
        }
        next
    }

    /// Raises the start of coordinator `index`'s log to `offset`: all below is done, and known to be.
    /// Does not wait.
    pub(super) fn trim(self: &Arc<Self>, index: i32, offset: Offset) {
        let courier = self.clone();
        self.spawn(async move {
            let Some(shard) = courier.service.shard_at(index) else { return };
            let log = shard.partition();
            let work = async {
                on_disk(log, log.offsets().log_end, 0).await?;
                log.delete_records(offset.0).await
            };
            if let Err(error) = work.await {
                tracing::debug!(%error, "a coordinator's log is trimmed another time");
            }
        });
    }

    async fn say_done(&self, (index, target): &Way, through: Offset) {
        // Without its topic, a coordinator has nothing to remember any more.
        while let Some(shard) = self.service.shard_at(*index) {
            let done = K::Machine::done(target.clone(), through);
            if service::answered::<K>(shard.submit(done)).await.is_ok() {
                return;
            }
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }
}

/// What of a coordinator's deliveries is in `target`; asked behind all appends that wait there.
async fn delivered(
    target: &Arc<Partition>,
    producer: ProducerId,
) -> Result<Option<DeliveryPosition>, AppendError> {
    let producers = target.producers().await?;
    let state = producers.into_iter().find(|state| state.id == producer.0);
    Ok(state
        .map(|state| DeliveryPosition::from_parts(ProducerEpoch(state.epoch), state.last_sequence)))
}

/// From one log to one target.
struct Trip<'a, K: Carries> {
    courier: &'a Courier<K>,
    log: &'a Arc<Partition>,
    target: &'a Arc<Partition>,
    producer: ProducerId,
}

impl<K: Carries> Trip<'_, K> {
    /// Appends the messages of `notes` above `position`; the last one's position, if there is any.
    async fn append(
        &self,
        notes: &[OpenNote],
        position: Option<DeliveryPosition>,
    ) -> Result<Option<DeliveryPosition>, AppendError> {
        let mut source = Source::new(self.log.reader().await?);
        let mut draft = Draft::of(&self.target.config(), self.producer);
        let mut last = None;
        for note in notes {
            for (place, noted) in note.messages.iter().enumerate() {
                let Some(at) = DeliveryPosition::new(note.at, place) else {
                    return Err(AppendError::Log(LogError::InvalidBatch(
                        "the log of a coordinator is too long to deliver from".to_owned(),
                    )));
                };
                if Some(at) <= position {
                    continue;
                }
                last = Some(at);
                let offset = noted.offset.0;
                let found = source.find(offset, |record| {
                    K::Machine::message(record.key.unwrap_or_default(), record.value?)
                });
                let Some(message) = found.map_err(AppendError::Log)? else {
                    let (topic, partition) = (&self.log.topic, self.log.index);
                    tracing::error!(%topic, partition, offset, "a message is lost: it cannot be read");
                    continue;
                };
                let now_ms = clock::now_ms();
                let record = NewRecord {
                    timestamp_ms: K::timestamp_ms(&message, now_ms),
                    payload: origin::with_store_timestamp(&message.payload, now_ms).into(),
                };
                if draft.must_end_before(at, &record) {
                    self.send(&mut draft).await?;
                }
                draft.add(Carried { position: at, offset, record });
            }
        }
        self.send(&mut draft).await?;
        Ok(last)
    }

    async fn send(&self, draft: &mut Draft) -> Result<(), AppendError> {
        if draft.is_empty() {
            return Ok(());
        }
        if !self.courier.instruments.gates.is_idle() {
            self.pass_gates(draft).await?;
        }
        match draft.append(self.target, self.courier.flush_interval_ms).await {
            Ok(base_offset) => {
                self.tell(draft, base_offset);
                draft.clear();
                Ok(())
            }
            Err(error) if draft.is_one() && is_too_large(&error) => {
                let (topic, partition) = (&self.target.topic, self.target.index);
                tracing::warn!(%topic, partition, %error, "a message cannot be delivered and is lost");
                draft.clear();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn pass_gates(&self, draft: &Draft) -> Result<(), AppendError> {
        for carried in draft.carried() {
            let subject = GateSubject {
                topic: Some(&self.target.topic),
                partition: Some(self.target.index),
                offset: Some(Offset(carried.offset)),
                ..GateSubject::default()
            };
            match self.courier.instruments.pass(K::GATE, subject).await {
                Passage::Go => {}
                Passage::Drop | Passage::Fail => return Err(AppendError::Gate),
            }
        }
        Ok(())
    }

    fn tell(&self, draft: &Draft, base_offset: i64) {
        for (offset, carried) in (base_offset..).zip(draft.carried()) {
            self.courier.instruments.events.emit(|| {
                Event::new(K::EVENT, clock::now_ms())
                    .at(&self.target.topic, self.target.index)
                    .offset(Offset(offset))
                    .protocol(Protocol::RocketMq)
                    .cause(format!("stored at {} of {}", carried.offset, self.log.topic))
            });
        }
    }
}

fn is_too_large(error: &AppendError) -> bool {
    matches!(
        error,
        AppendError::RecordTooLarge { .. }
            | AppendError::Log(LogError::BatchLargerThanSegment { .. })
    )
}
