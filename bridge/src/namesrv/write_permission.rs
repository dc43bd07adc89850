//! WIPE_WRITE_PERM_OF_BROKER (205) and ADD_WRITE_PERM_OF_BROKER (327): producers are shown no queues of
//! the broker any more, or again; its topics stay as they are. Shown until the other request, a change
//! of the topic's own permission or the node's end.
//! Source: RouteInfoManager.operateWritePermOfBroker.

use std::collections::HashMap;

use duolog_log_core::ids::TopicId;
use parking_lot::Mutex;

use crate::backend::{Backend, PERM_READ, PERM_WRITE, Topic};
use crate::processors::rules::TEMPLATE_TOPIC;
use crate::processors::{Call, Outcome, topics};

/// What routes show in the place of topics' own permissions.
#[derive(Debug, Default)]
pub(crate) struct RoutePermissions(Mutex<HashMap<TopicId, Shown>>);

#[derive(Clone, Copy, Debug)]
struct Shown {
    /// The topic's own when this was asked for.
    own: i32,
    shown: i32,
}

impl RoutePermissions {
    /// What a route shows as the topic's permission.
    pub(super) fn of(&self, topic: &Topic) -> i32 {
        let shown = self.0.lock().get(&topic.id).copied();
        shown.filter(|shown| shown.own == topic.perm).map_or(topic.perm, |shown| shown.shown)
    }
}

pub(crate) fn wipe<B: Backend>(call: &Call<B>) -> Outcome {
    change(call, "wipeTopicCount", |shown| shown & !PERM_WRITE)
}

pub(crate) fn add<B: Backend>(call: &Call<B>) -> Outcome {
    change(call, "addTopicCount", |_| PERM_READ | PERM_WRITE)
}

fn change<B: Backend>(call: &Call<B>, field: &'static str, change: impl Fn(i32) -> i32) -> Outcome {
    let broker: &str = call.request.field("brokerName")?;
    let mut count = 0;
    if broker == call.backend().config().broker_name {
        let permissions = &call.shared.route_permissions;
        let stored = call.backend().topics();
        let routed = stored.iter().filter_map(|topic| call.backend().route(topic));
        let template = call.shared.topic_or_template(TEMPLATE_TOPIC);
        let shown: HashMap<TopicId, Shown> = routed
            .filter(|topic| !topics::is_own(topic))
            .chain(template)
            .map(|topic| {
                let shown = change(permissions.of(&topic));
                (topic.id, Shown { own: topic.perm, shown })
            })
            .collect();
        count = shown.len();
        *permissions.0.lock() = shown;
    }
    Ok(call.reply.ok().with_field(field, count))
}

#[cfg(test)]
mod tests;
