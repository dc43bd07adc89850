//! What a connection does with frames, against a whole node.

use bytes::{BufMut, BytesMut};
use duolog_log_core::event::EventKind;
use duolog_log_core::gate::{GateAction, GateFilter, GatePoint};

use crate::config::change::Change;
use crate::kafka::codec::messages::fetch_request::{FetchPartition, FetchTopic};
use crate::kafka::codec::messages::{
    ApiVersionsRequest, ApiVersionsResponse, FetchRequest, FetchResponse, MetadataRequest,
    MetadataResponse, ProduceResponse,
};
use crate::kafka::codec::{ApiKey, Records, decode_response, encode_request};
use crate::testing::rocketmq::plant;
use crate::testing::served::{Client, TestNode, batch, eventually, produce_request};

fn frame(body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    frame.put_i32(i32::try_from(body.len()).expect("small"));
    frame.put_slice(body);
    frame
}

/// Header 1 of a request.
fn header(key: i16, version: i16, id: i32) -> Vec<u8> {
    let mut header = Vec::new();
    header.put_i16(key);
    header.put_i16(version);
    header.put_i32(id);
    header.put_i16(1);
    header.put_u8(b'x');
    header
}

async fn is_closed(client: &mut Client) -> bool {
    client.receive_frame().await.is_none()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_version_of_api_versions_is_answered_in_version_0() {
    let node = TestNode::start(&[]).await;
    for version in [99, i16::MAX, -1] {
        let mut client = node.connect().await;
        let body = [header(18, version, 7), vec![0xA5; 20]].concat();
        client.send_bytes(&frame(&body)).await;
        let answer = client.receive_frame().await.expect("case B03: an answer");
        let (id, answer): (_, ApiVersionsResponse) = decode_response(&answer, 0).expect("v0");
        assert_eq!((id, answer.error_code), (7, 35));
        let own = answer.api_keys.iter().find(|api| api.api_key == 18).expect("itself");
        assert_eq!((own.min_version, own.max_version), (0, 4));
        let answer: ApiVersionsResponse = client
            .call(
                3,
                &ApiVersionsRequest {
                    client_software_name: "a".into(),
                    client_software_version: "1".into(),
                },
            )
            .await;
        assert_eq!(answer.error_code, 0);
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_answered_closes_its_connection_alone() {
    let node = TestNode::start(&[]).await;
    let mut other = node.connect().await;
    other.ping().await;
    let huge_array = |length: u32| {
        let mut body = header(3, 1, 1);
        body.put_u32(length);
        frame(&body)
    };
    let cases = [
        ("case B01: two billion elements", huge_array(0x7FFF_FFFF)),
        ("case B01: a negative count", huge_array(0x8000_0000)),
        ("case B01: minus two is not null", huge_array(0xFFFF_FFFE)),
        ("case B03: an unknown key", frame(&header(999, 0, 1))),
        ("case B03: an unknown version", frame(&header(3, 99, 1))),
        ("an empty frame", 0_i32.to_be_bytes().to_vec()),
        ("a negative length", (-1_i32).to_be_bytes().to_vec()),
        ("case B18: over 100 MiB", (100 * 1024 * 1024 + 1_i32).to_be_bytes().to_vec()),
        ("case B18: TLS", vec![0x16, 0x03, 0x01, 0x02]),
        ("case B18: HTTP", b"GET / HTTP/1.1\r\n\r\n".to_vec()),
        ("a header cut short", frame(&[0, 3, 0])),
    ];
    for (what, bytes) in cases {
        let mut client = node.connect().await;
        client.send_bytes(&bytes).await;
        assert!(is_closed(&mut client).await, "{what}");
        other.ping().await;
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_come_in_the_order_of_the_requests_and_none_to_acks_0() {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[("flush.messages", "1")]).await;
    let mut client = node.connect().await;
    // Case B14: one segment with an unanswered write, a cheap request, a slow one, a cheap one.
    let client_id = "test".into();
    let mut bytes = BytesMut::new();
    let produce = |acks| produce_request("t", acks, batch(&["v"]).freeze());
    for frame in [
        encode_request(1, Some(&client_id), 7, &produce(0)),
        encode_request(2, Some(&client_id), 9, &MetadataRequest::default()),
        encode_request(3, Some(&client_id), 7, &produce(1)),
        encode_request(4, Some(&client_id), 0, &ApiVersionsRequest::default()),
    ] {
        bytes.put_slice(&frame.expect("encodable").to_bytes());
    }
    client.send_bytes(&bytes).await;
    let (id, _): (_, MetadataResponse) = client.receive(9).await;
    assert_eq!(id, 2);
    let (id, answer): (_, ProduceResponse) = client.receive(7).await;
    let partition = &answer.responses[0].partition_responses[0];
    assert_eq!((id, partition.error_code, partition.base_offset), (3, 0, 1));
    let (id, _): (_, ApiVersionsResponse) = client.receive(0).await;
    assert_eq!(id, 4);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_write_without_answer_closes_the_connection() {
    let node = TestNode::start(&[]).await;
    let topic = node.create_topic("t", &[]).await;
    let mut torn = batch(&["v"]);
    let last = torn.len() - 1;
    torn[last] ^= 1;
    // Case B15: a bad name, and a batch whose CRC does not fit.
    for request in
        [produce_request("a/b", 0, batch(&["v"]).freeze()), produce_request("t", 0, torn.freeze())]
    {
        let mut client = node.connect().await;
        client.send(7, &request).await;
        client.send(0, &ApiVersionsRequest::default()).await;
        assert!(is_closed(&mut client).await);
    }
    let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
    partition.reader().await.expect("opened");
    assert_eq!(partition.offsets().log_end, 0, "nothing was appended");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelined_writes_do_not_wait_for_each_other() {
    let node = TestNode::start(&[]).await;
    let topic = node.create_topic("t", &[("flush.messages", "1")]).await;
    let gates = &node.node.instruments.gates;
    let filter = GateFilter { topic: Some("t".to_owned()), ..GateFilter::default() };
    let gate = gates.arm(GatePoint::FlushBefore, filter, GateAction::Hold).expect("armed");
    let mut client = node.connect().await;
    for value in ["a", "b", "c"] {
        client.send(9, &produce_request("t", -1, batch(&[value]).freeze())).await;
    }
    let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
    let in_log = partition.opened().await;
    eventually("all three are in the log", || in_log.log_end_offset() == 3).await;
    // Unsynced, so nobody sees them and nobody is answered (flush.messages=1, design rule 4).
    assert_eq!(partition.offsets().high_watermark, 0);
    assert!(node.node.instruments.release(gate));
    for offset in 0..3 {
        let (_, answer): (_, ProduceResponse) = client.receive(9).await;
        assert_eq!(answer.responses[0].partition_responses[0].base_offset, offset);
    }
    assert!(partition.synced() >= 1);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_connections_of_an_address_are_closed() {
    let node = TestNode::start(&["max.connections.per.ip=2"]).await;
    let (mut first, mut second) = (node.connect().await, node.connect().await);
    first.ping().await;
    second.ping().await;
    assert!(is_closed(&mut node.connect().await).await);
    drop(first);
    let free = async {
        loop {
            let mut client = node.connect().await;
            client.send(0, &ApiVersionsRequest::default()).await;
            if client.receive_frame().await.is_some() {
                return;
            }
        }
    };
    tokio::time::timeout(crate::testing::served::LIMIT, free).await.expect("a place comes free");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_is_closed() {
    let node = TestNode::start(&["connections.max.idle.ms=50"]).await;
    let mut client = node.connect().await;
    assert!(is_closed(&mut client).await);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_sends_no_more_gets_all_its_answers() {
    let node = TestNode::start(&[]).await;
    let topic = node.create_topic("t", &[]).await;
    let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
    let gate = node.arm(GatePoint::HighWatermarkBefore, "t", GateAction::Hold);
    let mut client = node.connect().await;
    for value in ["a", "b", "c"] {
        client.send(9, &produce_request("t", -1, batch(&[value]).freeze())).await;
    }
    client.send(0, &ApiVersionsRequest::default()).await;
    client.end().await;
    eventually("all is in the log", || partition.offsets().log_end == 3).await;
    assert!(node.node.instruments.release(gate));
    for offset in 0..3 {
        let (_, answer): (_, ProduceResponse) = client.receive(9).await;
        assert_eq!(answer.responses[0].partition_responses[0].base_offset, offset);
    }
    assert!(client.receive_frame().await.is_some(), "the last request, too");
    assert!(is_closed(&mut client).await);
    node.stop().await;
}

/// Asks for far more than sockets hold, and takes none of it.
async fn take_nothing(node: &TestNode) -> Client {
    let large = "v".repeat(1_000_000);
    for _ in 0..40 {
        // Not over a connection: it might be silent for too long.
        plant(&node.partition("t", 0), batch(&[large.as_str()])).await;
    }
    let mut reader = node.connect().await;
    for _ in 0..3 {
        reader.send(12, &fetch_all("t")).await;
    }
    eventually("an answer waits", || node.node.answers.used() > 1_000_000).await;
    reader
}

fn fetch_all(topic: &str) -> FetchRequest {
    let partition = FetchPartition {
        partition: 0,
        fetch_offset: 0,
        partition_max_bytes: i32::MAX,
        ..FetchPartition::default()
    };
    FetchRequest {
        max_wait_ms: 0,
        max_bytes: i32::MAX,
        topics: vec![FetchTopic {
            topic: topic.into(),
            partitions: vec![partition],
            ..FetchTopic::default()
        }],
        ..FetchRequest::default()
    }
}

/// It may have been given a turn that others wait for.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_goes_on_while_its_client_takes_no_answers() {
    let node = TestNode::start(&[]).await;
    for topic in ["t", "u", "w"] {
        node.create_topic(topic, &[]).await;
    }
    let large = "v".repeat(1_000_000);
    for _ in 0..40 {
        plant(&node.partition("t", 0), batch(&[large.as_str()])).await;
    }
    node.listen();
    let gate = node.arm(GatePoint::HighWatermarkBefore, "w", GateAction::Hold);
    let mut reader = node.connect().await;
    reader.send(9, &produce_request("w", -1, batch(&["v"]).freeze())).await;
    reader.send(12, &fetch_all("t")).await;
    let waiting = FetchRequest { max_wait_ms: i32::MAX, min_bytes: 1, ..fetch_all("u") };
    reader.send(12, &waiting).await;
    let partition = node.partition("u", 0);
    eventually("the last request waits", || partition.is_awaited()).await;
    assert!(node.node.instruments.release(gate));
    // The answer behind this one is more than sockets hold.
    let _: (_, ProduceResponse) = reader.receive(9).await;
    plant(&partition, batch(&["v"])).await;
    let read = || !node.told.of(EventKind::Deliver, "u").is_empty();
    eventually("the last request has its answer", read).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_takes_no_answers_is_closed_and_its_answers_dropped() {
    let node = TestNode::start(&["connections.max.idle.ms=3000"]).await;
    node.create_topic("t", &[]).await;
    node.listen();
    let reader = take_nothing(&node).await;
    eventually("it is closed", || {
        let closed = node.told.of(EventKind::ClientClose, "t");
        closed.iter().any(|event| {
            event.cause.as_deref().is_some_and(|cause| cause.ends_with("takes no answers"))
        })
    })
    .await;
    eventually("nothing is kept for it", || node.node.answers.used() == 0).await;
    drop(reader);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_takes_no_answers_does_not_hold_up_a_stop() {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[]).await;
    let reader = take_nothing(&node).await;
    node.stop().await;
    drop(reader);
}

#[tokio::test(flavor = "multi_thread")]
async fn fetches_get_smaller_when_answers_are_not_taken() {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[]).await;
    let mut client = node.connect().await;
    for _ in 0..4 {
        client.produce("t", 1, batch(&["v".repeat(40_000).as_str()])).await;
    }
    let others = node.node.answers.count(crate::limits::ANSWERS_BYTES_MAX);
    let response: FetchResponse = client.call(12, &fetch_all("t")).await;
    let bytes = response.responses[0].partitions[0].records.as_ref().map_or(0, Records::len);
    assert!((40_000..80_000).contains(&bytes), "one batch of {bytes}");
    drop(others);
    let response: FetchResponse = client.call(12, &fetch_all("t")).await;
    let bytes = response.responses[0].partitions[0].records.as_ref().map_or(0, Records::len);
    assert!(bytes > 160_000, "{bytes}");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_bound_of_connections_acts_at_once() {
    let node = TestNode::start(&[]).await;
    let mut first = node.connect().await;
    first.ping().await;
    let set = |value: &str| {
        let change = Change::Set(value.to_owned());
        node.node
            .controller
            .alter_broker_config("", vec![("max.connections.per.ip".into(), change)])
    };
    set("1").await.expect("changed");
    assert!(is_closed(&mut node.connect().await).await);
    set("5").await.expect("changed");
    node.connect().await.ping().await;
    let none = vec![("max.connections".to_owned(), Change::Set("1".to_owned()))];
    node.node.controller.alter_broker_config("", none).await.expect("changed");
    let mut waits = node.connect().await;
    waits.send(0, &ApiVersionsRequest::default()).await;
    first.ping().await;
    drop(first);
    assert!(waits.receive_frame().await.is_some(), "served once the first has gone");
    node.stop().await;
}

#[test]
fn every_api_of_the_table_has_its_key_once_and_in_order() {
    let keys: Vec<ApiKey> = crate::kafka::api::APIS.iter().map(|api| api.key).collect();
    assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "{keys:?}");
}
