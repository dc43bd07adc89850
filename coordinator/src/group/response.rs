//! What a group coordinator answers and tells.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use duolog_log_core::ids::TopicId;

use crate::error::{GroupError, Refusal};
use crate::group::event::{
    ChannelId, Client, ConsumeFromWhere, ConsumeType, GroupId, MemberId, MessageModel, Subscription,
};
use crate::group::image::consumer::ConsumerMember;
use crate::record::consumer::Assignment;

/// The answer to the event of the same name. A refusal of the whole request is a
/// [`GroupError`] beside it, unless the answer has a place for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// To `ConsumerGroupHeartbeat`.
    ConsumerGroupHeartbeat(Result<HeartbeatResponse, Refusal>),
    /// To `DescribeConsumerGroup`.
    DescribeConsumerGroup(Result<DescribedConsumerGroup, Refusal>),
    /// To `JoinGroup`.
    JoinGroup(JoinGroupResponse),
    /// To `SyncGroup`.
    SyncGroup(SyncGroupResponse),
    /// To `Heartbeat`.
    Heartbeat,
    /// To `LeaveGroup`: one for each member asked for, in order.
    LeaveGroup(Vec<LeftMember>),
    /// To `OffsetCommit`: topics and partitions in the order asked.
    OffsetCommit(Vec<CommittedTopic>),
    /// To `OffsetFetch`: in the order asked, or by name.
    OffsetFetch(Vec<FetchedTopic>),
    /// To `OffsetDelete`: topics and partitions in the order asked.
    OffsetDelete(DeletedOffsets),
    /// To `ListGroups`: by name.
    ListGroups(Vec<ListedGroup>),
    /// To `DescribeGroup`.
    DescribeGroup(DescribedGroup),
    /// To `DeleteGroup`.
    DeleteGroup,
    /// To `ConsumerHeartbeat`.
    ConsumerHeartbeat(GroupChange),
    /// To `ConsumerGroup`; `None` without live members.
    ConsumerGroup(Option<Arc<ConsumerGroupView>>),
    /// To `ProducerGroup`: sorted by client id.
    ProducerGroup(Vec<LiveClient>),
    /// To `LockQueues`: for each queue in the order asked, whether the client holds it now.
    LockQueues(Vec<bool>),
    /// To `QueryQueueOffset`, `PopQueueOffset` and `ReplaceQueueOffset`; `None` without a committed
    /// position.
    QueryQueueOffset(Option<i64>),
    /// To what needs no words.
    Done,
}

/// Answer to JoinGroup. With an error all but `member` is empty (generation −1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinGroupResponse {
    /// Why it was refused.
    pub error: Option<GroupError>,
    /// −1 if refused.
    pub generation: i32,
    /// As the group agreed.
    pub protocol_type: Option<Arc<str>>,
    /// As the group agreed; below v7 the wire has "" for none.
    pub protocol: Option<Arc<str>>,
    /// Who leads; empty if refused.
    pub leader: MemberId,
    /// The leader must not assign, but follow the stored assignment (KIP-814).
    pub skip_assignment: bool,
    /// The member's id: given, made, or empty.
    pub member: MemberId,
    /// All members, for the leader alone.
    pub members: Vec<JoinedMember>,
}

impl JoinGroupResponse {
    /// A refusal.
    #[must_use]
    pub fn refused(member: MemberId, error: GroupError) -> Self {
        Self {
            error: Some(error),
            generation: -1,
            protocol_type: None,
            protocol: None,
            leader: Arc::from(""),
            skip_assignment: false,
            member,
            members: Vec::new(),
        }
    }
}

/// A member as the leader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedMember {
    /// Its id.
    pub member: MemberId,
    /// `group.instance.id` (KIP-345).
    pub instance: Option<Arc<str>>,
    /// For the protocol that was chosen.
    pub metadata: Bytes,
}

/// Answer to SyncGroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncGroupResponse {
    /// As the group agreed.
    pub protocol_type: Option<Arc<str>>,
    /// As the group agreed.
    pub protocol: Option<Arc<str>>,
    /// What the leader gave this member.
    pub assignment: Bytes,
}

/// One member of an answer to LeaveGroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftMember {
    /// As asked.
    pub member: MemberId,
    /// As asked.
    pub instance: Option<Arc<str>>,
    /// Why it was refused.
    pub error: Option<GroupError>,
}

/// One topic of an answer to OffsetCommit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedTopic {
    /// As asked.
    pub topic: Arc<str>,
    /// As asked.
    pub topic_id: TopicId,
    /// Each partition.
    pub partitions: Vec<PartitionResult>,
}

/// Topics and partitions of an answer to OffsetDelete.
pub type DeletedOffsets = Vec<(Arc<str>, Vec<PartitionResult>)>;

/// One partition of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionResult {
    /// As asked.
    pub partition: i32,
    /// Why it was refused.
    pub error: Option<GroupError>,
}

/// One topic of an answer to OffsetFetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedTopic {
    /// Stored name.
    pub topic: Arc<str>,
    /// As asked; zero when all topics were asked for.
    pub topic_id: TopicId,
    /// Each partition.
    pub partitions: Vec<FetchedOffset>,
}

