//! Kafka's requests, of every key and version, as the Java client encodes them.

use std::sync::LazyLock;

use bytes::Bytes;
use duolog_broker::config::Config;
use duolog_broker::config::args::ServeArgs;
use duolog_broker::kafka::api::find;
use duolog_broker::kafka::codec::{ApiKey, Message, RequestHeader, messages};

use super::{Run, golden, hex_words, spoil};

const CASES: u64 = 30_000;
/// An element of a list may be one byte on the wire and a few structs in memory.
const MEMORY_EACH: usize = 512;
const MEMORY: usize = 64 << 10;

type Decode = fn(&Bytes, i16) -> bool;

macro_rules! requests {
    ($($name:ident)*) => {
        &[$((
            messages::$name::API_KEY,
            |body, version| messages::$name::from_body(body, version).is_ok(),
        )),*]
    };
}

const REQUESTS: &[(ApiKey, Decode)] = requests![
    ProduceRequest FetchRequest ListOffsetsRequest MetadataRequest OffsetCommitRequest
    OffsetFetchRequest FindCoordinatorRequest JoinGroupRequest HeartbeatRequest
    LeaveGroupRequest SyncGroupRequest DescribeGroupsRequest ListGroupsRequest
    ApiVersionsRequest CreateTopicsRequest DeleteTopicsRequest DeleteRecordsRequest
    InitProducerIdRequest OffsetForLeaderEpochRequest AddPartitionsToTxnRequest
    AddOffsetsToTxnRequest EndTxnRequest WriteTxnMarkersRequest TxnOffsetCommitRequest
    DescribeAclsRequest CreateAclsRequest DeleteAclsRequest DescribeConfigsRequest
    AlterConfigsRequest AlterReplicaLogDirsRequest DescribeLogDirsRequest
    CreatePartitionsRequest DeleteGroupsRequest ElectLeadersRequest
    IncrementalAlterConfigsRequest AlterPartitionReassignmentsRequest
    ListPartitionReassignmentsRequest OffsetDeleteRequest DescribeClientQuotasRequest
    AlterClientQuotasRequest DescribeUserScramCredentialsRequest
    AlterUserScramCredentialsRequest DescribeQuorumRequest UpdateFeaturesRequest
    DescribeClusterRequest DescribeProducersRequest UnregisterBrokerRequest
    DescribeTransactionsRequest ListTransactionsRequest ConsumerGroupHeartbeatRequest
    ConsumerGroupDescribeRequest GetTelemetrySubscriptionsRequest PushTelemetryRequest
    ListConfigResourcesRequest DescribeTopicPartitionsRequest
];

/// Frames without their length.
fn frames() -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for &(key, _) in REQUESTS {
        let file = format!("kafka-codec/frames/{:03}-{}.txt", key as i16, key.name());
        let text = std::fs::read_to_string(golden(&file)).expect("a golden file");
        for line in text.lines().filter(|line| line.starts_with("request ")) {
            frames.extend(hex_words(line).into_iter().map(|frame| frame[4..].to_vec()));
        }
    }
    frames
}

/// That of a node that serves all of the table.
fn config() -> &'static Config {
    static CONFIG: LazyLock<Config> = LazyLock::new(|| {
        let assignments = vec!["telemetry.receiver=metrics".to_owned()];
        let args = ServeArgs { assignments, ..ServeArgs::default() };
        Config::load(&args, std::iter::empty()).expect("a configuration")
    });
    &CONFIG
}

/// Whether a frame is a request of the table whose body can be read.
fn reads(frame: &Bytes) -> bool {
    let Ok((header, body)) = RequestHeader::decode(frame) else { return false };
    let Ok(api) = find(config(), &header) else { return false };
    let decode = REQUESTS.iter().find(|(key, _)| *key == api.key).expect("a decoder").1;
    decode(&body, header.api_version)
}

#[test]
fn spoilt_kafka_requests_are_read_or_refused_within_their_memory() {
    let mut run = Run::of("Kafka requests", CASES);
    for &key in ApiKey::ALL {
        assert!(REQUESTS.iter().any(|(known, _)| *known == key), "{key:?} has no decoder here");
    }
    let frames = frames();
    assert!(frames.iter().all(|frame| reads(&Bytes::from(frame.clone()))), "the unspoilt ones");
    let mut read = 0;
    while let Some(mut random) = run.next() {
        let mut frame = frames[random.within(0..frames.len())].clone();
        let other = &frames[random.within(0..frames.len())];
        spoil::spoil(&mut random, &mut frame, other);
        let frame = Bytes::from(frame);
        read += u64::from(run.bounded(frame.len(), MEMORY_EACH, MEMORY, || reads(&frame)));
    }
    // Neither all nor none: the changes reach behind the headers.
    assert!(read > 0 && read < run.cases, "{read} of {} were read", run.cases);
}
