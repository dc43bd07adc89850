//! GET_ALL_TOPIC_CONFIG: code 21. The configuration of every topic that clients can see.
//! Leaves out: paging (`topicSeq`, off in the original), mapping details, since there are no static
//! topics.
//! Source: AdminBrokerProcessor.getAllTopicConfig.

use super::topic_config::body_of;
use super::{Call, Outcome, topics};
use crate::backend::Backend;
use crate::bodies::{TopicConfig, TopicConfigSerializeWrapper};
use crate::translate::names;

pub(crate) fn handle<B: Backend>(call: &Call<B>) -> Outcome {
    let stored = call.backend().topics();
    let shown = stored.iter().filter(|topic| !topics::is_own(topic));
    let topics: Vec<TopicConfig> = shown
        .filter_map(|topic| Some(body_of(&names::rocketmq_name(&topic.name)?, topic)))
        .collect();
    let count = topics.len();
    let body = TopicConfigSerializeWrapper { topics, timestamp_ms: call.backend().now_ms() };
    Ok(call.reply.ok().with_field("totalTopicNum", count).with_body(body.encode()))
}

#[cfg(test)]
mod tests;
