//! What must be known of a folder that another server wrote before it is taken over.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::recovery::Inventory;
use crate::ids::ProducerId;
use crate::record::BatchHeader;
use crate::storage::checkpoint::read_leader_epochs;
use crate::storage::disk::{Disk, DiskResult, OpenMode};
use crate::storage::names::{FileKind, FileName, SegmentPaths, parse};
use crate::storage::snapshot;
use crate::storage::walk::{Step, Walk};

/// What those who wrote a log have left in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traces {
    /// The greatest producer id whose state opening the log would bring back. Ids above it are free as
    /// far as this log goes.
    pub producer_id: Option<i64>,
    /// No later leader epoch is in the log.
    pub leader_epoch: Option<i32>,
    /// Producers whose transaction is open.
    pub in_transaction: BTreeSet<i64>,
}

impl Traces {
    /// Looks at the log in `dir`: at its newest producer snapshot and the headers of the batches behind
    /// that, and at its leader epochs; at all headers if the file of the epochs says none.
    pub fn read(disk: &dyn Disk, dir: &Path) -> DiskResult<Self> {
        let (mut traces, snapshot_end) = Self::of_snapshot(disk, dir)?;
        let epochs = read_leader_epochs(disk, dir)?.unwrap_or_default();
        traces.leader_epoch = epochs.latest().map(|entry| entry.epoch.0);
        let from = if traces.leader_epoch.is_some() { snapshot_end } else { 0 };
        each_header(disk, dir, from, |header| traces.batch(header, snapshot_end))?;
        Ok(traces)
    }

    /// What the newest snapshot says, and up to which offset.
    fn of_snapshot(disk: &dyn Disk, dir: &Path) -> DiskResult<(Self, i64)> {
        let mut traces = Self::default();
        let Some(offset) = Inventory::snapshots(disk, dir)?.last().copied() else {
            return Ok((traces, 0));
        };
        let path = SegmentPaths::new(dir.into(), offset).of(FileKind::Snapshot);
        let file = disk.open(&path, OpenMode::Existing)?;
        let content = file.read_at(0, usize::try_from(file.len()?).unwrap_or(usize::MAX))?;
        let Some(known) = snapshot::decode(&content, offset, 0, i64::MAX) else {
            return Ok((traces, 0));
        };
        traces.producer_id = known.iter().map(|(id, _)| id).filter(|id| is_given(*id)).max();
        traces.in_transaction = known.in_transaction().map(|(id, _)| id).collect();
        Ok((traces, offset))
    }

    /// Takes in a batch; the snapshot, which ends at `snapshot_end`, may know it.
    fn batch(&mut self, header: &BatchHeader, snapshot_end: i64) {
        self.leader_epoch = self.leader_epoch.max(Some(header.partition_leader_epoch.0));
        if !header.has_producer_id() {
            return;
        }
        let id = header.producer_id.0;
        if is_given(id) {
            self.producer_id = self.producer_id.max(Some(id));
        }
        if header.base_offset >= snapshot_end {
            if header.is_control() {
                self.in_transaction.remove(&id);
            } else if header.is_transactional() {
                self.in_transaction.insert(id);
            }
        }
    }
}

/// Shows each batch of the log in `dir`, oldest first, without opening it: nothing there is changed. A
/// segment is read up to the first batch that is not whole.
pub fn each_batch(
    disk: &dyn Disk,
    dir: &Path,
    mut each: impl FnMut(&BatchHeader, Bytes),
) -> DiskResult<()> {
    for log in logs(disk, dir, 0)? {
        let log = disk.open(&log, OpenMode::Existing)?;
        let end = log.len()?;
        let mut walk = Walk::new(log, 0, end);
        while let Step::Batch(batch) = walk.next_batch()? {
            each(&batch.header, batch.content);
        }
    }
    Ok(())
}

/// The headers of all batches from the segment on that holds the offset `from`. A segment is read up to
/// the first batch that is not whole.
fn each_header(
    disk: &dyn Disk,
    dir: &Path,
    from: i64,
    mut each: impl FnMut(&BatchHeader),
) -> DiskResult<()> {
    for log in logs(disk, dir, from)? {
        let log = disk.open(&log, OpenMode::Existing)?;
        let end = log.len()?;
        let mut walk = Walk::new(log, 0, end);
        while let Step::Batch(batch) = walk.next_header()? {
            each(&batch.header);
        }
    }
    Ok(())
}

/// The log files from the one on that holds the offset `from`, oldest first.
fn logs(disk: &dyn Disk, dir: &Path, from: i64) -> DiskResult<impl Iterator<Item = PathBuf>> {
    let mut offsets = BTreeSet::new();
    for entry in disk.list(dir)? {
        if let FileName::Segment(FileKind::Log, base_offset) = parse(&entry.name) {
            offsets.insert(base_offset);
        }
    }
    let first = offsets.range(..=from).next_back().copied().unwrap_or(i64::MIN);
    let dir: Arc<Path> = dir.into();
    let path = move |offset| SegmentPaths::new(Arc::clone(&dir), offset).of(FileKind::Log);
    Ok(offsets.split_off(&first).into_iter().map(path))
}

/// Whether it is one of the ids that producers are given, which are counted.
fn is_given(producer_id: i64) -> bool {
    !ProducerId(producer_id).is_of_delivery()
}
