//! GET_TOPIC_CONFIG: code 351. A topic's queue counts, permission and attributes.
//! Leaves out: mapping details (`lo`), since there are no static topics.
//! Source: AdminBrokerProcessor.getTopicConfig.

use super::{Call, Outcome, Refusal};
use crate::backend::{Backend, Topic};
use crate::bodies::TopicConfig;
use crate::response_code::ResponseCode;

pub(crate) fn handle<B: Backend>(call: &Call<B>) -> Outcome {
    let name: &str = call.request.field("topic")?;
    let Some(topic) = call.shared.topic_or_template(name) else {
        return Err(Refusal::new(
            ResponseCode::TOPIC_NOT_EXIST,
            format!("No topic in this broker. topic: {name}"),
        ));
    };
    Ok(call.reply.ok().with_body(body_of(name, &topic).encode()))
}

/// A topic's configuration as clients read it.
pub(super) fn body_of(name: &str, topic: &Topic) -> TopicConfig {
    TopicConfig {
        topic_name: name.to_owned(),
        read_queue_nums: topic.read_queues,
        write_queue_nums: topic.write_queues,
        perm: topic.perm,
        topic_sys_flag: topic.sys_flag,
        order: topic.order,
        attributes: topic.attributes.clone(),
    }
}
