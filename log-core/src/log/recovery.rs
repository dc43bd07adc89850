//! Opening a log: what the folder holds, what of it can be trusted, and what is made anew.
//!
//! After a clean stop everything is trusted and nothing is scanned, unless the last segment does not
//! lead to the log end that is known; what is missing between segments is told. After any stop what is
//! missing before the first one is told (`damage.rs`). After any other than a clean one:
//!
//! 0. what compaction had written whole takes the place of the segments that it stands for, what it
//!    had not goes (`compaction/swap.rs`);
//! 1. leftovers of deletions and unfinished writes go, so do indexes without a log, and empty
//!    segments that are not the last or begin before the end of the one before: what a roll that
//!    failed left behind. This holds after a clean stop too;
//! 2. segments below the one that holds the recovery point keep their bytes, their indexes are
//!    checked; one that begins before the end of the one before it is dropped. One that begins
//!    behind it is kept, as in Kafka: a segment between both was lost at rest, which is told;
//! 3. from that segment on every batch is read: length, CRC, offsets. The first one that is not
//!    whole ends the log: the rest of its segment is cut off, later segments are dropped. So is a
//!    segment that does not begin where the one before it ends. Below the offset up to which the log
//!    is known to have been whole and on disk nothing is cut off: the scan goes on behind the damage,
//!    with the next whole batch, and tells (`damage.rs`). Behind a gap above the recovery point
//!    nothing is kept: there a power cut may have taken a segment whose records others count on,
//!    and a replica must not claim an end that it has not all records below of;
//! 4. producers are replayed from the newest sound snapshot on, and with them the aborted
//!    transactions; leader epochs are read from the batches.
//!
//! Source: LogLoader, LogSegment.recover.

use std::path::Path;
use std::sync::Arc;

use super::active::{Active, WrittenEntries};
use super::compaction;
use super::tail::{Tail, TailWriter};
use super::verification::Verifications;
use super::view::{Shared, ViewParts};
use super::{
    AbortedTxn, Health, Log, LogConfig, LogError, LogIdentity, OpenHint, RecoveryReport, Shutdown,
};
use crate::ids::Offset;
use crate::producers::Producers;
use crate::replication::epochs::LeaderEpochs;
use crate::storage::append_times::RecordedTimes;
use crate::storage::checkpoint::{self, Durability};
use crate::storage::disk::{Disk, OpenMode};
use crate::storage::segment::{LogHeads, Segment, SegmentParts};

mod damage;
mod inventory;
mod replay;
mod scan;

pub(super) use inventory::Inventory;
pub(super) use replay::Snapshots;
#[cfg(test)]
pub(super) use replay::{epochs_of, replay_batches};

/// What opening works with.
#[derive(Debug)]
struct Recovery {
    disk: Arc<dyn Disk>,
    dir: Arc<Path>,
    config: Arc<LogConfig>,
    now_ms: i64,
    report: RecoveryReport,
    inventory: Inventory,
    epochs: LeaderEpochs,
    /// What the file says, if it can be read.
    epochs_on_file: Option<LeaderEpochs>,
    /// Sealed segments that may hold unsynced bytes, oldest first.
    unsynced: Vec<Arc<Segment>>,
    names_changed: u64,
    folder_is_new: bool,
    hint: OpenHint,
}

/// The last segment, to be written on.
#[derive(Debug)]
struct LastSegment {
    parts: SegmentParts,
    heads: LogHeads,
    aborted: Vec<AbortedTxn>,
    append_times: RecordedTimes,
    written: WrittenEntries,
}

/// What the batches of a log say.
#[derive(Debug)]
struct Content {
    sealed: Vec<Arc<Segment>>,
    last: Option<LastSegment>,
    producers: Producers,
}

