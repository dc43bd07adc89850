//! POP_MESSAGE: code 200050. Messages that nobody of the group has in hand, for the caller alone until
//! the invisible time is up: from one queue or from all (−1); nothing there: held for the time the
//! client asks, until something comes or comes again. A queue that cannot be looked at is passed over.
//!
//! A message that is not acknowledged comes again where it stands, with a higher reconsume count; no
//! retry topic is written. After the group's `retryMaxTimes` it is copied to the dead letters. In order
//! (`order`), nothing more of a queue is given out while something of it is in hand.
//! Answer codes: 0, 209 too many wait, 210 nothing in time; 1 13 16 17 23 26 29 refused.
//! Leaves out: lite topics. Source: PopMessageProcessor.

use super::pop::gather::{Begin, Gathering, Haul, Wanted};
use super::pop::handle::{ORDER_REVIVE_QUEUE, REVIVE_QUEUE};
use super::pop::wait::{self, Ended, TooLate, poll_time};
use super::pop::{self, Asked};
use super::{Call, Refusal};
use crate::backend::Backend;
use crate::dispatch::Answer;
use crate::limits::INVISIBLE_MS_MAX;
use crate::response_code::ResponseCode;

/// `ConsumeInitMode.MIN`.
const INIT_MIN: i32 = 0;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Result<Answer, Refusal> {
    let Call { shared, session, reply, request } = call;
    let asked = Asked::decode(&request)?;
    let time = match poll_time(&request, &shared) {
        Ok(time) => time,
        Err(TooLate::Unread(refusal)) => return Err(refusal),
        Err(TooLate::Passed) => {
            let ip = shared.backend.config().broker_address.ip();
            let remark = format!("the broker[{ip}] pop message is timeout too much");
            return Err(Refusal::new(ResponseCode::POLLING_TIMEOUT, remark));
        }
    };
    let count = pop::count(&request, &shared)?;
    let init_mode: i32 = request.field("initMode")?;
    let invisible_ms: i64 = request.field("invisibleTime")?;
    let order = pop::order(&request)?;
    let is_ordered = order.is_some();
    let target = pop::admit(&shared, session.peer(), &asked, "pop").await?;
    let wanted = Wanted {
        filter: pop::filter(&request, &shared)?,
        count,
        begin: if init_mode == INIT_MIN { Begin::Min } else { Begin::Max },
        invisible_ms: invisible_ms.clamp(0, INVISIBLE_MS_MAX),
        order,
    };
    // A held pop may last for minutes: its frame need not.
    drop(request);
    let mut gathering = Gathering {
        shared: &shared,
        session: &session,
        asked: &asked,
        target: &target,
        wanted: &wanted,
        haul: Haul::default(),
    };
    let ended = wait::look(&shared, &asked, &target, time, &mut gathering).await?;
    let haul = gathering.haul;
    let revive_queue = if is_ordered { ORDER_REVIVE_QUEUE } else { REVIVE_QUEUE };
    let mut head = reply
        .with_room(ended.code(), 7, 256)
        .with_remark(ended.remark())
        .with_field("popTime", haul.popped_ms)
        .with_field("invisibleTime", invisible_ms)
        .with_field("reviveQid", revive_queue)
        .with_field("restNum", haul.rest)
        .with_field("startOffsetInfo", haul.start_offsets)
        .with_field("msgOffsetInfo", haul.message_offsets);
    if is_ordered && !haul.order_counts.is_empty() {
        head = head.with_field("orderCountInfo", haul.order_counts);
    }
    Ok(match ended {
        Ended::Found => Answer::with_messages(head, haul.messages),
        Ended::TimeUp | Ended::Full => Answer::from(head),
    })
}

#[cfg(test)]
mod tests;
