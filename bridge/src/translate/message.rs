//! From a record to the message that a RocketMQ client sees.
//!
//! A record that came through the RocketMQ door (it has the header `__rmq`) is seen as it was sent.
//! Any other is a Kafka producer's: its key is `KEYS`, its headers are properties. Nothing in it
//! can pass for a property that RocketMQ acts upon, and nothing is yielded that it does not hold.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use bytes::Bytes;
use duolog_log_core::record::{Header, Headers, Record};

use super::origin::{ORIGIN_HEADER, Origin};
use super::properties::{
    ENCODING_SUFFIX, HEADERS_TRUNCATED, HEX_NAME_PREFIX, KEY_ENCODING, KEYS, MSG_REGION, NAME_END,
    NULL_HEADERS, NameKind, Properties, TAGS, TOMBSTONE, VALUE_END, is_text, name_kind,
};
use super::queue::{AddressError, PseudoAddress};
use crate::limits::{HEADERS_SEEN_MAX, PROPERTIES_BYTES_MAX};
use crate::remoting::SegmentedOut;
use crate::remoting::message::{Message, MessageError, sys_flag};

/// Who may write to the topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// Both protocols: a header `__rmq` proves nothing.
    Both,
    /// The bridge alone (`__rmq.` topics): properties are what the bridge wrote.
    Bridge,
}

/// What all records of one batch have in common.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// RocketMQ's name of the topic.
    pub topic: &'a str,
    /// The partition.
    pub queue_id: i32,
    /// The partition's cluster-wide number.
    pub partition_number: u32,
    /// What message ids carry: address and port of the RocketMQ door.
    pub store_host: SocketAddr,
    /// Who may write to the topic.
    pub door: Door,
    /// When the record's batch was appended, milliseconds since 1970.
    pub append_time_ms: i64,
    /// How often this group has had it before, besides what the record says.
    pub times_before: i32,
    /// Where the broker is, as it says of messages; empty: it says nothing.
    pub region_id: &'a str,
}

/// Why a record cannot be shown. The pull answers code 1 with this text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// The offset has no pseudo address.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// It is no record, or one that was not written here.
    #[error("the record cannot be read")]
    Unreadable,
    /// A part does not fit; only a topic's name or a body of gigabytes can be that long.
    #[error(transparent)]
    Message(#[from] MessageError),
}

/// A buffer that is used again for one record after the other.
#[derive(Debug, Default)]
pub struct Scratch {
    properties: Vec<u8>,
}

impl Scratch {
    fn fill(&mut self, record: &Record<'_>, origin: Option<Origin>, door: Door) {
        self.properties.clear();
        let writer = Writer { is_rocketmq: origin.is_some(), door };
        properties_into(record, writer, &mut self.properties);
    }

    /// Clients trace what they consume only where a message names a region, so the original's broker
    /// stores one with each. Here it is added to what is shown.
    fn add_region(&mut self, record: &Record<'_>, origin: Option<Origin>, region_id: &str) {
        let is_there = || seen(record.headers).any(|header| header.key == MSG_REGION.as_bytes());
        let bytes = MSG_REGION.len() + region_id.len() + 2;
        let fits = self.properties.len() + bytes <= PROPERTIES_BYTES_MAX;
        if !region_id.is_empty() && fits && !(origin.is_some() && is_there()) {
            put_pair(MSG_REGION.as_bytes(), region_id.as_bytes(), &mut self.properties);
        }
    }
}

/// The properties of the message that a record is seen as.
pub fn properties<'a>(record: &Record<'_>, door: Door, scratch: &'a mut Scratch) -> Properties<'a> {
    scratch.fill(record, origin(record.headers), door);
    // What is written there is text.
    Properties(std::str::from_utf8(&scratch.properties).unwrap_or_default())
}

