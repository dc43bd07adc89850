//! Members of groups and their connections.

use std::collections::BTreeMap;

use super::client::{CONSUME_FROM_WHERE, CONSUME_TYPES, MESSAGE_MODELS};
use super::{BodyError, MessageQueue, SubscriptionData, encode};
use crate::backend::{ConsumeFromWhere, ConsumeType, MessageModel};
use crate::json::{JsonOut, ToJson, Value};
use crate::remoting::LanguageCode;

/// Body of the answer to GET_CONSUMER_LIST_BY_GROUP (38).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GetConsumerListByGroupResponseBody {
    /// Client ids.
    pub consumer_id_list: Vec<String>,
}

impl ToJson for GetConsumerListByGroupResponseBody {
    fn write(&self, out: &mut JsonOut) {
        out.object().field("consumerIdList", &self.consumer_id_list).end();
    }
}

/// A list of groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupList {
    /// Their names.
    pub groups: Vec<String>,
}

impl ToJson for GroupList {
    fn write(&self, out: &mut JsonOut) {
        out.object().field("groupList", &self.groups).end();
    }
}

/// A client's connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// `clientIP@instanceName`.
    pub client_id: String,
    /// `ip:port`.
    pub client_addr: String,
    /// Its language.
    pub language: LanguageCode,
    /// Its version.
    pub version: i32,
}

impl ToJson for Connection {
    fn write(&self, out: &mut JsonOut) {
        out.object()
            .field("clientAddr", &self.client_addr)
            .field("clientId", &self.client_id)
            .field("language", self.language.name())
            .field("version", &self.version)
            .end();
    }
}

/// Body of the answer to GET_CONSUMER_CONNECTION_LIST (203).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerConnection {
    /// The members.
    pub connections: Vec<Connection>,
    /// By topic.
    pub subscriptions: Vec<SubscriptionData>,
    /// How the group consumes.
    pub consume_type: ConsumeType,
    /// Who gets a message.
    pub message_model: MessageModel,
    /// Where the group began.
    pub consume_from_where: ConsumeFromWhere,
}

fn name_of<T: PartialEq>(choices: &[(&'static str, T)], choice: &T) -> &'static str {
    choices.iter().find(|(_, known)| known == choice).map_or("", |(name, _)| name)
}

impl ToJson for ConsumerConnection {
    fn write(&self, out: &mut JsonOut) {
        let subscriptions: BTreeMap<&str, &SubscriptionData> =
            self.subscriptions.iter().map(|one| (one.topic.as_str(), one)).collect();
        out.object()
            .field("connectionSet", &self.connections)
            .field("consumeFromWhere", name_of(&CONSUME_FROM_WHERE, &self.consume_from_where))
            .field("consumeType", name_of(&CONSUME_TYPES, &self.consume_type))
            .field("messageModel", name_of(&MESSAGE_MODELS, &self.message_model))
            .field("subscriptionTable", &subscriptions)
            .end();
    }
}

/// Body of the answer to GET_PRODUCER_CONNECTION_LIST (204).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerConnection {
    /// The producers.
    pub connections: Vec<Connection>,
}

impl ToJson for ProducerConnection {
    fn write(&self, out: &mut JsonOut) {
        out.object().field("connectionSet", &self.connections).end();
    }
}

/// A producer in [`ProducerTableInfo`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerInfo {
    /// `clientIP@instanceName`.
    pub client_id: String,
    /// `/ip:port`.
    pub remote_ip: String,
    /// Its language.
    pub language: LanguageCode,
    /// Its version.
    pub version: i32,
    /// When it was heard of last, milliseconds since 1970.
    pub last_update_timestamp: i64,
}

impl ToJson for ProducerInfo {
    fn write(&self, out: &mut JsonOut) {
        out.object()
            .field("clientId", &self.client_id)
            .field("language", self.language.name())
            .field("lastUpdateTimestamp", &self.last_update_timestamp)
            .field("remoteIP", &self.remote_ip)
            .field("version", &self.version)
            .end();
    }
}

/// Body of the answer to GET_ALL_PRODUCER_INFO (328).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerTableInfo {
    /// By group.
    pub groups: BTreeMap<String, Vec<ProducerInfo>>,
}

impl ToJson for ProducerTableInfo {
    fn write(&self, out: &mut JsonOut) {
        out.object().field("data", &self.groups).end();
    }
}

/// Body of LOCK_BATCH_MQ (41) and UNLOCK_BATCH_MQ (42).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockBatchRequestBody {
    /// The group.
    pub consumer_group: String,
    /// Who wants them.
    pub client_id: String,
    /// Not those of other brokers.
    pub only_this_broker: bool,
    /// The queues.
    pub queues: Vec<MessageQueue>,
}

impl LockBatchRequestBody {
    /// Reads a body.
    ///
    /// # Errors
    /// See [`BodyError`].
    pub fn decode(body: &[u8]) -> Result<Self, BodyError> {
        let value = Value::parse(body)?;
        let queues = value.elements("mqSet")?.iter();
        Ok(Self {
            consumer_group: value.text("consumerGroup")?.unwrap_or_default(),
            client_id: value.text("clientId")?.unwrap_or_default(),
            only_this_broker: value.flag("onlyThisBroker")?.unwrap_or_default(),
            queues: queues.map(MessageQueue::from_value).collect::<Result<_, _>>()?,
        })
    }
}

/// Body of the answer to LOCK_BATCH_MQ (41).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockBatchResponseBody {
    /// The queues that are locked for the client now.
    pub locked: Vec<MessageQueue>,
}

impl ToJson for LockBatchResponseBody {
    fn write(&self, out: &mut JsonOut) {
        out.object().field("lockOKMQSet", &self.locked).end();
    }
}

encode! {
    GetConsumerListByGroupResponseBody GroupList ConsumerConnection ProducerConnection
    ProducerTableInfo
    LockBatchResponseBody
}
