//! The partitions of this node: who owns each log, who reads it, who waits for it.
//!
//! A [`Partition`] is small while nobody uses it: its log is opened by the first command and
//! written by one owner ([`task`]); readers use published offsets and a reader that never waits
//! for the writer.

pub mod append;
pub mod checkpoints;
mod cleaner;
pub mod deletion;
mod flush;
mod flusher;
mod high_watermark;
pub mod housekeeping;
mod inbox;
pub mod movement;
mod observe;
pub(crate) mod offline;
mod open;
mod placement;
mod published;
mod registry;
mod round;
mod shared;
mod task;
mod timer;
mod transactions;
mod trouble;
mod upkeep;
mod waiters;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use arc_swap::ArcSwap;
use duolog_log_core::ids::{LeaderEpoch, TopicId, TopicPartition};
use duolog_log_core::log::{LogReader, OpenHint, Shutdown};
use duolog_log_core::replication::epochs::EpochEnd;
use duolog_log_core::replication::partition::Acks;
use duolog_log_core::storage::names::FileKind;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use self::append::{Append, AppendError, AppendResult, Flush, Payload};
pub use self::inbox::Placed;
use self::inbox::{End, Inbox};
pub use self::placement::PlacementError;
pub use self::published::Offsets;
use self::published::Published;
pub use self::registry::Partitions;
pub use self::shared::Shared;
use self::task::Command;
use self::transactions::OpenTransactions;
pub use self::transactions::ProducerState;
pub use self::waiters::Registration;
use self::waiters::Waiters;
use crate::config::topic::TopicConfig;
use crate::controller::image::Topic;
use crate::limits::{WAITING_BYTES_MAX, WAITING_UNIT_BYTES};
use crate::log_dirs::LogDir;

/// One partition of one topic on this node.
#[derive(Debug)]
pub struct Partition {
    /// Stored name of the topic.
    pub topic: Arc<str>,
    /// The topic's identity.
    pub topic_id: TopicId,
    /// 0-based.
    pub index: i32,
    /// Cluster-wide number, never given twice.
    pub number: u32,
    /// Where its folder is, or would be.
    log_dir: ArcSwap<LogDir>,
    movement: Mutex<Option<Arc<movement::Movement>>>,
    config: ArcSwap<TopicConfig>,
    published: Published,
    transactions: OpenTransactions,
    waiters: Waiters,
    reader: arc_swap::ArcSwapOption<LogReader>,
    inbox: Inbox,
    room: Arc<Semaphore>,
    was_opened: AtomicBool,
    trouble: trouble::Trouble,
    untouched: AtomicBool,
    has_folder: AtomicBool,
    /// Up to here, exclusive, compaction has worked; -1 before it ever did.
    cleaned_to: AtomicI64,
    /// Whether compaction met something that it cannot read, and leaves this log alone until the next
    /// start.
    uncleanable: AtomicBool,
    /// The log end for which the newest batches were last let go of, or seen to stay: see
    /// [`Self::rest_when_idle`].
    seen_end: AtomicI64,
    rested_end: AtomicI64,
    shared: Arc<Shared>,
}