const NO_HOST: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// Appends a record as a message; returns the message's size.
///
/// `region` is the buffer that the record lies in: a large body is then shared and not copied.
///
/// # Errors
/// See [`ViewError`]; `out` is then as it was.
pub fn encode(
    record: &Record<'_>,
    place: &Place<'_>,
    region: Option<&Bytes>,
    scratch: &mut Scratch,
    out: &mut SegmentedOut,
) -> Result<usize, ViewError> {
    let physical = PseudoAddress::new(place.partition_number, record.offset)?.physical();
    let origin = origin(record.headers);
    scratch.fill(record, origin, place.door);
    scratch.add_region(record, origin, place.region_id);
    let message = Message {
        topic: place.topic,
        queue_id: place.queue_id,
        flag: origin.map_or(0, |origin| origin.flag),
        queue_offset: record.offset,
        physical_offset: physical,
        // The body is plain, and no message here is a half, an inner batch or wrapped.
        sys_flag: origin.map_or(0, |origin| shown_flags(origin.sys_flag)),
        born_timestamp_ms: origin
            .and_then(|origin| origin.born_timestamp_ms)
            .unwrap_or(record.timestamp),
        born_host: origin.map_or(NO_HOST, |origin| origin.born_host),
        store_timestamp_ms: origin.map_or(place.append_time_ms, |origin| origin.store_timestamp_ms),
        store_host: place.store_host,
        reconsume_times: origin
            .map_or(0, |origin| origin.reconsume_times)
            .saturating_add(place.times_before),
        prepared_transaction_offset: 0,
        body: record.value.unwrap_or_default(),
        properties: &scratch.properties,
    };
    Ok(message.encode(region, out)?)
}

/// What of a message's sysFlag is shown: several tags, and that it was committed.
fn shown_flags(flags: i32) -> i32 {
    let is_committed = flags & sys_flag::TRANSACTION == sys_flag::TRANSACTION_COMMIT;
    let committed = if is_committed { sys_flag::TRANSACTION_COMMIT } else { 0 };
    flags & sys_flag::MULTI_TAGS | committed
}

/// When RocketMQ holds the record to have been stored: what the broker noted, or the append time.
#[must_use]
pub fn store_time_ms(record: &Record<'_>, append_time_ms: i64) -> i64 {
    origin(record.headers).map_or(append_time_ms, |origin| origin.store_timestamp_ms)
}

/// What the record's header `__rmq` says; the last one, as everywhere.
#[must_use]
pub fn origin(headers: Headers<'_>) -> Option<Origin> {
    let origins = seen(headers).filter(|header| header.key == ORIGIN_HEADER.as_bytes());
    Origin::decode(origins.last()?.value?)
}

/// Who wrote a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writer {
    /// It came through the RocketMQ door, or says so.
    pub is_rocketmq: bool,
    /// Who may write to the topic.
    pub door: Door,
}

/// Appends the property string of a record, at most 32,767 bytes.
pub fn properties_into(record: &Record<'_>, writer: Writer, out: &mut Vec<u8>) {
    let start = out.len();
    let unseen = record.headers.len().saturating_sub(HEADERS_SEEN_MAX);
    let mut array = [Header { key: b"", value: None }; HEADERS_ON_STACK];
    let heap: Vec<Header<'_>>;
    let headers = match array.get_mut(..record.headers.len()) {
        Some(slots) => {
            for (slot, header) in slots.iter_mut().zip(record.headers) {
                *slot = header;
            }
            &*slots
        }
        None => {
            heap = seen(record.headers).collect();
            heap.as_slice()
        }
    };
    let view = PropertyView {
        record,
        headers,
        unseen,
        writer,
        last: (headers.len() > HEADERS_ON_STACK).then(|| last_places(headers)),
    };
    if unseen == 0 {
        view.write_all(out);
    }
    if unseen > 0 || out.len() - start > PROPERTIES_BYTES_MAX {
        out.truncate(start);
        view.write_fitting(out);
    }
}

/// The headers that are looked at.
pub(super) fn seen(headers: Headers<'_>) -> impl Iterator<Item = Header<'_>> {
    headers.iter().take(HEADERS_SEEN_MAX)
}

/// Records with more headers than this cost an allocation.
const HEADERS_ON_STACK: usize = 32;

fn last_places<'a>(headers: &[Header<'a>]) -> HashMap<&'a [u8], usize> {
    headers.iter().enumerate().map(|(place, header)| (header.key, place)).collect()
}

struct PropertyView<'a> {
    record: &'a Record<'a>,
    headers: &'a [Header<'a>],
    /// How many headers follow these.
    unseen: usize,
    writer: Writer,
    /// Of many headers: where each name comes last.
    last: Option<HashMap<&'a [u8], usize>>,
}

/// How much of a property string may be used.
struct Budget {
    left: usize,
    /// Properties that did not fit.
    dropped: usize,
}

