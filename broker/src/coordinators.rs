//! Group coordinators: one per partition of `__consumer_offsets`, driven from here.
//!
//! A request is decided at once under the coordinator's lock; what it writes is appended to the
//! partition by a task that lives as long as an append is open, and the answer is given when the
//! high watermark has passed it. One timer serves all coordinators.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use duolog_coordinator::error::{AppendError, GroupError};
use duolog_coordinator::group::config::{GroupConfig, RocketMqListing};
use duolog_coordinator::group::event::{ChannelId, DeletedTopic, Event};
use duolog_coordinator::group::image::GroupImage;
use duolog_coordinator::group::response::{Notice, Response};
use duolog_coordinator::group::shard::GroupShard;
use duolog_coordinator::runtime::{AppendId, Effect, Runtime};
use duolog_coordinator::shard::{RecordBytes, RequestId};
use duolog_coordinator::time::Now;
use duolog_log_core::event::Events;
use duolog_log_core::ids::Offset;
use duolog_log_core::log::{AppendOrigin, LogError, ReadMinimum};
use duolog_log_core::record::batch::{SharedBatches, TimestampType};
use duolog_log_core::record::builder::{BatchBuilder, BatchParams, NewRecord};
use duolog_log_core::record::{DecodedBatch, Decompressor};
use duolog_log_core::replication::partition::{Acks, ReplicationError};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::config::{Config, GroupListing};
use crate::controller::image::Topic;
use crate::limits::DECOMPRESSED_BYTES_MAX;
use crate::partitions::append::{self, Flush, Payload};
use crate::partitions::{Partition, Partitions};

/// Bytes of a log read at a time while loading.
const LOAD_BYTES: usize = 1024 * 1024;

/// Takes the news that coordinators tell without being asked.
pub trait NoticeSink: Send + Sync {
    /// Called in the order of the changes of each group; must not block.
    fn accept(&self, notice: Notice);
}

/// All coordinators of this node.
pub struct Coordinators {
    config: GroupConfig,
    events: Arc<Events>,
    partitions: Arc<Partitions>,
    all: OnceLock<Vec<Arc<Coordinator>>>,
    notices: OnceLock<Arc<dyn NoticeSink>>,
    timer: Timer,
    stopping: CancellationToken,
}

/// When each coordinator is to be woken.
#[derive(Default)]
struct Timer {
    deadlines: Mutex<Vec<Option<i64>>>,
    sooner: Notify,
}

/// The coordinator of one partition.
struct Coordinator {
    index: usize,
    partition: Arc<Partition>,
    state: Mutex<State>,
}

struct State {
    runtime: Runtime<GroupShard>,
    waiting: HashMap<RequestId, oneshot::Sender<Result<Response, GroupError>>>,
    next_request: u64,
}

/// What is left to do outside of a coordinator's lock.
struct Append {
    id: AppendId,
    records: Vec<RecordBytes>,
    timestamp_ms: i64,
}

impl fmt::Debug for Coordinators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coordinators").field("exist", &self.exist()).finish_non_exhaustive()
    }
}

