//! GET_EARLIEST_MSG_STORETIME: code 32. When the first message that a queue still has was stored;
//! -1 where there is none, nor topic or queue.
//! Source: AdminBrokerProcessor.getEarliestMsgStoretime.

use super::{Call, Outcome};
use crate::backend::Backend;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let topic: &str = call.request.field("topic")?;
    let queue_id: i32 = call.request.field("queueId")?;
    let mut stored = None;
    if let Some(topic) = call.shared.topic(topic)
        && let Some(view) = call.backend().partition(&topic, queue_id).await
    {
        stored = call.shared.store_time_ms(&topic, queue_id, view.log_start_offset).await?;
    }
    Ok(call.reply.ok().with_field("timestamp", stored.unwrap_or(-1)))
}

#[cfg(test)]
mod tests;
