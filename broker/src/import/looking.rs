//! Looking through the source: what it holds, and what of it cannot be taken over.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use duolog_log_core::ids::{TopicId, TopicPartition};
use duolog_log_core::log::{Compacted, OpenHint, Shutdown, Traces};
use duolog_log_core::storage::checkpoint::{
    CLEANER_FILE, LOG_START_FILE, MetaProperties, Offsets, RECOVERY_POINT_FILE, REPLICATION_FILE,
    read_offsets, read_topic_id,
};
use duolog_log_core::storage::disk::{Disk, DiskError, DiskErrorKind, DiskLock, EntryKind};

use super::copying::Target;
use super::{CLEAN_SHUTDOWN_FILE, ImportError};
use crate::controller::names;
use crate::limits::{IMPORTED_LEADER_EPOCH_MAX, IMPORTED_PRODUCER_ID_MAX, TOPIC_PARTITIONS_MAX};
use crate::partitions::checkpoints::on_loss;
use crate::partitions::deletion::parse_folder;

/// Kafka's own mark of a running broker.
const LOCK_FILE: &str = ".lock";

/// Topics that nothing here would read.
const LEFT_OUT: [&str; 4] =
    ["__cluster_metadata", "__transaction_state", "__share_group_state", "__remote_log_metadata"];

/// The checkpoints of a log directory.
pub(super) const CHECKPOINTS: [&str; 4] =
    [RECOVERY_POINT_FILE, LOG_START_FILE, REPLICATION_FILE, CLEANER_FILE];

/// A topic of the source.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) id: TopicId,
    /// Folders by partition.
    pub(super) folders: BTreeMap<i32, PathBuf>,
    pub(super) compacted: bool,
    /// Partitions with open transactions.
    pub(super) in_transaction: BTreeSet<i32>,
}

/// What the source holds.
#[derive(Debug)]
pub(super) struct Source {
    /// Whether all of it was stopped cleanly.
    pub(super) clean: bool,
    pub(super) topics: BTreeMap<String, Found>,
    pub(super) left_out: Vec<String>,
    /// Folders of `__transaction_state`.
    pub(super) coordinators: Vec<PathBuf>,
    /// Of what is taken over.
    checkpoints: BTreeMap<&'static str, Offsets>,
    pub(super) leader_epoch: i32,
    pub(super) next_producer_id: i64,
    /// The directories, and what keeps their broker from starting.
    dirs: Vec<(PathBuf, File, Box<dyn DiskLock>)>,
    cluster: Option<String>,
}

impl Found {
    /// How many partitions the topic has at least.
    pub(super) fn partitions(&self) -> i32 {
        self.folders.last_key_value().map_or(0, |(last, _)| last.saturating_add(1))
    }
}

impl Source {
    /// Looks through `dirs`, the log directories of one broker, and keeps it from starting.
    pub(super) fn look(disk: &dyn Disk, dirs: &[PathBuf]) -> Result<Self, ImportError> {
        let mut source = Self {
            clean: true,
            topics: BTreeMap::new(),
            left_out: Vec::new(),
            coordinators: Vec::new(),
            checkpoints: BTreeMap::new(),
            leader_epoch: -1,
            next_producer_id: 0,
            dirs: Vec::new(),
            cluster: None,
        };
        dirs.iter().try_for_each(|dir| source.look_at(disk, dir))?;
        Ok(source)
    }

    fn look_at(&mut self, disk: &dyn Disk, dir: &Path) -> Result<(), ImportError> {
        let Ok(Some(meta)) = MetaProperties::read(disk, dir) else {
            return Err(ImportError::NotKafkas(dir.to_owned()));
        };
        let real = dir.canonicalize().map_err(|error| DiskError::new("open", dir, error))?;
        if self.dirs.iter().any(|(held, ..)| *held == real) {
            return Ok(());
        }
        let cluster = self.cluster.get_or_insert_with(|| meta.cluster_id.clone());
        if *cluster != meta.cluster_id {
            let reason = format!("of cluster {}, those before it of {cluster}", meta.cluster_id);
            return Err(ImportError::Folder { folder: dir.to_owned(), reason });
        }
        let (file, whole) = lock(disk, dir)?;
        self.dirs.push((real, file, whole));
        self.clean &= dir.join(CLEAN_SHUTDOWN_FILE).exists();
        let compacted = read_offsets(disk, dir, CLEANER_FILE)?;
        for entry in disk.list(dir)?.into_iter().filter(|entry| entry.kind == EntryKind::Dir) {
            self.look_into(disk, &dir.join(&entry.name), entry.name, &compacted)?;
        }
        for file in CHECKPOINTS {
            let mut offsets = read_offsets(disk, dir, file)?;
            offsets.retain(|name, _| {
                let found = self.topics.get(&*name.topic);
                let folder = found.and_then(|found| found.folders.get(&name.partition));
                folder.is_some_and(|folder| folder.parent() == Some(dir))
            });
            self.checkpoints.entry(file).or_default().extend(offsets);
        }
        Ok(())
    }

