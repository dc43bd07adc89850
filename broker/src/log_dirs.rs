//! The log directories of a node (`log.dirs`): which can be used, and where the metadata log is.
//!
//! A directory that the disk refuses, at start or later, is offline: the partitions in it are refused
//! until a start finds it again. A node needs the one that holds the metadata log. Source: KIP-112,
//! KIP-858; LogManager.

mod watch;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use duolog_log_core::ids::TopicId;
use duolog_log_core::log::Shutdown;
use duolog_log_core::storage::disk::{Disk, DiskError};

use crate::data_dir::{DataDir, DataDirError, DirectoryId};
use crate::partitions::checkpoints::Hints;

use watch::{Watch, WatchedDisk};

/// Ids for what has none yet.
#[derive(Clone, Debug)]
pub struct FreshIds {
    /// The cluster's.
    pub cluster: TopicId,
    /// Of each directory, in the order of the configuration.
    pub directories: Vec<DirectoryId>,
}

/// One of the directories.
#[derive(Debug)]
pub struct LogDir {
    path: PathBuf,
    /// `None` if it could not be opened.
    held: Option<DataDir>,
    /// What it failed with since.
    failure: OnceLock<String>,
    hints: Hints,
    recovered: AtomicBool,
    partitions: AtomicUsize,
}

/// All of them.
#[derive(Debug)]
pub struct LogDirs {
    disk: Arc<dyn Disk>,
    watch: Arc<Watch>,
    all: Vec<Arc<LogDir>>,
    metadata: Arc<LogDir>,
    /// Stands for any that is not configured any more, and for those that are offline where only the
    /// id is known.
    missing: Arc<LogDir>,
    cluster_id: TopicId,
}

