//! GET_TOPICS_BY_CLUSTER (224), GET_SYSTEM_TOPIC_LIST_FROM_NS (304), GET_UNIT_TOPIC_LIST (311),
//! GET_HAS_UNIT_SUB_TOPIC_LIST (312), GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST (313): topics by where they
//! are or by their flags. The system's topics are the names of the cluster and the broker, as in the
//! original, though nothing is stored in them.
//! Source: RouteInfoManager.getTopicsByCluster, getSystemTopicList, getUnitTopics.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::backend::{Backend, Topic};
use crate::bodies::{TopicList, TopicsOfBroker};
use crate::processors::{Call, Outcome, topics};
use crate::translate::names;

/// Bits of `topicSysFlag`. Source: TopicSysFlag.
const UNIT: i32 = 1;
const UNIT_SUBSCRIPTION: i32 = 2;

pub(crate) fn of_cluster<B: Backend>(call: &Call<B>) -> Outcome {
    let cluster: Option<&str> = call.request.optional_field("cluster")?;
    let is_ours = cluster == Some(&*call.backend().config().cluster_name);
    list(call, |_| is_ours)
}

pub(crate) fn of_system<B: Backend>(call: &Call<B>) -> Outcome {
    let config = call.backend().config();
    let names = BTreeSet::from([config.broker_name.clone(), config.cluster_name.clone()]);
    let body = TopicsOfBroker {
        broker_address: Some(config.broker_address.to_string()),
        topics: names.into_iter().collect(),
    };
    Ok(call.reply.ok().with_body(body.encode()))
}

pub(crate) fn of_units<B: Backend>(call: &Call<B>) -> Outcome {
    list(call, |topic| topic.sys_flag & UNIT != 0)
}

pub(crate) fn subscribed_from_units<B: Backend>(call: &Call<B>) -> Outcome {
    list(call, |topic| topic.sys_flag & UNIT_SUBSCRIPTION != 0)
}

pub(crate) fn subscribed_from_units_alone<B: Backend>(call: &Call<B>) -> Outcome {
    list(call, |topic| topic.sys_flag & (UNIT | UNIT_SUBSCRIPTION) == UNIT_SUBSCRIPTION)
}

fn list<B: Backend>(call: &Call<B>, is_wanted: impl Fn(&Topic) -> bool) -> Outcome {
    let stored = call.backend().topics();
    let routed = stored.iter().filter_map(|topic| call.backend().route(topic));
    let wanted = routed.filter(|topic| !topics::is_own(topic) && is_wanted(topic));
    let name = |topic: Arc<Topic>| names::rocketmq_name(&topic.name).map(Cow::into_owned);
    let body = TopicList { topics: wanted.filter_map(name).collect() };
    Ok(call.reply.ok().with_body(body.encode()))
}

#[cfg(test)]
mod tests;
