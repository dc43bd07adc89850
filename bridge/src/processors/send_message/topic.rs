//! The topic and queue that a send goes to; a topic that is not there is made.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::backend::{Backend, PERM_INHERIT, PERM_READ, PERM_WRITE, Topic, TopicSpec};
use crate::dispatch::Shared;
use crate::processors::Refusal;
use crate::processors::rules::{self, DLQ_PREFIX, RETRY_PREFIX, SEE_FAQ, TEMPLATE_TOPIC};
use crate::processors::topics::{self, plain_topic};
use crate::remoting::SendHeader;
use crate::response_code::ResponseCode;

/// Of a retry topic: subscribed to from another unit. Source: TopicSysFlag.
const UNIT_SUBSCRIPTION: i32 = 2;
/// Of any other topic: belongs to a unit.
const UNIT: i32 = 1;

/// Makes the topic `name`; with it, the queue to send to. Makes nothing for a queue that the new
/// topic would not have.
pub(super) async fn new_for_send<B: Backend>(
    shared: &Shared<B>,
    header: &SendHeader<'_>,
    name: &str,
    producer: SocketAddr,
) -> Result<(Arc<Topic>, i32), Refusal> {
    let spec = new_topic(shared, header, name)?;
    check_queue(header.queue_id, name, &topics::of_spec(&spec), producer)?;
    let topic = shared.backend.create_topic(spec).await?;
    known_for_send(shared, header, name, topic, producer)
}

/// A topic with the queue in it to send to.
pub(super) fn known_for_send<B: Backend>(
    shared: &Shared<B>,
    header: &SendHeader<'_>,
    name: &str,
    topic: Arc<Topic>,
    producer: SocketAddr,
) -> Result<(Arc<Topic>, i32), Refusal> {
    if topics::is_own(&topic) {
        return Err(Refusal::new(
            ResponseCode::NO_PERMISSION,
            format!("Sending message to topic[{name}] is forbidden."),
        ));
    }
    check_queue(header.queue_id, name, &topic, producer)?;
    // A queue of the client's choice may be one that only readers see: write queues shrink so that
    // the others run dry.
    let queue_id =
        if header.queue_id >= 0 { header.queue_id } else { shared.next_queue(topic.write_queues) };
    Ok((topic, queue_id))
}

/// What a topic shall be that nobody made. Source: createTopicInSendMessageMethod.
fn new_topic<B: Backend>(
    shared: &Shared<B>,
    header: &SendHeader<'_>,
    name: &str,
) -> Result<TopicSpec, Refusal> {
    if let Some(spec) = shared.built_in(name) {
        return Ok(spec);
    }
    let stored = topics::stored_name(name)?;
    if name.starts_with(RETRY_PREFIX) || name.starts_with(DLQ_PREFIX) {
        let sys_flag = if header.unit_mode { UNIT_SUBSCRIPTION } else { 0 };
        return Ok(plain_topic(stored, 1, PERM_READ | PERM_WRITE, sys_flag));
    }
    let is_off =
        header.default_topic == TEMPLATE_TOPIC && !shared.backend.config().auto_create_topic;
    let template = shared.topic_or_template(header.default_topic);
    let may_inherit = |template: &Arc<Topic>| !is_off && template.perm & PERM_INHERIT != 0;
    let Some(template) = template.filter(may_inherit) else {
        return Err(Refusal::new(
            ResponseCode::TOPIC_NOT_EXIST,
            format!("topic[{name}] not exist, apply first please!{SEE_FAQ}"),
        ));
    };
    let sys_flag = if header.unit_mode { UNIT } else { 0 };
    // The template itself comes into being by a send to it.
    let (queues, perm) = if name == TEMPLATE_TOPIC {
        (template.write_queues, template.perm)
    } else {
        (
            header.default_topic_queue_nums.min(template.write_queues).max(0),
            template.perm & !PERM_INHERIT,
        )
    };
    Ok(plain_topic(stored, queues, perm, sys_flag))
}

fn check_queue(
    queue_id: i32,
    name: &str,
    topic: &Topic,
    producer: SocketAddr,
) -> Result<(), Refusal> {
    let queues = topic.write_queues.max(topic.read_queues);
    let is_chosen_here = queue_id < 0 && topic.write_queues > 0;
    if is_chosen_here || (0..queues).contains(&queue_id) {
        return Ok(());
    }
    let text = rules::topic_text(name, topic);
    Err(Refusal::new(
        ResponseCode::INVALID_PARAMETER,
        format!("request queueId[{queue_id}] is illegal, {text} Producer: {producer}"),
    ))
}
