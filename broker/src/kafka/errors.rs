//! Kafka's error codes and the only map to them.
//!
//! Numbers and names are those of Kafka 4.3.1. Whether clients retry is the client's matter, not
//! stated here.

use std::fmt;

use duolog_coordinator::error::{AppendError, GroupError};
use duolog_coordinator::txn::kafka::error::TxnError;
use duolog_log_core::log::error::LogError;
use duolog_log_core::record::error::{RecordError, RejectKind, RejectedRecords};
use duolog_log_core::replication::partition::ReplicationError;

use crate::controller::ControllerError;
use crate::kafka::fetch_sessions::SessionError;
use crate::partitions::append;
use crate::telemetry::Refusal;

/// An error code of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i16)]
pub enum ErrorCode {
    UnknownServerError = -1,
    #[default]
    None = 0,
    OffsetOutOfRange = 1,
    CorruptMessage = 2,
    UnknownTopicOrPartition = 3,
    InvalidFetchSize = 4,
    LeaderNotAvailable = 5,
    NotLeaderOrFollower = 6,
    RequestTimedOut = 7,
    BrokerNotAvailable = 8,
    ReplicaNotAvailable = 9,
    MessageTooLarge = 10,
    StaleControllerEpoch = 11,
    OffsetMetadataTooLarge = 12,
    NetworkException = 13,
    CoordinatorLoadInProgress = 14,
    CoordinatorNotAvailable = 15,
    NotCoordinator = 16,
    InvalidTopicException = 17,
    RecordListTooLarge = 18,
    NotEnoughReplicas = 19,
    NotEnoughReplicasAfterAppend = 20,
    InvalidRequiredAcks = 21,
    IllegalGeneration = 22,
    InconsistentGroupProtocol = 23,
    InvalidGroupId = 24,
    UnknownMemberId = 25,
    InvalidSessionTimeout = 26,
    RebalanceInProgress = 27,
    InvalidCommitOffsetSize = 28,
    TopicAuthorizationFailed = 29,
    GroupAuthorizationFailed = 30,
    ClusterAuthorizationFailed = 31,
    InvalidTimestamp = 32,
    UnsupportedSaslMechanism = 33,
    IllegalSaslState = 34,
    UnsupportedVersion = 35,
    TopicAlreadyExists = 36,
    InvalidPartitions = 37,
    InvalidReplicationFactor = 38,
    InvalidReplicaAssignment = 39,
    InvalidConfig = 40,
    NotController = 41,
    InvalidRequest = 42,
    UnsupportedForMessageFormat = 43,
    PolicyViolation = 44,
    OutOfOrderSequenceNumber = 45,
    DuplicateSequenceNumber = 46,
    InvalidProducerEpoch = 47,
    InvalidTxnState = 48,
    InvalidProducerIdMapping = 49,
    InvalidTransactionTimeout = 50,
    ConcurrentTransactions = 51,
    TransactionCoordinatorFenced = 52,
    TransactionalIdAuthorizationFailed = 53,
    SecurityDisabled = 54,
    OperationNotAttempted = 55,
    KafkaStorageError = 56,
    LogDirNotFound = 57,
    SaslAuthenticationFailed = 58,
    UnknownProducerId = 59,
    ReassignmentInProgress = 60,
    DelegationTokenAuthDisabled = 61,
    DelegationTokenNotFound = 62,
    DelegationTokenOwnerMismatch = 63,
    DelegationTokenRequestNotAllowed = 64,
    DelegationTokenAuthorizationFailed = 65,
    DelegationTokenExpired = 66,
    InvalidPrincipalType = 67,
    NonEmptyGroup = 68,
    GroupIdNotFound = 69,
    FetchSessionIdNotFound = 70,
    InvalidFetchSessionEpoch = 71,
    ListenerNotFound = 72,
    TopicDeletionDisabled = 73,
    FencedLeaderEpoch = 74,
    UnknownLeaderEpoch = 75,
    UnsupportedCompressionType = 76,
    StaleBrokerEpoch = 77,
    OffsetNotAvailable = 78,
    MemberIdRequired = 79,
    PreferredLeaderNotAvailable = 80,
    GroupMaxSizeReached = 81,
    FencedInstanceId = 82,
    EligibleLeadersNotAvailable = 83,
    ElectionNotNeeded = 84,
    NoReassignmentInProgress = 85,
    GroupSubscribedToTopic = 86,
    InvalidRecord = 87,
    UnstableOffsetCommit = 88,
    ThrottlingQuotaExceeded = 89,
    ProducerFenced = 90,
    ResourceNotFound = 91,
    DuplicateResource = 92,
    UnacceptableCredential = 93,
    InconsistentVoterSet = 94,
    InvalidUpdateVersion = 95,
    FeatureUpdateFailed = 96,
    PrincipalDeserializationFailure = 97,
    SnapshotNotFound = 98,
    PositionOutOfRange = 99,
    UnknownTopicId = 100,
    DuplicateBrokerRegistration = 101,
    BrokerIdNotRegistered = 102,
    InconsistentTopicId = 103,
    InconsistentClusterId = 104,
    TransactionalIdNotFound = 105,
    FetchSessionTopicIdError = 106,
    IneligibleReplica = 107,
    NewLeaderElected = 108,
    OffsetMovedToTieredStorage = 109,
    FencedMemberEpoch = 110,
    UnreleasedInstanceId = 111,
    UnsupportedAssignor = 112,
    StaleMemberEpoch = 113,
    MismatchedEndpointType = 114,
    UnsupportedEndpointType = 115,
    UnknownControllerId = 116,
    UnknownSubscriptionId = 117,
    TelemetryTooLarge = 118,
    InvalidRegistration = 119,
    TransactionAbortable = 120,
    InvalidRecordState = 121,
    ShareSessionNotFound = 122,
    InvalidShareSessionEpoch = 123,
    FencedStateEpoch = 124,
    InvalidVoterKey = 125,
    DuplicateVoter = 126,
    VoterNotFound = 127,
    InvalidRegularExpression = 128,
    RebootstrapRequired = 129,
    StreamsInvalidTopology = 130,
    StreamsInvalidTopologyEpoch = 131,
    StreamsTopologyFenced = 132,
    ShareSessionLimitReached = 133,
}

