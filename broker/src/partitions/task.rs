//! The owner of one partition: the only one that writes its log.
//!
//! It works only while there is something to do, as a task or for one round on the thread of
//! whoever put an append into the empty inbox ([`super::inbox`]): it takes all that waits, performs
//! it, looks again, and leaves the log behind when nothing waits. So appends that came while one
//! was written are written together, and an idle partition costs no task.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use duolog_log_core::event::EventKind;
use duolog_log_core::gate::GatePoint;
use duolog_log_core::ids::{LeaderEpoch, Offset};
use duolog_log_core::log::compaction::{CompactedGroup, CompactionPlan, Installed};
use duolog_log_core::log::{FlushPoint, Log, LogError, Novelty, Verification};
use duolog_log_core::replication::partition::{AckState, Acks, Partition as Replica};
use duolog_log_core::storage::disk::DiskError;
use tokio::sync::oneshot;

use super::Partition;
use super::append::{Append, AppendError, AppendResult, Appended, Flush};
use super::flush::Flushing;
use super::high_watermark::HighWatermarkGate;
use super::inbox::Next;
use super::movement::Relocating;
use super::round::{Part, Round};
use super::transactions::{GuardReply, ProducerState, producers};
use crate::clock;
use crate::instruments::Passage;

/// What the owner can be asked to do.
#[derive(Debug)]
pub(super) enum Command {
    /// Append records.
    Append(Append),
    /// The gate `hw.advance.before` lets the high watermark rise to here.
    HighWatermarkFree(Offset),
    /// The flusher is done with a flush point.
    SyncEnded(Box<FlushPoint>, Result<(), DiskError>),
    /// A gate let a flush point vanish.
    FlushDropped,
    /// Make sure that what was appended gets to the disk, by now.
    FlushDue,
    /// Roll, retain.
    KeepHouse,
    /// Forget producers that were silent for long.
    ExpireProducers,
    /// Nothing was appended for a while: keep nothing in memory that a file holds too.
    Rest,
    /// The topic has other settings.
    Configure,
    /// Raise the log start to the offset; -1 is the HW (DeleteRecords).
    DeleteRecords(i64, oneshot::Sender<Result<i64, AppendError>>),
    /// Say what is to be compacted, if that is due.
    PlanCompaction(oneshot::Sender<Result<Option<CompactionPlan>, AppendError>>),
    /// Put compacted segments in the place of those that they stand for.
    Install(Box<CompactedGroup>, oneshot::Sender<Result<Installed, AppendError>>),
    /// The log directory has failed: let go of the log.
    GoOffline,
    /// Go on in another log directory.
    Relocate(Box<Relocating>, oneshot::Sender<Result<(), AppendError>>),
    /// Go on in a new segment.
    Roll(oneshot::Sender<Result<(), AppendError>>),
    /// A coordinator is about to be asked about a transaction.
    BeginVerification(Verification, oneshot::Sender<GuardReply>),
    /// Who writes here.
    Producers(oneshot::Sender<Result<Vec<ProducerState>, AppendError>>),
    /// Nothing: the log is open once this is answered.
    Open(oneshot::Sender<Result<(), AppendError>>),
    /// Sync, close the log for good, answer.
    Stop(oneshot::Sender<Result<(), AppendError>>),
    /// The topic is gone: close the log without a sync and refuse all that comes.
    Delete(oneshot::Sender<Result<(), AppendError>>),
}

impl Command {
    /// Whether a log that was closed is opened again for this: not to be told of its past.
    pub(super) fn opens(&self) -> bool {
        match self {
            Self::Append(_)
            | Self::DeleteRecords(..)
            | Self::Roll(_)
            | Self::BeginVerification(..)
            | Self::Producers(_)
            | Self::Open(_) => true,
            Self::HighWatermarkFree(_)
            | Self::SyncEnded(..)
            | Self::FlushDropped
            | Self::FlushDue
            | Self::KeepHouse
            | Self::ExpireProducers
            | Self::Rest
            | Self::Configure
            | Self::PlanCompaction(_)
            | Self::Install(..)
            | Self::GoOffline
            | Self::Relocate(..)
            | Self::Stop(_)
            | Self::Delete(_) => false,
        }
    }

