//! Messages as the commit log and pull answers have them, and as a batch send has them.
//!
//! ```text
//! size i32 | magic i32 | body CRC-32 & 0x7FFFFFFF i32 | queue id i32 | flag i32
//! | queue offset i64 | physical offset i64 | sysFlag i32
//! | born timestamp i64 | born host | store timestamp i64 | store host
//! | reconsume times i32 | prepared transaction offset i64
//! | body length i32, body | topic length u8 (V1) or i16 (V2), topic
//! | properties length i16, properties
//! ```
//! Big endian. A host is 4 or 16 address bytes, as a bit of sysFlag says, and the port as i32. V2
//! has another magic and serves topics longer than 127 bytes. Source: MessageDecoder,
//! MessageVersion.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::{BufMut, Bytes, BytesMut};

use super::segments::SegmentedOut;
use crate::limits::{PROPERTIES_BYTES_MAX, TOPIC_CHARS_MAX};

/// Bits of sysFlag. Source: MessageSysFlag.
pub mod sys_flag {
    /// The body is compressed.
    pub const COMPRESSED: i32 = 1;
    /// The message has more than one tag.
    pub const MULTI_TAGS: i32 = 1 << 1;
    /// Both bits that say what a message is to a transaction; 0 means nothing.
    pub const TRANSACTION: i32 = 3 << 2;
    /// A half message.
    pub const TRANSACTION_PREPARED: i32 = 1 << 2;
    /// A message that was a half message.
    pub const TRANSACTION_COMMIT: i32 = 2 << 2;
    /// A half message that is to go nowhere.
    pub const TRANSACTION_ROLLBACK: i32 = 3 << 2;
    /// The born host is 16 bytes.
    pub const BORN_HOST_V6: i32 = 1 << 4;
    /// The store host is 16 bytes.
    pub const STORE_HOST_V6: i32 = 1 << 5;
    /// How the body is compressed: 1 lz4, 2 zstd, 0 or 3 zlib.
    pub const COMPRESSION_TYPE: i32 = 7 << 8;
    /// Shift of [`COMPRESSION_TYPE`].
    pub const COMPRESSION_SHIFT: u32 = 8;
}

const MAGIC_V1: u32 = 0xDAA3_20A7;
const MAGIC_V2: u32 = 0xDAA3_20AB;

/// One message of a pull answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// RocketMQ's name of the topic.
    pub topic: &'a str,
    /// 0-based.
    pub queue_id: i32,
    /// The user's flag.
    pub flag: i32,
    /// Place in the queue.
    pub queue_offset: i64,
    /// Place in the commit log; here a pseudo address.
    pub physical_offset: i64,
    /// MessageSysFlag. The bits for the width of the hosts are set by [`Self::encode`].
    pub sys_flag: i32,
    /// Milliseconds since 1970.
    pub born_timestamp_ms: i64,
    /// Who sent it.
    pub born_host: SocketAddr,
    /// Milliseconds since 1970.
    pub store_timestamp_ms: i64,
    /// Who stored it.
    pub store_host: SocketAddr,
    /// How often it was sent back.
    pub reconsume_times: i32,
    /// Offset of the half message.
    pub prepared_transaction_offset: i64,
    /// The body.
    pub body: &'a [u8],
    /// `name \u{1} value \u{2}` repeated.
    pub properties: &'a [u8],
}

