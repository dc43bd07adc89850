//! Folders of deleted topics: renamed at once, removed a little later, as Kafka does.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use duolog_log_core::ids::TopicId;
use duolog_log_core::storage::checkpoint::read_topic_id;
use duolog_log_core::storage::disk::{Disk, DiskError, DiskResult, EntryKind};

use super::{Partition, Partitions, Shared, checkpoints, folder};
use crate::controller::image::Image;
use crate::controller::names::METADATA_TOPIC;
use crate::log_dirs::LogDir;
use crate::random;

/// Behind the name of a folder that is being removed.
const DELETE_SUFFIX: &str = "-delete";

/// Behind the name of a folder that no topic knows.
const STRAY_SUFFIX: &str = "-stray";

/// Longest name that file systems take.
const FOLDER_NAME_BYTES_MAX: usize = 255;

/// Ends the partitions of one deleted topic, renames their folders, and takes them out of the
/// checkpoints; the removal follows in the background after `file.delete.delay.ms`.
///
/// Errors: a folder may still have its name, or a checkpoint an offset that a topic of the same name
/// would be taken for. [`delete_leftovers`] tries again. Needs no room on the disk but for checkpoints.
pub async fn delete_folders(
    partitions: &Arc<Partitions>,
    ended: &[Arc<Partition>],
) -> DiskResult<()> {
    for partition in ended {
        partition.delete().await;
    }
    for partition in ended {
        partition.end_movement().await;
    }
    let Some(first) = ended.first() else { return Ok(()) };
    let (topic, delay_ms) = (first.topic_id, first.config().file_delete_delay_ms);
    let is_left = |one: &&Arc<Partition>| one.may_have_folder() && !one.is_offline();
    let left = ended.iter().filter(is_left);
    let mut dirs: Vec<PathBuf> = left.map(|partition| partition.dir()).collect();
    let others = in_other_dirs(partitions.shared(), ended);
    let left_offsets = ended.iter().any(|partition| partition.may_be_in_checkpoints());
    let all = partitions.clone();
    let going = tokio::task::spawn_blocking(move || {
        let disk = all.shared().log_dirs.disk();
        let is_its =
            |dir: &PathBuf| matches!(read_topic_id(&**disk, dir), Ok(Some(id)) if id == topic);
        dirs.extend(others.into_iter().filter(is_its));
        if !dirs.is_empty() {
            rename_all(&all, topic, &dirs, delay_ms)?;
        }
        if left_offsets { checkpoints::write_all(&all) } else { Ok(()) }
    });
    joined(going.await, partitions)
}

/// Where a move may have left a folder that it could not rename.
fn in_other_dirs(shared: &Shared, ended: &[Arc<Partition>]) -> Vec<PathBuf> {
    let others = |partition: &Arc<Partition>| {
        let (own, name) = (partition.log_dir(), folder(&partition.topic, partition.index));
        let others = shared.log_dirs.online().filter(move |dir| !Arc::ptr_eq(dir, &own));
        others.map(move |dir| dir.path().join(&name)).collect::<Vec<_>>()
    };
    ended.iter().flat_map(others).collect()
}

/// Renames what folders of the deleted topic `id` are left under its name, as [`delete_folders`].
pub async fn delete_leftovers(
    partitions: &Arc<Partitions>,
    id: TopicId,
    name: Arc<str>,
) -> DiskResult<()> {
    let all = partitions.clone();
    let going = tokio::task::spawn_blocking(move || {
        let is_its = |folder: &str| parse_folder(folder).is_some_and(|(topic, _)| topic == &*name);
        let log_dirs = &all.shared().log_dirs;
        let mut dirs = Vec::new();
        for root in log_dirs.online().map(|dir| dir.path()) {
            let entries = log_dirs.disk().list(root)?.into_iter();
            let folders = entries.filter(|entry| entry.kind == EntryKind::Dir);
            let its = folders.filter(|entry| is_its(&entry.name));
            dirs.extend(its.map(|entry| root.join(entry.name)));
        }
        rename_all(&all, id, &dirs, 0)?;
        checkpoints::write_all(&all)
    });
    joined(going.await, partitions)
}

