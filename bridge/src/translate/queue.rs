//! Queues and partitions, and the addresses of messages.
//!
//! A queue id is a partition and a queue offset is an offset, so nothing is translated there. What
//! RocketMQ calls the physical offset must resolve without a topic; it is a pseudo address of 63
//! bits: the partition's cluster-wide number (23 bits, given once and never again) and the offset
//! (40 bits).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::limits::{ADDRESS_OFFSET_BITS, PARTITION_NUMBER_BITS};

const OFFSET_END: i64 = 1 << ADDRESS_OFFSET_BITS;
const NUMBER_END: u32 = 1 << PARTITION_NUMBER_BITS;

/// Where a message is: partition and offset in one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PseudoAddress(i64);

/// A partition's number or an offset is beyond what an address can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "offset {offset} of partition number {number} has no physical offset: \
     offsets end at 2^40, partition numbers at 2^23"
)]
pub struct AddressError {
    /// The partition's number.
    pub number: u32,
    /// The offset.
    pub offset: i64,
}

impl PseudoAddress {
    /// The address of `offset` in the partition with this number.
    ///
    /// # Errors
    /// Offsets from 2^40 on and numbers from 2^23 on do not fit; nothing ever wraps.
    pub fn new(number: u32, offset: i64) -> Result<Self, AddressError> {
        if number < NUMBER_END && (0..OFFSET_END).contains(&offset) {
            Ok(Self(i64::from(number) << ADDRESS_OFFSET_BITS | offset))
        } else {
            Err(AddressError { number, offset })
        }
    }

    /// The address that a client sent; `None` for a negative number.
    #[must_use]
    pub fn from_physical(physical_offset: i64) -> Option<Self> {
        (physical_offset >= 0).then_some(Self(physical_offset))
    }

    /// What goes over the wire as the physical offset.
    #[must_use]
    pub fn physical(self) -> i64 {
        self.0
    }

    /// The partition's number.
    #[must_use]
    pub fn partition_number(self) -> u32 {
        (self.0 >> ADDRESS_OFFSET_BITS) as u32
    }

    /// The offset in the partition.
    #[must_use]
    pub fn offset(self) -> i64 {
        self.0 & (OFFSET_END - 1)
    }
}

/// The id that the broker gives to a message (offsetMsgId): where it was stored.
///
/// As text: upper-case hex of the host's address (4 or 16 bytes), its port (4) and the physical
/// offset (8). Source: MessageDecoder.createMessageId.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageId {
    /// The broker that stored it. Any node can answer for it.
    pub store_host: SocketAddr,
    /// Where it is.
    pub address: PseudoAddress,
}

const IPV4_ID_CHARS: usize = 2 * (4 + 4 + 8);
const IPV6_ID_CHARS: usize = 2 * (16 + 4 + 8);

impl MessageId {
    /// Reads an id; `None` if it is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (address_chars, is_v6) = match text.len() {
            IPV4_ID_CHARS => (8, false),
            IPV6_ID_CHARS => (32, true),
            _ => return None,
        };
        if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let (ip, rest) = text.split_at_checked(address_chars)?;
        let (port, physical) = rest.split_at_checked(8)?;
        let ip = if is_v6 {
            IpAddr::V6(Ipv6Addr::from(u128::from_str_radix(ip, 16).ok()?))
        } else {
            IpAddr::V4(Ipv4Addr::from(u32::from_str_radix(ip, 16).ok()?))
        };
        let port = u16::try_from(u32::from_str_radix(port, 16).ok()?).ok()?;
        let physical = i64::try_from(u64::from_str_radix(physical, 16).ok()?).ok()?;
        Some(Self { store_host: SocketAddr::new(ip, port), address: PseudoAddress(physical) })
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.store_host.ip().to_canonical() {
            IpAddr::V4(ip) => write_hex(formatter, &ip.octets())?,
            IpAddr::V6(ip) => write_hex(formatter, &ip.octets())?,
        }
        write_hex(formatter, &u32::from(self.store_host.port()).to_be_bytes())?;
        write_hex(formatter, &self.address.0.to_be_bytes())
    }
}

/// Two upper-case digits for each byte. Every send's answer holds an id, and the formatting of
/// numbers takes five times as long.
fn write_hex(formatter: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut text = [0; 32];
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xF]);
    let mut written = 0;
    for (place, digit) in text.iter_mut().zip(digits) {
        *place = DIGITS.get(usize::from(digit)).copied().unwrap_or(b'0');
        written += 1;
    }
    let text = text.get(..written).unwrap_or_default();
    formatter.write_str(str::from_utf8(text).unwrap_or_default())
}

#[cfg(test)]
mod tests;
