//! GET_ROUTEINFO_BY_TOPIC: code 105. The queues of a topic and the broker that serves them.
//! There is one broker name for the cluster; queue and partition are the same number, and any node
//! forwards to a partition's leader. So a route holds one queue entry and one broker entry, whose
//! address is the node this client shall talk to, the same for every topic.
//! Clients from 4.9.4 on, and those that ask for it, get standard JSON; older ones bare numbers as
//! keys.
//! The order configuration comes along where `orderMessageEnable` is on (it is off, as in the
//! original). Leaves out: static topics.
//! Source: ClientRequestProcessor.getRouteInfoByTopic, RouteInfoManager.pickupTopicRouteData.

use std::sync::Arc;

use duolog_log_core::event::EventKind;
use duolog_log_core::gate::GatePoint;

use crate::backend::{Backend, PERM_READ, Topic};
use crate::bodies::{BrokerData, JsonStyle, QueueData, TopicRouteData};
use crate::processors::instruments::Spot;
use crate::processors::rules::{RETRY_PREFIX, SEE_FAQ};
use crate::processors::{Call, Outcome, Refusal, topics};
use crate::response_code::ResponseCode;

/// Source: NamesrvUtil.NAMESPACE_ORDER_TOPIC_CONFIG.
pub(super) const ORDER_NAMESPACE: &str = "ORDER_TOPIC_CONFIG";

/// MQVersion.V4_9_4: from here on clients read standard JSON.
const STANDARD_JSON_SINCE: i32 = 401;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    call.shared.pass(GatePoint::RouteQuery, &call.session, None).await?;
    let name: Option<&str> = call.request.optional_field("topic")?;
    let standard_only = call.request.optional_field("acceptStandardJsonOnly")?.unwrap_or(false);
    let found = match name {
        Some(name) => find(&call, name).await,
        None => None,
    };
    let Some(topic) = found else {
        let name = name.unwrap_or("null");
        return Err(Refusal::new(
            ResponseCode::TOPIC_NOT_EXIST,
            format!("No topic route info in name server for the topic: {name}{SEE_FAQ}"),
        ));
    };
    let spot = Spot { topic: &topic, queue_id: 0, offset: None };
    call.shared.tell(EventKind::RouteQuery, &call.session, Some(spot), None);
    let config = call.backend().config();
    let route = TopicRouteData {
        queues: vec![QueueData {
            broker_name: config.broker_name.clone(),
            read_queue_nums: topic.read_queues,
            write_queue_nums: topic.write_queues,
            perm: call.shared.route_permissions.of(&topic),
            topic_sys_flag: topic.sys_flag,
        }],
        brokers: vec![broker(&call)],
        order_conf: order_conf(&call, name.unwrap_or_default()),
    };
    let is_standard = standard_only || call.request.version >= STANDARD_JSON_SINCE;
    let style = if is_standard { JsonStyle::Standard } else { JsonStyle::Fastjson };
    Ok(call.reply.ok().with_body(route.encode(style)))
}

/// What orders the topic's queues, where routes tell it.
fn order_conf<B: Backend>(call: &Call<B>, topic: &str) -> Option<String> {
    let is_told = call.backend().config().order_messages;
    is_told.then(|| call.backend().kv_config(ORDER_NAMESPACE, topic))?
}

/// The topic, or what stands for it where mqadmin finds a broker by a route: a group's by that of its
/// retry topic, which Kafka's groups with positions here do not have, and the cluster's by that of a
/// topic with its name. Such a route shows the way; nothing can be sent there.
async fn find<B: Backend>(call: &Call<B>, name: &str) -> Option<Arc<Topic>> {
    if let Some(topic) = call.shared.topic_or_template(name) {
        return call.backend().route(&topic);
    }
    let stored = topics::stored_name(name).ok()?;
    let shows_the_way = match name.strip_prefix(RETRY_PREFIX) {
        Some(group) => !call.backend().committed_offsets(group).await.ok()?.is_empty(),
        None => name == call.backend().config().cluster_name,
    };
    let topic = || topics::of_spec(&topics::plain_topic(stored, 1, PERM_READ, 0));
    shows_the_way.then(|| Arc::new(topic()))
}

/// The cluster's broker as this client sees it.
pub(super) fn broker<B: Backend>(call: &Call<B>) -> BrokerData {
    let config = call.backend().config();
    BrokerData {
        cluster: config.cluster_name.clone(),
        broker_name: config.broker_name.clone(),
        addresses: vec![(0, call.backend().entry_address(call.session.peer()).to_string())],
    }
}

#[cfg(test)]
mod tests;
