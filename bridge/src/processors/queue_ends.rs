//! GET_MAX_OFFSET and GET_MIN_OFFSET: codes 30 and 31. The ends of one queue. The largest is the
//! last stable offset, one past the last message; `committed` changes nothing, since readers see
//! nothing else. A topic or queue that is not there has both ends at 0, as in the original.
//! Source: AdminBrokerProcessor.getMaxOffset, getMinOffset.

use super::{Call, Outcome, Refusal};
use crate::backend::{Backend, PartitionView};

pub(crate) async fn max<B: Backend>(call: Call<B>) -> Outcome {
    let end = view(&call).await?.map_or(0, |view| view.last_stable_offset);
    Ok(call.reply.ok().with_field("offset", end))
}

pub(crate) async fn min<B: Backend>(call: Call<B>) -> Outcome {
    let start = view(&call).await?.map_or(0, |view| view.log_start_offset);
    Ok(call.reply.ok().with_field("offset", start))
}

async fn view<B: Backend>(call: &Call<B>) -> Result<Option<PartitionView>, Refusal> {
    let topic: &str = call.request.field("topic")?;
    let queue_id: i32 = call.request.field("queueId")?;
    let Some(topic) = call.shared.topic(topic) else { return Ok(None) };
    Ok(call.backend().partition(&topic, queue_id).await)
}
