//! UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST and
//! GET_SUBSCRIPTIONGROUP_CONFIG: codes 200, 225 and 352. A group's configuration. A list with an
//! illegal name changes none. Asking for one that is not there makes it, as everywhere. No attribute of a
//! group does anything here, so none is taken.
//! Source: AdminBrokerProcessor.updateAndCreateSubscriptionGroup, getSubscriptionGroup.

use super::{Call, Outcome, Refusal, rules};
use crate::backend::{Backend, SubscriptionGroup};
use crate::bodies::SubscriptionGroupConfig;
use crate::limits::GROUP_LIST_MAX;
use crate::response_code::ResponseCode;

pub(crate) async fn put<B: Backend>(call: Call<B>) -> Outcome {
    if call.request.body.is_empty() {
        return Ok(call.reply.ok());
    }
    let config = SubscriptionGroupConfig::decode(&call.request.body)
        .map_err(|error| Refusal::new(ResponseCode::SYSTEM_ERROR, error.to_string()))?;
    validate(&config.0)?;
    call.backend().put_subscription_group(config.0.clone()).await?;
    call.shared.create_retry_topic(&config.0, 0).await?;
    Ok(call.reply.ok())
}

pub(crate) async fn put_list<B: Backend>(call: Call<B>) -> Outcome {
    let groups = SubscriptionGroupConfig::decode_list(&call.request.body)
        .map_err(|error| Refusal::new(ResponseCode::SYSTEM_ERROR, error.to_string()))?;
    if groups.len() > GROUP_LIST_MAX {
        let remark = format!("the list holds more than {GROUP_LIST_MAX} groups");
        return Err(Refusal::new(ResponseCode::INVALID_PARAMETER, remark));
    }
    for group in &groups {
        validate(&group.0)?;
    }
    for group in groups {
        call.backend().put_subscription_group(group.0.clone()).await?;
        call.shared.create_retry_topic(&group.0, 0).await?;
    }
    Ok(call.reply.ok())
}

fn validate(group: &SubscriptionGroup) -> Result<(), Refusal> {
    rules::validate_group(&group.name)?;
    match group.attributes.keys().next() {
        None => Ok(()),
        Some(key) => {
            let key = key.trim_start_matches(['+', '-']);
            Err(Refusal::new(ResponseCode::SYSTEM_ERROR, format!("unsupported key: {key}")))
        }
    }
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
