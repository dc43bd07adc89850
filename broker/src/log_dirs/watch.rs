//! A disk that takes log directories offline.
//!
//! Whoever makes a call that the device fails, on whatever thread, need not know what follows: each answer
//! passes here. A disk that is full, a lack of descriptors or a file that is not there is no failure.
//! Source: KIP-112; LogDirFailureChannel.

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use duolog_log_core::storage::disk::{
    DirEntry, Disk, DiskError, DiskErrorKind, DiskFile, DiskLock, DiskResult, FileStat, MappedFile,
    OpenMode,
};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::LogDir;

/// The directories that are watched, and those that have failed.
#[derive(Debug)]
pub(super) struct Watch {
    disk: Arc<dyn Disk>,
    dirs: Vec<Arc<LogDir>>,
    failed: Mutex<VecDeque<Arc<LogDir>>>,
    news: Notify,
}

impl Watch {
    pub(super) fn new(disk: Arc<dyn Disk>, dirs: Vec<Arc<LogDir>>) -> Arc<Self> {
        Arc::new(Self { disk, dirs, failed: Mutex::default(), news: Notify::new() })
    }

    /// The next directory that has failed: each comes once. For one who waits.
    pub(super) async fn next_failed(&self) -> Arc<LogDir> {
        loop {
            let failed = self.failed.lock().pop_front();
            match failed {
                Some(dir) => return dir,
                None => self.news.notified().await,
            }
        }
    }

    fn seen<T>(&self, outcome: DiskResult<T>) -> DiskResult<T> {
        outcome.inspect_err(|error| {
            if is_failure(error) {
                self.fail(error);
            }
        })
    }

    /// As [`Self::seen`], of a call that needs the folder above its path: where that is missing, its
    /// directory may have gone as a whole.
    fn seen_inside<T>(&self, outcome: DiskResult<T>) -> DiskResult<T> {
        self.seen(outcome).inspect_err(|error| {
            let dir = || self.dir_of(&error.path);
            if error.is_not_found() && dir().is_some_and(|dir| self.disk.list(dir.path()).is_err())
            {
                self.fail(error);
            }
        })
    }

    /// The directory that a path is in: of two that are one in the other the inner one.
    fn dir_of(&self, path: &Path) -> Option<&Arc<LogDir>> {
        let above = self.dirs.iter().filter(|dir| path.starts_with(dir.path()));
        above.max_by_key(|dir| dir.path().as_os_str().len())
    }

    fn fail(&self, error: &DiskError) {
        let Some(dir) = self.dir_of(&error.path) else { return };
        if dir.fail(error.to_string()) {
            self.failed.lock().push_back(dir.clone());
            self.news.notify_one();
        }
    }
}

/// Whether the device cannot be relied on after this.
fn is_failure(error: &DiskError) -> bool {
    match error.kind {
        // Of what was not written, only that file is in doubt.
        DiskErrorKind::SyncFailed => !matches!(
            error.source.kind(),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
        ),
        DiskErrorKind::Io => !matches!(
            error.source.kind(),
            ErrorKind::OutOfMemory
                | ErrorKind::Interrupted
                | ErrorKind::AlreadyExists
                | ErrorKind::DirectoryNotEmpty
        ),
        DiskErrorKind::NotFound
        | DiskErrorKind::Full
        | DiskErrorKind::OutOfFiles
        | DiskErrorKind::Locked => false,
    }
}

/// The disk itself.
#[derive(Debug)]
pub(super) struct WatchedDisk(pub(super) Arc<Watch>);

impl Disk for WatchedDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> DiskResult<Arc<dyn DiskFile>> {
        let opened = self.0.disk.open(path, mode);
        let file = match mode {
            OpenMode::Existing => self.0.seen(opened),
            OpenMode::CreateIfMissing | OpenMode::CreateEmpty => self.0.seen_inside(opened),
        }?;
        Ok(Arc::new(WatchedFile { file, watch: self.0.clone() }))
    }

    fn map(&self, path: &Path) -> DiskResult<Arc<dyn MappedFile>> {
        let file = self.0.seen(self.0.disk.map(path))?;
        Ok(Arc::new(WatchedMap { file, watch: self.0.clone() }))
    }

    fn stat(&self, path: &Path) -> DiskResult<FileStat> {
        self.0.seen(self.0.disk.stat(path))
    }

    fn list(&self, dir: &Path) -> DiskResult<Vec<DirEntry>> {
        self.0.seen_inside(self.0.disk.list(dir))
    }

    fn create_dir_all(&self, dir: &Path) -> DiskResult<()> {
        self.0.seen(self.0.disk.create_dir_all(dir))
    }

    fn remove(&self, path: &Path) -> DiskResult<()> {
        self.0.seen(self.0.disk.remove(path))
    }

    fn remove_dir_all(&self, dir: &Path) -> DiskResult<()> {
        self.0.seen(self.0.disk.remove_dir_all(dir))
    }

    fn rename(&self, from: &Path, to: &Path) -> DiskResult<()> {
        self.0.seen(self.0.disk.rename(from, to))
    }

    fn sync_dir(&self, dir: &Path) -> DiskResult<()> {
        self.0.seen_inside(self.0.disk.sync_dir(dir))
    }

    fn lock(&self, path: &Path) -> DiskResult<Box<dyn DiskLock>> {
        self.0.seen(self.0.disk.lock(path))
    }
}

#[derive(Debug)]
struct WatchedFile {
    file: Arc<dyn DiskFile>,
    watch: Arc<Watch>,
}

impl DiskFile for WatchedFile {
    fn read_at(&self, position: u64, len: usize) -> DiskResult<Bytes> {
        self.watch.seen(self.file.read_at(position, len))
    }

    fn write_at(&self, position: u64, pieces: &[IoSlice<'_>]) -> DiskResult<()> {
        self.watch.seen(self.file.write_at(position, pieces))
    }

    fn truncate(&self, len: u64) -> DiskResult<()> {
        self.watch.seen(self.file.truncate(len))
    }

    fn sync(&self) -> DiskResult<()> {
        self.watch.seen(self.file.sync())
    }

    fn len(&self) -> DiskResult<u64> {
        self.watch.seen(self.file.len())
    }

    fn rename(&self, to: &Path) -> DiskResult<()> {
        self.watch.seen(self.file.rename(to))
    }
}

#[derive(Debug)]
struct WatchedMap {
    file: Arc<dyn MappedFile>,
    watch: Arc<Watch>,
}

impl MappedFile for WatchedMap {
    fn content(&self) -> DiskResult<Bytes> {
        self.watch.seen(self.file.content())
    }

    fn rename(&self, to: &Path) -> DiskResult<()> {
        self.watch.seen(self.file.rename(to))
    }
}
