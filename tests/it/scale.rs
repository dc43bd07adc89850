//! Ten thousand partitions on one node, and a node that runs out of descriptors.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bytes::Bytes;
use duolog_tests::cluster::{Launch, Node};
use duolog_tests::raw_client::Connection;
use duolog_tests::raw_kafka::{self, PRODUCE_VERSION, produce, produced, topic_name};
use duolog_tests::wait;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    CreateTopicsRequest, DeleteTopicsRequest, FetchRequest, ProduceRequest,
};

const LIMIT: Duration = Duration::from_secs(120);
const TOPICS: i32 = 10;
const EACH: i32 = 1000;
/// What ten thousand partitions may take to make: 3 s are the aim, a debug build on a busy machine needs more.
const CREATION_LIMIT: Duration = Duration::from_secs(60);
/// Descriptors of a node with ten thousand partitions, sockets included.
const OPEN_FILES_MAX: usize = 1000;
/// KAFKA_STORAGE_ERROR: clients try again.
const STORAGE_ERROR: i16 = 56;

fn open_files(node: &Node) -> usize {
    fs::read_dir(format!("/proc/{}/fd", node.pid())).expect("a process").count()
}

fn name(topic: i32) -> String {
    format!("many-{topic}")
}

fn create_all(connection: &mut Connection) -> anyhow::Result<()> {
    let topics = (0..TOPICS).map(|topic| {
        CreatableTopic::default()
            .with_name(topic_name(&name(topic)))
            .with_num_partitions(EACH)
            .with_replication_factor(1)
    });
    let request =
        CreateTopicsRequest::default().with_topics(topics.collect()).with_timeout_ms(60_000);
    for topic in connection.kafka(7, &request)?.topics {
        ensure!(topic.error_code == 0, "{:?}: {}", topic.name, topic.error_code);
    }
    Ok(())
}

fn value(topic: i32, partition: i32) -> String {
    format!("{topic}/{partition}")
}

/// One record to each partition of a topic, in one request.
fn write_all(connection: &mut Connection, topic: i32) -> anyhow::Result<()> {
    let partitions = (0..EACH).map(|partition| {
        let records = raw_kafka::batch(&[value(topic, partition).as_bytes()], None);
        PartitionProduceData::default().with_index(partition).with_records(Some(records))
    });
    let data = TopicProduceData::default()
        .with_name(topic_name(&name(topic)))
        .with_partition_data(partitions.collect());
    let request = ProduceRequest::default()
        .with_transactional_id(None)
        .with_acks(-1)
        .with_timeout_ms(60_000)
        .with_topic_data(vec![data]);
    for topic in connection.kafka(PRODUCE_VERSION, &request)?.responses {
        for partition in topic.partition_responses {
            ensure!(partition.error_code == 0, "partition {}", partition.index);
        }
    }
    Ok(())
}

/// A session of all partitions of a topic; how many records it gave, and its id.
fn read_all(connection: &mut Connection, topic: i32) -> anyhow::Result<(usize, i32)> {
    let partition = |partition| {
        FetchPartition::default()
            .with_partition(partition)
            .with_current_leader_epoch(-1)
            .with_partition_max_bytes(1 << 20)
    };
    let wanted = FetchTopic::default()
        .with_topic(topic_name(&name(topic)))
        .with_partitions((0..EACH).map(partition).collect());
    let request = FetchRequest::default()
        .with_replica_id((-1).into())
        .with_max_bytes(50 << 20)
        .with_session_epoch(0)
        .with_topics(vec![wanted]);
    let answer = connection.kafka(raw_kafka::FETCH_VERSION, &request)?;
    let mut read = 0;
    for data in answer.responses.iter().flat_map(|topic| &topic.partitions) {
        ensure!(data.error_code == 0, "partition {}: {}", data.partition_index, data.error_code);
        let wanted = value(topic, data.partition_index);
        let records = data.records.as_ref().map(Bytes::as_ref).unwrap_or_default();
        read += usize::from(records.windows(wanted.len()).any(|part| part == wanted.as_bytes()));
    }
    Ok((read, answer.session_id))
}

fn delete_all(connection: &mut Connection) -> anyhow::Result<()> {
    let topics = (0..TOPICS)
        .map(|topic| DeleteTopicState::default().with_name(Some(topic_name(&name(topic)))));
    let request =
        DeleteTopicsRequest::default().with_topics(topics.collect()).with_timeout_ms(60_000);
    for topic in connection.kafka(6, &request)?.responses {
        ensure!(topic.error_code == 0, "{:?}: {}", topic.name, topic.error_code);
    }
    Ok(())
}

