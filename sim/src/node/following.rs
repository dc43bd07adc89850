//! A follower and its leader.

use bytes::Bytes;
use duolog_log_core::event::EventKind;
use duolog_log_core::ids::Offset;
use duolog_log_core::log::LogError;
use duolog_log_core::record::BatchHeader;
use duolog_log_core::replication::epochs::EpochEnd;
use duolog_log_core::replication::partition::{
    AppendPlan, EpochQuestion, FetchAnswer, FetchQuestion, Fetched, FollowerStep, ReplicationError,
};
use duolog_log_core::testing::mem_disk::MemDisk;

use super::{Process, Step};
use crate::message::{Address, Message};
use crate::plan::timing;
use crate::storage;

impl Process {
    /// Cuts what must go, then asks what comes next, unless it has asked already.
    pub(super) fn follow(&mut self, disk: &MemDisk, step: &mut Step<'_>) -> Result<(), LogError> {
        loop {
            let (Some(broker_epoch), Some(leader)) = (self.broker_epoch, self.leader()) else {
                return Ok(());
            };
            let next = self.replica.follower_step(broker_epoch, &self.epochs());
            let message = match next {
                None => return Ok(()),
                Some(FollowerStep::TruncateTo(offset)) => {
                    self.truncate(disk, offset, step)?;
                    continue;
                }
                Some(FollowerStep::StartAnewAt(offset)) => {
                    self.start_anew(disk, offset, step)?;
                    continue;
                }
                Some(FollowerStep::Fetch(question)) => Message::Fetch(question),
                Some(FollowerStep::AskEpochEnd(question)) => Message::AskEpochEnd(question),
            };
            let waits = self.asked.is_some_and(|(asked, since_ms)| {
                Some(asked) == next && step.now_ms - since_ms < timing::REQUEST_TIMEOUT_MS
            });
            if !waits {
                self.asked = next.map(|next| (next, step.now_ms));
                step.send(Address::Node(leader), message);
            }
            return Ok(());
        }
    }

    /// What was asked will not be answered.
    pub fn forget_question(&mut self) {
        self.asked = None;
    }

    fn truncate(
        &mut self,
        disk: &MemDisk,
        offset: Offset,
        step: &mut Step<'_>,
    ) -> Result<(), LogError> {
        let before = self.log.log_end_offset();
        let end = self.log.truncate_to(offset.0, step.now_ms)?;
        step.seen.checker.truncated(step.node, end);
        step.seen.coverage.truncations += u64::from(end < before);
        self.replica.truncated(Offset(end), self.log.first_unstable_offset().map(Offset));
        step.event(EventKind::LogTruncate, (end, self.replica.leader_epoch()), || {
            format!("from {before}")
        });
        storage::write_checkpoints(disk, &self.log, &self.replica)?;
        self.perform(step)
    }

    fn start_anew(
        &mut self,
        disk: &MemDisk,
        offset: Offset,
        step: &mut Step<'_>,
    ) -> Result<(), LogError> {
        self.log.truncate_fully_and_start_at(offset.0, step.now_ms)?;
        step.seen.checker.started_anew(step.node, offset.0);
        step.seen.coverage.restarts_elsewhere += 1;
        self.replica.restarted_at(offset);
        step.event(EventKind::LogTruncate, (offset.0, self.replica.leader_epoch()), || {
            "all of it, to go on here".to_owned()
        });
        storage::write_checkpoints(disk, &self.log, &self.replica)?;
        self.perform(step)
    }

    pub(super) fn fetched(
        &mut self,
        disk: &MemDisk,
        question: &FetchQuestion,
        answer: Result<(FetchAnswer, Vec<Bytes>), ReplicationError>,
        step: &mut Step<'_>,
    ) -> Result<(), LogError> {
        if self.asked.is_some_and(|(asked, _)| asked == FollowerStep::Fetch(*question)) {
            self.asked = None;
        }
        let Ok((answer, batches)) = answer else { return Ok(()) };
        let taken = self.replica.fetch_answered(question, answer, &self.epochs());
        let FetchAnswer::Records { high_watermark, log_start_offset } = answer else {
            return self.follow(disk, step);
        };
        if taken == Fetched::Nothing {
            return Ok(());
        }
        let has_more = !batches.is_empty();
        match self.append(disk, batches, step) {
            Err(LogError::StorageFull(_)) => {
                step.seen.coverage.disk_full += 1;
                return self.log_grew_to_file(step);
            }
            other => other?,
        }
        self.replica.leader_told(high_watermark, log_start_offset);
        self.perform(step)?;
        if has_more { self.follow(disk, step) } else { Ok(()) }
    }

    /// What fitted of an append that a full disk cut off.
    fn log_grew_to_file(&mut self, step: &mut Step<'_>) -> Result<(), LogError> {
        self.log_grew(step)?;
        self.perform(step)
    }

    fn append(
        &mut self,
        disk: &MemDisk,
        batches: Vec<Bytes>,
        step: &mut Step<'_>,
    ) -> Result<(), LogError> {
        let Some(first) = batches.first() else { return Ok(()) };
        let header = BatchHeader::parse(first)?;
        let plan =
            self.replica.plan_append(Offset(header.base_offset), Offset(header.last_offset()));
        if let AppendPlan::AfterStartAnewAt(offset) = plan {
            self.start_anew(disk, offset, step)?;
        }
        for bytes in batches {
            let offset = self.log.log_end_offset();
            let entries = storage::entries_of(&bytes).unwrap_or_default();
            self.log.append_as_follower(vec![bytes], step.now_ms)?;
            step.seen.checker.appended(step.node, offset, &entries);
        }
        self.log_grew(step)?;
        let (end, epoch) = (self.log.log_end_offset(), self.replica.leader_epoch());
        step.event(EventKind::ReplicaAppend, (end - 1, epoch), String::new);
        Ok(())
    }

    pub(super) fn epoch_end_told(
        &mut self,
        disk: &MemDisk,
        question: EpochQuestion,
        end: Result<Option<EpochEnd>, ReplicationError>,
        step: &mut Step<'_>,
    ) -> Result<(), LogError> {
        if self.asked.is_some_and(|(asked, _)| asked == FollowerStep::AskEpochEnd(question)) {
            self.asked = None;
        }
        let Ok(end) = end else { return Ok(()) };
        self.replica.epoch_end_answered(question, end, &self.epochs());
        self.follow(disk, step)
    }
}