impl Partition {
    fn new(
        topic: &Topic,
        index: i32,
        number: u32,
        log_dir: Arc<LogDir>,
        shared: Arc<Shared>,
    ) -> Arc<Self> {
        let meant = shared.hints_mean(topic.id);
        let known = meant && log_dir.hints().knows(&topic.name, index);
        let cleaned_to = log_dir.hints().cleaned_to(&topic.name, index).filter(|_| meant);
        // What is in a directory that cannot be read is not nothing.
        let untouched = log_dir.is_online() && !known;
        Arc::new(Self {
            topic: topic.name.clone(),
            topic_id: topic.id,
            index,
            number,
            log_dir: ArcSwap::new(log_dir),
            movement: Mutex::new(None),
            config: ArcSwap::new(topic.config.clone()),
            published: Published::new(shared.leader_epoch()),
            transactions: OpenTransactions::default(),
            waiters: Waiters::default(),
            reader: arc_swap::ArcSwapOption::empty(),
            inbox: Inbox::new(),
            room: Arc::new(Semaphore::new(WAITING_BYTES_MAX / WAITING_UNIT_BYTES)),
            was_opened: AtomicBool::new(false),
            trouble: trouble::Trouble::default(),
            untouched: AtomicBool::new(untouched),
            has_folder: AtomicBool::new(known),
            cleaned_to: AtomicI64::new(cleaned_to.unwrap_or(-1)),
            uncleanable: AtomicBool::new(false),
            seen_end: AtomicI64::new(0),
            rested_end: AtomicI64::new(0),
            shared,
        })
    }

    /// Its folder.
    pub fn dir(&self) -> PathBuf {
        self.log_dir.load().path().join(folder(&self.topic, self.index))
    }

    /// The directory that its folder is in, or would be.
    pub fn log_dir(&self) -> Arc<LogDir> {
        self.log_dir.load_full()
    }

    /// Whether that cannot be used: every request is refused.
    pub fn is_offline(&self) -> bool {
        !self.log_dir.load().is_online()
    }

    /// Topic and number.
    pub fn name(&self) -> TopicPartition {
        TopicPartition { topic: self.topic.clone(), partition: self.index }
    }

    /// The topic's settings now.
    pub fn config(&self) -> Arc<TopicConfig> {
        self.config.load_full()
    }

    /// The offsets now; all zero before the log was first opened.
    pub fn offsets(&self) -> Offsets {
        self.published.offsets()
    }

    /// Where `epoch` ended in the log that `reader` reads; `None` for one that is not known here.
    pub fn epoch_end(&self, reader: &LogReader, epoch: LeaderEpoch) -> Option<EpochEnd> {
        reader.end_offset_for_epoch(epoch, self.published.epoch())
    }

    /// The end of what is known to be on disk: exclusive.
    pub fn synced(&self) -> i64 {
        self.published.synced()
    }

    /// Bytes of all segments.
    pub fn bytes(&self) -> u64 {
        self.published.bytes()
    }

    /// Bytes of all segments, also of a log that is not open. Blocks.
    pub fn bytes_on_disk(&self) -> u64 {
        if self.was_opened() {
            return self.bytes();
        }
        let (disk, dir) = (self.shared.log_dirs.disk(), self.dir());
        // What cannot be looked into takes nothing that is known.
        let entries = disk.list(&dir).unwrap_or_default().into_iter();
        let logs = entries.filter(|entry| entry.name.ends_with(FileKind::Log.suffix()));
        logs.filter_map(|entry| Some(disk.stat(&dir.join(entry.name)).ok()?.len)).sum()
    }

    /// The log to read from now, opening it if need be; ask again for what comes later, for a log
    /// that does not exist yet is read as an empty one.
    ///
    /// Errors: the log cannot be opened; the partition is gone.
    pub async fn reader(self: &Arc<Self>) -> Result<Arc<LogReader>, AppendError> {
        loop {
            if let Some(reader) = self.open_reader() {
                return Ok(reader);
            }
            self.ask(Command::Open).await?;
        }
    }

    /// The log to read from, if it is open, or empty because nothing was ever written.
    pub fn open_reader(&self) -> Option<Arc<LogReader>> {
        // In this order: a log is open before it stops being untouched.
        let untouched = self.is_untouched();
        let reader = self.reader.load_full();
        reader.or_else(|| untouched.then(|| self.shared.empty_reader.clone()))
    }

    /// Whether nothing was ever written here: the partition has no folder yet, all its offsets are
    /// 0, and reading it opens nothing.
    pub fn is_untouched(&self) -> bool {
        self.untouched.load(Ordering::Acquire)
    }

