//! Transactions of both protocol levels, through a connection to a whole node.

use duolog_log_core::gate::{GateAction, GateFilter, GatePoint};
use duolog_log_core::ids::{ProducerEpoch, ProducerId};
use duolog_log_core::record::batch::{BatchHeader, SharedBatches};
use duolog_log_core::record::{BatchKind, BatchParams, ProducerSequence};

use crate::kafka::codec::messages::add_partitions_to_txn_request::{
    AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction,
};
use crate::kafka::codec::messages::fetch_request::{FetchPartition, FetchTopic};
use crate::kafka::codec::messages::*;
use crate::testing::served::{Attempts, Client, TestNode, batch_of, eventually, produce_request};

mod admin;
mod overtaken;
mod positions;
mod told;

const NONE: i16 = 0;
const COORDINATOR_LOAD_IN_PROGRESS: i16 = 14;
const INVALID_PRODUCER_EPOCH: i16 = 47;
const INVALID_TXN_STATE: i16 = 48;
const INVALID_PRODUCER_ID_MAPPING: i16 = 49;
const CONCURRENT_TRANSACTIONS: i16 = 51;
const PRODUCER_FENCED: i16 = 90;
const TRANSACTION_ABORTABLE: i16 = 120;

/// Producer id and epoch.
type Producer = (i64, i16);

/// Asks until the answer is another than that the last transaction is being completed.
async fn init(client: &mut Client, id: &str) -> (i16, Producer) {
    init_as(client, 5, id, (-1, -1)).await
}

async fn init_as(client: &mut Client, version: i16, id: &str, known: Producer) -> (i16, Producer) {
    let request = InitProducerIdRequest {
        transactional_id: Some(id.into()),
        transaction_timeout_ms: 60_000,
        producer_id: known.0,
        producer_epoch: known.1,
    };
    let attempts = Attempts::at("the last transaction is completed");
    loop {
        let given: InitProducerIdResponse = client.call(version, &request).await;
        if given.error_code != CONCURRENT_TRANSACTIONS {
            return (given.error_code, (given.producer_id, given.producer_epoch));
        }
        attempts.again().await;
    }
}

/// Waits until all coordinators, that of `id` among them, have read their logs.
async fn coordinators(client: &mut Client, id: &str) {
    let attempts = Attempts::at("the coordinators have read their logs");
    let key = FindCoordinatorRequest { key: id.into(), key_type: 1, ..Default::default() };
    let all = ListTransactionsRequest { duration_filter: -1, ..Default::default() };
    loop {
        let found: FindCoordinatorResponse = client.call(2, &key).await;
        let listed: ListTransactionsResponse = client.call(2, &all).await;
        match (found.error_code, listed.error_code) {
            (NONE, NONE) => return assert_eq!(found.node_id, 1),
            codes => {
                assert!([codes.0, codes.1].contains(&COORDINATOR_LOAD_IN_PROGRESS), "{codes:?}")
            }
        }
        attempts.again().await;
    }
}

async fn started(client: &mut Client, id: &str) -> Producer {
    coordinators(client, id).await;
    let (code, producer) = init(client, id).await;
    assert_eq!(code, NONE);
    producer
}

fn records(producer: Producer, base_sequence: i32, values: &[&str]) -> bytes::Bytes {
    let producer = Some(ProducerSequence {
        id: ProducerId(producer.0),
        epoch: ProducerEpoch(producer.1),
        base_sequence,
    });
    let kind = BatchKind::Transactional;
    batch_of(BatchParams { producer, kind, ..BatchParams::default() }, values).freeze()
}

/// Error code and offset of a transactional write to partition 0 of `t`; asks again, as clients do, while the last
/// transaction is being completed.
async fn write(
    client: &mut Client,
    version: i16,
    id: Option<&str>,
    records: bytes::Bytes,
) -> (i16, i64) {
    let attempts = Attempts::at("the last transaction is completed");
    loop {
        let written = write_once(client, version, id, records.clone()).await;
        if written.0 != CONCURRENT_TRANSACTIONS {
            return written;
        }
        attempts.again().await;
    }
}

async fn write_once(
    client: &mut Client,
    version: i16,
    id: Option<&str>,
    records: bytes::Bytes,
) -> (i16, i64) {
    let mut request = produce_request("t", -1, records);
    request.transactional_id = id.map(Into::into);
    let answer: ProduceResponse = client.call(version, &request).await;
    let partition = &answer.responses[0].partition_responses[0];
    (partition.error_code, partition.base_offset)
}

