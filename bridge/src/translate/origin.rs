//! The header `__rmq`, which a record has that came through the RocketMQ door.
//!
//! ```text
//! version u8 | flag i32 | sysFlag i32 | born host: length u8 (4 or 16), address, port u16
//! | store timestamp i64 | reconsume times i32 | in version 1: born timestamp i64
//! ```
//! Version 1 is written only where the record's timestamp is not the born timestamp.
//!
//! Big endian. It is for display: a Kafka producer can write one too, so nothing that decides how a
//! client or the broker behaves is read from it, but in the topics of the bridge itself, which no
//! Kafka producer may write to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The header's name.
pub const ORIGIN_HEADER: &str = "__rmq";

const VERSION: u8 = 0;
const VERSION_WITH_BORN: u8 = 1;
const FIXED_BYTES: usize = 1 + 4 + 4 + 1 + 2 + 8 + 4 + 8;

/// Bytes of the longest value, with an IPv6 host.
pub const ORIGIN_BYTES_MAX: usize = FIXED_BYTES + 16;

/// What RocketMQ has for each message and Kafka has no place for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The user's flag.
    pub flag: i32,
    /// MessageSysFlag as it was sent, compression bits too, though the body is stored plain.
    pub sys_flag: i32,
    /// Who sent it.
    pub born_host: SocketAddr,
    /// Milliseconds since 1970.
    pub store_timestamp_ms: i64,
    /// How often it was sent back.
    pub reconsume_times: i32,
    /// When it was born, where that is not the record's timestamp; milliseconds since 1970.
    pub born_timestamp_ms: Option<i64>,
}

/// An encoded header value, without a heap.
#[derive(Clone, Copy, Debug)]
pub struct OriginBytes {
    bytes: [u8; ORIGIN_BYTES_MAX],
    length: usize,
}

impl OriginBytes {
    fn put(&mut self, piece: &[u8]) {
        let end = self.length + piece.len();
        if let Some(place) = self.bytes.get_mut(self.length..end) {
            place.copy_from_slice(piece);
            self.length = end;
        }
    }

    /// The header's value.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// Where in a value of version 1 its parts stand.
const ADDRESS_BYTES_AT: usize = 9;
/// From the end: the store timestamp, the reconsume times, the born timestamp.
const STORE_TIMESTAMP_FROM_END: usize = 8 + 4 + 8;

/// A record's payload with another store timestamp. Its last header has to be one of version 1, as
/// `translate::send` writes it for a message that is to be stored again; other payloads stay as they
/// are.
#[must_use]
pub fn with_store_timestamp(payload: &[u8], store_timestamp_ms: i64) -> Vec<u8> {
    let mut payload = payload.to_vec();
    let has_origin = [4, 16].into_iter().any(|address_bytes| {
        let length = FIXED_BYTES + usize::from(address_bytes);
        let value = payload.len().checked_sub(length).and_then(|from| payload.get(from..));
        value.is_some_and(|value| {
            value.first() == Some(&VERSION_WITH_BORN)
                && value.get(ADDRESS_BYTES_AT) == Some(&address_bytes)
        })
    });
    let place = payload.len().checked_sub(STORE_TIMESTAMP_FROM_END);
    if has_origin && let Some(place) = place.and_then(|from| payload.get_mut(from..from + 8)) {
        place.copy_from_slice(&store_timestamp_ms.to_be_bytes());
    }
    payload
}

impl Origin {
    /// The header's value.
    #[must_use]
    pub fn encode(&self) -> OriginBytes {
        let mut out = OriginBytes { bytes: [0; ORIGIN_BYTES_MAX], length: 0 };
        out.put(&[if self.born_timestamp_ms.is_some() { VERSION_WITH_BORN } else { VERSION }]);
        out.put(&self.flag.to_be_bytes());
        out.put(&self.sys_flag.to_be_bytes());
        match self.born_host.ip().to_canonical() {
            IpAddr::V4(ip) => {
                out.put(&[4]);
                out.put(&ip.octets());
            }
            IpAddr::V6(ip) => {
                out.put(&[16]);
                out.put(&ip.octets());
            }
        }
        out.put(&self.born_host.port().to_be_bytes());
        out.put(&self.store_timestamp_ms.to_be_bytes());
        out.put(&self.reconsume_times.to_be_bytes());
        if let Some(born_ms) = self.born_timestamp_ms {
            out.put(&born_ms.to_be_bytes());
        }
        out
    }

    /// Reads a header's value; `None` for any other version or length.
    #[must_use]
    pub fn decode(value: &[u8]) -> Option<Self> {
        let ([version], rest) = value.split_first_chunk()?;
        if !matches!(*version, VERSION | VERSION_WITH_BORN) {
            return None;
        }
        let (flag, rest) = rest.split_first_chunk()?;
        let (sys_flag, rest) = rest.split_first_chunk()?;
        let ([address_bytes], rest) = rest.split_first_chunk()?;
        let (ip, rest) = match address_bytes {
            4 => {
                let (octets, rest) = rest.split_first_chunk::<4>()?;
                (IpAddr::V4(Ipv4Addr::from(*octets)), rest)
            }
            16 => {
                let (octets, rest) = rest.split_first_chunk::<16>()?;
                (IpAddr::V6(Ipv6Addr::from(*octets)), rest)
            }
            _ => return None,
        };
        let (port, rest) = rest.split_first_chunk()?;
        let (store_timestamp_ms, rest) = rest.split_first_chunk()?;
        let (reconsume_times, rest) = rest.split_first_chunk()?;
        let (born_timestamp_ms, rest) = match *version {
            VERSION_WITH_BORN => {
                let (born_ms, rest) = rest.split_first_chunk()?;
                (Some(i64::from_be_bytes(*born_ms)), rest)
            }
            _ => (None, rest),
        };
        rest.is_empty().then_some(Self {
            flag: i32::from_be_bytes(*flag),
            sys_flag: i32::from_be_bytes(*sys_flag),
            born_host: SocketAddr::new(ip, u16::from_be_bytes(*port)),
            store_timestamp_ms: i64::from_be_bytes(*store_timestamp_ms),
            reconsume_times: i32::from_be_bytes(*reconsume_times),
            born_timestamp_ms,
        })
    }
}

#[cfg(test)]
mod tests;
