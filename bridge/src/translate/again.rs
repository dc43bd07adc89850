//! A message that is stored once more: sent back to be tried again, or for the dead letters.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use bytes::Bytes;
use duolog_log_core::record::{Header, NewRecord as LogRecord, Record};

use super::delay::DELAY;
use super::message::{self, Door, Scratch};
use super::origin::{ORIGIN_HEADER, Origin};
use super::properties::{Properties, TOMBSTONE, WAIT};
use super::queue::{MessageId, PseudoAddress};
use crate::backend::NewRecord;

/// Property: the topic that a message first stood in.
pub(crate) const RETRY_TOPIC: &str = "RETRY_TOPIC";

/// Property: the id that a message first had.
pub(crate) const ORIGIN_MESSAGE_ID: &str = "ORIGIN_MESSAGE_ID";

/// Where a message stood that comes again elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct Grave<'a> {
    /// RocketMQ's name of the topic.
    pub topic: &'a str,
    /// The partition's cluster-wide number.
    pub partition_number: u32,
    /// Where in it.
    pub offset: i64,
    /// What message ids carry.
    pub store_host: SocketAddr,
}

/// A message as a consumer saw it, by value: what it was read from may be gone by the time it is
/// written.
#[derive(Clone, Debug)]
pub struct Again {
    key: Option<Bytes>,
    value: Option<Bytes>,
    properties: String,
    origin: Origin,
}

impl Again {
    /// The message that a record is seen as.
    #[must_use]
    pub fn of(record: &Record<'_>, door: Door) -> Self {
        let copy = |bytes: &[u8]| Bytes::copy_from_slice(bytes);
        let origin = message::origin(record.headers);
        let nobody = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        let born_ms = origin.and_then(|origin| origin.born_timestamp_ms);
        Self {
            key: record.key.map(copy),
            value: record.value.map(copy),
            properties: message::properties(record, door, &mut Scratch::default()).0.to_owned(),
            origin: Origin {
                flag: origin.map_or(0, |origin| origin.flag),
                sys_flag: origin.map_or(0, |origin| origin.sys_flag),
                born_host: origin.map_or(nobody, |origin| origin.born_host),
                store_timestamp_ms: 0,
                reconsume_times: origin.map_or(0, |origin| origin.reconsume_times),
                born_timestamp_ms: Some(born_ms.unwrap_or(record.timestamp)),
            },
        }
    }

    /// The same, having come again so often before.
    #[must_use]
    pub fn with_reconsume_times(mut self, times: i32) -> Self {
        self.origin.reconsume_times = times;
        self
    }

    /// How often it came again before.
    #[must_use]
    pub fn reconsume_times(&self) -> i32 {
        self.origin.reconsume_times
    }

    /// The last property of that name.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&str> {
        Properties(&self.properties).get(name)
    }

    /// What a message that comes again says of where it was first; `None` if that has no address.
    pub(crate) fn history(&self, grave: &Grave<'_>) -> Option<Vec<(&'static str, String)>> {
        let mut added = vec![(WAIT, "false".to_owned())];
        if self.property(RETRY_TOPIC).is_none() {
            added.push((RETRY_TOPIC, grave.topic.to_owned()));
        }
        if self.property(ORIGIN_MESSAGE_ID).is_none_or(|id| id.trim().is_empty()) {
            let address = PseudoAddress::new(grave.partition_number, grave.offset).ok()?;
            let id = MessageId { store_host: grave.store_host, address };
            added.push((ORIGIN_MESSAGE_ID, id.to_string()));
        }
        Some(added)
    }

    /// The record for the dead letters; `None` if the message has no address.
    #[must_use]
    pub fn dead(&self, grave: &Grave<'_>, now_ms: i64) -> Option<NewRecord> {
        let mut properties = self.history(grave)?;
        properties.push((DELAY, "0".to_owned()));
        Some(self.record(&properties, now_ms))
    }

    /// The record to store at `now_ms`, with these properties besides or instead.
    #[must_use]
    pub fn record(&self, added: &[(&'static str, String)], now_ms: i64) -> NewRecord {
        let origin = Origin {
            store_timestamp_ms: now_ms,
            reconsume_times: self.origin.reconsume_times.saturating_add(1),
            ..self.origin
        }
        .encode();
        let is_replaced = |name: &str| added.iter().any(|(other, _)| *other == name);
        // That the value is null shows by itself.
        let kept = Properties(&self.properties)
            .iter()
            .filter(|(name, _)| *name != TOMBSTONE && !is_replaced(name));
        let added = added.iter().map(|(name, value)| (*name, value.as_str()));
        let mut headers: Vec<_> = kept
            .chain(added)
            .map(|(name, value)| Header { key: name.as_bytes(), value: Some(value.as_bytes()) })
            .collect();
        // The last one: `origin::with_store_timestamp` looks for it there.
        headers.push(Header { key: ORIGIN_HEADER.as_bytes(), value: Some(origin.as_slice()) });
        let record = LogRecord {
            timestamp: now_ms,
            key: self.key.as_deref(),
            value: self.value.as_deref(),
            headers: &headers,
        };
        let mut payload = Vec::with_capacity(record.payload_bytes());
        record.encode_payload(&mut payload);
        NewRecord { timestamp_ms: now_ms, payload: payload.into() }
    }
}
