//! VIEW_MESSAGE_BY_ID: code 33. One message by the physical offset that its offsetMsgId carries. It
//! resolves without a topic, since old clients send none (pitfall 8). What readers do not see is not
//! found: deleted, a marker, aborted, above the last stable offset.
//! Source: QueryMessageProcessor.viewMessageById.

use super::{Call, Refusal};
use crate::backend::{Backend, BackendError, ReadRequest, Topic};
use crate::dispatch::Answer;
use crate::processors::topics;
use crate::remoting::SegmentedOut;
use crate::response_code::ResponseCode;
use crate::translate::message::{self, Door, Place, Scratch};
use crate::translate::names;
use crate::translate::queue::PseudoAddress;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Result<Answer, Refusal> {
    let physical: i64 = call.request.field("offset")?;
    match message_at(&call, physical).await? {
        Some(message) => Ok(Answer::with_messages(call.reply.ok(), message)),
        None => Err(Refusal::new(
            ResponseCode::SYSTEM_ERROR,
            format!("can not find message by the offset, {physical}"),
        )),
    }
}

pub(super) async fn message_at<B: Backend>(
    call: &Call<B>,
    physical: i64,
) -> Result<Option<SegmentedOut>, Refusal> {
    let Some(address) = PseudoAddress::from_physical(physical) else { return Ok(None) };
    let number = address.partition_number();
    let Some((topic, queue_id)) = call.backend().partition_by_number(number) else {
        return Ok(None);
    };
    let Some(name) = shown_name(&topic) else { return Ok(None) };
    let request = ReadRequest {
        topic: &topic,
        partition: queue_id,
        offset: address.offset(),
        bytes_max: 1,
        records_max: 1,
        tags: None,
    };
    let read = match call.backend().read(request).await {
        Ok(read) => read,
        Err(BackendError::OffsetOutOfRange { .. } | BackendError::UnknownTopic { .. }) => {
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    let Some(batch) = read.batches.first() else { return Ok(None) };
    let Some(record) = batch.decoded().record_at(address.offset()) else { return Ok(None) };
    let is_bridge_topic = names::is_bridge_topic(&topic.name);
    let place = Place {
        topic: &name,
        queue_id,
        partition_number: number,
        store_host: call.backend().config().broker_address,
        door: if is_bridge_topic { Door::Bridge } else { Door::Both },
        append_time_ms: batch.append_time_ms(),
    };
    let region = Some(batch.decoded().region());
    let mut out = SegmentedOut::default();
    message::encode(&record, &place, region, &mut Scratch::default(), &mut out)
        .map_err(|error| Refusal::new(ResponseCode::SYSTEM_ERROR, error.to_string()))?;
    Ok(Some(out))
}

/// RocketMQ's name of a topic that clients may see.
fn shown_name(topic: &Topic) -> Option<String> {
    if topics::is_own(topic) {
        return None;
    }
    names::rocketmq_name(&topic.name).map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests;
