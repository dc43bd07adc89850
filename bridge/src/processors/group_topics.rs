//! QUERY_TOPICS_BY_CONSUMER and QUERY_SUBSCRIPTION_BY_CONSUMER: codes 343 and 345. The topics that
//! a group has positions on, and what its live members subscribe to on one of them.
//! Source: AdminBrokerProcessor.queryTopicsByConsumer, querySubscriptionByConsumer.

use super::consumer_connections::subscription_data;
use super::{Call, Outcome};
use crate::backend::Backend;
use crate::bodies::{QuerySubscriptionResponseBody, TopicsOfBroker};
use crate::translate::names;

pub(crate) async fn topics<B: Backend>(call: Call<B>) -> Outcome {
    let group: &str = call.request.field("group")?;
    let positions = call.backend().committed_offsets(group).await?;
    let mut topics: Vec<String> = positions
        .iter()
        .filter_map(|position| names::rocketmq_name(&position.topic))
        .map(std::borrow::Cow::into_owned)
        .collect();
    // They are sorted by topic.
    topics.dedup();
    let broker_address = Some(call.backend().config().broker_address.to_string());
    Ok(call.reply.ok().with_body(TopicsOfBroker { broker_address, topics }.encode()))
}

pub(crate) fn subscription<B: Backend>(call: &Call<B>) -> Outcome {
    let group: &str = call.request.field("group")?;
    let topic: &str = call.request.field("topic")?;
    let view = call.backend().group(group);
    let subscription = view.as_ref().and_then(|view| view.subscriptions.get(topic));
    let body = QuerySubscriptionResponseBody {
        group: group.to_owned(),
        topic: topic.to_owned(),
        subscription: subscription.map(|subscription| subscription_data(subscription)),
    };
    Ok(call.reply.ok().with_body(body.encode()))
}
