//! The files that say what a data directory is and how it was left.

use std::fmt::Write as _;
use std::path::Path;

use super::{Durability, malformed, read, write};
use crate::ids::NodeId;
use crate::storage::disk::{Disk, DiskResult};

const META_PROPERTIES_FILE: &str = "meta.properties";
const CLEAN_SHUTDOWN_FILE: &str = ".kafka_cleanshutdown";

/// `meta.properties`, version 1: to whom a data directory belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaProperties {
    /// Every directory of a cluster has the same.
    pub cluster_id: String,
    /// The node that wrote here.
    pub node_id: NodeId,
    /// This directory's own id (KIP-858), 22 characters.
    pub directory_id: String,
}

impl MetaProperties {
    /// The properties of `dir`; `None` when it has none.
    ///
    /// Errors: a file of another form or version.
    pub fn read(disk: &dyn Disk, dir: &Path) -> DiskResult<Option<Self>> {
        let path = dir.join(META_PROPERTIES_FILE);
        let Some(text) = read(disk, &path)? else { return Ok(None) };
        Self::parse(&text).map(Some).ok_or_else(|| malformed(&path))
    }

    /// Replaces them, synced. `comment` is the line that `java.util.Properties` gives a date.
    pub fn write(&self, disk: &dyn Disk, dir: &Path, comment: &str) -> DiskResult<()> {
        let mut text = format!("#\n#{}\n", comment.replace(['\r', '\n'], " "));
        _ = writeln!(text, "node.id={}", self.node_id);
        _ = writeln!(text, "directory.id={}", self.directory_id);
        _ = writeln!(text, "version=1");
        _ = writeln!(text, "cluster.id={}", self.cluster_id);
        write(disk, &dir.join(META_PROPERTIES_FILE), text.as_bytes(), Durability::Synced)
    }

    fn parse(text: &str) -> Option<Self> {
        let lines = text.lines().filter(|line| !line.starts_with(['#', '!']));
        let pairs: Vec<(&str, &str)> = lines
            .filter_map(|line| line.split_once('='))
            .map(|(key, value)| (key.trim(), value.trim()))
            .collect();
        let value = |key| pairs.iter().rev().find(|(k, _)| *k == key).map(|(_, value)| *value);
        if value("version")? != "1" {
            return None;
        }
        Some(Self {
            cluster_id: value("cluster.id")?.to_owned(),
            node_id: NodeId(value("node.id")?.parse().ok()?),
            directory_id: value("directory.id")?.to_owned(),
        })
    }
}

/// `.kafka_cleanshutdown`: written last at a stop, removed first at a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanShutdown {
    /// The epoch under which the node was registered (KIP-966); -1 when not known.
    pub broker_epoch: i64,
}

impl CleanShutdown {
    /// Reads and removes the marker of `dir`, both durable: a crash from now on is unclean.
    pub fn take(disk: &dyn Disk, dir: &Path) -> DiskResult<Option<Self>> {
        let path = dir.join(CLEAN_SHUTDOWN_FILE);
        let Some(text) = read(disk, &path)? else { return Ok(None) };
        disk.remove(&path)?;
        disk.sync_dir(dir)?;
        Ok(Self::parse(&text))
    }

    /// Writes the marker: all logs of `dir` are closed and synced.
    pub fn write(self, disk: &dyn Disk, dir: &Path) -> DiskResult<()> {
        let text = format!("{{\"version\":0,\"brokerEpoch\":{}}}", self.broker_epoch);
        write(disk, &dir.join(CLEAN_SHUTDOWN_FILE), text.as_bytes(), Durability::Synced)
    }

    /// A torn marker is none: it was not synced, so nothing says that the logs were.
    fn parse(text: &str) -> Option<Self> {
        let compact: String = text.chars().filter(|char| !char.is_whitespace()).collect();
        let epoch = compact.strip_prefix("{\"version\":0,\"brokerEpoch\":")?.strip_suffix('}')?;
        Some(Self { broker_epoch: epoch.parse().ok()? })
    }
}
