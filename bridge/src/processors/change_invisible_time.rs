//! CHANGE_MESSAGE_INVISIBLETIME: code 200053. A popped message is in hand for longer, or comes again
//! sooner. The answer makes a new handle, after which the old one is worth nothing; of what was popped
//! in order the handle stays. A message that is not in hand any more is none of the caller's, and the
//! answer is the same, as in the original.
//! Source: ChangeInvisibleTimeProcessor.

use super::pop::handle::Handle;
use super::pop::{illegal_queue, known_topic};
use super::{Call, Outcome, Refusal};
use crate::backend::{Backend, PopAgain, PopQueue};
use crate::limits::INVISIBLE_MS_MAX;
use crate::response_code::ResponseCode;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let Call { shared, session, reply, request } = call;
    let group: &str = request.field("consumerGroup")?;
    let name: &str = request.field("topic")?;
    let queue_id: i32 = request.field("queueId")?;
    let offset: i64 = request.field("offset")?;
    let asked_ms: i64 = request.field("invisibleTime")?;
    let handle = Handle::parse(request.field("extraInfo")?)?;
    let topic = known_topic(&shared, name)?;
    if !(0..topic.read_queues).contains(&queue_id) {
        let remark = illegal_queue(queue_id, name, &topic, session.peer());
        return Err(Refusal::new(ResponseCode::MESSAGE_ILLEGAL, remark));
    }
    let view = shared.backend.partition(&topic, queue_id).await.unwrap_or_default();
    if !(view.log_start_offset..view.last_stable_offset).contains(&offset) {
        return Ok(reply.code(ResponseCode::NO_MESSAGE));
    }
    let now_ms = shared.backend.now_ms();
    let until_ms = now_ms.saturating_add(asked_ms.clamp(0, INVISIBLE_MS_MAX));
    let (renamed_ms, invisible_ms) = if handle.is_ordered() {
        (handle.popped_ms, until_ms.saturating_sub(handle.popped_ms))
    } else {
        (now_ms, asked_ms)
    };
    let queue = PopQueue { group, topic: &topic, partition: queue_id };
    let again = PopAgain { until_ms, renamed_ms };
    shared.backend.pop_delay(queue, offset, handle.popped_ms, again).await?;
    let answer = reply.ok().with_field("popTime", renamed_ms);
    let answer = answer.with_field("invisibleTime", invisible_ms);
    Ok(answer.with_field("reviveQid", handle.revive_queue))
}

#[cfg(test)]
mod tests;
