//! What must be known of a folder that another server wrote before it is taken over.

use std::path::Path;
use std::sync::Arc;

use super::recovery::Inventory;
use crate::ids::ProducerId;
use crate::storage::disk::{Disk, DiskResult, OpenMode};
use crate::storage::names::{FileKind, FileName, SegmentPaths, parse};
use crate::storage::snapshot;
use crate::storage::walk::{Step, Walk};

/// The greatest producer id whose state opening the log in `dir` would bring back: by its newest
/// snapshot and the batches behind it. Ids above it are free as far as this log goes.
pub fn greatest_producer_id(disk: &dyn Disk, dir: &Path) -> DiskResult<Option<i64>> {
    let shared: Arc<Path> = dir.into();
    let path = |offset, kind| SegmentPaths::new(Arc::clone(&shared), offset).of(kind);
    let (mut greatest, mut from) = (None, 0);
    if let Some(offset) = Inventory::snapshots(disk, dir)?.last().copied() {
        let file = disk.open(&path(offset, FileKind::Snapshot), OpenMode::Existing)?;
        let content = file.read_at(0, usize::try_from(file.len()?).unwrap_or(usize::MAX))?;
        if let Some(known) = snapshot::decode(&content, offset, 0, i64::MAX) {
            greatest = known.iter().map(|(id, _)| id).filter(|id| is_given(*id)).max();
            from = offset;
        }
    }
    let mut logs: Vec<i64> = Vec::new();
    for entry in disk.list(dir)? {
        if let FileName::Segment(FileKind::Log, base_offset) = parse(&entry.name) {
            logs.push(base_offset);
        }
    }
    logs.sort_unstable();
    let first = logs.partition_point(|base_offset| *base_offset <= from).saturating_sub(1);
    for base_offset in logs.into_iter().skip(first) {
        let log = disk.open(&path(base_offset, FileKind::Log), OpenMode::Existing)?;
        let end = log.len()?;
        let mut walk = Walk::new(log, 0, end);
        while let Step::Batch(batch) = walk.next_header()? {
            if batch.header.has_producer_id() && is_given(batch.header.producer_id.0) {
                greatest = greatest.max(Some(batch.header.producer_id.0));
            }
        }
    }
    Ok(greatest)
}

/// Whether it is one of the ids that producers are given, which are counted.
fn is_given(producer_id: i64) -> bool {
    !ProducerId(producer_id).is_of_delivery()
}
