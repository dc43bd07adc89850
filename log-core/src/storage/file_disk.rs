//! The real disk: files of the operating system, of which only so many are open at once.
//!
//! A handle stays usable when its descriptor was closed to make room: the next call opens the file
//! again, under the name it then has. So ten thousand logs need ten thousand handles but few
//! descriptors. Mappings are bounded in the same way. When the process has no descriptor left, files
//! that rest are closed for the one that is needed.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use rustix::buffer::spare_capacity;

use super::disk::{
    DirEntry, Disk, DiskError, DiskErrorKind, DiskFile, DiskLock, DiskResult, EntryKind, FileStat,
    MappedFile, OpenMode, is_out_of_files,
};
use super::mmap;
use crate::limits;

mod pool;

use pool::{Closable, Pool, lock};

/// Pieces given to one system call; Linux refuses more than 1024.
const PIECES_MAX: usize = 1024;

/// Files below the folders that callers name.
#[derive(Debug)]
pub struct FileDisk {
    descriptors: Arc<Pool>,
    mappings: Arc<Pool>,
}

impl FileDisk {
    /// At most `open_files_max` descriptors and `mapped_files_max` mappings stay open between
    /// calls.
    #[must_use]
    pub fn new(open_files_max: usize, mapped_files_max: usize) -> Self {
        Self { descriptors: Pool::new(open_files_max), mappings: Pool::new(mapped_files_max) }
    }
}

impl Default for FileDisk {
    /// Bounded by [`limits::OPEN_FILES_MAX`] and [`limits::MAPPED_FILES_MAX`].
    fn default() -> Self {
        Self::new(limits::OPEN_FILES_MAX, limits::MAPPED_FILES_MAX)
    }
}

impl Disk for FileDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> DiskResult<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        match mode {
            OpenMode::Existing => {}
            OpenMode::CreateIfMissing => _ = options.create(true).truncate(false),
            OpenMode::CreateEmpty => _ = options.create(true).truncate(true),
        }
        let file = self.descriptors.with_room(|| options.open(path));
        let file = file.map_err(|e| DiskError::new("open", path, e))?;
        let handle = Arc::new_cyclic(|this| Handle {
            place: Mutex::new(Place { path: path.to_owned(), file: Some(Arc::new(file)) }),
            used: AtomicBool::new(true),
            descriptors: Arc::clone(&self.descriptors),
            this: Weak::clone(this),
        });
        self.descriptors.opened(&handle.holder());
        Ok(handle)
    }

    fn map(&self, path: &Path) -> DiskResult<Arc<dyn MappedFile>> {
        let mapping = Arc::new_cyclic(|this| Mapping {
            place: Mutex::new(MappedPlace { path: path.to_owned(), content: None }),
            used: AtomicBool::new(true),
            descriptors: Arc::clone(&self.descriptors),
            mappings: Arc::clone(&self.mappings),
            this: Weak::clone(this),
        });
        mapping.content()?;
        Ok(mapping)
    }

    fn stat(&self, path: &Path) -> DiskResult<FileStat> {
        let metadata = fs::metadata(path).map_err(|e| DiskError::new("stat", path, e))?;
        let modified = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let modified_ms = modified.and_then(|since| i64::try_from(since.as_millis()).ok());
        Ok(FileStat { len: metadata.len(), modified_ms: modified_ms.unwrap_or(0) })
    }

    fn list(&self, dir: &Path) -> DiskResult<Vec<DirEntry>> {
        let failed = |e| DiskError::new("list", dir, e);
        let mut entries = Vec::new();
        for entry in self.descriptors.with_room(|| fs::read_dir(dir)).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            // A name that is not UTF-8 is none of ours.
            let Ok(name) = entry.file_name().into_string() else { continue };
            let is_dir = entry.file_type().map_err(failed)?.is_dir();
            let kind = if is_dir { EntryKind::Dir } else { EntryKind::File };
            entries.push(DirEntry { name, kind });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn create_dir_all(&self, dir: &Path) -> DiskResult<()> {
        fs::create_dir_all(dir).map_err(|e| DiskError::new("create folder", dir, e))
    }

    fn remove(&self, path: &Path) -> DiskResult<()> {
        fs::remove_file(path).map_err(|e| DiskError::new("remove", path, e))
    }

    fn remove_dir_all(&self, dir: &Path) -> DiskResult<()> {
        fs::remove_dir_all(dir).map_err(|e| DiskError::new("remove folder", dir, e))
    }

    fn rename(&self, from: &Path, to: &Path) -> DiskResult<()> {
        fs::rename(from, to).map_err(|e| DiskError::new("rename", from, e))
    }

    fn sync_dir(&self, dir: &Path) -> DiskResult<()> {
        let opened = self.descriptors.with_room(|| File::open(dir));
        let opened = opened.map_err(|e| DiskError::new("sync folder", dir, e))?;
        opened.sync_all().map_err(|e| DiskError::sync_failed("sync folder", dir, e))
    }

    fn lock(&self, path: &Path) -> DiskResult<Box<dyn DiskLock>> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|e| DiskError::new("open", path, e))?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(FileLock { _file: file })),
            Err(TryLockError::WouldBlock) => Err(DiskError {
                kind: DiskErrorKind::Locked,
                operation: "lock",
                path: path.to_owned(),
                source: io::Error::new(io::ErrorKind::WouldBlock, "held by another process"),
            }),
            Err(TryLockError::Error(e)) => Err(DiskError::new("lock", path, e)),
        }
    }
}

/// The lock goes with the descriptor.
#[derive(Debug)]
struct FileLock {
    _file: File,
}

