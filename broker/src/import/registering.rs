//! Making the source's topics topics of the node.

use std::path::Path;
use std::sync::Arc;

use duolog_log_core::storage::checkpoint::{read_offsets, write_offsets};
use duolog_log_core::storage::disk::Disk;

use super::copying::copy_folder;
use super::looking::{CHECKPOINTS, Source};
use super::{CLEAN_SHUTDOWN_FILE, ImportError, ImportedTopic, Report};
use crate::config::topic::Overrides;
use crate::controller::ControllerError;
use crate::controller::topics::{Door, Imported, NewTopic};
use crate::node::Node;

/// Copies the folders and makes their topics topics of the node.
pub(super) async fn take(node: &Arc<Node>, source: &Source) -> Result<Report, ImportError> {
    let root = node.config.data_dir();
    let mut report =
        Report { clean: source.clean, topics: Vec::new(), left_out: source.left_out.clone() };
    let mut topics = Vec::new();
    for (name, found) in &source.topics {
        let image = node.controller.image().clone();
        if image.topic(name).is_some_and(|held| held.id != found.id) {
            let (name, source) = (name.clone(), ControllerError::TopicExists(name.clone()));
            return Err(ImportError::Topic { name, source });
        }
        let last = found.folders.last_key_value().map_or(0, |(partition, _)| *partition);
        let partitions = last.saturating_add(1);
        let overrides: Overrides = found
            .compacted
            .then(|| ("cleanup.policy".to_owned(), "compact".to_owned()))
            .into_iter()
            .collect();
        let topic =
            NewTopic { name: name.as_str().into(), partitions, overrides, door: Door::Node };
        topics.push((found.id, topic));
        let mut bytes = 0;
        for folder in found.folders.values() {
            bytes += copy_folder(folder, root)?;
        }
        report.topics.push(ImportedTopic {
            topic: name.clone(),
            id: found.id.to_string(),
            partitions,
            missing: (0..partitions).filter(|p| !found.folders.contains_key(p)).collect(),
            bytes,
        });
    }
    let (leader_epoch, next_producer_id) = (source.leader_epoch, source.next_producer_id);
    let imported = Imported { topics, leader_epoch, next_producer_id };
    node.controller.import_topics(imported).await?;
    Ok(report)
}

/// Adds what the source's checkpoints say to the node's own. A source that was not stopped cleanly
/// takes the mark of a clean stop away.
pub(super) fn join_checkpoints(
    disk: &dyn Disk,
    root: &Path,
    source: &Source,
) -> Result<(), ImportError> {
    if !source.clean {
        match disk.remove(&root.join(CLEAN_SHUTDOWN_FILE)) {
            Err(error) if !error.is_not_found() => return Err(error.into()),
            Ok(()) | Err(_) => disk.sync_dir(root)?,
        }
    }
    for file in CHECKPOINTS {
        let mut offsets = read_offsets(disk, root, file)?;
        offsets.extend(source.offsets(file, root));
        if !offsets.is_empty() {
            write_offsets(disk, root, file, &offsets)?;
        }
    }
    Ok(())
}
