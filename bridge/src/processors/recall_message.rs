//! RECALL_MESSAGE: code 370. Takes a message back that waits for its time, by the handle that its send
//! was answered with. Whether it was still there is not told, as in the original; one that is on its
//! way is not held up.
//! Source: RecallMessageProcessor, RecallMessageHandle.

use super::{Call, Outcome, Refusal};
use crate::backend::{Backend, Recall};
use crate::response_code::ResponseCode;
use crate::translate::delay::recalled_range;
use crate::translate::recall::{self, RecallHandle};

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let region = call.backend().config().region_id.clone();
    match take_back(&call).await {
        Ok(id) => Ok(call.reply.ok().with_field("MSG_REGION", region).with_field("msgId", id)),
        Err(refusal) => Err(refusal.with_field("MSG_REGION", region)),
    }
}

/// Returns the message's own id.
async fn take_back<B: Backend>(call: &Call<B>) -> Result<String, Refusal> {
    let backend = call.backend();
    let config = backend.config();
    let (topic, handle): (&str, &str) =
        (call.request.field("topic")?, call.request.field("recallHandle")?);
    if !config.recall {
        return Err(Refusal::new(
            ResponseCode::NO_PERMISSION,
            "recall failed, operation is forbidden",
        ));
    }
    let Some(known) = call.shared.topic(topic) else {
        return Err(Refusal::new(
            ResponseCode::TOPIC_NOT_EXIST,
            format!("recall failed, the topic[{topic}] not exist"),
        ));
    };
    let text = recall::decode(handle).map_err(|error| illegal(&error.to_string()))?;
    let handle = recall::parse(&text).map_err(|error| illegal(&error.to_string()))?;
    let RecallHandle { topic: of, broker_name, time_ms, id } = handle;
    if of != topic {
        return Err(illegal("recall failed, topic not match"));
    }
    if broker_name != config.broker_name {
        return Err(illegal("recall failed, broker service not available"));
    }
    let left_ms = time_ms.saturating_sub(backend.now_ms());
    if left_ms <= 0 || left_ms >= config.delays.max_delay_ms {
        return Err(illegal("recall failed, timestamp invalid"));
    }
    let (from_ms, to_ms) = recalled_range(time_ms);
    backend.recall_timed(&known, Recall { id, from_ms, to_ms }).await?;
    Ok(id.to_owned())
}

fn illegal(remark: &str) -> Refusal {
    Refusal::new(ResponseCode::ILLEGAL_OPERATION, remark)
}

#[cfg(test)]
mod tests;
