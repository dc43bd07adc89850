//! Copying folders, and giving the copies their names.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use duolog_log_core::storage::disk::Disk;
use duolog_log_core::storage::names::DELETED_SUFFIX;

use super::ImportError;
use super::looking::Source;
use crate::data_dir::IMPORT_SUFFIX;

/// Where the copy of `folder` has its place, and where it is until it is complete.
pub(super) fn places(folder: &Path, root: &Path) -> (PathBuf, PathBuf) {
    let name = folder.file_name().unwrap_or_default().to_owned();
    let mut copy = name.clone();
    copy.push(IMPORT_SUFFIX);
    (root.join(name), root.join(copy))
}

/// Errors: a partition has its place and a copy beside it: after an import that was interrupted,
/// somebody wrote to what there was of its topic.
pub(super) fn check_copies(source: &Source, root: &Path) -> Result<(), ImportError> {
    for folder in source.topics.values().flat_map(|found| found.folders.values()) {
        let (place, copy) = places(folder, root);
        if place.exists() && copy.exists() {
            let reason = format!(
                "left by an import that was interrupted, and {} was made since: move one of them away",
                place.display()
            );
            return Err(ImportError::Folder { folder: copy, reason });
        }
    }
    Ok(())
}

/// Copies the files of a partition, synced; returns how many bytes. Nothing is done for one that has
/// its place already. What an earlier import left half copied goes first: the source may have dropped
/// segments since.
pub(super) fn copy_folder(folder: &Path, root: &Path) -> Result<u64, ImportError> {
    let (place, copy) = places(folder, root);
    if place.exists() {
        return Ok(0);
    }
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ImportError::Copy { path, source }
    };
    match fs::remove_dir_all(&copy) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&copy)(error)),
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
    Ok(bytes)
}

/// Gives the copies their places.
pub(super) fn name_folders(
    disk: &dyn Disk,
    root: &Path,
    source: &Source,
) -> Result<(), ImportError> {
    for folder in source.topics.values().flat_map(|found| found.folders.values()) {
        let (place, copy) = places(folder, root);
        if !place.exists() {
            disk.rename(&copy, &place)?;
        }
    }
    disk.sync_dir(root)?;
    Ok(())
}
