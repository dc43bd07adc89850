//! What a group coordinator is asked and told.
//!
//! The structs carry what a request means, not how a version of it looks on the wire: where
//! versions differ in meaning, a field says which meaning is wanted.

use std::sync::Arc;

use bytes::Bytes;
use duolog_log_core::ids::TopicId;
use duolog_log_core::log::Verified;

use crate::record::transaction::ProducerIdAndEpoch;
use crate::shard::TransactionEnd;

use crate::group::metadata::Metadata;

mod consumer;
mod rocketmq;

pub use consumer::{
    ConsumerGroupHeartbeat, JOIN_EPOCH, LEAVE_EPOCH, LEAVE_FOR_NOW_EPOCH, MemberIdMaker,
};
pub use rocketmq::{
    ChannelId, Client, CommitQueueOffset, ConsumeFromWhere, ConsumeType, ConsumerHeartbeat,
    ConsumerLeave, LockQueues, MemberNotices, MessageModel, OwnPositions, ProducerHeartbeat,
    ProducerLeave, QueryQueueOffset, Queue, ReplaceQueueOffset, Subscription,
};

/// A group's name.
pub type GroupId = Arc<str>;
/// A Kafka member's id; empty where the protocol has none yet.
pub type MemberId = Arc<str>;

/// One input. Each request concerns one group: the caller splits the batched forms
/// (DescribeGroups, DeleteGroups, OffsetFetch) by group, as it must by coordinator anyway.
#[derive(Clone, Debug)]
pub enum Event {
    /// ConsumerGroupHeartbeat (key 68).
    ConsumerGroupHeartbeat(Box<ConsumerGroupHeartbeat>),
    /// ConsumerGroupDescribe (key 69), one of its groups.
    DescribeConsumerGroup(GroupId),
    /// JoinGroup (key 11). May be answered much later.
    JoinGroup(Box<JoinGroup>),
    /// SyncGroup (key 14). May be answered much later.
    SyncGroup(SyncGroup),
    /// Heartbeat (key 12).
    Heartbeat(Heartbeat),
    /// LeaveGroup (key 13).
    LeaveGroup(LeaveGroup),
    /// OffsetCommit (key 8).
    OffsetCommit(OffsetCommit),
    /// TxnOffsetCommit (key 28).
    TxnOffsetCommit(TxnOffsetCommit),
    /// A transaction that committed positions in this partition has ended (WriteTxnMarkers, key 27).
    EndTransaction(TransactionEnd),
    /// OffsetFetch (key 9), one of its groups.
    OffsetFetch(OffsetFetch),
    /// OffsetDelete (key 47).
    OffsetDelete(OffsetDelete),
    /// ListGroups (key 16): this partition's part of the list.
    ListGroups(ListGroups),
    /// DescribeGroups (key 15), one of its groups.
    DescribeGroup(DescribeGroup),
    /// DeleteGroups (key 42), one of its groups.
    DeleteGroup(DeleteGroup),
    /// One consumer group of a RocketMQ heartbeat (code 34).
    ConsumerHeartbeat(Box<ConsumerHeartbeat>),
    /// One producer group of a RocketMQ heartbeat (code 34).
    ProducerHeartbeat(ProducerHeartbeat),
    /// A RocketMQ client leaves a consumer group (code 35).
    ConsumerLeave(ConsumerLeave),
    /// A RocketMQ client leaves a producer group (code 35).
    ProducerLeave(ProducerLeave),
    /// A RocketMQ connection closed: its clients leave all their groups.
    ChannelClosed(ChannelId),
    /// The live members of a RocketMQ consumer group (codes 38, 203).
    ConsumerGroup(GroupId),
    /// The live members of a RocketMQ producer group (code 204).
    ProducerGroup(GroupId),
    /// LOCK_BATCH_MQ (code 41).
    LockQueues(LockQueues),
    /// UNLOCK_BATCH_MQ (code 42).
    UnlockQueues(LockQueues),
    /// UPDATE_CONSUMER_OFFSET (code 15).
    CommitQueueOffset(CommitQueueOffset),
    /// The start of what a group has popped of a queue is to be its position.
    ReplaceQueueOffset(ReplaceQueueOffset),
    /// QUERY_CONSUMER_OFFSET (code 14).
    QueryQueueOffset(QueryQueueOffset),
    /// The position that messages are popped from: refused while Kafka members hold the group.
    PopQueueOffset(QueryQueueOffset),
    /// A topic was deleted: the positions committed on it go.
    TopicDeleted(DeletedTopic),
    /// One group's part of [`Self::TopicDeleted`].
    ForgetTopic {
        /// The group.
        group: GroupId,
        /// The topic.
        topic: DeletedTopic,
    },
    /// One group's part of the check for expired positions.
    ExpireOffsets(GroupId),
    /// One consumer group's part of [`Self::ChannelClosed`].
    ChannelLeft {
        /// The group.
        group: GroupId,
        /// The connection that closed.
        channel: ChannelId,
    },
    /// The cluster's metadata are these from now on.
    Metadata(Arc<dyn Metadata>),
    /// A timer fired.
    Fired(Timer),
}