/// See [`Log::open`].
pub(super) fn open(
    disk: Arc<dyn Disk>,
    dir: &Path,
    identity: LogIdentity,
    config: Arc<LogConfig>,
    hint: OpenHint,
    now_ms: i64,
) -> Result<(Log, RecoveryReport), LogError> {
    disk.create_dir_all(dir)?;
    // What an earlier run of the process named may not be on disk yet if it did not end cleanly.
    let (mut names_changed, mut folder_is_new) = match hint.shutdown {
        Shutdown::Clean => (0, false),
        Shutdown::Unclean => (1, true),
    };
    match checkpoint::read_topic_id(&*disk, dir)? {
        Some(found) if found != identity.topic_id => {
            return Err(LogError::InconsistentTopicId { expected: identity.topic_id, found });
        }
        Some(_) => {}
        None => {
            checkpoint::write_topic_id(&*disk, dir, identity.topic_id, Durability::Unsynced)?;
            (names_changed, folder_is_new) = (1, true);
        }
    }
    let mut report = RecoveryReport::default();
    compaction::finish_swaps(&*disk, dir, &mut report)?;
    if report.segments_swapped > 0 {
        names_changed = 1;
    }
    let inventory = Inventory::take(&*disk, dir, &mut report)?;
    report.segments = inventory.logs.len();
    let recovery = Recovery {
        disk,
        dir: dir.into(),
        config,
        now_ms,
        report,
        inventory,
        epochs: LeaderEpochs::default(),
        epochs_on_file: None,
        unsynced: Vec::new(),
        names_changed,
        folder_is_new,
        hint,
    };
    recovery.run(identity, hint)
}

impl Recovery {
    fn run(
        mut self,
        identity: LogIdentity,
        hint: OpenHint,
    ) -> Result<(Log, RecoveryReport), LogError> {
        let segments = self.open_segments()?;
        let first = segments.first().map_or(0, |segment| segment.base_offset);
        let mut log_start = hint.log_start_offset.unwrap_or(0).max(first);
        self.epochs_on_file = checkpoint::read_leader_epochs(&*self.disk, &self.dir)?;
        self.epochs = match &self.epochs_on_file {
            Some(epochs) => replay::with_earlier_epochs(epochs, &segments, log_start)?,
            None => replay::epochs_of(&segments)?,
        };
        let content = self.content(segments, hint)?;
        if content.last.is_none() {
            log_start = self.nothing_left(log_start)?;
        }
        let log_end = content.last.as_ref().map_or(log_start, |last| last.heads.end_offset);
        if self.is_false_start(log_start, first, log_end) {
            self.report.log_start_refused = Some(log_start);
            log_start = first;
        }
        self.remove_stray_snapshots(log_end)?;
        let trusted_all = hint.shutdown == Shutdown::Clean && self.report.segments_scanned == 0;
        let recovery_point =
            if trusted_all { log_end } else { hint.recovery_point.unwrap_or(0).min(log_end) };
        self.report.log_end_offset = log_end.max(log_start);
        let deleted = std::mem::take(&mut self.inventory.deleted);
        self.report.stray_files_removed += deleted.len();
        let report = self.report.clone();
        let now_ms = self.now_ms;
        let mut log = self.assemble(identity, content, log_start.min(log_end), recovery_point)?;
        log.finish_deletions(&deleted)?;
        if log_start > log_end {
            // All that is left was deleted and the end is lost: no offset may be given twice.
            log.truncate_fully_and_start_at(log_start, now_ms)?;
        }
        Ok((log, report))
    }

    /// Whether a log that holds records from `first` (inclusive) to `log_end` (exclusive) cannot have
    /// begun at `log_start`, which lies beyond all that is known of its end: believed, it would have
    /// everything deleted. Without such knowledge it may be that of a log that was to begin anew.
    fn is_false_start(&self, log_start: i64, first: i64, log_end: i64) -> bool {
        let known_end = self.hint.recovery_point.unwrap_or(0).max(self.hint.high_watermark);
        let is_known = self.hint.shutdown == Shutdown::Clean || known_end > 0;
        is_known && log_end > first && log_start > log_end && log_start > known_end
    }

    fn open_segments(&self) -> Result<Vec<Arc<Segment>>, LogError> {
        let interval = self.config.index_interval_bytes;
        let open = |base_offset: &i64| {
            let mode = OpenMode::Existing;
            SegmentParts::open(&self.disk, &self.dir, *base_offset, interval, mode)
                .map(|parts| Arc::new(Segment::sealed(parts)))
                .map_err(LogError::from)
        };
        self.inventory.logs.iter().map(open).collect()
    }

