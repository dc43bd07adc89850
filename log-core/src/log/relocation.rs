//! Moving a log to another folder while it is written and read.
//!
//! 1. [`Relocation::copy`], on any thread and again and again, copies files as they are: sealed segments
//!    whole, of the active one what there is. Each segment is synced before the next is begun.
//! 2. [`Log::last_state`], by the owner, who appends nothing from then on, writes what waits in memory.
//! 3. [`Relocation::finish`] copies the rest, syncs all, gives the folder its name, and opens the log
//!    there. Only the new name makes the copy the log.
//! 4. [`Log::take_place_of`] lets the readers follow.
//!
//! A copy that the last run of the process began goes on behind the segments that are whole. Which run it was stands in
//! the copy's `leader-epoch-checkpoint`; of what runs before that have left nothing is taken over, since a run that did
//! not see the copy may have found the log cut short and filled it again. Nothing may be compacted or cut meanwhile; segments may go. Source: KIP-113, done with files instead of
//! batches, so that append times and segments stay what they are.

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::compaction::{Pace, Stopped};
use super::recovery::Inventory;
use super::view::Shared;
use super::{Log, LogConfig, LogError, LogIdentity, LogReader, OpenHint, Shutdown};
use crate::ids::{LeaderEpoch, Offset};
use crate::replication::epochs::{EpochEntry, LeaderEpochs};
use crate::storage::checkpoint::{self, Durability};
use crate::storage::disk::{Disk, DiskError, DiskFile, DiskResult, OpenMode};
use crate::storage::names::{FileKind, FileName, SegmentPaths, parse};
use crate::storage::segment::Segment;

/// Bytes copied at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// Why a log is still where it was.
#[derive(Debug, thiserror::Error)]
pub enum RelocationError {
    /// The copying was told to stop.
    #[error("stopped")]
    Stopped,
    /// A file cannot be copied; the log is as before.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The copy has its name and cannot be used, nor can the name be taken back: a start may take either
    /// for the log, so nothing may be written.
    #[error("the log is in two places: {0}")]
    Torn(LogError),
}

impl From<DiskError> for RelocationError {
    fn from(error: DiskError) -> Self {
        Self::Log(error.into())
    }
}

impl From<Stopped> for RelocationError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// How far a copy is, for whoever wants to know.
#[derive(Debug, Default)]
pub struct Progress {
    bytes: AtomicU64,
    end_offset: AtomicI64,
}

impl Progress {
    /// Bytes of batches that are copied.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// Up to where the log is copied: exclusive; at least.
    #[must_use]
    pub fn end_offset(&self) -> i64 {
        self.end_offset.load(Ordering::Acquire)
    }
}

/// A copy of a log that is to take its place.
#[derive(Debug)]
pub struct Relocation {
    disk: Arc<dyn Disk>,
    from: Arc<Path>,
    to: Arc<Path>,
    shared: Arc<Shared>,
    progress: Arc<Progress>,
    /// By base offset.
    copied: BTreeMap<i64, Copied>,
}

/// What there is of one segment.
#[derive(Debug)]
struct Copied {
    log: Arc<dyn DiskFile>,
    bytes: u64,
    /// With its indexes, synced.
    is_whole: bool,
}

/// The log as its owner leaves it.
#[derive(Debug)]
pub struct LastState {
    identity: LogIdentity,
    config: Arc<LogConfig>,
    segments: Vec<Arc<Segment>>,
    epochs: LeaderEpochs,
    log_start: i64,
    log_end: i64,
}

impl Log {
    /// What a copy has to hold; nothing may be written until that is the log, or is given up.
    ///
    /// Errors: `StorageFull`, `Storage`, `Closed`; the log goes on.
    pub fn last_state(&mut self) -> Result<LastState, LogError> {
        self.write_what_waits()?;
        Ok(LastState {
            identity: self.identity.clone(),
            config: Arc::clone(&self.config),
            segments: self.segments.clone(),
            epochs: self.epochs.clone(),
            log_start: self.log_start,
            log_end: self.log_end,
        })
    }

