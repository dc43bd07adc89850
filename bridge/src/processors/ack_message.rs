//! ACK_MESSAGE and BATCH_ACK_MESSAGE: codes 200051 and 200151. Popped messages are done with. What is
//! not in hand by the delivery that the handle names (acknowledged already, given to another one since)
//! is passed over, as in the original; its time alone being up is no reason.
//! A batch names offsets by a set of bits above its first; queues and offsets that are not there are
//! passed over, and what fails keeps nothing else from being acknowledged. Source: AckMessageProcessor.

use super::pop::Popped;
use super::{Call, Outcome, Refusal};
use crate::backend::{Backend, PopOffsets, PopQueue};
use crate::bodies::BatchAckMessageRequestBody;
use crate::response_code::ResponseCode;

pub(crate) async fn one<B: Backend>(call: Call<B>) -> Outcome {
    let Call { shared, session, reply, request } = call;
    let popped = Popped::decode(&request, &shared, session.peer()).await?;
    let Popped { name, queue_id, offset, view, .. } = &popped;
    let (min, max) = (view.log_start_offset, view.last_stable_offset);
    if !(min..=max).contains(offset) {
        let remark =
            format!("offset is illegal, key:{name}@{queue_id}, commit:{offset}, store:{min}~{max}");
        return Err(Refusal::new(ResponseCode::NO_MESSAGE, remark));
    }
    let offsets = PopOffsets::one(*offset);
    shared.backend.pop_settle(popped.queue(), offsets, popped.handle.popped_ms).await?;
    Ok(reply.ok())
}

pub(crate) async fn many<B: Backend>(call: Call<B>) -> Outcome {
    let Call { shared, reply, request, .. } = call;
    if request.body.is_empty() {
        return Ok(reply.code(ResponseCode::NO_MESSAGE));
    }
    let body = BatchAckMessageRequestBody::decode(&request.body)
        .map_err(|error| Refusal::new(ResponseCode::SYSTEM_ERROR, error.to_string()))?;
    if body.acks.is_empty() {
        return Ok(reply.code(ResponseCode::NO_MESSAGE));
    }
    let mut settled = Ok(());
    for ack in body.acks {
        let Some(topic) = shared.topic(&ack.topic) else { continue };
        if shared.backend.partition(&topic, ack.queue_id).await.is_some() {
            let group = ack.consumer_group.as_str();
            let queue = PopQueue { group, topic: &topic, partition: ack.queue_id };
            let count = shared.backend.pop_settle(queue, ack.offsets, ack.pop_time).await;
            settled = settled.and(count.map(drop));
        }
    }
    settled?;
    Ok(reply.ok())
}

#[cfg(test)]
mod tests;
