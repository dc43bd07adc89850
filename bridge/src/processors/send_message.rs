//! SEND_MESSAGE (10), SEND_MESSAGE_V2 (310) and SEND_BATCH_MESSAGE (320; also 310 with `m=true`).
//! Stores one message, or all of a batch or none, and answers with ids and offset. A topic that is
//! not there is made after the template that the request names.
//! A message with a delay level or a time goes to the timers (`translate::delay`); its answer has the
//! offset there, and a recall handle unless the delay was a level.
//! A message with TRAN_MSG=true is stored as a half message: offset and id are those that
//! END_TRANSACTION names it by. Gate `half.stored` then, before the answer.
//! What is not built is refused and nothing stored: delays in a batch or of a half message.
//! A request that waits for a reply is given the cluster's name, by which the client that answers
//! finds the reply topic; the original gives it to every message.
//! Unlike the original it looks at the topic's own permission, since Kafka's produce does too; it
//! makes no topic for a send that it refuses; and an empty body or a malformed batch is refused in
//! words.
//! Leaves out: static topics, inner batches.
//! Source: SendMessageProcessor, AbstractSendMessageProcessor, TopicConfigManager.

mod half;
mod topic;
mod unique_key;

use std::borrow::Cow;
use std::fmt::Write as _;

use duolog_log_core::event::EventKind;
use duolog_log_core::gate::GatePoint;

use super::instruments::Spot;
use super::rules::{self, DLQ_PREFIX, RETRY_PREFIX, SEE_FAQ};
use super::{Call, Outcome, Refusal};
use crate::backend::{
    Appended, Backend, BackendError, Durability, NewRecords, NodeConfig, PERM_WRITE, Stored,
    TimedRecord, Topic,
};
use crate::remoting::{SendForm, SendHeader};
use crate::response_code::ResponseCode;
use crate::translate::delay::{DELAY, Delay, DelayError};
use crate::translate::properties::{CLUSTER, Properties, REPLY_TO_CLIENT, UNIQ_KEY, WAIT};
use crate::translate::queue::{MessageId, PseudoAddress};
use crate::translate::recall::RecallHandle;
use crate::translate::send::{self, Delaying, SendContext, SendError};
use half::Half;
pub(crate) use unique_key::UniqueKeys;

const SEND_MESSAGE: i32 = 10;
const SEND_BATCH_MESSAGE: i32 = 320;

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let form = if call.request.code == SEND_MESSAGE { SendForm::Words } else { SendForm::Letters };
    let mut header = SendHeader::decode(&call.request, form)?;
    header.batch |= call.request.code == SEND_BATCH_MESSAGE;
    let config = call.backend().config();
    store(&call, &header, &config).await.map_err(|refusal| {
        refusal
            .with_field("MSG_REGION", &*config.region_id)
            .with_field("TRACE_ON", trace_text(&config))
    })
}

pub(super) fn trace_text(config: &NodeConfig) -> &'static str {
    if config.trace_on { "true" } else { "false" }
}