fn joined(
    outcome: Result<DiskResult<()>, tokio::task::JoinError>,
    partitions: &Partitions,
) -> DiskResult<()> {
    let dir = partitions.shared().log_dirs.metadata();
    let failed = |error| DiskError::new("rename in", dir.path(), error);
    outcome.unwrap_or_else(|error| Err(failed(std::io::Error::other(error))))
}

/// Renames those of the folders that there are and that are the topic's, synced. Goes on after an
/// error and returns the first. What was renamed is removed after `delay_ms`, whatever fails here or
/// later: a full disk takes no checkpoint until there is room again.
fn rename_all(
    partitions: &Partitions,
    topic: TopicId,
    dirs: &[PathBuf],
    delay_ms: i64,
) -> DiskResult<()> {
    let disk = partitions.shared().log_dirs.disk();
    let (mut renamed, mut outcome) = (Vec::new(), Ok(()));
    for dir in dirs {
        let name = match read_topic_id(&**disk, dir) {
            // Without an id it was not opened to the end, which nobody but this topic tried.
            Ok(id) if id.is_none_or(|id| id == topic) => rename(&**disk, dir, DELETE_SUFFIX),
            Ok(_) => continue,
            Err(error) => Err(error),
        };
        match name {
            Ok(name) => renamed.extend(name),
            Err(error) => outcome = outcome.and(Err(error)),
        }
    }
    // Also what an earlier attempt renamed.
    let roots: BTreeSet<&Path> = dirs.iter().filter_map(|dir| dir.parent()).collect();
    let synced = roots.into_iter().map(|root| disk.sync_dir(root)).fold(Ok(()), Result::and);
    remove_later(partitions.shared(), renamed, delay_ms);
    synced.and(outcome)
}

fn remove_later(shared: &Arc<Shared>, dirs: Vec<PathBuf>, delay_ms: i64) {
    if dirs.is_empty() {
        return;
    }
    let disk = shared.log_dirs.disk().clone();
    let stopping = shared.stopping.clone();
    shared.runtime.spawn(async move {
        tokio::select! {
            // What is left then goes at the next start.
            () = stopping.cancelled() => return,
            () = tokio::time::sleep(Duration::from_millis(delay_ms.max(0).unsigned_abs())) => {}
        }
        let removed = tokio::task::spawn_blocking(move || {
            for dir in dirs.iter().take_while(|_| !stopping.is_cancelled()) {
                if let Err(error) = disk.remove_dir_all(dir) {
                    tracing::error!(%error, "cannot remove a deleted folder");
                }
            }
        });
        if let Err(error) = removed.await {
            tracing::error!(%error, "cannot remove deleted folders");
        }
    });
}

