//! What a log's folder holds.

use std::collections::BTreeSet;
use std::path::Path;

use crate::log::RecoveryReport;
use crate::storage::disk::{DirEntry, Disk, DiskResult, EntryKind};
use crate::storage::names::{DELETED_SUFFIX, FileKind, FileName, parse, parse_suffixed};

/// Base offsets of segments and offsets of snapshots.
#[derive(Clone, Debug, Default)]
pub(in crate::log) struct Inventory {
    pub(super) logs: BTreeSet<i64>,
    pub(super) snapshots: BTreeSet<i64>,
    /// Of segments that were deleted, and whose log files are still there under another name.
    pub(super) deleted: BTreeSet<i64>,
}

impl Inventory {
    /// The offsets of the snapshots in `dir`.
    pub(in crate::log) fn snapshots(disk: &dyn Disk, dir: &Path) -> DiskResult<BTreeSet<i64>> {
        let offset = |entry: DirEntry| match parse(&entry.name) {
            FileName::Segment(FileKind::Snapshot, offset) => Some(offset),
            _ => None,
        };
        Ok(disk.list(dir)?.into_iter().filter_map(offset).collect())
    }

    /// Lists `dir` and removes what belongs to no segment, but for log files of [`Self::deleted`].
    pub(super) fn take(
        disk: &dyn Disk,
        dir: &Path,
        report: &mut RecoveryReport,
    ) -> DiskResult<Self> {
        let mut inventory = Self::default();
        let mut indexes = Vec::new();
        for entry in disk.list(dir)?.into_iter().filter(|entry| entry.kind == EntryKind::File) {
            match parse(&entry.name) {
                FileName::Segment(FileKind::Log, base_offset) => {
                    inventory.logs.insert(base_offset);
                }
                FileName::Segment(FileKind::Snapshot, offset) => {
                    inventory.snapshots.insert(offset);
                }
                FileName::Segment(_, base_offset) => indexes.push((base_offset, entry.name)),
                FileName::Stray => {
                    if let Some((FileKind::Log, base_offset)) =
                        parse_suffixed(&entry.name, DELETED_SUFFIX)
                    {
                        inventory.deleted.insert(base_offset);
                        continue;
                    }
                    disk.remove(&dir.join(&entry.name))?;
                    report.stray_files_removed += 1;
                }
                FileName::Other => {}
            }
        }
        for (base_offset, name) in indexes {
            if !inventory.logs.contains(&base_offset) {
                disk.remove(&dir.join(name))?;
                report.stray_files_removed += 1;
            }
        }
        Ok(inventory)
    }
}
