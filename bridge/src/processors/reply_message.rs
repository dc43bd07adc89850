//! SEND_REPLY_MESSAGE (324) and SEND_REPLY_MESSAGE_V2 (325): the answer to a message that its sender
//! waits for. It goes to the client that the property REPLY_TO_CLIENT names, as
//! PUSH_REPLY_MESSAGE_TO_CLIENT (326), and into the reply topic unless `storeReplyMessageEnable` is
//! off. A reply that reaches nobody is refused in words, stored all the same.
//! Source: ReplyMessageProcessor.

use std::time::Duration;

use super::send_message::{self, with_property};
use super::{Call, Outcome, Refusal, rules};
use crate::backend::{Backend, NodeConfig};
use crate::limits::CLIENT_CALL_MS_MAX;
use crate::remoting::{RemotingCommand, SendForm, SendHeader, SerializeType};
use crate::response_code::ResponseCode;
use crate::translate::properties::{PUSH_REPLY_TIME, Properties, REPLY_TO_CLIENT};

const SEND_REPLY_MESSAGE: i32 = 324;
const PUSH_REPLY_MESSAGE_TO_CLIENT: i32 = 326;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let is_words = call.request.code == SEND_REPLY_MESSAGE;
    let form = if is_words { SendForm::Words } else { SendForm::Letters };
    let header = SendHeader::decode(&call.request, form)?;
    let config = call.backend().config();
    let traced = |refusal: Refusal| {
        refusal
            .with_field("MSG_REGION", &*config.region_id)
            .with_field("TRACE_ON", send_message::trace_text(&config))
    };
    rules::validate_topic(header.topic).map_err(traced)?;
    if rules::is_send_forbidden(header.topic) {
        let remark = format!("Sending message to topic[{}] is forbidden.", header.topic);
        return Err(traced(Refusal::new(ResponseCode::NO_PERMISSION, remark)));
    }
    let pushed = push(&call, &header).await;
    let stored = match config.store_replies {
        true => send_message::store(&call, &header, &config)
            .await
            .inspect_err(|refusal| tracing::warn!(%refusal, "a reply was not stored"))
            .ok(),
        false => None,
    };
    pushed.map_err(|remark| traced(Refusal::new(ResponseCode::SYSTEM_ERROR, remark)))?;
    Ok(stored.map_or_else(
        || not_stored(&call, &header, &config),
        |answer| RemotingCommand { code: ResponseCode::SUCCESS.0, ..answer },
    ))
}

/// Zeros for what the client wants to read.
fn not_stored<B: Backend>(
    call: &Call<B>,
    header: &SendHeader<'_>,
    config: &NodeConfig,
) -> RemotingCommand {
    call.reply
        .ok()
        .with_field("msgId", 0)
        .with_field("queueId", header.queue_id.max(0))
        .with_field("queueOffset", 0)
        .with_field("MSG_REGION", &*config.region_id)
        .with_field("TRACE_ON", send_message::trace_text(config))
}

/// Hands the reply on; the error is the remark.
async fn push<B: Backend>(call: &Call<B>, header: &SendHeader<'_>) -> Result<(), String> {
    let named = Properties(header.properties).iter().filter(|(name, _)| *name == REPLY_TO_CLIENT);
    let Some((_, client_id)) = named.last() else {
        return Err(format!("reply message properties[{REPLY_TO_CLIENT}] is null"));
    };
    let sessions = &call.shared.sessions;
    let Some(session) = sessions.of_client(client_id) else {
        return Err(format!("push reply message fail, channel of <{client_id}> not found."));
    };
    let failed = || format!("push reply message to {client_id}fail.");
    let limit = Duration::from_millis(CLIENT_CALL_MS_MAX);
    match sessions.call(session, pushed(call, header), limit).await {
        Ok(answer) if answer.code == ResponseCode::SUCCESS.0 => Ok(()),
        Ok(answer) => {
            tracing::warn!(client_id, code = answer.code, remark = answer.remark, "reply refused");
            Err(failed())
        }
        Err(error) => {
            tracing::warn!(client_id, %error, "reply not delivered");
            Err(failed())
        }
    }
}

fn pushed<B: Backend>(call: &Call<B>, header: &SendHeader<'_>) -> RemotingCommand {
    let now_ms = call.backend().now_ms();
    let properties = with_property(header.properties, PUSH_REPLY_TIME, &now_ms.to_string());
    let store_host = call.backend().config().broker_address;
    RemotingCommand::request(PUSH_REPLY_MESSAGE_TO_CLIENT, 0, SerializeType::Json)
        .with_field("bornHost", call.session.peer())
        .with_field("storeHost", store_host)
        .with_field("storeTimestamp", now_ms)
        .with_field("producerGroup", header.producer_group)
        .with_field("topic", header.topic)
        .with_field("defaultTopic", header.default_topic)
        .with_field("defaultTopicQueueNums", header.default_topic_queue_nums)
        .with_field("queueId", header.queue_id)
        .with_field("sysFlag", header.sys_flag)
        .with_field("bornTimestamp", header.born_timestamp_ms)
        .with_field("flag", header.flag)
        .with_field("properties", properties)
        .with_field("reconsumeTimes", header.reconsume_times)
        .with_field("unitMode", header.unit_mode)
        .with_body(call.request.body.clone())
}

#[cfg(test)]
mod tests;
