//! Bytes that no client should send: the process lives, its memory stays flat, other connections do not notice.
//!
//! Cases B01, B03, B06, B07, B10, B14, B15, B18 of docs/cases.md.

mod kafka_frames;
mod random_frames;
mod rocketmq_frames;

use std::time::Duration;

use anyhow::{Context, ensure};
use duolog_tests::cluster::{Launch, Node};
use duolog_tests::raw_client::Connection;
use kafka_protocol::messages::ApiVersionsRequest;
use kafka_protocol::protocol::StrBytes;

/// Each listener must close or answer within this, whatever is thrown at it and however busy the machine is otherwise.
pub const LIMIT: Duration = Duration::from_secs(60);
const MEMORY_GROWTH_MAX_KIB: u64 = 64 << 10;

/// What a well-behaved client opens with.
fn api_versions() -> ApiVersionsRequest {
    ApiVersionsRequest::default()
        .with_client_software_name(StrBytes::from_static_str("raw"))
        .with_client_software_version(StrBytes::from_static_str("1"))
}

/// A node, a bystander on each listener, and the memory it had before.
struct Attacked {
    node: Node,
    kafka: Connection,
    broker: Connection,
    memory_kib: u64,
    _directory: tempfile::TempDir,
}

impl Attacked {
    fn start() -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let node = Launch::new(directory.path())?.start()?;
        let mut kafka = Connection::open(&node.kafka(), LIMIT)?;
        kafka.kafka(3, &api_versions())?;
        let broker = Connection::open(&node.broker(), LIMIT)?;
        let memory_kib = resident_kib(node.pid())?;
        Ok(Self { node, kafka, broker, memory_kib, _directory: directory })
    }

    /// "Server lives": the same process, the same open connections, and no more memory than before.
    fn unharmed(&mut self, by: &str) -> anyhow::Result<()> {
        ensure!(self.node.lives(), "{by}: the process ended");
        self.kafka
            .kafka(3, &api_versions())
            .with_context(|| format!("{by}: the Kafka bystander"))?;
        self.broker
            .remoting(28, &[], &[])
            .with_context(|| format!("{by}: the RocketMQ bystander"))?;
        let memory = resident_kib(self.node.pid())?;
        ensure!(
            memory < self.memory_kib + MEMORY_GROWTH_MAX_KIB,
            "{by}: memory grew from {} KiB to {memory} KiB",
            self.memory_kib
        );
        Ok(())
    }
}

/// Physical memory of a process that is its own: pages of files come and go as others need memory.
pub fn resident_kib(pid: u32) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).context("RssAnon")?;
    line.split_whitespace().nth(1).context("a number")?.parse().context("KiB")
}

/// Case B18: what is no frame of ours is closed at once, without waiting for the length it seems to claim.
#[test]
fn other_protocols_and_absurd_lengths_are_closed_at_once() {
    let mut attacked = Attacked::start().unwrap();
    let openings: [(&str, &[u8]); 7] = [
        ("TLS ClientHello", &[0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xFC, 0x03, 0x03]),
        ("HTTP GET", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        ("length 0", &[0, 0, 0, 0]),
        ("length -1", &[0xFF; 4]),
        ("length i32::MIN", &[0x80, 0, 0, 0]),
        ("length i32::MAX", &[0x7F, 0xFF, 0xFF, 0xFF]),
        ("length 100 MiB + 1", &[0x06, 0x40, 0x00, 0x01]),
    ];
    let node = &attacked.node;
    for address in [node.kafka(), node.namesrv(), node.broker()] {
        for (name, bytes) in openings {
            let mut connection = Connection::open(&address, LIMIT).unwrap();
            connection.send(bytes).unwrap();
            assert!(connection.closed_by_peer().unwrap(), "{name} to {address}");
        }
    }
    attacked.unharmed("absurd openings").unwrap();
}