    /// Answers a command that cannot be performed.
    pub(super) fn refuse(self, error: &AppendError) {
        match self {
            Self::Append(append) => drop(append.reply.send(Err(error.clone()))),
            Self::DeleteRecords(_, reply) => drop(reply.send(Err(error.clone()))),
            Self::BeginVerification(_, reply) => drop(reply.send(Err(error.clone()))),
            Self::Producers(reply) => drop(reply.send(Err(error.clone()))),
            Self::PlanCompaction(reply) => drop(reply.send(Err(error.clone()))),
            Self::Install(group, reply) => {
                group.discard();
                drop(reply.send(Err(error.clone())));
            }
            Self::Roll(reply)
            | Self::Open(reply)
            | Self::Relocate(_, reply)
            | Self::Stop(reply)
            | Self::Delete(reply) => drop(reply.send(Err(error.clone()))),
            Self::HighWatermarkFree(_)
            | Self::SyncEnded(..)
            | Self::FlushDropped
            | Self::FlushDue
            | Self::KeepHouse
            | Self::ExpireProducers
            | Self::Rest
            | Self::GoOffline
            | Self::Configure => {}
        }
    }
}

/// An append in the log whose answer waits.
#[derive(Debug)]
struct Pending {
    /// The partition has to be so far: exclusive.
    required: Offset,
    acks: Acks,
    appended: Appended,
    reply: oneshot::Sender<AppendResult>,
}

/// What the log says to one round of appends.
struct Written {
    results: Vec<Result<duolog_log_core::log::Appended, LogError>>,
    parts: Vec<Part>,
    epoch: LeaderEpoch,
    now_ms: i64,
}

/// The log with all that belongs to writing it.
#[derive(Debug)]
pub(super) struct Owner {
    pub(super) log: Log,
    pub(super) replica: Replica,
    pub(super) watermark: HighWatermarkGate,
    pub(super) flushing: Flushing,
    pending: VecDeque<Pending>,
    /// [`Log::transactions_changed`] when the open transactions were last published.
    transactions_seen: Option<u64>,
    /// The disk failed: nothing more is written until the log is opened again.
    pub(super) failed: Option<String>,
    /// Whether the disk refused the last append.
    refusing: bool,
}

impl Owner {
    pub(super) fn new(log: Log, replica: Replica) -> Self {
        Self {
            log,
            replica,
            watermark: HighWatermarkGate::default(),
            flushing: Flushing::default(),
            pending: VecDeque::new(),
            transactions_seen: None,
            failed: None,
            refusing: false,
        }
    }

    /// Performs all that waited, appends that follow each other together.
    pub(super) async fn perform(
        &mut self,
        partition: &Arc<Partition>,
        commands: VecDeque<Command>,
    ) -> Next {
        let mut next = Next::Serve;
        let mut appends = Vec::new();
        for command in commands {
            if next != Next::Serve {
                command.refuse(&next.error(partition));
                continue;
            }
            match command {
                append @ Command::Append(_) => appends.push(append),
                other => {
                    self.append(partition, mem::take(&mut appends)).await;
                    next = self.perform_one(partition, other).await;
                }
            }
        }
        self.append(partition, appends).await;
        next
    }

    async fn perform_one(&mut self, partition: &Arc<Partition>, command: Command) -> Next {
        match command {
            Command::Append(append) => drop(append.reply.send(Err(AppendError::Stopping))),
            Command::HighWatermarkFree(to) => self.high_watermark_free(partition, to),
            Command::SyncEnded(point, outcome) => self.sync_ended(partition, &point, outcome),
            Command::FlushDropped => self.flush_dropped(partition),
            Command::FlushDue => self.flush_due(partition),
            Command::KeepHouse => self.keep_house(partition),
            Command::ExpireProducers => {
                self.log.expire_producers(clock::now_ms());
            }
            Command::Rest => self.log.shrink_tail(0),
            Command::Configure => self.configure(partition),
            Command::DeleteRecords(offset, reply) => {
                drop(reply.send(self.delete_records(partition, offset)));
            }
            Command::PlanCompaction(reply) => drop(reply.send(self.plan_compaction(partition))),
            Command::Install(group, reply) => {
                drop(reply.send(self.install(partition, *group)));
            }
            Command::GoOffline if self.go_offline(partition) => return Next::Offline,
            Command::GoOffline => {}
            Command::Relocate(relocating, reply) => {
                drop(reply.send(self.relocate(partition, *relocating).await));
            }
            Command::Roll(reply) => {
                let rolled = self.log.roll(clock::now_ms());
                drop(reply.send(rolled.map_err(AppendError::from)));
            }
            Command::BeginVerification(verification, reply) => {
                let guard = self.log.begin_verification(&verification, clock::now_ms());
                drop(reply.send(guard.map_err(AppendError::from)));
            }
            Command::Producers(reply) => drop(reply.send(Ok(producers(&self.log)))),
            Command::Open(reply) => drop(reply.send(Ok(()))),
            Command::Stop(reply) => {
                drop(reply.send(self.close(partition).await));
                return Next::Stopped;
            }
            Command::Delete(reply) => {
                self.refuse_pending(&AppendError::Deleted);
                self.log.close();
                drop(reply.send(Ok(())));
                return Next::Gone;
            }
        }
        Next::Serve
    }