impl ErrorCode {
    /// The number on the wire.
    #[must_use]
    pub const fn code(self) -> i16 {
        self as i16
    }

    /// The code of an error that one of the maps below knows.
    pub fn of<E>(error: E) -> Self
    where
        Self: for<'a> From<&'a E>,
    {
        Self::from(&error)
    }

    /// PRODUCER_FENCED as INVALID_PRODUCER_EPOCH for those that do not know it yet: versions of an
    /// API before `since`.
    #[must_use]
    pub const fn fenced_from(self, since: i16, version: i16) -> Self {
        match self {
            Self::ProducerFenced if version < since => Self::InvalidProducerEpoch,
            code => code,
        }
    }

    /// False for [`Self::None`] alone.
    #[must_use]
    pub const fn is_error(self) -> bool {
        !matches!(self, Self::None)
    }
}

impl fmt::Display for ErrorCode {
    /// As in Kafka's own texts: `NOT_LEADER_OR_FOLLOWER`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, char) in format!("{self:?}").char_indices() {
            let word = if char.is_uppercase() && index > 0 { "_" } else { "" };
            write!(f, "{word}{}", char.to_ascii_uppercase())?;
        }
        Ok(())
    }
}

impl From<ErrorCode> for i16 {
    fn from(code: ErrorCode) -> Self {
        code.code()
    }
}

impl From<&LogError> for ErrorCode {
    fn from(error: &LogError) -> Self {
        match error {
            LogError::OutOfOrderSequence { .. } => Self::OutOfOrderSequenceNumber,
            LogError::InvalidProducerEpoch { .. } => Self::InvalidProducerEpoch,
            LogError::CoordinatorFenced { .. } => Self::TransactionCoordinatorFenced,
            LogError::InvalidTxnState { .. } | LogError::UnverifiedTxn { .. } => {
                Self::InvalidTxnState
            }
            LogError::FencedLeaderEpoch { .. } => Self::FencedLeaderEpoch,
            LogError::OffsetOutOfRange { .. } => Self::OffsetOutOfRange,
            LogError::BatchLargerThanSegment { .. } => Self::RecordListTooLarge,
            LogError::InvalidBatch(_) | LogError::Corrupt { .. } => Self::CorruptMessage,
            LogError::StorageFull(_) | LogError::OutOfFiles(_) | LogError::Storage(_) => {
                Self::KafkaStorageError
            }
            LogError::InconsistentTopicId { .. } => Self::InconsistentTopicId,
            // Whoever asks again finds the partition's new leader, or that it is gone.
            LogError::Closed => Self::NotLeaderOrFollower,
            // Only a replica appends at a given offset: no client can mend it.
            LogError::UnexpectedAppendOffset { .. } => Self::UnknownServerError,
        }
    }
}

