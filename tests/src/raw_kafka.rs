//! Kafka requests that many tests send raw: topics, batches, whole partitions, positions.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use duolog_log_core::ids::{ProducerEpoch, ProducerId};
use duolog_log_core::record::{
    BatchBuilder, BatchParams, Batches, DecodedBatch, Decompressor, NewRecord, ProducerSequence,
};
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::PartitionData;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::PartitionProduceResponse;
use kafka_protocol::messages::{
    CreateTopicsRequest, FetchRequest, FindCoordinatorRequest, GroupId, InitProducerIdRequest,
    MetadataRequest, OffsetCommitRequest, OffsetFetchRequest, ProduceRequest, ProduceResponse,
    TopicName,
};
use kafka_protocol::protocol::StrBytes;

use crate::raw_client::Connection;
use crate::wait;

/// The newest versions that name topics by name.
pub const PRODUCE_VERSION: i16 = 9;
pub const FETCH_VERSION: i16 = 12;
const METADATA_VERSION: i16 = 9;
const OFFSET_COMMIT_VERSION: i16 = 8;
const OFFSET_FETCH_VERSION: i16 = 7;
const DECODED_BYTES_MAX: usize = 64 << 20;
/// COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR.
const COORDINATOR_STARTS: [i16; 3] = [14, 15, 16];
const COORDINATOR_LIMIT: Duration = Duration::from_secs(120);

pub fn topic_name(topic: &str) -> TopicName {
    TopicName(StrBytes::from_string(topic.to_owned()))
}

/// Creates `topic`; an error code fails.
pub fn create_topic(
    connection: &mut Connection,
    topic: &str,
    partitions: i32,
) -> anyhow::Result<()> {
    let creatable = CreatableTopic::default()
        .with_name(topic_name(topic))
        .with_num_partitions(partitions)
        .with_replication_factor(1);
    let request =
        CreateTopicsRequest::default().with_topics(vec![creatable]).with_timeout_ms(120_000);
    let response = connection.kafka(7, &request)?;
    let code = response.topics.first().context("a topic in the answer")?.error_code;
    ensure!(code == 0, "CreateTopics of {topic}: error {code}");
    Ok(())
}

/// A fresh producer id and epoch.
pub fn init_producer_id(
    connection: &mut Connection,
) -> anyhow::Result<(ProducerId, ProducerEpoch)> {
    let request = InitProducerIdRequest::default()
        .with_transactional_id(None)
        .with_transaction_timeout_ms(60_000);
    let response = connection.kafka(4, &request)?;
    ensure!(response.error_code == 0, "InitProducerId: error {}", response.error_code);
    Ok((ProducerId(response.producer_id.0), ProducerEpoch(response.producer_epoch)))
}

/// An uncompressed batch of records that have values only.
pub fn batch(values: &[&[u8]], producer: Option<ProducerSequence>) -> Bytes {
    let mut builder = BatchBuilder::new(BatchParams { producer, ..BatchParams::default() });
    for value in values {
        let record = NewRecord { timestamp: 1, key: None, value: Some(value), headers: &[] };
        builder.append(&record).expect("a record that fits");
    }
    builder.finish_uncompressed().expect("a batch that fits").freeze()
}

/// A Produce request of `records` for one partition.
pub fn produce(topic: &str, partition: i32, acks: i16, records: Bytes) -> ProduceRequest {
    let data = PartitionProduceData::default().with_index(partition).with_records(Some(records));
    let topic =
        TopicProduceData::default().with_name(topic_name(topic)).with_partition_data(vec![data]);
    ProduceRequest::default()
        .with_transactional_id(None)
        .with_acks(acks)
        .with_timeout_ms(120_000)
        .with_topic_data(vec![topic])
}

/// The one partition's part of a Produce answer.
pub fn produced(response: ProduceResponse) -> anyhow::Result<PartitionProduceResponse> {
    let topic = response.responses.into_iter().next().context("a topic in the answer")?;
    topic.partition_responses.into_iter().next().context("a partition in the answer")
}

/// The partitions of `topic`, which this asks Metadata to create if need be.
pub fn created_partitions(connection: &mut Connection, topic: &str) -> anyhow::Result<usize> {
    let wanted = MetadataRequestTopic::default().with_name(Some(topic_name(topic)));
    let request = MetadataRequest::default()
        .with_topics(Some(vec![wanted]))
        .with_allow_auto_topic_creation(true);
    let response = connection.kafka(METADATA_VERSION, &request)?;
    let topic = response.topics.into_iter().next().context("a topic in the answer")?;
    ensure!(topic.error_code == 0, "Metadata: error {}", topic.error_code);
    Ok(topic.partitions.len())
}

/// A Fetch of one partition that waits for nothing.
pub fn fetch_request(topic: &str, partition: i32, offset: i64, bytes_max: i32) -> FetchRequest {
    let wanted = FetchPartition::default()
        .with_partition(partition)
        .with_current_leader_epoch(-1)
        .with_fetch_offset(offset)
        .with_partition_max_bytes(bytes_max);
    let topic = FetchTopic::default().with_topic(topic_name(topic)).with_partitions(vec![wanted]);
    FetchRequest::default()
        .with_replica_id((-1).into())
        .with_max_wait_ms(0)
        .with_min_bytes(0)
        .with_max_bytes(50 << 20)
        .with_session_epoch(-1)
        .with_topics(vec![topic])
}