/// Why a message cannot be written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// Topic, properties or body are longer than their length field can say.
    #[error("{part} of {bytes} bytes does not fit the message format")]
    TooLong {
        /// Which part.
        part: &'static str,
        /// How long it is.
        bytes: usize,
    },
    /// The bytes end within a part, or a length does not fit.
    #[error("message ends within its {0}")]
    Short(&'static str),
    /// Neither V1 nor V2.
    #[error("message magic {0:#010x} is neither V1 nor V2")]
    Magic(u32),
    /// A text that is no UTF-8.
    #[error("{0} is no UTF-8")]
    Text(&'static str),
    /// The size does not agree with the parts.
    #[error("message size {size} does not agree with its parts, {parts} bytes")]
    Size {
        /// What the first four bytes say.
        size: usize,
        /// What the parts take.
        parts: usize,
    },
    /// The CRC does not agree with the body.
    #[error("body CRC {found:#010x}, expected {expected:#010x}")]
    Crc {
        /// In the message.
        found: u32,
        /// Of its body.
        expected: u32,
    },
}

/// An IPv4 address in IPv6 clothes is written as what it is (case B118).
fn plain_ip(host: SocketAddr) -> IpAddr {
    host.ip().to_canonical()
}

fn host_bytes(ip: IpAddr) -> usize {
    match ip {
        IpAddr::V4(_) => 4 + 4,
        IpAddr::V6(_) => 16 + 4,
    }
}

fn put_host(out: &mut BytesMut, ip: IpAddr, port: u16) {
    match ip {
        IpAddr::V4(ip) => out.put_slice(&ip.octets()),
        IpAddr::V6(ip) => out.put_slice(&ip.octets()),
    }
    out.put_i32(i32::from(port));
}

/// CRC-32 of a body as the format has it: without the sign bit.
#[must_use]
pub fn body_crc(body: &[u8]) -> u32 {
    crc32fast::hash(body) & 0x7FFF_FFFF
}

impl<'a> Message<'a> {
    /// Appends the message. A large body is shared with `region`, the buffer it lies in, if that is
    /// given; else it is copied. Returns the message's size.
    ///
    /// # Errors
    /// [`MessageError::TooLong`]; `out` is then as it was.
    pub fn encode(
        &self,
        region: Option<&Bytes>,
        out: &mut SegmentedOut,
    ) -> Result<usize, MessageError> {
        let too_long = |part, bytes| MessageError::TooLong { part, bytes };
        let is_v2 = self.topic.len() > TOPIC_CHARS_MAX;
        if self.properties.len() > PROPERTIES_BYTES_MAX {
            return Err(too_long("properties", self.properties.len()));
        }
        if self.topic.len() > i16::MAX as usize {
            return Err(too_long("topic", self.topic.len()));
        }
        let (born, store) = (plain_ip(self.born_host), plain_ip(self.store_host));
        let hosts = host_bytes(born) + host_bytes(store);
        let topic_length = if is_v2 { 2 } else { 1 };
        let size = 4 * 6
            + 8 * 2
            + 8 * 2
            + hosts
            + 4
            + 8
            + 4
            + self.body.len()
            + topic_length
            + self.topic.len()
            + 2
            + self.properties.len();
        let size32 = i32::try_from(size).map_err(|_| too_long("body", self.body.len()))?;
        let tail = out.tail();
        tail.reserve(size.min(crate::limits::SHARED_SEGMENT_BYTES_MIN * 2));
        tail.put_i32(size32);
        tail.put_u32(if is_v2 { MAGIC_V2 } else { MAGIC_V1 });
        tail.put_u32(body_crc(self.body));
        tail.put_i32(self.queue_id);
        tail.put_i32(self.flag);
        tail.put_i64(self.queue_offset);
        tail.put_i64(self.physical_offset);
        tail.put_i32(with_host_bits(self.sys_flag, born, store));
        tail.put_i64(self.born_timestamp_ms);
        put_host(tail, born, self.born_host.port());
        tail.put_i64(self.store_timestamp_ms);
        put_host(tail, store, self.store_host.port());
        tail.put_i32(self.reconsume_times);
        tail.put_i64(self.prepared_transaction_offset);
        tail.put_i32(self.body.len() as i32);
        out.put_part(region, self.body);
        let tail = out.tail();
        if is_v2 {
            tail.put_u16(self.topic.len() as u16);
        } else {
            tail.put_u8(self.topic.len() as u8);
        }
        tail.put_slice(self.topic.as_bytes());
        tail.put_u16(self.properties.len() as u16);
        tail.put_slice(self.properties);
        Ok(size)
    }

    /// Reads the message at the front of `bytes` and moves behind it. The CRC is checked.
    ///
    /// # Errors
    /// The bytes are no such message; `bytes` is then as it was.
    pub fn decode(bytes: &mut &'a [u8]) -> Result<Self, MessageError> {
        let mut reader = Reader { rest: bytes };
        let size = usize::try_from(reader.i32("size")?).map_err(|_| MessageError::Short("size"))?;
        let (whole, after) = bytes.split_at_checked(size).ok_or(MessageError::Short("size"))?;
        reader.rest = whole.get(4..).ok_or(MessageError::Short("size"))?;
        let magic = reader.u32("magic")?;
        let form = match magic {
            MAGIC_V1 => Form::ShortTopic,
            MAGIC_V2 => Form::LongTopic,
            other => return Err(MessageError::Magic(other)),
        };
        let found = reader.u32("body CRC")?;
        let message = reader.fields(form)?;
        if !reader.rest.is_empty() {
            let parts = size - reader.rest.len();
            return Err(MessageError::Size { size, parts });
        }
        let expected = body_crc(message.body);
        if found != expected {
            return Err(MessageError::Crc { found, expected });
        }
        *bytes = after;
        Ok(message)
    }
}

fn with_host_bits(sys_flag: i32, born: IpAddr, store: IpAddr) -> i32 {
    let mut bits = sys_flag & !(sys_flag::BORN_HOST_V6 | sys_flag::STORE_HOST_V6);
    if born.is_ipv6() {
        bits |= sys_flag::BORN_HOST_V6;
    }
    if store.is_ipv6() {
        bits |= sys_flag::STORE_HOST_V6;
    }
    bits
}

/// One message of a batch send. Topic and queue come from the request's header.
///
/// ```text
/// size i32 | magic i32 (0) | body CRC i32 (0) | flag i32
/// | body length i32, body | properties length i16, properties
/// ```
/// Source: MessageDecoder.encodeMessage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchMessage<'a> {
    /// The user's flag.
    pub flag: i32,
    /// The body.
    pub body: &'a [u8],
    /// `name \u{1} value \u{2}` repeated.
    pub properties: &'a str,
}