/// Timers of a group shard.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// A Kafka member's session, or a joining member's patience.
    Session(GroupId, MemberId),
    /// The join phase of a rebalance ends.
    Join(GroupId),
    /// The sync phase of a rebalance ends.
    Sync(GroupId),
    /// A member of a consumer group has to have given up partitions.
    Revocation(GroupId, MemberId),
    /// A classic member of a consumer group has to have joined again.
    Rejoin(GroupId, MemberId),
    /// A classic member of a consumer group has to have asked for its partitions.
    MemberSync(GroupId, MemberId),
    /// A RocketMQ consumer group's next member, or its kept subscription, expires.
    Consumers(GroupId),
    /// The next RocketMQ producer expires.
    Producers,
    /// The next locked RocketMQ queue lapses.
    QueueLocks,
    /// `offsets.retention.check.interval.ms` has passed.
    OffsetsRetention,
}

/// One of the protocols that a member offers, in order of its preference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// `range`, `sticky`…
    pub name: Arc<str>,
    /// What the leader needs of the member to assign.
    pub metadata: Bytes,
}

/// How a new member without an id comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstJoin {
    /// At once (JoinGroup v0 to v3).
    Direct,
    /// By a second join with the id that the first one's refusal gives (v4 on, KIP-394).
    WithGivenId,
}

/// What a static member that comes back as leader of a stable group is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaderReturn {
    /// The old leader's id, so that it behaves as a follower (JoinGroup v0 to v8).
    AsFollower,
    /// That it leads and must skip the assignment (v9 on, KIP-814).
    SkipAssignment,
}

/// JoinGroup.
#[derive(Clone, Debug)]
pub struct JoinGroup {
    /// The group.
    pub group: GroupId,
    /// The member's id, empty at first.
    pub member: MemberId,
    /// `group.instance.id` (KIP-345).
    pub instance: Option<Arc<str>>,
    /// Its client id.
    pub client_id: Arc<str>,
    /// Its address, as Java prints one: `/127.0.0.1`.
    pub client_host: Arc<str>,
    /// How long it may take to join again in a rebalance. In v0: the session timeout.
    pub rebalance_timeout_ms: i32,
    /// How long it may stay silent.
    pub session_timeout_ms: i32,
    /// `consumer`, `connect`…
    pub protocol_type: Arc<str>,
    /// In order of preference.
    pub protocols: Vec<Protocol>,
    /// Why it joins, in its own words (KIP-800).
    pub reason: Option<Arc<str>>,
    /// By version.
    pub first_join: FirstJoin,
    /// By version.
    pub leader_return: LeaderReturn,
    /// Random bytes, used when a member id must be made.
    pub uuid: [u8; 16],
}

/// SyncGroup.
#[derive(Clone, Debug)]
pub struct SyncGroup {
    /// The group.
    pub group: GroupId,
    /// The member.
    pub member: MemberId,
    /// `group.instance.id` (KIP-345).
    pub instance: Option<Arc<str>>,
    /// The generation that its join was told.
    pub generation: i32,
    /// As its join was told (v5 on, KIP-559).
    pub protocol_type: Option<Arc<str>>,
    /// As its join was told (v5 on, KIP-559).
    pub protocol: Option<Arc<str>>,
    /// The leader's assignment; empty from followers.
    pub assignments: Vec<(MemberId, Bytes)>,
}

/// Heartbeat.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    /// The group.
    pub group: GroupId,
    /// The member.
    pub member: MemberId,
    /// `group.instance.id` (KIP-345).
    pub instance: Option<Arc<str>>,
    /// The generation that its join was told.
    pub generation: i32,
}

/// Who leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeavingMember {
    /// The member; empty when an administrator removes one by `instance`.
    pub member: MemberId,
    /// `group.instance.id` (KIP-345).
    pub instance: Option<Arc<str>>,
    /// Why, in its own words (KIP-800).
    pub reason: Option<Arc<str>>,
}

/// LeaveGroup; one member before v3.
#[derive(Clone, Debug)]
pub struct LeaveGroup {
    /// The group.
    pub group: GroupId,
    /// Who leaves.
    pub members: Vec<LeavingMember>,
}

