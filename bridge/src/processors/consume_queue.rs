//! QUERY_CONSUME_QUEUE: code 321. Entries of a queue's index. There is no such file here: each entry is
//! made of the message that it would stand for, with its pseudo address, its size as a message and
//! the hash of its tag. Offsets without a message (markers, aborted data) have none.
//! Leaves out: what a filter makes of each entry.
//! Source: AdminBrokerProcessor.queryConsumeQueue.

use super::consumer_connections::subscription_data;
use super::{Call, Outcome, Refusal};
use crate::backend::{Backend, BackendError, PartitionView, ReadRequest, Topic};
use crate::bodies::{ConsumeQueueData, QueryConsumeQueueResponseBody};
use crate::limits::CONSUME_QUEUE_ENTRIES_MAX;
use crate::remoting::SegmentedOut;
use crate::response_code::ResponseCode;
use crate::translate::message::{self, Door, Place, Scratch};
use crate::translate::names;
use crate::translate::properties::REGION_ID;
use crate::translate::queue::PseudoAddress;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let name: &str = call.request.field("topic")?;
    let queue_id: i32 = call.request.field("queueId")?;
    let index: i64 = call.request.field("index")?;
    let count: i64 = call.request.field("count")?;
    let group: Option<&str> = call.request.optional_field("consumerGroup")?;
    let absent = || {
        let remark = format!("{queue_id}@{name} is not exist!");
        Refusal::new(ResponseCode::SYSTEM_ERROR, remark)
    };
    let topic = call.shared.topic(name).ok_or_else(absent)?;
    let view = call.backend().partition(&topic, queue_id).await.ok_or_else(absent)?;
    let mut body = QueryConsumeQueueResponseBody {
        subscription: None,
        filter_data: None,
        entries: Vec::new(),
        max_index: view.last_stable_offset,
        min_index: view.log_start_offset,
    };
    if let Some(group) = group {
        let known = call.backend().group(group);
        let known = known.as_ref().and_then(|view| view.subscriptions.get(name));
        body.subscription = known.map(|subscription| subscription_data(subscription));
        if known.is_none() {
            body.filter_data = Some(format!("{group}@{name} is not online!"));
        }
    }
    if !(view.log_start_offset..view.last_stable_offset).contains(&index) {
        let remark = format!("Index {index} of {queue_id}@{name} is not exist!");
        return Ok(call.reply.ok().with_remark(remark));
    }
    let count = usize::try_from(count).unwrap_or(0).min(CONSUME_QUEUE_ENTRIES_MAX);
    body.entries =
        entries(&call, name, Queue { topic: &topic, queue_id, view }, index, count).await?;
    Ok(call.reply.ok().with_body(body.encode()))
}

#[derive(Clone, Copy)]
struct Queue<'a> {
    topic: &'a Topic,
    queue_id: i32,
    view: PartitionView,
}

async fn entries<B: Backend>(
    call: &Call<B>,
    name: &str,
    queue: Queue<'_>,
    index: i64,
    count: usize,
) -> Result<Vec<ConsumeQueueData>, Refusal> {
    let end = index.saturating_add(i64::try_from(count).unwrap_or(0));
    let is_bridge_topic = names::is_bridge_topic(&queue.topic.name);
    let (mut entries, mut position) = (Vec::with_capacity(count), index);
    while position < end.min(queue.view.last_stable_offset) {
        let read = call.backend().read(ReadRequest {
            topic: queue.topic,
            partition: queue.queue_id,
            offset: position,
            bytes_max: 256 * 1024,
            records_max: count,
            tags: None,
        });
        let read = match read.await {
            Ok(read) => read,
            // Retention passed by.
            Err(BackendError::OffsetOutOfRange { .. }) => break,
            Err(error) => return Err(error.into()),
        };
        for batch in &read.batches {
            let place = Place {
                topic: name,
                queue_id: queue.queue_id,
                partition_number: queue.view.number,
                store_host: call.backend().config().broker_address,
                door: if is_bridge_topic { Door::Bridge } else { Door::Both },
                append_time_ms: batch.append_time_ms(),
                times_before: 0,
                region_id: REGION_ID,
            };
            for record in batch.decoded().iter_from(position).filter(|one| one.offset < end) {
                let mut out = SegmentedOut::default();
                let encoded =
                    message::encode(&record, &place, None, &mut Scratch::default(), &mut out);
                let address = PseudoAddress::new(queue.view.number, record.offset);
                // What no pull can show has no entry either.
                let (Ok(()), Ok(address)) = (encoded.map(|_| ()), address) else { continue };
                entries.push(ConsumeQueueData {
                    physical_offset: address.physical(),
                    bytes: i32::try_from(out.len()).unwrap_or(i32::MAX),
                    tags_code: message::tag_code(&record).map_or(0, i64::from),
                });
            }
        }
        if read.next_offset <= position {
            break;
        }
        position = read.next_offset;
    }
    Ok(entries)
}

#[cfg(test)]
mod tests;
