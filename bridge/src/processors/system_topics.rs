//! GET_SYSTEM_TOPIC_LIST_FROM_BROKER: code 305. Names that are the system's own.
//! Leaves out: the topics of the original's timers, pop and broker container.
//! Source: AdminBrokerProcessor.getSystemTopicListFromBroker, TopicValidator.

use super::{Call, Outcome, rules};
use crate::backend::Backend;
use crate::bodies::TopicList;

pub(crate) fn handle<B: Backend>(call: &Call<B>) -> Outcome {
    let config = call.backend().config();
    let replies = format!("{}{}", config.cluster_name, rules::REPLY_TOPIC_SUFFIX);
    let own = [config.broker_name.clone(), config.cluster_name.clone(), replies];
    let names = rules::system_topics().map(str::to_owned).chain(own);
    Ok(call.reply.ok().with_body(TopicList { topics: names.collect() }.encode()))
}