/// Whether a member of the consumer protocol may send this request: from v9 of OffsetCommit on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitForm {
    /// It names generations only.
    Generation,
    /// It may name a member epoch.
    MemberEpoch,
}

/// The answer to a commit of a generation in a group that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownGroup {
    /// `IllegalGeneration` (OffsetCommit below v9).
    IllegalGeneration,
    /// `GroupIdNotFound` (v9 on).
    NotFound,
}

/// OffsetCommit.
#[derive(Clone, Debug)]
pub struct OffsetCommit {
    /// The group; may be empty.
    pub group: GroupId,
    /// The member; empty for a consumer that manages its partitions itself.
    pub member: MemberId,
    /// `group.instance.id` (KIP-345).
    pub instance: Option<Arc<str>>,
    /// The member's generation, or its epoch; −1 for a consumer that manages its partitions itself.
    pub generation: i32,
    /// How long to keep the positions; `None` for the server's default (−1 on the wire; v2 to v4).
    pub retention_ms: Option<i64>,
    /// By version.
    pub form: CommitForm,
    /// By version.
    pub unknown_group: UnknownGroup,
    /// What to commit.
    pub topics: Vec<TopicCommit>,
}

/// TxnOffsetCommit: positions that count once the producer's transaction commits.
#[derive(Clone, Debug)]
pub struct TxnOffsetCommit {
    /// What to commit, for whom.
    pub commit: OffsetCommit,
    /// Whose transaction.
    pub producer: ProducerIdAndEpoch,
    /// Why it may be written: its coordinator was asked.
    pub verified: Verified,
}

/// Positions on one topic.
#[derive(Clone, Debug)]
pub struct TopicCommit {
    /// Stored name.
    pub topic: Arc<str>,
    /// Its id if the request named it by id (v10 on, KIP-516), else zero.
    pub topic_id: TopicId,
    /// Positions.
    pub partitions: Vec<PartitionCommit>,
}

/// A position on one partition.
#[derive(Clone, Debug)]
pub struct PartitionCommit {
    /// 0-based.
    pub partition: i32,
    /// Next offset to read.
    pub offset: i64,
    /// Epoch of the last record read, or −1 (KIP-320).
    pub leader_epoch: i32,
    /// The client's own words; null is stored as "".
    pub metadata: Option<Arc<str>>,
}

/// OffsetFetch of one group. Positions that an open transaction holds (KIP-447) do not exist yet,
/// so `require_stable` needs no field: every answer waits until it is committed.
#[derive(Clone, Debug)]
pub struct OffsetFetch {
    /// The group; may be empty.
    pub group: GroupId,
    /// The member and its epoch (v9 on, KIP-848); `None` for whoever is none.
    pub member: Option<(MemberId, i32)>,
    /// What to fetch; `None` for all that is committed.
    pub topics: Option<Vec<TopicFetch>>,
}

/// Which partitions of one topic.
#[derive(Clone, Debug)]
pub struct TopicFetch {
    /// Stored name.
    pub topic: Arc<str>,
    /// Its id if the request named it by id (v10 on, KIP-516), else zero.
    pub topic_id: TopicId,
    /// 0-based.
    pub partitions: Vec<i32>,
}

/// OffsetDelete.
#[derive(Clone, Debug)]
pub struct OffsetDelete {
    /// The group.
    pub group: GroupId,
    /// Stored names and partitions.
    pub topics: Vec<(Arc<str>, Vec<i32>)>,
}

/// ListGroups.
#[derive(Clone, Debug, Default)]
pub struct ListGroups {
    /// States to list (KIP-518); empty for all. Case does not matter, unknown ones match nothing.
    pub states: Vec<Arc<str>>,
    /// Types to list (KIP-848); empty for all. Case does not matter, unknown ones match nothing.
    pub types: Vec<Arc<str>>,
}

/// How a group that does not exist is described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingGroup {
    /// As dead, without an error (DescribeGroups below v6).
    Dead,
    /// As dead, with `GroupIdNotFound` and a text (v6 on, KIP-1043).
    NotFound,
}

/// DescribeGroups, one of its groups.
#[derive(Clone, Debug)]
pub struct DescribeGroup {
    /// The group; may be empty.
    pub group: GroupId,
    /// By version.
    pub missing: MissingGroup,
}

/// DeleteGroups, one of its groups.
#[derive(Clone, Debug)]
pub struct DeleteGroup {
    /// The group; may be empty.
    pub group: GroupId,
}

/// A topic that is no more.
#[derive(Clone, Debug)]
pub struct DeletedTopic {
    /// Stored name.
    pub name: Arc<str>,
    /// Its id; positions committed for another id of this name stay.
    pub id: TopicId,
}
