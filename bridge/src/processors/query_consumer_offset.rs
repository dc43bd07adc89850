//! QUERY_CONSUMER_OFFSET: code 14. A group's position on one queue. Without one: 0 where the queue
//! still begins at 0, holds something and is small enough to count as held in memory, unless `setZeroIfNotFound` is
//! false; else QUERY_NOT_FOUND, and the client goes by its `consumeFromWhere`.
//! Source: ConsumerManageProcessor.queryConsumerOffset.

use super::instruments::Spot;
use super::{Call, Outcome, Refusal};
use crate::backend::Backend;
use crate::response_code::ResponseCode;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let group: &str = call.request.field("consumerGroup")?;
    let topic: &str = call.request.field("topic")?;
    let queue_id: i32 = call.request.field("queueId")?;
    let or_zero = call.request.optional_field("setZeroIfNotFound")?.unwrap_or(true);
    let backend = call.backend();
    let topic = call.shared.topic(topic);
    if let Some(topic) = &topic
        && let Some(offset) = backend.committed_offset(group, topic, queue_id).await?
    {
        return Ok(call.reply.ok().with_field("offset", offset));
    }
    if !or_zero {
        return Err(not_found("Not found, do not set to zero, maybe this group boot first"));
    }
    let in_memory = backend.config().in_memory_bytes_max;
    if let Some(topic) = &topic
        && let Some(view) = backend.partition(topic, queue_id).await
        && view.log_start_offset == 0
        // An empty queue has nothing in memory.
        && view.last_stable_offset > 0
        && view.bytes < in_memory
    {
        let spot = Spot { topic, queue_id, offset: Some(0) };
        let why = format_args!("no position, the queue is young");
        call.shared.tell_reset(&call.session, spot, group, why);
        return Ok(call.reply.ok().with_field("offset", 0));
    }
    Err(not_found("Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"))
}

fn not_found(remark: &str) -> Refusal {
    Refusal::new(ResponseCode::QUERY_NOT_FOUND, remark)
}
