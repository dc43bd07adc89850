//! UPDATE_CONSUMER_OFFSET: code 15. Commits a group's position on one queue; mostly sent one way.
//! Unlike the original, which keeps any number for any queue, it refuses a negative position and a
//! queue that is not there: both doors write into one store of positions.
//! While a reset waits for the group's next pull or pop, other positions are passed over.
//! Source: ConsumerManageProcessor.updateConsumerOffset.

use super::{Call, Outcome, Refusal};
use crate::backend::Backend;
use crate::response_code::ResponseCode;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let group: &str = call.request.field("consumerGroup")?;
    let name: &str = call.request.field("topic")?;
    let backend = call.backend();
    if backend.subscription_group(group).is_none() {
        return Err(Refusal::new(
            ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST,
            format!("Group {group} not exist!"),
        ));
    }
    let Some(topic) = call.shared.topic(name) else {
        return Err(Refusal::new(
            ResponseCode::TOPIC_NOT_EXIST,
            format!("Topic {name} not exist!"),
        ));
    };
    let Some(queue_id) = call.request.optional_field::<i32>("queueId")? else {
        return Err(invalid(format!("QueueId is null, topic is {name}")));
    };
    let Some(offset) = call.request.optional_field::<i64>("commitOffset")? else {
        return Err(invalid(format!("Offset is null, topic is {name}")));
    };
    if offset < 0 {
        return Err(invalid(format!("Offset {offset} is negative, topic is {name}")));
    }
    if !(0..topic.partitions).contains(&queue_id) {
        let partitions = topic.partitions;
        return Err(invalid(format!(
            "queueId[{queue_id}] is illegal, topic:[{name}] has {partitions} queues"
        )));
    }
    if call.shared.resets.waiting(group, topic.id, queue_id).is_some() {
        return Ok(call.reply.ok().with_remark("Offset has been previously reset"));
    }
    if call.reply.is_one_way() {
        backend.commit_offset_unanswered(group, &topic, queue_id, offset);
    } else {
        backend.commit_offset(group, &topic, queue_id, offset).await?;
    }
    Ok(call.reply.ok())
}

fn invalid(remark: String) -> Refusal {
    Refusal::new(ResponseCode::INVALID_PARAMETER, remark)
}