/// Stores what a send asks for; replies are stored like any message.
pub(super) async fn store<B: Backend>(
    call: &Call<B>,
    header: &SendHeader<'_>,
    config: &NodeConfig,
) -> Outcome {
    check_broker_permission(config)?;
    rules::validate_topic(header.topic)?;
    if rules::is_send_forbidden(header.topic) {
        let topic = header.topic;
        return Err(no_permission(format!("Sending message to topic[{topic}] is forbidden.")));
    }
    let (shared, session) = (&call.shared, &call.session);
    shared.pass(GatePoint::ProduceReceived, session, None).await?;
    let redirected = redirected(call, header).await?;
    let header = &redirected.header;
    let name = &redirected.topic;
    let known = shared.topic(name);
    let mut sent = Sent::new(call, header, config, known.as_deref())?;
    let (topic, queue_id) = match known {
        Some(topic) => topic::known_for_send(shared, header, name, topic, session.peer())?,
        None => topic::new_for_send(shared, header, name, session.peer()).await?,
    };
    if sent.delay.is_some() && queue_id != header.queue_id {
        // Which queue it is for stands in the message.
        let header = SendHeader { queue_id, ..*header };
        sent = Sent::new(call, &header, config, Some(&topic))?;
    }
    if topic.perm & PERM_WRITE == 0 {
        return Err(no_permission(format!("the topic[{name}] sending message is forbidden")));
    }
    let spot = Spot { topic: &topic, queue_id, offset: None };
    shared.tell(EventKind::ProduceReceived, session, Some(spot), None);
    let handle = sent.recall_handle(header.topic, config);
    let appended = match (sent.timed(), sent.half, sent.records) {
        (Some(timed), ..) => {
            call.backend().append_timed(&topic, queue_id, timed, sent.durability).await
        }
        (None, Some(half), NewRecords::One(record)) => {
            let half = half.of(call, header, &topic, queue_id, record);
            let appended = call.backend().store_half(half, sent.durability).await;
            if let Ok(appended) = &appended {
                let spot = Spot { offset: Some(appended.base_offset), ..spot };
                shared.pass(GatePoint::HalfStored, session, Some(spot)).await?;
            }
            appended
        }
        (None, _, records) => {
            call.backend().append(&topic, queue_id, records, sent.durability).await
        }
    };
    let appended = appended.map_err(|error| append_refusal(error, config))?;
    let spot = Spot { offset: Some(appended.base_offset), ..spot };
    if header.is_dead_letter {
        shared.tell(EventKind::DeadLetterStore, session, Some(spot), None);
    }
    shared.pass(GatePoint::ProduceAckBefore, session, Some(spot)).await?;
    shared.tell(EventKind::ProduceAcknowledged, session, Some(spot), None);
    let answer = answer(call, config, &appended, queue_id, sent.count, sent.unique_key)?;
    Ok(match handle {
        Some(handle) => answer.with_field("recallHandle", handle),
        None => answer,
    })
}

/// May anything be sent to this broker (`brokerPermission`)?
pub(super) fn check_broker_permission(config: &NodeConfig) -> Result<(), Refusal> {
    if config.broker_permission & PERM_WRITE == 0 {
        let ip = config.broker_address.ip();
        return Err(no_permission(format!("the broker[{ip}] sending message is forbidden")));
    }
    Ok(())
}

fn answer<B: Backend>(
    call: &Call<B>,
    config: &NodeConfig,
    appended: &Appended,
    queue_id: i32,
    count: usize,
    unique_key: Option<Cow<'_, str>>,
) -> Outcome {
    let ids = ids(config, appended, count)?;
    // Names and short values take 90 bytes; the ids of a batch may be long.
    let room = 128 + ids.len();
    let answer = call
        .reply
        .with_room(stored_code(appended.stored), 6, room)
        .with_field("msgId", ids)
        .with_field("queueId", queue_id)
        .with_field("queueOffset", appended.base_offset)
        .with_field("MSG_REGION", &*config.region_id)
        .with_field("TRACE_ON", trace_text(config));
    Ok(match unique_key {
        Some(key) => answer.with_field("transactionId", key),
        None => answer,
    })
}

/// A send as it is carried out.
struct Redirected<'a> {
    header: SendHeader<'a>,
    /// RocketMQ's name of the topic to store into.
    topic: Cow<'a, str>,
}

/// The topic to store into: a message that came back too often goes to the dead letters, and so does
/// one that comes back from an ordered consumer, which has tried it often enough in its place.
async fn redirected<'a, B: Backend>(
    call: &Call<B>,
    header: &SendHeader<'a>,
) -> Result<Redirected<'a>, Refusal> {
    let as_asked = Redirected { header: *header, topic: header.topic.into() };
    let Some(group) = header.topic.strip_prefix(RETRY_PREFIX) else { return Ok(as_asked) };
    if header.batch {
        let topic = header.topic;
        return Err(illegal(format!("batch request does not support retry group {topic}")));
    }
    let Some(group_config) = call.shared.group_config(group).await? else {
        return Err(Refusal::new(
            ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST,
            format!("subscription group not exist, {group} {SEE_FAQ}"),
        ));
    };
    let times_max = header.max_reconsume_times.unwrap_or(group_config.retry_times_max);
    let is_dead = header.reconsume_times > times_max || call.backend().has_locked_queues(group);
    if !is_dead {
        return Ok(as_asked);
    }
    // Dead letters have one queue.
    let header = SendHeader { queue_id: 0, is_dead_letter: true, ..*header };
    Ok(Redirected { header, topic: format!("{DLQ_PREFIX}{group}").into() })
}

