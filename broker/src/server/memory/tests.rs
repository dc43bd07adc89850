use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use duolog_bridge::remoting::SegmentedOut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::kafka::codec::encode_request;
use crate::testing::rocketmq::{request, send_fields};
use crate::testing::served::{LIMIT, TestNode, batch, eventually, produce_request};

/// A Produce and a SendMessage of some 600 kB, and where to send each.
async fn large_requests(node: &TestNode) -> [(SocketAddr, Bytes); 2] {
    let value = "v".repeat(600_000);
    let produce = produce_request("t", 1, batch(&[value.as_str()]).freeze());
    let produce = encode_request(7, None, 9, &produce).expect("encodable").to_bytes();
    let mut send = SegmentedOut::default();
    let command = request(310, &send_fields("t", &[]), value.as_bytes());
    command.encode(&mut send).expect("encodable");
    let broker = node.open_broker(&node.rocketmq(), Duration::from_secs(600)).await;
    [(node.kafka, produce), (broker, send.into_bytes())]
}

async fn sender(address: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut socket = TcpStream::connect(address).await.expect("listening");
    socket.write_all(bytes).await.expect("the node reads");
    socket
}

async fn is_answered(socket: &mut TcpStream) {
    let answer = tokio::time::timeout(LIMIT, socket.read_i32()).await;
    assert!(answer.expect("in time").expect("a connection") > 0);
}

const SETTINGS: [&str; 2] =
    ["queued.max.request.bytes=2000000", "socket.request.max.bytes=2000000"];

#[tokio::test(flavor = "multi_thread")]
async fn what_is_announced_and_not_sent_takes_no_room() {
    let node = TestNode::start(&SETTINGS).await;
    node.create_topic("t", &[]).await;
    for (address, large) in large_requests(&node).await {
        let mut silent = Vec::new();
        for _ in 0..10 {
            silent.push(sender(address, &large[..10_000]).await);
        }
        // One has room for all that it announced, since there was plenty.
        let requests = &node.node.requests;
        eventually("all have begun", || requests.used() > 1_200_000).await;
        is_answered(&mut sender(address, &large).await).await;
        drop(silent);
        eventually("all room comes back", || requests.used() == 0).await;
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_half_there_are_finished_though_there_is_no_room() {
    let node = TestNode::start(&SETTINGS).await;
    node.create_topic("t", &[]).await;
    for (address, large) in large_requests(&node).await {
        let (go, mut senders) = (CancellationToken::new(), JoinSet::new());
        for _ in 0..8 {
            let (go, large) = (go.clone(), large.clone());
            senders.spawn(async move {
                let (half, rest) = large.split_at(large.len() / 2);
                let mut socket = sender(address, half).await;
                go.cancelled().await;
                socket.write_all(rest).await.expect("the node reads");
                is_answered(&mut socket).await;
            });
        }
        let requests = &node.node.requests;
        eventually("some wait", || requests.is_short()).await;
        // What is small needs no room.
        node.connect().await.ping().await;
        go.cancel();
        senders.join_all().await;
        eventually("all room comes back", || requests.used() == 0).await;
    }
    node.stop().await;
}

#[test]
fn answers_get_smaller_the_more_of_them_nobody_takes() {
    let memory = AnswerMemory::default();
    assert_eq!(memory.reserve(10).bytes(), 10);
    let unwritten: Vec<_> = (0..100).map(|_| memory.reserve(usize::MAX)).collect();
    assert_eq!(unwritten[0].bytes(), ANSWERS_BYTES_MAX / 2);
    assert_eq!(unwritten[99].bytes(), ANSWER_SHARE_BYTES_MIN);
    assert!(memory.used() <= ANSWERS_BYTES_MAX + 100 * ANSWER_SHARE_BYTES_MIN);
    drop(unwritten);
    assert_eq!(memory.used(), 0);
}

/// What is being read by one thread is no room for the answers of another.
#[test]
fn an_answer_counts_before_it_is_built_and_as_it_is_then() {
    let memory = AnswerMemory::default();
    let building = memory.reserve(50 << 20);
    assert_eq!((building.bytes(), memory.used()), (50 << 20, 50 << 20));
    let built = building.became(7);
    assert_eq!((built.bytes(), memory.used()), (7, 7));
    drop(built);
    assert_eq!(memory.used(), 0);
}
