//! What bounds a RocketMQ connection, over real sockets.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use duolog_bridge::remoting::{Decoder, SegmentedOut};
use duolog_log_core::log::ReadMinimum;
use duolog_log_core::record::{BatchParams, SharedBatches};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::limits::REMOTING_IN_FLIGHT_MAX;
use crate::testing::rocketmq::{
    RemotingSocket, plant, pull_fields, request, send_fields, tagged_batch,
};
use crate::testing::served::{LIMIT, TestNode, eventually};

const NEVER: Duration = Duration::from_secs(600);

/// GET_BROKER_RUNTIME_INFO.
const RUNTIME_INFO: i32 = 28;

fn word(serialize: u8, header_length: u32) -> u32 {
    u32::from(serialize) << 24 | header_length
}

/// Cases B07, B18: after bytes that cannot be a frame the connection is closed, at once and alone.
#[tokio::test(flavor = "multi_thread")]
async fn impossible_frames_close_their_connection_before_they_are_whole() {
    let node = TestNode::start(&[]).await;
    let dispatcher = node.rocketmq();
    let address = node.open_broker(&dispatcher, NEVER).await;
    let mut bystander = RemotingSocket::connect(address).await;
    for (what, length, word) in [
        ("nothing", 0, None),
        ("no room for the header's length", 3, None),
        ("negative", -1, None),
        ("one byte more than a frame may have", 16 * 1024 * 1024 - 3, None),
        ("TLS", 0x1603_0102, None),
        ("HTTP", i32::from_be_bytes(*b"GET "), None),
        ("a header longer than its frame", 100, Some(word(0, 97))),
        ("an unknown kind of header", 100, Some(word(7, 20))),
    ] {
        let mut client = RemotingSocket::connect(address).await;
        let mut bytes = BytesMut::new();
        bytes.put_i32(length);
        if let Some(word) = word {
            bytes.put_u32(word);
        }
        client.send_bytes(&bytes).await;
        assert_eq!(client.receive().await, None, "{what}");
    }
    // The largest length there is, begun and never ended: nothing is reserved for it.
    let mut patient = RemotingSocket::connect(address).await;
    let mut bytes = BytesMut::new();
    bytes.put_i32(16 * 1024 * 1024 - 4);
    bytes.put_u32(word(0, 2));
    patient.send_bytes(&bytes).await;
    bystander.send(request(RUNTIME_INFO, &[], b"")).await;
    assert!(bystander.receive().await.is_some());
    drop(patient);
    drop(bystander);
    eventually("all are forgotten", || dispatcher.sessions().is_empty()).await;
    node.stop().await;
}

/// Beyond the bound nothing more is read from that client; an answer makes room again.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_holds_so_many_pulls_and_no_more() {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[]).await;
    let dispatcher = node.rocketmq();
    let address = node.open_broker(&dispatcher, NEVER).await;
    let mut client = RemotingSocket::connect(address).await;
    client.hold(&dispatcher, REMOTING_IN_FLIGHT_MAX).await;
    client.send(request(RUNTIME_INFO, &[], b"")).await;
    let mut other = RemotingSocket::connect(address).await;
    other.send(request(RUNTIME_INFO, &[], b"")).await;
    assert!(other.receive().await.is_some(), "others are served");
    assert_eq!(dispatcher.held_pulls(), REMOTING_IN_FLIGHT_MAX);
    plant(&node.partition("t", 0), tagged_batch(BatchParams::default(), &[("", b"a")])).await;
    for _ in 0..=REMOTING_IN_FLIGHT_MAX {
        assert!(client.receive().await.is_some(), "the pulls, and what waited behind them");
    }
    assert_eq!(dispatcher.held_pulls(), 0);
    node.stop().await;
}

/// Pitfall 31: a pull that waits goes with its connection.
#[tokio::test(flavor = "multi_thread")]
async fn held_pulls_end_with_their_connection() {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[]).await;
    let dispatcher = node.rocketmq();
    let address = node.open_broker(&dispatcher, NEVER).await;
    let mut client = RemotingSocket::connect(address).await;
    client.hold(&dispatcher, 3).await;
    drop(client);
    eventually("let go", || dispatcher.held_pulls() == 0).await;
    let id = node.node.controller.image().topic("t").expect("t").id;
    let mut client = RemotingSocket::connect(address).await;
    client.hold(&dispatcher, 1).await;
    node.node.delete_topic(id).await.expect("deleted");
    assert!(client.receive().await.is_some(), "pitfall 31: the topic is gone");
    node.stop().await;
}

