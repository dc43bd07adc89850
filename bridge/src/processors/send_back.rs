//! CONSUMER_SEND_MSG_BACK: code 36. A consumer could not do with a message: it comes again by the retry
//! topic of the group after the delay of level 3 and one more for each time before, or of the level
//! that the request names; after the last time it goes to the dead letters.
//! The message is found by its physical offset alone, for the request's topic is not the one that a
//! message from a retry topic lies in (pitfall 8).
//! Source: AbstractSendMessageProcessor.consumerSendMsgBack.

use std::sync::Arc;

use duolog_log_core::event::EventKind;
use duolog_log_core::gate::GatePoint;

use super::instruments::Spot;
use super::rules::{DLQ_PREFIX, RETRY_PREFIX, SEE_FAQ};
use super::send_message::check_broker_permission;
use super::topics::{plain_topic, stored_name};
use super::view_message::{self, Found};
use super::{Call, Outcome, Refusal};
use crate::backend::{
    Backend, Durability, NewRecords, PERM_READ, PERM_WRITE, SubscriptionGroup, TimedRecord, Topic,
};
use crate::response_code::ResponseCode;
use crate::translate::again::{Again, Grave};
use crate::translate::delay::{DELAY, Delay};
use crate::translate::properties::UNIQ_KEY;

/// `DLQ_NUMS_PER_GROUP`.
const DLQ_QUEUES: i32 = 1;

/// The level of the first retry.
const FIRST_LEVEL: i32 = 3;

struct Request<'a> {
    group: &'a str,
    physical: i64,
    delay_level: i32,
    times_max: Option<i32>,
    is_of_unit: bool,
}

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let request = Request {
        group: call.request.field("group")?,
        physical: call.request.field("offset")?,
        delay_level: call.request.field("delayLevel")?,
        times_max: call.request.optional_field("maxReconsumeTimes")?,
        is_of_unit: call.request.optional_field("unitMode")?.unwrap_or_default(),
    };
    call.shared.pass(GatePoint::SendBackReceived, &call.session, None).await?;
    let Some(group) = call.shared.group_config(request.group).await? else {
        return Err(Refusal::new(
            ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST,
            format!("subscription group not exist, {} {SEE_FAQ}", request.group),
        ));
    };
    check_broker_permission(&call.backend().config())?;
    // A group without retry queues wants nothing back.
    if group.retry_queues > 0 {
        send_back(&call, &request, &group).await?;
    }
    Ok(call.reply.ok())
}

async fn send_back<B: Backend>(
    call: &Call<B>,
    request: &Request<'_>,
    group: &SubscriptionGroup,
) -> Result<(), Refusal> {
    let retry_name = format!("{RETRY_PREFIX}{}", group.name);
    let sys_flag = if request.is_of_unit { UNIT_SUBSCRIPTION } else { 0 };
    let retry = topic_for(call, &retry_name, group.retry_queues, sys_flag).await?;
    if retry.perm & PERM_WRITE == 0 {
        return Err(Refusal::new(
            ResponseCode::NO_PERMISSION,
            format!("the topic[{retry_name}] sending message is forbidden"),
        ));
    }
    let Some(found) = view_message::find(call.backend(), request.physical).await? else {
        return Err(Refusal::new(
            ResponseCode::SYSTEM_ERROR,
            format!("look message by offset failed, {}", request.physical),
        ));
    };
    let again = Again::of(&found.record().ok_or_else(|| gone(request))?, found.door());
    let times_max = request.times_max.unwrap_or(group.retry_times_max);
    let is_dead = again.reconsume_times() >= times_max || request.delay_level < 0;
    let told = Told { call, group: &group.name, found: &found };
    if is_dead {
        let name = format!("{DLQ_PREFIX}{}", group.name);
        let topic = topic_for(call, &name, DLQ_QUEUES, 0).await?;
        told.sent_back(format_args!("dead after {} retries", again.reconsume_times()));
        return bury(call, &found, &again, &topic).await;
    }
    let queue_id = call.shared.next_queue(group.retry_queues.min(retry.partitions));
    let level = match request.delay_level {
        0 => FIRST_LEVEL.saturating_add(again.reconsume_times()),
        level => level,
    };
    let now_ms = call.backend().now_ms();
    let delay = Delay::by_level(level, now_ms, &call.backend().config().delays);
    told.sent_back(format_args!(
        "level {level}, retry {}",
        again.reconsume_times().saturating_add(1)
    ));
    let mut properties = again.history(&grave(call, &found)).ok_or_else(no_address)?;
    properties.push((DELAY, level.to_string()));
    properties.extend(delay.added(&retry_name, queue_id));
    let record = again.record(&properties, now_ms);
    let id = again.property(UNIQ_KEY).unwrap_or_default().into();
    let timed = TimedRecord { due_ms: delay.due_ms, id, record };
    call.backend().append_timed(&retry, queue_id, timed, Durability::Written).await?;
    Ok(())
}

/// Stores a message among the dead letters.
async fn bury<B: Backend>(
    call: &Call<B>,
    found: &Found,
    again: &Again,
    topic: &Arc<Topic>,
) -> Result<(), Refusal> {
    let dead = again.dead(&grave(call, found), call.backend().now_ms());
    let records = NewRecords::One(dead.ok_or_else(no_address)?);
    let appended = call.backend().append(topic, 0, records, Durability::Written).await?;
    let spot = Spot { topic, queue_id: 0, offset: Some(appended.base_offset) };
    call.shared.tell(EventKind::DeadLetterStore, &call.session, Some(spot), None);
    Ok(())
}

fn grave<'a, B: Backend>(call: &Call<B>, found: &'a Found) -> Grave<'a> {
    Grave {
        topic: &found.name,
        partition_number: found.number,
        offset: found.offset,
        store_host: call.backend().config().broker_address,
    }
}

fn no_address() -> Refusal {
    Refusal::new(ResponseCode::SYSTEM_ERROR, "the message has no address")
}

/// Of a retry topic: subscribed to from another unit. Source: TopicSysFlag.
const UNIT_SUBSCRIPTION: i32 = 2;

/// The topic of this name, made if it is not there.
async fn topic_for<B: Backend>(
    call: &Call<B>,
    name: &str,
    queues: i32,
    sys_flag: i32,
) -> Result<Arc<Topic>, Refusal> {
    if let Some(topic) = call.shared.topic(name) {
        return Ok(topic);
    }
    let spec = plain_topic(stored_name(name)?, queues, PERM_READ | PERM_WRITE, sys_flag);
    Ok(call.backend().create_topic(spec).await?)
}

fn gone(request: &Request<'_>) -> Refusal {
    Refusal::new(
        ResponseCode::SYSTEM_ERROR,
        format!("look message by offset failed, {}", request.physical),
    )
}

struct Told<'a, B> {
    call: &'a Call<B>,
    group: &'a str,
    found: &'a Found,
}

impl<B: Backend> Told<'_, B> {
    fn sent_back(&self, what: std::fmt::Arguments<'_>) {
        if !self.call.backend().events().is_listening() {
            return;
        }
        let Found { topic, queue_id, offset, .. } = self.found;
        let spot = Spot { topic, queue_id: *queue_id, offset: Some(*offset) };
        let cause = format!("group {}: {what}", self.group);
        self.call.shared.tell(EventKind::SendBack, &self.call.session, Some(spot), Some(&cause));
    }
}

#[cfg(test)]
mod tests;
