//! INVOKE_BROKER_TO_RESET_OFFSET: code 222. Sets a group's positions on a topic to those of a time, to
//! the end (a time below 0), or on one queue to an offset. Members hear of it by their next pull or pop
//! (`useServerSideResetOffset`, on as in the original), or where that is off by
//! RESET_CONSUMER_CLIENT_OFFSET (220), which drops what they have in hand; then there must be some.
//! Positions are never set beyond a queue's end.
//! Source: AdminBrokerProcessor.resetOffset, resetOffsetInner, Broker2Client.resetOffset.

use std::collections::HashSet;
use std::sync::Arc;

use duolog_log_core::ids::TopicId;

use super::search_offset::Queue;
use super::{Call, Outcome, Refusal};
use crate::backend::{Backend, Boundary, Topic};
use crate::bodies::{MessageQueue, ResetOffsetBody};
use crate::limits::OFFSET_RESETS_MAX;
use crate::remoting::{LanguageCode, RemotingCommand, SerializeType};
use crate::response_code::ResponseCode;

const RESET_CONSUMER_CLIENT_OFFSET: i32 = 220;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let request = &call.request;
    let asked = Asked {
        topic: request.field("topic")?,
        group: request.field("group")?,
        timestamp: request.field("timestamp")?,
        is_forced: request.field("isForce")?,
        queue_id: request.optional_field("queueId")?.unwrap_or(-1),
        offset: request.optional_field::<i64>("offset")?.filter(|offset| *offset != -1),
    };
    if call.backend().config().server_side_reset {
        by_pull(&call, &asked).await
    } else {
        by_push(&call, &asked).await
    }
}

struct Asked<'a> {
    topic: &'a str,
    group: &'a str,
    timestamp: i64,
    is_forced: bool,
    queue_id: i32,
    offset: Option<i64>,
}

async fn by_pull<B: Backend>(call: &Call<B>, asked: &Asked<'_>) -> Outcome {
    let Asked { topic: name, group, .. } = *asked;
    let Some(topic) = call.shared.topic(name) else {
        let remark = format!("Topic {name} does not exist");
        return Err(Refusal::new(ResponseCode::TOPIC_NOT_EXIST, remark));
    };
    if call.backend().subscription_group(group).is_none() {
        let remark = format!("Group {group} does not exist");
        return Err(Refusal::new(ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST, remark));
    }
    let mut offsets = Vec::new();
    if asked.queue_id >= 0 {
        offsets.push((asked.queue_id, of_queue(call, &topic, asked).await?));
    } else {
        for queue_id in 0..topic.read_queues {
            offsets.push((queue_id, of_time(call, &topic, queue_id, asked.timestamp).await?));
        }
    }
    if offsets.is_empty() {
        return Err(Refusal::new(ResponseCode::SYSTEM_ERROR, "No queues to reset."));
    }
    for (queue_id, offset) in &offsets {
        call.backend().commit_offset(group, &topic, *queue_id, *offset).await?;
        let assign = || call.shared.resets.assign(group, topic.id, *queue_id, *offset);
        if !assign() {
            forget_dead(call);
            if !assign() {
                let remark = format!("{OFFSET_RESETS_MAX} resets wait for their groups' members");
                return Err(Refusal::new(ResponseCode::SYSTEM_ERROR, remark));
            }
        }
        call.shared.pops.ready(group, topic.id, *queue_id);
    }
    call.shared.holds.group_changed(group);
    Ok(call.reply.ok().with_body(body(call, name, &offsets).encode()))
}

/// Forgets resets of what was deleted, whichever door that came by.
fn forget_dead<B: Backend>(call: &Call<B>) {
    let backend = call.backend();
    let topics: HashSet<TopicId> = backend.topics().iter().map(|topic| topic.id).collect();
    call.shared.resets.retain(|group, topic| {
        topics.contains(&topic) && backend.subscription_group(group).is_some()
    });
}

