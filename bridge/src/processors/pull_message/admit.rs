//! May this pull be served, of which topic, and filtered how?

use std::net::SocketAddr;
use std::sync::Arc;

use super::{FLAG_SUBSCRIPTION, Pull};
use crate::backend::{Backend, MessageModel, PERM_READ, SubscriptionGroup, Topic};
use crate::dispatch::Shared;
use crate::processors::Refusal;
use crate::processors::filter::{Filter, TAG};
use crate::processors::rules::SEE_FAQ;
use crate::remoting::PullHeader;
use crate::response_code::ResponseCode;

/// The fields `forbiddenType` of refusals. Source: ForbiddenType.
mod forbidden {
    pub(super) const BROKER: &str = "1";
    pub(super) const GROUP: &str = "2";
    pub(super) const TOPIC: &str = "3";
    pub(super) const BROADCASTING: &str = "4";
    pub(super) const SUBSCRIPTION: &str = "5";
}

/// What a pull reads.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) topic: Arc<Topic>,
    pub(super) filter: Filter,
    pub(super) group_sys_flag: i32,
}

pub(super) async fn admit<B: Backend>(
    shared: &Shared<B>,
    peer: SocketAddr,
    pull: &Pull,
    header: &PullHeader<'_>,
) -> Result<Target, Refusal> {
    let config = shared.backend.config();
    if config.broker_permission & PERM_READ == 0 {
        let ip = config.broker_address.ip();
        let remark = format!("the broker[{ip}] pulling message is forbidden");
        return Err(no_permission(forbidden::BROKER, remark));
    }
    let group = &pull.group;
    let Some(group_config) = shared.group_config(group).await? else {
        return Err(Refusal::new(
            ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST,
            format!("subscription group [{group}] does not exist, {SEE_FAQ}"),
        ));
    };
    if !group_config.consume_enable {
        let remark = format!("subscription group no permission, {group}");
        return Err(no_permission(forbidden::GROUP, remark));
    }
    let topic = find_topic(shared, &pull.topic)?;
    if !(0..topic.read_queues).contains(&pull.queue_id) {
        return Err(Refusal::new(
            ResponseCode::INVALID_PARAMETER,
            format!(
                "queueId[{}] is illegal, topic:[{}] topicConfig.readQueueNums:[{}] \
                 consumer:[/{peer}]",
                pull.queue_id, pull.topic, topic.read_queues
            ),
        ));
    }
    if shared.is_forbidden(group, &pull.topic) {
        let remark = format!("the consumer group[{group}] is forbidden for topic[{}]", pull.topic);
        return Err(no_permission(forbidden::SUBSCRIPTION, remark));
    }
    let filter = if pull.has(FLAG_SUBSCRIPTION) {
        let expression = header.subscription.unwrap_or_default();
        Filter::parse(expression, header.expression_type.unwrap_or(TAG), shared)?
    } else {
        registered_filter(shared, pull, &group_config)?
    };
    Ok(Target { topic, filter, group_sys_flag: group_config.sys_flag })
}

/// The topic, if it may be read.
pub(super) fn find_topic<B: Backend>(
    shared: &Shared<B>,
    name: &str,
) -> Result<Arc<Topic>, Refusal> {
    let Some(topic) = shared.topic_or_template(name) else {
        return Err(Refusal::new(
            ResponseCode::TOPIC_NOT_EXIST,
            format!("topic[{name}] not exist, apply first please! {SEE_FAQ}"),
        ));
    };
    if topic.perm & PERM_READ == 0 {
        let remark = format!("the topic[{name}] pulling message is forbidden");
        return Err(no_permission(forbidden::TOPIC, remark));
    }
    Ok(topic)
}

/// The filter that the group's heartbeats registered.
pub(super) fn registered_filter<B: Backend>(
    shared: &Shared<B>,
    pull: &Pull,
    group_config: &SubscriptionGroup,
) -> Result<Filter, Refusal> {
    let Some(group) = shared.backend.group(&pull.group) else {
        return Err(not_subscribed(format!("the consumer's group info not exist{SEE_FAQ}")));
    };
    if !group_config.consume_broadcast_enable && group.message_model == MessageModel::Broadcasting {
        let remark = format!("the consumer group[{}] can not consume by broadcast way", pull.group);
        return Err(no_permission(forbidden::BROADCASTING, remark));
    }
    let Some(subscription) = group.subscriptions.get(&*pull.topic) else {
        return Err(not_subscribed(format!("the consumer's subscription not exist{SEE_FAQ}")));
    };
    if subscription.version >= pull.subscription_version {
        return Filter::of(subscription, shared);
    }
    if subscription.expression_type == TAG {
        return Ok(Filter::All);
    }
    let remark = "the consumer's subscription not latest";
    Err(Refusal::new(ResponseCode::SUBSCRIPTION_NOT_LATEST, remark))
}

fn no_permission(forbidden_type: &'static str, remark: String) -> Refusal {
    Refusal::new(ResponseCode::NO_PERMISSION, remark).with_field("forbiddenType", forbidden_type)
}

fn not_subscribed(remark: String) -> Refusal {
    Refusal::new(ResponseCode::SUBSCRIPTION_NOT_EXIST, remark)
}