/// A client that asks and does not read is given up; meanwhile only a bounded part of what it asked
/// for is made ready, and others are served.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_takes_no_answers_is_given_up() {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[]).await;
    let value = vec![b'x'; 200_000];
    plant(&node.partition("t", 0), tagged_batch(BatchParams::default(), &[("", &value)])).await;
    let dispatcher = node.rocketmq();
    let address = node.open_broker(&dispatcher, Duration::from_secs(2)).await;
    let patient = node.open_broker(&dispatcher, NEVER).await;
    let mut client = RemotingSocket::connect(address).await;
    let pull = request(11, &pull_fields("t", "0", &[]), b"");
    let mut asked: u64 = 0;
    while client.send(pull.clone()).await {
        asked += 1;
    }
    let mut other = RemotingSocket::connect(patient).await;
    other.send(pull).await;
    assert!(other.receive().await.is_some());
    assert!(node.node.metrics.records_out() < asked + 1, "not all was made ready");
    eventually("given up", || dispatcher.sessions().len() <= 1).await;
    node.stop().await;
}

/// It may have been given a turn that others wait for.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_goes_on_while_its_client_takes_no_answers() {
    let node = TestNode::start(&[]).await;
    for topic in ["t", "u"] {
        node.create_topic(topic, &[]).await;
    }
    let value = vec![b'x'; 200_000];
    plant(&node.partition("u", 0), tagged_batch(BatchParams::default(), &[("", &value)])).await;
    let dispatcher = node.rocketmq();
    let address = node.open_broker(&dispatcher, NEVER).await;
    let mut client = RemotingSocket::connect(address).await;
    client.hold(&dispatcher, 1).await;
    // Their answers are more than sockets hold.
    for _ in 0..100 {
        assert!(client.send(request(11, &pull_fields("u", "0", &[]), b"")).await);
    }
    let (mut made_ready, mut looks) = (0, 0);
    eventually("an answer is stuck", || {
        let now = node.node.metrics.records_out();
        looks = if now > 0 && now == made_ready { looks + 1 } else { 0 };
        made_ready = now;
        looks > 50
    })
    .await;
    plant(&node.partition("t", 0), tagged_batch(BatchParams::default(), &[("", b"a")])).await;
    eventually("the held pull has its answer", || dispatcher.held_pulls() == 0).await;
    assert!(node.node.metrics.records_out() < 101, "not all was made ready");
    node.stop().await;
}

/// As `channelExpiredTimeout` and the idle time of the original's server.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_is_closed_and_a_busy_one_is_not() {
    let node = TestNode::start(&[]).await;
    let dispatcher = node.rocketmq();
    let address = node.open_broker(&dispatcher, Duration::from_millis(300)).await;
    let mut idle = RemotingSocket::connect(address).await;
    assert_eq!(idle.receive().await, None);
    node.stop().await;
}

/// What was begun is answered before a stopping node closes: here a pull that waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_node_answers_what_it_owes() {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[]).await;
    let dispatcher = node.rocketmq();
    let address = node.open_broker(&dispatcher, NEVER).await;
    let mut client = RemotingSocket::connect(address).await;
    client.hold(&dispatcher, 3).await;
    node.node.stopping.cancel();
    for _ in 0..3 {
        let answer = client.receive().await.expect("an answer before the close");
        assert!(String::from_utf8_lossy(&answer).contains("\"code\":19"));
    }
    assert_eq!(client.receive().await, None);
    node.stop().await;
}

