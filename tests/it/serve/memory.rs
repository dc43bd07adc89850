//! Many clients that send half of large requests, or take none of their answers: memory stays within its bounds and
//! others are served.

use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use duolog_tests::cluster::{Launch, Node};
use duolog_tests::raw_client::{Connection, RemotingFrame};
use duolog_tests::{raw_kafka, wait};

const LIMIT: Duration = Duration::from_secs(120);
/// `queued.max.request.bytes` of these nodes.
const REQUEST_BYTES: usize = 64 << 20;
const FRAME_BYTES: usize = 15 << 20;
const CONNECTIONS: usize = 100;
/// A node that has taken nothing for so long takes nothing more.
const QUIET: Duration = Duration::from_secs(1);
/// Beside the requests themselves: buffers of connections, what the allocator keeps, and each block up to a whole huge page (2 MiB). Without
/// a bound the halves would take ten times as much.
const SLACK_KIB: u64 = 96 << 10;

fn start(directory: &std::path::Path) -> Node {
    let launch = Launch::new(directory).unwrap();
    launch
        .set("queued.max.request.bytes", REQUEST_BYTES)
        .set("socket.request.max.bytes", FRAME_BYTES * 2)
        .start()
        .unwrap()
}

/// Connections, and how much of what each sends was taken.
type Poured = Vec<(TcpStream, usize)>;

fn sum(poured: &Poured) -> usize {
    poured.iter().map(|(_, sent)| sent).sum()
}

/// Sends `bytes` over many connections at once, as much as the node and the sockets between take.
fn pour(address: &str, bytes: &[u8]) -> anyhow::Result<Poured> {
    let mut poured = Poured::new();
    for _ in 0..CONNECTIONS {
        let stream = TcpStream::connect(address)?;
        stream.set_nonblocking(true)?;
        poured.push((stream, 0));
    }
    let (start, mut moved) = (Instant::now(), Instant::now());
    // The node is meant to stop taking more at some point.
    while moved.elapsed() < QUIET || sum(&poured) <= REQUEST_BYTES / 2 {
        ensure!(start.elapsed() < LIMIT, "{} bytes were taken", sum(&poured));
        let before = sum(&poured);
        for (stream, sent) in &mut poured {
            match stream.write(&bytes[*sent..]) {
                Ok(count) => *sent += count,
                // One that gets no further for long makes room for others.
                Err(error) => ensure!(
                    matches!(
                        error.kind(),
                        ErrorKind::WouldBlock | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
                    ),
                    "{error}"
                ),
            }
        }
        if sum(&poured) > before {
            moved = Instant::now();
        } else {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    Ok(poured)
}

fn memory_stays_bounded(node: &Node, address: &str, half: &[u8]) {
    let before = super::super::malformed::resident_kib(node.pid()).unwrap();
    let connections = pour(address, half).unwrap();
    let poured = sum(&connections);
    let grown = super::super::malformed::resident_kib(node.pid()).unwrap().saturating_sub(before);
    let bound = (REQUEST_BYTES as u64 >> 10) + SLACK_KIB;
    assert!(grown < bound, "{poured} bytes in {CONNECTIONS} halves cost {grown} KiB");
    // Small requests need no room.
    let mut kafka = Connection::open(&node.kafka(), LIMIT).unwrap();
    raw_kafka::create_topic(&mut kafka, "small", 1).unwrap();
    let request = raw_kafka::produce("small", 0, -1, raw_kafka::batch(&[b"v"], None));
    let answer = raw_kafka::produced(kafka.kafka(9, &request).unwrap()).unwrap();
    assert_eq!(answer.error_code, 0);
    // Room comes back with the connections that go.
    drop(connections);
    let large = vec![b'v'; 900_000];
    let request = raw_kafka::produce("small", 0, -1, raw_kafka::batch(&[&large], None));
    wait::until("a large request is served", LIMIT, || {
        let mut kafka = Connection::open(&node.kafka(), LIMIT)?;
        let answer = raw_kafka::produced(kafka.kafka(9, &request)?)?;
        (answer.error_code == 0).then_some(()).context("an error")
    })
    .unwrap();
}

#[test]
fn half_sent_kafka_requests_share_their_room() {
    let directory = tempfile::tempdir().unwrap();
    let node = start(directory.path());
    let mut frame = u32::try_from(FRAME_BYTES).unwrap().to_be_bytes().to_vec();
    frame.resize(FRAME_BYTES / 2, 1);
    memory_stays_bounded(&node, &node.kafka(), &frame);
}

#[test]
fn half_sent_rocketmq_requests_share_their_room() {
    let directory = tempfile::tempdir().unwrap();
    let node = start(directory.path());
    let body = vec![b'v'; FRAME_BYTES];
    let payload = RemotingFrame::request(310, 1, &[("b", "t")], &body).payload();
    let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes().to_vec();
    frame.extend_from_slice(&payload[..FRAME_BYTES / 2]);
    memory_stays_bounded(&node, &node.broker(), &frame);
}

/// Consumers that never read: each may have one answer waiting, and all together no more than their bound.
#[test]
fn answers_that_nobody_takes_share_their_room() {
    let directory = tempfile::tempdir().unwrap();
    let node = start(directory.path());
    let mut kafka = Connection::open(&node.kafka(), LIMIT).unwrap();
    raw_kafka::create_topic(&mut kafka, "t", 1).unwrap();
    let large = vec![b'v'; 1_000_000];
    for _ in 0..60 {
        let request = raw_kafka::produce("t", 0, 1, raw_kafka::batch(&[&large], None));
        assert_eq!(raw_kafka::produced(kafka.kafka(9, &request).unwrap()).unwrap().error_code, 0);
    }
    let before = super::super::malformed::resident_kib(node.pid()).unwrap();
    let mut readers = Vec::new();
    for _ in 0..60 {
        let mut reader = Connection::open(&node.kafka(), LIMIT).unwrap();
        for _ in 0..4 {
            reader.send_kafka(12, &raw_kafka::fetch_request("t", 0, 0, 50 << 20)).unwrap();
        }
        readers.push(reader);
    }
    let mut other = Connection::open(&node.kafka(), LIMIT).unwrap();
    let values = raw_kafka::values(&mut other, "t", 0, 0).unwrap();
    assert_eq!(values.len(), 60, "whoever reads gets everything");
    let grown = super::super::malformed::resident_kib(node.pid()).unwrap().saturating_sub(before);
    // 256 MiB (ANSWERS_BYTES_MAX), and a last batch for each.
    let bound = (256 << 10) + 60 * 1024 + SLACK_KIB;
    assert!(grown < bound, "60 readers that take nothing cost {grown} KiB");
}
