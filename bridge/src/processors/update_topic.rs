//! UPDATE_AND_CREATE_TOPIC: code 17. Creates a topic or changes its queue counts, permission and
//! attributes. Counts may fall (readers and writers see fewer queues), partitions never do.
//! Unlike the original it refuses what a log cannot be: no queue at all, negative counts, more
//! queues than a topic may have, unknown permission bits.
//! Leaves out: filter types other than SINGLE_TAG; `force`.
//! Source: AdminBrokerProcessor.updateAndCreateTopic, CreateTopicRequestHeader, AttributeUtil.

mod attributes;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Call, Outcome, Refusal, rules, topics};
use crate::backend::{Backend, TopicSpec};
use crate::limits::TOPIC_QUEUES_MAX;
use crate::remoting::RemotingCommand;
use crate::response_code::ResponseCode;

/// Bits of a permission that mean something: inherit, write, read.
const PERM_BITS: i32 = 7;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let name: &str = call.request.optional_field("topic")?.unwrap_or_default();
    rules::validate_topic(name)?;
    if rules::is_system_topic(name) {
        return Err(invalid(format!("The topic[{name}] is conflict with system topic.")));
    }
    let old = call.shared.topic(name);
    let stored = match &old {
        Some(topic) => Arc::clone(&topic.name),
        None => topics::stored_name(name)?,
    };
    let old_attributes = old.as_ref().map(|topic| &topic.attributes);
    let spec = spec(&call.request, stored, old_attributes)?;
    call.backend().put_topic(spec).await?;
    Ok(call.reply.ok())
}

fn spec(
    request: &RemotingCommand,
    name: Arc<str>,
    old_attributes: Option<&BTreeMap<String, String>>,
) -> Result<TopicSpec, Refusal> {
    let filter_type: &str = request.optional_field("topicFilterType")?.unwrap_or("null");
    if !matches!(filter_type, "SINGLE_TAG" | "MULTI_TAG") {
        let remark = format!("topicFilterType = [{filter_type}] value invalid");
        return Err(Refusal::new(ResponseCode::SYSTEM_ERROR, remark));
    }
    if filter_type == "MULTI_TAG" {
        return Err(invalid("topicFilterType MULTI_TAG is not supported, use SINGLE_TAG".into()));
    }
    let read_queues: i32 = request.field("readQueueNums")?;
    let write_queues: i32 = request.field("writeQueueNums")?;
    let counts = [read_queues, write_queues];
    let legal = 0..=TOPIC_QUEUES_MAX;
    if counts.iter().any(|count| !legal.contains(count)) || counts == [0, 0] {
        return Err(invalid(format!(
            "readQueueNums[{read_queues}] and writeQueueNums[{write_queues}] must be 0 to \
             {TOPIC_QUEUES_MAX}, one of them above 0"
        )));
    }
    let perm: i32 = request.field("perm")?;
    if perm & !PERM_BITS != 0 {
        return Err(invalid(format!("perm[{perm}] must be 0 to {PERM_BITS}")));
    }
    let changes: &str = request.optional_field("attributes")?.unwrap_or_default();
    Ok(TopicSpec {
        name,
        read_queues,
        write_queues,
        perm,
        sys_flag: request.optional_field("topicSysFlag")?.unwrap_or(0),
        order: request.optional_field("order")?.unwrap_or(false),
        attributes: attributes::change(changes, old_attributes)?,
    })
}

fn invalid(remark: String) -> Refusal {
    Refusal::new(ResponseCode::INVALID_PARAMETER, remark)
}

#[cfg(test)]
mod tests;