impl Coordinators {
    /// No coordinators, until there is a topic for them.
    pub fn new(
        config: &Config,
        events: Arc<Events>,
        partitions: Arc<Partitions>,
        stopping: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            config: group_config(config),
            events,
            partitions,
            all: OnceLock::new(),
            notices: OnceLock::new(),
            timer: Timer::default(),
            stopping,
        })
    }

    /// Says who hears of changes; once, before the first request.
    pub fn set_notices(&self, sink: Arc<dyn NoticeSink>) {
        // A second sink would be a second bridge; there is one.
        let _ = self.notices.set(sink);
    }

    /// Whether the coordinators have their topic.
    pub fn exist(&self) -> bool {
        self.all.get().is_some()
    }

    /// Takes up the work of coordinating over the partitions of `topic`, reading their logs in the
    /// background. A second call changes nothing.
    pub fn open(self: &Arc<Self>, topic: &Topic) {
        self.all.get_or_init(|| {
            let found = (0..topic.partition_count())
                .filter_map(|index| self.partitions.find(topic.id, index));
            let all: Vec<_> = found
                .enumerate()
                .map(|(index, partition)| {
                    let shard = GroupShard::new(self.config.clone(), self.events.clone());
                    let state = State {
                        runtime: Runtime::loading(shard),
                        waiting: HashMap::new(),
                        next_request: 0,
                    };
                    Arc::new(Coordinator { index, partition, state: Mutex::new(state) })
                })
                .collect();
            *self.timer.deadlines.lock() = vec![None; all.len()];
            for coordinator in &all {
                tokio::spawn(self.clone().load(coordinator.clone()));
            }
            tokio::spawn(self.clone().run_timer());
            all
        });
    }

    /// The partition of `__consumer_offsets` that a group belongs to.
    fn of(&self, group: &str) -> Option<&Arc<Coordinator>> {
        let all = self.all.get()?;
        all.get(partition_of(group, all.len()))
    }

    /// Has the group's coordinator decide `event`, and waits for the answer.
    ///
    /// Errors: the coordinator's; `CoordinatorNotAvailable` before there is one.
    pub async fn request(
        self: &Arc<Self>,
        group: &str,
        event: Event,
    ) -> Result<Response, GroupError> {
        let coordinator = self.of(group).ok_or(GroupError::CoordinatorNotAvailable)?;
        self.submit(coordinator, event).await.unwrap_or(Err(GroupError::NotCoordinator))
    }

    /// As [`Self::request`] to every coordinator: each one's answer.
    pub async fn request_all(self: &Arc<Self>, event: &Event) -> Vec<Result<Response, GroupError>> {
        let all = self.all.get().map(Vec::as_slice).unwrap_or_default();
        let asked: Vec<_> = all.iter().map(|one| self.submit(one, event.clone())).collect();
        let mut answers = Vec::with_capacity(asked.len());
        for answer in asked {
            answers.push(answer.await.unwrap_or(Err(GroupError::NotCoordinator)));
        }
        answers
    }

    /// Tells the group's coordinator something that nobody waits for.
    pub fn notify(self: &Arc<Self>, group: &str, event: Event) {
        if let Some(coordinator) = self.of(group) {
            self.with(coordinator, |state, now| state.runtime.notify(event, now));
        }
    }

    /// Shows every group as the logs have it.
    pub fn for_each_group(&self, mut show: impl FnMut(&str, &GroupImage)) {
        for coordinator in self.all.get().map(Vec::as_slice).unwrap_or_default() {
            let state = coordinator.state.lock();
            state.runtime.shard().images().for_each(|(group, image)| show(group, image));
        }
    }

    /// A RocketMQ connection has closed.
    pub fn channel_closed(self: &Arc<Self>, channel: ChannelId) {
        self.notify_all(&Event::ChannelClosed(channel));
    }

    /// A topic was deleted: the positions on it go.
    pub fn topic_deleted(self: &Arc<Self>, topic: DeletedTopic) {
        self.notify_all(&Event::TopicDeleted(topic));
    }

    fn notify_all(self: &Arc<Self>, event: &Event) {
        for coordinator in self.all.get().map(Vec::as_slice).unwrap_or_default() {
            self.with(coordinator, |state, now| state.runtime.notify(event.clone(), now));
        }
    }

    fn submit(
        self: &Arc<Self>,
        coordinator: &Arc<Coordinator>,
        event: Event,
    ) -> oneshot::Receiver<Result<Response, GroupError>> {
        let (reply, answer) = oneshot::channel();
        self.with(coordinator, |state, now| {
            let request = RequestId(state.next_request);
            state.next_request += 1;
            state.waiting.insert(request, reply);
            state.runtime.submit(request, event, now);
        });
        answer
    }

    /// Gives a coordinator one input and performs all that follows.
    fn with(self: &Arc<Self>, coordinator: &Arc<Coordinator>, input: impl FnOnce(&mut State, Now)) {
        let mut state = coordinator.state.lock();
        input(&mut state, now());
        let append = self.perform(&mut state);
        let deadline = state.runtime.next_deadline();
        drop(state);
        self.timer.set(coordinator.index, deadline);
        if let Some(append) = append {
            tokio::spawn(self.clone().append(coordinator.clone(), append));
        }
    }

    /// Answers and tells; returns the append to begin, of which there is one at a time.
    fn perform(&self, state: &mut State) -> Option<Append> {
        let mut append = None;
        while let Some(effect) = state.runtime.poll_effect() {
            match effect {
                Effect::Append { id, records, timestamp_ms } => {
                    append = Some(Append { id, records, timestamp_ms });
                }
                Effect::Reply { request, answer } => {
                    if let Some(reply) = state.waiting.remove(&request) {
                        // Whoever asked may be gone.
                        let _ = reply.send(answer);
                    }
                }
                Effect::Notice(notice) => {
                    if let Some(sink) = self.notices.get() {
                        sink.accept(notice);
                    }
                }
            }
        }
        append
    }

    /// Performs one append, tells the coordinator, and performs the next one if that asks for it.
    async fn append(self: Arc<Self>, coordinator: Arc<Coordinator>, append: Append) {
        let mut next = Some(append);
        while let Some(append) = next.take() {
            let outcome = write(&coordinator.partition, &append).await;
            let mut state = coordinator.state.lock();
            match outcome {
                Ok(appended) => {
                    state.runtime.appended(append.id, Offset(appended.base_offset), now());
                    state.runtime.advance_high_watermark(Offset(appended.last_offset + 1));
                }
                Err(error) => state.runtime.append_failed(append.id, error, now()),
            }
            next = self.perform(&mut state);
            let deadline = state.runtime.next_deadline();
            drop(state);
            self.timer.set(coordinator.index, deadline);
        }
    }

    /// Replays the partition's log.
    async fn load(self: Arc<Self>, coordinator: Arc<Coordinator>) {
        let partition = &coordinator.partition;
        let loaded = match partition.reader().await {
            Ok(_) => replay(&coordinator).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = loaded {
            // Half of a group's positions would send its members back: rather none answer.
            tracing::error!(partition = partition.index, %error, "cannot load the groups");
            return self.with(&coordinator, |state, _| state.runtime.resign());
        }
        let offsets = partition.offsets();
        self.with(&coordinator, |state, now| {
            let (end, high_watermark) = (Offset(offsets.log_end), Offset(offsets.high_watermark));
            state.runtime.finish_load(end, high_watermark, now);
        });
    }

    async fn run_timer(self: Arc<Self>) {
        loop {
            let next = self.timer.deadlines.lock().iter().flatten().min().copied();
            let wait = next.map(|at| at.saturating_sub(clock::tick_ms()).max(0).unsigned_abs());
            tokio::select! {
                () = self.stopping.cancelled() => return,
                () = self.timer.sooner.notified() => continue,
                () = sleep(wait) => {}
            }
            let now_ms = clock::tick_ms();
            let due: Vec<usize> = {
                let deadlines = self.timer.deadlines.lock();
                let due = |at: &Option<i64>| at.is_some_and(|at| at <= now_ms);
                deadlines.iter().enumerate().filter(|(_, at)| due(at)).map(|(i, _)| i).collect()
            };
            for coordinator in due.iter().filter_map(|index| self.all.get()?.get(*index)) {
                self.with(coordinator, |state, now| state.runtime.tick(now));
            }
        }
    }
}