    /// Makes this log, which [`Relocation::finish`] has opened, go on where `before` ended: with its
    /// producers and verifications. Readers of `before` read here from now on.
    pub fn take_place_of(&mut self, mut before: Self) {
        assert_eq!((self.log_start, self.log_end), (before.log_start, before.log_end));
        std::mem::swap(&mut self.producers, &mut before.producers);
        std::mem::swap(&mut self.verifications, &mut before.verifications);
        self.transactions_changed = before.transactions_changed + 1;
        before.shared.succeed_by(Arc::clone(&self.shared));
        // A flush of it that is under way writes no file any more.
        before.epoch_file.close();
    }
}

impl Relocation {
    /// A copy of the log that `reader` reads, from the folder `from` into the folder `to`, which is made
    /// if it is not there. What the run before this one copied counts as far as the log was on disk when it
    /// was opened: below `proven_end`. Each `run` of the process leads in an epoch of its own, one above
    /// that of the run before.
    pub fn start(
        disk: Arc<dyn Disk>,
        reader: &LogReader,
        (from, to): (&Path, &Path),
        identity: &LogIdentity,
        run: LeaderEpoch,
        proven_end: i64,
    ) -> Result<Self, LogError> {
        disk.create_dir_all(to)?;
        checkpoint::write_topic_id(&*disk, to, identity.topic_id, Durability::Synced)?;
        if let Some(parent) = to.parent() {
            disk.sync_dir(parent)?;
        }
        let mut relocation = Self {
            disk,
            from: from.into(),
            to: to.into(),
            shared: Arc::clone(&reader.shared),
            progress: Arc::default(),
            copied: BTreeMap::new(),
        };
        let last_run = checkpoint::read_leader_epochs(&*relocation.disk, to)?
            .and_then(|epochs| epochs.latest())
            .map(|entry| entry.epoch);
        let is_of_last_run =
            last_run.is_some_and(|last_run| last_run.0.checked_add(1) == Some(run.0));
        relocation.take_over(if is_of_last_run { proven_end } else { i64::MIN })?;
        // Before anything says that what is there is this run's.
        relocation.disk.sync_dir(to)?;
        let run = EpochEntry { epoch: run, start_offset: Offset(0) };
        let run = LeaderEpochs::from_entries([run]);
        checkpoint::write_leader_epochs(&*relocation.disk, to, &run, Durability::Synced)?;
        Ok(relocation)
    }

    /// How far it is.
    #[must_use]
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// Keeps the segments below `proven_end` that were copied whole: all but the last, for each was synced
    /// before the next was begun.
    fn take_over(&mut self, proven_end: i64) -> Result<(), LogError> {
        let segments = Arc::clone(&self.shared.load().segments);
        let mut bases = Vec::new();
        for entry in self.disk.list(&self.to)? {
            if let FileName::Segment(FileKind::Log, base_offset) = parse(&entry.name) {
                bases.push(base_offset);
            }
        }
        bases.sort_unstable();
        let last = bases.pop();
        for pair in segments.windows(2) {
            let [segment, next] = pair else { continue };
            let base_offset = segment.base_offset;
            if next.base_offset > proven_end || bases.binary_search(&base_offset).is_err() {
                continue;
            }
            let log = self.disk.open(&self.path(base_offset, FileKind::Log), OpenMode::Existing)?;
            let bytes = log.len()?;
            if bytes == segment.size() {
                self.copied.insert(base_offset, Copied { log, bytes, is_whole: true });
            }
        }
        let unsure = bases.into_iter().chain(last).filter(|base| !self.copied.contains_key(base));
        let unsure: Vec<i64> = unsure.collect();
        for base_offset in unsure {
            self.remove(base_offset)?;
        }
        self.tell();
        Ok(())
    }

    /// Copies what is there by now. Returns how many bytes it copied: few once it has caught up.
    ///
    /// Errors: `Stopped` by `pace`; a file cannot be read or written.
    pub fn copy(&mut self, pace: &mut dyn Pace) -> Result<u64, RelocationError> {
        let segments = Arc::clone(&self.shared.load().segments);
        let before = self.progress.bytes();
        self.copy_segments(&segments, pace)?;
        Ok(self.progress.bytes().saturating_sub(before))
    }

