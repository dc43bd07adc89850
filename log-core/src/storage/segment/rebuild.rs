//! Checks the index files of a sealed segment and makes them anew from its log.

use std::sync::Arc;

use bytes::Bytes;

use super::Segment;
use crate::record::BatchHeader;
use crate::record::batch::NO_TIMESTAMP;
use crate::storage::checkpoint::{self, Durability};
use crate::storage::disk::{DiskFile, DiskResult, MappedFile};
use crate::storage::index::{self, Entry, OffsetEntry, TimeEntry};
use crate::storage::names::FileKind;
use crate::storage::sparse::SparseIndexer;
use crate::storage::walk::{Located, Step, Walk, offsets_from};

/// What the headers of a log file say.
#[derive(Debug)]
pub(crate) struct LogHeads {
    pub(crate) offsets: Vec<OffsetEntry>,
    /// Without the entry that sealing adds: that is the indexer's to give.
    pub(crate) times: Vec<TimeEntry>,
    pub(crate) indexer: SparseIndexer,
    /// Greatest timestamp of the first batch.
    pub(crate) first_timestamp: Option<i64>,
    /// The offset after the last batch.
    pub(crate) end_offset: i64,
}

impl LogHeads {
    /// Of an empty segment.
    pub(crate) fn new(base_offset: i64, interval_bytes: u32) -> Self {
        Self {
            offsets: Vec::new(),
            times: Vec::new(),
            indexer: SparseIndexer::new(base_offset, interval_bytes),
            first_timestamp: None,
            end_offset: base_offset,
        }
    }

    /// Reads the headers of the first `size` bytes of a log file, up to the last whole batch.
    pub(crate) fn read(
        log: &Arc<dyn DiskFile>,
        base_offset: i64,
        size: u64,
        interval_bytes: u32,
    ) -> DiskResult<Self> {
        let mut heads = Self::new(base_offset, interval_bytes);
        let mut walk = Walk::new(Arc::clone(log), 0, size);
        loop {
            match walk.next_header()? {
                Step::Batch(batch) => heads.observe(&batch.header, batch.position),
                Step::End => return Ok(heads),
                Step::Broken { .. } => {
                    let offsets = offsets_from(heads.end_offset, base_offset);
                    match walk.skip_damage(&offsets, u64::MAX)? {
                        Some(next) => heads.skip_to(next.header.base_offset, next.position),
                        None => return Ok(heads),
                    }
                }
            }
        }
    }

    /// Goes on behind damage, with the batch at `position`: an entry leads there, so that whoever
    /// looks for an offset from `base_offset` on need not pass the damage.
    pub(crate) fn skip_to(&mut self, base_offset: i64, position: u64) {
        if let Some(entry) = self.indexer.entry(base_offset, position)
            && entry.follows(self.offsets.last())
        {
            self.offsets.push(entry);
        }
        self.end_offset = base_offset;
    }

    /// Takes in the next batch.
    pub(crate) fn observe(&mut self, header: &BatchHeader, position: u64) {
        let (offset, time) = self.indexer.observe(header, position);
        // Behind damage an entry leads to this batch already.
        self.offsets.extend(offset.filter(|entry| entry.follows(self.offsets.last())));
        self.times.extend(time);
        self.first_timestamp.get_or_insert(header.max_timestamp);
        self.end_offset = header.next_offset();
    }
}

