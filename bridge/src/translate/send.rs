//! From a send to records.
//!
//! A property becomes a header of the same name, in order; the record key is the `KEYS` property
//! (or what the topic says); the timestamp is the born timestamp where it is a likely one; the body is stored plain. What
//! has no other place goes into the header `__rmq`.

use std::io::Read;
use std::net::SocketAddr;

use bytes::Bytes;
use duolog_log_core::record::{Header, NewRecord as LogRecord};

use super::delay::{DELAY, Delay};
use super::half::PREPARED;
use super::origin::{ORIGIN_HEADER, Origin};
use super::properties::{KEYS, NameKind, Properties, SHARDING_KEY, TOMBSTONE, name_kind};
use crate::backend::NewRecord;
use crate::limits::{BATCH_MESSAGES_MAX, PROPERTIES_BYTES_MAX};
use crate::remoting::SendHeader;
use crate::remoting::message::{BatchMessage, MessageError, sys_flag};

/// Which property becomes the record's key. A switch of the topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeySource {
    /// `KEYS`, the whole string.
    #[default]
    Keys,
    /// `__SHARDINGKEY`.
    ShardingKey,
    /// None: records without a key.
    Nothing,
}

impl KeySource {
    /// By the value of the topic's switch `rmq.key.source`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "keys" => Some(Self::Keys),
            "shardingkey" => Some(Self::ShardingKey),
            "none" => Some(Self::Nothing),
            _ => None,
        }
    }
}

/// May a producer write a null value, by the property `KAFKA_TOMBSTONE=true` on a body of one
/// byte?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tombstones {
    /// The topic is not compacted.
    #[default]
    Refused,
    /// The topic is compacted.
    Allowed,
}

/// How far from the store time a born timestamp may be and still become the record's; Kafka's
/// `message.timestamp.before.max.ms` and `message.timestamp.after.max.ms`.
///
/// Retention and searches by time go by the timestamps of records. One message from a clock that is
/// a year ahead would keep everything for a year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampBounds {
    /// How much earlier, in milliseconds.
    pub before_max_ms: i64,
    /// How much later, in milliseconds.
    pub after_max_ms: i64,
}

impl Default for TimestampBounds {
    /// Kafka's defaults.
    fn default() -> Self {
        Self { before_max_ms: i64::MAX, after_max_ms: 3_600_000 }
    }
}

impl TimestampBounds {
    fn admit(self, born_ms: i64, stored_ms: i64) -> bool {
        born_ms >= 0
            && stored_ms.saturating_sub(born_ms) <= self.before_max_ms
            && born_ms.saturating_sub(stored_ms) <= self.after_max_ms
    }
}

/// What becomes of the properties that delay a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delaying<'a> {
    /// Nobody has judged them: they are refused.
    Refused,
    /// They ask for nothing, or for what is past.
    Now,
    /// The message is stored until its time.
    Later {
        /// Until when.
        delay: Delay,
        /// RocketMQ's name of its topic.
        topic: &'a str,
        /// Its queue.
        queue_id: i32,
    },
}

impl Delaying<'_> {
    /// Whether a property is stored.
    ///
    /// Errors: [`SendError::NotBuilt`] for what asks for a feature that is not there.
    fn admits(self, name: &str, value: &str) -> Result<bool, SendError> {
        if self != Self::Refused && name != TIMER_DEL_UNIQKEY {
            if let Self::Later { delay, .. } = self
                && !delay.keeps(name)
            {
                return Ok(false);
            }
            if name == DELAY || name.starts_with("TIMER_") {
                return Ok(true);
            }
        }
        refuse(name, value).map(|()| true)
    }
}

/// What a translation needs besides the request.
#[derive(Clone, Copy, Debug)]
pub struct SendContext<'a> {
    /// Of the topic.
    pub key_source: KeySource,
    /// Of the topic.
    pub tombstones: Tombstones,
    /// Of the topic.
    pub timestamps: TimestampBounds,
    /// `maxMessageSize`: of a body, compressed or not; inclusive.
    pub body_bytes_max: usize,
    /// The other end of the connection.
    pub born_host: SocketAddr,
    /// Now, milliseconds since 1970.
    pub store_timestamp_ms: i64,
    /// Of a single send.
    pub delaying: Delaying<'a>,
}

