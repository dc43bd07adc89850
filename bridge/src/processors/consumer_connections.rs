//! GET_CONSUMER_CONNECTION_LIST: code 203. A group's members with their connections, and what it
//! subscribes to.
//! Source: AdminBrokerProcessor.getConsumerConnectionList.

use super::{Call, Outcome, Refusal};
use crate::backend::{Backend, Member, Subscription};
use crate::bodies::{Connection, ConsumerConnection, SubscriptionData};
use crate::remoting::LanguageCode;
use crate::response_code::ResponseCode;

pub(crate) fn handle<B: Backend>(call: &Call<B>) -> Outcome {
    let group: &str = call.request.field("consumerGroup")?;
    let Some(view) = call.backend().group(group) else {
        return Err(Refusal::new(
            ResponseCode::CONSUMER_NOT_ONLINE,
            format!("the consumer group[{group}] not online"),
        ));
    };
    let subscriptions = view.subscriptions.values();
    let body = ConsumerConnection {
        connections: view.members.iter().map(connection).collect(),
        subscriptions: subscriptions.map(|one| subscription_data(one)).collect(),
        consume_type: view.consume_type,
        message_model: view.message_model,
        consume_from_where: view.consume_from_where,
    };
    Ok(call.reply.ok().with_body(body.encode()))
}

fn connection(member: &Member) -> Connection {
    Connection {
        client_id: member.client.client_id.to_string(),
        client_addr: member.client.address.to_string(),
        language: LanguageCode(member.client.language),
        version: member.client.version,
    }
}

pub(super) fn subscription_data(subscription: &Subscription) -> SubscriptionData {
    SubscriptionData {
        topic: subscription.topic.to_string(),
        sub_string: subscription.expression.clone(),
        expression_type: subscription.expression_type.clone(),
        tags: subscription.tags.clone(),
        codes: subscription.tag_hashes.clone(),
        sub_version: subscription.version,
        class_filter_mode: subscription.class_filter_mode,
    }
}