impl From<&append::AppendError> for ErrorCode {
    fn from(error: &append::AppendError) -> Self {
        use append::AppendError as Error;
        match error {
            Error::Log(error) => error.into(),
            Error::Replication(error) => error.into(),
            Error::NotEnoughReplicasAfterAppend => Self::NotEnoughReplicasAfterAppend,
            Error::RecordTooLarge { .. } => Self::MessageTooLarge,
            Error::Busy | Error::Gate => Self::KafkaStorageError,
            // Whoever asks again finds that the topic is gone, or another leader.
            Error::Deleted => Self::UnknownTopicOrPartition,
            Error::Stopping => Self::NotLeaderOrFollower,
        }
    }
}

impl From<SessionError> for ErrorCode {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::UnknownId => Self::FetchSessionIdNotFound,
            SessionError::InvalidEpoch => Self::InvalidFetchSessionEpoch,
            SessionError::TopicIds => Self::FetchSessionTopicIdError,
        }
    }
}

impl From<&ControllerError> for ErrorCode {
    fn from(error: &ControllerError) -> Self {
        match error {
            ControllerError::TopicExists(_) | ControllerError::TopicBeingDeleted(_) => {
                Self::TopicAlreadyExists
            }
            ControllerError::InvalidTopicName(_) => Self::InvalidTopicException,
            ControllerError::UnknownTopic => Self::UnknownTopicOrPartition,
            ControllerError::UnknownTopicId => Self::UnknownTopicId,
            ControllerError::InvalidPartitions(_) => Self::InvalidPartitions,
            ControllerError::InvalidReplicationFactor(_) => Self::InvalidReplicationFactor,
            ControllerError::InvalidReplicaAssignment(_) => Self::InvalidReplicaAssignment,
            ControllerError::InvalidConfig(_) => Self::InvalidConfig,
            ControllerError::NotAllowed(_) => Self::InvalidRequest,
            ControllerError::InvalidFeatureLevel(_) => Self::InvalidUpdateVersion,
            ControllerError::DeletionDisabled => Self::TopicDeletionDisabled,
            ControllerError::LimitReached(_) => Self::PolicyViolation,
            ControllerError::NotWritable(_) => Self::KafkaStorageError,
        }
    }
}

impl From<&Refusal> for ErrorCode {
    fn from(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::TooEarly => Self::ThrottlingQuotaExceeded,
            Refusal::Terminated => Self::InvalidRequest,
            Refusal::UnknownSubscription => Self::UnknownSubscriptionId,
            Refusal::UnsupportedCompression => Self::UnsupportedCompressionType,
            Refusal::TooLarge => Self::TelemetryTooLarge,
            Refusal::Unreadable(_) => Self::InvalidRecord,
        }
    }
}

impl From<&RecordError> for ErrorCode {
    fn from(error: &RecordError) -> Self {
        match error {
            // An older format is a client's wrong choice, a later one is garbage.
            RecordError::UnsupportedMagic { magic: 0 | 1, .. } => Self::InvalidRecord,
            RecordError::UnsupportedMagic { .. }
            | RecordError::InvalidLength { .. }
            | RecordError::CrcMismatch { .. } => Self::CorruptMessage,
            RecordError::UnsupportedCompression { .. } => Self::UnsupportedCompressionType,
            // The CRC holds, so sending the same bytes again would not help. Kafka answers
            // UNKNOWN_SERVER_ERROR for data that its codecs cannot read.
            RecordError::InvalidCompressedData { .. }
            | RecordError::Truncated { .. }
            | RecordError::InvalidRecord { .. }
            | RecordError::InvalidBatch(_)
            | RecordError::BatchCount { .. }
            | RecordError::InvalidControlRecord(_)
            | RecordError::RejectedRecords(RejectedRecords { kind: RejectKind::Record, .. }) => {
                Self::InvalidRecord
            }
            RecordError::RejectedRecords(RejectedRecords {
                kind: RejectKind::Timestamp, ..
            }) => Self::InvalidTimestamp,
            RecordError::DecompressedTooLarge { .. } | RecordError::BatchTooLarge { .. } => {
                Self::MessageTooLarge
            }
        }
    }
}

