//! The four offset files at the top of each log directory: what they said, and writing them.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use duolog_log_core::ids::{TopicId, TopicPartition};
use duolog_log_core::log::{OnLoss, OpenHint, Shutdown};
use duolog_log_core::storage::checkpoint::{
    CLEANER_FILE, LOG_START_FILE, Offsets, RECOVERY_POINT_FILE, REPLICATION_FILE, read_offsets,
    write_offsets,
};
use duolog_log_core::storage::disk::{DiskResult, EntryKind};

use super::{Partition, Partitions, Shared, folder};
use crate::controller::METADATA_TOPIC_ID;
use crate::controller::names::{METADATA_TOPIC, OFFSETS_TOPIC, SHARE_TOPIC, TIMER_TOPIC};
use crate::data_dir::DataDir;
use crate::log_dirs::LogDir;

/// What the files of a directory said at start, for partitions whose log was not opened since.
///
/// The files go by topic names. They speak of the topics that there were at start, not of one that
/// has taken over a name since.
#[derive(Debug)]
pub struct Hints {
    shutdown: Shutdown,
    recovery_points: Offsets,
    log_starts: Offsets,
    high_watermarks: Offsets,
    cleaned: Offsets,
    /// Names of the folders that were there.
    folders: HashSet<String>,
}

impl Shared {
    /// Notes which topics there were at start; see [`Hints`].
    pub(crate) fn hints_are_for(&self, topics: impl Iterator<Item = TopicId>) {
        // There is one start.
        let _ = self.topics_at_start.set(topics.collect());
    }

    /// Whether the files may mean this topic by its name; they always mean the metadata log.
    pub(super) fn hints_mean(&self, topic: TopicId) -> bool {
        let was_there = || self.topics_at_start.get().is_some_and(|all| all.contains(&topic));
        topic == METADATA_TOPIC_ID || was_there()
    }
}

impl Partition {
    /// Whether the files may say something of this partition, of this run of the node or of the last.
    pub(super) fn may_be_in_checkpoints(&self) -> bool {
        !self.is_untouched()
    }
}

const ALL: [Checkpoint; 4] = [
    Checkpoint::RecoveryPoint,
    Checkpoint::LogStart,
    Checkpoint::HighWatermark,
    Checkpoint::Cleaned,
];

/// Writes all of them. Blocks.
pub(super) fn write_all(partitions: &Partitions) -> DiskResult<()> {
    ALL.into_iter().try_for_each(|checkpoint| checkpoint.write(partitions))
}

/// Writes all of one directory. Blocks.
pub(super) fn write_all_in(dir: &Arc<LogDir>, partitions: &Partitions) -> DiskResult<()> {
    ALL.into_iter().try_for_each(|checkpoint| checkpoint.write_in(dir, partitions))
}

/// One of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checkpoint {
    /// Below these offsets all was synced.
    RecoveryPoint,
    /// Earliest readable offsets.
    LogStart,
    /// High watermarks.
    HighWatermark,
    /// Up to where compaction has worked, of logs that it ever worked on.
    Cleaned,
}

impl Hints {
    /// Reads the files. One that holds something else counts as empty, since the logs say most of
    /// what it said (LogManager.loadLogs).
    pub fn read(data_dir: &DataDir) -> DiskResult<Self> {
        let read = |file| match read_offsets(&**data_dir.disk(), data_dir.path(), file) {
            Err(error) if error.source.kind() == std::io::ErrorKind::InvalidData => {
                tracing::warn!(%error, "taken for empty: {}", without(file));
                Ok(Offsets::new())
            }
            read => read,
        };
        Ok(Self {
            shutdown: data_dir.shutdown(),
            recovery_points: read(RECOVERY_POINT_FILE)?,
            log_starts: read(LOG_START_FILE)?,
            high_watermarks: read(REPLICATION_FILE)?,
            cleaned: read(CLEANER_FILE)?,
            folders: folders(data_dir)?,
        })
    }

    /// Of a directory that cannot be read.
    pub fn none() -> Self {
        Self {
            shutdown: Shutdown::Unclean,
            recovery_points: Offsets::new(),
            log_starts: Offsets::new(),
            high_watermarks: Offsets::new(),
            cleaned: Offsets::new(),
            folders: HashSet::new(),
        }
    }

    /// Names of the folders that were there.
    pub(super) fn folders(&self) -> &HashSet<String> {
        &self.folders
    }

    /// What is known of a log before it is opened.
    pub(super) fn of(&self, partition: &Partition) -> OpenHint {
        let recovery_point = self.offset(&self.recovery_points, partition);
        OpenHint {
            shutdown: self.shutdown,
            recovery_point,
            log_start_offset: self.offset(&self.log_starts, partition),
            // One spoilt file proves nothing.
            proven_end: recovery_point.unwrap_or_default().min(self.high_watermark(partition)),
            high_watermark: self.high_watermark(partition),
            on_loss: on_loss(&partition.topic),
            compacted: partition.compacted(),
        }
    }

    /// Up to where compaction had worked on a partition of a topic that they mean, if it ever had.
    pub(super) fn cleaned_to(&self, name: &Arc<str>, index: i32) -> Option<i64> {
        let partition = TopicPartition { topic: name.clone(), partition: index };
        self.cleaned.get(&partition).copied()
    }

