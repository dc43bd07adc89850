//! Produce, Fetch, ListOffsets and groups, through a connection to a whole node.

use duolog_log_core::gate::{GateAction, GatePoint};
use duolog_log_core::ids::{ProducerEpoch, ProducerId};
use duolog_log_core::record::batch::{BatchHeader, SharedBatches};
use duolog_log_core::record::{
    BatchBuilder, BatchKind, BatchParams, Compression, Compressor, NewRecord, ProducerSequence,
};

use crate::kafka::codec::messages::fetch_request::{FetchPartition, FetchTopic};
use crate::kafka::codec::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use crate::kafka::codec::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use crate::kafka::codec::messages::offset_fetch_request::OffsetFetchRequestTopic;
use crate::kafka::codec::messages::{
    FetchRequest, FetchResponse, FindCoordinatorRequest, FindCoordinatorResponse,
    InitProducerIdRequest, InitProducerIdResponse, ListOffsetsRequest, ListOffsetsResponse,
    OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse,
    ProduceResponse,
};
use crate::testing::coordinator_of;
use crate::testing::served::{Client, TestNode, batch, batch_of, eventually, produce_request};

pub(in crate::kafka::api) fn fetch_request(topic: &str, partitions: &[(i32, i64)]) -> FetchRequest {
    FetchRequest {
        max_wait_ms: 0,
        min_bytes: 1,
        max_bytes: i32::MAX,
        topics: vec![FetchTopic {
            topic: topic.into(),
            partitions: partitions
                .iter()
                .map(|(partition, fetch_offset)| FetchPartition {
                    partition: *partition,
                    fetch_offset: *fetch_offset,
                    partition_max_bytes: 1024 * 1024,
                    ..FetchPartition::default()
                })
                .collect(),
            ..FetchTopic::default()
        }],
        ..FetchRequest::default()
    }
}

/// Base offsets of the batches that a fetch of one partition gave.
fn bases(response: &FetchResponse, at: usize) -> Vec<i64> {
    let records = response.responses[0].partitions[at].records.as_ref().expect("never null");
    let base = |batch: Result<(BatchHeader, _), _>| batch.expect("whole batches").0.base_offset;
    SharedBatches::new(records.to_bytes()).map(base).collect()
}

fn with_times(times: &[i64], compression: Compression) -> bytes::BytesMut {
    let mut builder = BatchBuilder::new(BatchParams { compression, ..BatchParams::default() });
    for timestamp in times {
        let record = NewRecord { timestamp: *timestamp, value: Some(b"v"), ..NewRecord::default() };
        builder.append(&record).expect("a small batch");
    }
    builder.finish(&mut Compressor::new()).expect("records")
}

async fn offset_for(client: &mut Client, topic: &str, timestamp: i64) -> (i16, i64, i64) {
    let request = ListOffsetsRequest {
        replica_id: -1,
        topics: vec![ListOffsetsTopic {
            name: topic.into(),
            partitions: vec![ListOffsetsPartition {
                partition_index: 0,
                current_leader_epoch: -1,
                timestamp,
            }],
        }],
        ..ListOffsetsRequest::default()
    };
    let response: ListOffsetsResponse = client.call(7, &request).await;
    let partition = &response.topics[0].partitions[0];
    (partition.error_code, partition.offset, partition.timestamp)
}

