//! `duolog import DIR`: takes over the topics of a stopped Kafka broker.
//!
//! Folders are copied, byte for byte; the source stays as it is. Topics keep their ids, which their
//! `partition.metadata` names; their settings are in `__cluster_metadata`, which is not read, so they
//! get the node's defaults, but for `cleanup.policy=compact` where the source has compacted them.
//!
//! 1. The source is locked and looked through: what cannot be taken over is told before anything is
//!    written.
//! 2. Folders are copied under names that no topic has.
//! 3. The topics are written to the metadata log, the offset checkpoints are joined, and the folders get
//!    their names. Whoever is stopped before this is over imports again: what is there already stays.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use duolog_log_core::event::Events;
use duolog_log_core::ids::{NodeId, TopicId, TopicPartition};
use duolog_log_core::log::greatest_producer_id;
use duolog_log_core::storage::checkpoint::{
    CLEANER_FILE, LOG_START_FILE, MetaProperties, Offsets, RECOVERY_POINT_FILE, REPLICATION_FILE,
    read_leader_epochs, read_offsets, read_topic_id, write_offsets,
};
use duolog_log_core::storage::disk::{Disk, DiskError, DiskErrorKind, DiskLock, EntryKind};
use duolog_log_core::storage::file_disk::FileDisk;
use duolog_log_core::storage::names::DELETED_SUFFIX;
use serde::Serialize;

use crate::config::Config;
use crate::config::topic::Overrides;
use crate::controller::topics::{Door, Imported, NewTopic};
use crate::controller::{ControllerError, names};
use crate::limits::MAPPED_FILES_MAX;
use crate::node::{Node, StartError};
use crate::partitions::deletion::parse_folder;
use crate::system::Descriptors;

/// Kafka's own marks of a clean stop and of a running broker.
const CLEAN_SHUTDOWN_FILE: &str = ".kafka_cleanshutdown";
const LOCK_FILE: &str = ".lock";

/// Behind the name of a folder that is being copied: no topic's folder ends so.
const COPY_SUFFIX: &str = ".import";

/// Topics that nothing here would read.
const LEFT_OUT: [&str; 4] =
    ["__cluster_metadata", "__transaction_state", "__share_group_state", "__remote_log_metadata"];

/// The checkpoints of a log directory.
const CHECKPOINTS: [&str; 4] =
    [RECOVERY_POINT_FILE, LOG_START_FILE, REPLICATION_FILE, CLEANER_FILE];

/// Why nothing was imported, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// Not a log directory.
    #[error("{}: expected the log directory of a Kafka broker, with a meta.properties", .0.display())]
    NotKafkas(PathBuf),
    /// Its broker runs.
    #[error("{}: a broker is running there; stop it first", .0.display())]
    Running(PathBuf),
    /// A folder that cannot be taken over.
    #[error("{}: {reason}", folder.display())]
    Folder {
        /// Which.
        folder: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The node refuses a topic.
    #[error("topic {name}: {source}")]
    Topic {
        /// Which.
        name: String,
        /// Why.
        source: ControllerError,
    },
    /// The node refuses.
    #[error(transparent)]
    Controller(#[from] ControllerError),
    /// The data directory cannot be used.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A checkpoint or a folder cannot be read or written.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A file cannot be copied.
    #[error("cannot copy {}: {source}", path.display())]
    Copy {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// One topic that was taken over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImportedTopic {
    /// Its name.
    pub topic: String,
    /// Its id, as Kafka prints it.
    pub id: String,
    /// How many partitions it has.
    pub partitions: i32,
    /// Those whose folder was not there: empty here.
    pub missing: Vec<i32>,
    /// Bytes of its folders.
    pub bytes: u64,
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whether the broker was stopped cleanly: if not, the next start reads its logs through.
    pub clean: bool,
    /// By name.
    pub topics: Vec<ImportedTopic>,
    /// Folders that were left out.
    pub left_out: Vec<String>,
}

/// A topic of the source.
#[derive(Debug)]
struct Found {
    id: TopicId,
    /// Folders by partition.
    folders: BTreeMap<i32, PathBuf>,
    compacted: bool,
}

/// What the source holds.
#[derive(Debug)]
struct Source {
    clean: bool,
    topics: BTreeMap<String, Found>,
    left_out: Vec<String>,
    checkpoints: BTreeMap<&'static str, Offsets>,
    leader_epoch: i32,
    next_producer_id: i64,
    _locks: (File, Box<dyn DiskLock>),
}

/// Takes over the topics in `dir`, into the data directory of `config`.
pub async fn run(config: Config, dir: &Path) -> Result<Report, ImportError> {
    let disk: Arc<dyn Disk> =
        Arc::new(FileDisk::new(Descriptors::of_this_process().logs, MAPPED_FILES_MAX));
    let source = Source::look(&*disk, dir)?;
    let config = Arc::new(config);
    let events = Events::silent(NodeId(config.node_id));
    let node = Node::start(config.clone(), disk.clone(), events).await?;
    let taken = take(&node, &source).await;
    node.stop().await;
    let report = taken?;
    join_checkpoints(&*disk, config.data_dir(), &source)?;
    name_folders(&*disk, config.data_dir(), &source)?;
    Ok(report)
}

/// Prints what was done.
pub fn print(report: &Report, json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut out, report)?;
        return writeln!(out);
    }
    for topic in &report.topics {
        let ImportedTopic { topic, id, partitions, bytes, .. } = topic;
        writeln!(out, "{topic}: {partitions} partitions, {bytes} bytes, id {id}")?;
    }
    for topic in report.topics.iter().filter(|topic| !topic.missing.is_empty()) {
        writeln!(
            out,
            "{}: no folder for partitions {:?}: they are empty",
            topic.topic, topic.missing
        )?;
    }
    for folder in &report.left_out {
        writeln!(out, "left out: {folder}")?;
    }
    if !report.clean {
        writeln!(out, "the broker was not stopped cleanly: the next start reads its logs through")?;
    }
    Ok(())
}

