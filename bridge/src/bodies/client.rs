//! What clients tell of themselves.

use super::BodyError;
use crate::backend::{ConsumeFromWhere, ConsumeType, MessageModel};
use crate::json::{JsonOut, ToJson, Value};

/// In the order of Java's enum, which some clients send the place in.
pub(super) const CONSUME_TYPES: [(&str, ConsumeType); 3] = [
    ("CONSUME_ACTIVELY", ConsumeType::Actively),
    ("CONSUME_PASSIVELY", ConsumeType::Passively),
    ("CONSUME_POP", ConsumeType::Pop),
];

pub(super) const MESSAGE_MODELS: [(&str, MessageModel); 3] = [
    ("BROADCASTING", MessageModel::Broadcasting),
    ("CLUSTERING", MessageModel::Clustering),
    ("LITE_SELECTIVE", MessageModel::LiteSelective),
];

pub(super) const CONSUME_FROM_WHERE: [(&str, ConsumeFromWhere); 6] = [
    ("CONSUME_FROM_LAST_OFFSET", ConsumeFromWhere::LastOffset),
    (
        "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
        ConsumeFromWhere::LastOffsetAndFromMinWhenBootFirst,
    ),
    ("CONSUME_FROM_MIN_OFFSET", ConsumeFromWhere::MinOffset),
    ("CONSUME_FROM_MAX_OFFSET", ConsumeFromWhere::MaxOffset),
    ("CONSUME_FROM_FIRST_OFFSET", ConsumeFromWhere::FirstOffset),
    ("CONSUME_FROM_TIMESTAMP", ConsumeFromWhere::Timestamp),
];

/// What a group wants of a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionData {
    /// RocketMQ's name of the topic.
    pub topic: String,
    /// The expression.
    pub sub_string: String,
    /// `TAG` or `SQL92`.
    pub expression_type: String,
    /// Tags of the expression.
    pub tags: Vec<String>,
    /// Their Java hashes.
    pub codes: Vec<i32>,
    /// Milliseconds since 1970 when the client made it.
    pub sub_version: i64,
    /// Old class filter.
    pub class_filter_mode: bool,
}

impl SubscriptionData {
    fn from_value(value: &Value<'_>) -> Result<Self, BodyError> {
        Ok(Self {
            topic: value.text("topic")?.unwrap_or_default(),
            sub_string: value.text("subString")?.unwrap_or_default(),
            // Clients before 4.1 do not send it.
            expression_type: value.text("expressionType")?.unwrap_or_else(|| "TAG".to_owned()),
            tags: value.texts("tagsSet")?,
            codes: hashes(value)?,
            sub_version: value.number("subVersion")?.unwrap_or_default(),
            class_filter_mode: value.flag("classFilterMode")?.unwrap_or_default(),
        })
    }
}

fn hashes(value: &Value<'_>) -> Result<Vec<i32>, BodyError> {
    const FIELD: &str = "codeSet";
    let texts = value.texts(FIELD)?;
    let numbers = texts.iter().map(|text| text.parse().ok());
    let wrong = BodyError::Field { field: FIELD, expected: "a list of 32-bit integers" };
    numbers.collect::<Option<_>>().ok_or(wrong)
}

impl ToJson for SubscriptionData {
    fn write(&self, out: &mut JsonOut) {
        out.object()
            .field("classFilterMode", &self.class_filter_mode)
            .field("codeSet", &self.codes)
            .field("expressionType", &self.expression_type)
            .field("subString", &self.sub_string)
            .field("subVersion", &self.sub_version)
            .field("tagsSet", &self.tags)
            .field("topic", &self.topic)
            .end();
    }
}

/// A group that a client consumes for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerData {
    /// The group.
    pub group_name: String,
    /// How it consumes.
    pub consume_type: ConsumeType,
    /// Who gets a message.
    pub message_model: MessageModel,
    /// Where the group begins.
    pub consume_from_where: ConsumeFromWhere,
    /// Its topics.
    pub subscriptions: Vec<SubscriptionData>,
    /// Unit mode.
    pub unit_mode: bool,
}

impl ConsumerData {
    fn from_value(value: &Value<'_>) -> Result<Self, BodyError> {
        let subscriptions = value.elements("subscriptionDataSet")?.iter();
        Ok(Self {
            group_name: value.text("groupName")?.unwrap_or_default(),
            consume_type: value
                .choice("consumeType", &CONSUME_TYPES)?
                .unwrap_or(ConsumeType::Passively),
            message_model: value
                .choice("messageModel", &MESSAGE_MODELS)?
                .unwrap_or(MessageModel::Clustering),
            consume_from_where: value
                .choice("consumeFromWhere", &CONSUME_FROM_WHERE)?
                .unwrap_or(ConsumeFromWhere::LastOffset),
            subscriptions: subscriptions
                .map(SubscriptionData::from_value)
                .collect::<Result<_, _>>()?,
            unit_mode: value.flag("unitMode")?.unwrap_or_default(),
        })
    }
}

/// Body of HEART_BEAT (34).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeartbeatData {
    /// `clientIP@instanceName`.
    pub client_id: String,
    /// Groups it produces for.
    pub producers: Vec<String>,
    /// Groups it consumes for.
    pub consumers: Vec<ConsumerData>,
    /// Of the subscriptions; 0 in a heartbeat of the first version.
    pub heartbeat_fingerprint: i32,
    /// The subscriptions were left out.
    pub is_without_sub: bool,
}

impl HeartbeatData {
    /// Reads a body.
    ///
    /// # Errors
    /// See [`BodyError`].
    pub fn decode(body: &[u8]) -> Result<Self, BodyError> {
        let value = Value::parse(body)?;
        let producers = value.elements("producerDataSet")?.iter();
        let consumers = value.elements("consumerDataSet")?.iter();
        Ok(Self {
            client_id: value
                .text("clientID")?
                .ok_or(BodyError::Field { field: "clientID", expected: "a string" })?,
            producers: producers
                .map(|producer| Ok(producer.text("groupName")?.unwrap_or_default()))
                .collect::<Result<_, BodyError>>()?,
            consumers: consumers.map(ConsumerData::from_value).collect::<Result<_, _>>()?,
            heartbeat_fingerprint: value.number("heartbeatFingerprint")?.unwrap_or_default(),
            is_without_sub: value.flag("withoutSub")?.unwrap_or_default(),
        })
    }
}

/// Body of CHECK_CLIENT_CONFIG (46).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckClientRequestBody {
    /// Who asks.
    pub client_id: String,
    /// For which group.
    pub group: String,
    /// What the group wants.
    pub subscription_data: Option<SubscriptionData>,
}

impl CheckClientRequestBody {
    /// Reads a body.
    ///
    /// # Errors
    /// See [`BodyError`].
    pub fn decode(body: &[u8]) -> Result<Self, BodyError> {
        let value = Value::parse(body)?;
        let subscription = value.get("subscriptionData");
        Ok(Self {
            client_id: value.text("clientId")?.unwrap_or_default(),
            group: value.text("group")?.unwrap_or_default(),
            subscription_data: match subscription {
                Value::Null => None,
                value => Some(SubscriptionData::from_value(value)?),
            },
        })
    }
}
