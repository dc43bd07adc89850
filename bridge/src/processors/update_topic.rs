//! UPDATE_AND_CREATE_TOPIC: code 17. Creates a topic or changes its queue counts, permission and
//! attributes. Counts may fall (readers and writers see fewer queues), partitions never do.
//! Unlike the original it refuses what a log cannot be: no queue at all, negative counts, more
//! queues than a topic may have, unknown permission bits.
//! Leaves out: filter types other than SINGLE_TAG; `force`.
//! Source: AdminBrokerProcessor.updateAndCreateTopic, CreateTopicRequestHeader, AttributeUtil.

mod attributes;

use std::sync::Arc;

use super::{Call, Outcome, Refusal, rules, topics};
use crate::backend::{Backend, TopicSpec};
use crate::dispatch::Shared;
use crate::limits::TOPIC_QUEUES_MAX;
use crate::response_code::ResponseCode;

/// Bits of a permission that mean something: inherit, write, read.
const PERM_BITS: i32 = 7;

/// What a topic shall be, before it is checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Changes<'a> {
    pub(crate) topic: &'a str,
    pub(crate) read_queues: i32,
    pub(crate) write_queues: i32,
    pub(crate) perm: i32,
    pub(crate) sys_flag: i32,
    pub(crate) order: bool,
    /// `+key=value,-key`.
    pub(crate) attributes: &'a str,
}

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let request = &call.request;
    let topic: &str = request.optional_field("topic")?.unwrap_or_default();
    check_name(&call.shared, topic)?;
    let filter_type: &str = request.optional_field("topicFilterType")?.unwrap_or("null");
    if !matches!(filter_type, "SINGLE_TAG" | "MULTI_TAG") {
        let remark = format!("topicFilterType = [{filter_type}] value invalid");
        return Err(Refusal::new(ResponseCode::SYSTEM_ERROR, remark));
    }
    if filter_type == "MULTI_TAG" {
        return Err(invalid("topicFilterType MULTI_TAG is not supported, use SINGLE_TAG".into()));
    }
    let changes = Changes {
        topic,
        read_queues: request.field("readQueueNums")?,
        write_queues: request.field("writeQueueNums")?,
        perm: request.field("perm")?,
        sys_flag: request.optional_field("topicSysFlag")?.unwrap_or(0),
        order: request.optional_field("order")?.unwrap_or(false),
        attributes: request.optional_field("attributes")?.unwrap_or_default(),
    };
    call.backend().put_topic(spec(&call.shared, &changes)?).await?;
    Ok(call.reply.ok())
}

fn check_name<B: Backend>(shared: &Shared<B>, topic: &str) -> Result<(), Refusal> {
    rules::validate_topic(topic)?;
    if shared.is_system_topic(topic) {
        return Err(invalid(format!("The topic[{topic}] is conflict with system topic.")));
    }
    Ok(())
}

/// The topic that `changes` make of the one there is, if they may.
pub(crate) fn spec<B: Backend>(
    shared: &Shared<B>,
    changes: &Changes<'_>,
) -> Result<TopicSpec, Refusal> {
    let Changes { topic, read_queues, write_queues, perm, sys_flag, order, attributes } = *changes;
    check_name(shared, topic)?;
    let counts = [read_queues, write_queues];
    let legal = 0..=TOPIC_QUEUES_MAX;
    if counts.iter().any(|count| !legal.contains(count)) || counts == [0, 0] {
        return Err(invalid(format!(
            "readQueueNums[{read_queues}] and writeQueueNums[{write_queues}] must be 0 to \
             {TOPIC_QUEUES_MAX}, one of them above 0"
        )));
    }
    if perm & !PERM_BITS != 0 {
        return Err(invalid(format!("perm[{perm}] must be 0 to {PERM_BITS}")));
    }
    let old = shared.topic(topic);
    let name = match &old {
        Some(old) => Arc::clone(&old.name),
        None => topics::stored_name(topic)?,
    };
    let attributes = attributes::change(attributes, old.as_ref().map(|old| &old.attributes))?;
    Ok(TopicSpec { name, read_queues, write_queues, perm, sys_flag, order, attributes })
}

fn invalid(remark: String) -> Refusal {
    Refusal::new(ResponseCode::INVALID_PARAMETER, remark)
}

#[cfg(test)]
mod tests;
