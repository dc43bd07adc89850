//! The port to files: what a log needs of a disk, and nothing that a simulator could not give.
//!
//! Writing is apart from making durable. A write may be lost at a crash until [`DiskFile::sync`] returned, a created,
//! renamed or removed name until [`Disk::sync_dir`] of its folder did. Implementations: `file_disk` (the real one,
//! feature `file`) and `testing::mem_disk` (fails, tears and forgets on demand).

use std::fmt;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

/// A folder tree. Calls block until the operating system answers.
pub trait Disk: fmt::Debug + Send + Sync {
    /// Opens the file at `path` for reading and writing.
    fn open(&self, path: &Path, mode: OpenMode) -> DiskResult<Arc<dyn DiskFile>>;

    /// The content of a file that nobody writes to or cuts any more, as memory.
    fn map(&self, path: &Path) -> DiskResult<Arc<dyn MappedFile>>;

    /// Length and time of last change.
    fn stat(&self, path: &Path) -> DiskResult<FileStat>;

    /// The entries of a folder, sorted by name.
    fn list(&self, dir: &Path) -> DiskResult<Vec<DirEntry>>;

    /// Creates a folder and those above it; an existing one is left alone. A power cut may take each
    /// of them, with all that is in it, until the folder above it is synced: see
    /// [`create_durable_dir_all`].
    fn create_dir_all(&self, dir: &Path) -> DiskResult<()>;

    /// Removes a file. Errors: [`DiskErrorKind::NotFound`].
    fn remove(&self, path: &Path) -> DiskResult<()>;

    /// Removes a folder with all that is in it.
    fn remove_dir_all(&self, dir: &Path) -> DiskResult<()>;

    /// Gives a file or folder another name, replacing a file of that name in one step.
    fn rename(&self, from: &Path, to: &Path) -> DiskResult<()>;

    /// Makes created, renamed and removed names of `dir` durable.
    fn sync_dir(&self, dir: &Path) -> DiskResult<()>;

    /// Takes the file at `path` for this process alone, creating it; held until dropped.
    ///
    /// Errors: [`DiskErrorKind::Locked`] when another holder has it; never waits.
    fn lock(&self, path: &Path) -> DiskResult<Box<dyn DiskLock>>;
}

/// Creates a folder and those above it, and makes the names of those that were not there durable.
pub fn create_durable_dir_all(disk: &dyn Disk, dir: &Path) -> DiskResult<()> {
    let is_missing = |dir: &&Path| disk.list(dir).is_err_and(|error| error.is_not_found());
    let named = dir.ancestors().filter(|dir| !dir.as_os_str().is_empty());
    let created: Vec<&Path> = named.take_while(is_missing).collect();
    disk.create_dir_all(dir)?;
    for parent in created.iter().rev().filter_map(|dir| dir.parent()) {
        let is_here = parent.as_os_str().is_empty();
        disk.sync_dir(if is_here { Path::new(".") } else { parent })?;
    }
    Ok(())
}

/// One open file. Shared between one writer and many readers.
pub trait DiskFile: fmt::Debug + Send + Sync {
    /// Reads up to `len` bytes from `position` on; fewer only at the end of the file.
    fn read_at(&self, position: u64, len: usize) -> DiskResult<Bytes>;

