//! The only map from the node's refusals to the bridge's.

use duolog_bridge::backend::BackendError;
use duolog_coordinator::error::GroupError;
use duolog_log_core::log::LogError;
use duolog_log_core::replication::partition::ReplicationError;

use crate::controller::ControllerError;
use crate::partitions::Partition;
use crate::partitions::append::AppendError;

/// What a partition's refusal is.
pub(super) fn of(partition: &Partition, error: &AppendError) -> BackendError {
    match error {
        AppendError::Log(error) => of_log(partition, error),
        AppendError::Replication(error) => match error {
            ReplicationError::NotEnoughReplicas { .. } => BackendError::NotEnoughReplicas,
            ReplicationError::NotLeader { .. }
            | ReplicationError::FencedLeaderEpoch { .. }
            | ReplicationError::UnknownLeaderEpoch { .. }
            | ReplicationError::UnknownReplica(_)
            | ReplicationError::StaleBrokerEpoch { .. } => not_leader(partition),
        },
        AppendError::RecordTooLarge { bytes, maximum } => {
            BackendError::RecordTooLarge { bytes: *bytes, bytes_max: *maximum }
        }
        AppendError::Busy => BackendError::Busy,
        AppendError::Deleted => BackendError::UnknownTopic { topic: partition.topic.to_string() },
        AppendError::NotEnoughReplicasAfterAppend | AppendError::Stopping | AppendError::Gate => {
            BackendError::NotWritable { reason: error.to_string() }
        }
    }
}

/// What a log's refusal is.
pub(super) fn of_log(partition: &Partition, error: &LogError) -> BackendError {
    match error {
        LogError::OffsetOutOfRange { offset, log_start_offset, .. } => {
            BackendError::OffsetOutOfRange {
                offset: *offset,
                log_start_offset: *log_start_offset,
                last_stable_offset: partition.offsets().last_stable,
            }
        }
        LogError::BatchLargerThanSegment { size, maximum } => {
            BackendError::RecordTooLarge { bytes: *size, bytes_max: *maximum as usize }
        }
        LogError::Corrupt { offset, reason } => {
            BackendError::CorruptBatch { offset: *offset, reason: reason.clone() }
        }
        LogError::FencedLeaderEpoch { .. } => not_leader(partition),
        LogError::Closed
        | LogError::OutOfOrderSequence { .. }
        | LogError::InvalidProducerEpoch { .. }
        | LogError::CoordinatorFenced { .. }
        | LogError::InvalidTxnState { .. }
        | LogError::UnverifiedTxn { .. }
        | LogError::UnexpectedAppendOffset { .. }
        | LogError::InvalidBatch(_)
        | LogError::StorageFull(_)
        | LogError::OutOfFiles(_)
        | LogError::Storage(_)
        | LogError::InconsistentTopicId { .. } => {
            BackendError::NotWritable { reason: error.to_string() }
        }
    }
}

fn not_leader(partition: &Partition) -> BackendError {
    BackendError::NotLeader { topic: partition.topic.to_string(), partition: partition.index }
}

/// What a refused change of the metadata is.
pub(super) fn of_controller(name: &str, error: &ControllerError) -> BackendError {
    match error {
        ControllerError::UnknownTopic | ControllerError::UnknownTopicId => {
            BackendError::UnknownTopic { topic: name.to_owned() }
        }
        ControllerError::TopicExists(_)
        | ControllerError::TopicBeingDeleted(_)
        | ControllerError::InvalidTopicName(_)
        | ControllerError::InvalidPartitions(_)
        | ControllerError::InvalidReplicationFactor(_)
        | ControllerError::InvalidReplicaAssignment(_)
        | ControllerError::InvalidConfig(_)
        | ControllerError::NotAllowed(_)
        | ControllerError::InvalidFeatureLevel(_)
        | ControllerError::DeletionDisabled
        | ControllerError::LimitReached(_) => {
            BackendError::InvalidTopic { reason: error.to_string() }
        }
        ControllerError::NotWritable(reason) => {
            BackendError::NotWritable { reason: reason.clone() }
        }
    }
}

/// What a coordinator's refusal is.
pub(super) fn of_group(group: &str, error: &GroupError) -> BackendError {
    let conflict = |kind| BackendError::GroupKindConflict { group: group.to_owned(), kind };
    match error {
        GroupError::HeldByKafka => conflict("Kafka"),
        GroupError::HeldByRocketMq => conflict("RocketMQ"),
        GroupError::BroadcastGroup => conflict("broadcasting"),
        GroupError::GroupMaxSizeReached | GroupError::TooLarge | GroupError::InvalidGroupId => {
            BackendError::LimitReached { reason: format!("group {group}: {error}") }
        }
        GroupError::CoordinatorNotAvailable
        | GroupError::NotCoordinator
        | GroupError::CoordinatorLoadInProgress
        | GroupError::IllegalGeneration
        | GroupError::InconsistentGroupProtocol
        | GroupError::UnknownMemberId
        | GroupError::InvalidSessionTimeout
        | GroupError::RebalanceInProgress
        | GroupError::OffsetMetadataTooLarge
        | GroupError::MemberIdRequired
        | GroupError::FencedInstanceId
        | GroupError::NonEmptyGroup
        | GroupError::GroupIdNotFound
        | GroupError::InvalidRequest
        | GroupError::FencedMemberEpoch
        | GroupError::StaleMemberEpoch
        | GroupError::UnreleasedInstanceId
        | GroupError::UnsupportedAssignor
        | GroupError::InvalidRegularExpression
        | GroupError::UnsupportedVersion
        | GroupError::InvalidProducerEpoch
        | GroupError::InvalidTxnState
        | GroupError::TransactionCoordinatorFenced
        | GroupError::GroupSubscribedToTopic => {
            BackendError::CoordinatorNotReady { group: group.to_owned() }
        }
    }
}
