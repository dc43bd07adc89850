//! What a running node does with what it hears: it performs what the replication machine decides.

use std::sync::Arc;

use duolog_log_core::event::EventKind;
use duolog_log_core::ids::{BrokerEpoch, LeaderEpoch, NodeId, Offset};
use duolog_log_core::log::{Log, LogError};
use duolog_log_core::replication::effect::{Effect, IsrProposal};
use duolog_log_core::replication::election::{LogTip, PartitionState, Restart};
use duolog_log_core::replication::epochs::{EpochEntry, LeaderEpochs};
use duolog_log_core::replication::partition::{FollowerStep, Partition, PartitionRules, Role};
use duolog_log_core::testing::mem_disk::MemDisk;

use super::Step;
use super::leading::Waiting;
use crate::message::{Address, Message};
use crate::plan::{FlushPolicy, Planted, timing};
use crate::storage;

/// See the module.
pub struct Process {
    pub log: Log,
    pub replica: Partition,
    pub broker_epoch: Option<BrokerEpoch>,
    pub flush: FlushPolicy,
    pub planted: Option<Planted>,
    /// Epochs of records below are forgotten; 0 but for a planted fault.
    pub epochs_known_from: i64,
    pub(super) nonce: u64,
    pub(super) restart: Restart,
    pub(super) registering_since_ms: i64,
    /// The newest version of the partition's state that it acted on.
    pub(super) seen: i32,
    /// Whether it has heard that it is no replica any more, and still holds a log.
    pub is_removed: bool,
    pub(super) waiting: Vec<Waiting>,
    pub(super) asked: Option<(FollowerStep, i64)>,
    pub(super) proposed_ms: i64,
    pub(super) heartbeat_ms: i64,
    pub(super) checkpoint_ms: i64,
}

impl Process {
    pub fn new(log: Log, replica: Partition, nonce: u64, restart: Restart) -> Self {
        Self {
            log,
            replica,
            broker_epoch: None,
            flush: FlushPolicy::WithCheckpoints,
            planted: None,
            epochs_known_from: 0,
            nonce,
            restart,
            registering_since_ms: 0,
            seen: -1,
            is_removed: false,
            waiting: Vec::new(),
            asked: None,
            proposed_ms: 0,
            heartbeat_ms: 0,
            checkpoint_ms: 0,
        }
    }

    pub fn register(&mut self, step: &mut Step<'_>) {
        self.registering_since_ms = step.now_ms;
        let (nonce, restart) = (self.nonce, self.restart);
        step.send(Address::Coordinator, Message::Register { nonce, restart });
    }

    pub fn handle(
        &mut self,
        disk: &MemDisk,
        from: Address,
        message: Message,
        step: &mut Step<'_>,
    ) -> Result<(), LogError> {
        match message {
            Message::Registered { nonce, broker_epoch, state }
                if nonce == self.nonce
                    && self.broker_epoch.is_none_or(|known| known < broker_epoch) =>
            {
                self.broker_epoch = Some(broker_epoch);
                self.learn(&state, step);
                self.follow(disk, step)?;
            }
            Message::State(state) if self.broker_epoch.is_some() => {
                self.learn(&state, step);
                self.follow(disk, step)?;
            }
            Message::SessionOver(broker_epoch) if Some(broker_epoch) == self.broker_epoch => {
                // Still running: nothing was lost, but another run it must be.
                self.nonce = self.nonce.wrapping_add(1 << 32);
                self.restart = Restart::LogKept;
                self.register(step);
            }
            Message::ProposalRefused { leader_epoch, partition_epoch } => {
                self.replica.isr_refused(leader_epoch, partition_epoch);
            }
            Message::Fetch(question) => self.answer_fetch(&question, from, step)?,
            Message::AskEpochEnd(question) => self.answer_epoch_end(question, from, step),
            Message::Produce(request) => self.produce(request, from, step)?,
            Message::Read { offset, isolation } => self.read((offset, isolation), from, step)?,
            Message::FetchAnswered(question, answer) => {
                self.fetched(disk, &question, answer, step)?;
            }
            Message::EpochEndAnswered(question, end) => {
                self.epoch_end_told(disk, question, end, step)?;
            }
            _ => {}
        }
        self.perform(step)
    }