    fn copy_segments(
        &mut self,
        segments: &[Arc<Segment>],
        pace: &mut dyn Pace,
    ) -> Result<(), RelocationError> {
        self.drop_gone(segments)?;
        let Some((active, sealed)) = segments.split_last() else { return Ok(()) };
        for segment in sealed {
            if self.copied.get(&segment.base_offset).is_some_and(|copied| copied.is_whole) {
                continue;
            }
            match self.copy_whole(segment, pace) {
                // Retention removed it meanwhile.
                Err(RelocationError::Log(_)) if !self.is_there(segment) => {
                    self.remove(segment.base_offset)?;
                }
                copied => copied?,
            }
        }
        self.copy_log(active, pace)?;
        Ok(())
    }

    fn copy_whole(
        &mut self,
        segment: &Segment,
        pace: &mut dyn Pace,
    ) -> Result<(), RelocationError> {
        self.copy_log(segment, pace)?;
        self.copy_others(segment)?;
        if let Some(copied) = self.copied.get_mut(&segment.base_offset) {
            copied.log.sync()?;
            copied.is_whole = true;
        }
        self.tell();
        Ok(())
    }

    /// Copies what its log file has more than the copy.
    fn copy_log(&mut self, segment: &Segment, pace: &mut dyn Pace) -> Result<(), RelocationError> {
        let base_offset = segment.base_offset;
        if !self.copied.contains_key(&base_offset) {
            let path = self.path(base_offset, FileKind::Log);
            let log = self.disk.open(&path, OpenMode::CreateEmpty)?;
            self.copied.insert(base_offset, Copied { log, bytes: 0, is_whole: false });
        }
        loop {
            let Some(copied) = self.copied.get_mut(&base_offset) else { return Ok(()) };
            let left = segment.size().saturating_sub(copied.bytes);
            let len = usize::try_from(left).unwrap_or(usize::MAX).min(CHUNK_BYTES);
            if len == 0 {
                return Ok(());
            }
            let chunk = segment.log.read_at(copied.bytes, len)?;
            if chunk.len() < len {
                let reason = "a log file is shorter than it was".to_owned();
                return Err(LogError::Corrupt { offset: base_offset, reason }.into());
            }
            copied.log.write_at(copied.bytes, &[IoSlice::new(&chunk)])?;
            copied.bytes += chunk.len() as u64;
            self.tell();
            pace.passed(chunk.len() as u64)?;
        }
    }

    /// Copies a segment's indexes, synced, as they are in their files.
    fn copy_others(&self, segment: &Segment) -> DiskResult<()> {
        for kind in [
            FileKind::OffsetIndex,
            FileKind::TimeIndex,
            FileKind::TxnIndex,
            FileKind::AppendTimeIndex,
            FileKind::TagIndex,
        ] {
            self.copy_file(segment.base_offset, kind)?;
        }
        Ok(())
    }

    /// Copies a small file, synced; one that is not there is not there in the copy either.
    fn copy_file(&self, offset: i64, kind: FileKind) -> DiskResult<()> {
        let from = SegmentPaths::new(Arc::clone(&self.from), offset).of(kind);
        let to = self.path(offset, kind);
        let content = match self.disk.open(&from, OpenMode::Existing) {
            Ok(file) => file.read_at(0, usize::try_from(file.len()?).unwrap_or(usize::MAX))?,
            Err(error) if error.is_not_found() => return self.remove_file(&to),
            Err(error) => return Err(error),
        };
        checkpoint::write(&*self.disk, &to, &content, Durability::Synced)
    }