impl<'a> BatchMessage<'a> {
    /// Appends the message, as a producer does.
    ///
    /// # Errors
    /// [`MessageError::TooLong`]; `out` is then as it was.
    pub fn encode(&self, out: &mut BytesMut) -> Result<(), MessageError> {
        let too_long = |part, bytes| MessageError::TooLong { part, bytes };
        let properties = i16::try_from(self.properties.len())
            .map_err(|_| too_long("properties", self.properties.len()))?;
        let size = i32::try_from(4 * 5 + self.body.len() + 2 + self.properties.len())
            .map_err(|_| too_long("body", self.body.len()))?;
        out.put_i32(size);
        out.put_i32(0);
        out.put_i32(0);
        out.put_i32(self.flag);
        out.put_i32(self.body.len() as i32);
        out.put_slice(self.body);
        out.put_i16(properties);
        out.put_slice(self.properties.as_bytes());
        Ok(())
    }

    /// Reads the message at the front of `bytes` and moves behind it. Clients write 0 for the CRC;
    /// one that writes something else has to be right (case B87).
    ///
    /// # Errors
    /// The bytes are no such message; `bytes` is then as it was.
    pub fn decode(bytes: &mut &'a [u8]) -> Result<Self, MessageError> {
        let mut reader = Reader { rest: bytes };
        let size = usize::try_from(reader.i32("size")?).map_err(|_| MessageError::Short("size"))?;
        let (whole, after) = bytes.split_at_checked(size).ok_or(MessageError::Short("size"))?;
        reader.rest = whole.get(4..).ok_or(MessageError::Short("size"))?;
        reader.i32("magic")?;
        let found = reader.u32("body CRC")?;
        let flag = reader.i32("flag")?;
        let body = reader.long_bytes("body")?;
        let properties = reader.short_bytes("properties")?;
        if !reader.rest.is_empty() {
            let parts = size - reader.rest.len();
            return Err(MessageError::Size { size, parts });
        }
        let expected = body_crc(body);
        if found != 0 && found & 0x7FFF_FFFF != expected {
            return Err(MessageError::Crc { found, expected });
        }
        let properties =
            std::str::from_utf8(properties).map_err(|_| MessageError::Text("properties"))?;
        *bytes = after;
        Ok(Self { flag, body, properties })
    }
}

