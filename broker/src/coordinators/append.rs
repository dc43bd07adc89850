//! What a coordinator decided, on its way into the log.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use duolog_coordinator::error::AppendError;
use duolog_coordinator::runtime::AppendId;
use duolog_coordinator::shard::{BatchForm, RecordBytes, TransactionEnd};
use duolog_log_core::ids::{ProducerEpoch, ProducerId};
use duolog_log_core::log::{AppendOrigin, LogError};
use duolog_log_core::record::batch::NO_SEQUENCE;
use duolog_log_core::record::{
    BatchBuilder, BatchKind, BatchParams, EndTransactionMarker, NewRecord, ProducerSequence,
    RecordError, TimestampType,
};
use duolog_log_core::replication::partition::{Acks, ReplicationError};

use crate::partitions::Partition;
use crate::partitions::append::{self, Appended, Flush, Payload};

/// A log that is not on disk after so long is asked for it again.
const SYNC_AGAIN_MS: i64 = 1_000;

/// One append that a runtime asked for.
#[derive(Debug)]
pub(super) struct OpenAppend {
    pub(super) id: AppendId,
    pub(super) records: Vec<RecordBytes>,
    pub(super) batch: BatchForm,
    /// CreateTime of the records, milliseconds since 1970.
    pub(super) timestamp_ms: i64,
}

/// Writes the records as one batch; returns once every replica in sync has it.
///
/// Errors: whether anything was appended then, the partition's log end tells.
pub(super) async fn write(
    partition: &Arc<Partition>,
    append: &OpenAppend,
    flush: Flush,
) -> Result<Appended, AppendError> {
    let (bytes, record_count) = encode(append).map_err(|_| AppendError::TooLarge)?;
    let size = bytes.len();
    if size > bytes_max(partition) {
        return Err(AppendError::TooLarge);
    }
    let payload = Payload::Batch {
        bytes,
        record_count,
        timestamp_type: TimestampType::CreateTime,
        max_timestamp: append.timestamp_ms,
        origin: origin(append.batch),
    };
    let answer = partition.append(payload, size, Acks::All, flush).await;
    let answer = answer.map_err(|error| refusal(&error))?;
    answer.await.map_err(|_| AppendError::NotLeader)?.map_err(|error| refusal(&error))
}

/// The largest batch that a partition takes.
pub(super) fn bytes_max(partition: &Partition) -> usize {
    usize::try_from(partition.config().max_message_bytes).unwrap_or_default()
}

/// Waits until a log is on disk up to `end`, exclusive; for so long in the hope that it comes to that
/// by itself.
///
/// Errors: the disk failed; the log is gone.
pub(super) async fn on_disk(
    log: &Arc<Partition>,
    end: i64,
    patience_ms: i64,
) -> Result<(), append::AppendError> {
    let mut patience_ms = patience_ms;
    loop {
        if log.is_gone() {
            return Err(append::AppendError::Deleted);
        }
        let patience = Duration::from_millis(patience_ms.max(0).unsigned_abs());
        if let Ok(synced) = tokio::time::timeout(patience, log.synced_to(end)).await {
            return synced;
        }
        log.ask_to_sync();
        patience_ms = SYNC_AGAIN_MS;
    }
}

fn origin(batch: BatchForm) -> AppendOrigin {
    match batch {
        BatchForm::Plain => AppendOrigin::Coordinator,
        BatchForm::InTransaction { verified, .. } => {
            AppendOrigin::CoordinatorInTransaction(verified)
        }
        BatchForm::End(end) if end.version.bumps_epoch() => AppendOrigin::CoordinatorRaisingEpoch,
        BatchForm::End(_) => AppendOrigin::Coordinator,
    }
}

fn encode(append: &OpenAppend) -> Result<(BytesMut, i32), RecordError> {
    let params = match append.batch {
        BatchForm::Plain => BatchParams::default(),
        BatchForm::InTransaction { producer, .. } => BatchParams {
            producer: Some(ProducerSequence {
                id: ProducerId(producer.id),
                epoch: ProducerEpoch(producer.epoch),
                base_sequence: NO_SEQUENCE,
            }),
            kind: BatchKind::Transactional,
            ..BatchParams::default()
        },
        BatchForm::End(end) => {
            let TransactionEnd { producer, outcome, coordinator_epoch, .. } = end;
            let marker = EndTransactionMarker { outcome, coordinator_epoch };
            let (id, epoch) = (ProducerId(producer.id), ProducerEpoch(producer.epoch));
            return Ok((marker.batch(id, epoch, append.timestamp_ms)?, 1));
        }
    };
    let mut builder = BatchBuilder::new(params);
    for record in &append.records {
        builder.append(&NewRecord {
            timestamp: append.timestamp_ms,
            key: Some(&record.key),
            value: record.value.as_deref(),
            headers: &[],
        })?;
    }
    let record_count = builder.record_count();
    Ok((builder.finish_uncompressed()?, record_count))
}

/// What a partition's refusal means to a coordinator.
fn refusal(error: &append::AppendError) -> AppendError {
    use append::AppendError as Error;
    match error {
        Error::Log(LogError::BatchLargerThanSegment { .. }) | Error::RecordTooLarge { .. } => {
            AppendError::TooLarge
        }
        Error::Log(LogError::InvalidProducerEpoch { .. }) => AppendError::ProducerFenced,
        Error::Log(LogError::UnverifiedTxn { .. } | LogError::InvalidTxnState { .. }) => {
            AppendError::NotInTransaction
        }
        Error::Log(LogError::CoordinatorFenced { .. }) => AppendError::CoordinatorFenced,
        Error::Replication(ReplicationError::NotEnoughReplicas { .. })
        | Error::NotEnoughReplicasAfterAppend => AppendError::NotEnoughReplicas,
        Error::Replication(
            ReplicationError::NotLeader { .. }
            | ReplicationError::FencedLeaderEpoch { .. }
            | ReplicationError::UnknownLeaderEpoch { .. }
            | ReplicationError::UnknownReplica(_)
            | ReplicationError::StaleBrokerEpoch { .. },
        )
        | Error::Deleted
        | Error::Stopping => AppendError::NotLeader,
        Error::Log(_) | Error::Busy | Error::Gate => AppendError::Storage,
    }
}