impl<'a> PropertyView<'a> {
    /// Everything, whatever its length.
    fn write_all(&self, out: &mut Vec<u8>) {
        self.write_key(out);
        let mut has_null = false;
        for (kind, header) in self.shown() {
            match header.value {
                Some(value) => write_property(self.name(kind, header), value, out),
                None => has_null = true,
            }
        }
        if has_null {
            self.write_nulls(out);
        }
        self.write_tombstone(out);
    }

    /// What fits: RocketMQ's own first, then the user's headers from the front up to the first that
    /// does not fit. How many are missing is said.
    fn write_fitting(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let count_bytes = HEADERS_TRUNCATED.len() + 2 + usize::MAX.ilog10() as usize + 1;
        let tombstone_bytes = TOMBSTONE.len() + "true".len() + 2;
        let nulls_bytes = NULL_HEADERS.len() + 2;
        let marks = count_bytes + tombstone_bytes + nulls_bytes;
        let mut budget = Budget { left: PROPERTIES_BYTES_MAX - marks, dropped: self.unseen };
        let mut piece = Vec::new();
        self.write_key(&mut piece);
        budget.take(&mut piece, out);
        let mut nulls = Vec::new();
        for is_user in [false, true] {
            let mut is_full = false;
            for (kind, header) in self.shown() {
                if (kind == NameKind::User || kind == NameKind::Mark) != is_user {
                    continue;
                }
                if is_full {
                    budget.dropped += 1;
                    continue;
                }
                let fitted = match header.value {
                    Some(value) => {
                        write_property(self.name(kind, header), value, &mut piece);
                        budget.take(&mut piece, out)
                    }
                    None => {
                        self.name(kind, header).write(&mut piece);
                        piece.push(b',');
                        budget.take(&mut piece, &mut nulls)
                    }
                };
                is_full = is_user && !fitted;
            }
        }
        if !nulls.is_empty() {
            nulls.pop();
            put_pair(NULL_HEADERS.as_bytes(), &nulls, out);
        }
        self.write_tombstone(out);
        put_pair(HEADERS_TRUNCATED.as_bytes(), budget.dropped.to_string().as_bytes(), out);
        debug_assert!(out.len() - start <= PROPERTIES_BYTES_MAX);
    }

    /// The headers that become properties: the last of each name, without what must not pass.
    fn shown(&self) -> impl Iterator<Item = (NameKind, &Header<'a>)> {
        self.headers.iter().enumerate().filter_map(|(place, header)| {
            let kind = name_kind(header.key);
            let passes = match kind {
                NameKind::User | NameKind::Open | NameKind::Mark => true,
                NameKind::Reserved => self.writer.is_rocketmq,
                NameKind::Driving => self.writer.is_rocketmq && self.writer.door == Door::Bridge,
                NameKind::Origin => false,
            };
            let is_shown = passes && self.is_last(place, header.key) && !self.is_covered(header);
            is_shown.then_some((kind, header))
        })
    }

    fn is_last(&self, place: usize, name: &[u8]) -> bool {
        match &self.last {
            Some(last) => last.get(name) == Some(&place),
            None => {
                let after = self.headers.get(place + 1..).unwrap_or_default();
                after.iter().all(|header| header.key != name)
            }
        }
    }

