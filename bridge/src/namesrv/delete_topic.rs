//! DELETE_TOPIC_IN_NAMESRV: code 216. Takes a topic's route away, the second half of mqadmin's
//! deleteTopic. A route here is never without its topic, which the first half
//! (DELETE_TOPIC_IN_BROKER) has deleted; so there is nothing left to do, and a topic that was not
//! deleted keeps its route, as in the original after the broker's next registration.
//! Source: DefaultRequestProcessor.deleteTopicInNamesrv.

use crate::backend::Backend;
use crate::processors::{Call, Outcome};

pub(crate) fn handle<B: Backend>(call: &Call<B>) -> Outcome {
    Ok(call.reply.ok())
}
