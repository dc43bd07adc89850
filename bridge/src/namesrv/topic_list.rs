//! GET_ALL_TOPIC_LIST_FROM_NAMESERVER: code 206. The topics that have a route, retry topics too: by
//! them consumerProgress finds the groups, so those of Kafka's groups with positions are among them
//! though there are no such topics (`route.rs` gives them the route). The node's own topics are not
//! shown, nor Kafka's whose names RocketMQ cannot say; of the original's built-in topics only the
//! template is there.
//! Source: RouteInfoManager.getAllTopicList.

use std::collections::BTreeSet;

use crate::backend::Backend;
use crate::bodies::TopicList;
use crate::processors::rules::{RETRY_PREFIX, TEMPLATE_TOPIC};
use crate::processors::{Call, Outcome, topics};
use crate::translate::names;

pub(crate) fn handle<B: Backend>(call: &Call<B>) -> Outcome {
    let stored = call.backend().topics();
    let routed = stored.iter().filter_map(|topic| call.backend().route(topic));
    let mut names: BTreeSet<String> = routed
        .filter(|topic| !topics::is_own(topic))
        .filter_map(|topic| names::rocketmq_name(&topic.name).map(std::borrow::Cow::into_owned))
        .collect();
    let groups = call.backend().groups_with_any_position().into_iter();
    let retries = groups.map(|group| format!("{RETRY_PREFIX}{group}"));
    names.extend(retries.filter(|name| topics::stored_name(name).is_ok()));
    if call.shared.topic_or_template(TEMPLATE_TOPIC).is_some() {
        names.insert(TEMPLATE_TOPIC.to_owned());
    }
    let body = TopicList { topics: names.into_iter().collect() };
    Ok(call.reply.ok().with_body(body.encode()))
}