    /// Whether there is a folder to be removed, or was an attempt to make one.
    pub(crate) fn may_have_folder(&self) -> bool {
        self.has_folder.load(Ordering::Acquire)
    }

    fn set_has_folder(&self) {
        self.has_folder.store(true, Ordering::Release);
    }

    /// Lets go of the newest batches in memory when nothing was appended since the last call, once
    /// for each end that the log comes to rest at.
    pub(crate) fn rest_when_idle(self: &Arc<Self>) {
        let end = self.offsets().log_end;
        let is_idle = self.seen_end.swap(end, Ordering::Relaxed) == end;
        if is_idle && self.rested_end.swap(end, Ordering::Relaxed) != end {
            self.command(Command::Rest);
        }
    }

    /// Whether [`Self::offsets`] are real: the log was opened since the node started, or there is
    /// none.
    pub fn offsets_are_known(&self) -> bool {
        (self.is_untouched() || self.was_opened()) && !self.is_offline()
    }

    /// Whether the log was opened since the node started.
    pub fn was_opened(&self) -> bool {
        self.was_opened.load(Ordering::Acquire)
    }

    /// Whether its topic was deleted.
    pub fn is_gone(&self) -> bool {
        self.inbox.is_gone()
    }

    fn set_opened(&self) {
        self.was_opened.store(true, Ordering::Release);
        self.untouched.store(false, Ordering::Release);
    }

    /// The log start, unless the first segment's name says it.
    pub fn checkpointed_log_start(&self) -> Option<i64> {
        self.published.checkpointed_log_start()
    }

    /// What is known of a log that this run of the node has closed.
    fn reopen_hint(&self) -> OpenHint {
        OpenHint {
            shutdown: Shutdown::Clean,
            recovery_point: Some(self.synced()),
            log_start_offset: Some(self.offsets().log_start),
            proven_end: self.synced(),
            high_watermark: self.offsets().high_watermark,
            on_loss: checkpoints::on_loss(&self.topic),
            compacted: self.compacted(),
        }
    }

    /// Puts an append behind those that wait and has it written. Resolves once it has its place,
    /// which keeps the order of calls; the answer comes through what is returned.
    ///
    /// Waits while too much waits already.
    pub async fn append(
        self: &Arc<Self>,
        payload: Payload,
        bytes: usize,
        acks: Acks,
        flush: Flush,
    ) -> Result<oneshot::Receiver<AppendResult>, AppendError> {
        let room = self.room.clone().acquire_many_owned(room_units(bytes)).await;
        let room = room.map_err(|_| AppendError::Stopping)?;
        Ok(self.enqueue(payload, acks, flush, room).begin())
    }

    /// Puts an append behind those that wait, at once; to be begun when the caller has no more to
    /// put beside it. Errors: `Busy` when too much waits already.
    pub fn try_append(
        self: &Arc<Self>,
        payload: Payload,
        bytes: usize,
        acks: Acks,
        flush: Flush,
    ) -> Result<Placed, AppendError> {
        let room = self.room.clone().try_acquire_many_owned(room_units(bytes));
        let room = room.map_err(|_| AppendError::Busy)?;
        Ok(self.enqueue(payload, acks, flush, room))
    }

    fn enqueue(
        self: &Arc<Self>,
        payload: Payload,
        acks: Acks,
        flush: Flush,
        room: OwnedSemaphorePermit,
    ) -> Placed {
        let (reply, answer) = oneshot::channel();
        let work = self.place(Command::Append(Append { payload, acks, flush, reply, room }));
        Placed { work, answer }
    }

    /// Raises the log start to `offset`, or to the HW for -1; returns the log start then.
    pub async fn delete_records(self: &Arc<Self>, offset: i64) -> Result<i64, AppendError> {
        self.ask(|reply| Command::DeleteRecords(offset, reply)).await
    }

