//! Ending the transactions that are open in what was copied.
//!
//! Their coordinator is not taken over, so nobody else would ever end them, and readers of what is
//! committed would wait for ever. One that the coordinator had decided to commit is committed, for its
//! other partitions may have the marker already; all others are aborted. It is done in the copy, before
//! that has its name: whoever is stopped meanwhile copies again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use duolog_coordinator::record::transaction::Record;
use duolog_log_core::ids::{LeaderEpoch, ProducerEpoch, ProducerId, TopicId, TopicPartition};
use duolog_log_core::log::{
    AppendBatch, AppendOrigin, Log, LogConfig, LogError, LogIdentity, OpenHint, each_batch,
};
use duolog_log_core::record::{
    DecodedBatch, Decompressor, EndTransactionMarker, TransactionOutcome,
};
use duolog_log_core::storage::disk::Disk;
use serde::Serialize;

use super::ImportError;
use super::looking::Source;
use crate::clock;
use crate::limits::DECOMPRESSED_BYTES_MAX;

/// How a transaction was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Its coordinator had decided so.
    Committed,
    /// Nobody had decided.
    Aborted,
}

/// A transaction that was open in a partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ended {
    /// The partition.
    pub partition: i32,
    /// Whose it was.
    pub producer_id: i64,
    /// Its epoch.
    pub producer_epoch: i16,
    /// What became of it.
    pub outcome: Outcome,
}

/// Where whose transaction is to be committed.
pub(super) type Commits = BTreeSet<(i64, TopicPartition)>;

/// What the source's coordinators had decided to commit and may not have written everywhere. What
/// cannot be read there decides nothing.
pub(super) fn commits(disk: &dyn Disk, source: &Source) -> Result<Commits, ImportError> {
    let mut open = BTreeMap::new();
    let mut decompressor = Decompressor::new();
    for folder in &source.coordinators {
        each_batch(disk, folder, |header, batch| {
            let limit = DECOMPRESSED_BYTES_MAX;
            let decoded = DecodedBatch::decode_verified(&batch, &mut decompressor, limit);
            if let Err(error) = &decoded {
                let (folder, offset) = (folder.display(), header.base_offset);
                tracing::warn!(%folder, offset, %error, "unreadable decisions are passed over");
            }
            for record in decoded.iter().flatten().filter(|_| !header.is_control()) {
                let (key, value) =
                    (record.key.unwrap_or_default(), record.value.map(Bytes::copy_from_slice));
                let record = Record::decode(&Bytes::copy_from_slice(key), value.as_ref());
                let Ok(Some(Record { id, value })) = record else { continue };
                match value {
                    Some(value) if value.state.prepared() == Some(TransactionOutcome::Commit) => {
                        open.insert(id, value);
                    }
                    _ => drop(open.remove(&id)),
                }
            }
        })?;
    }
    let mut commits = Commits::new();
    for value in open.into_values() {
        for (topic, partitions) in value.partitions {
            let named = |partition| TopicPartition { topic: topic.clone(), partition };
            let names = partitions.into_iter().map(named);
            commits.extend(names.map(|name| (value.producer.id, name)));
        }
    }
    Ok(commits)
}

/// Ends what is open in the copy of partition `name`, synced.
pub(super) fn end(
    disk: &Arc<dyn Disk>,
    copy: &Path,
    (name, topic_id): (&TopicPartition, TopicId),
    hint: OpenHint,
    commits: &Commits,
) -> Result<Vec<Ended>, ImportError> {
    let failed = |source: LogError| ImportError::Log { folder: copy.to_owned(), source };
    let identity = LogIdentity { topic: name.topic.clone(), partition: name.partition, topic_id };
    // What else the log knows of producers stays.
    let config = LogConfig { producer_id_expiration_ms: i64::MAX, ..LogConfig::default() };
    let now_ms = clock::now_ms();
    let (mut log, _) =
        Log::open(disk.clone(), copy, identity, Arc::new(config), hint, now_ms).map_err(failed)?;
    let (mut ended, mut markers) = (Vec::new(), Vec::new());
    for (id, producer) in log.producers().iter() {
        if producer.txn_first_offset.is_none() {
            continue;
        }
        let (decided, outcome) = if commits.contains(&(id, name.clone())) {
            (TransactionOutcome::Commit, Outcome::Committed)
        } else {
            (TransactionOutcome::Abort, Outcome::Aborted)
        };
        let coordinator_epoch = producer.coordinator_epoch.max(0);
        let marker = EndTransactionMarker { outcome: decided, coordinator_epoch };
        let bytes = marker.batch(ProducerId(id), ProducerEpoch(producer.epoch), now_ms);
        let bytes = bytes.map_err(|error| failed(error.into()))?;
        markers.push(AppendBatch { bytes, origin: AppendOrigin::Coordinator });
        let (partition, producer_epoch) = (name.partition, producer.epoch);
        ended.push(Ended { partition, producer_id: id, producer_epoch, outcome });
    }
    let epoch = log.latest_epoch().unwrap_or(LeaderEpoch(0));
    for appended in log.append_as_leader(markers, epoch, now_ms) {
        appended.map_err(failed)?;
    }
    log.close_clean(now_ms).map_err(failed)?;
    Ok(ended)
}