/// Why a send stores nothing. All are answered with code 13, MESSAGE_ILLEGAL, and this text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Body or properties are too long. The text is the original's.
    #[error(
        "the message is illegal, maybe msg body or properties length not matched. msg body length \
         limit {body_bytes_max}B, msg properties length limit 32KB."
    )]
    Size {
        /// `maxMessageSize`.
        body_bytes_max: usize,
    },
    /// sysFlag says compressed, the body does not agree.
    #[error("the message body is no {kind} data: {reason}")]
    Compression {
        /// How it should have been compressed.
        kind: &'static str,
        /// What the decompressor says.
        reason: String,
    },
    /// The compression type of sysFlag is unknown.
    #[error("compression type {0} is none of 1 (lz4), 2 (zstd), 3 (zlib)")]
    CompressionType(i32),
    /// The body of a batch is not one.
    #[error("message {index} of the batch: {error}")]
    Batch {
        /// 0-based.
        index: usize,
        /// What is wrong.
        error: MessageError,
    },
    /// Nor is a single send of nothing stored: readers could not tell it from a null value.
    #[error("message {0} of the batch: its body is empty")]
    EmptyBody(usize),
    /// A batch of nothing.
    #[error("the batch holds no message")]
    BatchEmpty,
    /// More messages than a batch may have.
    #[error("the batch holds more than {BATCH_MESSAGES_MAX} messages")]
    BatchTooMany,
    /// Batches are not compressed as a whole: no client does it (case B87).
    #[error("the body of a batch must not be compressed (sysFlag {0})")]
    BatchCompressed(i32),
    /// Something that this server does not do yet. Nothing is ignored.
    #[error("{0} is not supported yet by this broker; the message was not stored")]
    NotBuilt(String),
    /// The original would hold the half message back in place of the message.
    #[error("a message in a transaction cannot be delayed ({0}); it was not stored")]
    DelayedHalf(String),
    /// A tombstone for a topic that is not compacted, or with a body.
    #[error("{TOMBSTONE} is for compacted topics, and for a body of one byte")]
    Tombstone,
    /// A compacted topic knows a record by its key.
    #[error(
        "the topic is compacted and takes no message without a key: set the property that \
         rmq.key.source names, KEYS unless it says otherwise"
    )]
    WithoutKey,
}

/// The record of a single send.
///
/// # Errors
/// See [`SendError`].
pub fn single(
    header: &SendHeader<'_>,
    body: &[u8],
    context: &SendContext<'_>,
) -> Result<NewRecord, SendError> {
    refuse_transactional(header.sys_flag)?;
    check_size(header.properties, body, context)?;
    plain(header, body, context)
}

/// The record that a half message becomes when it is committed.
///
/// # Errors
/// See [`SendError`].
pub fn half(
    header: &SendHeader<'_>,
    body: &[u8],
    context: &SendContext,
) -> Result<NewRecord, SendError> {
    check_size(header.properties, body, context)?;
    let properties = super::half::committed_properties(header.properties)?;
    check_size(&properties, body, context)?;
    let sys_flag = header.sys_flag & !sys_flag::TRANSACTION | sys_flag::TRANSACTION_COMMIT;
    plain(&SendHeader { properties: &properties, sys_flag, ..*header }, body, context)
}

fn plain(
    header: &SendHeader<'_>,
    body: &[u8],
    context: &SendContext,
) -> Result<NewRecord, SendError> {
    if header.sys_flag & sys_flag::COMPRESSED == 0 {
        return record(header, header.flag, header.properties, body, context);
    }
    let plain = decompress(header.sys_flag, body, context.body_bytes_max)?;
    record(header, header.flag, header.properties, &plain, context)
}

/// The records of a batch send, all or none, in order.
///
/// # Errors
/// See [`SendError`].
pub fn batch(
    header: &SendHeader<'_>,
    body: &[u8],
    context: &SendContext<'_>,
) -> Result<Vec<NewRecord>, SendError> {
    if header.sys_flag & sys_flag::COMPRESSED != 0 {
        return Err(SendError::BatchCompressed(header.sys_flag));
    }
    refuse_transactional(header.sys_flag)?;
    check_size(header.properties, body, context)?;
    // They are not stored, but what they ask for is refused all the same.
    Properties(header.properties).iter().try_for_each(|(name, value)| refuse(name, value))?;
    let mut records = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let index = records.len();
        if index == BATCH_MESSAGES_MAX {
            return Err(SendError::BatchTooMany);
        }
        let message =
            BatchMessage::decode(&mut rest).map_err(|error| SendError::Batch { index, error })?;
        check_size(message.properties, message.body, context)?;
        if message.body.is_empty() {
            return Err(SendError::EmptyBody(index));
        }
        records.push(record(header, message.flag, message.properties, message.body, context)?);
    }
    if records.is_empty() { Err(SendError::BatchEmpty) } else { Ok(records) }
}

fn check_size(properties: &str, body: &[u8], context: &SendContext<'_>) -> Result<(), SendError> {
    let body_bytes_max = context.body_bytes_max;
    if properties.len() > PROPERTIES_BYTES_MAX || body.len() > body_bytes_max {
        return Err(SendError::Size { body_bytes_max });
    }
    Ok(())
}

