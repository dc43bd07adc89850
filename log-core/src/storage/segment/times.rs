//! The append times of a segment, completed where they were not recorded.

use std::sync::{Arc, PoisonError};

use bytes::Bytes;

use super::{Indexes, Segment};
use crate::storage::append_times::{
    APPEND_TIMES, AppendTimeEntry, AppendTimes, Estimator, RecordedTimes,
};
use crate::storage::checkpoint::{self, Durability};
use crate::storage::disk::{DiskResult, MappedFile};
use crate::storage::index::Entries;
use crate::storage::names::FileKind;
use crate::storage::side_file::{self, SideContent, SideKind};
use crate::storage::walk::Step;

/// Entries of a sealed segment's side index that were found sound.
#[derive(Debug)]
pub(super) enum SideEntries {
    Mapped {
        file: Arc<dyn MappedFile>,
        /// Of the entries.
        len: usize,
    },
    /// The file could not be written.
    Memory(Bytes),
}

impl SideEntries {
    pub(super) fn content(&self) -> DiskResult<Bytes> {
        match self {
            Self::Mapped { file, len } => {
                let content = file.content()?;
                let end = side_file::HEADER_BYTES.saturating_add(*len).min(content.len());
                Ok(content.slice(side_file::HEADER_BYTES.min(end)..end))
            }
            Self::Memory(entries) => Ok(entries.clone()),
        }
    }
}

impl Segment {
    /// When the batches of this segment were appended.
    pub(crate) fn append_times(&self) -> DiskResult<AppendTimes<'_>> {
        let indexes = match &self.indexes {
            Indexes::Growing(indexes) => {
                let recorded = &indexes.append_times;
                let earlier = match indexes.earlier_times.get() {
                    Some(earlier) => earlier.clone(),
                    None => {
                        let made_up = self.estimate(None, recorded.covered_from)?;
                        indexes.earlier_times.get_or_init(|| made_up).clone()
                    }
                };
                return Ok(AppendTimes { earlier, recorded: Some(recorded) });
            }
            Indexes::Sealed(indexes) => indexes,
        };
        if indexes.append_times.get().is_none() {
            let _alone = indexes.completing.lock().unwrap_or_else(PoisonError::into_inner);
            if indexes.append_times.get().is_none() {
                _ = indexes.append_times.set(self.sealed_append_times()?);
            }
        }
        let found = indexes.append_times.get().map(SideEntries::content).transpose()?;
        Ok(AppendTimes { earlier: found.unwrap_or_default(), recorded: None })
    }

    /// Append times to go on with after `found`, which ends elsewhere than this segment does: cut,
    /// or completed by the batches' own times.
    pub(crate) fn continue_times(
        &self,
        found: &SideContent,
        end_offset: i64,
    ) -> DiskResult<RecordedTimes> {
        let recorded = RecordedTimes::resume(found).cut(self.base_offset, end_offset);
        let estimator = Estimator::new(self.base_offset, self.modified_ms()?);
        let mut walk = self.walk_from(0);
        while let Step::Batch(batch) = walk.next_header()? {
            let relative = batch.header.base_offset.saturating_sub(self.base_offset);
            if batch.header.base_offset >= found.covered_to
                && let Some(time_ms) = estimator.time_of(&batch.header)
                && let Ok(relative_offset) = u32::try_from(relative)
            {
                recorded.record(relative_offset, time_ms);
            }
        }
        Ok(recorded)
    }

    /// The offset after the last batch.
    pub(crate) fn end_offset(&self) -> DiskResult<i64> {
        let last = self.offsets()?.last().map_or(0, |entry| u64::from(entry.position));
        let mut walk = self.walk_from(last);
        let mut end_offset = self.base_offset;
        while let Step::Batch(batch) = walk.next_header()? {
            end_offset = batch.header.next_offset();
        }
        Ok(end_offset)
    }

    /// What a side index file of this segment holds, if it is sound.
    pub(crate) fn side_content(
        &self,
        file: FileKind,
        kind: SideKind,
    ) -> DiskResult<Option<SideContent>> {
        match self.map(file) {
            Ok(file) => Ok(side_file::decode(kind, &file.content()?)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Keeps a complete side index of a sealed segment, in its file if that can be written.
    pub(super) fn keep_side(
        &self,
        file: FileKind,
        kind: SideKind,
        content: SideContent,
    ) -> SideEntries {
        let bytes = side_file::encode(kind, &content);
        let len = content.entries.len();
        let mapped = self.named(file, |path| {
            checkpoint::write(&*self.disk, path, &bytes, Durability::Unsynced)?;
            self.disk.map(path)
        });
        match mapped {
            Ok(file) => SideEntries::Mapped { file, len },
            // It is only derived: the next start makes it again.
            Err(_) => SideEntries::Memory(content.entries),
        }
    }

    fn sealed_append_times(&self) -> DiskResult<SideEntries> {
        let end_offset = self.end_offset()?;
        let found = self.side_content(FileKind::AppendTimeIndex, APPEND_TIMES)?;
        if let Some(found) = &found
            && found.covered_from <= self.base_offset
            && found.covered_to >= end_offset
        {
            let (file, len) = (self.map(FileKind::AppendTimeIndex)?, found.entries.len());
            return Ok(SideEntries::Mapped { file, len });
        }
        let entries = self.estimate(found, end_offset)?;
        let covered =
            SideContent { covered_from: self.base_offset, covered_to: end_offset, entries };
        Ok(self.keep_side(FileKind::AppendTimeIndex, APPEND_TIMES, covered))
    }

    /// Append times up to `end_offset`: those that `recorded` holds, and before and after it the
    /// batches' own times.
    fn estimate(&self, recorded: Option<SideContent>, end_offset: i64) -> DiskResult<Bytes> {
        let mut estimator = Estimator::new(self.base_offset, self.modified_ms()?);
        let Some(recorded) = recorded else {
            estimator.walk(self.walk_from(0), end_offset)?;
            return Ok(estimator.finish());
        };
        estimator.walk(self.walk_from(0), recorded.covered_from)?;
        let entries = Entries::<AppendTimeEntry>::Sealed(recorded.entries);
        estimator.recorded(entries.iter());
        let mut walk = self.walk_from(self.position_before(recorded.covered_to)?);
        while let Step::Batch(batch) = walk.next_header()? {
            if (recorded.covered_to..end_offset).contains(&batch.header.base_offset) {
                estimator.estimate(&batch.header);
            }
        }
        Ok(estimator.finish())
    }
}