/// What a request has to store.
struct Sent<'a> {
    records: NewRecords,
    count: usize,
    durability: Durability,
    /// Of the message or, if there is one, of the batch.
    unique_key: Option<Cow<'a, str>>,
    /// Of a single message that is to be delivered later.
    delay: Option<Delay>,
    /// It is a half message.
    half: Option<Half<'a>>,
}

impl<'a> Sent<'a> {
    fn new<B: Backend>(
        call: &'a Call<B>,
        header: &SendHeader<'a>,
        config: &NodeConfig,
        topic: Option<&Topic>,
    ) -> Result<Self, Refusal> {
        let body = &call.request.body;
        if body.is_empty() {
            return Err(illegal("the message body is empty".into()));
        }
        let now_ms = call.backend().now_ms();
        let half = if header.batch { None } else { Half::new(header) };
        let delay = delay_of(header, config, now_ms)?.filter(|_| half.is_none());
        let context = SendContext {
            key_source: topic.map(|topic| topic.key_source).unwrap_or_default(),
            tombstones: topic.map(|topic| topic.tombstones).unwrap_or_default(),
            timestamps: topic.map(|topic| topic.timestamps).unwrap_or_default(),
            body_bytes_max: config.message_bytes_max,
            born_host: call.session.peer(),
            store_timestamp_ms: now_ms,
            delaying: match delay {
                Some(delay) => {
                    Delaying::Later { delay, topic: header.topic, queue_id: header.queue_id }
                }
                None if header.batch || half.is_some() => Delaying::Refused,
                None => Delaying::Now,
            },
        };
        let mut durability = Durability::Configured;
        let mut unique_key = None;
        let (mut wants_reply, mut names_cluster) = (false, false);
        for (name, value) in Properties(header.properties).iter() {
            match name {
                WAIT if value.eq_ignore_ascii_case("false") => durability = Durability::Written,
                UNIQ_KEY => unique_key = Some(Cow::Borrowed(value)),
                REPLY_TO_CLIENT => wants_reply = true,
                CLUSTER => names_cluster = true,
                _ => {}
            }
        }
        if header.batch {
            let records = send::batch(header, body, &context).map_err(send_refusal)?;
            let count = records.len();
            let records = NewRecords::Many(records);
            return Ok(Self { records, count, durability, unique_key, delay: None, half });
        }
        let mut properties = Cow::Borrowed(header.properties);
        if unique_key.is_none() {
            let keys = &call.shared.unique_keys;
            let key = keys.next(config.broker_address, call.shared.started_ms, now_ms);
            properties = with_property(&properties, UNIQ_KEY, &key).into();
            unique_key = Some(Cow::Owned(key));
        }
        if wants_reply && !names_cluster {
            properties = with_property(&properties, CLUSTER, &config.cluster_name).into();
        }
        if header.is_dead_letter {
            let is_kept = |(name, _): &(&str, &str)| *name != DELAY;
            let kept: String = Properties(&properties)
                .iter()
                .filter(is_kept)
                .map(|(name, value)| format!("{name}\u{1}{value}\u{2}"))
                .collect();
            properties = Cow::Owned(with_property(&kept, DELAY, "-1"));
        }
        let translate = if half.is_some() { send::half } else { send::single };
        let header = SendHeader { properties: &properties, ..*header };
        let record = translate(&header, body, &context).map_err(send_refusal)?;
        let records = NewRecords::One(record);
        Ok(Self { records, count: 1, durability, unique_key, delay, half })
    }

