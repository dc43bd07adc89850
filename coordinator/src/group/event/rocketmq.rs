//! What RocketMQ's clients ask.

use std::net::SocketAddr;
use std::sync::Arc;

use super::GroupId;

/// A RocketMQ connection, as the caller numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(pub u64);

/// A RocketMQ client on its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// `clientIP@instanceName`.
    pub id: Arc<str>,
    /// Language code of the remoting header.
    pub language: u8,
    /// Version ordinal of the remoting header.
    pub version: i32,
    /// The other end of its connection.
    pub address: SocketAddr,
    /// Its connection: says where a notice goes.
    pub channel: ChannelId,
}

/// How a RocketMQ consumer gets its messages (`ConsumeType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsumeType {
    /// Pull consumers.
    Actively,
    /// Push consumers.
    Passively,
    /// Pop consumers.
    Pop,
}

/// Who of a group gets a message (`MessageModel`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageModel {
    /// Each member.
    Broadcasting,
    /// One member.
    Clustering,
    /// Lite topics.
    LiteSelective,
}

/// Where a new group begins (`ConsumeFromWhere`, deprecated values too).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ConsumeFromWhere {
    LastOffset,
    LastOffsetAndFromMinWhenBootFirst,
    MinOffset,
    MaxOffset,
    FirstOffset,
    Timestamp,
}

/// One topic of a group's subscription (`SubscriptionData`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// RocketMQ's name of the topic.
    pub topic: Arc<str>,
    /// The expression, `*` for all.
    pub expression: String,
    /// `TAG` or `SQL92`.
    pub expression_type: String,
    /// Tags of the expression, in the client's order.
    pub tags: Vec<String>,
    /// Java hashes of the tags; empty means all.
    pub tag_hashes: Vec<i32>,
    /// Milliseconds since 1970 when the client made it; the higher one wins.
    pub version: i64,
    /// Old class filter.
    pub class_filter_mode: bool,
}

/// Whether the members of a group want to hear of a change (`notifyConsumerIdsChangedEnable` of the
/// group's configuration).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberNotices {
    /// They do.
    On,
    /// They find out by themselves.
    Off,
}

/// One consumer group of a RocketMQ heartbeat.
#[derive(Clone, Debug)]
pub struct ConsumerHeartbeat {
    /// The group.
    pub group: GroupId,
    /// The member.
    pub client: Client,
    /// How it consumes.
    pub consume_type: ConsumeType,
    /// Who gets a message.
    pub message_model: MessageModel,
    /// Where the group begins.
    pub consume_from_where: ConsumeFromWhere,
    /// All its topics; `None` leaves the group's subscription as it is (heartbeat v2 without
    /// subscriptions).
    pub subscriptions: Option<Vec<Arc<Subscription>>>,
    /// By the group's configuration.
    pub notices: MemberNotices,
}

/// One producer group of a RocketMQ heartbeat.
#[derive(Clone, Debug)]
pub struct ProducerHeartbeat {
    /// The group.
    pub group: GroupId,
    /// The member.
    pub client: Client,
}

/// A RocketMQ client leaves a consumer group.
#[derive(Clone, Debug)]
pub struct ConsumerLeave {
    /// The group.
    pub group: GroupId,
    /// `clientIP@instanceName`.
    pub client: Arc<str>,
    /// By the group's configuration.
    pub notices: MemberNotices,
}

/// A RocketMQ client leaves a producer group.
#[derive(Clone, Debug)]
pub struct ProducerLeave {
    /// The group.
    pub group: GroupId,
    /// `clientIP@instanceName`.
    pub client: Arc<str>,
}

/// A RocketMQ queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Queue {
    /// Stored name of the topic.
    pub topic: Arc<str>,
    /// 0-based: the partition.
    pub id: i32,
}

/// LOCK_BATCH_MQ or UNLOCK_BATCH_MQ.
#[derive(Clone, Debug)]
pub struct LockQueues {
    /// The group.
    pub group: GroupId,
    /// Who wants to hold them, or no more.
    pub client: Arc<str>,
    /// The queues.
    pub queues: Vec<Queue>,
}

/// UPDATE_CONSUMER_OFFSET.
#[derive(Clone, Debug)]
pub struct CommitQueueOffset {
    /// The group.
    pub group: GroupId,
    /// Stored name of the topic.
    pub topic: Arc<str>,
    /// The queue: the partition.
    pub queue: i32,
    /// Next offset to consume.
    pub offset: i64,
}

/// A commit in the place of a position that the asker has committed itself: what another set stays.
/// Answered by the position from then on.
#[derive(Clone, Debug)]
pub struct ReplaceQueueOffset {
    /// What to commit.
    pub commit: CommitQueueOffset,
    /// What it may replace.
    pub own: OwnPositions,
}

/// Which positions are the asker's own, beside the one that it is about to commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnPositions {
    /// This one.
    Only(i64),
    /// From this one, inclusive, up to the one to be committed.
    From(i64),
    /// It does not know: any up to the one to be committed, or none at all.
    UpTo,
}

impl OwnPositions {
    /// Whether `position` is the asker's own, who is about to commit `offset`.
    #[must_use]
    pub fn has(self, position: Option<i64>, offset: i64) -> bool {
        position == Some(offset)
            || match self {
                Self::Only(own) => position == Some(own),
                Self::From(own) => position.is_some_and(|it| (own..offset).contains(&it)),
                Self::UpTo => position.is_none_or(|position| position < offset),
            }
    }
}

/// QUERY_CONSUMER_OFFSET.
#[derive(Clone, Debug)]
pub struct QueryQueueOffset {
    /// The group.
    pub group: GroupId,
    /// Stored name of the topic.
    pub topic: Arc<str>,
    /// The queue: the partition.
    pub queue: i32,
}
