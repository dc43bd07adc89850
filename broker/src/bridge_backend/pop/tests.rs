//! Pop through the RocketMQ door: positions, restarts, the dead letters, and crashes at any call.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use duolog_bridge::backend::Backend;
use duolog_bridge::dispatch::Dispatcher;
use duolog_bridge::remoting::RemotingCommand;
use duolog_bridge::remoting::message::Message;
use duolog_bridge::translate::properties::Properties;
use duolog_coordinator::group::event::{Event, FirstJoin, JoinGroup, LeaderReturn, Protocol};
use duolog_log_core::event::{EventKind, Events};
use duolog_log_core::gate::{GateAction, GatePoint};
use duolog_log_core::ids::NodeId;
use duolog_log_core::storage::disk::Disk;
use duolog_log_core::testing::mem_disk::{Crash, Fault, MemDisk};

use super::*;
use crate::node::Node;
use crate::testing::rocketmq::{RemotingClient, field, offsets, send_fields};
use crate::testing::served::{Attempts, TestNode, config, eventually};

const POP: i32 = 200_050;
const ACK: i32 = 200_051;
const DELAY: i32 = 200_053;

/// Out of the way of every test.
const LONG: &str = "600000";

/// Sends to queue 0 of t; once this returns, readers see it.
async fn send(node: &TestNode, client: &RemotingClient, body: &str) {
    let sent = client.call(310, &send_fields("t", &[]), body.as_bytes()).await;
    assert_eq!(sent.code, 0);
    let (queue, offset) = (node.partition("t", 0), field(&sent, "queueOffset"));
    eventually("it is to be seen", || queue.offsets().last_stable > offset).await;
}

/// Pops of queue 0 of t, for a long time.
async fn pop(client: &RemotingClient, changes: &[(&str, &str)]) -> RemotingCommand {
    let usual = [
        ("consumerGroup", "g"),
        ("topic", "t"),
        ("queueId", "0"),
        ("maxMsgNums", "32"),
        ("invisibleTime", LONG),
        ("pollTime", "0"),
        ("bornTime", "0"),
        ("initMode", "0"),
    ];
    let kept = usual.iter().filter(|(name, _)| !changes.iter().any(|(other, _)| other == name));
    let fields: Vec<_> = kept.chain(changes).copied().collect();
    client.call(POP, &fields, &[]).await
}

async fn about(client: &RemotingClient, code: i32, offset: i64, popped: i64) -> i32 {
    let (offset, handle) = (offset.to_string(), format!("0 {popped} 1 0 0 broker-a 0 0"));
    let fields = [
        ("consumerGroup", "g"),
        ("topic", "t"),
        ("queueId", "0"),
        ("offset", &*offset),
        ("extraInfo", &*handle),
        ("invisibleTime", "0"),
    ];
    client.call(code, &fields, &[]).await.code
}

/// Offset and reconsume count of each message.
fn messages(answer: &RemotingCommand) -> Vec<(i64, i32)> {
    let (mut rest, mut all) = (&answer.body[..], Vec::new());
    while !rest.is_empty() {
        let message = Message::decode(&mut rest).expect("a message");
        all.push((message.queue_offset, message.reconsume_times));
    }
    all
}

async fn committed(dispatcher: &Dispatcher<BridgeBackend>) -> Option<i64> {
    let topic = dispatcher.backend().topic("t").expect("the topic");
    dispatcher.backend().committed_offset("g", &topic, 0).await.expect("a position")
}

async fn wait_committed(dispatcher: &Dispatcher<BridgeBackend>, offset: i64) {
    let attempts = Attempts::at("the position");
    while committed(dispatcher).await != Some(offset) {
        attempts.again().await;
    }
}

