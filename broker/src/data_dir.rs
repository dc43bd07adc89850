//! One log directory: whose it is, who has it, how it was left.
//!
//! At the top lie Kafka's own files: `.lock`, `meta.properties`, `.kafka_cleanshutdown`, and the
//! offset checkpoints. Below it one folder per partition. See `log_dirs.rs` for all of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use duolog_log_core::ids::{NodeId, TopicId};
use duolog_log_core::log::Shutdown;
use duolog_log_core::storage::checkpoint::{CleanShutdown, MetaProperties};
use duolog_log_core::storage::disk::{
    DirEntry, Disk, DiskError, DiskErrorKind, DiskLock, EntryKind, create_durable_dir_all,
};

use crate::controller::names::METADATA_TOPIC;

const LOCK: &str = ".lock";
const META: &str = "meta.properties";

/// At the root of many file systems, and nobody's.
const LOST_AND_FOUND: &str = "lost+found";

/// Behind the name of a folder that an import copies: no topic's folder ends so.
pub const IMPORT_SUFFIX: &str = ".import";

/// Tells one log directory from another, wherever it is mounted (KIP-858).
pub type DirectoryId = TopicId;

/// A directory that this node must not use, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// Another process has it.
    #[error(
        "data directory {} is in use by another process; stop it or choose another with --data-dir",
        .0.display()
    )]
    Locked(PathBuf),
    /// Something else lies there.
    #[error(
        "data directory {} holds {found:?} and no {META}: it is not ours; \
         choose an empty one with --data-dir",
        dir.display()
    )]
    Foreign {
        /// The directory.
        dir: PathBuf,
        /// An entry that is not ours.
        found: String,
    },
    /// Ours, but for the file that says so.
    #[error(
        "data directory {} holds {METADATA_TOPIC}-0 and no {META}: put that file back, with the lines \
         version=1, node.id={node_id} and cluster.id=<id>; if the id is not the one in the metadata \
         log, the next start names both",
        dir.display()
    )]
    WithoutMeta {
        /// The directory.
        dir: PathBuf,
        /// As configured.
        node_id: i32,
    },
    /// A real Kafka's.
    #[error(
        "data directory {} belongs to a Kafka broker (cluster {cluster}), not to duolog; \
         choose another with --data-dir",
        dir.display()
    )]
    Kafkas {
        /// The directory.
        dir: PathBuf,
        /// Its cluster.
        cluster: String,
    },
    /// Copied folders that have not got their names.
    #[error(
        "an import into data directory {} was interrupted or is under way, {copy} lies there: \
         run it again before this node is served",
        dir.display()
    )]
    HalfImported {
        /// The directory.
        dir: PathBuf,
        /// One of the copies.
        copy: String,
    },
    /// The file does not say what it must.
    #[error("{}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Two directories of different clusters.
    #[error(
        "log directories {} and {} belong to different clusters, {first_cluster} and \
         {second_cluster}: take one of them out of log.dirs",
        first.display(), second.display()
    )]
    TwoClusters {
        /// One.
        first: PathBuf,
        /// Its cluster.
        first_cluster: TopicId,
        /// Another.
        second: PathBuf,
        /// Its cluster.
        second_cluster: TopicId,
    },
    /// A directory and its copy.
    #[error(
        "log directories {} and {} have one directory.id, {id}: is one a copy of the other?",
        first.display(), second.display()
    )]
    SameId {
        /// One.
        first: PathBuf,
        /// Another.
        second: PathBuf,
        /// Of both.
        id: DirectoryId,
    },
    /// The metadata log twice.
    #[error(
        "{METADATA_TOPIC}-0 is in both {} and {}: move the older one away",
        first.display(), second.display()
    )]
    TwoMetadataLogs {
        /// One place.
        first: PathBuf,
        /// Another.
        second: PathBuf,
    },
    /// The metadata log is not in the directories that can be used.
    #[error(
        "the metadata log is not in the log directories that can be used, so it is taken to be in \
         one that cannot: {source}"
    )]
    WithoutMetadataLog {
        /// Why one cannot be used.
        source: DiskError,
    },
    /// The disk refuses.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// The directory, held for this process until dropped.
#[derive(Debug)]
pub struct DataDir {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    cluster_id: TopicId,
    directory_id: DirectoryId,
    holds_metadata: bool,
    shutdown: Shutdown,
    _lock: Box<dyn DiskLock>,
}