    fn last_header(&self, name: &[u8]) -> Option<&Header<'a>> {
        match &self.last {
            Some(last) => last.get(name).and_then(|place| self.headers.get(*place)),
            None => self.headers.iter().rev().find(|header| header.key == name),
        }
    }

    /// Would this header's property be taken for our note on how another one is encoded?
    fn is_covered(&self, header: &Header<'_>) -> bool {
        let Some(noted) = header.key.strip_suffix(ENCODING_SUFFIX.as_bytes()) else { return false };
        let value = self.last_header(noted).and_then(|header| header.value);
        is_name(noted) && value.is_some_and(|value| !is_text(value))
    }

    /// What a header's property is called. A name that is one of our marks is written as hex, but
    /// for those of RocketMQ's producers that do not begin as hexed names do.
    fn name(&self, kind: NameKind, header: &Header<'a>) -> PropertyName<'a> {
        let is_mark = kind == NameKind::Mark
            && (!self.writer.is_rocketmq || header.key.starts_with(HEX_NAME_PREFIX.as_bytes()));
        PropertyName { name: header.key, is_hex: is_mark || !is_name(header.key) }
    }

    /// `KEYS` of a Kafka producer's key, unless there is a header `KEYS`.
    fn write_key(&self, out: &mut Vec<u8>) {
        let Some(key) = self.record.key.filter(|_| !self.writer.is_rocketmq) else { return };
        if self.last_header(KEYS.as_bytes()).is_some_and(|header| header.value.is_some()) {
            return;
        }
        if is_text(key) {
            put_pair(KEYS.as_bytes(), key, out);
        } else {
            put_hex_pair(KEYS.as_bytes(), key, out);
            put_pair(KEY_ENCODING.as_bytes(), b"hex", out);
        }
    }

    fn write_tombstone(&self, out: &mut Vec<u8>) {
        if self.record.value.is_none() {
            put_pair(TOMBSTONE.as_bytes(), b"true", out);
        }
    }

    fn write_nulls(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(NULL_HEADERS.as_bytes());
        out.push(NAME_END);
        for (kind, header) in self.shown().filter(|(_, header)| header.value.is_none()) {
            self.name(kind, header).write(out);
            out.push(b',');
        }
        // The last comma.
        out.pop();
        out.push(VALUE_END);
    }
}

impl Budget {
    /// Moves `piece` to `out` if it fits; counts it as dropped if it does not.
    fn take(&mut self, piece: &mut Vec<u8>, out: &mut Vec<u8>) -> bool {
        let fits = piece.len() <= self.left;
        if fits {
            self.left -= piece.len();
            out.append(piece);
        } else {
            self.dropped += 1;
            piece.clear();
        }
        fits
    }
}

/// The code of the tag that filters and clients go by, 0 without one: as RocketMQ's consume queue
/// has it.
#[must_use]
pub fn tag_hash(record: &Record<'_>) -> i32 {
    tag_code(record).unwrap_or(0)
}

/// The Java hash of the property `TAGS` as the view has it: of a value that is no text, its hex.
#[must_use]
pub fn tag_code(record: &Record<'_>) -> Option<i32> {
    let tags = seen(record.headers).filter(|header| header.key == TAGS.as_bytes());
    let tag = tags.last()?.value?;
    Some(match std::str::from_utf8(tag) {
        Ok(text) if is_text(tag) => super::properties::java_hash(text),
        _ => hex_of(tag)
            .iter()
            .fold(0, |hash: i32, byte| hash.wrapping_mul(31).wrapping_add(i32::from(*byte))),
    })
}

pub(super) fn hex_of(bytes: &[u8]) -> Vec<u8> {
    let mut hex = Vec::with_capacity(bytes.len() * 2);
    put_hex(bytes, &mut hex);
    hex
}

fn is_name(bytes: &[u8]) -> bool {
    !bytes.is_empty() && is_text(bytes)
}

#[derive(Clone, Copy)]
struct PropertyName<'a> {
    name: &'a [u8],
    is_hex: bool,
}

impl PropertyName<'_> {
    fn write(self, out: &mut Vec<u8>) {
        if self.is_hex {
            out.extend_from_slice(HEX_NAME_PREFIX.as_bytes());
            put_hex(self.name, out);
        } else {
            out.extend_from_slice(self.name);
        }
    }
}

fn write_property(name: PropertyName<'_>, value: &[u8], out: &mut Vec<u8>) {
    name.write(out);
    out.push(NAME_END);
    if is_text(value) {
        out.extend_from_slice(value);
        out.push(VALUE_END);
        return;
    }
    put_hex(value, out);
    out.push(VALUE_END);
    name.write(out);
    out.extend_from_slice(ENCODING_SUFFIX.as_bytes());
    out.push(NAME_END);
    out.extend_from_slice(b"hex");
    out.push(VALUE_END);
}

fn put_pair(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.push(NAME_END);
    out.extend_from_slice(value);
    out.push(VALUE_END);
}

fn put_hex_pair(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.push(NAME_END);
    put_hex(value, out);
    out.push(VALUE_END);
}

fn put_hex(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        for digit in [byte >> 4, byte & 0xF] {
            out.push(if digit < 10 { b'0' + digit } else { b'a' + digit - 10 });
        }
    }
}

#[cfg(test)]
mod tests;
