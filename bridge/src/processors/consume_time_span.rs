//! QUERY_CONSUME_TIME_SPAN: code 303. For each queue: when its first and last messages were stored,
//! when the last one that a group consumed was, and for how long the next one has waited.
//! A group that consumed nothing has the time of the first message, as in the original; what waits
//! is then that message, where the original subtracts -1 from the clock.
//! Source: AdminBrokerProcessor.queryConsumeTimeSpan.

use super::{Call, Outcome, Refusal};
use crate::backend::{Backend, Topic};
use crate::bodies::{MessageQueue, QueryConsumeTimeSpanBody, QueueTimeSpan};
use crate::dispatch::Shared;
use crate::response_code::ResponseCode;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let name: &str = call.request.field("topic")?;
    let group: &str = call.request.field("group")?;
    let Some(topic) = call.shared.topic_or_template(name) else {
        let remark = format!("topic[{name}] not exist");
        return Err(Refusal::new(ResponseCode::TOPIC_NOT_EXIST, remark));
    };
    let broker_name = &call.backend().config().broker_name;
    let mut spans = Vec::new();
    for queue_id in 0..topic.write_queues {
        let position = call.backend().committed_offset(group, &topic, queue_id).await?;
        let queue =
            MessageQueue { topic: name.to_owned(), broker_name: broker_name.clone(), queue_id };
        spans.push(span(&call.shared, &topic, queue, position).await?);
    }
    Ok(call.reply.ok().with_body(QueryConsumeTimeSpanBody { spans }.encode()))
}

async fn span<B: Backend>(
    shared: &Shared<B>,
    topic: &Topic,
    queue: MessageQueue,
    position: Option<i64>,
) -> Result<QueueTimeSpan, Refusal> {
    let queue_id = queue.queue_id;
    let view = shared.backend.partition(topic, queue_id).await.unwrap_or_default();
    let end = view.last_stable_offset;
    let min_ms = shared.store_time_ms(topic, queue_id, view.log_start_offset).await?;
    let max_ms = shared.last_store_time_ms(topic, queue_id, end).await?;
    let position = position.unwrap_or(0).clamp(view.log_start_offset, end);
    let consumed_ms = shared.last_store_time_ms(topic, queue_id, position).await?.or(min_ms);
    // None is left behind the end.
    let next_ms = shared.store_time_ms(topic, queue_id, position).await?;
    let now_ms = shared.backend.now_ms();
    Ok(QueueTimeSpan {
        queue,
        min_ms: min_ms.unwrap_or(-1),
        max_ms: max_ms.unwrap_or(-1),
        consumed_ms: consumed_ms.unwrap_or(-1),
        delay_ms: next_ms.map_or(0, |next_ms| now_ms.saturating_sub(next_ms).max(0)),
    })
}

#[cfg(test)]
mod tests;
