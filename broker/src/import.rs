//! `duolog import DIR...`: takes over the topics of a stopped Kafka broker.
//!
//! Folders are copied, byte for byte; the source stays as it is. Topics keep their ids, which their
//! `partition.metadata` names; their settings are in `__cluster_metadata`, which is not read, so they
//! get the node's defaults, but for `cleanup.policy=compact` where the source has compacted them.
//!
//! A broker with several log directories has its topics in all of them: they are given together. One
//! that is imported later lets topics grow, as long as no group is looked for by their partitions.
//!
//! 1. The source is locked and looked through: what cannot be taken over is told before anything is
//!    written.
//! 2. Folders are copied under names that no topic has, and the transactions that are open in them are
//!    ended: their coordinator stays behind.
//! 3. The topics are written to the metadata log, the offset checkpoints are joined, and the folders get
//!    their names. Whoever is stopped before this is over imports again: what is there already stays.
//!    Until then no node is served there.

mod copying;
mod looking;
mod registering;
mod transactions;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use duolog_log_core::event::Events;
use duolog_log_core::ids::NodeId;
use duolog_log_core::log::LogError;
use duolog_log_core::storage::disk::{Disk, DiskError};
use duolog_log_core::storage::file_disk::FileDisk;
use serde::Serialize;

use self::copying::Target;
use self::looking::Source;
use self::registering::{join_checkpoints, take};
pub use self::transactions::{Ended, Outcome};
use crate::config::Config;
use crate::controller::ControllerError;
use crate::limits::MAPPED_FILES_MAX;
use crate::node::{Node, StartError};
use crate::system::Descriptors;

/// Kafka's own mark of a clean stop.
const CLEAN_SHUTDOWN_FILE: &str = ".kafka_cleanshutdown";

/// Why nothing was imported, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// Not a log directory.
    #[error("{}: expected the log directory of a Kafka broker, with a meta.properties", .0.display())]
    NotKafkas(PathBuf),
    /// Its broker runs.
    #[error("{}: a broker is running there; stop it first", .0.display())]
    Running(PathBuf),
    /// A folder that cannot be taken over.
    #[error("{}: {reason}", folder.display())]
    Folder {
        /// Which.
        folder: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The node refuses a topic.
    #[error("topic {name}: {source}")]
    Topic {
        /// Which.
        name: String,
        /// Why.
        source: ControllerError,
    },
    /// The node refuses.
    #[error(transparent)]
    Controller(#[from] ControllerError),
    /// The data directory cannot be used.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A checkpoint or a folder cannot be read or written.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The transactions in a copied log cannot be ended.
    #[error("{}: {source}", folder.display())]
    Log {
        /// The copy.
        folder: PathBuf,
        /// Why not.
        source: LogError,
    },
    /// A file cannot be copied.
    #[error("cannot copy {}: {source}", path.display())]
    Copy {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// One topic that was taken over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImportedTopic {
    /// Its name.
    pub topic: String,
    /// Its id, as Kafka prints it.
    pub id: String,
    /// How many partitions it has.
    pub partitions: i32,
    /// Those that have a folder neither there nor here: empty.
    pub missing: Vec<i32>,
    /// Those that were here already: left as they are.
    pub kept: Vec<i32>,
    /// Bytes that were copied.
    pub bytes: u64,
    /// Transactions that were open there.
    pub ended: Vec<Ended>,
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whether the broker was stopped cleanly: if not, the next start reads its logs through.
    pub clean: bool,
    /// By name.
    pub topics: Vec<ImportedTopic>,
    /// Folders that were left out.
    pub left_out: Vec<String>,
}

/// Takes over the topics in `dirs`, the log directories of one broker, into the data directory of
/// `config`.
pub async fn run(config: Config, dirs: &[PathBuf]) -> Result<Report, ImportError> {
    let disk: Arc<dyn Disk> =
        Arc::new(FileDisk::new(Descriptors::of_this_process().logs, MAPPED_FILES_MAX));
    let source = Source::look(&*disk, dirs)?;
    let config = Arc::new(config);
    let events = Events::silent(NodeId(config.node_id));
    let node = Node::open(config.clone(), disk.clone(), events).await?;
    let taken = take(&node, &disk, &source).await;
    node.stop().await;
    let report = taken?;
    let target = Target::of(&config);
    join_checkpoints(&*disk, target, &source)?;
    target.name_folders(&*disk, &source)?;
    Ok(report)
}

/// Prints what was done.
pub fn print(report: &Report, json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut out, report)?;
        return writeln!(out);
    }
    for topic in &report.topics {
        let ImportedTopic { topic, id, partitions, bytes, .. } = topic;
        writeln!(out, "{topic}: {partitions} partitions, {bytes} bytes, id {id}")?;
    }
    for topic in report.topics.iter().filter(|topic| !topic.missing.is_empty()) {
        writeln!(
            out,
            "{}: no folder for partitions {:?}: they are empty; if they lie in another log directory \
             of that broker, import it before this node is served",
            topic.topic, topic.missing
        )?;
    }
    for topic in report.topics.iter().filter(|topic| !topic.kept.is_empty()) {
        let ImportedTopic { topic, kept, .. } = topic;
        writeln!(out, "{topic}: partitions {kept:?} were here already: they stay as they are")?;
    }
    for (topic, ended) in
        report.topics.iter().flat_map(|topic| topic.ended.iter().map(|ended| (&topic.topic, ended)))
    {
        let Ended { partition, producer_id, producer_epoch, outcome } = ended;
        let outcome = match outcome {
            Outcome::Committed => "committed, as its coordinator had decided",
            Outcome::Aborted => "aborted",
        };
        writeln!(
            out,
            "{topic}-{partition}: the open transaction of producer {producer_id}, epoch \
             {producer_epoch}, is {outcome}"
        )?;
    }
    for folder in &report.left_out {
        writeln!(out, "left out: {folder}")?;
    }
    if !report.clean {
        writeln!(out, "the broker was not stopped cleanly: the next start reads its logs through")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