impl Source {
    /// Looks through `dir` and keeps its broker from starting.
    fn look(disk: &dyn Disk, dir: &Path) -> Result<Self, ImportError> {
        if !matches!(MetaProperties::read(disk, dir), Ok(Some(_))) {
            return Err(ImportError::NotKafkas(dir.to_owned()));
        }
        let locks = lock(disk, dir)?;
        let mut source = Self {
            clean: dir.join(CLEAN_SHUTDOWN_FILE).exists(),
            topics: BTreeMap::new(),
            left_out: Vec::new(),
            checkpoints: BTreeMap::new(),
            leader_epoch: -1,
            next_producer_id: 0,
            _locks: locks,
        };
        for file in CHECKPOINTS {
            source.checkpoints.insert(file, read_offsets(disk, dir, file)?);
        }
        for entry in disk.list(dir)?.into_iter().filter(|entry| entry.kind == EntryKind::Dir) {
            source.look_into(disk, &dir.join(&entry.name), entry.name)?;
        }
        Ok(source)
    }

    fn look_into(
        &mut self,
        disk: &dyn Disk,
        folder: &Path,
        name: String,
    ) -> Result<(), ImportError> {
        let Some((topic, partition)) = parse_folder(&name).filter(|(topic, _)| is_taken(topic))
        else {
            self.left_out.push(name);
            return Ok(());
        };
        let refused = |reason: String| ImportError::Folder { folder: folder.to_owned(), reason };
        let id = read_topic_id(disk, folder)?;
        let id = id.ok_or_else(|| refused("no topic id in partition.metadata".to_owned()))?;
        let name = TopicPartition::new(topic, partition);
        let was_compacted =
            self.checkpoints.get(CLEANER_FILE).is_some_and(|offsets| offsets.contains_key(&name));
        let found = self.topics.entry(topic.to_owned()).or_insert_with(|| Found {
            id,
            folders: BTreeMap::new(),
            compacted: topic == names::OFFSETS_TOPIC,
        });
        if found.id != id {
            let held = found.id;
            return Err(refused(format!("topic id {id}, its other partitions have {held}")));
        }
        found.compacted |= was_compacted;
        found.folders.insert(partition, folder.to_owned());
        let epochs = read_leader_epochs(disk, folder)?.unwrap_or_default();
        let epoch = epochs.latest().map_or(-1, |entry| entry.epoch.0);
        self.leader_epoch = self.leader_epoch.max(epoch);
        if let Some(id) = greatest_producer_id(disk, folder)? {
            self.next_producer_id = self.next_producer_id.max(id.saturating_add(1));
        }
        Ok(())
    }