/// A committed position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedOffset {
    /// 0-based.
    pub partition: i32,
    /// Next offset to read, −1 for none.
    pub offset: i64,
    /// Epoch of the last record read, or −1.
    pub leader_epoch: i32,
    /// The client's own words.
    pub metadata: Arc<str>,
}

/// State of a group as Kafka's tools know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupState {
    /// No members.
    Empty,
    /// The members are asked to join again.
    PreparingRebalance,
    /// The members wait for the leader's assignment.
    CompletingRebalance,
    /// A consumer group's targets are not of its latest epoch.
    Assigning,
    /// Members of a consumer group are on their way to their targets.
    Reconciling,
    /// The members consume.
    Stable,
    /// No such group.
    Dead,
}

impl GroupState {
    /// As on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Assigning => "Assigning",
            Self::Reconciling => "Reconciling",
            Self::Stable => "Stable",
            Self::Dead => "Dead",
        }
    }
}

/// Type of all groups but consumer groups, as on the wire (KIP-848).
pub const CLASSIC_TYPE: &str = "classic";
/// Type of consumer groups.
pub const CONSUMER_TYPE: &str = "consumer";

/// One group of an answer to ListGroups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedGroup {
    /// Its name.
    pub group: GroupId,
    /// `consumer`, `connect`…; empty for none.
    pub protocol_type: Arc<str>,
    /// Its state.
    pub state: GroupState,
    /// Its type.
    pub group_type: &'static str,
}

/// Answer to ConsumerGroupHeartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeartbeatResponse {
    /// The member's id.
    pub member: MemberId,
    /// The epoch that its next heartbeat must name; as asked when it leaves.
    pub epoch: i32,
    /// When its next heartbeat is due.
    pub heartbeat_interval_ms: i32,
    /// What it may consume; `None`: as before.
    pub assignment: Option<Assignment>,
}

/// A consumer group, described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedConsumerGroup {
    /// Its state.
    pub state: GroupState,
    /// Its epoch.
    pub epoch: i32,
    /// For which epoch the targets are.
    pub target_epoch: i32,
    /// The assignor that most members ask for.
    pub assignor: Arc<str>,
    /// By member id.
    pub members: Vec<DescribedConsumer>,
}

/// One member of [`DescribedConsumerGroup`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedConsumer {
    /// Its id.
    pub id: MemberId,
    /// Who it is and what it has.
    pub member: Arc<ConsumerMember>,
    /// What it shall have.
    pub target: Arc<Assignment>,
}

/// Answer to DescribeGroups for one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedGroup {
    /// Its name.
    pub group: GroupId,
    /// Why it cannot be described.
    pub error: Option<GroupError>,
    /// The same in words (v6 on).
    pub error_message: Option<String>,
    /// Its state.
    pub state: GroupState,
    /// `consumer`, `connect`…; empty for none.
    pub protocol_type: Arc<str>,
    /// The chosen protocol of a stable group, else empty.
    pub protocol: Arc<str>,
    /// By member id.
    pub members: Vec<DescribedMember>,
}

/// One member of [`DescribedGroup`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedMember {
    /// Its id.
    pub member: MemberId,
    /// `group.instance.id` (KIP-345).
    pub instance: Option<Arc<str>>,
    /// Its client id.
    pub client_id: Arc<str>,
    /// Its address.
    pub client_host: Arc<str>,
    /// Its metadata in a stable group, else empty.
    pub metadata: Bytes,
    /// What it was assigned, or empty.
    pub assignment: Bytes,
}

/// What a RocketMQ heartbeat changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupChange {
    /// A member came or moved to another connection.
    pub members: bool,
    /// A topic came or went, or an expression was replaced by a newer one.
    pub subscriptions: bool,
}

/// A RocketMQ client and when it was last heard of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveClient {
    /// Who and where.
    pub client: Client,
    /// Time of its last heartbeat, milliseconds since 1970.
    pub last_heartbeat_ms: i64,
}

/// A RocketMQ consumer group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerGroupView {
    /// As the latest heartbeat said.
    pub consume_type: ConsumeType,
    /// As the latest heartbeat said.
    pub message_model: MessageModel,
    /// As the latest heartbeat said.
    pub consume_from_where: ConsumeFromWhere,
    /// Sorted by client id.
    pub members: Vec<LiveClient>,
    /// By RocketMQ's name of the topic. Kept for `subscriptionExpiredTimeout` after the last member
    /// left.
    pub subscriptions: BTreeMap<Arc<str>, Arc<Subscription>>,
}

/// News that answer no request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A RocketMQ consumer group changed: publish it to those who read it on every pull. `None`:
    /// it has neither members nor a kept subscription any more. A renewal alone is not told.
    ConsumerGroup {
        /// A RocketMQ group.
        group: GroupId,
        /// As it is now.
        view: Option<Arc<ConsumerGroupView>>,
    },
    /// Tell these connections that the members of the group changed
    /// (NOTIFY_CONSUMER_IDS_CHANGED, code 40).
    MembersChanged {
        /// A RocketMQ group.
        group: GroupId,
        /// Each once.
        channels: Vec<ChannelId>,
    },
    /// A RocketMQ client was silent too long: close its connection, as the original does.
    ChannelExpired(ChannelId),
}
