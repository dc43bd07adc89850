//! CHANGE_MESSAGE_INVISIBLETIME: code 200053. A popped message is in hand for longer, or comes again
//! sooner. The answer makes a new handle, after which the old one is worth nothing; of what was popped
//! in order the handle stays. A message that is not in hand any more is none of the caller's, and the
//! answer is the same, as in the original.
//! Source: ChangeInvisibleTimeProcessor.

use super::pop::Popped;
use super::{Call, Outcome};
use crate::backend::{Backend, PopAgain};
use crate::limits::INVISIBLE_MS_MAX;
use crate::response_code::ResponseCode;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let Call { shared, session, reply, request } = call;
    let asked_ms: i64 = request.field("invisibleTime")?;
    let popped = Popped::decode(&request, &shared, session.peer()).await?;
    let Popped { offset, handle, view, .. } = &popped;
    if !(view.log_start_offset..view.last_stable_offset).contains(offset) {
        return Ok(reply.code(ResponseCode::NO_MESSAGE));
    }
    let now_ms = shared.backend.now_ms();
    let until_ms = now_ms.saturating_add(asked_ms.clamp(0, INVISIBLE_MS_MAX));
    let (renamed_ms, invisible_ms) = if handle.is_ordered() {
        (handle.popped_ms, until_ms.saturating_sub(handle.popped_ms))
    } else {
        (now_ms, asked_ms)
    };
    let again = PopAgain { until_ms, renamed_ms };
    shared.backend.pop_delay(popped.queue(), *offset, handle.popped_ms, again).await?;
    let answer = reply.ok().with_field("popTime", renamed_ms);
    let answer = answer.with_field("invisibleTime", invisible_ms);
    Ok(answer.with_field("reviveQid", handle.revive_queue))
}

#[cfg(test)]
mod tests;