    /// Acts on a newer state of the partition.
    fn learn(&mut self, state: &Arc<PartitionState>, step: &mut Step<'_>) {
        if state.partition_epoch <= self.seen {
            return;
        }
        self.seen = state.partition_epoch;
        if !state.replicas.contains(&step.node) {
            self.is_removed = !self.is_empty();
            self.replica.removed();
            self.asked = None;
            return;
        }
        let epoch = state.leader_epoch;
        let Some(leader) = state.leader else { return };
        if epoch <= self.replica.leader_epoch() {
            self.replica.assignment_committed(epoch, &state.assignment());
            return;
        }
        if self.planted == Some(Planted::AcknowledgeAfterNewerEpoch) {
            self.acknowledge_all(step);
        }
        self.asked = None;
        let became = if leader == step.node {
            self.replica.become_leader(epoch, state.assignment(), step.clock_ms)
        } else {
            let last_epoch = self.epochs().latest().map(|entry| entry.epoch);
            self.replica.become_follower(epoch, leader, last_epoch)
        };
        if let Err(error) = became {
            step.seen.checker.violate(|| format!("node {}: {error}", step.node));
        }
    }

    /// Performs what the machine asks for, until it asks for nothing more.
    pub(super) fn perform(&mut self, step: &mut Step<'_>) -> Result<(), LogError> {
        loop {
            let effects: Vec<Effect> = self.replica.drain_effects().collect();
            if effects.is_empty() {
                break;
            }
            for effect in effects {
                self.perform_one(effect, step)?;
            }
        }
        self.settle(step);
        Ok(())
    }

    fn perform_one(&mut self, effect: Effect, step: &mut Step<'_>) -> Result<(), LogError> {
        let epoch = self.replica.leader_epoch();
        match effect {
            Effect::LeaderElected { epoch, start_offset } => {
                let watermark = self.replica.high_watermark().0;
                step.seen.checker.led(step.node, epoch, watermark);
                step.event(EventKind::LeaderElect, (start_offset.0, epoch), || {
                    format!("leads, its log has {}", self.epochs_in_words())
                });
            }
            Effect::HighWatermarkAdvanced { from, to } => {
                step.seen.checker.high_watermark(step.node, &self.replica, (from.0, to.0));
                step.event(EventKind::HighWatermarkAdvanced, (to.0, epoch), || {
                    format!("from {from}")
                });
                self.log.high_watermark_moved(to.0);
                self.replica.unstable_changed(self.log.first_unstable_offset().map(Offset));
            }
            Effect::LastStableOffsetAdvanced { to, .. } => {
                step.event(EventKind::LastStableOffsetAdvanced, (to.0, epoch), String::new);
            }
            Effect::ProposeIsr(proposal) => self.propose(proposal, step),
            Effect::RaiseLogStart { to } => self.raise_log_start(to.0, step)?,
            Effect::IsrChanged { .. } | Effect::Truncated { .. } => {}
        }
        Ok(())
    }

    fn propose(&mut self, proposal: IsrProposal, step: &mut Step<'_>) {
        self.proposed_ms = step.now_ms;
        let believes = match self.planted {
            Some(Planted::ShrinkBelievedAtOnce) => {
                self.replica.in_sync_replicas().count() > proposal.isr.len()
            }
            Some(Planted::GrowthBelievedAtOnce) => {
                self.replica.in_sync_replicas().count() < proposal.isr.len()
            }
            _ => false,
        };
        if believes {
            let isr = proposal.isr.keys().copied().collect();
            let next = proposal.partition_epoch.saturating_add(1);
            self.replica.isr_committed(proposal.leader_epoch, &isr, next);
        }
        step.send(Address::Coordinator, Message::Propose(proposal));
    }

    /// DeleteRecords, or the leader's word.
    pub fn raise_log_start(&mut self, to: i64, step: &mut Step<'_>) -> Result<(), LogError> {
        if self.log.set_log_start_offset(to)? {
            step.seen.coverage.deletions += 1;
            self.log_start_moved("log start moved", step);
        }
        Ok(())
    }

    fn log_start_moved(&mut self, how: &'static str, step: &mut Step<'_>) {
        let start = self.log.log_start_offset();
        self.replica.log_start_moved(Offset(start));
        step.seen.checker.start_moved(step.node, start);
        if step.seen.checker.is_parted(step.node) {
            step.seen.coverage.starts_while_parted += 1;
        }
        let epoch = self.replica.leader_epoch();
        step.event(EventKind::LogDelete, (start, epoch), || how.to_owned());
    }

