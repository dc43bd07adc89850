//! GET_TOPIC_STATS_INFO: code 202. The ends of all queues of a topic, and when each was last
//! written to.
//! Leaves out: `topicPutTps`, 0 until topics are counted.
//! Source: AdminBrokerProcessor.getTopicStatsInfo.

use super::{Call, Outcome, Refusal};
use crate::backend::Backend;
use crate::bodies::{MessageQueue, TopicOffset, TopicStatsTable};
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
    let mut offsets = Vec::new();
    for queue_id in 0..topic.write_queues.max(topic.read_queues) {
        let view = call.backend().partition(&topic, queue_id).unwrap_or_default();
        let last = view.deliverable_end.saturating_sub(1);
        let stored = call.shared.store_time_ms(&topic, queue_id, last).await?;
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
    let body = TopicStatsTable { topic_put_tps: 0.0, offsets };
    Ok(call.reply.ok().with_body(body.encode()))
}

#[cfg(test)]
mod tests;
