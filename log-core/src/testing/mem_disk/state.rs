//! What a memory disk holds: names and contents, each as seen and as durable.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};

use super::{Fault, Inodes, Locks, full, not_found, split};
use crate::storage::disk::{DiskError, DiskErrorKind, DiskResult};

/// The folder `/`, which is always there.
const ROOT: u64 = 0;

#[derive(Debug)]
pub(super) struct State {
    pub(super) dirs: BTreeMap<u64, Names>,
    pub(super) inodes: Inodes,
    /// Of the next file or folder.
    next_id: u64,
    pub(super) operations: u64,
    pub(super) faults: BTreeMap<u64, Fault>,
    pub(super) capacity: Option<u64>,
    pub(super) now_ms: i64,
    pub(super) halted: bool,
    /// Folders, and which calls below them fail.
    pub(super) broken: Vec<(PathBuf, &'static str)>,
    pub(super) locks: Locks,
}

impl Default for State {
    fn default() -> Self {
        Self {
            dirs: BTreeMap::from([(ROOT, Names::default())]),
            inodes: Inodes::default(),
            next_id: ROOT + 1,
            operations: 0,
            faults: BTreeMap::new(),
            capacity: None,
            now_ms: 0,
            halted: false,
            broken: Vec::new(),
            locks: Locks::default(),
        }
    }
}

/// What carries a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Node {
    File(u64),
    Dir(u64),
}

/// The names of one folder: of files and of folders, which are forgotten alike.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    pub(super) seen: BTreeMap<String, Node>,
    pub(super) durable: BTreeMap<String, Node>,
    pub(super) unsynced: Vec<NameChange>,
}

impl Names {
    pub(super) fn sync(&mut self) {
        self.durable = self.seen.clone();
        self.unsynced.clear();
    }

    /// Everything that some name leads to, now or after a power cut.
    fn nodes(&self) -> impl Iterator<Item = Node> {
        let added = self.unsynced.iter().filter_map(|change| match change {
            NameChange::Add { node, .. } => Some(*node),
            NameChange::Remove { .. } | NameChange::Rename { .. } => None,
        });
        self.seen.values().chain(self.durable.values()).copied().chain(added)
    }
}

#[derive(Clone, Debug)]
pub(super) enum NameChange {
    Add { name: String, node: Node },
    Remove { name: String },
    Rename { from: String, to: String },
}