impl From<&ReplicationError> for ErrorCode {
    fn from(error: &ReplicationError) -> Self {
        match error {
            ReplicationError::NotLeader { .. } => Self::NotLeaderOrFollower,
            ReplicationError::FencedLeaderEpoch { .. } => Self::FencedLeaderEpoch,
            ReplicationError::UnknownLeaderEpoch { .. } => Self::UnknownLeaderEpoch,
            ReplicationError::NotEnoughReplicas { .. } => Self::NotEnoughReplicas,
            // The leader has not learnt of the replica yet: it retries (Partition.scala).
            ReplicationError::UnknownReplica(_) => Self::UnknownLeaderEpoch,
            ReplicationError::StaleBrokerEpoch { .. } => Self::StaleBrokerEpoch,
        }
    }
}

impl From<&GroupError> for ErrorCode {
    fn from(error: &GroupError) -> Self {
        match error {
            GroupError::CoordinatorNotAvailable => Self::CoordinatorNotAvailable,
            GroupError::NotCoordinator => Self::NotCoordinator,
            GroupError::CoordinatorLoadInProgress => Self::CoordinatorLoadInProgress,
            GroupError::InvalidGroupId => Self::InvalidGroupId,
            GroupError::IllegalGeneration => Self::IllegalGeneration,
            GroupError::UnknownMemberId => Self::UnknownMemberId,
            GroupError::InvalidSessionTimeout => Self::InvalidSessionTimeout,
            GroupError::RebalanceInProgress => Self::RebalanceInProgress,
            GroupError::OffsetMetadataTooLarge => Self::OffsetMetadataTooLarge,
            GroupError::GroupMaxSizeReached => Self::GroupMaxSizeReached,
            GroupError::MemberIdRequired => Self::MemberIdRequired,
            GroupError::FencedInstanceId => Self::FencedInstanceId,
            GroupError::NonEmptyGroup => Self::NonEmptyGroup,
            GroupError::GroupIdNotFound => Self::GroupIdNotFound,
            GroupError::GroupSubscribedToTopic => Self::GroupSubscribedToTopic,
            GroupError::InvalidRequest => Self::InvalidRequest,
            GroupError::FencedMemberEpoch => Self::FencedMemberEpoch,
            GroupError::StaleMemberEpoch => Self::StaleMemberEpoch,
            GroupError::UnreleasedInstanceId => Self::UnreleasedInstanceId,
            GroupError::UnsupportedAssignor => Self::UnsupportedAssignor,
            GroupError::InvalidRegularExpression => Self::InvalidRegularExpression,
            GroupError::UnsupportedVersion => Self::UnsupportedVersion,
            GroupError::InvalidProducerEpoch => Self::InvalidProducerEpoch,
            GroupError::InvalidTxnState => Self::InvalidTxnState,
            GroupError::TransactionCoordinatorFenced => Self::TransactionCoordinatorFenced,
            // A record too large for the log is the broker's fault (CoordinatorOperationExceptionHelper).
            GroupError::TooLarge => Self::UnknownServerError,
            // What another protocol holds shows to Kafka clients as a group of another kind.
            GroupError::InconsistentGroupProtocol
            | GroupError::HeldByKafka
            | GroupError::HeldByRocketMq
            | GroupError::BroadcastGroup => Self::InconsistentGroupProtocol,
        }
    }
}

impl From<&TxnError> for ErrorCode {
    fn from(error: &TxnError) -> Self {
        match error {
            TxnError::CoordinatorNotAvailable => Self::CoordinatorNotAvailable,
            TxnError::NotCoordinator => Self::NotCoordinator,
            TxnError::CoordinatorLoadInProgress => Self::CoordinatorLoadInProgress,
            TxnError::InvalidRequest => Self::InvalidRequest,
            TxnError::InvalidTransactionTimeout => Self::InvalidTransactionTimeout,
            TxnError::InvalidProducerIdMapping => Self::InvalidProducerIdMapping,
            TxnError::ProducerFenced => Self::ProducerFenced,
            TxnError::ConcurrentTransactions => Self::ConcurrentTransactions,
            TxnError::InvalidTxnState => Self::InvalidTxnState,
            TxnError::TransactionalIdNotFound => Self::TransactionalIdNotFound,
            // As Kafka's TransactionStateManager says it of a record too large for its log.
            TxnError::TooLarge => Self::UnknownServerError,
        }
    }
}

impl From<AppendError> for ErrorCode {
    fn from(error: AppendError) -> Self {
        Self::from(&GroupError::from(error))
    }
}

#[cfg(test)]
mod tests;