    /// Writes `pieces`, one after the other, from `position` on, in as few calls as possible.
    ///
    /// On an error any part of them may have been written.
    fn write_at(&self, position: u64, pieces: &[IoSlice<'_>]) -> DiskResult<()>;

    /// Cuts the file to `len` bytes.
    fn truncate(&self, len: u64) -> DiskResult<()>;

    /// Makes content and length durable.
    fn sync(&self) -> DiskResult<()>;

    /// Length in bytes.
    fn len(&self) -> DiskResult<u64>;

    /// Whether the file holds no byte.
    fn is_empty(&self) -> DiskResult<bool> {
        Ok(self.len()? == 0)
    }

    /// Gives this file another name; reads through this handle go on. See [`Disk::rename`].
    fn rename(&self, to: &Path) -> DiskResult<()>;
}

/// A file whose content is final, mapped where the system has mappings.
pub trait MappedFile: fmt::Debug + Send + Sync {
    /// All of it. Drop it soon: only so many mappings are kept.
    fn content(&self) -> DiskResult<Bytes>;

    /// Gives the file another name; [`Self::content`] goes on. See [`Disk::rename`].
    fn rename(&self, to: &Path) -> DiskResult<()>;
}

/// Keeps a file to this process; see [`Disk::lock`].
pub trait DiskLock: fmt::Debug + Send + Sync {}

/// What [`Disk::open`] does about a file that is, or is not, there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// It must be there.
    Existing,
    /// It is created when missing.
    CreateIfMissing,
    /// It is emptied when there, created when not.
    CreateEmpty,
}

/// See [`Disk::stat`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStat {
    /// Length in bytes.
    pub len: u64,
    /// Time of last change in milliseconds since 1970; 0 where the disk knows none.
    pub modified_ms: i64,
}

/// See [`Disk::list`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// File name without the folder.
    pub name: String,
    /// What carries the name.
    pub kind: EntryKind,
}

/// See [`DirEntry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A file.
    File,
    /// A folder.
    Dir,
}

/// What the calls of this port answer.
pub type DiskResult<T> = Result<T, DiskError>;

/// A call that failed: what was tried, on which path, and why.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {}: {source}", path.display())]
pub struct DiskError {
    /// What a caller branches on.
    pub kind: DiskErrorKind,
    /// The call, as a verb.
    pub operation: &'static str,
    /// The file or folder.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// See [`DiskError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskErrorKind {
    /// No such file or folder.
    NotFound,
    /// The disk, this user's share of it or the file by its limit is full: worth trying again later.
    Full,
    /// No descriptor is free, in the process or the system: the call did nothing and is worth trying
    /// again later.
    OutOfFiles,
    /// A sync was tried and failed: what was written before may be lost, even when a later sync of the
    /// same file succeeds.
    SyncFailed,
    /// Another holder has the lock.
    Locked,
    /// Anything else.
    Io,
}

impl DiskError {
    /// Names the call and path of a system error.
    #[must_use]
    pub fn new(operation: &'static str, path: &Path, source: io::Error) -> Self {
        let kind = match source.kind() {
            io::ErrorKind::NotFound => DiskErrorKind::NotFound,
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => DiskErrorKind::Full,
            _ if is_out_of_files(&source) => DiskErrorKind::OutOfFiles,
            _ => DiskErrorKind::Io,
        };
        Self { kind, operation, path: path.to_owned(), source }
    }

    /// Content that is not what it must be.
    #[must_use]
    pub fn invalid(operation: &'static str, path: &Path, reason: impl fmt::Display) -> Self {
        let source = io::Error::new(io::ErrorKind::InvalidData, reason.to_string());
        Self { kind: DiskErrorKind::Io, operation, path: path.to_owned(), source }
    }

    /// A sync that was tried and failed, for whatever reason.
    #[must_use]
    pub fn sync_failed(operation: &'static str, path: &Path, source: io::Error) -> Self {
        Self { kind: DiskErrorKind::SyncFailed, operation, path: path.to_owned(), source }
    }

    /// Whether nothing is lost and the same call may succeed later.
    #[must_use]
    pub const fn is_retriable(&self) -> bool {
        matches!(self.kind, DiskErrorKind::Full | DiskErrorKind::OutOfFiles)
    }

    /// Whether the path does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.kind == DiskErrorKind::NotFound
    }
}

/// Whether the process (EMFILE) or the system (ENFILE) has no descriptor left. Both numbers are the
/// same on every Unix.
pub(crate) fn is_out_of_files(error: &io::Error) -> bool {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    matches!(error.raw_os_error(), Some(ENFILE | EMFILE))
}
