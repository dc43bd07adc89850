//! The configuration of Kafka's groups.

use duolog_coordinator::group::config::{Assignor, MigrationPolicy};

use super::key;
use super::values::{ConfigError, Values};

/// Bounds of groups of the consumer protocol. Times in ms.
#[derive(Clone, Debug)]
pub struct ConsumerGroupConfig {
    /// How long a member may be silent, unless its group says otherwise.
    pub session_timeout_ms: i32,
    /// How often a member is to be heard of, unless its group says otherwise.
    pub heartbeat_interval_ms: i32,
    /// Least time between two assignments of a group, unless it says otherwise.
    pub assignment_interval_ms: i32,
    /// Members of one group.
    pub max_size: i32,
    /// Names of the assignors, the default first.
    pub assignors: Vec<Assignor>,
    /// Which groups may change their protocol while they have members.
    pub migration: MigrationPolicy,
}

/// Kafka groups' bounds. Times in ms.
#[derive(Clone, Debug)]
pub struct GroupConfig {
    /// How long an empty group waits for more members before its first generation.
    pub initial_rebalance_delay_ms: i64,
    /// Least session timeout a member may ask for.
    pub min_session_timeout_ms: i64,
    /// Greatest session timeout a member may ask for.
    pub max_session_timeout_ms: i64,
    /// Members of one group.
    pub max_size: i32,
    /// Of consumer groups.
    pub consumer: ConsumerGroupConfig,
    /// Bytes of an offset commit's metadata text.
    pub offset_metadata_max_bytes: i32,
    /// Age at which an idle Kafka group's offsets expire.
    pub offsets_retention_ms: i64,
    /// Time between two looks for expired offsets.
    pub offsets_retention_check_interval_ms: i64,
    /// Partitions of `__consumer_offsets` when it is created.
    pub offsets_topic_partitions: i32,
    /// Segment size of `__consumer_offsets`.
    pub offsets_topic_segment_bytes: i32,
}

/// The groups' part of `values`.
pub(super) fn group(values: &Values) -> Result<GroupConfig, ConfigError> {
    Ok(GroupConfig {
        initial_rebalance_delay_ms: values.parse("group.initial.rebalance.delay.ms")?,
        min_session_timeout_ms: values.parse("group.min.session.timeout.ms")?,
        max_session_timeout_ms: values.parse("group.max.session.timeout.ms")?,
        max_size: values.parse("group.max.size")?,
        consumer: consumer_group(values)?,
        offset_metadata_max_bytes: values.parse("offset.metadata.max.bytes")?,
        offsets_retention_ms: values
            .parse::<i64>("offsets.retention.minutes")?
            .saturating_mul(60_000),
        offsets_retention_check_interval_ms: values.parse("offsets.retention.check.interval.ms")?,
        offsets_topic_partitions: values.parse("offsets.topic.num.partitions")?,
        offsets_topic_segment_bytes: values.parse("offsets.topic.segment.bytes")?,
    })
}

fn consumer_group(values: &Values) -> Result<ConsumerGroupConfig, ConfigError> {
    let named = |name: &&str| match *name {
        "range" => Assignor::Range,
        _ => Assignor::Uniform,
    };
    let assignors = values.text("group.consumer.assignors").unwrap_or_default();
    let policy = values.text("group.consumer.migration.policy").unwrap_or_default();
    Ok(ConsumerGroupConfig {
        session_timeout_ms: bounded(
            values,
            "group.consumer.session.timeout.ms",
            ["group.consumer.min.session.timeout.ms", "group.consumer.max.session.timeout.ms"],
        )?,
        heartbeat_interval_ms: bounded(
            values,
            "group.consumer.heartbeat.interval.ms",
            [
                "group.consumer.min.heartbeat.interval.ms",
                "group.consumer.max.heartbeat.interval.ms",
            ],
        )?,
        assignment_interval_ms: bounded(
            values,
            "group.consumer.assignment.interval.ms",
            [
                "group.consumer.min.assignment.interval.ms",
                "group.consumer.max.assignment.interval.ms",
            ],
        )?,
        max_size: values.parse("group.consumer.max.size")?,
        assignors: key::list(assignors).iter().map(named).collect(),
        migration: match policy.to_ascii_lowercase().as_str() {
            "disabled" => MigrationPolicy::Disabled,
            "upgrade" => MigrationPolicy::Upgrade,
            "downgrade" => MigrationPolicy::Downgrade,
            _ => MigrationPolicy::Bidirectional,
        },
    })
}

/// The value of `name`, which must lie between those of the other two, inclusive.
fn bounded(
    values: &Values,
    name: &'static str,
    [min, max]: [&'static str; 2],
) -> Result<i32, ConfigError> {
    let value: i32 = values.parse(name)?;
    let (least, most): (i32, i32) = (values.parse(min)?, values.parse(max)?);
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    // Source: GroupCoordinatorConfig.
    Err(ConfigError::InvalidValue {
        key: name,
        value: value.to_string(),
        origin: "read at start".to_owned(),
        reason: format!("must be from {min}, {least}, to {max}, {most}"),
    })
}
