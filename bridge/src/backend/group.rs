//! Groups: members, subscriptions, configuration.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::session::SessionId;

/// How a consumer gets its messages (`ConsumeType`).
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

/// What a client said of itself in its frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFacts {
    /// `clientIP@instanceName`.
    pub client_id: Arc<str>,
    /// Language code of the remoting header.
    pub language: u8,
    /// Version ordinal of the remoting header.
    pub version: i32,
    /// The other end of its connection.
    pub address: SocketAddr,
    /// The connection; says where a notice goes.
    pub session: SessionId,
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

/// One member of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Who and where.
    pub client: ClientFacts,
    /// Time of its last heartbeat, milliseconds since 1970.
    pub last_heartbeat_ms: i64,
}

/// A live group as the node publishes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupView {
    /// As the latest heartbeat said.
    pub consume_type: ConsumeType,
    /// As the latest heartbeat said.
    pub message_model: MessageModel,
    /// As the latest heartbeat said.
    pub consume_from_where: ConsumeFromWhere,
    /// Sorted by client id; the same on every node.
    pub members: Vec<Member>,
    /// By RocketMQ's name of the topic.
    pub subscriptions: BTreeMap<Arc<str>, Arc<Subscription>>,
}

/// One group in one heartbeat.
#[derive(Clone, Debug)]
pub struct ConsumerHeartbeat {
    /// The group.
    pub group: Arc<str>,
    /// The member.
    pub client: ClientFacts,
    /// How it consumes.
    pub consume_type: ConsumeType,
    /// Who gets a message.
    pub message_model: MessageModel,
    /// Where the group begins.
    pub consume_from_where: ConsumeFromWhere,
    /// All its topics; `None` leaves the group's subscription as it is (heartbeat v2 without
    /// subscriptions).
    pub subscriptions: Option<Vec<Arc<Subscription>>>,
    /// Tell the members of a change (`notifyConsumerIdsChangedEnable`).
    pub notify: bool,
}

/// A queue, as a lock names it; it need not exist.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QueueKey {
    /// Stored name of the topic.
    pub topic: Arc<str>,
    /// The partition.
    pub queue_id: i32,
}

/// What a heartbeat changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupChange {
    /// A member came or moved to another connection.
    pub members: bool,
    /// A topic came or went, or an expression was replaced by a newer one.
    pub subscriptions: bool,
}

/// A group's configuration (`SubscriptionGroupConfig`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionGroup {
    /// `groupName`.
    pub name: Arc<str>,
    /// `consumeEnable`.
    pub consume_enable: bool,
    /// `consumeFromMinEnable`.
    pub consume_from_min_enable: bool,
    /// `consumeBroadcastEnable`.
    pub consume_broadcast_enable: bool,
    /// `consumeMessageOrderly`.
    pub consume_message_orderly: bool,
    /// `retryQueueNums`.
    pub retry_queues: i32,
    /// `retryMaxTimes`.
    pub retry_times_max: i32,
    /// `groupRetryPolicy`, as the JSON text that came; empty for the default.
    pub retry_policy: String,
    /// `brokerId`.
    pub broker_id: i64,
    /// `whichBrokerWhenConsumeSlowly`.
    pub broker_when_slow: i64,
    /// `notifyConsumerIdsChangedEnable`.
    pub notify_consumer_ids_changed: bool,
    /// `groupSysFlag`.
    pub sys_flag: i32,
    /// `consumeTimeoutMinute`.
    pub consume_timeout_minutes: i32,
    /// `attributes`.
    pub attributes: BTreeMap<String, String>,
}

impl SubscriptionGroup {
    /// The configuration a group has that nobody configured.
    #[must_use]
    pub fn with_defaults(name: Arc<str>) -> Self {
        Self {
            name,
            consume_enable: true,
            consume_from_min_enable: true,
            consume_broadcast_enable: true,
            consume_message_orderly: false,
            retry_queues: 1,
            retry_times_max: 16,
            retry_policy: String::new(),
            broker_id: 0,
            broker_when_slow: 1,
            notify_consumer_ids_changed: true,
            sys_flag: 0,
            consume_timeout_minutes: 15,
            attributes: BTreeMap::new(),
        }
    }
}
