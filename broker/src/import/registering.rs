//! Making the source's topics topics of the node.

use std::sync::Arc;

use duolog_log_core::ids::TopicPartition;
use duolog_log_core::storage::checkpoint::{read_offsets, write_offsets};
use duolog_log_core::storage::disk::Disk;

use super::copying::Target;
use super::looking::{CHECKPOINTS, Source};
use super::transactions::{Commits, commits, end};
use super::{CLEAN_SHUTDOWN_FILE, ImportError, ImportedTopic, Report};
use crate::config::topic::Overrides;
use crate::controller::topics::{Door, Imported, NewTopic, check_import};
use crate::node::Node;

/// Copies the folders and makes their topics topics of the node. What cannot be taken over is told
/// before anything is written.
pub(super) async fn take(
    node: &Arc<Node>,
    disk: &Arc<dyn Disk>,
    source: &Source,
) -> Result<Report, ImportError> {
    let target = Target::of(&node.config);
    target.check(source)?;
    let imported = imported(source);
    check_import(&node.controller.image(), &imported).map_err(|(name, source)| {
        let name = name.to_string();
        ImportError::Topic { name, source }
    })?;
    let any_open = source.topics.values().any(|found| !found.in_transaction.is_empty());
    let commits = if any_open { commits(&**disk, source)? } else { Commits::new() };
    let mut report =
        Report { clean: source.clean, topics: Vec::new(), left_out: source.left_out.clone() };
    for (name, found) in &source.topics {
        let held = node.controller.image().topic(name).map_or(0, |held| held.partition_count());
        let partitions = found.partitions().max(held);
        let is_missing = |partition: &i32| {
            !found.folders.contains_key(partition)
                && target.held(&format!("{name}-{partition}")).is_none()
        };
        let mut topic = ImportedTopic {
            topic: name.clone(),
            id: found.id.to_string(),
            partitions,
            missing: (0..partitions).filter(is_missing).collect(),
            kept: Vec::new(),
            bytes: 0,
            ended: Vec::new(),
        };
        for (partition, folder) in &found.folders {
            let named = format!("{name}-{partition}");
            match target.take(&named, folder)? {
                Some(bytes) => topic.bytes += bytes,
                None => {
                    topic.kept.push(*partition);
                    continue;
                }
            }
            if found.in_transaction.contains(partition) {
                let (copy, name) =
                    (target.copy(&named), TopicPartition::new(name.as_str(), *partition));
                let hint = source.hint(&name);
                topic.ended.extend(end(disk, &copy, (&name, found.id), hint, &commits)?);
            }
        }
        report.topics.push(topic);
    }
    node.controller.import_topics(imported).await?;
    Ok(report)
}

/// The source in the controller's terms.
fn imported(source: &Source) -> Imported {
    let topics = source.topics.iter().map(|(name, found)| {
        let overrides: Overrides = found
            .compacted
            .then(|| ("cleanup.policy".to_owned(), "compact".to_owned()))
            .into_iter()
            .collect();
        let (name, partitions) = (name.as_str().into(), found.partitions());
        (found.id, NewTopic { name, partitions, overrides, door: Door::Node })
    });
    Imported {
        topics: topics.collect(),
        leader_epoch: source.leader_epoch,
        next_producer_id: source.next_producer_id,
    }
}

/// Adds what the source's checkpoints say to the node's own. A source that was not stopped cleanly
/// takes the mark of a clean stop away.
pub(super) fn join_checkpoints(
    disk: &dyn Disk,
    target: Target<'_>,
    source: &Source,
) -> Result<(), ImportError> {
    let root = target.root();
    if !source.clean {
        match disk.remove(&root.join(CLEAN_SHUTDOWN_FILE)) {
            Err(error) if !error.is_not_found() => return Err(error.into()),
            Ok(()) | Err(_) => disk.sync_dir(root)?,
        }
    }
    for file in CHECKPOINTS {
        let mut offsets = read_offsets(disk, root, file)?;
        offsets.extend(source.offsets(file, target));
        if !offsets.is_empty() {
            write_offsets(disk, root, file, &offsets)?;
        }
    }
    Ok(())
}