    /// Whether anything was left of a partition of a topic that they mean, be it only an offset.
    pub(super) fn knows(&self, name: &Arc<str>, index: i32) -> bool {
        let partition = TopicPartition { topic: name.clone(), partition: index };
        self.folders.contains(&folder(name, index))
            || self.log_starts.contains_key(&partition)
            || self.high_watermarks.get(&partition).is_some_and(|offset| *offset > 0)
    }

    /// The HW of a log before it is opened.
    pub(super) fn high_watermark(&self, partition: &Partition) -> i64 {
        self.offset(&self.high_watermarks, partition).unwrap_or_default()
    }

    fn offset(&self, file: &Offsets, partition: &Partition) -> Option<i64> {
        let is_meant = || partition.shared.hints_mean(partition.topic_id);
        file.get(&partition.name()).copied().filter(|_| is_meant())
    }
}

/// What a log is opened without when a file is spoilt.
fn without(file: &str) -> &'static str {
    match file {
        RECOVERY_POINT_FILE => "after an unclean stop all logs are read from their beginning",
        LOG_START_FILE => "records that were deleted from the middle of a segment are back",
        CLEANER_FILE => "compacted logs count as not compacted",
        _ => "high watermarks are taken from the logs",
    }
}

/// What becomes of a log that lacks what was on disk. Without a part of the metadata or of the
/// groups' positions the rest says something else than it did; and where the log of timers, or
/// that of messages in hand, lacks its end, new messages would pass for some that were delivered.
pub(crate) fn on_loss(topic: &str) -> OnLoss {
    if [METADATA_TOPIC, OFFSETS_TOPIC, TIMER_TOPIC, SHARE_TOPIC].contains(&topic) {
        OnLoss::Refuse
    } else {
        OnLoss::KeepRest
    }
}

fn folders(data_dir: &DataDir) -> DiskResult<HashSet<String>> {
    let entries = data_dir.disk().list(data_dir.path())?.into_iter();
    let folders = entries.filter(|entry| entry.kind == EntryKind::Dir);
    Ok(folders.map(|entry| entry.name).collect())
}

impl Checkpoint {
    const fn file(self) -> &'static str {
        match self {
            Self::RecoveryPoint => RECOVERY_POINT_FILE,
            Self::LogStart => LOG_START_FILE,
            Self::HighWatermark => REPLICATION_FILE,
            Self::Cleaned => CLEANER_FILE,
        }
    }

    /// The offset of `partition`: as published, or as it was when its log was not opened since.
    fn offset(self, partition: &Partition) -> Option<i64> {
        if self == Self::Cleaned {
            return partition.cleaned_to();
        }
        if !partition.was_opened() {
            let dir = partition.log_dir();
            let hints = dir.hints();
            let held = match self {
                Self::RecoveryPoint => &hints.recovery_points,
                Self::LogStart => &hints.log_starts,
                Self::HighWatermark => &hints.high_watermarks,
                Self::Cleaned => &hints.cleaned,
            };
            return hints.offset(held, partition);
        }
        let offsets = partition.offsets();
        match self {
            Self::RecoveryPoint => Some(partition.synced()),
            Self::LogStart => partition.checkpointed_log_start(),
            Self::HighWatermark => Some(offsets.high_watermark),
            Self::Cleaned => partition.cleaned_to(),
        }
    }

    /// Tells states of the node apart in which the file would not be the same, without naming
    /// ten thousand partitions that rest.
    pub(super) fn fingerprint(self, partitions: &Partitions) -> u64 {
        let all = partitions.all();
        let metadata = partitions.metadata();
        let each = all.iter().chain(metadata.as_ref()).map(|partition| {
            let mut hasher = DefaultHasher::new();
            // What the last run left of a log does not change until it is opened.
            let opened = partition.was_opened();
            let known = opened.then(|| (self.offset(partition), partition.log_dir().id().0));
            (&partition.topic_id.0, partition.number, known).hash(&mut hasher);
            hasher.finish()
        });
        // In whatever order they come.
        each.fold(0, u64::wrapping_add)
    }

    /// Writes the file of each directory, with every partition in it. Blocks, also while another file
    /// or the same one is being written.
    ///
    /// Goes on after an error and returns the first.
    pub fn write(self, partitions: &Partitions) -> DiskResult<()> {
        let dirs = &partitions.shared().log_dirs;
        dirs.online().map(|dir| self.write_in(dir, partitions)).fold(Ok(()), Result::and)
    }

    /// Writes the file of one directory.
    pub(super) fn write_in(self, dir: &Arc<LogDir>, partitions: &Partitions) -> DiskResult<()> {
        let shared = partitions.shared();
        // Each writes its file under the same other name first, and none may replace a newer one.
        let _alone = shared.checkpoint_writer.lock();
        let all = partitions.all();
        let metadata = partitions.metadata();
        let offsets: Offsets = all
            .iter()
            .chain(metadata.as_ref())
            .filter(|partition| partition.is_noted_in(dir))
            .filter_map(|partition| Some((partition.name(), self.offset(partition)?)))
            .collect();
        write_offsets(&**shared.log_dirs.disk(), dir.path(), self.file(), &offsets)
    }
}
