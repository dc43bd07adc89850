//! Creating topics through either door over a plain connection: a tool's JVM would cost a second
//! for each.

use std::time::Duration;

use anyhow::{Context, ensure};
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::{
    BrokerId, CreateTopicsRequest, ListOffsetsRequest, MetadataRequest, TopicName,
};
use kafka_protocol::protocol::StrBytes;
use serde_json::json;

use crate::raw_client::Connection;
use crate::wait;

const LIMIT: Duration = Duration::from_secs(120);
/// Isolation levels of ListOffsets.
pub const UNCOMMITTED: i8 = 0;
pub const COMMITTED: i8 = 1;
const UPDATE_AND_CREATE_TOPIC: i32 = 17;
const ROUTE_INFO_BY_TOPIC: i32 = 105;
const SET_MESSAGE_REQUEST_MODE: i32 = 401;
/// Readable and writable.
const PERM: &str = "6";

/// CreateTopics v4, then Metadata until every partition has a leader.
pub fn create_kafka_topic(bootstrap: &str, name: &str, partitions: i32) -> anyhow::Result<()> {
    let topic = TopicName(StrBytes::from_string(name.to_owned()));
    let mut connection = Connection::open(bootstrap, LIMIT)?;
    let wanted = CreatableTopic::default()
        .with_name(topic.clone())
        .with_num_partitions(partitions)
        .with_replication_factor(-1);
    let request = CreateTopicsRequest::default().with_topics(vec![wanted]).with_timeout_ms(30_000);
    for created in connection.kafka(4, &request)?.topics {
        ensure!(
            created.error_code == 0,
            "{name}: {} {:?}",
            created.error_code,
            created.error_message
        );
    }
    let named = kafka_protocol::messages::metadata_request::MetadataRequestTopic::default()
        .with_name(Some(topic));
    let request = MetadataRequest::default().with_topics(Some(vec![named]));
    wait::until("every partition has a leader", LIMIT, || {
        let metadata = connection.kafka(4, &request)?;
        let found = metadata.topics.first().context("the topic")?;
        let led = found.partitions.iter().filter(|one| one.leader_id.0 >= 0).count();
        ensure!(led == usize::try_from(partitions)?, "{led} of {partitions} partitions are led");
        Ok(())
    })
}

/// ListOffsets v4 for the partition's end as that isolation level sees it, exclusive.
pub fn end_offset(
    connection: &mut Connection,
    topic: &str,
    partition: i32,
    isolation: i8,
) -> anyhow::Result<i64> {
    let asked = ListOffsetsPartition::default().with_partition_index(partition).with_timestamp(-1);
    let asked = ListOffsetsTopic::default()
        .with_name(TopicName(StrBytes::from_string(topic.to_owned())))
        .with_partitions(vec![asked]);
    let request = ListOffsetsRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_isolation_level(isolation)
        .with_topics(vec![asked]);
    let answer = connection.kafka(4, &request)?;
    let told = answer.topics.first().and_then(|topic| topic.partitions.first());
    let told = told.context("an answer for the partition")?;
    ensure!(told.error_code == 0, "{topic}-{partition}: {}", told.error_code);
    Ok(told.offset)
}

/// Waits until no partition has an open transaction: an answer to EndTxn comes before the markers.
pub fn await_stable(kafka: &str, topic: &str, partitions: i32) -> anyhow::Result<()> {
    let mut connection = Connection::open(kafka, LIMIT)?;
    wait::until("no transaction is open", LIMIT, || {
        for partition in 0..partitions {
            let latest = end_offset(&mut connection, topic, partition, UNCOMMITTED)?;
            let committed = end_offset(&mut connection, topic, partition, COMMITTED)?;
            ensure!(committed == latest, "partition {partition}: {committed} of {latest}");
        }
        Ok(())
    })
}

/// UPDATE_AND_CREATE_TOPIC to the broker, then the route from the name server until it is there.
pub fn create_rocketmq_topic(
    broker: &str,
    namesrv: &str,
    name: &str,
    queues: i32,
) -> anyhow::Result<()> {
    let queues = queues.to_string();
    let fields = [
        ("topic", name),
        ("defaultTopic", "TBW102"),
        ("readQueueNums", &queues),
        ("writeQueueNums", &queues),
        ("perm", PERM),
        ("topicFilterType", "SINGLE_TAG"),
        ("topicSysFlag", "0"),
        ("order", "false"),
    ];
    let answer =
        Connection::open(broker, LIMIT)?.remoting(UPDATE_AND_CREATE_TOPIC, &fields, &[])?;
    ensure!(answer.code()? == 0, "{name}: {} {}", answer.code()?, answer.remark());
    let mut connection = Connection::open(namesrv, LIMIT)?;
    wait::until("the topic has a route", LIMIT, || {
        let route = connection.remoting(ROUTE_INFO_BY_TOPIC, &[("topic", name)], &[])?;
        ensure!(route.code()? == 0, "{name}: {} {}", route.code()?, route.remark());
        Ok(())
    })
}

/// Has a group's members pop from a topic.
pub fn set_pop(broker: &str, topic: &str, group: &str) -> anyhow::Result<()> {
    let mode = json!({
        "topic": topic, "consumerGroup": group, "mode": "POP", "popShareQueueNum": 8
    });
    let body = mode.to_string();
    let mut connection = Connection::open(broker, LIMIT)?;
    let answer = connection.remoting(SET_MESSAGE_REQUEST_MODE, &[], body.as_bytes())?;
    ensure!(answer.code()? == 0, "{group}: {} {}", answer.code()?, answer.remark());
    Ok(())
}