    /// Has all that is in the log synced; see [`Self::synced_to`].
    pub fn ask_to_sync(self: &Arc<Self>) {
        self.command(Command::FlushDue);
    }

    /// Waits until the log is on disk up to `offset`, exclusive. Somebody has to have asked for it.
    ///
    /// Errors: the disk failed.
    pub async fn synced_to(self: &Arc<Self>, offset: i64) -> Result<(), AppendError> {
        loop {
            let registration = Registration::new(vec![self.clone()]);
            if self.synced() >= offset {
                return Ok(());
            }
            if let Some(error) = self.published.failure() {
                return Err(error);
            }
            registration.moved().await;
        }
    }

    /// The log to read from, made if it does not exist yet.
    #[cfg(test)]
    pub(crate) async fn opened(self: &Arc<Self>) -> Arc<LogReader> {
        self.ask(Command::Open).await.expect("a log");
        self.open_reader().expect("open")
    }

    /// Whether a request waits for this partition to move.
    #[cfg(test)]
    pub(crate) fn is_awaited(&self) -> bool {
        !self.waiters.is_empty()
    }

    /// Syncs and closes the log; nothing opens it again.
    ///
    /// Errors: what was asked for is not on disk, or an opening under way has failed. The partition has ended all the same.
    pub(crate) async fn stop(self: &Arc<Self>) -> Result<(), AppendError> {
        self.end(End::Stopped, Command::Stop).await
    }

    /// Ends the partition for good, before its folder is renamed.
    pub(crate) async fn delete(self: &Arc<Self>) {
        if let Err(error) = self.end(End::Deleted, Command::Delete).await {
            tracing::debug!(topic = %self.topic, %error, "ended, and no log closed");
        }
    }

    /// Has `command` close the log, if it is open. Whatever this returns, nothing opens it again.
    async fn end(
        self: &Arc<Self>,
        end: End,
        command: fn(oneshot::Sender<Result<(), AppendError>>) -> Command,
    ) -> Result<(), AppendError> {
        let mut outcome = Ok(());
        // A log that is not open need not be opened for this. One that is being opened is waited for, and if that fails,
        // the command is refused with all that waits: the next to come would open it.
        while !self.inbox.end_if_closed(end) {
            match self.ask(command).await {
                Ok(()) => return Ok(()),
                refused => outcome = outcome.and(refused),
            }
        }
        // Not even as an empty log is it read from now on.
        self.untouched.store(false, Ordering::Release);
        self.waiters.wake();
        outcome
    }

    /// Goes on in a new segment.
    pub(crate) async fn roll(self: &Arc<Self>) -> Result<(), AppendError> {
        self.ask(Command::Roll).await
    }

    pub(crate) fn keep_house(self: &Arc<Self>) {
        self.command(Command::KeepHouse);
    }

    pub(crate) fn expire_producers(self: &Arc<Self>) {
        self.command(Command::ExpireProducers);
    }

    fn set_config(self: &Arc<Self>, config: &Arc<TopicConfig>) {
        let before = self.config.swap(config.clone());
        if self.was_opened() && before != *config {
            self.command(Command::Configure);
        }
    }

    async fn ask<T>(
        self: &Arc<Self>,
        command: impl FnOnce(oneshot::Sender<Result<T, AppendError>>) -> Command,
    ) -> Result<T, AppendError> {
        let (reply, answer) = oneshot::channel();
        self.command(command(reply));
        answer.await.unwrap_or(Err(AppendError::Stopping))
    }
}

/// The folder of a partition.
fn folder(topic: &str, index: i32) -> String {
    format!("{topic}-{index}")
}

/// Units of a partition's queue that an append of `bytes` takes.
fn room_units(bytes: usize) -> u32 {
    let units = bytes.div_ceil(WAITING_UNIT_BYTES).max(1);
    u32::try_from(units.min(WAITING_BYTES_MAX / WAITING_UNIT_BYTES)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