impl DataDir {
    /// Takes the directory at `path` for node `node_id`, creating it when it is not there.
    ///
    /// `fresh_id` becomes the id of the cluster, and `directory_id` of the directory, if it is new.
    /// The marker of a clean shutdown is taken away: from here on only a clean stop is one.
    pub fn open(
        disk: Arc<dyn Disk>,
        path: &Path,
        node_id: i32,
        fresh_id: TopicId,
        directory_id: DirectoryId,
    ) -> Result<Self, DataDirError> {
        create_durable_dir_all(&*disk, path)?;
        let lock = disk.lock(&path.join(LOCK)).map_err(|error| match error.kind {
            DiskErrorKind::Locked => DataDirError::Locked(path.to_owned()),
            _ => error.into(),
        })?;
        let entries = disk.list(path)?;
        let has = |name: &str| entries.iter().any(|entry| entry.name == name);
        let metadata_log = format!("{METADATA_TOPIC}-0");
        let (cluster_id, directory_id) = if has(META) {
            let (cluster, directory) = read_meta(&*disk, path, node_id)?;
            let kafkas = entries.iter().any(|entry| entry.name == "__cluster_metadata-0");
            if kafkas && !has(&metadata_log) {
                let (dir, cluster) = (path.to_owned(), cluster.to_string());
                return Err(DataDirError::Kafkas { dir, cluster });
            }
            (cluster, directory)
        } else {
            if has(&metadata_log) {
                return Err(DataDirError::WithoutMeta { dir: path.to_owned(), node_id });
            }
            let is_foreign = |name: &str| !name.starts_with('.') && name != LOST_AND_FOUND;
            if let Some(entry) = entries.iter().find(|entry| is_foreign(&entry.name)) {
                let (dir, found) = (path.to_owned(), entry.name.clone());
                return Err(DataDirError::Foreign { dir, found });
            }
            write_meta(&*disk, path, node_id, fresh_id, directory_id)?;
            (fresh_id, directory_id)
        };
        let shutdown = match CleanShutdown::take(&*disk, path)? {
            Some(_) => Shutdown::Clean,
            None => Shutdown::Unclean,
        };
        let holds_metadata = has(&metadata_log);
        let path = path.to_owned();
        Ok(Self { disk, path, cluster_id, directory_id, holds_metadata, shutdown, _lock: lock })
    }

    /// Errors: an import into the directory at `path` has not come to its end. A topic of it may be
    /// known by then, and would be served as if it were empty.
    pub fn check_imported(disk: &dyn Disk, path: &Path) -> Result<(), DataDirError> {
        // Whatever else is wrong with it is told when it is opened.
        let entries = disk.list(path).unwrap_or_default();
        let is_copy =
            |entry: &DirEntry| entry.kind == EntryKind::Dir && entry.name.ends_with(IMPORT_SUFFIX);
        match entries.into_iter().find(is_copy) {
            Some(DirEntry { name: copy, .. }) => {
                Err(DataDirError::HalfImported { dir: path.to_owned(), copy })
            }
            None => Ok(()),
        }
    }

    /// The cluster that the directory at `path` says it belongs to, if it says so.
    pub fn cluster_of(disk: &dyn Disk, path: &Path) -> Option<TopicId> {
        // Whatever else is wrong with it is told when it is opened.
        let meta = MetaProperties::read(disk, path).ok().flatten()?;
        meta.cluster_id.parse().ok()
    }

    /// The disk it lies on.
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The cluster that its data belongs to.
    pub fn cluster_id(&self) -> TopicId {
        self.cluster_id
    }

    /// Its own id.
    pub fn directory_id(&self) -> DirectoryId {
        self.directory_id
    }

    /// Whether the metadata log was here when it was opened.
    pub fn holds_metadata(&self) -> bool {
        self.holds_metadata
    }

    /// How it was left.
    pub fn shutdown(&self) -> Shutdown {
        self.shutdown
    }

    /// Notes that every log was closed, so that the next start need not scan.
    pub fn mark_clean(&self) -> Result<(), DiskError> {
        CleanShutdown { broker_epoch: -1 }.write(&*self.disk, &self.path)
    }
}

fn write_meta(
    disk: &dyn Disk,
    dir: &Path,
    node_id: i32,
    cluster_id: TopicId,
    directory_id: TopicId,
) -> Result<(), DiskError> {
    let meta = MetaProperties {
        cluster_id: cluster_id.to_string(),
        node_id: NodeId(node_id),
        directory_id: directory_id.to_string(),
    };
    meta.write(disk, dir, "written by duolog")
}

/// The ids of cluster and directory.
fn read_meta(
    disk: &dyn Disk,
    dir: &Path,
    node_id: i32,
) -> Result<(TopicId, DirectoryId), DataDirError> {
    let path = dir.join(META);
    let unreadable = |reason: String| DataDirError::Unreadable { path: path.clone(), reason };
    let meta = MetaProperties::read(disk, dir)
        .map_err(|error| unreadable(error.source.to_string()))?
        .ok_or_else(|| unreadable("expected a file with version=1".to_owned()))?;
    if meta.node_id != NodeId(node_id) {
        let held = meta.node_id;
        return Err(unreadable(format!(
            "the data belongs to node.id {held}, the node is configured as {node_id}; \
             set node.id={held} or choose another directory with --data-dir"
        )));
    }
    let id = |name: &str, text: &str| {
        text.parse().map_err(|error| unreadable(format!("{name} {text:?}: {error}")))
    };
    Ok((id("cluster.id", &meta.cluster_id)?, id("directory.id", &meta.directory_id)?))
}

#[cfg(test)]
mod tests;
