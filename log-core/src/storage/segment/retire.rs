//! Takes a segment out of the log without taking it from those who still read it.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use super::times::SideEntries;
use super::{Indexes, Naming, Segment};
use crate::storage::disk::{DiskResult, MappedFile};
use crate::storage::names::FileKind;

impl Segment {
    /// Gives all files of this segment (the snapshot at its base offset is none of them) the names of
    /// files that wait for their removal, the log file first; returns the new names of those that
    /// there are. Reads through this segment go on, with its own indexes, also when other files have
    /// taken the old names.
    ///
    /// Errors: the log file has its old name still, and all others have theirs. Of the others one
    /// that cannot be renamed is passed over: without its log file it is removed at the next opening.
    pub(crate) fn retire(&self) -> DiskResult<Vec<PathBuf>> {
        let sealed = match &self.indexes {
            Indexes::Sealed(indexes) => Some(indexes),
            Indexes::Growing(_) => None,
        };
        let lock = PoisonError::into_inner;
        let _completed = sealed.map(|indexes| indexes.completing.lock().unwrap_or_else(lock));
        let _rebuilt = sealed.map(|indexes| indexes.rebuilding.lock().unwrap_or_else(lock));
        let mut naming = self.naming.write().unwrap_or_else(PoisonError::into_inner);
        if *naming == Naming::Deleted {
            return Ok(Vec::new());
        }
        let mut renamed = Vec::new();
        let to = self.path_under(Naming::Deleted, FileKind::Log);
        match self.log.rename(&to) {
            Ok(()) => renamed.push(to),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
        for kind in FileKind::ALL {
            if matches!(kind, FileKind::Log | FileKind::Snapshot) {
                continue;
            }
            let to = self.path_under(Naming::Deleted, kind);
            let outcome = match self.mapped(kind) {
                // Through what is mapped, so that mapping it again finds it.
                Some(mapped) => mapped.rename(&to),
                None => self.disk.rename(&self.paths.of(kind), &to),
            };
            if outcome.is_ok() {
                renamed.push(to);
            }
        }
        *naming = Naming::Deleted;
        Ok(renamed)
    }

    /// What is mapped of a file.
    fn mapped(&self, kind: FileKind) -> Option<Arc<dyn MappedFile>> {
        let side = |entries: &SideEntries| match entries {
            SideEntries::Mapped { file, .. } => Some(Arc::clone(file)),
            SideEntries::Memory(_) => None,
        };
        if kind == FileKind::TagIndex {
            return self.tags.whole().and_then(side);
        }
        if kind == FileKind::KeyIndex {
            return self.keys.mapped();
        }
        let Indexes::Sealed(indexes) = &self.indexes else { return None };
        match kind {
            FileKind::OffsetIndex => indexes.offsets.get().map(Arc::clone),
            FileKind::TimeIndex => indexes.times.get().map(Arc::clone),
            FileKind::TxnIndex => indexes.aborted.get().and_then(Option::clone),
            FileKind::AppendTimeIndex => indexes.append_times.get().and_then(side),
            FileKind::Log | FileKind::Snapshot | FileKind::TagIndex | FileKind::KeyIndex => None,
        }
    }
}