fn record(
    header: &SendHeader<'_>,
    flag: i32,
    properties: &str,
    body: &[u8],
    context: &SendContext<'_>,
) -> Result<NewRecord, SendError> {
    let (born_ms, stored_ms) = (header.born_timestamp_ms, context.store_timestamp_ms);
    let is_admitted = context.timestamps.admit(born_ms, stored_ms);
    let is_later = matches!(context.delaying, Delaying::Later { .. });
    let added: Vec<(&str, String)> = match context.delaying {
        Delaying::Later { delay, topic, queue_id } => delay.added(topic, queue_id),
        Delaying::Refused | Delaying::Now => Vec::new(),
    };
    // What is stored once more gets another store timestamp then, and of these the place is known.
    let is_half = header.sys_flag & sys_flag::TRANSACTION == sys_flag::TRANSACTION_COMMIT;
    let origin = Origin {
        flag,
        sys_flag: header.sys_flag,
        born_host: context.born_host,
        store_timestamp_ms: context.store_timestamp_ms,
        reconsume_times: header.reconsume_times,
        // What is delivered later has another timestamp then.
        born_timestamp_ms: (!is_admitted || is_later || is_half).then_some(born_ms),
    }
    .encode();
    let key_name = match context.key_source {
        KeySource::Keys => KEYS,
        KeySource::ShardingKey => SHARDING_KEY,
        KeySource::Nothing => "",
    };
    let mut headers = Vec::with_capacity(12);
    let (mut key, mut is_tombstone) = (None, false);
    for (name, value) in Properties(properties).iter() {
        match name_kind(name.as_bytes()) {
            NameKind::User => {}
            // Ours alone; the view could not tell a property from it.
            NameKind::Origin => continue,
            NameKind::Mark if name == TOMBSTONE => {
                is_tombstone = value.eq_ignore_ascii_case("true");
                continue;
            }
            NameKind::Open if name == key_name => key = Some(value.as_bytes()),
            NameKind::Open | NameKind::Mark => {}
            NameKind::Reserved | NameKind::Driving => {
                // What says that a message was a half message stays with it.
                let is_mark = is_half && name == PREPARED;
                if !is_mark && !context.delaying.admits(name, value)? {
                    continue;
                }
            }
        }
        headers.push(Header { key: name.as_bytes(), value: Some(value.as_bytes()) });
    }
    if is_tombstone && (context.tombstones == Tombstones::Refused || body.len() > 1) {
        return Err(SendError::Tombstone);
    }
    if key.is_none() && context.tombstones == Tombstones::Allowed {
        return Err(SendError::WithoutKey);
    }
    for (name, value) in &added {
        headers.push(Header { key: name.as_bytes(), value: Some(value.as_bytes()) });
    }
    // The last one: `origin::with_store_timestamp` looks for it there.
    headers.push(Header { key: ORIGIN_HEADER.as_bytes(), value: Some(origin.as_slice()) });
    let record = LogRecord {
        timestamp: if is_admitted { born_ms } else { stored_ms },
        key,
        value: (!is_tombstone).then_some(body),
        headers: &headers,
    };
    let mut payload = Vec::with_capacity(record.payload_bytes());
    record.encode_payload(&mut payload);
    Ok(NewRecord { timestamp_ms: record.timestamp, payload: Bytes::from(payload) })
}

fn refuse_transactional(flags: i32) -> Result<(), SendError> {
    if flags & sys_flag::TRANSACTION == 0 {
        return Ok(());
    }
    Err(SendError::NotBuilt(format!("a transactional message (sysFlag {flags})")))
}

/// A send that takes another one back; clients recall by a request of its own.
const TIMER_DEL_UNIQKEY: &str = "TIMER_DEL_UNIQKEY";

/// Refuses a property that asks for a feature that is not there, rather than to store the message
/// as if it had not asked.
fn refuse(name: &str, value: &str) -> Result<(), SendError> {
    let what = match name {
        DELAY if value.trim() != "0" => "a delayed message",
        "TRAN_MSG" if value.eq_ignore_ascii_case("true") => "a transactional message",
        "__LITE_TOPIC" | "INNER_MULTI_DISPATCH" => "a light message",
        "_SYS_MSG_PRIORITY_" => "a message with a priority",
        _ if name.starts_with("TIMER_") => "a timed message",
        _ => return Ok(()),
    };
    Err(SendError::NotBuilt(format!("{what} ({name})")))
}

/// The plain body, at most `limit` bytes.
fn decompress(flags: i32, body: &[u8], limit: usize) -> Result<Vec<u8>, SendError> {
    match (flags & sys_flag::COMPRESSION_TYPE) >> sys_flag::COMPRESSION_SHIFT {
        0 | 3 => read_plain("zlib", flate2::bufread::ZlibDecoder::new(body), limit),
        1 => read_plain("lz4", lz4_flex::frame::FrameDecoder::new(body), limit),
        2 => {
            let in_zstd = |error| compression_error("zstd", &error);
            let mut decoder = zstd::stream::read::Decoder::with_buffer(body).map_err(in_zstd)?;
            // What a frame may make the decoder set aside.
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(in_zstd)?;
            read_plain("zstd", decoder, limit)
        }
        other => Err(SendError::CompressionType(other)),
    }
}

/// 8 MiB: what level 19 uses.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

fn read_plain(kind: &'static str, reader: impl Read, limit: usize) -> Result<Vec<u8>, SendError> {
    let mut plain = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let read = reader.take(most).read_to_end(&mut plain);
    read.map_err(|error| compression_error(kind, &error))?;
    if plain.len() > limit {
        return Err(SendError::Size { body_bytes_max: limit });
    }
    Ok(plain)
}

fn compression_error(kind: &'static str, error: &std::io::Error) -> SendError {
    SendError::Compression { kind, reason: error.to_string() }
}

#[cfg(test)]
mod tests;