impl DiskLock for FileLock {}

#[derive(Debug)]
struct Handle {
    place: Mutex<Place>,
    /// Whether it served a call since it was last looked at.
    used: AtomicBool,
    descriptors: Arc<Pool>,
    /// Itself, as the pool keeps it.
    this: Weak<Self>,
}

/// Where a handle's file is, and its descriptor while it has one.
#[derive(Debug)]
struct Place {
    path: PathBuf,
    file: Option<Arc<File>>,
}

impl Handle {
    /// The open file; no lock is held while the caller uses it.
    fn file(&self) -> DiskResult<Arc<File>> {
        self.used.store(true, Ordering::Relaxed);
        let mut place = lock(&self.place);
        if let Some(file) = &place.file {
            return Ok(Arc::clone(file));
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let file = self.descriptors.with_room(|| options.open(&place.path));
        let file = Arc::new(file.map_err(|e| DiskError::new("open", &place.path, e))?);
        place.file = Some(Arc::clone(&file));
        drop(place);
        self.descriptors.opened(&self.holder());
        Ok(file)
    }

    fn holder(&self) -> Weak<dyn Closable> {
        Weak::<Self>::clone(&self.this)
    }

    fn failed(&self, operation: &'static str, source: impl Into<io::Error>) -> DiskError {
        DiskError::new(operation, &lock(&self.place).path, source.into())
    }
}

impl Closable for Handle {
    fn take_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    fn close(&self) -> bool {
        let Ok(mut place) = self.place.try_lock() else { return false };
        place.file = None;
        true
    }
}

impl DiskFile for Handle {
    fn read_at(&self, position: u64, len: usize) -> DiskResult<Bytes> {
        let file = self.file()?;
        let mut buffer = Vec::with_capacity(len);
        while buffer.len() < len {
            let at = position.saturating_add(buffer.len() as u64);
            match rustix::io::pread(&*file, spare_capacity(&mut buffer), at) {
                Ok(0) => break,
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(self.failed("read", e)),
            }
        }
        buffer.truncate(len);
        Ok(Bytes::from(buffer))
    }

    fn write_at(&self, position: u64, pieces: &[IoSlice<'_>]) -> DiskResult<()> {
        let file = self.file()?;
        let mut position = position;
        let mut pieces = pieces.to_vec();
        let mut pieces = pieces.as_mut_slice();
        IoSlice::advance_slices(&mut pieces, 0);
        while !pieces.is_empty() {
            let some = pieces.get(..PIECES_MAX).unwrap_or(pieces);
            match rustix::io::pwritev(&*file, some, position) {
                Ok(0) => return Err(self.failed("write", io::ErrorKind::WriteZero)),
                Ok(written) => {
                    position = position.saturating_add(written as u64);
                    IoSlice::advance_slices(&mut pieces, written);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(self.failed("write", e)),
            }
        }
        Ok(())
    }

    fn truncate(&self, len: u64) -> DiskResult<()> {
        self.file()?.set_len(len).map_err(|e| self.failed("truncate", e))
    }

    fn sync(&self) -> DiskResult<()> {
        let synced = self.file()?.sync_data();
        synced.map_err(|e| DiskError::sync_failed("sync", &lock(&self.place).path, e))
    }

    fn len(&self) -> DiskResult<u64> {
        let metadata = self.file()?.metadata();
        Ok(metadata.map_err(|e| self.failed("stat", e))?.len())
    }

    fn rename(&self, to: &Path) -> DiskResult<()> {
        let mut place = lock(&self.place);
        fs::rename(&place.path, to).map_err(|e| DiskError::new("rename", &place.path, e))?;
        place.path = to.to_owned();
        Ok(())
    }
}

/// A mapped file; the mapping goes and comes back as the pool has room.
#[derive(Debug)]
struct Mapping {
    place: Mutex<MappedPlace>,
    used: AtomicBool,
    descriptors: Arc<Pool>,
    mappings: Arc<Pool>,
    this: Weak<Self>,
}

/// Where a mapped file is, and its content while it is mapped.
#[derive(Debug)]
struct MappedPlace {
    path: PathBuf,
    content: Option<Bytes>,
}

impl MappedFile for Mapping {
    fn content(&self) -> DiskResult<Bytes> {
        self.used.store(true, Ordering::Relaxed);
        let mut place = lock(&self.place);
        if let Some(content) = &place.content {
            // What somebody has cut behind our back must not be touched where it was: that is a
            // signal that ends the process. A file that has no name any more is whole.
            let len = fs::metadata(&place.path).map_or(content.len() as u64, |held| held.len());
            if len == content.len() as u64 {
                return Ok(content.clone());
            }
            place.content = None;
        }
        let file = self.descriptors.with_room(|| File::open(&place.path));
        let file = file.map_err(|e| DiskError::new("open", &place.path, e))?;
        let mapped = mmap::map(&file).map_err(|e| DiskError::new("map", &place.path, e))?;
        place.content = Some(mapped.clone());
        drop(place);
        let holder: Weak<dyn Closable> = Weak::<Self>::clone(&self.this);
        self.mappings.opened(&holder);
        Ok(mapped)
    }

    fn rename(&self, to: &Path) -> DiskResult<()> {
        let mut place = lock(&self.place);
        fs::rename(&place.path, to).map_err(|e| DiskError::new("rename", &place.path, e))?;
        place.path = to.to_owned();
        Ok(())
    }
}

impl Closable for Mapping {
    fn take_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    fn close(&self) -> bool {
        let Ok(mut place) = self.place.try_lock() else { return false };
        place.content = None;
        true
    }
}

#[cfg(test)]
mod tests;
