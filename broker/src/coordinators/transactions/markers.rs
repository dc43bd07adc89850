//! Markers: the control records that end a transaction in each of its partitions.

use std::sync::Arc;
use std::time::Duration;

use duolog_coordinator::error::GroupError;
use duolog_coordinator::record::transaction::{ProducerIdAndEpoch, TxnVersion};
use duolog_coordinator::shard::TransactionEnd;
use duolog_coordinator::txn::kafka::error::TxnError;
use duolog_coordinator::txn::kafka::event::{Event, MarkersWritten};
use duolog_coordinator::txn::kafka::response::Markers;
use duolog_log_core::event::{Event as Observed, EventKind, Protocol};
use duolog_log_core::gate::{GatePoint, GateSubject};
use duolog_log_core::ids::{Offset, ProducerEpoch, ProducerId};
use duolog_log_core::log::{AppendOrigin, LogError};
use duolog_log_core::record::{EndTransactionMarker, TimestampType, TransactionOutcome};
use duolog_log_core::replication::partition::Acks;

use super::Transactions;
use crate::clock;
use crate::config::topic;
use crate::controller::names;
use crate::instruments::Passage;
use crate::partitions::Partition;
use crate::partitions::append::{AppendError, Flush, Payload};

/// Between two attempts to write a marker, or to say that all are written.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// A marker as it goes into any partition.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Whose transaction ends; the epoch that the marker carries.
    pub producer: ProducerIdAndEpoch,
    /// Of the coordinator that decided.
    pub coordinator_epoch: i32,
    /// How it ends.
    pub outcome: TransactionOutcome,
    /// Under which protocol.
    pub version: TxnVersion,
    /// The transactional id, where it is known, or else who asks.
    pub client: Arc<str>,
}

impl Mark {
    /// The marker in a group coordinator's terms.
    fn end(&self) -> TransactionEnd {
        TransactionEnd {
            producer: self.producer,
            outcome: self.outcome,
            coordinator_epoch: self.coordinator_epoch,
            version: self.version,
        }
    }
}

/// Why a marker was not written.
#[derive(Clone, Debug, thiserror::Error)]
pub enum MarkError {
    /// There is no such partition.
    #[error("no such partition")]
    UnknownPartition,
    /// The partition refused.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The coordinator of the groups in that partition refused.
    #[error(transparent)]
    Group(#[from] GroupError),
}

impl MarkError {
    /// Whether another attempt cannot end otherwise: nothing is left to mark.
    fn is_final(&self) -> bool {
        match self {
            Self::UnknownPartition => true,
            // At an equal epoch a transaction is open there, perhaps the one to be ended.
            Self::Append(AppendError::Log(LogError::InvalidProducerEpoch {
                incoming,
                current,
                ..
            })) => incoming < current,
            Self::Append(error) => matches!(
                error,
                AppendError::Deleted | AppendError::Log(LogError::CoordinatorFenced { .. })
            ),
            Self::Group(error) => matches!(
                error,
                GroupError::InvalidProducerEpoch | GroupError::TransactionCoordinatorFenced
            ),
        }
    }
}

impl Transactions {
    /// Writes one marker and waits until all replicas in sync have it. Gate `txn.marker.before`.
    pub async fn mark(&self, topic: &str, index: i32, mark: &Mark) -> Result<(), MarkError> {
        let id = self.controller.image().topic(topic).map(|topic| topic.id);
        let partition = id.and_then(|id| self.partitions.find(id, index));
        let partition = partition.ok_or(MarkError::UnknownPartition)?;
        let subject = GateSubject {
            topic: Some(topic),
            partition: Some(index),
            client: Some(&mark.client),
            ..GateSubject::default()
        };
        match self.instruments.pass(GatePoint::TxnMarkerBefore, subject).await {
            Passage::Go => {}
            Passage::Drop | Passage::Fail => return Err(AppendError::Gate.into()),
        }
        let offset = if topic == names::OFFSETS_TOPIC {
            // Its coordinator writes it, so that the positions count from there on.
            self.groups.end_transaction(index, mark.end()).await?;
            None
        } else {
            Some(append(&partition, mark).await?)
        };
        self.instruments.events.emit(|| {
            let ProducerIdAndEpoch { id, epoch } = mark.producer;
            let event = Observed::new(EventKind::TxnMarker, clock::now_ms())
                .at(&partition.topic, index)
                .protocol(Protocol::Kafka)
                .client(mark.client.clone())
                .cause(format!("{:?}: producer {id} epoch {epoch}", mark.outcome));
            match offset {
                Some(offset) => event.offset(Offset(offset)),
                None => event,
            }
        });
        Ok(())
    }

