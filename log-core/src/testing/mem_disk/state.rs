//! What a memory disk holds: names and contents, each as seen and as durable.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::{Fault, Inodes, Locks, full, not_found, split};
use crate::storage::disk::{DiskError, DiskResult};

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) dirs: BTreeMap<PathBuf, Names>,
    pub(super) inodes: Inodes,
    pub(super) next_inode: u64,
    pub(super) operations: u64,
    pub(super) faults: BTreeMap<u64, Fault>,
    pub(super) capacity: Option<u64>,
    pub(super) now_ms: i64,
    pub(super) halted: bool,
    pub(super) locks: Locks,
}

/// The names of one folder. Folders themselves are durable at once.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    pub(super) seen: BTreeMap<String, u64>,
    pub(super) durable: BTreeMap<String, u64>,
    pub(super) unsynced: Vec<NameChange>,
}

impl Names {
    pub(super) fn sync(&mut self) {
        self.durable = self.seen.clone();
        self.unsynced.clear();
    }
}

#[derive(Clone, Debug)]
pub(super) enum NameChange {
    Add { name: String, inode: u64 },
    Remove { name: String },
    Rename { from: String, to: String },
}

impl NameChange {
    pub(super) fn apply(&self, names: &mut BTreeMap<String, u64>) {
        match self {
            Self::Add { name, inode } => _ = names.insert(name.clone(), *inode),
            Self::Remove { name } => _ = names.remove(name),
            Self::Rename { from, to } => {
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }
        }
    }
}

/// One file's content.
#[derive(Clone, Debug, Default)]
pub(super) struct Inode {
    pub(super) seen: Vec<u8>,
    pub(super) durable: Vec<u8>,
    pub(super) unsynced: Vec<ContentChange>,
    pub(super) modified_ms: i64,
}

impl Inode {
    pub(super) fn sync(&mut self) {
        self.durable.clone_from(&self.seen);
        self.unsynced.clear();
    }
}

#[derive(Clone, Debug)]
pub(super) enum ContentChange {
    Write { position: usize, bytes: Vec<u8> },
    Truncate { len: usize },
}

impl ContentChange {
    pub(super) fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write { position, bytes } => {
                let end = position + bytes.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                if let Some(place) = content.get_mut(*position..end) {
                    place.copy_from_slice(bytes);
                }
            }
            Self::Truncate { len } => content.resize(*len, 0),
        }
    }
}

impl State {
    /// Fails once the machine stopped.
    pub(super) fn check_alive(&self, operation: &'static str, path: &Path) -> DiskResult<()> {
        if self.halted {
            return Err(DiskError::new(operation, path, io::Error::other("the machine stopped")));
        }
        Ok(())
    }

    /// Counts a call that changes something; fails when a fault is planned for it.
    pub(super) fn change(&mut self, operation: &'static str, path: &Path) -> DiskResult<()> {
        let number = self.operations;
        self.operations += 1;
        match self.faults.remove(&number) {
            None => Ok(()),
            Some(Fault::Full) => Err(full(operation, path)),
            Some(Fault::OutOfFiles) => {
                const EMFILE: i32 = 24;
                Err(DiskError::new(operation, path, io::Error::from_raw_os_error(EMFILE)))
            }
            Some(fault) => {
                self.halted = fault == Fault::Halt;
                Err(DiskError::new(operation, path, io::Error::other("planned fault")))
            }
        }
    }

    pub(super) fn used_bytes(&self) -> u64 {
        self.inodes.values().map(|inode| inode.seen.len() as u64).sum()
    }

    /// How many of `len` bytes at `position` fit below the capacity.
    pub(super) fn room_at(&self, inode: u64, position: u64, len: usize) -> usize {
        let Some(capacity) = self.capacity else { return len };
        let held = self.inodes.get(&inode).map_or(0, |inode| inode.seen.len() as u64);
        let free = capacity.saturating_sub(self.used_bytes());
        let fits = held.saturating_sub(position).saturating_add(free);
        len.min(usize::try_from(fits).unwrap_or(usize::MAX))
    }

    pub(super) fn inode_at(&self, path: &Path) -> Option<u64> {
        let name = path.file_name()?.to_str()?;
        self.dirs.get(path.parent()?)?.seen.get(name).copied()
    }

