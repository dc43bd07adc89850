//! Copying folders, and giving the copies their names.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use duolog_log_core::storage::disk::Disk;
use duolog_log_core::storage::names::DELETED_SUFFIX;

use super::ImportError;
use super::looking::Source;
use crate::config::Config;
use crate::data_dir::IMPORT_SUFFIX;

/// Where the folders go: the first of the node's log directories, unless they lie in another already.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target<'a> {
    config: &'a Config,
}

impl<'a> Target<'a> {
    pub(super) const fn of(config: &'a Config) -> Self {
        Self { config }
    }

    /// The directory that takes the copies.
    pub(super) fn root(self) -> &'a Path {
        self.config.data_dir()
    }

    /// Where the node has a folder of this name.
    pub(super) fn held(self, name: &str) -> Option<PathBuf> {
        let places = self.config.log_dirs.iter().map(|dir| dir.join(name));
        places.into_iter().find(|place| place.exists())
    }

    /// Where it is until it is complete.
    pub(super) fn copy(self, name: &str) -> PathBuf {
        self.root().join(format!("{name}{IMPORT_SUFFIX}"))
    }

    /// Errors: a partition has its place and a copy beside it: after an import that was interrupted,
    /// somebody wrote to what there was of its topic.
    pub(super) fn check(self, source: &Source) -> Result<(), ImportError> {
        for (name, _) in source.folders() {
            let (place, copy) = (self.held(&name), self.copy(&name));
            if let Some(place) = place.filter(|_| copy.exists()) {
                let reason = format!(
                    "left by an import that was interrupted, and {} was made since: move one of them away",
                    place.display()
                );
                return Err(ImportError::Folder { folder: copy, reason });
            }
        }
        Ok(())
    }

    /// Copies the files of a partition, synced; returns how many bytes. What an earlier import left
    /// half copied goes first: the source may have dropped segments since. Nothing is done, and
    /// `None` returned, for one that has its place already.
    pub(super) fn take(self, name: &str, folder: &Path) -> Result<Option<u64>, ImportError> {
        if self.held(name).is_some() {
            return Ok(None);
        }
        let copy = self.copy(name);
        match fs::remove_dir_all(&copy) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed(&copy)(error));
            }
            Ok(()) | Err(_) => fs::create_dir_all(&copy).map_err(failed(&copy))?,
        }
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
        Ok(Some(bytes))
    }

    /// Gives the copies their places.
    pub(super) fn name_folders(self, disk: &dyn Disk, source: &Source) -> Result<(), ImportError> {
        for (name, _) in source.folders() {
            if self.held(&name).is_none() {
                disk.rename(&self.copy(&name), &self.root().join(&name))?;
            }
        }
        disk.sync_dir(self.root())?;
        Ok(())
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> ImportError {
    let path = path.to_owned();
    move |source| ImportError::Copy { path, source }
}