/// The offset that one queue is to be set to.
async fn of_queue<B: Backend>(
    call: &Call<B>,
    topic: &Arc<Topic>,
    asked: &Asked<'_>,
) -> Result<i64, Refusal> {
    let Some(view) = call.backend().partition(topic, asked.queue_id).await else {
        let remark =
            format!("queueId[{}] of topic[{}] does not exist", asked.queue_id, asked.topic);
        return Err(Refusal::new(ResponseCode::INVALID_PARAMETER, remark));
    };
    let Some(offset) = asked.offset else {
        return of_time(call, topic, asked.queue_id, asked.timestamp).await;
    };
    let (min, max) = (view.log_start_offset, view.last_stable_offset);
    if (min..=max).contains(&offset) {
        return Ok(offset);
    }
    let remark = format!("Target offset {offset} not in consume queue range [{min}-{max}]");
    Err(Refusal::new(ResponseCode::SYSTEM_ERROR, remark))
}

async fn of_time<B: Backend>(
    call: &Call<B>,
    topic: &Arc<Topic>,
    queue_id: i32,
    time_ms: i64,
) -> Result<i64, Refusal> {
    let view = call.backend().partition(topic, queue_id).await.unwrap_or_default();
    if time_ms < 0 {
        return Ok(view.last_stable_offset);
    }
    let queue = Queue { backend: call.backend(), topic: Arc::clone(topic), queue_id, view };
    queue.search(time_ms, Boundary::Lower).await
}

async fn by_push<B: Backend>(call: &Call<B>, asked: &Asked<'_>) -> Outcome {
    let Asked { topic: name, group, timestamp, .. } = *asked;
    let Some(topic) = call.shared.topic(name) else {
        let remark =
            format!("[reset-offset] reset offset failed, no topic in this broker. topic={name}");
        return Err(Refusal::new(ResponseCode::TOPIC_NOT_EXIST, remark));
    };
    let mut offsets = Vec::new();
    for queue_id in 0..topic.write_queues {
        let position = call.backend().committed_offset(group, &topic, queue_id).await?;
        let Some(position) = position else {
            let remark = format!("THe consumer group <{group}> not exist");
            return Err(Refusal::new(ResponseCode::SYSTEM_ERROR, remark));
        };
        let offset = of_time(call, &topic, queue_id, timestamp).await?;
        let offset = if asked.is_forced { offset } else { offset.min(position) };
        offsets.push((queue_id, offset));
    }
    let Some(view) = call.backend().group(group) else {
        let remark = format!(
            "Consumer not online, so can not reset offset, Group: {group} Topic: {name} \
             Timestamp: {timestamp}"
        );
        return Err(Refusal::new(ResponseCode::CONSUMER_NOT_ONLINE, remark));
    };
    let body = body(call, name, &offsets);
    let pushed = if call.request.language == LanguageCode::CPP {
        body.encode_for_c()
    } else {
        body.encode()
    };
    for member in &view.members {
        let request =
            RemotingCommand::request(RESET_CONSUMER_CLIENT_OFFSET, 0, SerializeType::Json)
                .with_field("topic", name)
                .with_field("group", group)
                .with_field("timestamp", timestamp)
                .with_field("isForce", asked.is_forced)
                .with_body(pushed.clone());
        if !call.shared.sessions.tell(member.client.session, request) {
            tracing::warn!(group, client = ?member.client.client_id, "a reset did not reach a member");
        }
    }
    Ok(call.reply.ok().with_body(body.encode()))
}

fn body<B: Backend>(call: &Call<B>, topic: &str, offsets: &[(i32, i64)]) -> ResetOffsetBody {
    let broker_name = call.backend().config().broker_name.clone();
    let queue = |queue_id| MessageQueue {
        topic: topic.to_owned(),
        broker_name: broker_name.clone(),
        queue_id,
    };
    ResetOffsetBody {
        offsets: offsets.iter().map(|(queue_id, offset)| (queue(*queue_id), *offset)).collect(),
    }
}

#[cfg(test)]
mod tests;
