//! PEEK_MESSAGE: code 200052. Messages that nobody of the group had yet, without taking them.
//! Source: PeekMessageProcessor.

use super::pop::gather::queue_view;
use super::pop::{self, Asked, Target};
use super::{Call, Refusal};
use crate::backend::{Backend, PopQueue, ReadRequest};
use crate::dispatch::{Answer, Shared};
use crate::remoting::SegmentedOut;
use crate::response_code::ResponseCode;
use crate::translate::message::{self, Place, Scratch};
use crate::translate::properties::REGION_ID;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Result<Answer, Refusal> {
    let Call { shared, session, reply, request } = call;
    let asked = Asked::decode(&request)?;
    let count = pop::count(&request, &shared)?;
    let target = pop::admit(&shared, session.peer(), &asked, "peeking").await?;
    let mut seen = Seen { messages: SegmentedOut::default(), count: 0, rest: 0 };
    let mut looked = Ok(());
    for queue_id in target.queues(&asked, &shared) {
        looked = looked.and(peek(&shared, &asked, &target, queue_id, count, &mut seen).await);
    }
    if seen.count == 0 {
        looked?;
    }
    let (code, remark) = if seen.count > 0 {
        (ResponseCode::SUCCESS, "FOUND")
    } else {
        (ResponseCode::PULL_NOT_FOUND, "NO_MESSAGE_IN_QUEUE")
    };
    let head = reply
        .with_room(code, 4, 64)
        .with_remark(remark)
        .with_field("popTime", 0)
        .with_field("invisibleTime", 0)
        .with_field("reviveQid", 0)
        .with_field("restNum", seen.rest);
    Ok(if seen.count > 0 { Answer::with_messages(head, seen.messages) } else { Answer::from(head) })
}

struct Seen {
    messages: SegmentedOut,
    count: usize,
    rest: i64,
}

async fn peek<B: Backend>(
    shared: &Shared<B>,
    asked: &Asked,
    target: &Target,
    queue_id: i32,
    count: usize,
    seen: &mut Seen,
) -> Result<(), Refusal> {
    let view = queue_view(shared, target, queue_id).await?;
    let topic = &target.topic;
    let queue = PopQueue { group: &asked.group, topic, partition: queue_id };
    let plan = shared.backend.pop_plan(queue, 0, None).await?;
    let next = plan.map_or(view.log_start_offset, |plan| plan.next).max(view.log_start_offset);
    seen.rest += view.last_stable_offset.saturating_sub(next).max(0);
    let config = shared.backend.config();
    if seen.count >= count || next >= view.last_stable_offset {
        return Ok(());
    }
    let wanted = count - seen.count;
    let request = ReadRequest {
        topic,
        partition: queue_id,
        offset: next,
        bytes_max: config.transfer_bytes_max,
        records_max: wanted,
        tags: None,
    };
    let answer = shared.backend.read(request).await?;
    let mut scratch = Scratch::default();
    for batch in &answer.batches {
        let place = Place {
            topic: &asked.name,
            queue_id,
            partition_number: view.number,
            store_host: config.broker_address,
            door: batch.door(&topic.name),
            append_time_ms: batch.append_time_ms(),
            times_before: 0,
            region_id: REGION_ID,
        };
        for record in batch.decoded().iter_from(next) {
            let is_full = seen.messages.len() >= config.transfer_bytes_max && seen.count > 0;
            let region = Some(batch.decoded().region());
            let out = &mut seen.messages;
            if seen.count >= count
                || is_full
                || message::encode(&record, &place, region, &mut scratch, out).is_err()
            {
                return Ok(());
            }
            seen.count += 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
