//! RESUME_CHECK_HALF_MESSAGE: code 323. A message that was given up is a half message again, of
//! which nobody was asked yet. Its copy stays.
//! The original takes any message for one; here it must lie in `TRANS_CHECK_MAX_TIME_TOPIC`.
//! Source: AdminBrokerProcessor.resumeCheckHalfMessage.

use std::sync::Arc;

use super::topics::stored_name;
use super::{Call, Outcome, Refusal};
use crate::backend::{Backend, Durability, NewHalf, ReadRequest};
use crate::response_code::ResponseCode;
use crate::translate::half::{self, GIVEN_UP_TOPIC, Resumed};
use crate::translate::queue::MessageId;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let id: Option<&str> = call.request.optional_field("msgId")?;
    let resumed = match id.and_then(MessageId::parse) {
        Some(id) => find(&call, id).await?,
        None => None,
    };
    let resumed = resumed.ok_or_else(|| {
        refusal("Exception was thrown when putting message back to RMQ_SYS_TRANS_HALF_TOPIC.")
    })?;
    let half = NewHalf {
        topic: stored_name(&resumed.topic)?,
        queue_id: resumed.queue_id,
        group: Arc::from(resumed.group),
        client_id: Arc::from(""),
        born_ms: resumed.born_ms,
        immunity: resumed.immunity,
        record: resumed.record,
    };
    call.backend().store_half(half, Durability::Configured).await.map_err(|error| {
        tracing::debug!(%error, "a half message is not put back");
        refusal("Put message back to RMQ_SYS_TRANS_HALF_TOPIC failed.")
    })?;
    Ok(call.reply.ok())
}

async fn find<B: Backend>(call: &Call<B>, id: MessageId) -> Result<Option<Resumed>, Refusal> {
    let backend = call.backend();
    let (number, offset) = (id.address.partition_number(), id.address.offset());
    let Some((topic, partition)) = backend.partition_by_number(number) else { return Ok(None) };
    if topic.name != stored_name(GIVEN_UP_TOPIC)? {
        return Ok(None);
    }
    let request =
        ReadRequest { topic: &topic, partition, offset, bytes_max: 1, records_max: 1, tags: None };
    let Ok(read) = backend.read(request).await else { return Ok(None) };
    let record = read.batches.first().and_then(|batch| batch.decoded().record_at(offset));
    Ok(record.as_ref().and_then(half::resumed))
}

fn refusal(remark: &str) -> Refusal {
    Refusal::new(ResponseCode::SYSTEM_ERROR, remark)
}

#[cfg(test)]
mod tests;
