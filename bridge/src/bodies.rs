//! Bodies of requests and answers, in fastjson's dialect. Names on the wire are RocketMQ's.
//!
//! What clients send is read leniently: unknown fields are passed over, absent ones and nulls have
//! their defaults, numbers may be quoted. What is written has its names sorted and no nulls, byte
//! for byte as the original writes it.

mod ack;
mod admin;
mod assignment;
mod client;
mod cluster;
mod config;
mod groups;
mod positions;
mod stats;

pub use ack::{BatchAck, BatchAckMessageRequestBody};
pub use admin::{
    BrokerStatsData, BrokerStatsItem, ConsumeQueueData, ConsumeStatsList, GroupForbidden,
    HARuntimeInfo, QueryConsumeQueueResponseBody, QueryConsumeTimeSpanBody,
    QuerySubscriptionResponseBody, QueueTimeSpan, SubscriptionGroupWrapper,
    TopicConfigSerializeWrapper, TopicsOfBroker,
};
pub use assignment::{
    MessageRequestMode, QueryAssignmentRequestBody, QueryAssignmentResponseBody,
    SetMessageRequestModeRequestBody,
};
pub use client::{CheckClientRequestBody, ConsumerData, HeartbeatData, SubscriptionData};
pub use cluster::{BrokerData, ClusterInfo, KVTable, QueueData, TopicList, TopicRouteData};
pub use config::{SubscriptionGroupConfig, TopicConfig};
pub use groups::{
    Connection, ConsumerConnection, GetConsumerListByGroupResponseBody, GroupList,
    LockBatchRequestBody, LockBatchResponseBody, ProducerConnection, ProducerInfo,
    ProducerTableInfo,
};
pub use positions::{GetConsumerStatusBody, QueryCorrectionOffsetBody, ResetOffsetBody};
pub use stats::{ConsumeStats, MessageQueue, OffsetWrapper, TopicOffset, TopicStatsTable};

pub use crate::json::{BodyError, JsonStyle};

/// Gives types that can be written their `encode`.
macro_rules! encode {
    ($($type:ident)*) => {
        $(impl $type {
            /// As a body.
            #[must_use]
            pub fn encode(&self) -> bytes::Bytes {
                crate::json::JsonOut::text_of(self, crate::json::JsonStyle::Fastjson)
            }
        })*
    };
}
use encode;

#[cfg(test)]
mod tests;
