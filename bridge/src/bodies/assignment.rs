//! Queues divided by the broker.

use super::client::MESSAGE_MODELS;
use super::{BodyError, MessageQueue, encode};
use crate::backend::MessageModel;
use crate::json::{JsonOut, ToJson, Value};

/// Body of QUERY_ASSIGNMENT (400).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryAssignmentRequestBody {
    /// RocketMQ's name of the topic.
    pub topic: String,
    /// The group.
    pub consumer_group: String,
    /// The member.
    pub client_id: String,
    /// `AVG` and the like.
    pub strategy_name: String,
    /// Who gets a message.
    pub message_model: MessageModel,
}

impl QueryAssignmentRequestBody {
    /// Reads a body.
    ///
    /// # Errors
    /// See [`BodyError`].
    pub fn decode(body: &[u8]) -> Result<Self, BodyError> {
        let value = Value::parse(body)?;
        Ok(Self {
            topic: value.text("topic")?.unwrap_or_default(),
            consumer_group: value.text("consumerGroup")?.unwrap_or_default(),
            client_id: value.text("clientId")?.unwrap_or_default(),
            strategy_name: value.text("strategyName")?.unwrap_or_default(),
            message_model: value
                .choice("messageModel", &MESSAGE_MODELS)?
                .unwrap_or(MessageModel::Clustering),
        })
    }
}

/// Body of the answer to QUERY_ASSIGNMENT (400).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryAssignmentResponseBody {
    /// The member's queues, all of them pulled; `None` where that cannot be said.
    pub queues: Option<Vec<MessageQueue>>,
}

struct Pulled<'a>(&'a MessageQueue);

impl ToJson for Pulled<'_> {
    fn write(&self, out: &mut JsonOut) {
        out.object().field("messageQueue", self.0).field("mode", "PULL").end();
    }
}

impl ToJson for QueryAssignmentResponseBody {
    fn write(&self, out: &mut JsonOut) {
        let mut object = out.object();
        if let Some(queues) = &self.queues {
            let assignments: Vec<Pulled<'_>> = queues.iter().map(Pulled).collect();
            object.field("messageQueueAssignments", &assignments);
        }
        object.end();
    }
}

/// Body of SET_MESSAGE_REQUEST_MODE (401).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetMessageRequestModeRequestBody {
    /// RocketMQ's name of the topic.
    pub topic: String,
    /// The group.
    pub consumer_group: String,
    /// `PULL` or `POP`.
    pub mode: String,
}

impl SetMessageRequestModeRequestBody {
    /// Reads a body.
    ///
    /// # Errors
    /// See [`BodyError`].
    pub fn decode(body: &[u8]) -> Result<Self, BodyError> {
        let value = Value::parse(body)?;
        Ok(Self {
            topic: value.text("topic")?.unwrap_or_default(),
            consumer_group: value.text("consumerGroup")?.unwrap_or_default(),
            mode: value.text("mode")?.unwrap_or_else(|| "PULL".to_owned()),
        })
    }
}

encode! { QueryAssignmentResponseBody }
