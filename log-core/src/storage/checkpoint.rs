//! The small text files of a data directory, as Kafka 4.3.1 writes them.
//!
//! | file | content |
//! |---|---|
//! | `recovery-point-offset-checkpoint`, `replication-offset-checkpoint`, `log-start-offset-checkpoint`, `cleaner-offset-checkpoint` | `0`, the count, then `topic partition offset` in each line |
//! | `leader-epoch-checkpoint` | `0`, the count, then `epoch startOffset` in each line |
//! | `partition.metadata` | `version: 0`, then `topic_id: ` and 22 characters; no end of line after it |
//! | `.kafka_cleanshutdown` | `{"version":0,"brokerEpoch":N}` |
//! | `meta.properties` | a comment, then `node.id`, `directory.id`, `version`, `cluster.id` |
//!
//! Each is written whole under another name, synced and renamed, so that a reader finds the old
//! content or the new.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::IoSlice;
use std::path::Path;

use super::disk::{Disk, DiskError, DiskResult, OpenMode};
use super::names::{TEMPORARY_SUFFIX, with_suffix};
use crate::ids::{LeaderEpoch, Offset, TopicId, TopicPartition};
use crate::replication::epochs::{EpochEntry, LeaderEpochs};

mod directory;

pub use directory::{CleanShutdown, MetaProperties};

/// How far each log is on disk.
pub const RECOVERY_POINT_FILE: &str = "recovery-point-offset-checkpoint";
/// Each partition's high watermark.
pub const REPLICATION_FILE: &str = "replication-offset-checkpoint";
/// Where each log starts that does not start with its first segment.
pub const LOG_START_FILE: &str = "log-start-offset-checkpoint";
/// Up to where each log was compacted that ever was: exclusive.
pub const CLEANER_FILE: &str = "cleaner-offset-checkpoint";
/// The leader epochs of one log.
pub const LEADER_EPOCH_FILE: &str = "leader-epoch-checkpoint";
/// The topic id of one log.
pub const PARTITION_METADATA_FILE: &str = "partition.metadata";

/// Longest of these files that is read; 100,000 partitions with long names fit.
const TEXT_BYTES_MAX: u64 = 64 << 20;

/// Whether a written file must be on disk before the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Content and name are synced.
    Synced,
    /// A power cut may leave an empty file; readers must cope.
    Unsynced,
}

/// Offsets by partition, in the order in which they are written.
pub type Offsets = BTreeMap<TopicPartition, i64>;

/// Replaces the offsets in `file` of `dir`.
pub fn write_offsets(disk: &dyn Disk, dir: &Path, file: &str, offsets: &Offsets) -> DiskResult<()> {
    let mut text = format!("0\n{}\n", offsets.len());
    for (partition, offset) in offsets {
        _ = writeln!(text, "{} {} {offset}", partition.topic, partition.partition);
    }
    write(disk, &dir.join(file), text.as_bytes(), Durability::Synced)
}

/// The offsets in `file` of `dir`; none when it is missing or empty.
///
/// Errors: content of another form.
pub fn read_offsets(disk: &dyn Disk, dir: &Path, file: &str) -> DiskResult<Offsets> {
    let path = dir.join(file);
    let Some(text) = read(disk, &path)? else { return Ok(Offsets::new()) };
    // Kafka leaves an empty file before the first checkpoint.
    if text.is_empty() {
        return Ok(Offsets::new());
    }
    parse_lines(&text, |line| {
        let [topic, partition, offset] = split(line)?;
        Some((TopicPartition::new(topic, partition.parse().ok()?), offset.parse().ok()?))
    })
    .ok_or_else(|| malformed(&path))
}

/// Replaces a log's leader epochs.
pub fn write_leader_epochs(
    disk: &dyn Disk,
    dir: &Path,
    epochs: &LeaderEpochs,
    durability: Durability,
) -> DiskResult<()> {
    let mut text = format!("0\n{}\n", epochs.entries().len());
    for entry in epochs.entries() {
        _ = writeln!(text, "{} {}", entry.epoch, entry.start_offset);
    }
    write(disk, &dir.join(LEADER_EPOCH_FILE), text.as_bytes(), durability)
}

