//! Half messages: from a send to what is stored, from that to the question to the producer, and to
//! the copy of one that is given up and back.
//!
//! What is stored is the record that the message becomes when it is committed. The properties by
//! which the original tells a half message from others are not in it; they are added to what leaves
//! for the producer and to the copy.

use bytes::Bytes;
use duolog_log_core::record::{
    BatchBuilder, BatchParams, DecodedBatch, Decompressor, Header, NewRecord as LogRecord, Record,
};

use super::message::{self, Door, Scratch, ViewError};
use super::origin::ORIGIN_HEADER;
use super::properties::{Properties, UNIQ_KEY};
use super::queue::{MessageId, PseudoAddress};
use super::send::SendError;
use crate::backend::{NewRecord, NodeConfig};
use crate::limits::PROPERTIES_BYTES_MAX;
use crate::remoting::message::Message;
use crate::remoting::{RemotingCommand, SegmentedOut, SerializeType};

/// "true": the message is a half message.
pub const PREPARED: &str = "TRAN_MSG";
/// The producer group.
pub const PRODUCER_GROUP: &str = "PGROUP";
/// For so many seconds nobody is asked.
pub const IMMUNITY: &str = "CHECK_IMMUNITY_TIME_IN_SECONDS";
/// How often the producer was asked.
pub const CHECK_TIMES: &str = "TRANSACTION_CHECK_TIMES";
/// The topic that it goes to.
pub const REAL_TOPIC: &str = "REAL_TOPIC";
/// The queue that it goes to.
pub const REAL_QUEUE_ID: &str = "REAL_QID";
/// The unique key, once more.
pub const TRANSACTION_ID: &str = "__transactionId__";

/// RocketMQ's name of where half messages lie.
pub const HALF_TOPIC: &str = "RMQ_SYS_TRANS_HALF_TOPIC";
/// RocketMQ's name of where those go that are given up.
pub const GIVEN_UP_TOPIC: &str = "TRANS_CHECK_MAX_TIME_TOPIC";

/// CHECK_TRANSACTION_STATE.
const CHECK_TRANSACTION_STATE: i32 = 39;

/// Properties of a half message that the message it becomes has not.
const MARKS: [&str; 3] = [REAL_TOPIC, REAL_QUEUE_ID, CHECK_TIMES];

/// Is a message with these properties to be stored as a half message? One that a consumer of an old
/// version sends back to be retried is not.
#[must_use]
pub fn is_half(properties: &str, reconsume_times: i32) -> bool {
    let properties = Properties(properties);
    let is_prepared =
        properties.get(PREPARED).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let is_retried = || {
        let level = properties.get("DELAY").and_then(|level| level.trim().parse::<i32>().ok());
        reconsume_times > 0 && level.is_some_and(|level| level > 0)
    };
    is_prepared && !is_retried()
}

/// The properties of the message that a half message becomes.
///
/// # Errors
/// [`SendError::DelayedHalf`].
pub(super) fn committed_properties(properties: &str) -> Result<String, SendError> {
    let all = Properties(properties);
    let mut out = String::with_capacity(properties.len() + 64);
    for (name, value) in all.iter() {
        let is_delay = match name {
            "DELAY" => value.trim() != "0",
            "TIMER_DELAY_SEC" | "TIMER_DELAY_MS" | "TIMER_DELIVER_MS" => true,
            _ => false,
        };
        if is_delay {
            return Err(SendError::DelayedHalf(name.to_owned()));
        }
        if !MARKS.contains(&name) && name != TRANSACTION_ID {
            put(name, value, &mut out);
        }
    }
    if let Some(key) = all.get(UNIQ_KEY) {
        put(TRANSACTION_ID, key, &mut out);
    }
    Ok(out)
}

fn put(name: &str, value: &str, out: &mut String) {
    for piece in [name, "\u{1}", value, "\u{2}"] {
        out.push_str(piece);
    }
}

/// Where a half message lies and what it is about.
#[derive(Clone, Copy, Debug)]
pub struct HalfPlace<'a> {
    /// RocketMQ's name of the topic that it goes to.
    pub topic: &'a str,
    /// The queue there.
    pub queue_id: i32,
    /// The cluster-wide number of the partition that it lies in.
    pub partition_number: u32,
    /// Its offset there.
    pub offset: i64,
    /// How often the producer was asked, this time included.
    pub times: i32,
}

