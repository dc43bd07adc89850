//! Producers and leader epochs out of stored batches.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::Recovery;
use crate::ids::Offset;
use crate::log::marker::replay;
use crate::log::{AbortedTxn, LogError};
use crate::producers::Producers;
use crate::replication::epochs::LeaderEpochs;
use crate::storage::disk::{Disk, DiskResult, OpenMode};
use crate::storage::names::{FileKind, SegmentPaths};
use crate::storage::segment::Segment;
use crate::storage::snapshot;
use crate::storage::walk::{Located, Step};

/// How much is read before a snapshot for the batches that it does not name.
const RECENT_BYTES: u64 = 64 << 10;

/// The producer snapshots of one log.
#[derive(Debug)]
pub(in crate::log) struct Snapshots<'a> {
    pub(in crate::log) disk: &'a dyn Disk,
    pub(in crate::log) dir: &'a Arc<Path>,
    pub(in crate::log) offsets: &'a mut BTreeSet<i64>,
    pub(in crate::log) now_ms: i64,
    pub(in crate::log) expiration_ms: i64,
}

/// See [`Snapshots::load`].
#[derive(Debug)]
pub(in crate::log) struct LoadedProducers {
    pub(in crate::log) producers: Producers,
    /// Where replaying began, when the snapshot did not reach far enough.
    pub(in crate::log) replayed_from: Option<i64>,
    /// Snapshots that could not be read and are gone.
    pub(in crate::log) removed: usize,
}

impl Snapshots<'_> {
    /// The producers as they were when the log ended at `limit`, by the newest snapshot and the
    /// batches of `segments` after it.
    pub(in crate::log) fn load(
        &mut self,
        segments: &[Arc<Segment>],
        limit: i64,
    ) -> Result<LoadedProducers, LogError> {
        let before = self.offsets.len();
        let mut producers = match self.newest(limit)? {
            Some(mut producers) => {
                remember_recent(&mut producers, segments)?;
                producers
            }
            None => {
                let first = segments.first().map_or(limit, |segment| segment.base_offset);
                Producers::starting_at(first.min(limit))
            }
        };
        let end = producers.end_offset();
        let replayed_from = (end < limit).then_some(end);
        replay_batches(&mut producers, segments, limit)?;
        Ok(LoadedProducers { producers, replayed_from, removed: before - self.offsets.len() })
    }

    /// The newest snapshot at or below `limit` that can be read; spoilt ones are removed.
    fn newest(&mut self, limit: i64) -> DiskResult<Option<Producers>> {
        while let Some(offset) = self.offsets.range(..=limit).next_back().copied() {
            let path = SegmentPaths::new(Arc::clone(self.dir), offset).of(FileKind::Snapshot);
            let file = self.disk.open(&path, OpenMode::Existing)?;
            let content = file.read_at(0, usize::try_from(file.len()?).unwrap_or(usize::MAX))?;
            let found = snapshot::decode(&content, offset, self.now_ms, self.expiration_ms);
            if found.is_some() {
                return Ok(found);
            }
            self.disk.remove(&path)?;
            self.offsets.remove(&offset);
        }
        Ok(None)
    }
}

impl Recovery {
    /// See [`Snapshots::load`].
    pub(super) fn producers_at(
        &mut self,
        segments: &[Arc<Segment>],
        limit: i64,
    ) -> Result<Producers, LogError> {
        let mut snapshots = Snapshots {
            disk: &*self.disk,
            dir: &self.dir,
            offsets: &mut self.inventory.snapshots,
            now_ms: self.now_ms,
            expiration_ms: self.config.producer_id_expiration_ms,
        };
        let loaded = snapshots.load(segments, limit)?;
        self.report.producers_replayed_from = loaded.replayed_from;
        self.report.stray_files_removed += loaded.removed;
        Ok(loaded.producers)
    }

    /// Removes snapshots that lead nowhere: those above `log_end`, and below it all but the newest
    /// that belong to no segment. Source: ProducerStateManager.removeStraySnapshots.
    pub(super) fn remove_stray_snapshots(&mut self, log_end: i64) -> DiskResult<()> {
        let newest = self.inventory.snapshots.range(..=log_end).next_back().copied();
        for offset in &self.inventory.snapshots {
            let kept = *offset <= log_end
                && (newest == Some(*offset) || self.inventory.logs.contains(offset));
            if !kept {
                let path = SegmentPaths::new(Arc::clone(&self.dir), *offset);
                self.disk.remove(&path.of(FileKind::Snapshot))?;
                self.report.stray_files_removed += 1;
            }
        }
        Ok(())
    }
}

