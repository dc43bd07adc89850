//! DescribeQuorum: key 55, v0–v2. The metadata log as a quorum of one voter, which is this node.
//!
//! A client asks for `__cluster_metadata`, whose part `__duolog_metadata` has here: leader epoch, high
//! watermark and log end are that log's. Leaves out: observers, of which there are none. Source:
//! KIP-595, KIP-836, KIP-853; KafkaRaftClient.handleDescribeQuorumRequest.

use std::ops::RangeInclusive;

use super::{Context, Handler};
use crate::clock;
use crate::kafka::codec::Str;
use crate::kafka::codec::messages::describe_quorum_request::TopicData as Asked;
use crate::kafka::codec::messages::describe_quorum_response::{
    Listener, Node, PartitionData, ReplicaState, TopicData,
};
use crate::kafka::codec::messages::{DescribeQuorumRequest, DescribeQuorumResponse};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct DescribeQuorum;

/// The only partition that there is a quorum for.
const QUORUM: (&str, i32) = ("__cluster_metadata", 0);

/// The first version with texts beside error codes, and with nodes.
const TEXTS_FROM: i16 = 2;

impl Handler for DescribeQuorum {
    type Request = DescribeQuorumRequest;
    type Response = DescribeQuorumResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=2;

    async fn handle(context: &Context, request: DescribeQuorumRequest) -> DescribeQuorumResponse {
        let is_asked = is_quorum(&request.topics);
        let topics = request.topics.iter().map(|topic| TopicData {
            topic_name: topic.topic_name.clone(),
            partitions: if is_asked { vec![quorum(context)] } else { unknown(topic) },
        });
        let (host, port) = context.node.advertised(context.listener);
        let listener =
            Listener { name: "CONTROLLER".into(), host, port: u16::try_from(port).unwrap_or(0) };
        let node = Node { node_id: context.node.id(), listeners: vec![listener] };
        let mut response = DescribeQuorumResponse {
            topics: topics.collect(),
            nodes: if is_asked { vec![node] } else { Vec::new() },
            ..DescribeQuorumResponse::default()
        };
        if context.version >= TEXTS_FROM {
            response.error_message = Some(Str::default());
        } else {
            response.nodes.clear();
            let partitions = response.topics.iter_mut().flat_map(|topic| &mut topic.partitions);
            partitions.for_each(|partition| partition.error_message = None);
        }
        response
    }
}

/// Whether the quorum is asked for, and nothing else.
fn is_quorum(topics: &[Asked]) -> bool {
    let [topic] = topics else { return false };
    let [partition] = &*topic.partitions else { return false };
    (&*topic.topic_name, partition.partition_index) == QUORUM
}

fn unknown(asked: &Asked) -> Vec<PartitionData> {
    let text = "This server does not host this topic-partition.";
    let partition = |index| PartitionData {
        partition_index: index,
        error_code: ErrorCode::UnknownTopicOrPartition.code(),
        error_message: Some(text.into()),
        ..PartitionData::default()
    };
    asked.partitions.iter().map(|asked| partition(asked.partition_index)).collect()
}

fn quorum(context: &Context) -> PartitionData {
    let node = &context.node;
    let offsets = node.partitions.metadata().map(|log| log.offsets()).unwrap_or_default();
    let now_ms = clock::now_ms();
    let voter = ReplicaState {
        replica_id: node.id(),
        log_end_offset: offsets.log_end,
        last_fetch_timestamp: now_ms,
        last_caught_up_timestamp: now_ms,
        ..ReplicaState::default()
    };
    PartitionData {
        partition_index: QUORUM.1,
        error_message: Some(Str::default()),
        leader_id: node.id(),
        leader_epoch: offsets.leader_epoch,
        high_watermark: offsets.high_watermark,
        current_voters: vec![voter],
        ..PartitionData::default()
    }
}