    /// Writes `appends` as few batches as can be, in one go, and answers or keeps them.
    async fn append(&mut self, partition: &Arc<Partition>, appends: Vec<Command>) {
        if appends.is_empty() {
            return;
        }
        let at = self.log.log_end_offset();
        match partition.gate(GatePoint::ProduceAppendBefore, at).await {
            Passage::Go => {}
            Passage::Drop | Passage::Fail => {
                return appends.into_iter().for_each(|append| append.refuse(&AppendError::Gate));
            }
        }
        let Some(written) = self.write(partition, appends) else { return };
        // Whatever the gate says, the records are in the log now.
        let _ = partition.gate(GatePoint::ProduceAppendAfter, at).await;
        self.take_in(partition, written);
    }

    /// As [`Self::append`] while no gate is armed: waits for nothing.
    pub(super) fn append_ungated(
        &mut self,
        partition: &Arc<Partition>,
        appends: impl IntoIterator<Item = Command>,
    ) {
        if let Some(written) = self.write(partition, appends) {
            self.take_in(partition, written);
        }
    }

    /// Puts the batches of `appends` into the log; `None` when the disk takes no more.
    fn write(
        &mut self,
        partition: &Partition,
        appends: impl IntoIterator<Item = Command>,
    ) -> Option<Written> {
        if let Some(text) = &self.failed {
            let error = LogError::Storage(text.clone()).into();
            appends.into_iter().for_each(|append| append.refuse(&error));
            return None;
        }
        let (at, now_ms) = (self.log.log_end_offset(), clock::now_ms());
        let mut round = Round::new(&partition.config.load(), now_ms);
        for append in appends {
            let Command::Append(append) = append else { continue };
            match self.replica.admit(append.acks) {
                Ok(()) => round.add(append),
                Err(error) => drop(append.reply.send(Err(error.into()))),
            }
        }
        let (batches, parts) = round.finish();
        let epoch = self.replica.leader_epoch();
        let segments = partition.is_heard().then(|| self.log.reader().segment_count());
        let results = self.log.append_as_leader(batches, epoch, now_ms);
        if segments.is_some_and(|before| self.log.reader().segment_count() > before) {
            partition.emit(EventKind::LogRoll, Some(at), None);
        }
        Some(Written { results, parts, epoch, now_ms })
    }

    /// Answers or keeps what a round has written, and sees to its way to the disk.
    fn take_in(&mut self, partition: &Arc<Partition>, written: Written) {
        let Written { results, parts, epoch, now_ms } = written;
        let mut flush = Flush::Topic;
        for (result, part) in results.into_iter().zip(parts) {
            flush = part.waiting.iter().map(|waiting| waiting.flush).fold(flush, Flush::sooner);
            self.keep_or_refuse(partition, result, part, epoch, now_ms);
        }
        self.advance(partition);
        self.flush_as_needed(partition, flush);
    }

    /// Gives each append of a written batch its own offsets, and its place among the pending.
    fn keep_or_refuse(
        &mut self,
        partition: &Partition,
        result: Result<duolog_log_core::log::Appended, LogError>,
        part: Part,
        epoch: LeaderEpoch,
        now_ms: i64,
    ) {
        let appended = match result {
            Ok(appended) => appended,
            Err(error) => {
                self.tell_refusal(partition, &error);
                part.refuse(&AppendError::Log(error));
                return;
            }
        };
        if self.refusing {
            self.refusing = false;
            tracing::info!(topic = %partition.topic, partition = partition.index,
                "the disk takes records again");
        }
        if appended.novelty == Novelty::New {
            partition.count_appended(&appended, part.bytes);
        }
        // A repeated batch is told the time of the first one (UnifiedLog.append).
        let log_append_time_ms = match appended.novelty {
            Novelty::New => part.log_append_time_ms,
            Novelty::Duplicate => appended.append_time_ms,
        };
        let mut base_offset = appended.base_offset;
        for waiting in part.waiting {
            let next = base_offset.saturating_add(waiting.records);
            let answer = Appended {
                base_offset,
                last_offset: next - 1,
                log_append_time_ms,
                append_time_ms: now_ms,
                log_start_offset: appended.log_start_offset,
                leader_epoch: epoch,
            };
            base_offset = next;
            self.pending.push_back(Pending {
                required: Offset(next),
                acks: waiting.acks,
                appended: answer,
                reply: waiting.reply,
            });
        }
    }

