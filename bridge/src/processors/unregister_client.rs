//! UNREGISTER_CLIENT: code 35. A client leaves its groups, as it stops.
//! Leaves out: producer groups, which nothing asks for yet.
//! Source: ClientManageProcessor.unregisterClient.

use super::{Call, Outcome};
use crate::backend::Backend;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let client_id: Option<&str> = call.request.optional_field("clientID")?;
    let group: Option<&str> = call.request.optional_field("consumerGroup")?;
    if let (Some(client_id), Some(group)) = (client_id, group) {
        call.backend().consumer_leave(group, client_id).await?;
    }
    Ok(call.reply.ok())
}
