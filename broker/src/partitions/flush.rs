//! When what was appended gets to the disk: `flush.messages`, `flush.ms`, RocketMQ's `flushDiskType`.
//!
//! An owner asks for one flush point at a time. What is wanted while one is under way is in the next.

use std::sync::Arc;

use duolog_log_core::event::EventKind;
use duolog_log_core::log::FlushPoint;
use duolog_log_core::storage::disk::DiskError;

use super::Partition;
use super::append::Flush;
use super::task::Owner;
use crate::clock;

/// What an owner has to do with the disk.
#[derive(Debug, Default)]
pub(super) struct Flushing {
    /// The end of what the flusher has been asked for, until it answers.
    asked: Option<i64>,
    /// The end of what somebody waits for to be on disk.
    wanted: i64,
    /// When the timer sends [`super::task::Command::FlushDue`], on the steady clock: records that wait
    /// for it are on disk in time though the wall clock was set back.
    due_ms: Option<i64>,
    /// Whether a flush that could not be made is to be tried again by then, and not before.
    paused: bool,
}

impl Owner {
    /// Has what is not on disk synced now, or by the time that the topic or `flush` sets.
    pub(super) fn flush_as_needed(&mut self, partition: &Arc<Partition>, flush: Flush) {
        let log_end_offset = self.log.log_end_offset();
        let unsynced = log_end_offset.saturating_sub(self.log.recovery_point());
        if unsynced <= 0 {
            return;
        }
        let config = partition.config.load();
        let within = match flush {
            Flush::Now => 0,
            Flush::Within(ms) => ms.min(config.flush_ms),
            Flush::Topic => config.flush_ms,
        };
        if within == 0 || unsynced >= config.flush_messages {
            self.want_flush(partition, log_end_offset);
        } else if within != i64::MAX {
            self.schedule_flush(partition, within);
        }
        if self.log.has_unsynced_segments() {
            self.flush_next(partition);
        }
    }

    /// Has the timer come in `within_ms`, unless it comes earlier anyway.
    fn schedule_flush(&mut self, partition: &Arc<Partition>, within_ms: i64) {
        let due_ms = clock::tick_ms().saturating_add(within_ms);
        let before = self.flushing.due_ms;
        if before.is_none_or(|before| due_ms < before) {
            self.flushing.due_ms = Some(due_ms);
            partition.shared.timer.schedule(before, due_ms, partition);
        }
    }

    /// The timer has come.
    pub(super) fn flush_due(&mut self, partition: &Arc<Partition>) {
        (self.flushing.due_ms, self.flushing.paused) = (None, false);
        self.want_flush(partition, self.log.log_end_offset());
    }

    /// A gate let the flush point vanish: what it would have synced is in the next one, which follows
    /// if somebody has come to wait for more meanwhile.
    pub(super) fn flush_dropped(&mut self, partition: &Arc<Partition>) {
        let dropped = self.flushing.asked.take();
        if dropped.is_some_and(|end| self.flushing.wanted > end) {
            self.flush_next(partition);
        }
    }

    /// All is on disk, in other files than those that a flush under way means.
    pub(super) fn forget_flush(&mut self) {
        self.flushing.asked = None;
    }

    /// Has the log synced up to `offset`, in the next round if one is under way.
    fn want_flush(&mut self, partition: &Arc<Partition>, offset: i64) {
        self.flushing.wanted = self.flushing.wanted.max(offset);
        self.flush_next(partition);
    }

    /// Has synced what somebody waits for, or else what a roll has sealed; one round at a time.
    pub(super) fn flush_next(&mut self, partition: &Arc<Partition>) {
        if self.flushing.asked.is_some() || self.flushing.paused || self.failed.is_some() {
            return;
        }
        let point = if self.flushing.wanted > self.log.recovery_point() {
            self.log.flush_point()
        } else {
            self.log.sealed_flush_point()
        };
        match point {
            Ok(Some(point)) => {
                self.flushing.asked = Some(point.offset());
                partition.flush(Box::new(point));
            }
            Ok(None) => {}
            Err(error) => self.fail(partition, &error.to_string()),
        }
    }

    /// Nothing was synced and nothing lost: there was no room, or no descriptor, for a file that a
    /// flush writes. What waits for the flush goes on waiting.
    fn flush_again_soon(&mut self, partition: &Arc<Partition>) {
        const PAUSE_MS: i64 = 100;
        self.flushing.paused = true;
        self.schedule_flush(partition, PAUSE_MS);
    }

    /// The flusher is done with `point`.
    pub(super) fn sync_ended(
        &mut self,
        partition: &Arc<Partition>,
        point: &FlushPoint,
        outcome: Result<(), DiskError>,
    ) {
        if !self.log.has_issued(point) {
            // The log was closed and opened again meanwhile.
            return;
        }
        self.flushing.asked = None;
        if let Err(error) = outcome {
            if error.is_retriable() {
                return self.flush_again_soon(partition);
            }
            self.log.sync_failed(&error);
            return self.fail(partition, &error.to_string());
        }
        let has_sealed = self.log.has_unsynced_segments();
        self.log.mark_synced(point, clock::now_ms());
        let synced = self.log.recovery_point();
        partition.published.set_synced(synced);
        if has_sealed && !self.log.has_unsynced_segments() {
            partition.shared.seal_synced.notify_one();
        }
        partition.emit(EventKind::LogFlush, Some(synced), None);
        partition.waiters.wake();
        self.advance(partition);
        self.flush_next(partition);
    }
}

#[cfg(test)]
mod tests;
