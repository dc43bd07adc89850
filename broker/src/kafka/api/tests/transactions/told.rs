//! What a transaction tells, what holds it up, and where it is kept.

use duolog_log_core::event::{Event, EventKind};

use super::*;

/// Kind, place and cause of all that concerns transactions, markers of several partitions in order.
fn told(node: &TestNode) -> Vec<String> {
    let kinds = [
        EventKind::TxnBegin,
        EventKind::TxnAdd,
        EventKind::TxnPrepare,
        EventKind::TxnMarker,
        EventKind::TxnComplete,
        EventKind::TxnFence,
    ];
    let events = node.told.events();
    let own = events.iter().filter(|event| kinds.contains(&event.kind));
    let shown = |event: &Event| {
        assert_eq!(event.client.as_deref(), Some("a"), "the transactional id");
        let place = match (&event.topic, event.partition, event.offset) {
            (Some(topic), Some(index), Some(offset)) => format!(" {topic}-{index} at {}", offset.0),
            (Some(topic), Some(index), None) => format!(" {topic}-{index}"),
            _ => String::new(),
        };
        let cause = event.cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default();
        format!("{}{place}{cause}", event.kind)
    };
    own.map(shown).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_step_of_a_transaction_is_told_once() {
    let (node, mut client) = node().await;
    node.listen();
    let (id, epoch) = started(&mut client, "a").await;
    assert_eq!((epoch, add(&mut client, 3, "a", (id, 0), &[("t", &[0])]).await), (0, vec![NONE]));
    assert_eq!(write(&mut client, 9, Some("a"), records((id, 0), 0, &["x"])).await, (NONE, 0));
    assert_eq!(end(&mut client, 3, "a", (id, 0), true).await.0, NONE);
    stable(&node, 2).await;
    eventually("it is complete", || told(&node).len() == 5).await;
    let whose = format!("producer {id} epoch 0");
    let mut expected = vec![
        format!("txn.begin: {whose}"),
        "txn.add t-0".to_owned(),
        format!("txn.prepare: PrepareCommit: {whose}"),
        format!("txn.marker t-0 at 1: Commit: {whose}"),
        format!("txn.complete: CompleteCommit: {whose}"),
    ];
    assert_eq!(told(&node), expected);
    // Another producer ends what this one leaves open.
    assert_eq!(write(&mut client, 12, Some("a"), records((id, 0), 1, &["y"])).await, (NONE, 2));
    assert_eq!(init(&mut client, "a").await, (NONE, (id, 2)));
    assert_eq!(end(&mut client, 3, "a", (id, 0), true).await.0, PRODUCER_FENCED);
    let fenced = format!("producer {id} epoch 1");
    expected.extend([
        format!("txn.begin: {whose}"),
        "txn.add t-0".to_owned(),
        "txn.fence: another producer has come".to_owned(),
        format!("txn.prepare: PrepareAbort: {fenced}, another producer has come"),
        format!("txn.marker t-0 at 3: Abort: {fenced}"),
        format!("txn.complete: CompleteAbort: {fenced}"),
        "txn.fence: an older producer was refused".to_owned(),
    ]);
    assert_eq!(told(&node), expected);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gates_hold_or_fail_what_changes_a_transaction() {
    let (node, mut client) = node().await;
    let producer = started(&mut client, "a").await;
    let gates = &node.node.instruments.gates;
    let of_a = || GateFilter { client: Some("a".into()), ..GateFilter::default() };
    let gate = gates.arm(GatePoint::TxnAdd, of_a(), GateAction::Fail).expect("a gate");
    assert_eq!(add(&mut client, 3, "a", producer, &[("t", &[0])]).await, [15]);
    node.node.instruments.release(gate);
    assert_eq!(add(&mut client, 3, "a", producer, &[("t", &[0])]).await, [NONE]);
    let gate = gates.arm(GatePoint::TxnEndReceived, of_a(), GateAction::Hold).expect("a gate");
    let request = EndTxnRequest {
        transactional_id: "a".into(),
        producer_id: producer.0,
        producer_epoch: producer.1,
        committed: true,
    };
    client.send(3, &request).await;
    node.caught(gate).await;
    let mut other = node.connect().await;
    let asked = DescribeTransactionsRequest { transactional_ids: vec!["a".into()] };
    let open: DescribeTransactionsResponse = other.call(0, &asked).await;
    assert_eq!(&*open.transaction_states[0].transaction_state, "Ongoing");
    node.node.instruments.release(gate);
    let (_, ended): (_, EndTxnResponse) = client.receive(3).await;
    assert_eq!(ended.error_code, NONE);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_transactions_is_made_on_first_need_as_it_is_set() {
    let settings =
        ["transaction.state.log.num.partitions=3", "transaction.state.log.segment.bytes=1000000"];
    let node = TestNode::start(&settings).await;
    let name = crate::controller::names::TRANSACTIONS_TOPIC;
    assert!(node.node.controller.image().topic(name).is_none());
    let mut client = node.connect().await;
    started(&mut client, "a").await;
    let topic = node.node.controller.image().topic(name).expect("made").clone();
    assert_eq!((topic.partition_count(), topic.config.segment_bytes), (3, 1_000_000));
    assert!(topic.internal && topic.config.cleanup.compact);
    let refused = client.produce(name, 1, crate::testing::served::batch(&["v"])).await;
    assert_eq!(refused, (17, -1), "clients write nothing there");
    node.stop().await;
}
