//! Kafka's wire format: bytes to typed messages and back, nothing about what they mean.
//!
//! `schema.txt` is the table of messages, from which `build.rs` makes [`messages`]; the rest is
//! written by hand: [`primitives`] reads, [`segments`] writes, [`header`] frames.

pub mod header;
pub mod primitives;
pub mod segments;

/// The types of `schema.txt`: a module per message, and the messages themselves.
#[allow(clippy::too_many_lines, reason = "generated: flat code, one statement a field")]
pub mod messages {
    include!(concat!(env!("OUT_DIR"), "/messages.rs"));
}

pub use header::{Message, RequestHeader, decode_response, encode_request, encode_response};
pub use messages::ApiKey;
pub use primitives::{DecodeError, Reader, Str, Uuid, Wire};
pub use segments::{EncodeError, Frame, Records, SegmentedBuf};

#[cfg(test)]
mod tests;