impl NameChange {
    pub(super) fn apply(&self, names: &mut BTreeMap<String, Node>) {
        match self {
            Self::Add { name, node } => _ = names.insert(name.clone(), *node),
            Self::Remove { name } => _ = names.remove(name),
            Self::Rename { from, to } => {
                if let Some(node) = names.remove(from) {
                    names.insert(to.clone(), node);
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
    /// Fails once the machine stopped, and where the device is broken.
    pub(super) fn check_alive(&self, operation: &'static str, path: &Path) -> DiskResult<()> {
        const EIO: i32 = 5;
        if self.halted {
            return Err(DiskError::new(operation, path, io::Error::other("the machine stopped")));
        }
        let is_it = |(dir, broken): &(PathBuf, &str)| *broken == operation && path.starts_with(dir);
        if !self.broken.iter().any(is_it) {
            return Ok(());
        }
        let error = io::Error::from_raw_os_error(EIO);
        Err(match operation {
            "sync" => DiskError::sync_failed(operation, path, error),
            _ => DiskError::new(operation, path, error),
        })
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

    /// As [`Self::change`], for a call that syncs.
    pub(super) fn sync(&mut self, operation: &'static str, path: &Path) -> DiskResult<()> {
        self.change(operation, path).map_err(|error| match error.kind {
            DiskErrorKind::OutOfFiles => error,
            _ => DiskError::sync_failed(operation, path, error.source),
        })
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

    /// The file of this path.
    pub(super) fn inode_at(&self, path: &Path) -> Option<u64> {
        match self.node_at(path)? {
            Node::File(inode) => Some(inode),
            Node::Dir(_) => None,
        }
    }

    /// The folder of this path.
    pub(super) fn dir_at(&self, path: &Path) -> Option<u64> {
        match self.node_at(path)? {
            Node::Dir(dir) => Some(dir),
            Node::File(_) => None,
        }
    }

    fn node_at(&self, path: &Path) -> Option<Node> {
        path.components().try_fold(Node::Dir(ROOT), |node, component| match (node, component) {
            (node, Component::RootDir | Component::CurDir) => Some(node),
            (Node::Dir(dir), Component::Normal(name)) => {
                self.dirs.get(&dir)?.seen.get(name.to_str()?).copied()
            }
            _ => None,
        })
    }

    pub(super) fn create(&mut self, path: &Path) -> DiskResult<u64> {
        let (dir, name) = split("open", path)?;
        let dir = self.dir_at(&dir).ok_or_else(|| not_found("open", path))?;
        let inode = self.fresh_id();
        self.inodes.insert(inode, Inode { modified_ms: self.now_ms, ..Inode::default() });
        self.change_name(dir, NameChange::Add { name, node: Node::File(inode) });
        Ok(inode)
    }

    /// Creates a folder below one that is there, unless it is there too.
    pub(super) fn create_dir(&mut self, path: &Path) -> DiskResult<()> {
        if self.dir_at(path).is_some() {
            return Ok(());
        }
        if self.inode_at(path).is_some() {
            let error = io::Error::from(io::ErrorKind::AlreadyExists);
            return Err(DiskError::new("create folder", path, error));
        }
        let (parent, name) = split("create folder", path)?;
        let parent = self.dir_at(&parent).ok_or_else(|| not_found("create folder", path))?;
        let dir = self.fresh_id();
        self.dirs.insert(dir, Names::default());
        self.change_name(parent, NameChange::Add { name, node: Node::Dir(dir) });
        Ok(())
    }

    const fn fresh_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
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

    pub(super) fn change_name(&mut self, dir: u64, change: NameChange) {
        let Some(names) = self.dirs.get_mut(&dir) else { return };
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

    /// Removes the name of a file, or of a folder after all names in it, as a system call could do
    /// it at best: a power cut may leave any of them.
    pub(super) fn remove(&mut self, path: &Path) -> DiskResult<()> {
        let (parent, name) = split("remove", path)?;
        let parent = self.dir_at(&parent).ok_or_else(|| not_found("remove", path))?;
        let dir = self.dir_at(path);
        let children = dir.and_then(|dir| self.dirs.get(&dir)).map(|names| names.seen.clone());
        for child in children.unwrap_or_default().into_keys() {
            self.remove(&path.join(child))?;
        }
        self.change_name(parent, NameChange::Remove { name });
        Ok(())
    }

    /// Both names must lie in one folder, as they do wherever logs are renamed.
    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> DiskResult<()> {
        let (dir, from_name) = split("rename", from)?;
        let (to_dir, to_name) = split("rename", to)?;
        if dir != to_dir {
            return Err(DiskError::invalid("rename", from, "across folders"));
        }
        if self.dir_at(to).is_some() {
            let source = io::ErrorKind::DirectoryNotEmpty.into();
            return Err(DiskError::new("rename", from, source));
        }
        let dir = self.dir_at(&dir).ok_or_else(|| not_found("rename", from))?;
        self.change_name(dir, NameChange::Rename { from: from_name, to: to_name });
        Ok(())
    }

    pub(super) fn overwrite(&mut self, path: &Path, content: &[u8]) {
        let inode = self.inode_at(path).or_else(|| self.create(path).ok());
        if let Some(inode) = inode.and_then(|inode| self.inodes.get_mut(&inode)) {
            inode.seen = content.to_vec();
            inode.sync();
        }
        for dir in path.ancestors().skip(1) {
            if let Some(names) = self.dir_at(dir).and_then(|dir| self.dirs.get_mut(&dir)) {
                names.sync();
            }
        }
    }

    /// The same disk for the next process: faults and locks were the old one's.
    pub(super) fn clone_for_next_process(&self) -> Self {
        Self {
            dirs: self.dirs.clone(),
            inodes: self.inodes.clone(),
            next_id: self.next_id,
            capacity: self.capacity,
            now_ms: self.now_ms,
            ..Self::default()
        }
    }

    /// Frees contents and folders that no name leads to any more, now or after a power cut. Reading
    /// through a handle then fails, as it may on the file disk, which closes and opens descriptors.
    pub(super) fn drop_unnamed(&mut self) {
        let mut named = BTreeSet::from([Node::Dir(ROOT)]);
        let mut unvisited = vec![ROOT];
        while let Some(names) = unvisited.pop().and_then(|dir| self.dirs.get(&dir)) {
            for node in names.nodes() {
                if named.insert(node)
                    && let Node::Dir(dir) = node
                {
                    unvisited.push(dir);
                }
            }
        }
        self.inodes.retain(|inode, _| named.contains(&Node::File(*inode)));
        self.dirs.retain(|dir, _| named.contains(&Node::Dir(*dir)));
    }
}
