//! VIEW_MESSAGE_BY_ID: code 33. One message by the physical offset that its offsetMsgId carries. It
//! resolves without a topic, since old clients send none (pitfall 8). What readers do not see is not
//! found: deleted, a marker, aborted, above the last stable offset.
//! Source: QueryMessageProcessor.viewMessageById.

use std::sync::Arc;

use duolog_log_core::record::Record;

use super::{Call, Refusal};
use crate::backend::{Backend, BackendError, ReadRequest, SharedBatch, Topic};
use crate::dispatch::Answer;
use crate::processors::topics;
use crate::remoting::SegmentedOut;
use crate::response_code::ResponseCode;
use crate::translate::message::{self, Door, Place, Scratch};
use crate::translate::names;
use crate::translate::properties::REGION_ID;
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

/// A record where it was stored.
pub(super) struct Found {
    pub(super) topic: Arc<Topic>,
    /// RocketMQ's name of it.
    pub(super) name: String,
    pub(super) queue_id: i32,
    /// The queue's cluster-wide number.
    pub(super) number: u32,
    pub(super) offset: i64,
    batch: Arc<SharedBatch>,
}

impl Found {
    /// The record; `None` if readers see none at the offset.
    pub(super) fn record(&self) -> Option<Record<'_>> {
        self.batch.decoded().record_at(self.offset)
    }

    /// Who may have written it.
    pub(super) fn door(&self) -> Door {
        self.batch.door(&self.topic.name)
    }
}

/// The batch that holds what has this physical offset, if readers may see it.
pub(super) async fn find<B: Backend>(backend: &B, physical: i64) -> Result<Option<Found>, Refusal> {
    let Some(address) = PseudoAddress::from_physical(physical) else { return Ok(None) };
    let (number, offset) = (address.partition_number(), address.offset());
    let Some((topic, queue_id)) = backend.partition_by_number(number) else { return Ok(None) };
    let Some(name) = shown_name(&topic) else { return Ok(None) };
    let (bytes_max, records_max) = (1, 1);
    let request = ReadRequest {
        topic: &topic,
        partition: queue_id,
        offset,
        bytes_max,
        records_max,
        tags: None,
    };
    let mut read = match backend.read(request).await {
        Ok(read) => read,
        Err(BackendError::OffsetOutOfRange { .. } | BackendError::UnknownTopic { .. }) => {
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    if read.batches.is_empty() {
        return Ok(None);
    }
    let batch = read.batches.swap_remove(0);
    Ok(Some(Found { topic, name, queue_id, number, offset, batch }))
}

pub(super) async fn message_at<B: Backend>(
    call: &Call<B>,
    physical: i64,
) -> Result<Option<SegmentedOut>, Refusal> {
    let Some(found) = find(call.backend(), physical).await? else { return Ok(None) };
    let Some(record) = found.record() else { return Ok(None) };
    let place = Place {
        topic: &found.name,
        queue_id: found.queue_id,
        partition_number: found.number,
        store_host: call.backend().config().broker_address,
        door: found.door(),
        append_time_ms: found.batch.append_time_ms(),
        times_before: 0,
        region_id: REGION_ID,
    };
    let region = Some(found.batch.decoded().region());
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
