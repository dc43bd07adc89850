//! A disk in memory that fails, fills up, tears writes and forgets what was not synced.
//!
//! Every file has two contents: what calls see, and what survives a power cut. [`DiskFile::sync`]
//! makes them equal; so does [`Disk::sync_dir`] for the names of a folder. [`MemDisk::crash`] cuts
//! the power: what was not synced is lost, kept or torn as the seed decides, each write for itself,
//! names of a folder, those of folders among them, in their order. Only `/` is always there. Faults are planned by counting calls that change something.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::storage::disk::{
    DirEntry, Disk, DiskError, DiskErrorKind, DiskFile, DiskLock, DiskResult, EntryKind, FileStat,
    MappedFile, OpenMode,
};

mod crash;
mod state;

pub use crash::{Crash, CrashLosses};
use state::{Node, State};

/// Shared by its clones, as one disk is by its handles.
#[derive(Clone, Debug, Default)]
pub struct MemDisk {
    state: Arc<Mutex<State>>,
}

/// What a planned fault does to the call that it hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The disk is full; a write leaves its first half behind.
    Full,
    /// No descriptor is free to open the file with: the call does nothing.
    OutOfFiles,
    /// The device failed; a write leaves its first half behind.
    Io,
    /// The machine stops: this call leaves a write's first half, and every later call fails.
    Halt,
}

impl MemDisk {
    /// An empty disk.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls so far that change something: create, write, truncate, sync, rename, remove.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Lets the call with this number (see [`Self::operations`], counted from 0) fail.
    pub fn fail_operation(&self, number: u64, fault: Fault) {
        self.state().faults.insert(number, fault);
    }

    /// Forgets planned faults that no call met.
    pub fn clear_faults(&self) {
        self.state().faults.clear();
    }

    /// From now on every call below `dir` that is named `operation` (`read`, `write`, `sync`, …) fails as
    /// one of a device that is broken.
    pub fn break_below(&self, dir: &Path, operation: &'static str) {
        self.state().broken.push((dir.to_owned(), operation));
    }