impl Segment {
    /// Maps an index file of this sealed segment, making both anew first when it is missing or
    /// spoilt (case B75).
    pub(super) fn sound_index(&self, kind: FileKind) -> DiskResult<Arc<dyn MappedFile>> {
        let file = match self.map(kind) {
            Ok(file) => Some(file),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        if let Some(file) = file
            && self.is_sound(kind, &file.content()?)?
        {
            return Ok(file);
        }
        // Nobody flushes for a reader.
        self.write_indexes(Durability::Synced)?;
        self.map(kind)
    }

    /// Checks the offset and time index of this sealed segment; returns whether they had to be made
    /// anew, unsynced.
    pub(crate) fn check_indexes(&self) -> DiskResult<bool> {
        for kind in [FileKind::OffsetIndex, FileKind::TimeIndex] {
            let content = match self.map(kind) {
                Ok(file) => Some(file.content()?),
                Err(error) if error.is_not_found() => None,
                Err(error) => return Err(error),
            };
            let sound = match content {
                Some(content) => self.is_sound(kind, &content)?,
                None => false,
            };
            if !sound {
                self.write_indexes(Durability::Unsynced)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Makes the indexes of this sealed segment anew if the time index lacks its newest entries, which its own bytes do not tell;
    /// returns whether they did. Unsynced.
    ///
    /// Reads the headers behind the last entry: few, unless a record far from the end has the greatest timestamp.
    pub(crate) fn complete_times(&self) -> DiskResult<bool> {
        let times = self.map(FileKind::TimeIndex)?.content()?;
        let Some(last) = last_sound::<TimeEntry>(&times).flatten() else { return Ok(false) };
        let offsets = self.map(FileKind::OffsetIndex)?.content()?;
        let position = offsets
            .rchunks_exact(OffsetEntry::BYTES)
            .filter_map(OffsetEntry::decode)
            .find(|entry| entry.relative_offset <= last.relative_offset)
            .map_or(0, |entry| u64::from(entry.position));
        let mut walk = self.walk_from(position);
        while let Step::Batch(batch) = walk.next_header()? {
            if batch.header.max_timestamp > last.timestamp {
                self.write_indexes(Durability::Unsynced)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn write_indexes(&self, durability: Durability) -> DiskResult<()> {
        let mut heads =
            LogHeads::read(&self.log, self.base_offset, self.size(), self.index_interval_bytes)?;
        heads.times.extend(heads.indexer.time_entry());
        let write = |kind, content: Vec<u8>| {
            self.named(kind, |path| checkpoint::write(&*self.disk, path, &content, durability))
        };
        write(FileKind::OffsetIndex, index::encode_all(heads.offsets))?;
        write(FileKind::TimeIndex, index::encode_all(heads.times))
    }

    fn is_sound(&self, kind: FileKind, content: &Bytes) -> DiskResult<bool> {
        match kind {
            FileKind::OffsetIndex => {
                let Some(last) = last_sound::<OffsetEntry>(content) else { return Ok(false) };
                let Some(last) = last else { return Ok(true) };
                self.ends_a_batch(last)
            }
            FileKind::TimeIndex => {
                let Some(last) = last_sound::<TimeEntry>(content) else { return Ok(false) };
                // A sealed segment has a last time entry unless no record has a time.
                Ok(last.is_some() || !self.has_timestamps()?)
            }
            _ => Ok(true),
        }
    }

    /// Whether the entry leads to the batch that it claims: by its last offset, or behind damage by
    /// its first.
    fn ends_a_batch(&self, entry: OffsetEntry) -> DiskResult<bool> {
        let mut walk = Walk::new(Arc::clone(&self.log), u64::from(entry.position), self.size());
        let expected = self.base_offset.saturating_add(i64::from(entry.relative_offset));
        Ok(match walk.next_header()? {
            Step::Batch(Located { header, .. }) => {
                [header.last_offset(), header.base_offset].contains(&expected)
            }
            Step::End | Step::Broken { .. } => false,
        })
    }

    fn has_timestamps(&self) -> DiskResult<bool> {
        let mut walk = Walk::new(Arc::clone(&self.log), 0, self.size());
        while let Step::Batch(batch) = walk.next_header()? {
            if batch.header.max_timestamp > NO_TIMESTAMP {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The last entry of a sound file, `None` for another file.
fn last_sound<E: Entry>(content: &[u8]) -> Option<Option<E>> {
    if !index::is_sound::<E>(content) {
        return None;
    }
    let start = content.len().saturating_sub(E::BYTES);
    Some(content.get(start..).and_then(E::decode))
}