    pub(super) fn create(&mut self, path: &Path) -> DiskResult<u64> {
        let (dir, name) = split("open", path)?;
        if !self.dirs.contains_key(&dir) {
            return Err(not_found("open", path));
        }
        let inode = self.next_inode;
        self.next_inode += 1;
        self.inodes.insert(inode, Inode { modified_ms: self.now_ms, ..Inode::default() });
        self.change_name(&dir, NameChange::Add { name, inode });
        Ok(inode)
    }

    pub(super) fn write(&mut self, inode: u64, position: u64, bytes: &[u8]) {
        let position = usize::try_from(position).unwrap_or(usize::MAX);
        self.change_content(inode, ContentChange::Write { position, bytes: bytes.to_vec() });
    }

    pub(super) fn truncate(&mut self, inode: u64, len: u64) {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        self.change_content(inode, ContentChange::Truncate { len });
    }

    fn change_content(&mut self, inode: u64, change: ContentChange) {
        let now_ms = self.now_ms;
        if let Some(inode) = self.inodes.get_mut(&inode) {
            change.apply(&mut inode.seen);
            inode.unsynced.push(change);
            inode.modified_ms = now_ms;
        }
    }

    pub(super) fn change_name(&mut self, dir: &Path, change: NameChange) {
        let Some(names) = self.dirs.get_mut(dir) else { return };
        let unnames = match &change {
            NameChange::Add { .. } => false,
            NameChange::Remove { .. } => true,
            NameChange::Rename { to, .. } => names.seen.contains_key(to),
        };
        change.apply(&mut names.seen);
        names.unsynced.push(change);
        if unnames {
            self.drop_unnamed();
        }
    }

    /// Both names must lie in one folder, as they do in a log.
    pub(super) fn rename_file(&mut self, from: &Path, to: &Path) -> DiskResult<()> {
        let (dir, from_name) = split("rename", from)?;
        let (to_dir, to_name) = split("rename", to)?;
        if dir != to_dir {
            return Err(DiskError::invalid("rename", from, "across folders"));
        }
        self.change_name(&dir, NameChange::Rename { from: from_name, to: to_name });
        Ok(())
    }

    pub(super) fn rename_dir(&mut self, from: &Path, to: &Path) {
        let dirs = std::mem::take(&mut self.dirs);
        for (path, names) in dirs {
            let path = match path.strip_prefix(from) {
                Ok(rest) if rest.as_os_str().is_empty() => to.to_owned(),
                Ok(rest) => to.join(rest),
                Err(_) => path,
            };
            self.dirs.insert(path, names);
        }
    }

    pub(super) fn overwrite(&mut self, path: &Path, content: &[u8]) {
        let inode = self.inode_at(path).or_else(|| self.create(path).ok());
        if let Some(inode) = inode.and_then(|inode| self.inodes.get_mut(&inode)) {
            inode.seen = content.to_vec();
            inode.sync();
        }
        if let Some(names) = path.parent().and_then(|dir| self.dirs.get_mut(dir)) {
            names.sync();
        }
    }

    /// The same disk for the next process: faults and locks were the old one's.
    pub(super) fn clone_for_next_process(&self) -> Self {
        Self {
            dirs: self.dirs.clone(),
            inodes: self.inodes.clone(),
            next_inode: self.next_inode,
            capacity: self.capacity,
            now_ms: self.now_ms,
            ..Self::default()
        }
    }

    /// Frees contents that no name leads to any more, now or after a power cut. Reading through a
    /// handle then fails, as it may on the file disk, which closes and opens descriptors.
    fn drop_unnamed(&mut self) {
        let named: std::collections::BTreeSet<u64> = self
            .dirs
            .values()
            .flat_map(|names| {
                let added = names.unsynced.iter().filter_map(|change| match change {
                    NameChange::Add { inode, .. } => Some(*inode),
                    NameChange::Remove { .. } | NameChange::Rename { .. } => None,
                });
                names.seen.values().chain(names.durable.values()).copied().chain(added)
            })
            .collect();
        self.inodes.retain(|inode, _| named.contains(inode));
    }
}
