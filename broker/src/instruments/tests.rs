//! Every kind of event and every gate of the Kafka side, seen through whole requests: told once, at its place, with
//! its fields.

use duolog_log_core::event::{Event, EventKind, Protocol};
use duolog_log_core::gate::{GateAction, GateFilter, GatePoint};

use crate::kafka::codec::messages::fetch_request::{FetchPartition, FetchTopic};
use crate::kafka::codec::messages::join_group_request::JoinGroupRequestProtocol;
use crate::kafka::codec::messages::leave_group_request::MemberIdentity;
use crate::kafka::codec::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use crate::kafka::codec::messages::sync_group_request::SyncGroupRequestAssignment;
use crate::kafka::codec::messages::{
    FetchRequest, FetchResponse, FindCoordinatorRequest, FindCoordinatorResponse, HeartbeatRequest,
    HeartbeatResponse, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, LeaveGroupResponse,
    OffsetCommitRequest, OffsetCommitResponse, ProduceResponse, SyncGroupRequest,
    SyncGroupResponse,
};
use crate::testing::coordinator_of;
use crate::testing::served::{Client, TestNode, batch, eventually, produce_request};

/// What an event says, in one line; `-` for what it does not name.
fn shown(event: &Event) -> String {
    let protocol = match event.protocol {
        Some(Protocol::Kafka) => "kafka",
        Some(Protocol::RocketMq) => "rocketmq",
        None => "-",
    };
    let place = match (&event.topic, event.partition) {
        (Some(topic), Some(partition)) => format!("{topic}-{partition}"),
        _ => "-".to_owned(),
    };
    let number = |value: Option<i64>| value.map_or_else(|| "-".to_owned(), |v| v.to_string());
    let text = |value: &Option<std::sync::Arc<str>>| value.as_deref().unwrap_or("-").to_owned();
    format!(
        "{} {place} offset {} epoch {} {protocol} {}: {}",
        event.kind,
        number(event.offset.map(|offset| offset.0)),
        number(event.epoch.map(|epoch| i64::from(epoch.0))),
        text(&event.client),
        text(&event.cause),
    )
}

/// The events of one kind, on topic `t` where they name one.
fn told(node: &TestNode, kind: EventKind) -> Vec<String> {
    node.told.of(kind, "t").iter().map(shown).collect()
}

async fn heard(assignments: &[&str]) -> (TestNode, Client) {
    let node = TestNode::start(assignments).await;
    node.create_topic("t", &[]).await;
    node.listen();
    let client = node.connect().await;
    (node, client)
}

