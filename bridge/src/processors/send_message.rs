//! SEND_MESSAGE (10), SEND_MESSAGE_V2 (310) and SEND_BATCH_MESSAGE (320; also 310 with `m=true`).
//! Stores one message, or all of a batch or none, and answers with ids and offset. A topic that is
//! not there is made after the template that the request names.
//! What is not built is refused and nothing stored: delays, timers, transactions.
//! A request that waits for a reply is given the cluster's name, by which the client that answers
//! finds the reply topic; the original gives it to every message.
//! Unlike the original it looks at the topic's own permission, since Kafka's produce does too; it
//! makes no topic for a send that it refuses; and an empty body or a malformed batch is refused in
//! words.
//! Leaves out: recall handles, static topics, inner batches.
//! Source: SendMessageProcessor, AbstractSendMessageProcessor, TopicConfigManager.

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
    Appended, Backend, BackendError, Durability, NewRecords, NodeConfig, PERM_WRITE, Stored, Topic,
};
use crate::remoting::{SendForm, SendHeader};
use crate::response_code::ResponseCode;
use crate::translate::properties::{CLUSTER, Properties, REPLY_TO_CLIENT, UNIQ_KEY, WAIT};
use crate::translate::queue::{MessageId, PseudoAddress};
use crate::translate::send::{self, SendContext, SendError};
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
    if config.broker_permission & PERM_WRITE == 0 {
        let ip = config.broker_address.ip();
        return Err(no_permission(format!("the broker[{ip}] sending message is forbidden")));
    }
    rules::validate_topic(header.topic)?;
    if rules::is_send_forbidden(header.topic) {
        let topic = header.topic;
        return Err(no_permission(format!("Sending message to topic[{topic}] is forbidden.")));
    }
    let (shared, session) = (&call.shared, &call.session);
    shared.pass(GatePoint::ProduceReceived, session, None).await?;
    let name = redirected(call, header).await?;
    let known = shared.topic(&name);
    let sent = Sent::new(call, header, config, known.as_deref())?;
    let (topic, queue_id) = match known {
        Some(topic) => topic::known_for_send(shared, header, &name, topic, session.peer())?,
        None => topic::new_for_send(shared, header, &name, session.peer()).await?,
    };
    if topic.perm & PERM_WRITE == 0 {
        return Err(no_permission(format!("the topic[{name}] sending message is forbidden")));
    }
    let spot = Spot { topic: &topic, queue_id, offset: None };
    shared.tell(EventKind::ProduceReceived, session, Some(spot), None);
    let appended = call
        .backend()
        .append(&topic, queue_id, sent.records, sent.durability)
        .await
        .map_err(|error| append_refusal(error, config))?;
    let spot = Spot { offset: Some(appended.base_offset), ..spot };
    shared.pass(GatePoint::ProduceAckBefore, session, Some(spot)).await?;
    shared.tell(EventKind::ProduceAcknowledged, session, Some(spot), None);
    let ids = ids(config, &appended, sent.count)?;
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
    Ok(match sent.unique_key {
        Some(key) => answer.with_field("transactionId", key),
        None => answer,
    })
}

/// The topic to store into: a message that came back too often goes to the dead letters.
async fn redirected<'a, B: Backend>(
    call: &Call<B>,
    header: &SendHeader<'a>,
) -> Result<Cow<'a, str>, Refusal> {
    let Some(group) = header.topic.strip_prefix(RETRY_PREFIX) else {
        return Ok(header.topic.into());
    };
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
    if header.reconsume_times > times_max {
        return Ok(format!("{DLQ_PREFIX}{group}").into());
    }
    Ok(header.topic.into())
}

/// What a request has to store.
struct Sent<'a> {
    records: NewRecords,
    count: usize,
    durability: Durability,
    /// Of the message or, if there is one, of the batch.
    unique_key: Option<Cow<'a, str>>,
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
        let context = SendContext {
            key_source: topic.map(|topic| topic.key_source).unwrap_or_default(),
            tombstones: topic.map(|topic| topic.tombstones).unwrap_or_default(),
            timestamps: topic.map(|topic| topic.timestamps).unwrap_or_default(),
            body_bytes_max: config.message_bytes_max,
            born_host: call.session.peer(),
            store_timestamp_ms: call.backend().now_ms(),
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
            return Ok(Self { records: NewRecords::Many(records), count, durability, unique_key });
        }
        let mut properties = Cow::Borrowed(header.properties);
        if unique_key.is_none() {
            let now_ms = context.store_timestamp_ms;
            let keys = &call.shared.unique_keys;
            let key = keys.next(config.broker_address, call.shared.started_ms, now_ms);
            properties = with_property(&properties, UNIQ_KEY, &key).into();
            unique_key = Some(Cow::Owned(key));
        }
        if wants_reply && !names_cluster {
            properties = with_property(&properties, CLUSTER, &config.cluster_name).into();
        }
        let header = SendHeader { properties: &properties, ..*header };
        let record = send::single(&header, body, &context).map_err(send_refusal)?;
        let records = NewRecords::One(record);
        Ok(Self { records, count: 1, durability, unique_key })
    }
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
