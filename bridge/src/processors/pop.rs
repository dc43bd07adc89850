//! What POP_MESSAGE, PEEK_MESSAGE, NOTIFICATION and POLLING_INFO have in common: who may ask, and how a
//! request waits for something to take. Source: PopMessageProcessor, PopLongPollingService.

pub(super) mod gather;
pub(super) mod handle;
pub(super) mod wait;

use std::net::SocketAddr;
use std::sync::Arc;

use self::handle::Handle;
use super::Refusal;
use super::rules::SEE_FAQ;
use crate::backend::{
    Backend, PERM_READ, PartitionView, PopOrder, PopQueue, SubscriptionGroup, Topic,
};
use crate::dispatch::Shared;
use crate::limits::{ATTEMPT_BYTES_MAX, POP_MESSAGES_MAX};
use crate::processors::filter::Filter;
use crate::remoting::RemotingCommand;
use crate::response_code::ResponseCode;

/// Of all queues.
const ALL_QUEUES: i32 = -1;

/// Whose queues, by the client's own words.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) group: Arc<str>,
    /// The topic as the client calls it.
    pub(crate) name: Box<str>,
    pub(crate) queue_id: i32,
}

impl Asked {
    pub(crate) fn decode(request: &RemotingCommand) -> Result<Self, Refusal> {
        let group: &str = request.field("consumerGroup")?;
        let name: &str = request.field("topic")?;
        let queue_id = request.field("queueId")?;
        Ok(Self { group: group.into(), name: name.into(), queue_id })
    }
}

/// What may be read.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) topic: Arc<Topic>,
    pub(crate) group: Arc<SubscriptionGroup>,
}

impl Target {
    /// The queues meant, beginning with another one each time.
    pub(crate) fn queues<B: Backend>(&self, asked: &Asked, shared: &Shared<B>) -> Vec<i32> {
        if asked.queue_id > ALL_QUEUES {
            return vec![asked.queue_id];
        }
        let count = self.topic.read_queues;
        let first = shared.next_queue(count);
        (first..count).chain(0..first).collect()
    }
}

/// May this be asked? `what` is in the words of the original what is forbidden otherwise.
pub(crate) async fn admit<B: Backend>(
    shared: &Shared<B>,
    peer: SocketAddr,
    asked: &Asked,
    what: &str,
) -> Result<Target, Refusal> {
    let config = shared.backend.config();
    if config.broker_permission & PERM_READ == 0 {
        let ip = config.broker_address.ip();
        let remark = format!("the broker[{ip}] {what} message is forbidden");
        return Err(Refusal::new(ResponseCode::NO_PERMISSION, remark));
    }
    let topic = find_topic(shared, &asked.name)?;
    if asked.queue_id >= topic.read_queues {
        return Err(Refusal::new(
            ResponseCode::INVALID_PARAMETER,
            illegal_queue(asked.queue_id, &asked.name, &topic, peer),
        ));
    }
    let Some(group) = shared.group_config(&asked.group).await? else {
        return Err(Refusal::new(
            ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST,
            format!("subscription group [{}] does not exist, {SEE_FAQ}", asked.group),
        ));
    };
    if !group.consume_enable {
        let remark = format!("subscription group no permission, {}", asked.group);
        return Err(Refusal::new(ResponseCode::NO_PERMISSION, remark));
    }
    Ok(Target { topic, group })
}

pub(crate) fn find_topic<B: Backend>(
    shared: &Shared<B>,
    name: &str,
) -> Result<Arc<Topic>, Refusal> {
    let topic = known_topic(shared, name)?;
    if topic.perm & PERM_READ == 0 {
        let remark = format!("the topic[{name}] peeking message is forbidden");
        return Err(Refusal::new(ResponseCode::NO_PERMISSION, remark));
    }
    Ok(topic)
}