fn fetch(max_wait_ms: i32) -> FetchRequest {
    let partition = FetchPartition {
        partition: 0,
        fetch_offset: 0,
        partition_max_bytes: 1024 * 1024,
        ..FetchPartition::default()
    };
    FetchRequest {
        max_wait_ms,
        min_bytes: 1,
        max_bytes: i32::MAX,
        topics: vec![FetchTopic {
            topic: "t".into(),
            partitions: vec![partition],
            ..FetchTopic::default()
        }],
        ..FetchRequest::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_is_told_from_the_request_to_the_answer() {
    let (node, mut client) = heard(&[]).await;
    client.produce("t", -1, batch(&["a", "b"])).await;
    client.produce("t", 1, batch(&["c"])).await;
    assert_eq!(client.produce("t", 7, batch(&["refused"])).await.0, 21);
    let none = produce_request("t", 0, batch(&["no answer"]).freeze());
    client.send(9, &none).await;
    client.ping().await;
    let received = "produce.recv t-0 offset - epoch - kafka test: -";
    assert_eq!(told(&node, EventKind::ProduceReceived), [received; 3], "not what acks refuse");
    assert_eq!(told(&node, EventKind::LeaderElect), ["leader.elect t-0 offset 0 epoch 0 - -: -"]);
    eventually("the write without answer", || told(&node, EventKind::ProduceAppended).len() == 3)
        .await;
    assert_eq!(
        told(&node, EventKind::ProduceAppended),
        [
            "produce.append t-0 offset 1 epoch 0 - -: -",
            "produce.append t-0 offset 2 epoch 0 - -: -",
            "produce.append t-0 offset 3 epoch 0 - -: -",
        ]
    );
    for kind in [EventKind::HighWatermarkAdvanced, EventKind::LastStableOffsetAdvanced] {
        let rises = [2, 3, 4].map(|to| format!("{kind} t-0 offset {to} epoch 0 - -: -"));
        eventually("the last rise", || told(&node, kind) == rises).await;
    }
    assert_eq!(
        told(&node, EventKind::ProduceAcknowledged),
        [
            "produce.ack t-0 offset 0 epoch 0 kafka test: -",
            "produce.ack t-0 offset 2 epoch 0 kafka test: -",
            "produce.ack t-0 offset - epoch - kafka test: error 21",
        ],
        "acks=0 has no answer"
    );
    let order: Vec<_> = node.told.events().iter().map(|event| event.kind).collect();
    let first = |kind| order.iter().position(|told| *told == kind).expect("told");
    assert!(first(EventKind::ProduceReceived) < first(EventKind::ProduceAppended));
    assert!(first(EventKind::ProduceAppended) < first(EventKind::HighWatermarkAdvanced));
    assert!(first(EventKind::HighWatermarkAdvanced) < first(EventKind::ProduceAcknowledged));
    let mut numbers: Vec<_> = node.told.events().iter().map(|event| event.seq).collect();
    // Two threads may be heard in another order than they were numbered.
    numbers.sort_unstable();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>(), "no gap in the stream");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_leaves_for_a_consumer_is_told_and_nothing_else() {
    let (node, mut client) = heard(&[]).await;
    let _: FetchResponse = client.call(12, &fetch(0)).await;
    assert!(told(&node, EventKind::Deliver).is_empty(), "nothing was there");
    let (first, second) = (batch(&["a", "b"]), batch(&["c"]));
    let bytes = (first.len() + second.len()) as u64;
    client.produce("t", 1, first).await;
    client.produce("t", 1, second).await;
    let _: FetchResponse = client.call(12, &fetch(0)).await;
    let delivered = ["deliver t-0 offset 0 epoch 0 kafka test: 3 records"];
    assert_eq!(told(&node, EventKind::Deliver), delivered);
    let out = &node.node.metrics.kafka_out;
    assert_eq!((out.records.value(), out.bytes.value()), (3, bytes));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_told_with_the_reason_of_their_end() {
    let (node, mut client) = heard(&[]).await;
    client.ping().await;
    let mut foreign = node.connect().await;
    foreign.send_bytes(b"GET / HTTP/1.1\r\n\r\n").await;
    assert!(foreign.receive_frame().await.is_none());
    drop(client);
    let closed = || told(&node, EventKind::ClientClose);
    eventually("both are closed", || closed().len() == 2).await;
    let connected = told(&node, EventKind::ClientConnect);
    assert_eq!(connected.len(), 2);
    for line in &connected {
        assert!(line.starts_with("client.connect - offset - epoch - kafka 127.0.0.1:"), "{line}");
    }
    assert!(closed().iter().any(|line| line.ends_with(": closed by the client")), "{:?}", closed());
    assert!(closed().iter().any(|line| line.ends_with("the peer speaks HTTP")), "{:?}", closed());
    let complaints = &node.node.instruments.complaints;
    assert!(!complaints.is_due("127.0.0.1", "Kafka the peer speaks HTTP", 0), "said already");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_tells_of_its_segments_and_its_syncs() {
    let node = TestNode::start(&["log.retention.check.interval.ms=20"]).await;
    let overrides =
        [("segment.bytes", "1048576"), ("flush.messages", "1"), ("retention.bytes", "1048576")];
    node.create_topic("t", &overrides).await;
    node.listen();
    let mut client = node.connect().await;
    let large = "v".repeat(600_000);
    for offset in 0..3 {
        assert_eq!(client.produce("t", 1, batch(&[large.as_str()])).await, (0, offset));
    }
    let rolls = [1, 2].map(|at| format!("log.roll t-0 offset {at} epoch 0 - -: -"));
    assert_eq!(told(&node, EventKind::LogRoll), rolls);
    let flushes = [1, 2, 3].map(|to| format!("log.flush t-0 offset {to} epoch 0 - -: -"));
    // Retention may have the same asked for again meanwhile.
    let mut flushed = told(&node, EventKind::LogFlush);
    flushed.dedup();
    assert_eq!(flushed, flushes);
    eventually("retention", || !told(&node, EventKind::LogDelete).is_empty()).await;
    assert_eq!(told(&node, EventKind::LogDelete), ["log.delete t-0 offset 1 epoch 0 - -: -"]);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_disk_is_told() {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[("flush.messages", "1")]).await;
    let mut client = node.connect().await;
    assert_eq!(client.produce("t", 1, batch(&["v"])).await, (0, 0));
    node.listen();
    let gate = node.arm(GatePoint::FlushBefore, "t", GateAction::Hold);
    client.send(9, &produce_request("t", 1, batch(&["v"]).freeze())).await;
    node.caught(gate).await;
    let _gone = node.disk.kill();
    node.node.instruments.release(gate);
    let (_, answer): (_, ProduceResponse) = client.receive(9).await;
    assert_eq!(answer.responses[0].partition_responses[0].error_code, 56);
    let faults = told(&node, EventKind::FaultDisk);
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].starts_with("fault.disk t-0 offset - epoch 0 - -: "), "{faults:?}");
}

/// Joins as the only member and returns the member's id.
async fn join(client: &mut Client, group: &str) -> JoinGroupResponse {
    let mut request = JoinGroupRequest {
        group_id: group.into(),
        session_timeout_ms: 30_000,
        rebalance_timeout_ms: 30_000,
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupRequestProtocol {
            name: "range".into(),
            metadata: bytes::Bytes::from_static(b"meta"),
        }],
        ..JoinGroupRequest::default()
    };
    let named: JoinGroupResponse = client.call(7, &request).await;
    request.member_id = named.member_id;
    client.call(7, &request).await
}

async fn prepared(node: &TestNode, client: &mut Client) {
    let request = FindCoordinatorRequest {
        key_type: 0,
        coordinator_keys: vec!["g".into()],
        ..FindCoordinatorRequest::default()
    };
    let _: FindCoordinatorResponse = client.call(4, &request).await;
    coordinator_of("g", &node.node).await;
}

fn sync(joined: &JoinGroupResponse) -> SyncGroupRequest {
    SyncGroupRequest {
        group_id: "g".into(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        protocol_type: Some("consumer".into()),
        protocol_name: Some("range".into()),
        assignments: vec![SyncGroupRequestAssignment {
            member_id: joined.member_id.clone(),
            assignment: bytes::Bytes::from_static(b"all"),
        }],
        ..SyncGroupRequest::default()
    }
}

fn beat(joined: &JoinGroupResponse) -> HeartbeatRequest {
    HeartbeatRequest {
        group_id: "g".into(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        ..HeartbeatRequest::default()
    }
}

fn commit(joined: &JoinGroupResponse, offset: i64) -> OffsetCommitRequest {
    OffsetCommitRequest {
        group_id: "g".into(),
        generation_id_or_member_epoch: joined.generation_id,
        member_id: joined.member_id.clone(),
        topics: vec![OffsetCommitRequestTopic {
            name: "t".into(),
            partitions: vec![OffsetCommitRequestPartition {
                partition_index: 1,
                committed_offset: offset,
                ..OffsetCommitRequestPartition::default()
            }],
            ..OffsetCommitRequestTopic::default()
        }],
        ..OffsetCommitRequest::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_tells_of_members_assignments_and_positions() {
    let (node, mut client) = heard(&["group.initial.rebalance.delay.ms=0"]).await;
    prepared(&node, &mut client).await;
    let joined = join(&mut client, "g").await;
    let _: SyncGroupResponse = client.call(5, &sync(&joined)).await;
    let committed: OffsetCommitResponse = client.call(8, &commit(&joined, 41)).await;
    assert_eq!(committed.topics[0].partitions[0].error_code, 0);
    let identity = MemberIdentity {
        member_id: joined.member_id.clone(),
        reason: Some("the end".into()),
        ..MemberIdentity::default()
    };
    let leave = LeaveGroupRequest {
        group_id: "g".into(),
        members: vec![identity],
        ..LeaveGroupRequest::default()
    };
    let _: LeaveGroupResponse = client.call(5, &leave).await;
    let member = &joined.member_id;
    assert_eq!(
        told(&node, EventKind::GroupJoin),
        [format!("group.join - offset - epoch - kafka {member}: group g: joined")]
    );
    assert_eq!(
        told(&node, EventKind::GroupAssign),
        ["group.assign - offset - epoch - kafka -: group g: generation 1 of 1 members"]
    );
    assert_eq!(
        told(&node, EventKind::OffsetCommit),
        ["offset.commit t-1 offset 41 epoch - kafka -: group g"]
    );
    assert_eq!(
        told(&node, EventKind::GroupLeave),
        [format!("group.leave - offset - epoch - kafka {member}: group g: the end")]
    );
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_gate_of_a_write_or_a_read_holds_it_until_it_is_released() {
    let rows = [
        (GatePoint::ProduceReceived, 0),
        (GatePoint::ProduceAppendBefore, 0),
        (GatePoint::ProduceAppendAfter, 1),
        (GatePoint::HighWatermarkBefore, 1),
        (GatePoint::ProduceAckBefore, 1),
    ];
    for (point, in_log) in rows {
        let (node, mut client) = heard(&[]).await;
        let topic = node.node.controller.image().topic("t").expect("created").id;
        let partition = node.node.partitions.find(topic, 0).expect("a partition");
        let reader = partition.opened().await;
        let gate = node.arm(point, "t", GateAction::Hold);
        client.send(9, &produce_request("t", -1, batch(&["v"]).freeze())).await;
        node.caught(gate).await;
        assert_eq!(reader.log_end_offset(), in_log, "{point}");
        eventually("the hit is told", || !told(&node, EventKind::GateHit).is_empty()).await;
        let hits = told(&node, EventKind::GateHit);
        assert_eq!(hits.len(), 1, "{point}: {hits:?}");
        assert!(hits[0].starts_with("gate.hit t-0") && hits[0].ends_with(point.name()), "{hits:?}");
        assert!(told(&node, EventKind::ProduceAcknowledged).is_empty(), "{point}");
        assert!(node.node.instruments.release(gate));
        let (_, answer): (_, ProduceResponse) = client.receive(9).await;
        assert_eq!(answer.responses[0].partition_responses[0].base_offset, 0, "{point}");
        assert_eq!(told(&node, EventKind::GateRelease).len(), 1);
        assert_eq!(told(&node, EventKind::HighWatermarkAdvanced).len(), 1, "{point}: told once");
        node.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_high_watermark_hides_what_the_leader_alone_has() {
    let (node, mut client) = heard(&[]).await;
    client.produce("t", 1, batch(&["a"])).await;
    let gate = node.arm(GatePoint::HighWatermarkBefore, "t", GateAction::Hold);
    assert_eq!(client.produce("t", 1, batch(&["b"])).await, (0, 1), "acks=1 is the leader's word");
    let mut other = node.connect().await;
    other.send(9, &produce_request("t", -1, batch(&["c"]).freeze())).await;
    let topic = node.node.controller.image().topic("t").expect("created").id;
    let partition = node.node.partitions.find(topic, 0).expect("a partition");
    eventually("both are in the log", || partition.offsets().log_end == 3).await;
    let offsets = partition.offsets();
    assert_eq!((offsets.high_watermark, offsets.last_stable), (1, 1));
    let seen: FetchResponse = client.call(12, &fetch(0)).await;
    let seen = &seen.responses[0].partitions[0];
    assert_eq!((seen.high_watermark, told(&node, EventKind::Deliver).len()), (1, 1));
    assert!(told(&node, EventKind::Deliver)[0].ends_with("1 records"));
    assert!(node.node.instruments.release(gate));
    let (_, answer): (_, ProduceResponse) = other.receive(9).await;
    assert_eq!(answer.responses[0].partition_responses[0].base_offset, 2);
    assert_eq!(partition.offsets().high_watermark, 3);
    let rises = told(&node, EventKind::HighWatermarkAdvanced);
    assert!(rises.last().expect("told").starts_with("hw.advance t-0 offset 3"), "{rises:?}");
    // What a gate drops is seen with the next rise.
    let gate = node.arm(GatePoint::HighWatermarkBefore, "t", GateAction::Drop);
    client.produce("t", 1, batch(&["d"])).await;
    node.caught(gate).await;
    assert_eq!(partition.offsets().high_watermark, 3);
    node.node.instruments.release(gate);
    assert_eq!(client.produce("t", -1, batch(&["e"])).await, (0, 4));
    assert_eq!(partition.offsets().high_watermark, 5);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_before_delivery_holds_drops_or_fails_what_leaves() {
    let (node, mut client) = heard(&[]).await;
    client.produce("t", 1, batch(&["a"])).await;
    let gate = node.arm(GatePoint::DeliverBefore, "t", GateAction::Hold);
    client.send(12, &fetch(0)).await;
    node.caught(gate).await;
    assert!(told(&node, EventKind::Deliver).is_empty());
    node.node.instruments.release(gate);
    let (_, answer): (_, FetchResponse) = client.receive(12).await;
    assert!(answer.responses[0].partitions[0].records.as_ref().is_some_and(|r| !r.is_empty()));
    assert_eq!(told(&node, EventKind::Deliver).len(), 1);
    for (action, code) in [(GateAction::Drop, 0), (GateAction::Fail, 56)] {
        let gate = node.arm(GatePoint::DeliverBefore, "t", action);
        let answer: FetchResponse = client.call(12, &fetch(0)).await;
        let partition = &answer.responses[0].partitions[0];
        assert_eq!(partition.error_code, code, "{action:?}");
        assert!(partition.records.as_ref().is_none_or(|records| records.is_empty()), "{action:?}");
        node.node.instruments.release(gate);
    }
    assert_eq!(told(&node, EventKind::Deliver).len(), 1, "nothing else has left");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_gate_of_a_group_holds_its_request() {
    let (node, mut client) = heard(&["group.initial.rebalance.delay.ms=0"]).await;
    prepared(&node, &mut client).await;
    let instruments = &node.node.instruments;
    let arm = |point| {
        let filter = GateFilter { client: Some("test".into()), ..GateFilter::default() };
        instruments.gates.arm(point, filter, GateAction::Hold).expect("a gate")
    };
    let gate = arm(GatePoint::GroupJoin);
    let joining = async { join(&mut client, "g").await };
    let releasing = async {
        node.caught(gate).await;
        assert!(told(&node, EventKind::GroupJoin).is_empty());
        instruments.release(gate);
    };
    let (joined, ()) = tokio::join!(joining, releasing);
    assert_eq!(joined.error_code, 0);

    let gate = arm(GatePoint::GroupSync);
    client.send(5, &sync(&joined)).await;
    node.caught(gate).await;
    assert!(told(&node, EventKind::GroupAssign).is_empty());
    instruments.release(gate);
    let (_, synced): (_, SyncGroupResponse) = client.receive(5).await;
    assert_eq!((synced.error_code, told(&node, EventKind::GroupAssign).len()), (0, 1));

    let gate = arm(GatePoint::GroupHeartbeat);
    client.send(4, &beat(&joined)).await;
    node.caught(gate).await;
    instruments.release(gate);
    let (_, alive): (_, HeartbeatResponse) = client.receive(4).await;
    assert_eq!(alive.error_code, 0);

    let gate = node.arm(GatePoint::OffsetCommitBefore, "t", GateAction::Hold);
    client.send(8, &commit(&joined, 5)).await;
    node.caught(gate).await;
    assert!(told(&node, EventKind::OffsetCommit).is_empty());
    instruments.release(gate);
    let (_, committed): (_, OffsetCommitResponse) = client.receive(8).await;
    assert_eq!(committed.topics[0].partitions[0].error_code, 0);
    assert_eq!(told(&node, EventKind::OffsetCommit).len(), 1);
    node.stop().await;
}
