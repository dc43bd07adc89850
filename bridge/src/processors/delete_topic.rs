//! DELETE_TOPIC_IN_BROKER: code 215. Deletes a topic, its messages and the positions on it. One
//! that is not there is deleted already.
//! Source: AdminBrokerProcessor.deleteTopic.

use super::{Call, Outcome, Refusal};
use crate::backend::{Backend, BackendError};
use crate::response_code::ResponseCode;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let name: &str = call.request.optional_field("topic")?.unwrap_or_default();
    if name.trim().is_empty() {
        return Err(invalid("The specified topic is blank.".into()));
    }
    if call.shared.is_system_topic(name) {
        return Err(invalid(format!("The topic[{name}] is conflict with system topic.")));
    }
    if let Some(topic) = call.shared.topic(name) {
        match call.backend().delete_topic(&topic).await {
            Ok(()) | Err(BackendError::UnknownTopic { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        call.shared.resets.retain(|_, id| id != topic.id);
    }
    Ok(call.reply.ok())
}

fn invalid(remark: String) -> Refusal {
    Refusal::new(ResponseCode::INVALID_PARAMETER, remark)
}