/// Error code of each partition.
async fn add(
    client: &mut Client,
    version: i16,
    id: &str,
    producer: Producer,
    places: &[(&str, &[i32])],
) -> Vec<i16> {
    let topics = places.iter().map(|(name, partitions)| AddPartitionsToTxnTopic {
        name: (*name).into(),
        partitions: partitions.to_vec(),
    });
    let request = AddPartitionsToTxnRequest {
        v3_and_below_transactional_id: id.into(),
        v3_and_below_producer_id: producer.0,
        v3_and_below_producer_epoch: producer.1,
        v3_and_below_topics: topics.collect(),
        ..AddPartitionsToTxnRequest::default()
    };
    let answer: AddPartitionsToTxnResponse = client.call(version, &request).await;
    let results = answer.results_by_topic_v3_and_below.iter();
    results
        .flat_map(|topic| &topic.results_by_partition)
        .map(|it| it.partition_error_code)
        .collect()
}

async fn end(
    client: &mut Client,
    version: i16,
    id: &str,
    producer: Producer,
    committed: bool,
) -> (i16, Producer) {
    let request = EndTxnRequest {
        transactional_id: id.into(),
        producer_id: producer.0,
        producer_epoch: producer.1,
        committed,
    };
    let answer: EndTxnResponse = client.call(version, &request).await;
    (answer.error_code, (answer.producer_id, answer.producer_epoch))
}

/// What a reader of partition 0 of `t` sees.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    stable: i64,
    /// Producer and first offset.
    aborted: Vec<(i64, i64)>,
    /// Base offsets, and whether it is a control batch.
    batches: Vec<(i64, bool)>,
}

async fn fetch(client: &mut Client, isolation_level: i8) -> Seen {
    let partition = FetchPartition {
        partition: 0,
        partition_max_bytes: 1024 * 1024,
        ..FetchPartition::default()
    };
    let request = FetchRequest {
        isolation_level,
        max_bytes: i32::MAX,
        topics: vec![FetchTopic {
            topic: "t".into(),
            partitions: vec![partition],
            ..FetchTopic::default()
        }],
        ..FetchRequest::default()
    };
    let answer: FetchResponse = client.call(11, &request).await;
    let partition = &answer.responses[0].partitions[0];
    assert_eq!(partition.error_code, NONE);
    let aborted = partition.aborted_transactions.iter().flatten();
    let bytes = partition.records.as_ref().map(|records| records.to_bytes()).unwrap_or_default();
    let headers: Vec<BatchHeader> =
        SharedBatches::new(bytes).map(|batch| batch.expect("whole batches").0).collect();
    Seen {
        stable: partition.last_stable_offset,
        aborted: aborted.map(|one| (one.producer_id, one.first_offset)).collect(),
        batches: headers.iter().map(|it| (it.base_offset, it.is_control())).collect(),
    }
}

/// Waits until all below `offset` of partition 0 of `t` is stable.
async fn stable(node: &TestNode, offset: i64) {
    let topic = node.node.controller.image().topic("t").expect("created").id;
    let partition = node.node.partitions.find(topic, 0).expect("a partition");
    eventually("markers are written", || partition.offsets().last_stable >= offset).await;
}

/// Waits until the coordinator knows that all markers are written.
async fn completed(client: &mut Client, id: &str) {
    let attempts = Attempts::at("the transaction is completed");
    let asked = DescribeTransactionsRequest { transactional_ids: vec![id.into()] };
    loop {
        let found: DescribeTransactionsResponse = client.call(0, &asked).await;
        let state = &found.transaction_states[0].transaction_state;
        if state.starts_with("Complete") {
            return;
        }
        assert!(state.starts_with("Prepare"), "{state}");
        attempts.again().await;
    }
}

