//! ElectLeaders: key 43, v0–v2. Every partition is led by its only replica, so that no election is
//! ever needed.
//!
//! Leaves out: elections. Source: KIP-183, KIP-460; ReplicationControlManager.electLeaders.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::admin::{Decided, Refused, fields};
use super::{Context, Handler};
use crate::controller::image::{Image, Topic};
use crate::kafka::codec::messages::elect_leaders_request::TopicPartitions;
use crate::kafka::codec::messages::elect_leaders_response::{
    PartitionResult, ReplicaElectionResult,
};
use crate::kafka::codec::messages::{ElectLeadersRequest, ElectLeadersResponse};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct ElectLeaders;

/// `ElectionType`: preferred, unclean.
const ELECTION_TYPES: RangeInclusive<i8> = 0..=1;

impl Handler for ElectLeaders {
    type Request = ElectLeadersRequest;
    type Response = ElectLeadersResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=2;

    async fn handle(context: &Context, request: ElectLeadersRequest) -> ElectLeadersResponse {
        let is_known = ELECTION_TYPES.contains(&request.election_type);
        // Without a partition to elect for nothing is wrong with the type.
        if !is_known && request.topic_partitions.as_ref().is_none_or(|all| !all.is_empty()) {
            return unknown_type(request);
        }
        let image = context.node.controller.image();
        let asked = request.topic_partitions.unwrap_or_else(|| {
            // Of all partitions only those are told of which an election was needed.
            let topics = image.topics_sorted().into_iter();
            let none = |topic: Arc<Topic>| TopicPartitions {
                topic: topic.name.clone(),
                partitions: Vec::new(),
            };
            topics.map(none).collect()
        });
        let results = asked.into_iter().map(|topic| ReplicaElectionResult {
            partition_result: topic
                .partitions
                .iter()
                .map(|index| {
                    let (error_code, error_message) = fields(&elect(&image, &topic.topic, *index));
                    PartitionResult { partition_id: *index, error_code, error_message }
                })
                .collect(),
            topic: topic.topic.clone(),
        });
        ElectLeadersResponse {
            replica_election_results: results.collect(),
            ..ElectLeadersResponse::default()
        }
    }
}

/// An error for all, and for each partition.
fn unknown_type(request: ElectLeadersRequest) -> ElectLeadersResponse {
    let text = format!("Unknown election type {}", request.election_type);
    let (error_code, error_message) = fields(&Err(Refused::invalid_request(text)));
    let refuse = |topic: TopicPartitions| ReplicaElectionResult {
        partition_result: topic
            .partitions
            .into_iter()
            .map(|partition_id| PartitionResult {
                partition_id,
                error_code,
                error_message: error_message.clone(),
            })
            .collect(),
        topic: topic.topic,
    };
    let topics = request.topic_partitions.unwrap_or_default().into_iter();
    ElectLeadersResponse {
        error_code,
        replica_election_results: topics.map(refuse).collect(),
        ..ElectLeadersResponse::default()
    }
}

fn elect(image: &Image, name: &str, index: i32) -> Decided {
    let unknown = |text: String| Refused::new(ErrorCode::UnknownTopicOrPartition, text);
    let topic = image.topic(name).ok_or_else(|| unknown(format!("No such topic as {name}")))?;
    if !topic.has_partition(index) {
        return Err(unknown(format!("No such partition as {name}-{index}")));
    }
    let text = "Leader election not needed for topic partition.";
    Err(Refused::new(ErrorCode::ElectionNotNeeded, text))
}