    /// The checkpoint entries of what is taken over, without what has its place below `root` already.
    fn offsets(&self, file: &str, root: &Path) -> Offsets {
        let all = self.checkpoints.get(file).into_iter().flatten();
        let taken = all.filter(|(name, _)| {
            let found = self.topics.get(&*name.topic);
            let folder = found.and_then(|found| found.folders.get(&name.partition));
            folder.is_some_and(|folder| !places(folder, root).0.exists())
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

/// Copies the folders and makes their topics topics of the node.
async fn take(node: &Arc<Node>, source: &Source) -> Result<Report, ImportError> {
    let root = node.config.data_dir();
    let mut report =
        Report { clean: source.clean, topics: Vec::new(), left_out: source.left_out.clone() };
    let mut topics = Vec::new();
    for (name, found) in &source.topics {
        let image = node.controller.image().clone();
        if image.topic(name).is_some_and(|held| held.id != found.id) {
            let (name, source) = (name.clone(), ControllerError::TopicExists(name.clone()));
            return Err(ImportError::Topic { name, source });
        }
        let last = found.folders.last_key_value().map_or(0, |(partition, _)| *partition);
        let partitions = last.saturating_add(1);
        let overrides: Overrides = found
            .compacted
            .then(|| ("cleanup.policy".to_owned(), "compact".to_owned()))
            .into_iter()
            .collect();
        let topic =
            NewTopic { name: name.as_str().into(), partitions, overrides, door: Door::Node };
        topics.push((found.id, topic));
        let mut bytes = 0;
        for folder in found.folders.values() {
            bytes += copy_folder(folder, root)?;
        }
        report.topics.push(ImportedTopic {
            topic: name.clone(),
            id: found.id.to_string(),
            partitions,
            missing: (0..partitions).filter(|p| !found.folders.contains_key(p)).collect(),
            bytes,
        });
    }
    let (leader_epoch, next_producer_id) = (source.leader_epoch, source.next_producer_id);
    let imported = Imported { topics, leader_epoch, next_producer_id };
    node.controller.import_topics(imported).await?;
    Ok(report)
}

/// Where the copy of `folder` has its place, and where it is until it is complete.
fn places(folder: &Path, root: &Path) -> (PathBuf, PathBuf) {
    let name = folder.file_name().unwrap_or_default().to_owned();
    let mut copy = name.clone();
    copy.push(COPY_SUFFIX);
    (root.join(name), root.join(copy))
}

/// Copies the files of a partition, synced; returns how many bytes. Nothing is done for one that has
/// its place already.
fn copy_folder(folder: &Path, root: &Path) -> Result<u64, ImportError> {
    let (place, copy) = places(folder, root);
    if place.exists() {
        return Ok(0);
    }
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ImportError::Copy { path, source }
    };
    fs::create_dir_all(&copy).map_err(failed(&copy))?;
    let mut bytes = 0;
    for entry in fs::read_dir(folder).map_err(failed(folder))? {
        let entry = entry.map_err(failed(folder))?;
        let (from, name) = (entry.path(), entry.file_name());
        let is_file = entry.file_type().map_err(failed(&from))?.is_file();
        if !is_file || name.to_string_lossy().ends_with(DELETED_SUFFIX) {
            continue;
        }
        let to = copy.join(name);
        bytes += fs::copy(&from, &to).map_err(failed(&from))?;
        let synced = File::open(&to).and_then(|file| file.sync_all());
        synced.map_err(failed(&to))?;
    }
    let synced = File::open(&copy).and_then(|dir| dir.sync_all());
    synced.map_err(failed(&copy))?;
    Ok(bytes)
}

/// Adds what the source's checkpoints say to the node's own. A source that was not stopped cleanly
/// takes the mark of a clean stop away.
fn join_checkpoints(disk: &dyn Disk, root: &Path, source: &Source) -> Result<(), ImportError> {
    if !source.clean {
        match disk.remove(&root.join(CLEAN_SHUTDOWN_FILE)) {
            Err(error) if !error.is_not_found() => return Err(error.into()),
            Ok(()) | Err(_) => disk.sync_dir(root)?,
        }
    }
    for file in CHECKPOINTS {
        let mut offsets = read_offsets(disk, root, file)?;
        offsets.extend(source.offsets(file, root));
        if !offsets.is_empty() {
            write_offsets(disk, root, file, &offsets)?;
        }
    }
    Ok(())
}

/// Gives the copies their places.
fn name_folders(disk: &dyn Disk, root: &Path, source: &Source) -> Result<(), ImportError> {
    for folder in source.topics.values().flat_map(|found| found.folders.values()) {
        let (place, copy) = places(folder, root);
        if !place.exists() {
            disk.rename(&copy, &place)?;
        }
    }
    disk.sync_dir(root)?;
    Ok(())
}

#[cfg(test)]
mod tests;