    /// Writes all markers of a transaction, as often as it takes, and tells its coordinator.
    pub(super) async fn complete(self: Arc<Self>, markers: Markers) {
        let mark = Mark {
            producer: markers.producer,
            coordinator_epoch: markers.coordinator_epoch,
            outcome: markers.outcome,
            version: markers.version,
            client: markers.id.clone(),
        };
        let mut writes = Vec::new();
        for (topic, indexes) in &markers.partitions {
            writes.extend(indexes.iter().map(|index| self.mark_until_done(topic, *index, &mark)));
        }
        let work = async {
            futures_util::future::join_all(writes).await;
            self.say_written(&markers).await;
        };
        tokio::select! {
            // What is left to do, the next start does.
            () = self.stopping.cancelled() => {}
            () = work => {}
        }
    }

    async fn mark_until_done(&self, topic: &str, index: i32, mark: &Mark) {
        loop {
            match self.mark(topic, index, mark).await {
                Ok(()) => return,
                Err(error) if error.is_final() => {
                    tracing::debug!(topic, index, %error, "a transaction has nothing to mark here");
                    return;
                }
                Err(error) => {
                    tracing::debug!(topic, index, %error, "a marker is written again");
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        }
    }

    async fn say_written(&self, markers: &Markers) {
        let Markers { id, producer, .. } = markers;
        let written = MarkersWritten { id: id.clone(), producer: *producer };
        loop {
            match self.ask(id, Event::MarkersWritten(written.clone())).await {
                Ok(_) => return,
                Err(error) if is_to_be_said_again(error) => {
                    tokio::time::sleep(RETRY_DELAY).await;
                }
                Err(error) => return tracing::debug!(%id, %error, "nothing is left to complete"),
            }
        }
    }
}

/// Whether a coordinator that refused to hear that the markers are written is still the one that
/// asked for them. One that reads its log anew asks again by itself; else the transaction was
/// completed before.
const fn is_to_be_said_again(error: TxnError) -> bool {
    matches!(error, TxnError::CoordinatorNotAvailable | TxnError::TooLarge)
}

/// Returns the marker's offset.
async fn append(partition: &Arc<Partition>, mark: &Mark) -> Result<i64, AppendError> {
    let ProducerIdAndEpoch { id, epoch } = mark.producer;
    let (outcome, coordinator_epoch) = (mark.outcome, mark.coordinator_epoch);
    let now_ms = clock::now_ms();
    let marker = EndTransactionMarker { outcome, coordinator_epoch };
    let bytes = marker
        .batch(ProducerId(id), ProducerEpoch(epoch), now_ms)
        .map_err(|error| LogError::InvalidBatch(error.to_string()))?;
    let size = bytes.len();
    let payload = Payload::Batch {
        bytes,
        record_count: 1,
        timestamp_type: match partition.config().timestamp_type {
            topic::TimestampType::CreateTime => TimestampType::CreateTime,
            topic::TimestampType::LogAppendTime => TimestampType::LogAppendTime,
        },
        max_timestamp: now_ms,
        origin: if mark.version.bumps_epoch() {
            AppendOrigin::CoordinatorRaisingEpoch
        } else {
            AppendOrigin::Coordinator
        },
    };
    let answer = partition.append(payload, size, Acks::All, Flush::Topic).await?;
    let appended = answer.await.unwrap_or(Err(AppendError::Stopping))?;
    Ok(appended.base_offset)
}

#[cfg(test)]
mod tests;