fn heartbeat(client_id: &str) -> Vec<u8> {
    let subscription = "{\"classFilterMode\":false,\"codeSet\":[],\"expressionType\":\"TAG\",\
                        \"subString\":\"*\",\"subVersion\":1,\"tagsSet\":[],\"topic\":\"t\"}";
    format!(
        "{{\"clientID\":\"{client_id}\",\"consumerDataSet\":[{{\"consumeFromWhere\":\
         \"CONSUME_FROM_LAST_OFFSET\",\"consumeType\":\"CONSUME_PASSIVELY\",\"groupName\":\"g\",\
         \"messageModel\":\"CLUSTERING\",\"subscriptionDataSet\":[{subscription}],\
         \"unitMode\":false}}],\"producerDataSet\":[]}}"
    )
    .into_bytes()
}

/// Without heartbeats a client is dropped, though it pulls: its connection is closed, the others of
/// its group are told. Source: ClientHousekeepingService.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_heartbeats_is_closed_and_the_others_are_told() {
    let node = TestNode::start(&["rocketmq.channelExpiredTimeout=5000"]).await;
    node.create_topic("t", &[]).await;
    let dispatcher = node.rocketmq();
    let address = node.open_broker(&dispatcher, NEVER).await;
    let mut silent = RemotingSocket::connect(address).await;
    silent.send(request(34, &[], &heartbeat("silent"))).await;
    assert!(silent.receive().await.is_some());
    let mut lively = RemotingSocket::connect(address).await;
    let lives = async {
        // One notice for its own coming, one for the other's going.
        let mut notices = 0;
        while notices < 2 {
            lively.send(request(34, &[], &heartbeat("lively"))).await;
            let frame = lively.receive().await.expect("an answer or a notice");
            notices += u32::from(String::from_utf8_lossy(&frame).contains("consumerGroup"));
        }
    };
    let pulls = async {
        let pull = request(11, &pull_fields("t", "0", &[]), b"");
        while silent.send(pull.clone()).await && silent.receive().await.is_some() {}
    };
    let both = async { tokio::join!(lives, pulls) };
    tokio::time::timeout(LIMIT, both).await.expect("closed, and told");
    eventually("only one is left", || dispatcher.sessions().len() == 1).await;
    node.stop().await;
}

fn send(opaque: i32) -> Bytes {
    let mut send = request(310, &send_fields("t", &[]), format!("message {opaque}").as_bytes());
    send.opaque = opaque;
    let mut out = SegmentedOut::default();
    send.encode(&mut out).expect("encodable");
    out.into_bytes()
}

/// The offset that each of so many answers tells, by its opaque number.
async fn offsets(socket: &mut TcpStream, count: usize) -> Vec<(i32, i64)> {
    let (decoder, mut buffer, mut offsets) = (Decoder::default(), BytesMut::new(), Vec::new());
    while offsets.len() < count {
        let read = tokio::time::timeout(LIMIT, socket.read_buf(&mut buffer));
        assert_ne!(read.await.expect("in time").expect("a connection"), 0, "closed");
        while let Some(answer) = decoder.decode(&mut buffer).expect("frames") {
            assert_eq!(answer.code, 0, "{:?}", answer.remark);
            offsets.push((answer.opaque, answer.field("queueOffset").expect("an offset")));
        }
    }
    offsets.sort_unstable();
    offsets
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_that_come_together_are_written_together_in_their_order() {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[]).await;
    let dispatcher = node.rocketmq();
    let address = node.open_broker(&dispatcher, NEVER).await;
    let mut socket = TcpStream::connect(address).await.expect("listening");
    socket.write_all(&send(0)).await.expect("the node reads");
    assert_eq!(offsets(&mut socket, 1).await, [(0, 0)]);
    let together: Vec<u8> = (1..=5).flat_map(send).collect();
    socket.write_all(&together).await.expect("the node reads");
    assert_eq!(offsets(&mut socket, 5).await, [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)]);

    let reader = node.partition("t", 0).reader().await.expect("a sound log");
    let read = reader.read(0, 1 << 20, 6, ReadMinimum::OneBatch).expect("readable");
    let batches = read.pieces.into_iter().flat_map(SharedBatches::new);
    let counts: Vec<i32> = batches.map(|batch| batch.expect("whole").0.record_count).collect();
    assert_eq!(counts, [1, 5], "one batch of what one read brought");
    node.stop().await;
}
