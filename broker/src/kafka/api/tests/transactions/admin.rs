//! What tools ask about transactions, and how they end one that hangs (KIP-664).

use super::*;
use crate::kafka::codec::messages::describe_producers_request::TopicRequest;
use crate::kafka::codec::messages::write_txn_markers_request::{
    WritableTxnMarker, WritableTxnMarkerTopic,
};

async fn list(client: &mut Client, request: ListTransactionsRequest) -> (i16, Vec<String>) {
    let answer: ListTransactionsResponse = client.call(2, &request).await;
    let ids = answer.transaction_states.iter().map(|one| one.transactional_id.to_string());
    (answer.error_code, ids.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_are_listed_by_state_producer_age_and_pattern() {
    let (node, mut client) = node().await;
    let first = started(&mut client, "alpha").await;
    let second = started(&mut client, "beta").await;
    assert_eq!(add(&mut client, 3, "alpha", first, &[("t", &[1, 0])]).await, [NONE, NONE]);
    let all = || ListTransactionsRequest { duration_filter: -1, ..Default::default() };
    let with = |pattern: &str| ListTransactionsRequest {
        transactional_id_pattern: Some(pattern.into()),
        ..all()
    };
    let rows = [
        (all(), &["alpha", "beta"][..]),
        (ListTransactionsRequest { state_filters: vec!["Ongoing".into()], ..all() }, &["alpha"]),
        (ListTransactionsRequest { producer_id_filters: vec![second.0], ..all() }, &["beta"]),
        (ListTransactionsRequest { duration_filter: 60_000, ..all() }, &["beta"]),
        (with(".*ph.*"), &["alpha"]),
        (with("lph"), &[]),
        (with(""), &["alpha", "beta"]),
    ];
    for (request, expected) in rows {
        let (code, ids) = list(&mut client, request.clone()).await;
        assert_eq!((code, ids), (NONE, expected.iter().map(ToString::to_string).collect()));
    }
    assert_eq!(list(&mut client, with("(")).await, (128, Vec::new()), "no such expression");
    for version in 0..=2 {
        let request = ListTransactionsRequest { state_filters: vec!["Nonsense".into()], ..all() };
        let answer: ListTransactionsResponse = client.call(version, &request).await;
        assert_eq!(answer.unknown_state_filters, ["Nonsense".into()]);
    }
    let request = DescribeTransactionsRequest {
        transactional_ids: vec!["alpha".into(), "x".into(), "".into()],
    };
    let answer: DescribeTransactionsResponse = client.call(0, &request).await;
    let codes: Vec<_> = answer.transaction_states.iter().map(|one| one.error_code).collect();
    assert_eq!(codes, [NONE, 105, 42]);
    let alpha = &answer.transaction_states[0];
    assert_eq!((&*alpha.transaction_state, alpha.transaction_timeout_ms), ("Ongoing", 60_000));
    assert_eq!((alpha.producer_id, alpha.producer_epoch), first);
    assert!(alpha.transaction_start_time_ms > 0);
    assert_eq!(alpha.topics[0].partitions, [0, 1]);
    node.stop().await;
}

async fn producers(client: &mut Client, topic: &str) -> (i16, Vec<(i64, i32, i32, i32, i64)>) {
    let topics = vec![TopicRequest { name: topic.into(), partition_indexes: vec![0] }];
    let answer: DescribeProducersResponse =
        client.call(0, &DescribeProducersRequest { topics }).await;
    let partition = &answer.topics[0].partitions[0];
    let shown = partition.active_producers.iter().map(|one| {
        let start = one.current_txn_start_offset;
        (one.producer_id, one.producer_epoch, one.last_sequence, one.coordinator_epoch, start)
    });
    (partition.error_code, shown.collect())
}

async fn mark(client: &mut Client, version: i16, producer: Producer, places: &[&str]) -> Vec<i16> {
    let topics = places
        .iter()
        .map(|name| WritableTxnMarkerTopic { name: (*name).into(), partition_indexes: vec![0] });
    let marker = WritableTxnMarker {
        producer_id: producer.0,
        producer_epoch: producer.1,
        transaction_result: false,
        topics: topics.collect(),
        coordinator_epoch: 99,
        ..WritableTxnMarker::default()
    };
    let request = WriteTxnMarkersRequest { markers: vec![marker] };
    let answer: WriteTxnMarkersResponse = client.call(version, &request).await;
    let topics = answer.markers[0].topics.iter();
    topics.map(|topic| topic.partitions[0].error_code).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_transaction_is_found_and_ended_by_hand() {
    let settings = ["transaction.partition.verification.enable=false"];
    let node = TestNode::start(&settings).await;
    node.create_topic("t", &[]).await;
    let mut client = node.connect().await;
    assert_eq!(producers(&mut client, "t").await, (NONE, vec![]), "never written");
    assert_eq!(producers(&mut client, "missing").await, (3, vec![]));
    // Of no coordinator's: it would hang for ever.
    assert_eq!(write(&mut client, 9, Some("x"), records((42, 3), 0, &["v"])).await, (NONE, 0));
    assert_eq!(producers(&mut client, "t").await.1, [(42, 3, 0, -1, 0)]);
    assert_eq!(fetch(&mut client, 1).await.stable, 0);
    assert_eq!(mark(&mut client, 1, (42, 2), &["t"]).await, [INVALID_PRODUCER_EPOCH]);
    assert_eq!(mark(&mut client, 1, (42, 3), &["missing", "t"]).await, [3, NONE]);
    stable(&node, 2).await;
    let ended = Seen { stable: 2, aborted: vec![(42, 0)], batches: vec![(0, false), (1, true)] };
    assert_eq!(fetch(&mut client, 1).await, ended);
    assert_eq!(producers(&mut client, "t").await.1, [(42, 3, 0, 99, -1)]);
    node.stop().await;
}

/// As in Kafka nothing is written for producer -1 or epoch -1; nor, unlike there, for what is below.
#[tokio::test(flavor = "multi_thread")]
async fn markers_of_nobody_are_refused_with_all_their_request() {
    let (node, mut client) = node().await;
    started(&mut client, "a").await;
    let marker = |producer_id, producer_epoch| WritableTxnMarker {
        producer_id,
        producer_epoch,
        transaction_result: true,
        topics: vec![WritableTxnMarkerTopic { name: "t".into(), partition_indexes: vec![0, 0] }],
        ..WritableTxnMarker::default()
    };
    for (nobody, epoch) in [(-1, 0), (-2, 0), (5, -1), (5, -2)] {
        let request = WriteTxnMarkersRequest { markers: vec![marker(6, 0), marker(nobody, epoch)] };
        for version in 1..=2 {
            let answer: WriteTxnMarkersResponse = client.call(version, &request).await;
            let topics = answer.markers.iter().flat_map(|marker| &marker.topics);
            let codes = topics.flat_map(|topic| &topic.partitions).map(|it| it.error_code);
            assert_eq!(codes.collect::<Vec<_>>(), [-1, -1], "{nobody} {epoch}");
        }
    }
    assert_eq!(fetch(&mut client, 0).await.batches, [], "nothing is written");
    let request = WriteTxnMarkersRequest { markers: vec![marker(6, 0)] };
    let answer: WriteTxnMarkersResponse = client.call(1, &request).await;
    let partitions = &answer.markers[0].topics[0].partitions;
    assert_eq!((partitions.len(), partitions[0].error_code), (1, NONE));
    assert_eq!(fetch(&mut client, 0).await.batches, [(0, true)], "once");
    node.stop().await;
}