/// The question to a producer how a half message ended: CHECK_TRANSACTION_STATE (39), one way.
///
/// # Errors
/// See [`ViewError`]: the message cannot be shown.
pub fn question(
    record: &NewRecord,
    place: &HalfPlace<'_>,
    config: &NodeConfig,
) -> Result<RemotingCommand, ViewError> {
    let address = PseudoAddress::new(place.partition_number, place.offset)?;
    let batch = decoded(record);
    let record = batch.as_ref().and_then(|batch| batch.record(0)).ok_or(ViewError::Unreadable)?;
    let origin = message::origin(record.headers).ok_or(ViewError::Unreadable)?;
    let mut scratch = Scratch::default();
    let shown = message::properties(&record, Door::Bridge, &mut scratch);
    let unique_key = shown.get(UNIQ_KEY).unwrap_or_default();
    let mut properties = shown.0.to_owned();
    // Only a message of some 32 KiB of properties has no room for these.
    for (name, value) in marks(place.topic, place.queue_id, place.times) {
        if properties.len() + name.len() + value.len() + 2 <= PROPERTIES_BYTES_MAX {
            put(name, &value, &mut properties);
        }
    }
    let mut body = SegmentedOut::default();
    Message {
        topic: place.topic,
        queue_id: place.queue_id,
        flag: origin.flag,
        queue_offset: place.offset,
        physical_offset: address.physical(),
        sys_flag: 0,
        born_timestamp_ms: origin.born_timestamp_ms.unwrap_or(record.timestamp),
        born_host: origin.born_host,
        store_timestamp_ms: origin.store_timestamp_ms,
        store_host: config.broker_address,
        reconsume_times: origin.reconsume_times,
        prepared_transaction_offset: 0,
        body: record.value.unwrap_or_default(),
        properties: properties.as_bytes(),
    }
    .encode(None, &mut body)?;
    let id = MessageId { store_host: config.broker_address, address };
    let request = RemotingCommand::request(CHECK_TRANSACTION_STATE, 0, SerializeType::Json);
    Ok(request
        .one_way()
        .with_field("topic", HALF_TOPIC)
        .with_field("tranStateTableOffset", place.offset)
        .with_field("commitLogOffset", address.physical())
        .with_field("msgId", unique_key)
        .with_field("transactionId", unique_key)
        .with_field("offsetMsgId", id)
        .with_field("bname", &*config.broker_name)
        .with_body(body.into_bytes()))
}

fn marks(topic: &str, queue_id: i32, times: i32) -> [(&'static str, String); 3] {
    [
        (CHECK_TIMES, times.to_string()),
        (REAL_TOPIC, topic.to_owned()),
        (REAL_QUEUE_ID, queue_id.to_string()),
    ]
}

/// A half message that is given up, as it goes into [`GIVEN_UP_TOPIC`]; `None` if it cannot be read.
#[must_use]
pub fn given_up(half: &NewRecord, topic: &str, queue_id: i32, times: i32) -> Option<NewRecord> {
    let batch = decoded(half)?;
    let record = batch.record(0)?;
    let marks = marks(topic, queue_id, times);
    let added = marks
        .iter()
        .map(|(name, value)| Header { key: name.as_bytes(), value: Some(value.as_bytes()) });
    // The broker's own header stays the last one, where its times are found.
    let is_origin = |header: &Header<'_>| header.key == ORIGIN_HEADER.as_bytes();
    let own = record.headers.iter().filter(|header| !is_origin(header));
    let origin = record.headers.iter().filter(is_origin);
    let headers: Vec<Header<'_>> = own.chain(added).chain(origin).collect();
    Some(encoded(&record, &headers))
}

/// What [`given_up`] was made of.
#[derive(Clone, Debug)]
pub struct Resumed {
    /// RocketMQ's name of the topic that it goes to.
    pub topic: String,
    /// The queue there.
    pub queue_id: i32,
    /// The producer group.
    pub group: String,
    /// As the message had it.
    pub immunity: Option<String>,
    /// When it was born.
    pub born_ms: i64,
    /// What it becomes when it is committed.
    pub record: NewRecord,
}

/// Reads a message of [`GIVEN_UP_TOPIC`]; `None` if it was never a half message.
#[must_use]
pub fn resumed(record: &Record<'_>) -> Option<Resumed> {
    let mut scratch = Scratch::default();
    let properties = message::properties(record, Door::Bridge, &mut scratch);
    let origin = message::origin(record.headers)?;
    let is_mark = |header: &Header<'_>| MARKS.iter().any(|mark| mark.as_bytes() == header.key);
    let headers: Vec<Header<'_>> =
        record.headers.iter().filter(|header| !is_mark(header)).collect();
    Some(Resumed {
        topic: properties.get(REAL_TOPIC)?.to_owned(),
        queue_id: properties.get(REAL_QUEUE_ID)?.parse().ok()?,
        group: properties.get(PRODUCER_GROUP)?.to_owned(),
        immunity: properties.get(IMMUNITY).map(str::to_owned),
        born_ms: origin.born_timestamp_ms.unwrap_or(record.timestamp),
        record: encoded(record, &headers),
    })
}

fn encoded(record: &Record<'_>, headers: &[Header<'_>]) -> NewRecord {
    let timestamp = record.timestamp;
    let new = LogRecord { timestamp, key: record.key, value: record.value, headers };
    let mut payload = Vec::with_capacity(new.payload_bytes());
    new.encode_payload(&mut payload);
    NewRecord { timestamp_ms: timestamp, payload: Bytes::from(payload) }
}

/// The record, to be looked into.
fn decoded(record: &NewRecord) -> Option<DecodedBatch> {
    let mut builder = BatchBuilder::new(BatchParams::default());
    builder.append_encoded(record.timestamp_ms, &record.payload).ok()?;
    let batch = builder.finish_uncompressed().ok()?.freeze();
    DecodedBatch::decode(&batch, &mut Decompressor::new(), batch.len()).ok()
}

#[cfg(test)]
mod tests;