    /// Copies the rest, gives the folder the name `place`, and opens the log there, with all of it
    /// synced. `hint` says what is known beside that.
    ///
    /// Errors: the log is as it was before, but see [`RelocationError::Torn`].
    pub fn finish(
        &mut self,
        last: &LastState,
        place: &Path,
        hint: OpenHint,
        now_ms: i64,
    ) -> Result<Log, RelocationError> {
        self.copy_segments(&last.segments, &mut Unhurried)?;
        if let Some(active) = last.segments.last() {
            self.copy_whole(active, &mut Unhurried)?;
        }
        for offset in Inventory::snapshots(&*self.disk, &self.from)? {
            self.copy_file(offset, FileKind::Snapshot)?;
        }
        checkpoint::write_leader_epochs(&*self.disk, &self.to, &last.epochs, Durability::Synced)?;
        self.disk.sync_dir(&self.to)?;
        self.disk.rename(&self.to, place)?;
        self.open_at(last, place, hint, now_ms).map_err(|error| match self.take_name_back(place) {
            Ok(()) => RelocationError::Log(error),
            Err(_) => RelocationError::Torn(error),
        })
    }

    fn open_at(
        &self,
        last: &LastState,
        place: &Path,
        hint: OpenHint,
        now_ms: i64,
    ) -> Result<Log, LogError> {
        if let Some(parent) = place.parent() {
            self.disk.sync_dir(parent)?;
        }
        let hint = OpenHint {
            shutdown: Shutdown::Clean,
            recovery_point: Some(last.log_end),
            log_start_offset: Some(last.log_start),
            proven_end: last.log_end,
            ..hint
        };
        let (disk, identity) = (Arc::clone(&self.disk), last.identity.clone());
        let config = Arc::clone(&last.config);
        let (log, _) = Log::open(disk, place, identity, config, hint, now_ms)?;
        if (log.log_start, log.log_end) == (last.log_start, last.log_end) {
            return Ok(log);
        }
        let reason = format!(
            "a copied log holds {} to {} instead of {} to {}",
            log.log_start, log.log_end, last.log_start, last.log_end
        );
        Err(LogError::Corrupt { offset: log.log_end, reason })
    }

    fn take_name_back(&self, place: &Path) -> DiskResult<()> {
        self.disk.rename(place, &self.to)?;
        place.parent().map_or(Ok(()), |parent| self.disk.sync_dir(parent))
    }

    fn is_there(&self, segment: &Segment) -> bool {
        let view = self.shared.load();
        view.segments.iter().any(|held| held.base_offset == segment.base_offset)
    }

    /// Removes the copies of segments that are gone.
    fn drop_gone(&mut self, segments: &[Arc<Segment>]) -> DiskResult<()> {
        let first = segments.first().map_or(i64::MAX, |segment| segment.base_offset);
        while let Some((&base_offset, _)) = self.copied.first_key_value() {
            if base_offset >= first {
                break;
            }
            self.remove(base_offset)?;
        }
        Ok(())
    }

    fn remove(&mut self, base_offset: i64) -> DiskResult<()> {
        for kind in FileKind::ALL {
            self.remove_file(&self.path(base_offset, kind))?;
        }
        self.copied.remove(&base_offset);
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> DiskResult<()> {
        match self.disk.remove(path) {
            Err(error) if !error.is_not_found() => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn path(&self, offset: i64, kind: FileKind) -> PathBuf {
        SegmentPaths::new(Arc::clone(&self.to), offset).of(kind)
    }

    fn tell(&self) {
        let bytes = self.copied.values().map(|copied| copied.bytes).sum();
        self.progress.bytes.store(bytes, Ordering::Release);
        let view = self.shared.load();
        let mut end_offset = view.log_start;
        for (at, segment) in view.segments.iter().enumerate() {
            let Some(copied) = self.copied.get(&segment.base_offset) else { break };
            if copied.bytes < segment.size() {
                end_offset = segment.base_offset;
                break;
            }
            end_offset = view.segments.get(at + 1).map_or(view.log_end(), |next| next.base_offset);
        }
        self.progress.end_offset.store(end_offset, Ordering::Release);
    }
}

/// Copies at once.
struct Unhurried;

impl Pace for Unhurried {
    fn passed(&mut self, _bytes: u64) -> Result<(), Stopped> {
        Ok(())
    }
}
