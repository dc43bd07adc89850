//! What an operator is told of a partition, once: the requests that meet the same are many.

use duolog_log_core::event::EventKind;
use duolog_log_core::log::{LogError, OnLoss, RecoveryReport};
use duolog_log_core::storage::checkpoint::{LOG_START_FILE, RECOVERY_POINT_FILE};
use parking_lot::Mutex;

use super::Partition;
use super::append::AppendError;
use super::checkpoints::on_loss;

/// Texts that are remembered of one partition; what is new after so many is not told.
const TOLD_MAX: usize = 16;

/// The texts that were told.
#[derive(Debug, Default)]
pub(super) struct Trouble(Mutex<Vec<Box<str>>>);

impl Trouble {
    /// Whether `text` is to be told: not yet, and there were not too many.
    fn is_news(&self, text: &str) -> bool {
        let mut told = self.0.lock();
        let is_news = told.len() < TOLD_MAX && !told.iter().any(|held| **held == *text);
        if is_news {
            told.push(text.into());
        }
        is_news
    }
}

impl Partition {
    /// The log cannot be opened; every request to it is refused.
    pub(super) fn tell_unopened(&self, error: &AppendError) {
        // Of a directory that is offline its own start has told.
        if !self.log_dir().is_online() || !self.trouble.is_news(&error.to_string()) {
            return;
        }
        let is_damaged = matches!(error, AppendError::Log(LogError::Corrupt { .. }));
        if is_damaged && on_loss(&self.topic) == OnLoss::Refuse {
            tracing::error!(topic = %self.topic, partition = self.index, %error,
                "the log lacks records that were on disk and is not opened: put its folder back from \
                 a copy, or, to go on with what is left of it, remove {RECOVERY_POINT_FILE} from the \
                 data directory, and start again");
        } else {
            tracing::error!(topic = %self.topic, partition = self.index, %error,
                "the log cannot be opened: all requests to this partition are refused");
        }
    }

    /// A reader was refused; tells it if it has met damage.
    pub(crate) fn tell_if_damaged(&self, error: &LogError) {
        if matches!(error, LogError::Corrupt { .. }) && self.trouble.is_news(&error.to_string()) {
            tracing::error!(topic = %self.topic, partition = self.index, %error,
                "the log is damaged: readers are refused there");
        }
    }

    /// What opening the log has found and done. `high_watermark` is what was known of it before.
    pub(super) fn tell_recovery(&self, report: &RecoveryReport, high_watermark: i64) {
        let (topic, partition) = (&self.topic, self.index);
        let log_end_offset = report.log_end_offset;
        for damage in &report.damage {
            tracing::error!(
                %topic,
                partition,
                from = damage.from,
                to = damage.to,
                segment = damage.segment,
                position = damage.position,
                bytes = damage.bytes,
                set_aside = ?damage.set_aside,
                log_end_offset,
                "records that were on disk are damaged or missing"
            );
            let cause = format!("up to {}, {} spoilt bytes", damage.to, damage.bytes);
            self.emit(EventKind::LogDamage, Some(damage.from), Some(&cause));
        }
        if report.bytes_truncated > 0 || report.segments_dropped > 0 {
            self.emit(EventKind::LogTruncate, Some(log_end_offset), Some("log recovered"));
        }
        if let Some(log_start_offset) = report.log_start_refused {
            tracing::error!(%topic, partition, log_start_offset, log_end_offset,
                "{LOG_START_FILE} says that the log starts behind its end: not believed, it starts \
                 with its first segment");
        }
        let lost = high_watermark.saturating_sub(log_end_offset).max(0);
        if lost > 0 || !report.set_aside.is_empty() {
            tracing::error!(
                %topic,
                partition,
                scanned = report.bytes_scanned,
                truncated = report.bytes_truncated,
                segments_dropped = report.segments_dropped,
                committed_records_lost = lost,
                set_aside = ?report.set_aside,
                log_end_offset,
                "log recovered without records that were committed"
            );
        } else if report.bytes_truncated > 0 || report.segments_dropped > 0 {
            tracing::warn!(
                %topic,
                partition,
                scanned = report.bytes_scanned,
                truncated = report.bytes_truncated,
                segments_dropped = report.segments_dropped,
                log_end_offset,
                "log recovered: what lay behind the last whole batch is cut off"
            );
        } else if report.segments_scanned > 0 {
            let scanned = report.bytes_scanned;
            tracing::info!(%topic, partition, scanned, log_end_offset, "log recovered");
        }
    }
}
