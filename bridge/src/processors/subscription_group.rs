//! UPDATE_AND_CREATE_SUBSCRIPTIONGROUP and GET_SUBSCRIPTIONGROUP_CONFIG: codes 200 and 352. A
//! group's configuration. Asking for one that is not there makes it, as everywhere.
//! Source: AdminBrokerProcessor.updateAndCreateSubscriptionGroup, getSubscriptionGroup.

use super::{Call, Outcome, Refusal, rules};
use crate::backend::Backend;
use crate::bodies::SubscriptionGroupConfig;
use crate::response_code::ResponseCode;

pub(crate) async fn put<B: Backend>(call: Call<B>) -> Outcome {
    if call.request.body.is_empty() {
        return Ok(call.reply.ok());
    }
    let config = SubscriptionGroupConfig::decode(&call.request.body)
        .map_err(|error| Refusal::new(ResponseCode::SYSTEM_ERROR, error.to_string()))?;
    rules::validate_group(&config.0.name)?;
    call.backend().put_subscription_group(config.0.clone()).await?;
    call.shared.create_retry_topic(&config.0, 0).await?;
    Ok(call.reply.ok())
}

pub(crate) async fn get<B: Backend>(call: Call<B>) -> Outcome {
    let group: &str = call.request.field("group")?;
    match call.shared.group_config(group).await? {
        Some(config) => {
            let body = SubscriptionGroupConfig::encode(&config);
            Ok(call.reply.ok().with_body(body))
        }
        None => {
            Err(Refusal::new(ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST, "No group in this broker"))
        }
    }
}

#[cfg(test)]
mod tests;
