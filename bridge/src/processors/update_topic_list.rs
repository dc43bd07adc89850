//! UPDATE_AND_CREATE_TOPIC_LIST: code 18. Creates or changes many topics. All are looked at before
//! the first is made, so a list with an illegal topic makes none; the original makes those before
//! it when what is illegal are attributes. A list of none is fine.
//! Leaves out: filter types other than SINGLE_TAG (not looked at, as nothing depends on them).
//! Source: AdminBrokerProcessor.updateAndCreateTopicList.

use super::update_topic::{self, Changes};
use super::{Call, Outcome, Refusal};
use crate::backend::Backend;
use crate::bodies::TopicConfig;
use crate::limits::TOPIC_LIST_MAX;
use crate::response_code::ResponseCode;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let topics = TopicConfig::decode_list(&call.request.body)
        .map_err(|error| Refusal::new(ResponseCode::SYSTEM_ERROR, error.to_string()))?;
    if topics.len() > TOPIC_LIST_MAX {
        let remark = format!("{} topics, at most {TOPIC_LIST_MAX} are made at once", topics.len());
        return Err(Refusal::new(ResponseCode::INVALID_PARAMETER, remark));
    }
    let specs = topics.iter().map(|topic| {
        let attributes: Vec<String> =
            topic.attributes.iter().map(|(key, value)| attribute(key, value)).collect();
        update_topic::spec(
            &call.shared,
            &Changes {
                topic: &topic.topic_name,
                read_queues: topic.read_queue_nums,
                write_queues: topic.write_queue_nums,
                perm: topic.perm,
                sys_flag: topic.topic_sys_flag,
                order: topic.order,
                attributes: &attributes.join(","),
            },
        )
    });
    for spec in specs.collect::<Result<Vec<_>, _>>()? {
        call.backend().put_topic(spec).await?;
    }
    Ok(call.reply.ok())
}

/// An attribute as UPDATE_AND_CREATE_TOPIC (17) has it; one to be deleted has no value.
fn attribute(key: &str, value: &str) -> String {
    if key.starts_with('-') { key.to_owned() } else { format!("{key}={value}") }
}
