//! GET_CONSUMER_LIST_BY_GROUP: code 38. The members of a group, over which each of them divides the
//! queues; so it is sorted and the same from every node.
//! Source: ConsumerManageProcessor.getConsumerListByGroup.

use super::{Call, Outcome, Refusal};
use crate::backend::Backend;
use crate::bodies::GetConsumerListByGroupResponseBody;
use crate::response_code::ResponseCode;

pub(crate) fn handle<B: Backend>(call: &Call<B>) -> Outcome {
    let group: &str = call.request.field("consumerGroup")?;
    let Some(view) = call.backend().group(group).filter(|view| !view.members.is_empty()) else {
        return Err(Refusal::new(
            ResponseCode::SYSTEM_ERROR,
            format!("no consumer for this group, {group}"),
        ));
    };
    let ids = view.members.iter().map(|member| member.client.client_id.to_string());
    let body = GetConsumerListByGroupResponseBody { consumer_id_list: ids.collect() };
    Ok(call.reply.ok().with_body(body.encode()))
}