    /// Tells that the disk refuses records, once until it takes some again.
    fn tell_refusal(&mut self, partition: &Partition, error: &LogError) {
        let is_the_disks = error.is_retriable() || matches!(error, LogError::Storage(_));
        if is_the_disks && !mem::replace(&mut self.refusing, true) {
            tracing::error!(topic = %partition.topic, partition = partition.index, %error,
                "the disk refuses records; producers are told to try again");
        }
    }

    /// Lets the replica know how far the log is, publishes what follows, answers who waited.
    pub(super) fn advance(&mut self, partition: &Arc<Partition>) {
        let (log_end_offset, synced) = (self.log.log_end_offset(), self.log.recovery_point());
        let unsynced = log_end_offset.saturating_sub(synced);
        let log_end_offset = if unsynced >= partition.config.load().flush_messages {
            // So much is on disk before it is shown to anybody (UnifiedLog.append flushes first).
            synced.max(self.replica.log_end_offset().0)
        } else {
            log_end_offset
        };
        let unstable = self.log.first_unstable_offset().map(Offset);
        let high_watermark = self.replica.high_watermark();
        self.replica.appended(Offset(log_end_offset), unstable);
        // A transaction is stable once its marker is below the HW, which may just have passed it.
        self.log.high_watermark_moved(self.replica.high_watermark().0);
        self.replica.unstable_changed(self.log.first_unstable_offset().map(Offset));
        self.hold_high_watermark(partition, high_watermark);
        let transactions = Some(self.log.transactions_changed());
        if self.transactions_seen != transactions {
            self.transactions_seen = transactions;
            partition.transactions.publish(&self.log);
        }
        self.publish(partition);
        self.settle();
    }

    pub(super) fn publish(&mut self, partition: &Partition) {
        for effect in self.replica.drain_effects() {
            if !self.watermark.hides(&effect) {
                partition.tell(&effect);
            }
        }
        if partition.published.publish(&self.replica, self.watermark.limit()) {
            partition.waiters.wake();
        }
    }

    /// Answers every pending append that has what it waits for.
    pub(super) fn settle(&mut self) {
        let mut waiting = VecDeque::new();
        for pending in self.pending.drain(..) {
            let state = match pending.acks {
                Acks::All if self.watermark.limit() < pending.required => AckState::Waiting,
                Acks::All => {
                    self.replica.ack_state(pending.required, pending.appended.leader_epoch)
                }
                Acks::None | Acks::Leader if self.replica.log_end_offset() >= pending.required => {
                    AckState::Acknowledged
                }
                Acks::None | Acks::Leader => AckState::Waiting,
            };
            let answer = match state {
                AckState::Waiting => {
                    waiting.push_back(pending);
                    continue;
                }
                AckState::Acknowledged => Ok(pending.appended),
                AckState::NotEnoughReplicasAfterAppend => {
                    Err(AppendError::NotEnoughReplicasAfterAppend)
                }
                AckState::NotLeader => self.replica.check_leader().map_or_else(
                    |error| Err(error.into()),
                    |()| Err(AppendError::NotEnoughReplicasAfterAppend),
                ),
            };
            drop(pending.reply.send(answer));
        }
        self.pending = waiting;
    }

    /// Whether somebody waits for the replica or the disk.
    pub(super) fn is_awaited(&self) -> bool {
        !self.pending.is_empty()
    }

    pub(super) fn refuse_pending(&mut self, error: &AppendError) {
        for pending in self.pending.drain(..) {
            drop(pending.reply.send(Err(error.clone())));
        }
    }

    /// The disk lost a write or a sync: what it holds is not known any more.
    pub(super) fn fail(&mut self, partition: &Partition, text: &str) {
        tracing::error!(topic = %partition.topic, partition = partition.index, error = text,
            "storage failed; the partition takes no more writes until the node is started again");
        partition.emit(EventKind::FaultDisk, None, Some(text));
        self.failed = Some(text.to_owned());
        partition.published.set_failed(text);
        self.refuse_pending(&LogError::Storage(text.to_owned()).into());
        partition.waiters.wake();
    }
}

#[cfg(test)]
mod tests;