/// A log's leader epochs; `None` when the file is missing or was torn by a power cut.
pub fn read_leader_epochs(disk: &dyn Disk, dir: &Path) -> DiskResult<Option<LeaderEpochs>> {
    let Some(text) = read(disk, &dir.join(LEADER_EPOCH_FILE))? else { return Ok(None) };
    let entries: Option<Vec<EpochEntry>> = parse_lines(&text, |line| {
        let [epoch, start_offset] = split(line)?;
        Some(EpochEntry {
            epoch: LeaderEpoch(epoch.parse().ok()?),
            start_offset: Offset(start_offset.parse().ok()?),
        })
    });
    Ok(entries.map(LeaderEpochs::from_entries))
}

/// Writes a log's topic id.
pub fn write_topic_id(
    disk: &dyn Disk,
    dir: &Path,
    topic_id: TopicId,
    durability: Durability,
) -> DiskResult<()> {
    let text = format!("version: 0\ntopic_id: {topic_id}");
    write(disk, &dir.join(PARTITION_METADATA_FILE), text.as_bytes(), durability)
}

/// A log's topic id; `None` when the file is missing or was torn by a power cut.
pub fn read_topic_id(disk: &dyn Disk, dir: &Path) -> DiskResult<Option<TopicId>> {
    let Some(text) = read(disk, &dir.join(PARTITION_METADATA_FILE))? else { return Ok(None) };
    let id = text.strip_prefix("version: 0\ntopic_id: ").map(str::trim_end);
    Ok(id.and_then(|id| id.parse().ok()))
}

/// Writes `content` under another name, then gives it its own.
pub fn write(
    disk: &dyn Disk,
    path: &Path,
    content: &[u8],
    durability: Durability,
) -> DiskResult<()> {
    let temporary = with_suffix(path, TEMPORARY_SUFFIX);
    let file = disk.open(&temporary, OpenMode::CreateEmpty)?;
    let written = file.write_at(0, &[IoSlice::new(content)]).and_then(|()| match durability {
        Durability::Synced => file.sync(),
        Durability::Unsynced => Ok(()),
    });
    if let Err(error) = written.and_then(|()| disk.rename(&temporary, path)) {
        // What is left of it would only take room; opening the folder removes it too.
        _ = disk.remove(&temporary);
        return Err(error);
    }
    match (durability, path.parent()) {
        (Durability::Synced, Some(dir)) => disk.sync_dir(dir),
        _ => Ok(()),
    }
}

/// The text of a file, `None` when it is missing. Bytes that are no text read as an empty file.
fn read(disk: &dyn Disk, path: &Path) -> DiskResult<Option<String>> {
    let file = match disk.open(path, OpenMode::Existing) {
        Ok(file) => file,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    let len = file.len()?;
    if len > TEXT_BYTES_MAX {
        return Err(DiskError::invalid("read", path, format_args!("{len} bytes are too many")));
    }
    let bytes = file.read_at(0, usize::try_from(len).unwrap_or(0))?;
    Ok(Some(String::from_utf8(bytes.into()).unwrap_or_default()))
}

/// Version, count, then as many lines, each with its end: a torn number must not pass for another.
fn parse_lines<T, C: FromIterator<T>>(
    text: &str,
    parse: impl FnMut(&str) -> Option<T>,
) -> Option<C> {
    let mut lines = text.strip_suffix('\n')?.split('\n');
    if lines.next()? != "0" {
        return None;
    }
    let count: usize = lines.next()?.parse().ok()?;
    if lines.clone().count() != count {
        return None;
    }
    lines.map(parse).collect()
}

fn split<const N: usize>(line: &str) -> Option<[&str; N]> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    fields.try_into().ok()
}

fn malformed(path: &Path) -> DiskError {
    DiskError::invalid("read", path, "malformed checkpoint")
}

#[cfg(test)]
mod tests;
