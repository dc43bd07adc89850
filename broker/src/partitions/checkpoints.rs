//! The three offset files at the top of the data directory: what they said, and writing them.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use duolog_log_core::ids::TopicPartition;
use duolog_log_core::log::{OnLoss, OpenHint, Shutdown};
use duolog_log_core::storage::checkpoint::{
    LOG_START_FILE, Offsets, RECOVERY_POINT_FILE, REPLICATION_FILE, read_offsets, write_offsets,
};
use duolog_log_core::storage::disk::{DiskResult, EntryKind};

use super::{Partition, Partitions, folder};
use crate::controller::names::{METADATA_TOPIC, OFFSETS_TOPIC};
use crate::data_dir::DataDir;

/// What the files said at start, for partitions whose log was not opened since.
#[derive(Debug)]
pub struct Hints {
    shutdown: Shutdown,
    recovery_points: Offsets,
    log_starts: Offsets,
    high_watermarks: Offsets,
    /// Names of the folders that were there.
    folders: HashSet<String>,
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
            folders: folders(data_dir)?,
        })
    }

    /// What is known of a log before it is opened.
    pub(super) fn of(&self, name: &TopicPartition) -> OpenHint {
        let recovery_point = self.recovery_points.get(name).copied();
        OpenHint {
            shutdown: self.shutdown,
            recovery_point,
            log_start_offset: self.log_starts.get(name).copied(),
            // One spoilt file proves nothing.
            proven_end: recovery_point.unwrap_or_default().min(self.high_watermark(name)),
            on_loss: on_loss(&name.topic),
        }
    }

    /// Whether anything was left of a partition, be it only an offset.
    pub(super) fn knows(&self, topic: &Arc<str>, index: i32) -> bool {
        let name = TopicPartition { topic: topic.clone(), partition: index };
        self.folders.contains(&folder(topic, index))
            || self.log_starts.contains_key(&name)
            || self.high_watermark(&name) > 0
    }

    /// The HW of a log before it is opened.
    pub(super) fn high_watermark(&self, name: &TopicPartition) -> i64 {
        self.high_watermarks.get(name).copied().unwrap_or_default()
    }

    /// Whether the last stop was a clean one.
    pub fn shutdown(&self) -> Shutdown {
        self.shutdown
    }
}

/// What a log is opened without when a file is spoilt.
fn without(file: &str) -> &'static str {
    match file {
        RECOVERY_POINT_FILE => "after an unclean stop all logs are read from their beginning",
        LOG_START_FILE => "records that were deleted from the middle of a segment are back",
        _ => "high watermarks are taken from the logs",
    }
}

/// What becomes of a log that lacks what was on disk. Without a part of the metadata or of the
/// groups' positions the rest says something else than it did.
pub(super) fn on_loss(topic: &str) -> OnLoss {
    if topic == METADATA_TOPIC || topic == OFFSETS_TOPIC {
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
        }
    }

    /// The offset of `partition`: as published, or as it was when its log was not opened since.
    fn offset(self, partition: &Partition, hints: &Hints) -> Option<i64> {
        if !partition.was_opened() {
            let held = match self {
                Self::RecoveryPoint => &hints.recovery_points,
                Self::LogStart => &hints.log_starts,
                Self::HighWatermark => &hints.high_watermarks,
            };
            return held.get(&partition.name()).copied();
        }
        let offsets = partition.offsets();
        match self {
            Self::RecoveryPoint => Some(partition.synced()),
            Self::LogStart => partition.checkpointed_log_start(),
            Self::HighWatermark => Some(offsets.high_watermark),
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
            let offset =
                partition.was_opened().then(|| self.offset(partition, &partition.shared.hints));
            (&partition.topic_id.0, partition.number, offset).hash(&mut hasher);
            hasher.finish()
        });
        // In whatever order they come.
        each.fold(0, u64::wrapping_add)
    }

    /// Writes the file, with every partition of this node. Blocks.
    pub fn write(self, partitions: &Partitions) -> DiskResult<()> {
        let shared = partitions.shared();
        let all = partitions.all();
        let metadata = partitions.metadata();
        let offsets: Offsets = all
            .iter()
            .chain(metadata.as_ref())
            .filter_map(|partition| {
                let offset = self.offset(partition, &shared.hints)?;
                Some((partition.name(), offset))
            })
            .collect();
        let data_dir = &shared.data_dir;
        write_offsets(&**data_dir.disk(), data_dir.path(), self.file(), &offsets)
    }
}
