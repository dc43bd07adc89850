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
    /// The member's queues; `None` where that cannot be said.
    pub queues: Option<Vec<MessageQueue>>,
    /// How it gets their messages.
    pub mode: MessageRequestMode,
}

/// How a member gets its messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MessageRequestMode {
    /// It pulls the queues that are its own.
    #[default]
    Pull,
    /// It pops from queues that others pop from, too.
    Pop,
}

impl MessageRequestMode {
    /// On the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pull => "PULL",
            Self::Pop => "POP",
        }
    }

    /// The mode of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        [Self::Pull, Self::Pop].into_iter().find(|mode| mode.name() == name)
    }
}

struct Assigned<'a>(&'a MessageQueue, MessageRequestMode);

impl ToJson for Assigned<'_> {
    fn write(&self, out: &mut JsonOut) {
        out.object().field("messageQueue", self.0).field("mode", self.1.name()).end();
    }
}

impl ToJson for QueryAssignmentResponseBody {
    fn write(&self, out: &mut JsonOut) {
        let mut object = out.object();
        if let Some(queues) = &self.queues {
            let assigned = |queue| Assigned(queue, self.mode);
            let assignments: Vec<Assigned<'_>> = queues.iter().map(assigned).collect();
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
    /// How many members after it share a member's queues when they pop; 0: all share all.
    pub pop_share_queue_num: i32,
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
            pop_share_queue_num: value.number("popShareQueueNum")?.unwrap_or(0),
        })
    }
}

encode! { QueryAssignmentResponseBody }
