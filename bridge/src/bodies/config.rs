//! Configuration of topics and groups.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::{BodyError, encode};
use crate::backend::{PERM_READ, PERM_WRITE, SubscriptionGroup};
use crate::json::{JsonOut, JsonStyle, ToJson, Value};

/// A topic's configuration: body of the answer to GET_TOPIC_CONFIG (351). It is also what the
/// original's TopicConfigAndQueueMapping looks like for a topic that is not static.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicConfig {
    /// RocketMQ's name.
    pub topic_name: String,
    /// Queues 0.. to read.
    pub read_queue_nums: i32,
    /// Queues 0.. to write.
    pub write_queue_nums: i32,
    /// Permission bits.
    pub perm: i32,
    /// TopicSysFlag.
    pub topic_sys_flag: i32,
    /// Ordered.
    pub order: bool,
    /// Attributes such as `message.type`.
    pub attributes: BTreeMap<String, String>,
}

impl TopicConfig {
    /// What the original's class has for what a body does not say.
    const QUEUES: i32 = 16;

    /// Reads the body of UPDATE_AND_CREATE_TOPIC_LIST (18): configurations with attributes as
    /// changes, `+message.type` and the like.
    ///
    /// # Errors
    /// See [`BodyError`].
    pub fn decode_list(body: &[u8]) -> Result<Vec<Self>, BodyError> {
        let value = Value::parse(body)?;
        value.elements("topicConfigList")?.iter().map(Self::from_value).collect()
    }

    fn from_value(value: &Value<'_>) -> Result<Self, BodyError> {
        Ok(Self {
            topic_name: value.text("topicName")?.unwrap_or_default(),
            read_queue_nums: value.number("readQueueNums")?.unwrap_or(Self::QUEUES),
            write_queue_nums: value.number("writeQueueNums")?.unwrap_or(Self::QUEUES),
            perm: value.number("perm")?.unwrap_or(PERM_READ | PERM_WRITE),
            topic_sys_flag: value.number("topicSysFlag")?.unwrap_or_default(),
            order: value.flag("order")?.unwrap_or_default(),
            attributes: value.text_pairs("attributes")?.into_iter().collect(),
        })
    }
}

impl ToJson for TopicConfig {
    fn write(&self, out: &mut JsonOut) {
        out.object()
            .field("attributes", &self.attributes)
            .field("order", &self.order)
            .field("perm", &self.perm)
            .field("readQueueNums", &self.read_queue_nums)
            .field("topicFilterType", "SINGLE_TAG")
            .field("topicName", &self.topic_name)
            .field("topicSysFlag", &self.topic_sys_flag)
            .field("writeQueueNums", &self.write_queue_nums)
            .end();
    }
}

encode! { TopicConfig }

/// A group's configuration: body of UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200) and of the answer to
/// GET_SUBSCRIPTIONGROUP_CONFIG (352).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionGroupConfig(pub SubscriptionGroup);

/// What the original writes for a group that nobody gave a retry policy.
const DEFAULT_RETRY_POLICY: &str = "{\"type\":\"CUSTOMIZED\"}";

impl SubscriptionGroupConfig {
    /// Reads a body. What it does not say has its default; `subscriptionDataSet` is passed over.
    ///
    /// # Errors
    /// See [`BodyError`].
    pub fn decode(body: &[u8]) -> Result<Self, BodyError> {
        Self::from_value(&Value::parse(body)?)
    }

    /// Reads the body of UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST (225).
    ///
    /// # Errors
    /// See [`BodyError`].
    pub fn decode_list(body: &[u8]) -> Result<Vec<Self>, BodyError> {
        let value = Value::parse(body)?;
        value.elements("groupConfigList")?.iter().map(Self::from_value).collect()
    }

    fn from_value(value: &Value<'_>) -> Result<Self, BodyError> {
        let name: Arc<str> = value.text("groupName")?.unwrap_or_default().into();
        let default = SubscriptionGroup::with_defaults(Arc::clone(&name));
        let flag = |field, default| Ok::<_, BodyError>(value.flag(field)?.unwrap_or(default));
        let number = |field, default| Ok::<_, BodyError>(value.number(field)?.unwrap_or(default));
        let long = |field, default: i64| {
            Ok::<_, BodyError>(value.number::<i64>(field)?.unwrap_or(default))
        };
        Ok(Self(SubscriptionGroup {
            name,
            consume_enable: flag("consumeEnable", default.consume_enable)?,
            consume_from_min_enable: flag("consumeFromMinEnable", default.consume_from_min_enable)?,
            consume_broadcast_enable: flag(
                "consumeBroadcastEnable",
                default.consume_broadcast_enable,
            )?,
            consume_message_orderly: flag(
                "consumeMessageOrderly",
                default.consume_message_orderly,
            )?,
            retry_queues: number("retryQueueNums", default.retry_queues)?,
            retry_times_max: number("retryMaxTimes", default.retry_times_max)?,
            retry_policy: retry_policy(value),
            broker_id: long("brokerId", default.broker_id)?,
            broker_when_slow: long("whichBrokerWhenConsumeSlowly", default.broker_when_slow)?,
            notify_consumer_ids_changed: flag(
                "notifyConsumerIdsChangedEnable",
                default.notify_consumer_ids_changed,
            )?,
            sys_flag: number("groupSysFlag", default.sys_flag)?,
            consume_timeout_minutes: number(
                "consumeTimeoutMinute",
                default.consume_timeout_minutes,
            )?,
            attributes: value.text_pairs("attributes")?.into_iter().collect(),
        }))
    }

    /// As a body.
    #[must_use]
    pub fn encode(group: &SubscriptionGroup) -> Bytes {
        JsonOut::text_of(&Shown(group), JsonStyle::Fastjson)
    }
}

/// The policy's text, written anew; empty for the default.
fn retry_policy(value: &Value<'_>) -> String {
    let policy = value.get("groupRetryPolicy");
    if policy.is_null() {
        return String::new();
    }
    let text = JsonOut::text_of(policy, JsonStyle::Fastjson);
    if *text == *DEFAULT_RETRY_POLICY.as_bytes() {
        return String::new();
    }
    String::from_utf8_lossy(&text).into_owned()
}

struct Raw<'a>(&'a str);

impl ToJson for Raw<'_> {
    fn write(&self, out: &mut JsonOut) {
        out.raw(self.0);
    }
}

/// A group's configuration as a body has it.
pub(super) struct Shown<'a>(pub(super) &'a SubscriptionGroup);

impl ToJson for Shown<'_> {
    fn write(&self, out: &mut JsonOut) {
        let Self(group) = self;
        let policy = match group.retry_policy.as_str() {
            "" => DEFAULT_RETRY_POLICY,
            policy => policy,
        };
        out.object()
            .field("attributes", &group.attributes)
            .field("brokerId", &group.broker_id)
            .field("consumeBroadcastEnable", &group.consume_broadcast_enable)
            .field("consumeEnable", &group.consume_enable)
            .field("consumeFromMinEnable", &group.consume_from_min_enable)
            .field("consumeMessageOrderly", &group.consume_message_orderly)
            .field("consumeTimeoutMinute", &group.consume_timeout_minutes)
            .field("groupName", &*group.name)
            .field("groupRetryPolicy", &Raw(policy))
            .field("groupSysFlag", &group.sys_flag)
            .field("notifyConsumerIdsChangedEnable", &group.notify_consumer_ids_changed)
            .field("retryMaxTimes", &group.retry_times_max)
            .field("retryQueueNums", &group.retry_queues)
            .field("whichBrokerWhenConsumeSlowly", &group.broker_when_slow)
            .end();
    }
}