/// A node with these messages in `t`.
async fn stage(bodies: &[&str]) -> (TestNode, Dispatcher<BridgeBackend>, RemotingClient) {
    let node = TestNode::start(&[]).await;
    let dispatcher = node.rocketmq();
    let client = RemotingClient::new(&dispatcher);
    node.create_topic("t", &[]).await;
    for body in bodies {
        send(&node, &client, body).await;
    }
    (node, dispatcher, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_hand_outlives_the_node_and_the_start_is_the_groups_position() {
    let (node, dispatcher, client) = stage(&["a", "b", "c", "d"]).await;
    let first = pop(&client, &[("maxMsgNums", "3")]).await;
    assert_eq!(messages(&first), [(0, 0), (1, 0), (2, 0)]);
    let popped = field(&first, "popTime");
    assert_eq!(about(&client, ACK, 1, popped).await, 0);
    wait_committed(&dispatcher, 0).await;
    assert_eq!(about(&client, ACK, 0, popped).await, 0);
    wait_committed(&dispatcher, 2).await;
    let disk = node.stop().await;

    let node = TestNode::start_on(disk, &[]).await;
    let dispatcher = node.rocketmq();
    let client = RemotingClient::new(&dispatcher);
    assert_eq!(messages(&pop(&client, &[]).await), [(3, 0)], "2 is in hand, 0 and 1 are done");
    assert_eq!(about(&client, DELAY, 2, popped).await, 0);
    let attempts = Attempts::at("2 comes again");
    loop {
        let again = pop(&client, &[]).await;
        if again.code == 0 {
            assert_eq!(messages(&again), [(2, 1)]);
            break;
        }
        attempts.again().await;
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_pop_wakes_when_a_message_comes_again() {
    let (node, _dispatcher, client) = stage(&["a"]).await;
    assert_eq!(messages(&pop(&client, &[("invisibleTime", "300")]).await), [(0, 0)]);
    let again = pop(&client, &[("pollTime", "100000")]).await;
    assert_eq!(messages(&again), [(0, 1)]);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_to_where_the_group_stands_frees_what_is_in_hand() {
    let (node, dispatcher, client) = stage(&["a", "b"]).await;
    assert_eq!(messages(&pop(&client, &[]).await), [(0, 0), (1, 0)]);
    wait_committed(&dispatcher, 0).await;
    let reset = [("topic", "t"), ("group", "g"), ("timestamp", "0"), ("isForce", "true")];
    assert_eq!(client.call(222, &reset, &[]).await.code, 0);
    assert_eq!(messages(&pop(&client, &[]).await), [(0, 0), (1, 0)]);
    assert_eq!(pop(&client, &[]).await.code, 210, "once");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_that_another_sets_is_gone_by() {
    let node = TestNode::start(&[]).await;
    let dispatcher = node.rocketmq();
    let client = RemotingClient::new(&dispatcher);
    let topic = node.create_topic("t", &[]).await;
    for body in ["a", "b", "c"] {
        send(&node, &client, body).await;
    }
    assert_eq!(offsets(&pop(&client, &[("maxMsgNums", "2")]).await), [0, 1]);
    wait_committed(&dispatcher, 0).await;
    let queues = dispatcher.backend().topic("t").expect("the topic");
    let share = SharePartition { group: "g".into(), topic: queues.id, partition: 0 };
    let attempts = Attempts::at("the position is known to be committed");
    while node.node.inflight.positions(&share) != Some([Some(0), None]) {
        attempts.again().await;
    }
    for (to, expected) in [(2, vec![2]), (1, vec![1, 2]), (0, vec![0, 1, 2])] {
        dispatcher.backend().commit_offset("g", &queues, 0, to).await.expect("committed");
        assert_eq!(offsets(&pop(&client, &[]).await), expected);
    }
    node.node.delete_topic(topic.id).await.expect("deleted");
    eventually("nothing is in hand", || node.node.inflight.flight_count() == 0).await;
    node.stop().await;
}

fn share_of(dispatcher: &Dispatcher<BridgeBackend>) -> SharePartition {
    let topic = dispatcher.backend().topic("t").expect("the topic").id;
    SharePartition { group: "g".into(), topic, partition: 0 }
}

/// Waits until the window knows that this is the position.
async fn wait_known(node: &TestNode, dispatcher: &Dispatcher<BridgeBackend>, offset: i64) {
    let share = share_of(dispatcher);
    let attempts = Attempts::at("the position is known to be committed");
    while node.node.inflight.positions(&share) != Some([Some(offset), None]) {
        attempts.again().await;
    }
}

/// A node with so many messages in queue 0 of t, all popped and acknowledged by g.
async fn all_popped(count: i64) -> (TestNode, Dispatcher<BridgeBackend>) {
    let node = TestNode::start(&["rocketmq.flushIntervalCommitLog=1"]).await;
    let dispatcher = node.rocketmq();
    let client = RemotingClient::new(&dispatcher);
    node.create_topic("t", &[]).await;
    for body in 0..count {
        send(&node, &client, &body.to_string()).await;
    }
    let popped = pop(&client, &[]).await;
    for offset in 0..count {
        assert_eq!(about(&client, ACK, offset, field(&popped, "popTime")).await, 0);
    }
    wait_known(&node, &dispatcher, count).await;
    (node, dispatcher)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_that_another_set_outlives_a_start_of_the_node() {
    let (node, dispatcher) = all_popped(4).await;
    let topic = dispatcher.backend().topic("t").expect("the topic");
    dispatcher.backend().commit_offset("g", &topic, 0, 1).await.expect("committed");
    let node = TestNode::start_on(node.stop().await, &[]).await;
    let dispatcher = node.rocketmq();
    wait_known(&node, &dispatcher, 1).await;
    assert_eq!(committed(&dispatcher).await, Some(1));
    let client = RemotingClient::new(&dispatcher);
    assert_eq!(offsets(&pop(&client, &[]).await), [1, 2, 3]);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_deleted_group_popped_is_forgotten_and_its_position_does_not_come_back() {
    let (node, dispatcher) = all_popped(4).await;
    let share = share_of(&dispatcher);
    dispatcher.backend().delete_positions("g").await.expect("deleted");
    let attempts = Attempts::at("the window is forgotten");
    let plan = || Ask::Plan { count: 1, order: None };
    while node.node.inflight.ask(&share, plan()).await != Ok(Response::Plan(None)) {
        attempts.again().await;
    }
    let node = TestNode::start_on(node.stop().await, &[]).await;
    let dispatcher = node.rocketmq();
    assert_eq!(node.node.inflight.ask(&share, plan()).await, Ok(Response::Plan(None)));
    assert_eq!(committed(&dispatcher).await, None);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_popped_by_a_group_that_kafka_members_hold() {
    let (node, _dispatcher, client) = stage(&["a", "b"]).await;
    assert_eq!(offsets(&pop(&client, &[("maxMsgNums", "1")]).await), [0]);
    // An id that was given holds the group.
    let join = JoinGroup {
        group: "g".into(),
        member: "".into(),
        instance: None,
        client_id: "c".into(),
        client_host: "/127.0.0.1".into(),
        rebalance_timeout_ms: 60_000,
        session_timeout_ms: 60_000,
        protocol_type: "consumer".into(),
        protocols: vec![Protocol { name: "range".into(), metadata: Bytes::new() }],
        reason: None,
        first_join: FirstJoin::WithGivenId,
        leader_return: LeaderReturn::AsFollower,
        uuid: [7; 16],
    };
    let coordinators = &node.node.coordinators;
    coordinators.request("g", Event::JoinGroup(Box::new(join))).await.expect("an id");
    let refused = pop(&client, &[]).await;
    assert_eq!(refused.code, 26, "as a heartbeat");
    assert_eq!(refused.remark.as_deref(), Some("group g is in use by Kafka members"));
    node.stop().await;
}

/// A group whose messages are dead after one delivery.
async fn mortal(client: &RemotingClient) {
    let group = br#"{"groupName":"g","retryMaxTimes":0}"#;
    assert_eq!(client.call(200, &[], group).await.code, 0);
}

/// What the dead letters of g hold.
async fn dead(client: &RemotingClient) -> Vec<String> {
    let answer = client.pull("%DLQ%g", 0, &[("consumerGroup", "reader")]).await;
    let (mut rest, mut all) = (&answer.body[..], Vec::new());
    while !rest.is_empty() {
        let message = Message::decode(&mut rest).expect("a message");
        all.push(String::from_utf8(message.body.to_vec()).expect("text"));
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_popped_too_often_is_a_dead_letter_once_though_gates_interfere() {
    let node = TestNode::start(&["rocketmq.flushIntervalCommitLog=1"]).await;
    node.listen();
    let dispatcher = node.rocketmq();
    let client = RemotingClient::new(&dispatcher);
    node.create_topic("t", &[]).await;
    mortal(&client).await;
    for (number, action) in
        [GateAction::Drop, GateAction::Fail, GateAction::Hold].into_iter().enumerate()
    {
        let gate = node.arm(GatePoint::DeadLetterDeliver, "__rmq.n..25DLQ.25g", action);
        send(&node, &client, &format!("{action:?}")).await;
        assert_eq!(messages(&pop(&client, &[("invisibleTime", "0")]).await).len(), 1);
        node.caught(gate).await;
        assert_eq!(dead(&client).await.len(), number);
        node.node.instruments.release(gate);
        eventually("it has arrived", || node.node.inflight.on_their_way_count() == 0).await;
    }
    assert_eq!(dead(&client).await, ["Drop", "Fail", "Hold"]);
    let answer = client.pull("%DLQ%g", 0, &[("consumerGroup", "reader")]).await;
    let message = Message::decode(&mut &answer.body[..]).expect("a message");
    let properties = Properties(std::str::from_utf8(message.properties).expect("text"));
    assert_eq!((message.reconsume_times, properties.get("RETRY_TOPIC")), (1, Some("t")));
    assert!(properties.get("ORIGIN_MESSAGE_ID").is_some_and(|id| id.len() == 32));
    assert_eq!(node.told.of(EventKind::DeadLetterStore, "__rmq.n..25DLQ.25g").len(), 3);
    wait_committed(&dispatcher, 3).await;
    node.stop().await;
}

/// What answers promised.
#[derive(Default)]
struct Promised {
    sent: usize,
    acknowledged: BTreeSet<i64>,
}

struct Running {
    node: Arc<Node>,
    client: RemotingClient,
}

const SETTINGS: &[&str] =
    &["rocketmq.flushIntervalCommitLog=1", "rocketmq.flushDiskType=SYNC_FLUSH"];

async fn start(disk: &MemDisk) -> Option<Running> {
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let node = Node::start(config(SETTINGS), shared, Events::silent(NodeId(1))).await.ok()?;
    let address = "127.0.0.1:10911".parse().expect("an address");
    let dispatcher = BridgeBackend::dispatcher(node.clone(), address);
    Some(Running { node, client: RemotingClient::new(&dispatcher) })
}

/// Pops three messages, acknowledges the second, and lets the others die; until the disk stops.
async fn work(running: &Running, disk: &MemDisk) -> Promised {
    let Running { node, client } = running;
    let mut promised = Promised::default();
    let halted = eventually("the disk stops", || disk.is_halted());
    let work = async {
        let group = br#"{"groupName":"g","retryMaxTimes":0}"#;
        client.call(200, &[], group).await;
        for body in ["a", "b", "c"] {
            let sent = client.call(310, &send_fields("t", &[]), body.as_bytes()).await;
            promised.sent += usize::from(sent.code == 0);
        }
        let answer = pop(client, &[("invisibleTime", "20"), ("maxMsgNums", "2")]).await;
        if let Some(popped) = answer.ext_fields.get("popTime")
            && let [_, second] = offsets(&answer)[..]
            && about(client, ACK, second, popped.parse().expect("a number")).await == 0
        {
            promised.acknowledged.insert(second);
        }
        pop(client, &[("invisibleTime", "0")]).await;
        let attempts = Attempts::at("all is done");
        while node.inflight.flight_count() + node.inflight.on_their_way_count() > 0 {
            attempts.again().await;
        }
    };
    tokio::select! {
        () = work => {}
        () = halted => {}
    }
    promised
}

/// Pops on until all is done; which offsets came meanwhile.
async fn finish(running: &Running) -> BTreeSet<i64> {
    let Running { node, client } = running;
    let attempts = Attempts::at("all is done");
    let mut came = BTreeSet::new();
    loop {
        let answer = pop(client, &[("invisibleTime", "0")]).await;
        came.extend(offsets(&answer));
        let left = node.inflight.flight_count() + node.inflight.on_their_way_count();
        if answer.code == 210 && left == 0 {
            return came;
        }
        attempts.again().await;
    }
}

/// Crashes at every call that changes the disk, the process alone or with the machine: what died is a
/// dead letter once, and what was acknowledged before the process ended does not come again.
#[tokio::test(flavor = "multi_thread")]
async fn each_dead_letter_arrives_once_though_a_crash_comes_at_any_call() {
    let whole = MemDisk::new();
    let running = start(&whole).await.expect("starts");
    let begun = whole.operations();
    assert_eq!(work(&running, &whole).await.acknowledged, BTreeSet::from([1]));
    let operations = whole.operations();
    running.node.stopping.cancel();
    let mut counts = BTreeSet::new();
    for operation in begun..operations {
        let disk = MemDisk::new();
        disk.fail_operation(operation, Fault::Halt);
        let Some(running) = start(&disk).await else { continue };
        let promised = work(&running, &disk).await;
        counts.insert((promised.sent, promised.acknowledged.len()));
        running.node.stopping.cancel();
        let (disk, is_kill) = match operation % 3 {
            0 => (disk.kill(), true),
            1 => (disk.crash(Crash::ForgetUnsynced), false),
            _ => (disk.crash(Crash::Seeded(operation)), false),
        };
        let what = format!("{operation} killed: {is_kill}");
        let running = start(&disk).await.expect("the next start finds sound logs");
        let Some(end) = end_of_queue(&running.node).await else { continue };
        assert!(end >= promised.sent, "{what}");
        let came = finish(&running).await;
        if is_kill {
            assert!(came.is_disjoint(&promised.acknowledged), "{what}: {came:?}");
        }
        let found = dead(&running.client).await;
        let different: BTreeSet<_> = found.iter().cloned().collect();
        assert_eq!(different.len(), found.len(), "{what}: twice in {found:?}");
        // The second may be acknowledged though nobody was told so.
        for (_, body) in [(0, "a"), (2, "c")].iter().filter(|(offset, _)| *offset < end) {
            assert!(different.contains(*body), "{what}: {found:?} of {end}");
        }
        running.node.stopping.cancel();
    }
    assert!(counts.len() > 3, "the crashes came at different points: {counts:?}");
}

/// How many messages t has; `None` if it was not made.
async fn end_of_queue(node: &Node) -> Option<usize> {
    let topic = node.controller.image().topic("t")?.id;
    let partition = node.partitions.find(topic, 0)?;
    let reader = partition.reader().await.ok()?;
    usize::try_from(reader.log_end_offset()).ok()
}