/// Reads the epochs out of all batches: their checkpoint is missing or was torn.
pub(in crate::log) fn epochs_of(segments: &[Arc<Segment>]) -> DiskResult<LeaderEpochs> {
    let mut epochs = LeaderEpochs::default();
    for segment in segments {
        let mut walk = segment.walk_from(0);
        while let Step::Batch(batch) = walk.next_header()? {
            let base_offset = Offset(batch.header.base_offset);
            epochs.assign(batch.header.partition_leader_epoch, base_offset);
        }
    }
    Ok(epochs)
}

/// The epochs that the file says, and before them those of what is there although the file has let go of it.
///
/// The file follows a log start that moved; a power cut may forget where the log starts, and then records are back in
/// front of the file's first entry. Without their epochs the log would say that an older one ended where that begins.
pub(in crate::log) fn with_earlier_epochs(
    on_file: &LeaderEpochs,
    segments: &[Arc<Segment>],
    log_start: i64,
) -> DiskResult<LeaderEpochs> {
    let first = on_file.entries().first().map_or(log_start, |first| first.start_offset.0);
    if first <= log_start {
        return Ok(on_file.clone());
    }
    let earlier = segments.partition_point(|segment| segment.base_offset < first);
    let mut epochs = epochs_of(segments.get(..earlier).unwrap_or_default())?;
    for entry in on_file.entries() {
        epochs.assign(entry.epoch, entry.start_offset);
    }
    Ok(epochs)
}

/// Takes in the batches from the producers' end up to `limit`; the transactions that they abort.
pub(in crate::log) fn replay_batches(
    producers: &mut Producers,
    segments: &[Arc<Segment>],
    limit: i64,
) -> Result<Vec<AbortedTxn>, LogError> {
    let mut aborted = Vec::new();
    let from = producers.end_offset();
    let first = segments.partition_point(|s| s.base_offset <= from).saturating_sub(1);
    for segment in segments.get(first..).unwrap_or_default() {
        if segment.base_offset >= limit {
            break;
        }
        let mut walk = segment.walk_from(segment.position_before(from)?);
        while let Step::Batch(batch) = walk.next_header()? {
            let Located { position, header, .. } = batch;
            if header.base_offset >= limit {
                break;
            }
            if header.last_offset() < from {
                continue;
            }
            // Only a marker is needed for what is in it.
            let len = if header.is_control() { header.size_in_bytes() } else { 0 };
            aborted.extend(replay(producers, &header, &segment.log.read_at(position, len)?));
        }
    }
    producers.set_end_offset(limit);
    Ok(aborted)
}

/// Gives producers of a snapshot, which names only their last batch, the ones before it as far as
/// they lie close to the snapshot: a client may send any of its last five again.
fn remember_recent(producers: &mut Producers, segments: &[Arc<Segment>]) -> Result<(), LogError> {
    let end = producers.end_offset();
    if producers.iter().next().is_none() {
        return Ok(());
    }
    let mut recent = Producers::starting_at(recent_offset(segments, end)?);
    replay_batches(&mut recent, segments, end)?;
    producers.adopt_windows(&recent);
    Ok(())
}

/// The offset of a batch about [`RECENT_BYTES`] before the batch that ends at `end`, or of the first
/// one.
fn recent_offset(segments: &[Arc<Segment>], end: i64) -> DiskResult<i64> {
    let mut left = RECENT_BYTES;
    let before = segments.partition_point(|segment| segment.base_offset < end);
    for segment in segments.get(..before).unwrap_or_default().iter().rev() {
        let ends_at = segment.position_before(end.saturating_sub(1))?;
        if let Some(target) = ends_at.checked_sub(left) {
            let found = segment.offsets()?.last_where(|e| u64::from(e.position) <= target);
            let relative = found.map_or(0, |entry| entry.relative_offset);
            return Ok(segment.base_offset.saturating_add(i64::from(relative)));
        }
        left -= ends_at;
    }
    Ok(segments.first().map_or(end, |segment| segment.base_offset.min(end)))
}