    /// The record and its time, if it has one.
    fn timed(&self) -> Option<TimedRecord> {
        let (Some(delay), NewRecords::One(record)) = (self.delay, &self.records) else {
            return None;
        };
        let id = self.unique_key.as_deref().unwrap_or_default().into();
        Some(TimedRecord { due_ms: delay.due_ms, id, record: record.clone() })
    }

    /// What the producer may recall the message with. Source: attachRecallHandle.
    fn recall_handle(&self, topic: &str, config: &NodeConfig) -> Option<String> {
        let time_ms = self.delay.and_then(Delay::recall_ms)?;
        if topic.starts_with(RETRY_PREFIX) {
            return None;
        }
        let broker_name = &config.broker_name;
        let id = self.unique_key.as_deref()?;
        Some(RecallHandle { topic, broker_name, time_ms, id }.encode())
    }
}

/// When a send is to be delivered; `None`: now. Batches and dead letters wait for nothing.
fn delay_of(
    header: &SendHeader<'_>,
    config: &NodeConfig,
    now_ms: i64,
) -> Result<Option<Delay>, Refusal> {
    if header.batch || header.is_dead_letter {
        return Ok(None);
    }
    Delay::of(Properties(header.properties), now_ms, &config.delays).map_err(|error| {
        let code = match &error {
            DelayError::Illegal(_) => ResponseCode::MESSAGE_ILLEGAL,
            DelayError::Disabled | DelayError::Level(_) => ResponseCode::SYSTEM_ERROR,
        };
        Refusal::new(code, error.to_string())
    })
}

/// A property string with one more.
pub(super) fn with_property(properties: &str, name: &str, value: &str) -> String {
    let between = if properties.is_empty() || properties.ends_with('\u{2}') { "" } else { "\u{2}" };
    format!("{properties}{between}{name}\u{1}{value}\u{2}")
}

/// The ids of `count` messages from the first one appended on, joined by commas.
fn ids(config: &NodeConfig, appended: &Appended, count: usize) -> Result<String, Refusal> {
    let Appended { base_offset, partition_number: number, .. } = *appended;
    let mut ids = String::with_capacity(count.saturating_mul(33));
    for offset in (base_offset..).take(count) {
        let address = PseudoAddress::new(number, offset)
            .map_err(|error| Refusal::new(ResponseCode::SYSTEM_ERROR, error.to_string()))?;
        if !ids.is_empty() {
            ids.push(',');
        }
        let id = MessageId { store_host: config.broker_address, address };
        // Writing to a String does not fail.
        let _infallible = write!(ids, "{id}");
    }
    Ok(ids)
}

fn stored_code(stored: Stored) -> ResponseCode {
    match stored {
        Stored::Ok => ResponseCode::SUCCESS,
        Stored::FlushDiskTimeout => ResponseCode::FLUSH_DISK_TIMEOUT,
        Stored::FlushReplicaTimeout => ResponseCode::FLUSH_SLAVE_TIMEOUT,
        Stored::ReplicaNotAvailable => ResponseCode::SLAVE_NOT_AVAILABLE,
    }
}

fn append_refusal(error: BackendError, config: &NodeConfig) -> Refusal {
    match error {
        BackendError::RecordTooLarge { .. } => {
            illegal(SendError::Size { body_bytes_max: config.message_bytes_max }.to_string())
        }
        BackendError::NotEnoughReplicas => {
            Refusal::new(ResponseCode::from(&error), "in-sync replicas not enough")
        }
        error => error.into(),
    }
}

fn send_refusal(error: SendError) -> Refusal {
    illegal(error.to_string())
}

fn illegal(remark: String) -> Refusal {
    Refusal::new(ResponseCode::MESSAGE_ILLEGAL, remark)
}

fn no_permission(remark: String) -> Refusal {
    Refusal::new(ResponseCode::NO_PERMISSION, remark)
}

#[cfg(test)]
mod tests;
