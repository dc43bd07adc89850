//! AlterPartitionReassignments: key 45, v0–v1. The replicas of a partition are this node; saying so
//! changes nothing, anything else is refused.
//!
//! Leaves out: reassignments. Source: KIP-455, KIP-860;
//! ReplicationControlManager.alterPartitionReassignments.

use std::ops::RangeInclusive;

use super::admin::{Decided, Refused, check_assignment, fields};
use super::{Context, Handler};
use crate::controller::image::Image;
use crate::kafka::codec::messages::alter_partition_reassignments_request::ReassignablePartition;
use crate::kafka::codec::messages::alter_partition_reassignments_response::{
    ReassignablePartitionResponse, ReassignableTopicResponse,
};
use crate::kafka::codec::messages::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse,
};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct AlterPartitionReassignments;

impl Handler for AlterPartitionReassignments {
    type Request = AlterPartitionReassignmentsRequest;
    type Response = AlterPartitionReassignmentsResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=1;

    async fn handle(
        context: &Context,
        request: AlterPartitionReassignmentsRequest,
    ) -> AlterPartitionReassignmentsResponse {
        if request.topics.is_empty() {
            // What was allowed is not told back.
            return AlterPartitionReassignmentsResponse::default();
        }
        let image = context.node.controller.image();
        let responses = request.topics.into_iter().map(|topic| ReassignableTopicResponse {
            partitions: topic
                .partitions
                .iter()
                .map(|partition| {
                    let outcome = alter(&image, context.node.id(), &topic.name, partition);
                    let (error_code, error_message) = fields(&outcome);
                    ReassignablePartitionResponse {
                        partition_index: partition.partition_index,
                        error_code,
                        error_message,
                    }
                })
                .collect(),
            name: topic.name.clone(),
        });
        AlterPartitionReassignmentsResponse {
            allow_replication_factor_change: request.allow_replication_factor_change,
            error_message: None,
            responses: responses.collect(),
            ..AlterPartitionReassignmentsResponse::default()
        }
    }
}

fn alter(image: &Image, node: i32, name: &str, asked: &ReassignablePartition) -> Decided {
    let unknown = |text: String| Refused::new(ErrorCode::UnknownTopicOrPartition, text);
    let topic = image.topic(name);
    let topic = topic.ok_or_else(|| unknown(format!("Unable to find a topic named {name}.")))?;
    let index = asked.partition_index;
    if !topic.has_partition(index) {
        return Err(unknown(format!("Unable to find partition {name}:{index}.")));
    }
    match &asked.replicas {
        Some(replicas) => check_assignment(&[node], replicas, None),
        None => Err(Refused::bare(ErrorCode::NoReassignmentInProgress)),
    }
}
