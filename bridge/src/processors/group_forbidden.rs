//! UPDATE_AND_GET_GROUP_FORBIDDEN: code 353. Whether a group may read a topic; kept with the node's
//! metadata, in a namespace of the key/value store.
//! Source: AdminBrokerProcessor.updateAndGetGroupForbidden, SubscriptionGroupManager.

use super::{Call, Outcome, Refusal, rules};
use crate::backend::Backend;
use crate::bodies::GroupForbidden;
use crate::dispatch::Shared;

/// Its keys are the topic, `@` and the group.
const NAMESPACE: &str = "FORBIDDEN_GROUPS";
const FORBIDDEN: &str = "forbidden";

impl<B: Backend> Shared<B> {
    /// May the group not read the topic?
    pub(crate) fn is_forbidden(&self, group: &str, topic: &str) -> bool {
        self.backend.has_kv_configs(NAMESPACE)
            && self.backend.kv_config(NAMESPACE, &key(group, topic)).as_deref() == Some(FORBIDDEN)
    }
}

fn key(group: &str, topic: &str) -> String {
    format!("{topic}@{group}")
}

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let group: &str = call.request.field("group")?;
    let topic: &str = call.request.field("topic")?;
    let readable: Option<bool> = call.request.optional_field("readable")?;
    check(group, topic)?;
    if let Some(readable) = readable {
        let value = (!readable).then(|| FORBIDDEN.to_owned());
        call.backend().put_kv_config(NAMESPACE, &key(group, topic), value).await?;
        call.shared.holds.group_changed(group);
    }
    let body = GroupForbidden {
        group: group.to_owned(),
        topic: topic.to_owned(),
        readable: !call.shared.is_forbidden(group, topic),
    };
    Ok(call.reply.ok().with_remark("").with_body(body.encode()))
}

fn check(group: &str, topic: &str) -> Result<(), Refusal> {
    rules::validate_group(group)?;
    rules::validate_topic(topic)
}

#[cfg(test)]
mod tests;
