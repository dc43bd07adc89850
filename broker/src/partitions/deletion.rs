//! Folders of deleted topics: renamed at once, removed a little later, as Kafka does.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use duolog_log_core::ids::TopicId;
use duolog_log_core::storage::checkpoint::read_topic_id;
use duolog_log_core::storage::disk::{Disk, DiskError, DiskResult, EntryKind};

use super::{Partition, Partitions, Shared};
use crate::controller::image::Image;
use crate::controller::names::METADATA_TOPIC;
use crate::random;

/// Behind the name of a folder that is being removed.
const DELETE_SUFFIX: &str = "-delete";

/// Behind the name of a folder that no topic knows.
const STRAY_SUFFIX: &str = "-stray";

/// Longest name that file systems take.
const FOLDER_NAME_BYTES_MAX: usize = 255;

/// Ends the partitions of a deleted topic and renames their folders; the removal follows in the
/// background after `file.delete.delay.ms`.
pub async fn delete_folders(partitions: &[Arc<Partition>]) {
    for partition in partitions {
        if let Err(error) = partition.delete().await {
            tracing::debug!(topic = %partition.topic, %error, "ended already");
        }
    }
    let Some(first) = partitions.first() else { return };
    let (shared, delay_ms) = (first.shared.clone(), first.config().file_delete_delay_ms);
    let left = partitions.iter().filter(|partition| partition.may_have_folder());
    let dirs: Vec<PathBuf> = left.map(|partition| partition.dir()).collect();
    if dirs.is_empty() {
        return;
    }
    let renaming = shared.clone();
    let renamed = tokio::task::spawn_blocking(move || rename_all(&renaming, &dirs)).await;
    match renamed {
        Ok(renamed) => remove_later(&shared, renamed, delay_ms),
        Err(error) => tracing::error!(%error, "cannot rename deleted folders"),
    }
}

/// Renames the folders that there are, synced together; returns their new names.
fn rename_all(shared: &Shared, dirs: &[PathBuf]) -> Vec<PathBuf> {
    let mut renamed = Vec::with_capacity(dirs.len());
    for dir in dirs {
        match rename(shared, dir, DELETE_SUFFIX) {
            Ok(name) => renamed.extend(name),
            Err(error) => tracing::error!(%error, "cannot rename a deleted folder"),
        }
    }
    if let Err(error) = shared.data_dir.disk().sync_dir(shared.data_dir.path()) {
        tracing::error!(%error, "deleted folders may come back after a power cut");
    }
    renamed
}

fn remove_later(shared: &Arc<Shared>, dirs: Vec<PathBuf>, delay_ms: i64) {
    let disk = shared.data_dir.disk().clone();
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
fn rename(shared: &Shared, dir: &Path, suffix: &str) -> DiskResult<Option<PathBuf>> {
    let disk = shared.data_dir.disk();
    let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let id = random::bytes::<16>()
        .map_err(|error| DiskError::new("name", dir, error))?
        .map(|byte| format!("{byte:02x}"))
        .concat();
    let tail = format!(".{id}{suffix}");
    let kept = name.floor_char_boundary(FOLDER_NAME_BYTES_MAX - tail.len());
    let renamed = dir.with_file_name(format!("{}{tail}", name.get(..kept).unwrap_or_default()));
    match disk.rename(dir, &renamed) {
        Ok(()) => {}
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    }
    Ok(Some(renamed))
}

/// Brings the folders into line with the metadata at start: finishes deletions, sets aside what no
/// topic knows. Blocks.
pub fn sweep(partitions: &Partitions, image: &Image) -> DiskResult<()> {
    let shared = partitions.shared();
    let (disk, root) = (shared.data_dir.disk(), shared.data_dir.path());
    let mut names_changed = false;
    for entry in disk.list(root)? {
        if entry.kind != EntryKind::Dir {
            continue;
        }
        let path = root.join(&entry.name);
        if entry.name.ends_with(DELETE_SUFFIX) {
            disk.remove_dir_all(&path)?;
            continue;
        }
        let Some((topic, index)) = parse_folder(&entry.name) else { continue };
        if topic == METADATA_TOPIC {
            continue;
        }
        match whose(image, topic, index, &**disk, &path)? {
            Whose::Known => continue,
            Whose::Nobodys => {}
            Whose::Anothers { expected, found } => {
                tracing::error!(folder = %path.display(), %expected, %found,
                    "partition.metadata names another topic id than the metadata log: the partition \
                     is refused. Put the expected id into that file if the records are this topic's, \
                     or move the folder away");
                continue;
            }
        }
        if image.deleted().values().any(|deleted| &**deleted == topic) {
            if let Some(renamed) = rename(shared, &path, DELETE_SUFFIX)? {
                disk.remove_dir_all(&renamed)?;
            }
        } else if let Some(renamed) = rename(shared, &path, STRAY_SUFFIX)? {
            tracing::warn!(folder = %renamed.display(), "set aside: no topic knows this folder");
        }
        names_changed = true;
    }
    if names_changed { disk.sync_dir(root) } else { Ok(()) }
}

/// Whose partition a folder holds.
enum Whose {
    /// A topic's that there is.
    Known,
    /// A topic's that there is no more, or never was.
    Nobodys,
    /// The name is that of a topic that there is, the id that of no other.
    Anothers { expected: TopicId, found: TopicId },
}

fn whose(
    image: &Image,
    topic: &str,
    index: i32,
    disk: &dyn Disk,
    path: &Path,
) -> DiskResult<Whose> {
    let Some(topic) = image.topic(topic).filter(|topic| topic.has_partition(index)) else {
        return Ok(Whose::Nobodys);
    };
    let expected = topic.id;
    Ok(match read_topic_id(disk, path)? {
        // Without an id the folder is of a creation that was cut short: opening it writes the file.
        None => Whose::Known,
        Some(found) if found == expected => Whose::Known,
        Some(found) if image.deleted().contains_key(&found) => Whose::Nobodys,
        Some(found) => Whose::Anothers { expected, found },
    })
}

/// Topic and partition of a folder `topic-partition`.
fn parse_folder(name: &str) -> Option<(&str, i32)> {
    let (topic, index) = name.rsplit_once('-')?;
    Some((topic, index.parse().ok()?))
}