    /// Trusts what was synced or cleanly closed, and scans the rest.
    fn content(
        &mut self,
        segments: Vec<Arc<Segment>>,
        hint: OpenHint,
    ) -> Result<Content, LogError> {
        self.tell_missing_start(segments.first().map_or(0, |segment| segment.base_offset))?;
        let segments = self.drop_strays(segments)?;
        let scanned_from = match hint.shutdown {
            Shutdown::Clean => segments.len().saturating_sub(1),
            Shutdown::Unclean => {
                let recovery_point = hint.recovery_point.unwrap_or(0);
                segments.partition_point(|s| s.base_offset <= recovery_point).saturating_sub(1)
            }
        };
        let Some(first) = segments.get(scanned_from) else {
            let producers = Producers::default();
            return Ok(Content { sealed: segments, last: None, producers });
        };
        if hint.shutdown == Shutdown::Clean
            && let Some(last) = self.trust_last(first)?
        {
            self.tell_gaps(&segments)?;
            let producers = self.producers_at(&segments, last.heads.end_offset)?;
            let sealed = segments.get(..scanned_from).unwrap_or_default().to_vec();
            return Ok(Content { sealed, last: Some(last), producers });
        }
        let (mut sealed, unsure) = self.check_all_trusted(&segments, scanned_from)?;
        let first_offset = unsure.first().map_or(0, |segment| segment.base_offset);
        let mut producers = self.producers_at(&sealed, first_offset)?;
        let (scanned, last) = self.scan(&unsure, &mut producers)?;
        sealed.extend(scanned);
        Ok(Content { sealed, last, producers })
    }

    fn assemble(
        mut self,
        identity: LogIdentity,
        content: Content,
        log_start: i64,
        recovery_point: i64,
    ) -> Result<Log, LogError> {
        let Content { sealed: mut segments, last, mut producers } = content;
        let log_end = last.as_ref().map_or(log_start, |last| last.heads.end_offset);
        let active = match last {
            Some(LastSegment { parts, heads, aborted, append_times, written }) => {
                Active::resume(parts, heads, aborted, append_times, self.now_ms, written)
            }
            None => {
                self.names_changed += 1;
                Active::create(&self.disk, &self.dir, log_start, &self.config, self.now_ms)?
            }
        };
        producers.set_end_offset(log_end);
        self.epochs.truncate_from_end(Offset(log_end));
        self.epochs.truncate_from_start(Offset(log_start));
        let epochs_changed = u64::from(self.epochs_on_file.as_ref() != Some(&self.epochs));
        segments.push(Arc::clone(&active.segment));
        let tail = TailWriter::new(Arc::clone(&self.config.tail_budget));
        let view = ViewParts {
            segments: segments.iter().cloned().collect(),
            tail: Tail::default(),
            log_start,
            log_end,
            epochs: Arc::new(self.epochs.clone()),
        };
        let (tags, keys) = (&self.config.tag_budget, &self.config.key_budget);
        let shared = Shared::new(view, Arc::clone(tags), Arc::clone(keys));
        Ok(Log {
            disk: self.disk,
            dir: self.dir,
            identity,
            config: self.config,
            health: Health::Writable,
            shared: Arc::new(shared),
            segments,
            active,
            tail,
            producers,
            epochs: self.epochs,
            log_start,
            log_end,
            recovery_point,
            unsynced: self.unsynced,
            unsynced_snapshots: Vec::new(),
            names_changed: self.names_changed,
            folder_is_new: self.folder_is_new,
            epochs_changed,
            epochs_synced: 0,
            epoch_file: Arc::default(),
            last_flush_ms: self.now_ms,
            first_unflushed_ms: (log_end > recovery_point).then_some(self.now_ms),
            deletions: Vec::new(),
            verifications: Verifications::default(),
            transactions_changed: 0,
            undeleted: Vec::new(),
        })
    }
}
