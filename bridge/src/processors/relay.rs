//! GET_CONSUMER_RUNNING_INFO (307) and CONSUME_MESSAGE_DIRECTLY (309): what only a member of a group
//! can answer. The request goes on to it, with the message to be consumed if there is one, and its
//! answer comes back as it is.
//! Leaves out: the refusal of clients before 3.1.8, which cannot connect to 5.5.0 either.
//! Source: AdminBrokerProcessor.getConsumerRunningInfo, consumeMessageDirectly, callConsumer.

use std::time::Duration;

use super::view_message::message_at;
use super::{Call, Outcome, Refusal};
use crate::backend::Backend;
use crate::limits::CLIENT_CALL_MS_MAX;
use crate::remoting::{RemotingCommand, SegmentedOut, SerializeType};
use crate::response_code::ResponseCode;
use crate::session::CallError;
use crate::translate::queue::MessageId;

pub(crate) async fn running_info<B: Backend>(call: Call<B>) -> Outcome {
    let request = onward(&call);
    relay(&call, request).await
}

pub(crate) async fn consume_directly<B: Backend>(call: Call<B>) -> Outcome {
    let id: &str = call.request.optional_field("msgId")?.unwrap_or_default();
    let topic: Option<&str> = call.request.optional_field("topic")?;
    let group: &str = call.request.field("consumerGroup")?;
    let Some(message) = message(&call, id).await? else {
        let remark = format!("can not find message by the id, {id}");
        return Err(Refusal::new(ResponseCode::SYSTEM_ERROR, remark));
    };
    let config = call.backend().config();
    let mut request = onward(&call)
        .with_field("brokerName", &*config.broker_name)
        .with_body(message.into_bytes());
    if let Some(topic) = topic.and_then(|name| call.shared.topic(name)) {
        request = request.with_field("topicSysFlag", topic.sys_flag);
    }
    if let Some(group) = call.backend().subscription_group(group) {
        request = request.with_field("groupSysFlag", group.sys_flag);
    }
    relay(&call, request).await
}

async fn message<B: Backend>(call: &Call<B>, id: &str) -> Result<Option<SegmentedOut>, Refusal> {
    match MessageId::parse(id) {
        Some(id) => message_at(call, id.address.physical()).await,
        None => Ok(None),
    }
}

/// The request as it came, as one of ours.
fn onward<B: Backend>(call: &Call<B>) -> RemotingCommand {
    let mut request = RemotingCommand::request(call.request.code, 0, SerializeType::Json);
    request.ext_fields = call.request.ext_fields.clone();
    request
}

async fn relay<B: Backend>(call: &Call<B>, request: RemotingCommand) -> Outcome {
    let group: &str = call.request.field("consumerGroup")?;
    let client_id: &str = call.request.optional_field("clientId")?.unwrap_or_default();
    let view = call.backend().group(group);
    let members = view.iter().flat_map(|view| &view.members);
    let mut sessions = members
        .filter(|member| &*member.client.client_id == client_id)
        .map(|member| member.client.session);
    let Some(session) = sessions.next() else {
        let remark = format!("The Consumer <{group}> <{client_id}> not online");
        return Err(Refusal::new(ResponseCode::SYSTEM_ERROR, remark));
    };
    let limit = Duration::from_millis(CLIENT_CALL_MS_MAX);
    let answer = call.shared.sessions.call(session, request, limit).await;
    let answer = answer.map_err(|error| unanswered(group, client_id, error))?;
    let mut relayed = call.reply.code(ResponseCode(answer.code)).with_body(answer.body);
    relayed.remark = answer.remark;
    relayed.ext_fields = answer.ext_fields;
    Ok(relayed)
}

fn unanswered(group: &str, client_id: &str, error: CallError) -> Refusal {
    match error {
        CallError::Timeout(_) => Refusal::new(
            ResponseCode::CONSUME_MSG_TIMEOUT,
            format!("consumer <{group}> <{client_id}> Timeout: {error}"),
        ),
        CallError::Gone | CallError::Busy => Refusal::new(
            ResponseCode::SYSTEM_ERROR,
            format!("invoke consumer <{group}> <{client_id}> Exception: {error}"),
        ),
    }
}

#[cfg(test)]
mod tests;