impl Timer {
    fn set(&self, index: usize, deadline: Option<i64>) {
        let mut deadlines = self.deadlines.lock();
        let Some(held) = deadlines.get_mut(index) else { return };
        if *held == deadline {
            return;
        }
        let sooner = deadline.is_some_and(|at| held.is_none_or(|held| at < held));
        *held = deadline;
        drop(deadlines);
        if sooner {
            self.sooner.notify_one();
        }
    }
}

async fn sleep(wait_ms: Option<u64>) {
    match wait_ms {
        Some(wait_ms) => tokio::time::sleep(Duration::from_millis(wait_ms)).await,
        None => std::future::pending().await,
    }
}

/// The caller's clocks, read once per input.
fn now() -> Now {
    Now { wall_ms: clock::now_ms(), tick_ms: clock::tick_ms() }
}

/// Java's `Utils.abs(group.hashCode()) % partitions`.
pub fn partition_of(group: &str, partitions: usize) -> usize {
    let hash = group
        .encode_utf16()
        .fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    let positive = hash.checked_abs().unwrap_or_default();
    usize::try_from(positive).unwrap_or_default() % partitions.max(1)
}

/// Writes one batch; returns once it is committed.
async fn write(
    partition: &Arc<Partition>,
    append: &Append,
) -> Result<append::Appended, AppendError> {
    let mut builder = BatchBuilder::new(BatchParams::default());
    for record in &append.records {
        let record = NewRecord {
            timestamp: append.timestamp_ms,
            key: Some(&record.key),
            value: record.value.as_deref(),
            headers: &[],
        };
        builder.append(&record).map_err(|_| AppendError::TooLarge)?;
    }
    let record_count = builder.record_count();
    let bytes = builder.finish_uncompressed().map_err(|_| AppendError::TooLarge)?;
    let size = bytes.len();
    if size > usize::try_from(partition.config().max_message_bytes).unwrap_or_default() {
        return Err(AppendError::TooLarge);
    }
    let payload = Payload::Batch {
        bytes,
        record_count,
        timestamp_type: TimestampType::CreateTime,
        max_timestamp: append.timestamp_ms,
        origin: AppendOrigin::Coordinator,
    };
    let answer = partition.append(payload, size, Acks::All, Flush::Topic).await;
    let answer = answer.map_err(|error| refusal(&error))?;
    answer.await.map_err(|_| AppendError::NotLeader)?.map_err(|error| refusal(&error))
}

