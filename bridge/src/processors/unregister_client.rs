//! UNREGISTER_CLIENT: code 35. A client leaves its groups, as it stops: each of them, whatever
//! becomes of the other.
//! Source: ClientManageProcessor.unregisterClient.

use super::{Call, Outcome};
use crate::backend::Backend;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let client_id: Option<&str> = call.request.optional_field("clientID")?;
    let Some(client_id) = client_id else { return Ok(call.reply.ok()) };
    let mut left = Ok(());
    if let Some(group) = call.request.optional_field("producerGroup")? {
        call.session.produces_no_more(group, client_id);
        left = call.backend().producer_leave(group, client_id).await;
    }
    if let Some(group) = call.request.optional_field("consumerGroup")? {
        left = left.and(call.backend().consumer_leave(group, client_id).await);
    }
    left?;
    Ok(call.reply.ok())
}
