//! LOCK_BATCH_MQ (41) and UNLOCK_BATCH_MQ (42): a client wants queues of its group for itself, to
//! consume them in order, or no more. The answer to a lock has the queues that it holds now, in the
//! order asked; a lock lasts 60 s unless it is asked for again.
//! Neither the group, the client nor the queues need exist, as in the original. There is one broker
//! in the sense of `onlyThisBroker`, so it makes no difference; and a queue is one queue whatever
//! broker's name comes with it.
//! Source: AdminBrokerProcessor.lockBatchMQ, unlockBatchMQ, RebalanceLockManager.

use std::sync::Arc;

use super::{Call, Outcome, Refusal};
use crate::backend::{Backend, QueueKey};
use crate::bodies::{LockBatchRequestBody, LockBatchResponseBody};
use crate::response_code::ResponseCode;

pub(crate) async fn lock<B: Backend>(call: Call<B>) -> Outcome {
    let request = decode(&call)?;
    let queues = keys(&call, &request);
    let held =
        call.backend().lock_queues(&request.consumer_group, &request.client_id, queues).await?;
    let asked = request.queues.into_iter().zip(held);
    let locked = asked.filter_map(|(queue, is_held)| is_held.then_some(queue)).collect();
    let body = LockBatchResponseBody { locked };
    Ok(call.reply.ok().with_body(body.encode()))
}

pub(crate) async fn unlock<B: Backend>(call: Call<B>) -> Outcome {
    let request = decode(&call)?;
    let queues = keys(&call, &request);
    let (group, client) = (&request.consumer_group, &request.client_id);
    call.backend().unlock_queues(group, client, queues).await?;
    Ok(call.reply.ok())
}

fn decode<B: Backend>(call: &Call<B>) -> Result<LockBatchRequestBody, Refusal> {
    let request = LockBatchRequestBody::decode(&call.request.body)
        .map_err(|error| Refusal::new(ResponseCode::SYSTEM_ERROR, error.to_string()))?;
    for (value, name) in
        [(&request.consumer_group, "consumerGroup"), (&request.client_id, "clientId")]
    {
        if value.is_empty() {
            return Err(Refusal::new(
                ResponseCode::SYSTEM_ERROR,
                format!("the body has no {name}, without which no queue can be locked"),
            ));
        }
    }
    Ok(request)
}

/// Under stored names, so that whatever a client calls a topic, its queues are the same.
fn keys<B: Backend>(call: &Call<B>, request: &LockBatchRequestBody) -> Vec<QueueKey> {
    let key = |queue: &crate::bodies::MessageQueue| QueueKey {
        topic: match call.shared.topic(&queue.topic) {
            Some(topic) => topic.name.clone(),
            None => Arc::from(queue.topic.as_str()),
        },
        queue_id: queue.queue_id,
    };
    request.queues.iter().map(key).collect()
}

#[cfg(test)]
mod tests;
