//! The group coordinator's settings, under Kafka's and RocketMQ's own names.

/// What ListGroups and DescribeGroups say of a RocketMQ group (`rmq.group.listing`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RocketMqListing {
    /// Protocol type "", so that `kafka-consumer-groups` prints positions and lag.
    #[default]
    Untyped,
    /// Protocol type "rocketmq".
    Typed,
}

/// Who shares the partitions of a consumer group out (`group.consumer.assignors`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assignor {
    /// Evenly, moving as few as possible.
    Uniform,
    /// Consecutive partitions of each topic.
    Range,
}

impl Assignor {
    /// As on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Range => "range",
        }
    }
}

/// Which groups may go over to the other protocol while they have members
/// (`group.consumer.migration.policy`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MigrationPolicy {
    /// None.
    Disabled,
    /// Classic ones.
    Upgrade,
    /// Consumer groups.
    Downgrade,
    /// Both.
    #[default]
    Bidirectional,
}

impl MigrationPolicy {
    /// Whether a classic group may become a consumer group.
    #[must_use]
    pub const fn allows_upgrade(self) -> bool {
        matches!(self, Self::Upgrade | Self::Bidirectional)
    }

    /// Whether a consumer group may become a classic one.
    #[must_use]
    pub const fn allows_downgrade(self) -> bool {
        matches!(self, Self::Downgrade | Self::Bidirectional)
    }
}

/// Settings of the consumer groups of a node (KIP-848). All times in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerConfig {
    /// `group.consumer.session.timeout.ms`.
    pub session_timeout_ms: i32,
    /// `group.consumer.heartbeat.interval.ms`.
    pub heartbeat_interval_ms: i32,
    /// `group.consumer.assignment.interval.ms`: the least time between two assignments of one group.
    pub assignment_interval_ms: i32,
    /// `group.consumer.max.size`.
    pub group_size_max: usize,
    /// `group.consumer.assignors`; the first one is used where no member asks for one. Never empty.
    pub assignors: Vec<Assignor>,
    /// `group.consumer.migration.policy`.
    pub migration: MigrationPolicy,
}

impl Default for ConsumerConfig {
    /// Kafka's defaults.
    fn default() -> Self {
        Self {
            session_timeout_ms: 45_000,
            heartbeat_interval_ms: 5_000,
            assignment_interval_ms: 1_000,
            group_size_max: i32::MAX as usize,
            assignors: vec![Assignor::Uniform, Assignor::Range],
            migration: MigrationPolicy::Bidirectional,
        }
    }
}

/// Settings of every group of a node. All times in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    /// `group.initial.rebalance.delay.ms`: a new group waits for more members.
    pub initial_rebalance_delay_ms: i32,
    /// `group.min.session.timeout.ms`, inclusive.
    pub session_timeout_min_ms: i32,
    /// `group.max.session.timeout.ms`, inclusive.
    pub session_timeout_max_ms: i32,
    /// `group.max.size`: members of one classic group.
    pub group_size_max: usize,
    /// How long a new member may wait in its first join; Kafka has no setting for it.
    pub new_member_join_timeout_ms: i32,
    /// `offset.metadata.max.bytes`; counted in UTF-16 units, as Kafka does.
    pub offset_metadata_max: usize,
    /// `offsets.retention.minutes`, in milliseconds.
    pub offsets_retention_ms: i64,
    /// `offsets.retention.check.interval.ms`.
    pub offsets_retention_check_interval_ms: i64,
    /// `channelExpiredTimeout`: a RocketMQ client that sends no heartbeat for so long is gone.
    pub channel_expired_timeout_ms: i64,
    /// `subscriptionExpiredTimeout`: how long a RocketMQ group without members keeps its
    /// subscription.
    pub subscription_expired_timeout_ms: i64,
    /// How long a RocketMQ client holds a queue after it last locked it
    /// (`rocketmq.broker.rebalance.lockMaxLiveTime`).
    pub queue_lock_ms: i64,
    /// Consumer groups.
    pub consumer: ConsumerConfig,
    /// `rmq.group.listing`.
    pub rocketmq_listing: RocketMqListing,
}

impl Default for GroupConfig {
    /// The originals' defaults.
    fn default() -> Self {
        Self {
            initial_rebalance_delay_ms: 3_000,
            session_timeout_min_ms: 6_000,
            session_timeout_max_ms: 1_800_000,
            group_size_max: i32::MAX as usize,
            new_member_join_timeout_ms: 300_000,
            offset_metadata_max: 4_096,
            offsets_retention_ms: 10_080 * 60_000,
            offsets_retention_check_interval_ms: 600_000,
            channel_expired_timeout_ms: 120_000,
            subscription_expired_timeout_ms: 600_000,
            queue_lock_ms: 60_000,
            consumer: ConsumerConfig::default(),
            rocketmq_listing: RocketMqListing::Untyped,
        }
    }
}