async fn node() -> (TestNode, Client) {
    let node = TestNode::start(&["transaction.state.log.num.partitions=3"]).await;
    node.create_topic("t", &[]).await;
    let client = node.connect().await;
    (node, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn v1_adds_partitions_writes_and_ends_and_readers_see_it_whole() {
    let (node, mut client) = node().await;
    let producer = started(&mut client, "a").await;
    for version in [0, 3] {
        assert_eq!(add(&mut client, version, "a", producer, &[("t", &[0])]).await, [NONE]);
    }
    let (code, offset) = write(&mut client, 9, Some("a"), records(producer, 0, &["x"])).await;
    assert_eq!((code, offset), (NONE, 0));
    let open = Seen { stable: 0, aborted: vec![], batches: vec![] };
    assert_eq!(fetch(&mut client, 1).await, open, "case B37");
    assert_eq!(fetch(&mut client, 0).await.batches, [(0, false)], "case B35");
    assert_eq!(end(&mut client, 3, "a", producer, false).await.0, NONE);
    stable(&node, 2).await;
    completed(&mut client, "a").await;
    assert_eq!(add(&mut client, 3, "a", producer, &[("t", &[0, 1])]).await, [NONE, NONE]);
    assert_eq!(write(&mut client, 9, Some("a"), records(producer, 1, &["y"])).await, (NONE, 2));
    assert_eq!(end(&mut client, 3, "a", producer, true).await.0, NONE);
    stable(&node, 4).await;
    completed(&mut client, "a").await;
    let whole = Seen {
        stable: 4,
        aborted: vec![(producer.0, 0)],
        batches: vec![(0, false), (1, true), (2, false), (3, true)],
    };
    assert_eq!(fetch(&mut client, 1).await, whole);
    assert_eq!(end(&mut client, 3, "a", producer, true).await.0, NONE, "a retry");
    assert_eq!(end(&mut client, 3, "a", producer, false).await.0, INVALID_TXN_STATE);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v2_adds_partitions_by_writing_and_every_end_raises_the_epoch() {
    let (node, mut client) = node().await;
    let mut producer = started(&mut client, "a").await;
    for round in 0..3 {
        for sequence in 0..2 {
            let written = records(producer, sequence, &["x"]);
            let (code, offset) = write(&mut client, 12, Some("a"), written).await;
            assert_eq!((code, offset), (NONE, round * 3 + i64::from(sequence)));
        }
        let (code, next) = end(&mut client, 5, "a", producer, round % 2 == 0).await;
        assert_eq!((code, next), (NONE, (producer.0, producer.1 + 1)));
        // Already, though markers may still be on their way.
        producer = next;
    }
    stable(&node, 9).await;
    completed(&mut client, "a").await;
    assert_eq!(fetch(&mut client, 1).await.aborted, [(producer.0, 3)]);
    let old = (producer.0, producer.1 - 1);
    let late = write(&mut client, 12, Some("a"), records(old, 2, &["late"])).await;
    assert_eq!(late, (INVALID_PRODUCER_EPOCH, -1), "a zombie");
    assert_eq!(end(&mut client, 5, "a", producer, true).await.0, INVALID_TXN_STATE, "none is open");
    assert_eq!(end(&mut client, 5, "a", (producer.0, 9), true).await, (PRODUCER_FENCED, (-1, -1)));
    node.stop().await;
}

/// Case B44.
#[tokio::test(flavor = "multi_thread")]
async fn b44_a_write_outside_of_a_transaction_begins_none() {
    let (node, mut client) = node().await;
    let producer = started(&mut client, "a").await;
    let of = |sequence| records(producer, sequence, &["x"]);
    assert_eq!(write(&mut client, 9, None, of(0)).await.0, 53, "no transactional id");
    assert_eq!(write(&mut client, 9, Some("a"), of(0)).await.0, INVALID_TXN_STATE);
    assert_eq!(write(&mut client, 11, Some("a"), of(0)).await.0, TRANSACTION_ABORTABLE);
    assert_eq!(write(&mut client, 9, Some("b"), of(0)).await.0, INVALID_PRODUCER_ID_MAPPING);
    let other = records((producer.0, 7), 0, &["x"]);
    assert_eq!(write(&mut client, 12, Some("a"), other).await.0, INVALID_PRODUCER_EPOCH);
    assert_eq!(add(&mut client, 3, "a", producer, &[("t", &[0])]).await, [NONE]);
    assert_eq!(end(&mut client, 3, "a", producer, false).await.0, NONE);
    stable(&node, 1).await;
    completed(&mut client, "a").await;
    assert_eq!(write(&mut client, 7, Some("a"), of(0)).await.0, INVALID_TXN_STATE, "late");
    assert_eq!(fetch(&mut client, 1).await.stable, 1, "nothing hangs");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_verification_older_clients_are_believed() {
    let settings = ["transaction.partition.verification.enable=false"];
    let node = TestNode::start(&settings).await;
    node.create_topic("t", &[]).await;
    let mut client = node.connect().await;
    let producer = started(&mut client, "a").await;
    let written = write(&mut client, 11, Some("a"), records(producer, 0, &["x"])).await;
    assert_eq!(written, (NONE, 0));
    let beyond = records((producer.0 + 1, 0), 0, &["x"]);
    let refused = write(&mut client, 12, Some("a"), beyond).await.0;
    assert_eq!(refused, INVALID_PRODUCER_ID_MAPPING, "v2 adds all the same");
    // It can be changed while the node runs.
    let key = "transaction.partition.verification.enable".to_owned();
    let on = vec![(key, crate::config::change::Change::Set("true".to_owned()))];
    node.node.controller.alter_broker_config("", on).await.expect("altered");
    let other = started(&mut client, "b").await;
    let written = write(&mut client, 11, Some("b"), records(other, 0, &["x"])).await;
    assert_eq!(written.0, TRANSACTION_ABORTABLE);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_unknown_partition_fails_the_whole_request() {
    let (node, mut client) = node().await;
    let producer = started(&mut client, "a").await;
    let places: &[(&str, &[i32])] = &[("t", &[0, 7]), ("missing", &[0])];
    assert_eq!(add(&mut client, 3, "a", producer, places).await, [3, 55, 3]);
    assert_eq!(end(&mut client, 3, "a", producer, true).await.0, INVALID_TXN_STATE, "not begun");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn brokers_add_and_verify_for_many_transactions_at_once() {
    let (node, mut client) = node().await;
    let producer = started(&mut client, "a").await;
    let txn = |id: &str, verify_only, partition| AddPartitionsToTxnTransaction {
        transactional_id: id.into(),
        producer_id: producer.0,
        producer_epoch: producer.1,
        verify_only,
        topics: vec![AddPartitionsToTxnTopic { name: "t".into(), partitions: vec![partition] }],
    };
    for version in [4, 5] {
        let transactions =
            vec![txn("a", false, 0), txn("a", true, 0), txn("a", true, 1), txn("b", true, 0)];
        let request = AddPartitionsToTxnRequest { transactions, ..Default::default() };
        let answer: AddPartitionsToTxnResponse = client.call(version, &request).await;
        let results = answer.results_by_transaction.iter();
        let codes: Vec<_> = results
            .map(|txn| txn.topic_results[0].results_by_partition[0].partition_error_code)
            .collect();
        assert_eq!(codes, [NONE, NONE, TRANSACTION_ABORTABLE, INVALID_PRODUCER_ID_MAPPING]);
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fenced_producer_hears_it_in_a_code_that_it_knows() {
    let (node, mut client) = node().await;
    let first = started(&mut client, "a").await;
    assert_eq!(add(&mut client, 3, "a", first, &[("t", &[0])]).await, [NONE]);
    assert_eq!(write(&mut client, 9, Some("a"), records(first, 0, &["x"])).await, (NONE, 0));
    let (code, second) = init(&mut client, "a").await;
    assert_eq!((code, second.0), (NONE, first.0));
    assert!(second.1 > first.1);
    stable(&node, 2).await;
    assert_eq!(fetch(&mut client, 1).await.aborted, [(first.0, 0)]);
    for (version, expected) in [(0, 47), (1, 47), (2, 90), (3, 90)] {
        assert_eq!(add(&mut client, version, "a", first, &[("t", &[0])]).await, [expected]);
        assert_eq!(end(&mut client, version, "a", first, true).await.0, expected);
        let request = AddOffsetsToTxnRequest {
            transactional_id: "a".into(),
            producer_id: first.0,
            producer_epoch: first.1,
            group_id: "g".into(),
        };
        let answer: AddOffsetsToTxnResponse = client.call(version, &request).await;
        assert_eq!(answer.error_code, expected);
    }
    for (version, expected) in [(3, 47), (4, 90), (5, 90)] {
        assert_eq!(init_as(&mut client, version, "a", first).await, (expected, (-1, -1)));
    }
    let late = write(&mut client, 9, Some("a"), records(first, 1, &["y"])).await;
    assert_eq!(late, (INVALID_PRODUCER_EPOCH, -1));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_cannot_be_are_refused() {
    let (node, mut client) = node().await;
    started(&mut client, "a").await;
    let ask = |id: &str, timeout| InitProducerIdRequest {
        transactional_id: Some(id.into()),
        transaction_timeout_ms: timeout,
        ..InitProducerIdRequest::default()
    };
    for (request, expected) in [
        (ask("", 1), 42),
        (ask("a", 0), 50),
        (ask("a", 900_001), 50),
        (InitProducerIdRequest { producer_id: 5, ..ask("a", 1) }, 42),
    ] {
        let given: InitProducerIdResponse = client.call(4, &request).await;
        assert_eq!((given.error_code, given.producer_id), (expected, -1));
    }
    let (code, producer) = init_as(&mut client, 4, "a", (77, 0)).await;
    assert_eq!((code, producer), (PRODUCER_FENCED, (-1, -1)));
    assert_eq!(end(&mut client, 3, "", (0, 0), true).await.0, 42);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_prepared_is_completed_by_the_next_start() {
    let (node, mut client) = node().await;
    let producer = started(&mut client, "a").await;
    assert_eq!(write(&mut client, 12, Some("a"), records(producer, 0, &["x"])).await, (NONE, 0));
    let gate = node.arm(GatePoint::TxnMarkerBefore, "t", GateAction::Hold);
    let (code, next) = end(&mut client, 5, "a", producer, true).await;
    assert_eq!(code, NONE, "answered once it is decided");
    node.caught(gate).await;
    let begun = write_once(&mut client, 12, Some("a"), records(next, 0, &["y"])).await;
    assert_eq!(begun.0, CONCURRENT_TRANSACTIONS, "after a while of patience");
    drop(client);
    let node = TestNode::start_on(node.stop().await, &[]).await;
    stable(&node, 2).await;
    let mut client = node.connect().await;
    assert_eq!(write(&mut client, 12, Some("a"), records(next, 0, &["y"])).await, (NONE, 2));
    assert_eq!(fetch(&mut client, 1).await.batches, [(0, false), (1, true)]);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_marker_that_a_gate_drops_is_written_again() {
    let (node, mut client) = node().await;
    let producer = started(&mut client, "a").await;
    assert_eq!(write(&mut client, 12, Some("a"), records(producer, 0, &["x"])).await, (NONE, 0));
    let filter = GateFilter { client: Some("a".into()), nth: Some(1), ..GateFilter::default() };
    let gates = &node.node.instruments.gates;
    gates.arm(GatePoint::TxnMarkerBefore, filter, GateAction::Drop).expect("a gate");
    assert_eq!(end(&mut client, 5, "a", producer, true).await.0, NONE);
    stable(&node, 2).await;
    node.stop().await;
}

/// Case B45.
#[tokio::test(flavor = "multi_thread")]
async fn b45_a_transaction_that_lasts_too_long_is_aborted_and_its_producer_told() {
    // Unverified, a write may come first: its time runs from the moment when the partition is added.
    let settings = [
        "transaction.abort.timed.out.transaction.cleanup.interval.ms=10",
        "transaction.max.timeout.ms=70000",
        "transaction.partition.verification.enable=false",
    ];
    let node = TestNode::start(&settings).await;
    node.create_topic("t", &[]).await;
    let mut client = node.connect().await;
    started(&mut client, "a").await;
    let request = InitProducerIdRequest {
        transactional_id: Some("a".into()),
        transaction_timeout_ms: 20,
        ..InitProducerIdRequest::default()
    };
    let given: InitProducerIdResponse = client.call(4, &request).await;
    let producer = (given.producer_id, given.producer_epoch);
    assert_eq!(write(&mut client, 9, Some("a"), records(producer, 0, &["x"])).await, (NONE, 0));
    assert_eq!(add(&mut client, 3, "a", producer, &[("t", &[0])]).await, [NONE]);
    stable(&node, 2).await;
    completed(&mut client, "a").await;
    let late = write(&mut client, 9, Some("a"), records(producer, 1, &["y"])).await;
    assert_eq!(late.0, INVALID_PRODUCER_EPOCH);
    assert_eq!(end(&mut client, 3, "a", producer, true).await.0, PRODUCER_FENCED);
    assert_eq!(fetch(&mut client, 1).await.aborted, [(producer.0, 0)]);
    let (code, next) = init_as(&mut client, 4, "a", producer).await;
    assert_eq!((code, next), (NONE, (producer.0, producer.1 + 1)), "KIP-588");
    node.stop().await;
}