    fn look_into(
        &mut self,
        disk: &dyn Disk,
        folder: &Path,
        name: String,
        compacted: &Offsets,
    ) -> Result<(), ImportError> {
        let Some((topic, partition)) = parse_folder(&name).filter(|(topic, _)| is_taken(topic))
        else {
            if parse_folder(&name).is_some_and(|(topic, _)| topic == names::TRANSACTIONS_TOPIC) {
                self.coordinators.push(folder.to_owned());
            }
            self.left_out.push(name);
            return Ok(());
        };
        let refused = |reason: String| ImportError::Folder { folder: folder.to_owned(), reason };
        let id = read_topic_id(disk, folder)?;
        let id = id.ok_or_else(|| refused("no topic id in partition.metadata".to_owned()))?;
        if !(0..TOPIC_PARTITIONS_MAX).contains(&partition) {
            return Err(refused(format!("a topic may have {TOPIC_PARTITIONS_MAX} partitions")));
        }
        let plain = format!("{topic}-{partition}");
        if plain != name {
            return Err(refused(format!("expected the name {plain}")));
        }
        let name = TopicPartition::new(topic, partition);
        let found = self.topics.entry(topic.to_owned()).or_insert_with(|| Found {
            id,
            folders: BTreeMap::new(),
            compacted: topic == names::OFFSETS_TOPIC,
            in_transaction: BTreeSet::new(),
        });
        if found.id != id {
            let held = found.id;
            return Err(refused(format!("topic id {id}, its other partitions have {held}")));
        }
        found.compacted |= compacted.contains_key(&name);
        if let Some(other) = found.folders.insert(partition, folder.to_owned()) {
            return Err(refused(format!("{} is the same partition", other.display())));
        }
        let traces = Traces::read(disk, folder)?;
        if !traces.in_transaction.is_empty() {
            found.in_transaction.insert(partition);
        }
        let epoch = traces.leader_epoch.unwrap_or(-1);
        if epoch > IMPORTED_LEADER_EPOCH_MAX {
            return Err(refused(format!("no broker comes to lead in epoch {epoch}")));
        }
        self.leader_epoch = self.leader_epoch.max(epoch);
        if let Some(id) = traces.producer_id {
            if id > IMPORTED_PRODUCER_ID_MAX {
                return Err(refused(format!("no broker comes to give out the producer id {id}")));
            }
            self.next_producer_id = self.next_producer_id.max(id.saturating_add(1));
        }
        Ok(())
    }

    /// What the source's checkpoints say of a log.
    pub(super) fn hint(&self, name: &TopicPartition) -> OpenHint {
        let offset = |file: &str| self.checkpoints.get(file)?.get(name).copied();
        let recovery_point = offset(RECOVERY_POINT_FILE);
        let high_watermark = offset(REPLICATION_FILE).unwrap_or_default();
        OpenHint {
            shutdown: if self.clean { Shutdown::Clean } else { Shutdown::Unclean },
            recovery_point,
            log_start_offset: offset(LOG_START_FILE),
            proven_end: recovery_point.unwrap_or_default().min(high_watermark),
            high_watermark,
            on_loss: on_loss(&name.topic),
            compacted: match offset(CLEANER_FILE) {
                Some(_) => Compacted::Once,
                None => Compacted::Never,
            },
        }
    }

    /// The folders that are taken over, with their names.
    pub(super) fn folders(&self) -> impl Iterator<Item = (String, &Path)> {
        self.topics.iter().flat_map(|(topic, found)| {
            let folders = found.folders.iter();
            folders
                .map(move |(partition, folder)| (format!("{topic}-{partition}"), folder.as_path()))
        })
    }

    /// The checkpoint entries of what is taken over, without what has its place already.
    pub(super) fn offsets(&self, file: &str, target: Target<'_>) -> Offsets {
        let all = self.checkpoints.get(file).into_iter().flatten();
        let taken = all.filter(|(name, _)| {
            target.held(&format!("{}-{}", name.topic, name.partition)).is_none()
        });
        taken.map(|(name, offset)| (name.clone(), *offset)).collect()
    }
}

/// Whether a topic of this name is taken over.
fn is_taken(topic: &str) -> bool {
    !LEFT_OUT.contains(&topic) && names::check(topic).is_ok()
}

/// Holds what a broker holds while it runs: a lock of the file region, as Java takes it, and one of
/// the file, as a node of ours does.
fn lock(disk: &dyn Disk, dir: &Path) -> Result<(File, Box<dyn DiskLock>), ImportError> {
    let path = dir.join(LOCK_FILE);
    let opened = File::options().read(true).write(true).create(true).truncate(false).open(&path);
    let file = opened.map_err(|error| DiskError::new("open", &path, error))?;
    let operation = rustix::fs::FlockOperation::NonBlockingLockExclusive;
    rustix::fs::fcntl_lock(&file, operation).map_err(|_| ImportError::Running(dir.to_owned()))?;
    let whole = disk.lock(&path).map_err(|error| match error.kind {
        DiskErrorKind::Locked => ImportError::Running(dir.to_owned()),
        _ => error.into(),
    })?;
    Ok((file, whole))
}