    /// Timers: heartbeats, lags, checkpoints, flushes, what was not answered.
    pub fn upkeep(&mut self, disk: &MemDisk, step: &mut Step<'_>) -> Result<(), LogError> {
        let now_ms = step.now_ms;
        let overdue = |since_ms: i64| now_ms - since_ms >= timing::REQUEST_TIMEOUT_MS;
        match self.broker_epoch {
            None if overdue(self.registering_since_ms) => self.register(step),
            Some(broker_epoch) if now_ms - self.heartbeat_ms >= timing::HEARTBEAT_MS => {
                self.heartbeat_ms = now_ms;
                let (seen, tip) = (self.seen, self.tip());
                let heartbeat = Message::Heartbeat { broker_epoch, seen, tip };
                step.send(Address::Coordinator, heartbeat);
            }
            _ => {}
        }
        self.replica.tick(step.clock_ms);
        if overdue(self.proposed_ms)
            && let Some(proposal) = self.replica.pending_proposal()
        {
            self.proposed_ms = now_ms;
            step.send(Address::Coordinator, Message::Propose(proposal));
        }
        let due = match self.flush {
            FlushPolicy::AfterMs(ms) => {
                self.log.first_unflushed_ms().is_some_and(|since_ms| now_ms - since_ms >= ms)
            }
            FlushPolicy::WithCheckpoints | FlushPolicy::EveryAppend => false,
        };
        if due {
            self.log.flush(now_ms)?;
        }
        if now_ms - self.checkpoint_ms >= timing::CHECKPOINT_MS {
            self.checkpoint_ms = now_ms;
            self.keep_house(disk, step)?;
        }
        self.perform(step)
    }

    fn keep_house(&mut self, disk: &MemDisk, step: &mut Step<'_>) -> Result<(), LogError> {
        let high_watermark = self.replica.high_watermark().0;
        let retained = self.log.apply_retention(high_watermark, step.now_ms)?;
        step.seen.coverage.segments_dropped += retained.segments_deleted as u64;
        if self.log.log_start_offset() > self.replica.log_start_offset().0 {
            step.seen.coverage.retentions += 1;
            self.log_start_moved("segments dropped by retention", step);
        }
        self.log.remove_deleted(step.now_ms);
        self.log.flush(step.now_ms)?;
        step.event(
            EventKind::LogFlush,
            (self.log.recovery_point(), self.replica.leader_epoch()),
            String::new,
        );
        storage::write_checkpoints(disk, &self.log, &self.replica)?;
        Ok(())
    }

    /// Ends as a stop on request does: everything is on disk.
    pub fn close(&mut self, disk: &MemDisk, now_ms: i64) -> Result<(), LogError> {
        self.log.close_clean(now_ms)?;
        storage::write_checkpoints(disk, &self.log, &self.replica)?;
        Ok(())
    }

    /// Whether it has neither a part in the replication nor anything in its log.
    pub fn is_empty(&self) -> bool {
        self.replica.role() == Role::Offline && self.log.log_end_offset() == 0
    }

    /// A planted fault: a lower minimum counts before anybody has written it.
    pub fn believe_minimum(
        &mut self,
        min_insync_replicas: usize,
        step: &mut Step<'_>,
    ) -> Result<(), LogError> {
        let replica_lag_time_max_ms = timing::REPLICA_LAG_TIME_MAX_MS;
        self.replica.set_rules(PartitionRules { min_insync_replicas, replica_lag_time_max_ms });
        self.perform(step)
    }

    pub fn tip(&self) -> LogTip {
        LogTip {
            last_epoch: self.log.latest_epoch().unwrap_or(LeaderEpoch::UNKNOWN),
            log_end_offset: Offset(self.log.log_end_offset()),
        }
    }

    /// The log's epochs, without those that a planted fault has forgotten.
    pub(super) fn epochs(&self) -> Arc<LeaderEpochs> {
        let epochs = self.log.reader().leader_epochs();
        if self.epochs_known_from == 0 {
            return epochs;
        }
        let known = epochs.entries().iter().copied();
        let known = known.filter(|entry| entry.start_offset.0 >= self.epochs_known_from);
        Arc::new(LeaderEpochs::from_entries(known))
    }

    pub(super) fn epochs_in_words(&self) -> String {
        let epochs = self.epochs();
        let one = |entry: &EpochEntry| format!("{} from {}", entry.epoch, entry.start_offset);
        let words: Vec<_> = epochs.entries().iter().map(one).collect();
        if words.is_empty() {
            "no epochs".to_owned()
        } else {
            format!("epochs {}", words.join(", "))
        }
    }

    pub(super) fn leader(&self) -> Option<NodeId> {
        match self.replica.role() {
            Role::Follower(leader) => Some(leader),
            Role::Leader | Role::Offline => None,
        }
    }

    /// The log grew: syncs first if nobody may be told before.
    pub(super) fn log_grew(&mut self, step: &mut Step<'_>) -> Result<(), LogError> {
        if self.flush == FlushPolicy::EveryAppend {
            self.log.flush(step.now_ms)?;
        }
        let unstable = self.log.first_unstable_offset().map(Offset);
        self.replica.appended(Offset(self.log.log_end_offset()), unstable);
        Ok(())
    }
}