    /// Bytes that all files together may hold; writes above it fail as [`DiskErrorKind::Full`].
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state().capacity = bytes;
    }

    /// Bytes that all files hold together.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.state().used_bytes()
    }

    /// The time that later writes get as their file's time of change.
    pub fn set_now_ms(&self, now_ms: i64) {
        self.state().now_ms = now_ms;
    }

    /// Cuts the power and gives the disk as the next start finds it. Handles to the old one fail.
    #[must_use]
    pub fn crash(&self, how: Crash) -> Self {
        self.crash_counted(how).0
    }

    /// As [`Self::crash`], and what became of the writes that were not synced.
    #[must_use]
    pub fn crash_counted(&self, how: Crash) -> (Self, CrashLosses) {
        let mut state = self.state();
        let mut losses = CrashLosses::default();
        let survived = crash::survivor(&state, how, &mut losses);
        state.halted = true;
        (Self { state: Arc::new(Mutex::new(survived)) }, losses)
    }

    /// Whether the machine stopped, by a planned [`Fault::Halt`] or otherwise.
    #[must_use]
    pub fn is_halted(&self) -> bool {
        self.state().halted
    }

    /// Stops the process but not the machine: all that was written stays. Handles to the old disk
    /// fail.
    #[must_use]
    pub fn kill(&self) -> Self {
        let mut state = self.state();
        let survived = state.clone_for_next_process();
        state.halted = true;
        Self { state: Arc::new(Mutex::new(survived)) }
    }

    /// Replaces a file's content behind everybody's back, as if that had been written and synced.
    pub fn overwrite(&self, path: &Path, content: &[u8]) {
        self.state().overwrite(path, content);
    }

    /// A file's content as calls see it.
    pub fn content(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state();
        let inode = state.inode_at(path)?;
        state.inodes.get(&inode).map(|inode| inode.seen.clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk for MemDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> DiskResult<Arc<dyn DiskFile>> {
        let mut state = self.state();
        state.check_alive("open", path)?;
        let inode = match (state.inode_at(path), mode) {
            (Some(inode), OpenMode::Existing | OpenMode::CreateIfMissing) => inode,
            (None, OpenMode::Existing) => return Err(not_found("open", path)),
            (Some(inode), OpenMode::CreateEmpty) => {
                state.change("open", path)?;
                state.truncate(inode, 0);
                inode
            }
            (None, _) => {
                state.change("open", path)?;
                state.create(path)?
            }
        };
        Ok(Arc::new(MemFile { disk: self.clone(), inode, path: Mutex::new(path.to_owned()) }))
    }

    fn map(&self, path: &Path) -> DiskResult<Arc<dyn MappedFile>> {
        let file = self.open(path, OpenMode::Existing)?;
        let len = usize::try_from(file.len()?).unwrap_or(usize::MAX);
        let content = file.read_at(0, len)?;
        Ok(Arc::new(MemMap { file, content }))
    }

    fn stat(&self, path: &Path) -> DiskResult<FileStat> {
        let state = self.state();
        state.check_alive("stat", path)?;
        let inode = state.inode_at(path).and_then(|inode| state.inodes.get(&inode));
        let inode = inode.ok_or_else(|| not_found("stat", path))?;
        Ok(FileStat { len: inode.seen.len() as u64, modified_ms: inode.modified_ms })
    }

    fn list(&self, dir: &Path) -> DiskResult<Vec<DirEntry>> {
        let state = self.state();
        state.check_alive("list", dir)?;
        let names = state.dir_at(dir).and_then(|dir| state.dirs.get(&dir));
        let names = names.ok_or_else(|| not_found("list", dir))?;
        let entry = |(name, node): (&String, &Node)| {
            let kind = match node {
                Node::File(_) => EntryKind::File,
                Node::Dir(_) => EntryKind::Dir,
            };
            DirEntry { name: name.clone(), kind }
        };
        Ok(names.seen.iter().map(entry).collect())
    }

    fn create_dir_all(&self, dir: &Path) -> DiskResult<()> {
        let mut state = self.state();
        state.check_alive("create folder", dir)?;
        if state.dir_at(dir).is_some() {
            return Ok(());
        }
        state.change("create folder", dir)?;
        let ancestors: Vec<_> = dir.ancestors().collect();
        ancestors.into_iter().rev().try_for_each(|dir| state.create_dir(dir))
    }

    fn remove(&self, path: &Path) -> DiskResult<()> {
        let mut state = self.state();
        state.check_alive("remove", path)?;
        state.inode_at(path).ok_or_else(|| not_found("remove", path))?;
        state.change("remove", path)?;
        state.remove(path)
    }

    fn remove_dir_all(&self, dir: &Path) -> DiskResult<()> {
        let mut state = self.state();
        state.check_alive("remove folder", dir)?;
        state.dir_at(dir).ok_or_else(|| not_found("remove folder", dir))?;
        state.change("remove folder", dir)?;
        state.remove(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> DiskResult<()> {
        let mut state = self.state();
        state.check_alive("rename", from)?;
        state
            .inode_at(from)
            .or_else(|| state.dir_at(from))
            .ok_or_else(|| not_found("rename", from))?;
        state.change("rename", from)?;
        state.rename(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> DiskResult<()> {
        let mut state = self.state();
        state.check_alive("sync folder", dir)?;
        state.sync("sync folder", dir)?;
        let found = state.dir_at(dir).and_then(|dir| state.dirs.get_mut(&dir));
        found.ok_or_else(|| not_found("sync folder", dir))?.sync();
        Ok(())
    }

    fn lock(&self, path: &Path) -> DiskResult<Box<dyn DiskLock>> {
        self.open(path, OpenMode::CreateIfMissing)?;
        if !self.state().locks.insert(path.to_owned()) {
            return Err(DiskError {
                kind: DiskErrorKind::Locked,
                operation: "lock",
                path: path.to_owned(),
                source: io::Error::new(io::ErrorKind::WouldBlock, "held"),
            });
        }
        Ok(Box::new(MemLock { disk: self.clone(), path: path.to_owned() }))
    }
}

#[derive(Debug)]
struct MemMap {
    file: Arc<dyn DiskFile>,
    content: Bytes,
}

impl MappedFile for MemMap {
    fn content(&self) -> DiskResult<Bytes> {
        Ok(self.content.clone())
    }

    fn rename(&self, to: &Path) -> DiskResult<()> {
        self.file.rename(to)
    }
}

#[derive(Debug)]
struct MemLock {
    disk: MemDisk,
    path: PathBuf,
}

impl DiskLock for MemLock {}

impl Drop for MemLock {
    fn drop(&mut self) {
        self.disk.state().locks.remove(&self.path);
    }
}

#[derive(Debug)]
struct MemFile {
    disk: MemDisk,
    inode: u64,
    path: Mutex<PathBuf>,
}

impl MemFile {
    fn path(&self) -> PathBuf {
        self.path.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl DiskFile for MemFile {
    fn read_at(&self, position: u64, len: usize) -> DiskResult<Bytes> {
        let state = self.disk.state();
        state.check_alive("read", &self.path())?;
        let inode = state.inodes.get(&self.inode);
        let seen = &inode.ok_or_else(|| not_found("read", &self.path()))?.seen;
        let from = usize::try_from(position).unwrap_or(usize::MAX).min(seen.len());
        let to = from.saturating_add(len).min(seen.len());
        Ok(Bytes::copy_from_slice(seen.get(from..to).unwrap_or_default()))
    }

    fn write_at(&self, position: u64, pieces: &[IoSlice<'_>]) -> DiskResult<()> {
        let mut state = self.disk.state();
        let path = self.path();
        state.check_alive("write", &path)?;
        let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
        let refused = state.change("write", &path).err();
        let room = state.room_at(self.inode, position, bytes.len());
        let kept = match &refused {
            Some(error) if error.kind == DiskErrorKind::OutOfFiles => 0,
            Some(_) => room.min(bytes.len() / 2),
            None => room,
        };
        state.write(self.inode, position, bytes.get(..kept).unwrap_or_default());
        match refused {
            Some(error) => Err(error),
            None if kept < bytes.len() => Err(full("write", &path)),
            None => Ok(()),
        }
    }

    fn truncate(&self, len: u64) -> DiskResult<()> {
        let mut state = self.disk.state();
        state.check_alive("truncate", &self.path())?;
        state.change("truncate", &self.path())?;
        state.truncate(self.inode, len);
        Ok(())
    }

    fn sync(&self) -> DiskResult<()> {
        let mut state = self.disk.state();
        state.check_alive("sync", &self.path())?;
        state.sync("sync", &self.path())?;
        if let Some(inode) = state.inodes.get_mut(&self.inode) {
            inode.sync();
        }
        Ok(())
    }

    fn len(&self) -> DiskResult<u64> {
        let state = self.disk.state();
        state.check_alive("stat", &self.path())?;
        Ok(state.inodes.get(&self.inode).map_or(0, |inode| inode.seen.len() as u64))
    }

    fn rename(&self, to: &Path) -> DiskResult<()> {
        self.disk.rename(&self.path(), to)?;
        *self.path.lock().unwrap_or_else(PoisonError::into_inner) = to.to_owned();
        Ok(())
    }
}

fn not_found(operation: &'static str, path: &Path) -> DiskError {
    DiskError::new(operation, path, io::ErrorKind::NotFound.into())
}

fn full(operation: &'static str, path: &Path) -> DiskError {
    DiskError::new(operation, path, io::ErrorKind::StorageFull.into())
}

fn split(operation: &'static str, path: &Path) -> DiskResult<(PathBuf, String)> {
    let name = path.file_name().and_then(|name| name.to_str());
    match (path.parent(), name) {
        (Some(dir), Some(name)) => Ok((dir.to_owned(), name.to_owned())),
        _ => Err(not_found(operation, path)),
    }
}

type Inodes = BTreeMap<u64, state::Inode>;
type Locks = BTreeSet<PathBuf>;

#[cfg(test)]
mod tests;