impl LogDirs {
    /// Takes the directories at `paths` for node `node_id`, creating those that are not there.
    ///
    /// Errors: one of them is not for this node; none, or not the one with the metadata log, can be
    /// used. `paths` is not empty.
    pub fn open(
        disk: Arc<dyn Disk>,
        paths: &[PathBuf],
        node_id: i32,
        fresh: &FreshIds,
    ) -> Result<Self, DataDirError> {
        let cluster_id = paths.iter().find_map(|path| DataDir::cluster_of(&*disk, path));
        let cluster_id = cluster_id.unwrap_or(fresh.cluster);
        let (mut all, mut failure) = (Vec::with_capacity(paths.len()), None);
        for (path, id) in paths.iter().zip(&fresh.directories) {
            let opened = DataDir::open(disk.clone(), path, node_id, cluster_id, *id);
            match opened.and_then(|held| Ok(LogDir::online(held)?)) {
                Ok(dir) => all.push(Arc::new(dir)),
                Err(DataDirError::Disk(error)) => {
                    if paths.len() > 1 {
                        tracing::error!(directory = %path.display(), %error,
                            "the log directory is offline: all requests to its partitions are refused");
                    }
                    all.push(Arc::new(LogDir::offline(path.clone())));
                    failure.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        check_together(&all)?;
        let metadata = with_metadata_log(&all, failure)?;
        let missing = Arc::new(LogDir::offline(PathBuf::from("?")));
        let watch = Watch::new(disk, all.clone());
        let disk = Arc::new(WatchedDisk(watch.clone()));
        Ok(Self { disk, watch, all, metadata, missing, cluster_id })
    }

    /// What they lie on: a call that it fails takes a directory offline.
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// All, in the order of the configuration.
    pub fn all(&self) -> &[Arc<LogDir>] {
        &self.all
    }

    /// Those that can be used.
    pub fn online(&self) -> impl Iterator<Item = &Arc<LogDir>> {
        self.all.iter().filter(|dir| dir.is_online())
    }

    /// Whether one of them cannot be used.
    pub fn has_offline(&self) -> bool {
        self.all.iter().any(|dir| !dir.is_online())
    }

    /// Whether a partition is in a directory that cannot be used.
    pub fn has_offline_partitions(&self) -> bool {
        let mut all = self.all.iter().chain([&self.missing]);
        all.any(|dir| !dir.is_online() && dir.partition_count() > 0)
    }

    /// The next directory that has failed since the start: each comes once. For one who waits.
    pub(crate) async fn next_failed(&self) -> Arc<LogDir> {
        self.watch.next_failed().await
    }

    /// Why the node cannot go on, if it cannot. Source: LogManager.handleLogDirFailure, which halts when
    /// all have failed; KafkaRaftClient, when its own has.
    pub fn loss(&self) -> Option<String> {
        let failed = |dir: &LogDir| dir.failure().unwrap_or("it could not be opened").to_owned();
        let paths = || {
            let paths = self.all.iter().map(|dir| dir.path().display().to_string());
            paths.collect::<Vec<_>>().join(", ")
        };
        if self.online().next().is_none() {
            let why = failed(&self.metadata);
            return Some(format!("all log directories in {} have failed: {why}", paths()));
        }
        let path = self.metadata.path().display();
        (!self.metadata.is_online()).then(|| {
            let why = failed(&self.metadata);
            format!("the log directory {path} has failed, which holds the metadata log: {why}")
        })
    }

    /// The one with the metadata log: once it fails the node stops.
    pub fn metadata(&self) -> &Arc<LogDir> {
        &self.metadata
    }

    /// The one at a path, written as absolute.
    pub fn at(&self, path: &Path) -> Option<&Arc<LogDir>> {
        self.all.iter().find(|dir| dir.path == path)
    }

    /// The one with this id; one that is offline when no other has it.
    pub fn by_id(&self, id: DirectoryId) -> &Arc<LogDir> {
        self.online().find(|dir| dir.id() == id).unwrap_or(&self.missing)
    }

    /// Where each of `count` new partitions goes: always the directory with the fewest (the first of
    /// several), as LogManager.nextLogDirs.
    pub fn with_fewest(&self, count: usize) -> Vec<DirectoryId> {
        let mut dirs: Vec<_> = self.online().map(|dir| (dir.partition_count(), dir.id())).collect();
        let mut place = || {
            let (held, id) = dirs.iter_mut().min_by_key(|(held, _)| *held)?;
            *held += 1;
            Some(*id)
        };
        (0..count).filter_map(|_| place()).collect()
    }

    /// The cluster that all of them belong to.
    pub fn cluster_id(&self) -> TopicId {
        self.cluster_id
    }
}

impl LogDir {
    fn online(held: DataDir) -> Result<Self, DiskError> {
        let hints = Hints::read(&held)?;
        let path = held.path().to_owned();
        let (recovered, partitions) = (AtomicBool::new(false), AtomicUsize::new(0));
        let failure = OnceLock::new();
        Ok(Self { path, held: Some(held), failure, hints, recovered, partitions })
    }

    fn offline(path: PathBuf) -> Self {
        Self {
            path,
            held: None,
            failure: OnceLock::new(),
            hints: Hints::none(),
            recovered: AtomicBool::new(false),
            partitions: AtomicUsize::new(0),
        }
    }

    /// Where it is, or should be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it can be used.
    pub fn is_online(&self) -> bool {
        self.held.is_some() && self.failure.get().is_none()
    }

    /// What it failed with since the start.
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Takes it offline; returns whether it was online.
    fn fail(&self, why: String) -> bool {
        self.is_online() && self.failure.set(why).is_ok()
    }

    /// Its id; zero if it could not be opened.
    pub fn id(&self) -> DirectoryId {
        self.held.as_ref().map_or(DirectoryId::ZERO, DataDir::directory_id)
    }

    /// How it was left.
    pub fn shutdown(&self) -> Shutdown {
        self.held.as_ref().map_or(Shutdown::Unclean, DataDir::shutdown)
    }

    /// What its checkpoints said at start.
    pub fn hints(&self) -> &Hints {
        &self.hints
    }

    /// Whether every log that the last run left here was opened and found whole.
    pub fn is_recovered(&self) -> bool {
        self.recovered.load(Ordering::Acquire)
    }

    pub(crate) fn set_recovered(&self) {
        self.recovered.store(true, Ordering::Release);
    }

    /// Partitions that are here, also those that were never written.
    pub fn partition_count(&self) -> usize {
        self.partitions.load(Ordering::Relaxed)
    }

    pub(crate) fn partition_came(&self) {
        self.partitions.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn partition_went(&self) {
        self.partitions.fetch_sub(1, Ordering::Relaxed);
    }

    /// Notes that every log here was closed, so that the next start need not scan.
    pub fn mark_clean(&self) -> Result<(), DiskError> {
        self.held.as_ref().map_or(Ok(()), DataDir::mark_clean)
    }
}

/// All are of one cluster, none is a copy of another.
fn check_together(all: &[Arc<LogDir>]) -> Result<(), DataDirError> {
    let held: Vec<&DataDir> = all.iter().filter_map(|dir| dir.held.as_ref()).collect();
    for (at, dir) in held.iter().enumerate() {
        for earlier in held.iter().take(at) {
            let (first, second) = (earlier.path().to_owned(), dir.path().to_owned());
            let clusters = (earlier.cluster_id(), dir.cluster_id());
            if clusters.0 != clusters.1 {
                let (first_cluster, second_cluster) = clusters;
                return Err(DataDirError::TwoClusters {
                    first,
                    first_cluster,
                    second,
                    second_cluster,
                });
            }
            if earlier.directory_id() == dir.directory_id() {
                return Err(DataDirError::SameId { first, second, id: dir.directory_id() });
            }
        }
    }
    Ok(())
}

/// The directory that holds the metadata log, or is to hold it: the first.
fn with_metadata_log(
    all: &[Arc<LogDir>],
    failure: Option<DiskError>,
) -> Result<Arc<LogDir>, DataDirError> {
    let holds = |dir: &&Arc<LogDir>| dir.held.as_ref().is_some_and(DataDir::holds_metadata);
    let mut holders = all.iter().filter(holds);
    let found = match (holders.next(), holders.next()) {
        (Some(first), Some(second)) => {
            let (first, second) = (first.path.clone(), second.path.clone());
            return Err(DataDirError::TwoMetadataLogs { first, second });
        }
        (Some(holder), None) => Some(holder),
        (None, _) => None,
    };
    match (found, failure) {
        (Some(holder), _) => Ok(holder.clone()),
        (None, Some(source)) if all.len() == 1 => Err(source.into()),
        (None, Some(source)) => Err(DataDirError::WithoutMetadataLog { source }),
        (None, None) => {
            let first = all.first().cloned();
            first.ok_or_else(|| {
                let none = std::io::Error::other("no log directory is configured");
                DiskError::new("open", Path::new(""), none).into()
            })
        }
    }
}

#[cfg(test)]
mod tests;