fn known_topic<B: Backend>(shared: &Shared<B>, name: &str) -> Result<Arc<Topic>, Refusal> {
    shared.topic(name).ok_or_else(|| {
        Refusal::new(
            ResponseCode::TOPIC_NOT_EXIST,
            format!("topic[{name}] not exist, apply first please! {SEE_FAQ}"),
        )
    })
}

/// A message that was popped, by the client's own words.
#[derive(Debug)]
pub(crate) struct Popped<'a> {
    pub(crate) group: &'a str,
    /// The topic as the client calls it.
    pub(crate) name: &'a str,
    pub(crate) topic: Arc<Topic>,
    pub(crate) queue_id: i32,
    pub(crate) offset: i64,
    pub(crate) handle: Handle,
    /// Its queue.
    pub(crate) view: PartitionView,
}

impl<'a> Popped<'a> {
    pub(crate) async fn decode<B: Backend>(
        request: &'a RemotingCommand,
        shared: &Shared<B>,
        peer: SocketAddr,
    ) -> Result<Self, Refusal> {
        let group: &str = request.field("consumerGroup")?;
        let name: &str = request.field("topic")?;
        let queue_id: i32 = request.field("queueId")?;
        let offset: i64 = request.field("offset")?;
        let handle = Handle::parse(request.field("extraInfo")?)?;
        let topic = known_topic(shared, name)?;
        if !(0..topic.read_queues).contains(&queue_id) {
            let remark = illegal_queue(queue_id, name, &topic, peer);
            return Err(Refusal::new(ResponseCode::MESSAGE_ILLEGAL, remark));
        }
        let view = shared.backend.partition(&topic, queue_id).await.unwrap_or_default();
        Ok(Self { group, name, topic, queue_id, offset, handle, view })
    }

    pub(crate) fn queue(&self) -> PopQueue<'_> {
        PopQueue { group: self.group, topic: &self.topic, partition: self.queue_id }
    }
}

fn illegal_queue(queue_id: i32, name: &str, topic: &Topic, peer: SocketAddr) -> String {
    format!(
        "queueId[{queue_id}] is illegal, topic:[{name}] topicConfig.readQueueNums:[{}] \
         consumer:[/{peer}]",
        topic.read_queues
    )
}

/// Which messages, by the expression in the request; all without one.
pub(crate) fn filter<B: Backend>(
    request: &RemotingCommand,
    shared: &Shared<B>,
) -> Result<Filter, Refusal> {
    let expression: &str = request.optional_field("exp")?.unwrap_or_default();
    if expression.is_empty() {
        return Ok(Filter::All);
    }
    let expression_type = request.optional_field("expType")?;
    Filter::parse(expression, expression_type.unwrap_or(super::filter::TAG), shared)
}

/// In order, if the request says so.
pub(crate) fn order(request: &RemotingCommand) -> Result<Option<PopOrder>, Refusal> {
    let is_ordered = request.optional_field("order")?.unwrap_or(false);
    let attempt: Option<&str> = request.optional_field("attemptId")?;
    // Nothing is kept of what is longer than any client's.
    let attempt = attempt.filter(|id| !id.is_empty() && id.len() <= ATTEMPT_BYTES_MAX);
    Ok(is_ordered.then(|| PopOrder { attempt: attempt.map(Arc::from) }))
}

/// How many messages are wanted.
pub(crate) fn count<B: Backend>(
    request: &RemotingCommand,
    shared: &Shared<B>,
) -> Result<usize, Refusal> {
    let wanted: i32 = request.field("maxMsgNums")?;
    let wanted = usize::try_from(wanted).unwrap_or(0);
    if wanted > POP_MESSAGES_MAX {
        let ip = shared.backend.config().broker_address.ip();
        let remark =
            format!("the broker[{ip}] pop message's num is greater than {POP_MESSAGES_MAX}");
        return Err(Refusal::new(ResponseCode::INVALID_PARAMETER, remark));
    }
    // The original hands out one message when none is asked for.
    Ok(wanted.max(1))
}
