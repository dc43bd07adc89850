//! GET_TOPIC_STATS_INFO: code 202. The ends of all queues of a topic, and when each was last
//! written to.
//! `topicPutTps` is what was appended in the last minute, by either protocol; it is found by append
//! times, so nothing has to be counted.
//! Source: AdminBrokerProcessor.getTopicStatsInfo.

use super::store_time::if_readable;
use super::{Call, Outcome, Refusal};
use crate::backend::{Backend, Boundary, Topic};
use crate::bodies::{MessageQueue, TopicOffset, TopicStatsTable};
use crate::dispatch::Shared;
use crate::response_code::ResponseCode;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let name: &str = call.request.field("topic")?;
    let Some(topic) = call.shared.topic_or_template(name) else {
        return Err(Refusal::new(
            ResponseCode::TOPIC_NOT_EXIST,
            format!("topic[{name}] not exist"),
        ));
    };
    let broker_name = &call.backend().config().broker_name;
    let (mut offsets, mut lately) = (Vec::new(), 0);
    for queue_id in 0..topic.write_queues.max(topic.read_queues) {
        let view = call.backend().partition(&topic, queue_id).await.unwrap_or_default();
        let end = view.last_stable_offset;
        let stored = call.shared.last_store_time_ms(&topic, queue_id, end).await?;
        lately += appended_lately(&call.shared, &topic, queue_id, end).await?;
        let queue =
            MessageQueue { topic: name.to_owned(), broker_name: broker_name.clone(), queue_id };
        offsets.push((
            queue,
            TopicOffset {
                min_offset: view.log_start_offset,
                max_offset: view.last_stable_offset,
                last_update_timestamp: stored.unwrap_or(0),
            },
        ));
    }
    let topic_put_tps = lately as f64 * 1000.0 / LATELY_MS as f64;
    let body = TopicStatsTable { topic_put_tps, offsets };
    Ok(call.reply.ok().with_body(body.encode()))
}

/// What a rate is the average of: a minute, as in the original.
const LATELY_MS: i64 = 60_000;

/// How many records before `end` were appended lately.
async fn appended_lately<B: Backend>(
    shared: &Shared<B>,
    topic: &Topic,
    queue_id: i32,
    end: i64,
) -> Result<i64, Refusal> {
    if end == 0 {
        return Ok(0);
    }
    let since_ms = shared.backend.now_ms().saturating_sub(LATELY_MS);
    let first = shared.backend.search_append_time(topic, queue_id, since_ms, Boundary::Lower);
    let first = if_readable(first.await)?.flatten();
    Ok(first.map_or(0, |first| end.saturating_sub(first).max(0)))
}

#[cfg(test)]
mod tests;
