//! Clients that speak another protocol than their door's.

use std::net::SocketAddr;

use duolog_bridge::complaints::Complaints;
use duolog_log_core::event::Protocol;

use crate::clock;

/// What four bytes that cannot be a frame's length look like.
pub fn hint(length: i32) -> &'static str {
    match &length.to_be_bytes() {
        [0x16, 0x03, ..] => "the peer speaks TLS",
        b"GET " | b"POST" | b"PUT " | b"HEAD" | b"OPTI" | b"DELE" => "the peer speaks HTTP",
        _ => "the peer speaks another protocol",
    }
}

/// Says on the console, once for each client, that one came to the wrong door: its connection ends
/// without an answer that it could read.
pub fn complain(complaints: &Complaints, door: Protocol, peer: SocketAddr, length: i32) {
    let (address, hint) = (peer.ip().to_string(), hint(length));
    let door = match door {
        Protocol::Kafka => "Kafka",
        Protocol::RocketMq => "RocketMQ",
    };
    let subject = format!("{door} {hint}");
    if complaints.is_due(&address, &subject, clock::now_ms()) {
        tracing::warn!(%peer, "connection to a {door} port closed: {hint}");
    }
}