/// How wide the topic's length is.
#[derive(Clone, Copy)]
enum Form {
    /// One byte.
    ShortTopic,
    /// Two bytes.
    LongTopic,
}

/// How wide a host is.
#[derive(Clone, Copy)]
enum Family {
    V4,
    V6,
}

impl Family {
    /// By the bit of `flags` that is set for IPv6.
    fn of(flags: i32, v6_bit: i32) -> Self {
        if flags & v6_bit == 0 { Self::V4 } else { Self::V6 }
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self, part: &'static str) -> Result<[u8; N], MessageError> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(MessageError::Short(part))?;
        self.rest = rest;
        Ok(*taken)
    }

    fn i32(&mut self, part: &'static str) -> Result<i32, MessageError> {
        self.array(part).map(i32::from_be_bytes)
    }

    fn u32(&mut self, part: &'static str) -> Result<u32, MessageError> {
        self.array(part).map(u32::from_be_bytes)
    }

    fn i64(&mut self, part: &'static str) -> Result<i64, MessageError> {
        self.array(part).map(i64::from_be_bytes)
    }

    fn take(&mut self, length: usize, part: &'static str) -> Result<&'a [u8], MessageError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(MessageError::Short(part))?;
        self.rest = rest;
        Ok(taken)
    }

    fn long_bytes(&mut self, part: &'static str) -> Result<&'a [u8], MessageError> {
        let length = usize::try_from(self.i32(part)?).map_err(|_| MessageError::Short(part))?;
        self.take(length, part)
    }

    fn short_bytes(&mut self, part: &'static str) -> Result<&'a [u8], MessageError> {
        let length = i16::from_be_bytes(self.array(part)?);
        let length = usize::try_from(length).map_err(|_| MessageError::Short(part))?;
        self.take(length, part)
    }

    fn host(&mut self, family: Family, part: &'static str) -> Result<SocketAddr, MessageError> {
        let ip = match family {
            Family::V4 => IpAddr::V4(Ipv4Addr::from(self.array::<4>(part)?)),
            Family::V6 => IpAddr::V6(Ipv6Addr::from(self.array::<16>(part)?)),
        };
        let port = u16::try_from(self.i32(part)?).map_err(|_| MessageError::Short(part))?;
        Ok(SocketAddr::new(ip, port))
    }

    /// Everything behind the body's CRC.
    fn fields(&mut self, form: Form) -> Result<Message<'a>, MessageError> {
        let queue_id = self.i32("queue id")?;
        let flag = self.i32("flag")?;
        let queue_offset = self.i64("queue offset")?;
        let physical_offset = self.i64("physical offset")?;
        let sys_flag = self.i32("sysFlag")?;
        let born_timestamp_ms = self.i64("born timestamp")?;
        let born_host = self.host(Family::of(sys_flag, sys_flag::BORN_HOST_V6), "born host")?;
        let store_timestamp_ms = self.i64("store timestamp")?;
        let store_host = self.host(Family::of(sys_flag, sys_flag::STORE_HOST_V6), "store host")?;
        let reconsume_times = self.i32("reconsume times")?;
        let prepared_transaction_offset = self.i64("prepared transaction offset")?;
        let body = self.long_bytes("body")?;
        let topic = match form {
            Form::LongTopic => self.short_bytes("topic")?,
            Form::ShortTopic => {
                let [length] = self.array("topic")?;
                self.take(usize::from(length), "topic")?
            }
        };
        let topic = std::str::from_utf8(topic).map_err(|_| MessageError::Text("topic"))?;
        let properties = self.short_bytes("properties")?;
        Ok(Message {
            topic,
            queue_id,
            flag,
            queue_offset,
            physical_offset,
            sys_flag,
            born_timestamp_ms,
            born_host,
            store_timestamp_ms,
            store_host,
            reconsume_times,
            prepared_transaction_offset,
            body,
            properties,
        })
    }
}

#[cfg(test)]
mod tests;