/// One Fetch of one partition.
pub fn fetch(
    connection: &mut Connection,
    topic: &str,
    partition: i32,
    offset: i64,
) -> anyhow::Result<PartitionData> {
    let request = fetch_request(topic, partition, offset, 1 << 20);
    let response = connection.kafka(FETCH_VERSION, &request)?;
    ensure!(response.error_code == 0, "Fetch: error {}", response.error_code);
    let topic = response.responses.into_iter().next().context("a topic in the answer")?;
    topic.partitions.into_iter().next().context("a partition in the answer")
}

/// Offset and value of every record of a partition, from `offset` to the HW.
pub fn values(
    connection: &mut Connection,
    topic: &str,
    partition: i32,
    mut offset: i64,
) -> anyhow::Result<Vec<(i64, Vec<u8>)>> {
    let mut values = Vec::new();
    let mut decompressor = Decompressor::default();
    loop {
        let answer = fetch(connection, topic, partition, offset)?;
        ensure!(answer.error_code == 0, "Fetch of {topic}-{partition}: {}", answer.error_code);
        let records = answer.records.unwrap_or_default();
        let before = offset;
        for batch in Batches::new(&records) {
            let batch = batch?;
            batch.verify_crc()?;
            let bytes = records.slice_ref(batch.bytes());
            let decoded = DecodedBatch::decode(&bytes, &mut decompressor, DECODED_BYTES_MAX)?;
            for record in decoded.iter_from(offset) {
                values.push((record.offset, record.value.unwrap_or_default().to_vec()));
            }
            offset = batch.header().next_offset();
        }
        if offset == before {
            ensure!(offset >= answer.high_watermark, "stuck at {offset} below the HW");
            return Ok(values);
        }
    }
}

/// Asks for a group's coordinator, as every client does first; the first question creates `__consumer_offsets`.
pub fn find_coordinator(connection: &mut Connection, group: &str) -> anyhow::Result<()> {
    let request = FindCoordinatorRequest::default()
        .with_key(StrBytes::from_string(group.to_owned()))
        .with_key_type(0);
    wait::until("the group's coordinator", COORDINATOR_LIMIT, || {
        let response = connection.kafka(3, &request)?;
        ensure!(response.error_code == 0, "FindCoordinator: error {}", response.error_code);
        Ok(())
    })
}

/// Commits a position for a group without members, waiting while its coordinator starts.
pub fn commit_offset(
    connection: &mut Connection,
    group: &str,
    topic: &str,
    offset: i64,
) -> anyhow::Result<()> {
    let partition = OffsetCommitRequestPartition::default()
        .with_partition_index(0)
        .with_committed_offset(offset)
        .with_committed_leader_epoch(-1)
        .with_committed_metadata(Some(StrBytes::from_static_str("")));
    let topic = OffsetCommitRequestTopic::default()
        .with_name(topic_name(topic))
        .with_partitions(vec![partition]);
    let request = OffsetCommitRequest::default()
        .with_group_id(GroupId(StrBytes::from_string(group.to_owned())))
        .with_generation_id_or_member_epoch(-1)
        .with_group_instance_id(None)
        .with_topics(vec![topic]);
    let commit = |connection: &mut Connection| -> anyhow::Result<i16> {
        let response = connection.kafka(OFFSET_COMMIT_VERSION, &request)?;
        let topic = response.topics.first().context("a topic in the answer")?;
        Ok(topic.partitions.first().context("a partition in the answer")?.error_code)
    };
    let code = wait::until("the group's coordinator", COORDINATOR_LIMIT, || {
        match commit(connection) {
            Ok(code) if COORDINATOR_STARTS.contains(&code) => bail!("OffsetCommit: error {code}"),
            // Done, refused for good, or disconnected: no later try changes that.
            outcome => Ok(outcome),
        }
    })??;
    ensure!(code == 0, "OffsetCommit: error {code}");
    Ok(())
}

/// A group's position on partition 0, -1 when it has none, waiting while its coordinator starts.
pub fn committed_offset(
    connection: &mut Connection,
    group: &str,
    topic: &str,
) -> anyhow::Result<i64> {
    let topic = OffsetFetchRequestTopic::default()
        .with_name(topic_name(topic))
        .with_partition_indexes(vec![0]);
    let request = OffsetFetchRequest::default()
        .with_group_id(GroupId(StrBytes::from_string(group.to_owned())))
        .with_topics(Some(vec![topic]));
    wait::until("the group's coordinator", COORDINATOR_LIMIT, || {
        let response = connection.kafka(OFFSET_FETCH_VERSION, &request)?;
        ensure!(response.error_code == 0, "OffsetFetch: error {}", response.error_code);
        let topic = response.topics.first().context("a topic in the answer")?;
        let partition = topic.partitions.first().context("a partition in the answer")?;
        ensure!(partition.error_code == 0, "OffsetFetch: error {}", partition.error_code);
        Ok(partition.committed_offset)
    })
}
