//! INVOKE_BROKER_TO_GET_CONSUMER_STATUS: code 223. Where the members of a group stand, by what they
//! say themselves: each is asked with GET_CONSUMER_STATUS_FROM_CLIENT (221). One that does not answer
//! is left out.
//! Source: AdminBrokerProcessor.getConsumerStatus, Broker2Client.getConsumeStatus.

use std::time::Duration;

use super::{Call, Outcome, Refusal};
use crate::backend::Backend;
use crate::bodies::GetConsumerStatusBody;
use crate::remoting::{RemotingCommand, SerializeType};
use crate::response_code::ResponseCode;

const GET_CONSUMER_STATUS_FROM_CLIENT: i32 = 221;

/// For one member. Source: Broker2Client.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// For all of them: whoever asked has given up by then.
const ALL_LIMIT: Duration = Duration::from_secs(30);

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let topic: &str = call.request.field("topic")?;
    let group: &str = call.request.field("group")?;
    let client_id: &str = call.request.optional_field("clientAddr")?.unwrap_or_default();
    let Some(view) = call.backend().group(group) else {
        let remark = format!("No Any Consumer online in the consumer group: [{group}]");
        return Err(Refusal::new(ResponseCode::SYSTEM_ERROR, remark));
    };
    let mut body = GetConsumerStatusBody::default();
    let ask_all = async {
        for member in &view.members {
            let client = &member.client;
            if !client_id.trim().is_empty() && *client_id != *client.client_id {
                continue;
            }
            let request =
                RemotingCommand::request(GET_CONSUMER_STATUS_FROM_CLIENT, 0, SerializeType::Json)
                    .with_field("topic", topic)
                    .with_field("group", group);
            match call.shared.sessions.call(client.session, request, ANSWER_LIMIT).await {
                Ok(answer) if answer.code == ResponseCode::SUCCESS.0 => {
                    body.add(&client.client_id, &answer.body);
                }
                Ok(answer) => tracing::debug!(?client.client_id, answer.code, "no status"),
                Err(error) => tracing::debug!(?client.client_id, %error, "no status"),
            }
        }
    };
    if tokio::time::timeout(ALL_LIMIT, ask_all).await.is_err() {
        tracing::debug!(group, "not all members told their status");
    }
    Ok(call.reply.ok().with_body(body.encode()))
}

#[cfg(test)]
mod tests;