#[test]
fn ten_thousand_partitions_are_made_written_read_and_deleted_with_few_files() -> anyhow::Result<()>
{
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(directory.path())?.set("log.segment.delete.delay.ms", 0);
    let node = launch.start()?;
    let mut connection = Connection::open(&node.kafka(), LIMIT)?;
    let start = Instant::now();
    create_all(&mut connection)?;
    let took = start.elapsed();
    ensure!(took < CREATION_LIMIT, "created in {took:?}");
    ensure!(open_files(&node) < OPEN_FILES_MAX / 5, "{} open files", open_files(&node));
    for topic in 0..TOPICS {
        write_all(&mut connection, topic)?;
    }
    let mut sessions = BTreeSet::new();
    for topic in 0..TOPICS {
        let (read, session) = read_all(&mut connection, topic)?;
        ensure!(read == EACH as usize, "{read} of {EACH} records of topic {topic}");
        sessions.insert(session);
    }
    ensure!(sessions.len() == TOPICS as usize && !sessions.contains(&0), "{sessions:?}");
    ensure!(open_files(&node) < OPEN_FILES_MAX, "{} open files", open_files(&node));
    node.kill()?;
    let node = launch.start()?;
    let mut connection = Connection::open(&node.kafka(), LIMIT)?;
    for topic in 0..TOPICS {
        let (read, _) = read_all(&mut connection, topic)?;
        ensure!(read == EACH as usize, "{read} of {EACH} records after the kill");
    }
    ensure!(open_files(&node) < OPEN_FILES_MAX, "{} open files", open_files(&node));
    delete_all(&mut connection)?;
    wait::until("the folders are gone", LIMIT, || {
        let entries = fs::read_dir(launch.data_dir())?.count();
        ensure!(entries < 20, "{entries} entries are left");
        Ok(())
    })
}

#[test]
fn without_descriptors_a_node_refuses_for_now_and_loses_nothing() -> anyhow::Result<()> {
    const PARTITIONS: i32 = 200;
    const DESCRIPTORS: u64 = 120;
    const STANDARD_STREAMS: u64 = 3;
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(directory.path())?.set("auto.create.topics.enable", false);
    let node = launch.start()?;
    limit_descriptors(&node, DESCRIPTORS)?;
    let mut connection = Connection::open(&node.kafka(), LIMIT)?;
    raw_kafka::create_topic(&mut connection, "few", PARTITIONS)?;
    let mut acknowledged = Vec::new();
    let write = |connection: &mut Connection, partition, text: &str| -> anyhow::Result<i16> {
        let records = raw_kafka::batch(&[text.as_bytes()], None);
        let request = produce("few", partition, -1, records);
        Ok(produced(connection.kafka(PRODUCE_VERSION, &request)?)?.error_code)
    };
    // More logs than descriptors: those that rest give theirs up.
    for partition in 0..PARTITIONS {
        let code = write(&mut connection, partition, "first")?;
        ensure!(code == 0, "partition {partition}: error {code}");
        acknowledged.push((partition, "first"));
    }
    // The bound is on the number a new descriptor gets: at three, none can be opened, whichever
    // one a resting log gives up.
    limit_descriptors(&node, STANDARD_STREAMS)?;
    let mut refused = 0;
    for partition in 0..PARTITIONS {
        match write(&mut connection, partition, "second")? {
            0 => acknowledged.push((partition, "second")),
            STORAGE_ERROR => refused += 1,
            other => anyhow::bail!("partition {partition}: error {other}, not one to try again"),
        }
    }
    ensure!(refused > 0, "nothing was refused");
    // Once there are descriptors again, every partition takes writes.
    limit_descriptors(&node, DESCRIPTORS)?;
    for partition in 0..PARTITIONS {
        wait::until("the partition takes writes again", LIMIT, || {
            let code = write(&mut connection, partition, "third")?;
            ensure!(code == 0, "partition {partition}: error {code}");
            Ok(())
        })?;
        acknowledged.push((partition, "third"));
    }
    node.kill()?;
    let node = launch.start()?;
    let mut connection = Connection::open(&node.kafka(), LIMIT)?;
    for (partition, text) in acknowledged {
        let found = raw_kafka::values(&mut connection, "few", partition, 0)?;
        let held = found.iter().any(|(_, value)| value == text.as_bytes());
        ensure!(held, "{text} of partition {partition} is lost");
    }
    Ok(())
}

/// Bounds the descriptors of a running node.
fn limit_descriptors(node: &Node, count: u64) -> anyhow::Result<()> {
    let pid = node.pid().to_string();
    let status = std::process::Command::new("prlimit")
        .args(["--pid", &pid, &format!("--nofile={count}:")])
        .status()
        .context("prlimit")?;
    ensure!(status.success(), "prlimit: {status}");
    Ok(())
}
