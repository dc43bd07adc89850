//! Recall handles: what a producer takes a delayed message back with.
//!
//! `v1 TOPIC BROKER TIME ID` in URL-safe base64. Source: RecallMessageHandle.

const VERSION: &str = "v1";

/// What stands in a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecallHandle<'a> {
    /// RocketMQ's name of the topic.
    pub topic: &'a str,
    /// The broker that has the message.
    pub broker_name: &'a str,
    /// See `translate::delay::recalled_range`.
    pub time_ms: i64,
    /// The message's own id.
    pub id: &'a str,
}

/// It is no handle. The text is the original's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("recall handle is invalid")]
pub struct InvalidHandle;

impl RecallHandle<'_> {
    /// As clients get it.
    #[must_use]
    pub fn encode(&self) -> String {
        let Self { topic, broker_name, time_ms, id } = self;
        base64(&format!("{VERSION} {topic} {broker_name} {time_ms} {id}"))
    }
}

/// The text in a handle.
///
/// # Errors
/// [`InvalidHandle`].
pub fn decode(handle: &str) -> Result<String, InvalidHandle> {
    let bytes = unbase64(handle).ok_or(InvalidHandle)?;
    String::from_utf8(bytes).map_err(|_| InvalidHandle)
}

/// What stands in the text of a handle. A time that is none is -1, which is long past.
///
/// # Errors
/// [`InvalidHandle`].
pub fn parse(text: &str) -> Result<RecallHandle<'_>, InvalidHandle> {
    let mut words = text.split(' ');
    if words.next() != Some(VERSION) {
        return Err(InvalidHandle);
    }
    let mut word = || words.next().ok_or(InvalidHandle);
    let (topic, broker_name, time, id) = (word()?, word()?, word()?, word()?);
    Ok(RecallHandle { topic, broker_name, time_ms: time.parse().unwrap_or(-1), id })
}

const BASE64_URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// URL-safe, with padding.
fn base64(text: &str) -> String {
    let mut out = String::with_capacity(text.len().div_ceil(3) * 4);
    for piece in text.as_bytes().chunks(3) {
        let byte = |place: usize| u32::from(piece.get(place).copied().unwrap_or_default());
        let bits = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for place in 0..4 {
            let six = (bits >> (18 - 6 * place)) & 0x3F;
            let char = BASE64_URL.get(six as usize).copied().unwrap_or(b'=');
            out.push(if place <= piece.len() { char::from(char) } else { '=' });
        }
    }
    out
}

/// As Java's decoder, which asks for no padding.
fn unbase64(text: &str) -> Option<Vec<u8>> {
    let text = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 3);
    for piece in text.as_bytes().chunks(4) {
        let mut bits = 0_u32;
        for char in piece {
            let six = BASE64_URL.iter().position(|known| known == char)?;
            bits = (bits << 6) | u32::try_from(six).ok()?;
        }
        // A single character is no whole byte.
        let bytes = piece.len().checked_sub(1).filter(|bytes| *bytes > 0)?;
        bits <<= 6 * (4 - piece.len());
        out.extend_from_slice(bits.to_be_bytes().get(1..=bytes)?);
    }
    Some(out)
}

#[cfg(test)]
mod tests;
