//! What an owner does besides appending: other settings, retention, deletion of records, closing.

use std::sync::Arc;

use duolog_log_core::event::EventKind;
use duolog_log_core::ids::Offset;
use duolog_log_core::log::compaction::{CompactedGroup, CompactionPlan, Installed};
use duolog_log_core::log::{FlushPoint, LogError};

use super::Partition;
use super::append::AppendError;
use super::open::rules;
use super::task::Owner;
use crate::clock;

impl Owner {
    /// Rolls and drops what the topic's settings say.
    pub(super) fn keep_house(&mut self, partition: &Arc<Partition>) {
        let now_ms = clock::now_ms();
        let end_before = self.log.log_end_offset();
        let rolled = self.log.roll_if_due(now_ms);
        if matches!(rolled, Ok(true)) {
            partition.emit(EventKind::LogRoll, Some(end_before), None);
        }
        // A roll that lacks room keeps nothing from going.
        let retained = self.log.apply_retention(self.replica.high_watermark().0, now_ms);
        match &retained {
            Ok(retained) if retained.segments_deleted > 0 => {
                tracing::info!(
                    topic = %partition.topic,
                    partition = partition.index,
                    segments = retained.segments_deleted,
                    bytes = retained.bytes_deleted,
                    log_start_offset = self.log.log_start_offset(),
                    "segments deleted"
                );
                partition.emit(EventKind::LogDelete, Some(self.log.log_start_offset()), None);
            }
            Ok(_) | Err(_) => {}
        }
        if let Err(error) = rolled.and(retained) {
            tracing::warn!(topic = %partition.topic, partition = partition.index, %error,
                "retention failed");
        }
        self.flush_next(partition);
        self.log.remove_deleted(now_ms);
        self.log_start_moved(partition);
        partition.published.set_bytes(self.log.reader().size_in_bytes());
    }

    /// Takes over settings that were changed since.
    pub(super) fn configure(&mut self, partition: &Partition) {
        let config = partition.config();
        self.replica.set_rules(rules(&config));
        self.log.set_config(partition.shared.log_config(&config));
    }

    /// Raises the log start to `offset`, or to the HW for -1.
    pub(super) fn delete_records(
        &mut self,
        partition: &Arc<Partition>,
        offset: i64,
    ) -> Result<i64, AppendError> {
        let high_watermark = self.replica.high_watermark().0;
        let offset = if offset == -1 { high_watermark } else { offset };
        if offset < 0 || offset > high_watermark {
            return Err(AppendError::Log(LogError::OffsetOutOfRange {
                offset,
                log_start_offset: self.log.log_start_offset(),
                log_end_offset: high_watermark,
            }));
        }
        self.log.set_log_start_offset(offset)?;
        self.log_start_moved(partition);
        Ok(self.log.log_start_offset())
    }

    /// What is to be compacted, if that is due.
    pub(super) fn plan_compaction(
        &self,
        partition: &Partition,
    ) -> Result<Option<CompactionPlan>, AppendError> {
        let stable = self.replica.last_stable_offset().0;
        Ok(self.log.plan_compaction(partition.cleaned_to(), stable, clock::now_ms())?)
    }

    /// Lets compacted segments take their place.
    pub(super) fn install(
        &mut self,
        partition: &Arc<Partition>,
        group: CompactedGroup,
    ) -> Result<Installed, AppendError> {
        if partition.is_moving() {
            // What is being copied has to stay what it is.
            group.discard();
            return Ok(Installed::Superseded);
        }
        let installed = self.log.install(group, clock::now_ms())?;
        partition.published.set_bytes(self.log.reader().size_in_bytes());
        Ok(installed)
    }

    /// Lets the replica and the readers know where the log starts now.
    fn log_start_moved(&mut self, partition: &Partition) {
        partition.published.set_checkpointed_log_start(self.log.checkpointed_log_start());
        let log_start_offset = Offset(self.log.log_start_offset());
        if log_start_offset > self.replica.log_start_offset() {
            self.replica.log_start_moved(log_start_offset);
            self.publish(partition);
        }
    }

    /// Syncs and closes the log, so that the next start need not scan it.
    pub(super) async fn close(&mut self, partition: &Arc<Partition>) -> Result<(), AppendError> {
        let closed = match self.log.prepare_close() {
            Ok(Some(point)) => self.sync(point).await,
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if closed.is_ok() {
            partition.published.set_synced(self.log.recovery_point());
            self.advance(partition);
            self.log.close();
        }
        self.refuse_pending(&AppendError::Stopping);
        Ok(closed?)
    }

    /// Syncs on a thread that may block, while those that serve requests, and close other logs, go on.
    async fn sync(&mut self, point: FlushPoint) -> Result<(), LogError> {
        let synced = tokio::task::spawn_blocking(move || (point.sync(), point)).await;
        let (outcome, point) = synced.map_err(|error| LogError::Storage(error.to_string()))?;
        match outcome {
            Ok(()) => {
                self.log.mark_synced(&point, clock::now_ms());
                Ok(())
            }
            Err(error) => {
                if !error.is_retriable() {
                    self.log.sync_failed(&error);
                }
                Err(error.into())
            }
        }
    }
}
