//! QUERY_TOPIC_CONSUME_BY_WHO: code 300. The groups that read a topic: those whose live members
//! subscribe to it, and those with a position on it, of either protocol. For mqadmin's topicList -c,
//! statsAll and queryMsgById.
//! Source: AdminBrokerProcessor.queryTopicConsumeByWho.

use std::collections::BTreeSet;

use super::{Call, Outcome};
use crate::backend::Backend;
use crate::bodies::GroupList;

pub(crate) fn handle<B: Backend>(call: &Call<B>) -> Outcome {
    let name: &str = call.request.field("topic")?;
    let backend = call.backend();
    let subscribes = |group: &str| {
        let view = backend.group(group);
        view.is_some_and(|view| view.subscriptions.contains_key(name))
    };
    let configured = backend.subscription_groups();
    let live = configured.iter().map(|group| &group.name).filter(|group| subscribes(group));
    let mut groups: BTreeSet<String> = live.map(|group| group.to_string()).collect();
    if let Some(topic) = call.shared.topic(name) {
        groups.extend(backend.groups_with_positions(&topic));
    }
    let body = GroupList { groups: groups.into_iter().collect() };
    Ok(call.reply.ok().with_body(body.encode()))
}

#[cfg(test)]
mod tests;
