//! POLLING_INFO: code 200055. How many pops of a group wait that named this queue (−1: all).
//! Source: PollingInfoProcessor.

use super::pop::{self, Asked};
use super::{Call, Outcome};
use crate::backend::Backend;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let Call { shared, session, reply, request } = call;
    let asked = Asked::decode(&request)?;
    let target = pop::admit(&shared, session.peer(), &asked, "peeking").await?;
    let waiting = shared.pops.count(&asked.group, target.topic.id, asked.queue_id);
    Ok(reply.ok().with_field("pollingNum", waiting))
}