/// Gives a folder a name that says it is going, not synced; `None` when there is no such folder.
fn rename(disk: &dyn Disk, dir: &Path, suffix: &str) -> DiskResult<Option<PathBuf>> {
    let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let id = random::bytes::<16>()
        .map_err(|error| DiskError::new("name", dir, error))?
        .map(|byte| format!("{byte:02x}"))
        .concat();
    let renamed = dir.with_file_name(named(&name, &format!(".{id}{suffix}")));
    match disk.rename(dir, &renamed) {
        Ok(()) => Ok(Some(renamed)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The name of a folder that is not what it is called after, or not yet.
pub(super) fn named(name: &str, tail: &str) -> String {
    let kept = name.floor_char_boundary(FOLDER_NAME_BYTES_MAX.saturating_sub(tail.len()));
    format!("{}{tail}", name.get(..kept).unwrap_or_default())
}

/// Renames the folder that a partition had before it moved, synced, to be removed after `delay_ms`.
/// Blocks.
pub(super) fn leave_folder(shared: &Arc<Shared>, dir: &Path, delay_ms: i64) -> DiskResult<()> {
    let disk = shared.log_dirs.disk();
    let renamed = rename(&**disk, dir, DELETE_SUFFIX)?;
    if let Some(root) = dir.parent() {
        disk.sync_dir(root)?;
    }
    remove_later(shared, renamed.into_iter().collect(), delay_ms);
    Ok(())
}

/// Brings the folders into line with the metadata at start: finishes deletions, sets aside what no
/// topic knows. Blocks. Returns the deleted topics of which nothing is left, neither a folder under
/// their name nor an offset in a checkpoint; what is in a directory that is offline is not waited for.
pub fn sweep(partitions: &Partitions, image: &Image) -> DiskResult<Vec<TopicId>> {
    let dirs = &partitions.shared().log_dirs;
    for dir in dirs.online() {
        match sweep_dir(partitions, image, dir) {
            Err(error) if dir.is_online() => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    if !image.deleted().is_empty() {
        checkpoints::write_all(partitions)?;
    }
    Ok(image.deleted().keys().copied().collect())
}

fn sweep_dir(partitions: &Partitions, image: &Image, dir: &Arc<LogDir>) -> DiskResult<()> {
    let (disk, root) = (partitions.shared().log_dirs.disk(), dir.path());
    let (mut renamed, mut names_changed) = (Vec::new(), false);
    for entry in disk.list(root)?.into_iter().filter(|entry| entry.kind == EntryKind::Dir) {
        let path = root.join(&entry.name);
        if entry.name.ends_with(DELETE_SUFFIX) {
            renamed.push(path);
            continue;
        }
        let Some((topic, index)) = parse_folder(&entry.name) else { continue };
        if topic == METADATA_TOPIC {
            continue;
        }
        let home = home_of(partitions, image, topic, index);
        let is_here = home.as_ref().is_some_and(|home| Arc::ptr_eq(home, dir));
        match fate(image, topic, index, read_topic_id(&**disk, &path)?) {
            // Left behind by a move to another directory, which holds all of it.
            Fate::Kept if !is_here && home.is_some_and(|home| home.is_online()) => {
                renamed.extend(rename(&**disk, &path, DELETE_SUFFIX)?);
            }
            Fate::Kept => continue,
            Fate::Refused { expected, found } if is_here => {
                tracing::error!(folder = %path.display(), %expected, %found,
                    "partition.metadata names another topic id than the metadata log: the partition \
                     is refused. Put the expected id into that file if the records are this topic's, \
                     or move the folder away");
                continue;
            }
            Fate::Deleted => renamed.extend(rename(&**disk, &path, DELETE_SUFFIX)?),
            // The topic's own folder, if it has one, is in another directory.
            Fate::Refused { .. } | Fate::Stray => {
                if let Some(renamed) = rename(&**disk, &path, STRAY_SUFFIX)? {
                    tracing::warn!(folder = %renamed.display(),
                        "set aside: no topic knows this folder");
                }
            }
        }
        names_changed = true;
    }
    if names_changed {
        disk.sync_dir(root)?;
    }
    renamed.iter().try_for_each(|dir| disk.remove_dir_all(dir))
}

/// The log directory of the partition that a folder is named after.
fn home_of(partitions: &Partitions, image: &Image, topic: &str, index: i32) -> Option<Arc<LogDir>> {
    Some(partitions.find(image.topic(topic)?.id, index)?.log_dir())
}

/// What becomes of a folder at start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It is a topic's that there is.
    Kept,
    /// It stays where it is, though the id is neither that of the topic of its name nor of a deleted one.
    Refused {
        expected: TopicId,
        found: TopicId,
    },
    Deleted,
    Stray,
}

/// By the id in the folder. Without one it is of a log whose creation was cut short, and goes by its
/// name: opening it writes the id.
fn fate(image: &Image, topic: &str, index: i32, id: Option<TopicId>) -> Fate {
    let is_gone =
        |(gone, name): (&TopicId, &Arc<str>)| &**name == topic && id.is_none_or(|id| id == *gone);
    let known = image.topic(topic).filter(|topic| topic.has_partition(index));
    match (known, id) {
        (Some(_), None) => Fate::Kept,
        (Some(topic), Some(id)) if id == topic.id => Fate::Kept,
        _ if image.deleted().iter().any(is_gone) => Fate::Deleted,
        (Some(topic), Some(found)) => Fate::Refused { expected: topic.id, found },
        (None, _) => Fate::Stray,
    }
}

/// Topic and partition of a folder `topic-partition`.
pub(crate) fn parse_folder(name: &str) -> Option<(&str, i32)> {
    let (topic, index) = name.rsplit_once('-')?;
    Some((topic, index.parse().ok()?))
}