#[tokio::test(flavor = "multi_thread")]
async fn other_numbers_of_acks_are_refused_and_nothing_is_appended() {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[]).await;
    let mut client = node.connect().await;
    for acks in [2, -2, i16::MAX] {
        assert_eq!(client.produce("t", acks, batch(&["v"])).await, (21, -1), "case B06");
    }
    assert_eq!(client.produce("t", 1, batch(&["v"])).await, (0, 0));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_whole_sound_batch_is_taken() {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[("max.message.bytes", "500")]).await;
    let mut client = node.connect().await;
    let two = [batch(&["a"]), batch(&["b"])].concat();
    let mut miscounted = batch(&["a", "b"]);
    miscounted[60] = 3;
    let mut torn = batch(&["a"]);
    torn[20] ^= 1;
    let transactional = batch_of(
        BatchParams {
            kind: BatchKind::Transactional,
            producer: Some(ProducerSequence {
                id: ProducerId(1),
                epoch: ProducerEpoch(0),
                base_sequence: 0,
            }),
            ..BatchParams::default()
        },
        &["a"],
    );
    let control =
        batch_of(BatchParams { kind: BatchKind::Control, ..BatchParams::default() }, &["a"]);
    // Case B10 and its kin.
    for (what, records, codes) in [
        ("two batches", two, &[87][..]),
        ("no bytes", Vec::new(), &[87, 42]),
        ("a count that does not fit", miscounted.to_vec(), &[87, 2]),
        ("a crc that does not fit", torn.to_vec(), &[2]),
        ("a transactional batch of no transactional id", transactional.to_vec(), &[53]),
        ("a control batch", control.to_vec(), &[87]),
        ("a batch above max.message.bytes", batch(&["v".repeat(600).as_str()]).to_vec(), &[10]),
    ] {
        let (code, offset) = client.produce("t", -1, records.as_slice().into()).await;
        assert!(codes.contains(&code) && offset == -1, "{what}: {code}");
    }
    assert_eq!(client.produce("t", -1, batch(&["v"])).await, (0, 0), "nothing was appended");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn some_topics_take_no_produce() {
    let node = TestNode::start(&[]).await;
    node.create_topic("closed", &[("rmq.perm", "4")]).await;
    node.node.coordinators.offsets_topic().await.expect("created");
    let mut client = node.connect().await;
    assert_eq!(client.produce("closed", 1, batch(&["v"])).await.0, 44, "POLICY_VIOLATION");
    assert_eq!(client.produce("__consumer_offsets", 1, batch(&["v"])).await.0, 17);
    assert_eq!(client.produce("missing", 1, batch(&["v"])).await.0, 3);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_batch_is_answered_with_its_first_offset_also_after_a_restart() {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[]).await;
    let mut client = node.connect().await;
    let ask = InitProducerIdRequest { transactional_id: None, ..InitProducerIdRequest::default() };
    let given: InitProducerIdResponse = client.call(4, &ask).await;
    assert_eq!((given.error_code, given.producer_epoch), (0, 0));
    let numbered = |base_sequence| {
        let id = ProducerId(given.producer_id);
        let producer = ProducerSequence { id, epoch: ProducerEpoch(0), base_sequence };
        batch_of(BatchParams { producer: Some(producer), ..BatchParams::default() }, &["a", "b"])
    };
    for sequence in [0, 2, 4] {
        let outcome = client.produce("t", -1, numbered(sequence)).await;
        assert_eq!(outcome, (0, i64::from(sequence)));
    }
    assert_eq!(client.produce("t", -1, numbered(2)).await, (0, 2), "a duplicate");
    assert_eq!(client.produce("t", -1, numbered(8)).await, (45, -1), "a gap");
    let node = TestNode::start_on(node.stop().await, &[]).await;
    let mut client = node.connect().await;
    assert_eq!(client.produce("t", -1, numbered(4)).await, (0, 4), "a duplicate");
    assert_eq!(client.produce("t", -1, numbered(6)).await, (0, 6));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_partition_with_data_gives_one_whole_batch_however_large() {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[]).await;
    let mut client = node.connect().await;
    client.produce("t", 1, batch(&["v".repeat(900_000).as_str()])).await;
    client.produce("t", 1, batch(&["small"])).await;
    // Case B09: limits of one, none and less.
    for limit in [1, 0, -1] {
        let mut request = fetch_request("t", &[(1, 0), (0, 0)]);
        request.max_bytes = limit;
        for partition in &mut request.topics[0].partitions {
            partition.partition_max_bytes = limit;
        }
        let response: FetchResponse = client.call(11, &request).await;
        assert_eq!((bases(&response, 0), bases(&response, 1)), (vec![], vec![0]), "limit {limit}");
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_version_of_fetch_decodes_with_no_byte_left() {
    let node = TestNode::start(&[]).await;
    let topic = node.create_topic("t", &[]).await;
    let mut client = node.connect().await;
    client.produce("t", 1, batch(&["v"])).await;
    for version in 4..=18 {
        for isolation_level in [0, 1] {
            let mut request = fetch_request("t", &[(0, 0), (1, 0)]);
            request.isolation_level = isolation_level;
            if version >= 13 {
                request.topics[0].topic_id = topic.id;
            }
            // Case B12: decoding is strict.
            let response: FetchResponse = client.call(version, &request).await;
            let partition = &response.responses[0].partitions[0];
            assert_eq!((partition.error_code, partition.high_watermark), (0, 1), "v{version}");
            assert_eq!(partition.preferred_read_replica, -1);
            assert_eq!(partition.aborted_transactions.is_some(), isolation_level == 1);
            assert_eq!((bases(&response, 0), bases(&response, 1)), (vec![0], vec![]));
        }
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_at_the_end_waits_for_the_next_append() {
    let node = TestNode::start(&[]).await;
    let topic = node.create_topic("t", &[]).await;
    let (mut reader, mut writer) = (node.connect().await, node.connect().await);
    let mut request = fetch_request("t", &[(0, 0), (1, 0)]);
    request.max_wait_ms = 60_000;
    reader.send(12, &request).await;
    let partition = node.node.partitions.find(topic.id, 1).expect("a partition");
    eventually("the fetch waits", || partition.is_awaited()).await;
    writer.produce("t", 1, batch(&["v"])).await;
    let (_, response): (_, FetchResponse) = reader.receive(12).await;
    assert_eq!(bases(&response, 0), [0]);
    // A node that stops does not make anybody wait.
    request.topics[0].partitions.iter_mut().for_each(|partition| partition.fetch_offset = 1);
    request.topics[0].partitions.truncate(1);
    reader.send(12, &request).await;
    let partition = node.node.partitions.find(topic.id, 0).expect("a partition");
    eventually("the fetch waits", || partition.is_awaited()).await;
    node.node.stopping.cancel();
    let (_, response): (_, FetchResponse) = reader.receive(12).await;
    assert_eq!(response.responses[0].partitions[0].high_watermark, 1);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn offsets_and_epochs_out_of_range_are_told() {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[]).await;
    let mut client = node.connect().await;
    client.produce("t", 1, batch(&["v"])).await;
    for (offset, epoch, code) in [(2, -1, 1), (-1, -1, 1), (0, 5, 75), (1, 0, 0)] {
        let mut request = fetch_request("t", &[(0, offset)]);
        request.topics[0].partitions[0].current_leader_epoch = epoch;
        let response: FetchResponse = client.call(12, &request).await;
        let partition = &response.responses[0].partitions[0];
        assert_eq!(partition.error_code, code, "offset {offset}, epoch {epoch}");
        if code != 0 {
            assert_eq!((partition.high_watermark, partition.log_start_offset), (-1, -1));
        }
    }
    let unknown: FetchResponse = client.call(12, &fetch_request("missing", &[(0, 0)])).await;
    assert_eq!(unknown.responses[0].partitions[0].error_code, 3);
    let unknown: FetchResponse = client.call(13, &fetch_request("t", &[(0, 0)])).await;
    assert_eq!(unknown.responses[0].partitions[0].error_code, 100, "an id that nobody has");
    let mut session = fetch_request("t", &[(0, 0)]);
    (session.session_id, session.session_epoch) = (7, 1);
    let response: FetchResponse = client.call(12, &session).await;
    assert_eq!((response.error_code, response.responses.len()), (70, 0));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_finds_the_first_record_at_or_after_it() {
    let node = TestNode::start(&[]).await;
    let mut client = node.connect().await;
    let forever = [("message.timestamp.before.max.ms", "9223372036854775807")];
    node.create_topic("apart", &forever).await;
    for time in [2, 4, 6, 8] {
        client.produce("apart", 1, with_times(&[time], Compression::None)).await;
    }
    let mut topics = vec!["apart".to_owned()];
    for compression in Compression::ALL {
        let name = format!("{compression}").to_lowercase();
        node.create_topic(&name, &forever).await;
        client.produce(&name, 1, with_times(&[2, 4, 6, 8], compression)).await;
        topics.push(name);
    }
    for topic in topics {
        for time in 1..=9 {
            // Case B21.
            let wanted = match (time + 1) / 2 {
                5 => (0, -1, -1),
                nth => (0, nth - 1, 2 * nth),
            };
            assert_eq!(offset_for(&mut client, &topic, time).await, wanted, "{topic} at {time}");
        }
        assert_eq!(offset_for(&mut client, &topic, -1).await, (0, 4, -1), "the end");
        assert_eq!(offset_for(&mut client, &topic, -2).await, (0, 0, -1), "the start");
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_greatest_time_is_that_of_its_record() {
    let node = TestNode::start(&[]).await;
    let mut client = node.connect().await;
    for compression in [Compression::None, Compression::Lz4] {
        let topic = format!("{compression}").to_lowercase();
        let created = node.create_topic(&topic, &[]).await;
        assert_eq!(offset_for(&mut client, &topic, -3).await, (0, -1, -1), "empty");
        client.produce(&topic, 1, with_times(&[5, 9, 7], compression)).await;
        client.produce(&topic, 1, with_times(&[9, 1], compression)).await;
        // Case B24.
        assert_eq!(offset_for(&mut client, &topic, -3).await, (0, 1, 9));
        let partition = node.node.partitions.find(created.id, 0).expect("a partition");
        assert_eq!(partition.delete_records(2).await, Ok(2));
        assert_eq!(offset_for(&mut client, &topic, -3).await, (0, 3, 9));
        assert_eq!(offset_for(&mut client, &topic, -2).await, (0, 2, -1));
    }
    node.stop().await;
}

async fn committed(client: &mut Client, version: i16) -> (i16, i16, i64) {
    let request = OffsetFetchRequest {
        group_id: "g".into(),
        topics: Some(vec![OffsetFetchRequestTopic {
            name: "t".into(),
            partition_indexes: vec![0],
        }]),
        ..OffsetFetchRequest::default()
    };
    let response: OffsetFetchResponse = client.call(version, &request).await;
    let partition = response.topics.first().and_then(|topic| topic.partitions.first());
    let (code, offset) =
        partition.map_or((0, 0), |partition| (partition.error_code, partition.committed_offset));
    (response.error_code, code, offset)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_is_there_or_said_to_be_loading_but_never_missing() {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[]).await;
    let mut client = node.connect().await;
    let find = FindCoordinatorRequest { key: "g".into(), ..FindCoordinatorRequest::default() };
    coordinator_of("g", &node.node).await;
    let found: FindCoordinatorResponse = client.call(3, &find).await;
    assert_eq!((found.error_code, found.node_id), (0, 1));
    let commit = OffsetCommitRequest {
        group_id: "g".into(),
        generation_id_or_member_epoch: -1,
        retention_time_ms: -1,
        topics: vec![OffsetCommitRequestTopic {
            name: "t".into(),
            partitions: vec![
                OffsetCommitRequestPartition {
                    partition_index: 0,
                    committed_offset: 42,
                    committed_leader_epoch: -1,
                    committed_metadata: Some("m".into()),
                },
                OffsetCommitRequestPartition { partition_index: 9, ..Default::default() },
            ],
            ..OffsetCommitRequestTopic::default()
        }],
        ..OffsetCommitRequest::default()
    };
    let done: OffsetCommitResponse = client.call(8, &commit).await;
    let records_in = node.node.metrics.records_in.value();
    assert_eq!(records_in, 0, "what the node writes for itself is nobody's record");
    let codes: Vec<i16> =
        done.topics[0].partitions.iter().map(|partition| partition.error_code).collect();
    assert_eq!(codes, [0, 3], "a partition that is not there is refused alone");
    // Case B25: from the first accepted connection on.
    let node = TestNode::start_on(node.stop().await, &[]).await;
    let mut client = node.connect().await;
    loop {
        let (top, partition, offset) = committed(&mut client, 1).await;
        assert!(top == 0 && (partition == 14 || offset == 42), "{partition} {offset}");
        let (top, partition, offset) = committed(&mut client, 5).await;
        assert!(top == 14 || (partition == 0 && offset == 42), "{top} {offset}");
        if offset == 42 {
            break;
        }
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn log_append_time_is_the_nodes_own() {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[("message.timestamp.type", "LogAppendTime")]).await;
    let mut client = node.connect().await;
    let before = crate::clock::now_ms();
    let records = with_times(&[5, 6], Compression::Gzip).freeze();
    let response: ProduceResponse = client.call(9, &produce_request("t", 1, records)).await;
    let partition = &response.responses[0].partition_responses[0];
    assert!(partition.log_append_time_ms >= before);
    let found = offset_for(&mut client, "t", partition.log_append_time_ms).await;
    assert_eq!(found, (0, 0, partition.log_append_time_ms));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_writes_and_reads_go_on() {
    let node = TestNode::start(&[]).await;
    node.create_topic("t", &[]).await;
    let mut client = node.connect().await;
    assert_eq!(client.produce("t", 1, batch(&["before"])).await, (0, 0));
    node.disk.set_capacity(Some(node.disk.used_bytes() + 10));
    assert_eq!(client.produce("t", 1, batch(&["v".repeat(100).as_str()])).await.0, 56);
    let response: FetchResponse = client.call(12, &fetch_request("t", &[(0, 0)])).await;
    assert_eq!(bases(&response, 0), [0]);
    node.disk.set_capacity(None);
    assert_eq!(client.produce("t", 1, batch(&["after"])).await, (0, 1));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_debugging_replica_is_a_consumer_in_every_version() {
    let node = TestNode::start(&[]).await;
    let topic = node.create_topic("t", &[]).await;
    let _gate = node.arm(GatePoint::HighWatermarkBefore, "t", GateAction::Hold);
    let mut client = node.connect().await;
    assert_eq!(client.produce("t", 1, batch(&["v"])).await, (0, 0));
    for version in [12, 14, 15, 17] {
        for replica in [-1, -2] {
            let mut request = fetch_request("t", &[(0, 0)]);
            request.topics[0].topic_id = topic.id;
            request.replica_id = if version < 15 { replica } else { -1 };
            request.replica_state.replica_id = if version < 15 { -1 } else { replica };
            let response: FetchResponse = client.call(version, &request).await;
            assert!(bases(&response, 0).is_empty(), "v{version} as {replica}");
        }
        let mut request = fetch_request("t", &[(0, 0)]);
        request.topics[0].topic_id = topic.id;
        request.replica_id = if version < 15 { 2 } else { -1 };
        request.replica_state.replica_id = if version < 15 { -1 } else { 2 };
        let response: FetchResponse = client.call(version, &request).await;
        let code = response.responses[0].partitions[0].error_code;
        assert_eq!(code, 6, "v{version}: nobody follows a node that is alone");
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_fetch_hears_of_its_topics_deletion() {
    let node = TestNode::start(&[]).await;
    let topic = node.create_topic("t", &[]).await;
    let mut reader = node.connect().await;
    let mut request = fetch_request("t", &[(0, 0), (1, 0)]);
    request.max_wait_ms = 60_000;
    reader.send(12, &request).await;
    let partition = node.node.partitions.find(topic.id, 1).expect("a partition");
    eventually("the fetch waits", || partition.is_awaited()).await;
    node.node.delete_topic(topic.id).await.expect("deleted");
    let (_, response): (_, FetchResponse) = reader.receive(12).await;
    let codes = response.responses[0].partitions.iter().map(|partition| partition.error_code);
    assert!(codes.into_iter().any(|code| code == 3), "UNKNOWN_TOPIC_OR_PARTITION");
    node.stop().await;
}