/// What a partition's refusal means to a coordinator.
fn refusal(error: &append::AppendError) -> AppendError {
    use append::AppendError as Error;
    match error {
        Error::Log(LogError::BatchLargerThanSegment { .. }) | Error::RecordTooLarge { .. } => {
            AppendError::TooLarge
        }
        Error::Replication(ReplicationError::NotEnoughReplicas { .. })
        | Error::NotEnoughReplicasAfterAppend => AppendError::NotEnoughReplicas,
        Error::Replication(_) | Error::Deleted | Error::Stopping => AppendError::NotLeader,
        Error::Log(_) | Error::Busy | Error::Gate => AppendError::Storage,
    }
}

/// Gives every record of the log to the coordinator.
async fn replay(coordinator: &Coordinator) -> Result<(), append::AppendError> {
    let partition = &coordinator.partition;
    let reader = partition.reader().await?;
    let offsets = partition.offsets();
    let mut offset = offsets.log_start;
    let mut decompressor = Decompressor::default();
    while offset < offsets.high_watermark {
        let end = offsets.high_watermark;
        let read = reader.read(offset, LOAD_BYTES, end, ReadMinimum::OneBatch)?;
        if read.next_offset <= offset {
            break;
        }
        for piece in read.pieces {
            let mut state = coordinator.state.lock();
            for batch in SharedBatches::new(piece) {
                let corrupt = |reason: String| LogError::Corrupt { offset, reason };
                let (header, bytes) = batch.map_err(|error| corrupt(error.to_string()))?;
                if header.is_control() {
                    continue;
                }
                let batch = DecodedBatch::decode(&bytes, &mut decompressor, DECOMPRESSED_BYTES_MAX)
                    .map_err(|error| corrupt(error.to_string()))?;
                load_batch(&mut state.runtime, &batch);
            }
        }
        offset = read.next_offset;
        // Loading must not keep others from the thread.
        tokio::task::yield_now().await;
    }
    Ok(())
}

fn load_batch(runtime: &mut Runtime<GroupShard>, batch: &DecodedBatch) {
    for record in batch.iter() {
        let owned = |bytes: &[u8]| bytes::Bytes::copy_from_slice(bytes);
        let (key, value) = (record.key.map(owned), record.value.map(owned));
        let loaded = runtime.load(Offset(record.offset), key.as_ref(), value.as_ref());
        if let Err(error) = loaded {
            tracing::warn!(offset = record.offset, %error, "group record skipped");
        }
    }
}

fn group_config(config: &Config) -> GroupConfig {
    let group = &config.group;
    let ms = |value: i64| i32::try_from(value).unwrap_or(i32::MAX);
    GroupConfig {
        initial_rebalance_delay_ms: ms(group.initial_rebalance_delay_ms),
        session_timeout_min_ms: ms(group.min_session_timeout_ms),
        session_timeout_max_ms: ms(group.max_session_timeout_ms),
        group_size_max: usize::try_from(group.max_size).unwrap_or_default(),
        offset_metadata_max: usize::try_from(group.offset_metadata_max_bytes).unwrap_or_default(),
        offsets_retention_ms: group.offsets_retention_ms,
        offsets_retention_check_interval_ms: group.offsets_retention_check_interval_ms,
        channel_expired_timeout_ms: config.rocketmq.channel_expired_timeout_ms,
        rocketmq_listing: match config.group_listing {
            GroupListing::Plain => RocketMqListing::Untyped,
            GroupListing::Typed => RocketMqListing::Typed,
        },
        ..GroupConfig::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_spread_as_in_kafka() {
        // "console-consumer".hashCode() and friends, as printed by a JDK.
        assert_eq!(partition_of("", 50), 0);
        assert_eq!(partition_of("a", 50), 97 % 50);
        assert_eq!(partition_of("ab", 50), (97 * 31 + 98) % 50);
        // Its hash is Integer.MIN_VALUE, whose Utils.abs is 0.
        assert_eq!(partition_of("polygenelubricants", 50), 0);
    }
}
