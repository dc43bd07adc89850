//! Why a coordinator refuses.

/// A refusal. Each protocol has one map from here to its own codes; a refused request changed
/// nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// The coordinator cannot serve just now; retry, after looking it up again.
    #[error("coordinator is not available")]
    CoordinatorNotAvailable,
    /// This node does not lead the group's partition.
    #[error("this node is not the group's coordinator")]
    NotCoordinator,
    /// The group's partition is still being read.
    #[error("the group's partition is still loading")]
    CoordinatorLoadInProgress,
    /// The group id is empty where it must not be, or too long.
    #[error("invalid group id")]
    InvalidGroupId,
    /// The request names another generation than the present one.
    #[error("illegal generation")]
    IllegalGeneration,
    /// Protocol type or name does not fit the group's, or the group belongs to another family.
    #[error("protocols do not fit the group's")]
    InconsistentGroupProtocol,
    /// No such member in the group.
    #[error("unknown member id")]
    UnknownMemberId,
    /// Outside `group.min.session.timeout.ms` to `group.max.session.timeout.ms`.
    #[error("session timeout is out of range")]
    InvalidSessionTimeout,
    /// The members must join again.
    #[error("the group is rebalancing")]
    RebalanceInProgress,
    /// Longer than `offset.metadata.max.bytes`.
    #[error("offset metadata is too large")]
    OffsetMetadataTooLarge,
    /// `group.max.size` is reached.
    #[error("the group is full")]
    GroupMaxSizeReached,
    /// Join again with the member id of this answer (KIP-394).
    #[error("a member id is required")]
    MemberIdRequired,
    /// Another member has taken this instance id (KIP-345).
    #[error("another member has this instance id")]
    FencedInstanceId,
    /// The group has members.
    #[error("the group is not empty")]
    NonEmptyGroup,
    /// No such group.
    #[error("no such group")]
    GroupIdNotFound,
    /// The group is subscribed to the topic (KIP-496).
    #[error("the group is subscribed to the topic")]
    GroupSubscribedToTopic,
    /// The request itself is wrong.
    #[error("invalid request")]
    InvalidRequest,
    /// The member is in another epoch than it says: it must give all up and join anew (KIP-848).
    #[error("the member epoch is fenced by the group coordinator")]
    FencedMemberEpoch,
    /// The member has gone on to a later epoch since (KIP-848).
    #[error("the member epoch is stale")]
    StaleMemberEpoch,
    /// The static member that has this instance id is still there.
    #[error("the instance id is still used by another member")]
    UnreleasedInstanceId,
    /// No such assignor on this server.
    #[error("the assignor is not supported by the group coordinator")]
    UnsupportedAssignor,
    /// The regular expression cannot be read.
    #[error("the regular expression is not valid")]
    InvalidRegularExpression,
    /// A member of the consumer protocol used an API version that is too old for it.
    #[error("the version of the API is not supported for members of the consumer protocol")]
    UnsupportedVersion,
    /// What would have to be stored is larger than the log takes, or a string too long to store.
    #[error("too large to store")]
    TooLarge,
    /// The producer has a higher epoch by now.
    #[error("the producer's epoch is too low")]
    InvalidProducerEpoch,
    /// The transaction does not write to this group, or not any more.
    #[error("not part of an ongoing transaction")]
    InvalidTxnState,
    /// A newer transaction coordinator has ended transactions here.
    #[error("a newer transaction coordinator has written here")]
    TransactionCoordinatorFenced,
    /// Kafka members hold the group; a RocketMQ client may join once it is empty.
    #[error("the group has Kafka members; it must be empty before a RocketMQ client joins")]
    HeldByKafka,
    /// RocketMQ members hold the group; a Kafka client may join once it is empty.
    #[error("the group has RocketMQ members; it must be empty before a Kafka client joins")]
    HeldByRocketMq,
    /// The group consumes in broadcast mode: its positions live at its clients.
    #[error("the group is broadcasting: its positions are kept by its clients")]
    BroadcastGroup,
}

/// A refusal that is told in words besides.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    /// Which one.
    pub error: GroupError,
    /// In words, as Kafka's where it has some.
    pub text: String,
}

impl Refusal {
    /// A refusal in these words.
    #[must_use]
    pub fn new(error: GroupError, text: impl Into<String>) -> Self {
        Self { error, text: text.into() }
    }
}

impl From<GroupError> for Refusal {
    fn from(error: GroupError) -> Self {
        Self { error, text: error.to_string() }
    }
}

/// Why the log did not take a batch of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// Leadership moved.
    #[error("not the leader any more")]
    NotLeader,
    /// Fewer in-sync replicas than `min.insync.replicas`.
    #[error("not enough replicas in sync")]
    NotEnoughReplicas,
    /// The batch is larger than the log takes.
    #[error("batch too large")]
    TooLarge,
    /// The disk refused.
    #[error("storage failed")]
    Storage,
    /// The producer has a higher epoch by now.
    #[error("the producer's epoch is too low")]
    ProducerFenced,
    /// The transaction is not, or not any more, one that writes here.
    #[error("not part of an ongoing transaction")]
    NotInTransaction,
    /// A newer transaction coordinator has written here.
    #[error("a newer transaction coordinator has written here")]
    CoordinatorFenced,
}

impl From<AppendError> for GroupError {
    /// As Kafka's `CoordinatorOperationExceptionHelper`.
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::NotLeader | AppendError::Storage => Self::NotCoordinator,
            AppendError::NotEnoughReplicas => Self::CoordinatorNotAvailable,
            AppendError::TooLarge => Self::TooLarge,
            AppendError::ProducerFenced => Self::InvalidProducerEpoch,
            AppendError::NotInTransaction => Self::InvalidTxnState,
            AppendError::CoordinatorFenced => Self::TransactionCoordinatorFenced,
        }
    }
}
