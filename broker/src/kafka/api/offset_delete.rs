//! OffsetDelete: key 47, v0. Positions of a group on topics that it does not subscribe to go.
//! Source: KIP-496; KafkaApis.handleOffsetDeleteRequest.

use std::ops::RangeInclusive;
use std::sync::Arc;

use duolog_coordinator::group::event::OffsetDelete as Delete;
use duolog_coordinator::group::response::PartitionResult;

use super::{Context, Handler};
use crate::controller::image::Image;
use crate::kafka::codec::Str;
use crate::kafka::codec::messages::offset_delete_request::OffsetDeleteRequestTopic;
use crate::kafka::codec::messages::offset_delete_response::{
    OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};
use crate::kafka::codec::messages::{OffsetDeleteRequest, OffsetDeleteResponse};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct OffsetDelete;

impl Handler for OffsetDelete {
    type Request = OffsetDeleteRequest;
    type Response = OffsetDeleteResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=0;

    async fn handle(context: &Context, request: OffsetDeleteRequest) -> OffsetDeleteResponse {
        if request.group_id.is_empty() {
            let error_code = ErrorCode::InvalidGroupId.code();
            return OffsetDeleteResponse { error_code, ..OffsetDeleteResponse::default() };
        }
        let image = Arc::clone(&context.node.controller.image());
        let mut topics = Vec::new();
        let mut delete = Delete { group: request.group_id, topics: Vec::new() };
        for asked in request.topics {
            let (known, unknown) = sort(&image, &asked);
            if !known.is_empty() {
                delete.topics.push((asked.name.clone(), known));
            }
            if !unknown.is_empty() || asked.partitions.is_empty() {
                topics.push(unknown_partitions(asked.name, &unknown));
            }
        }
        match context.node.coordinators.delete_offsets(delete).await {
            Ok(deleted) => {
                let answers = deleted.into_iter().map(|(name, partitions)| {
                    let partitions = partitions.iter().map(answer).collect();
                    OffsetDeleteResponseTopic { name, partitions }
                });
                topics.extend(answers);
                OffsetDeleteResponse { topics, ..OffsetDeleteResponse::default() }
            }
            Err(error) => OffsetDeleteResponse {
                error_code: ErrorCode::from(&error).code(),
                ..OffsetDeleteResponse::default()
            },
        }
    }
}

fn answer(result: &PartitionResult) -> OffsetDeleteResponsePartition {
    let code = result.error.as_ref().map_or(ErrorCode::None, ErrorCode::from);
    OffsetDeleteResponsePartition { partition_index: result.partition, error_code: code.code() }
}

/// The partitions that are there, and the others.
fn sort(image: &Image, asked: &OffsetDeleteRequestTopic) -> (Vec<i32>, Vec<i32>) {
    let topic = image.topic(&asked.name);
    let is_there = |index: &i32| topic.is_some_and(|topic| topic.has_partition(*index));
    asked.partitions.iter().map(|partition| partition.partition_index).partition(is_there)
}

fn unknown_partitions(name: Str, indexes: &[i32]) -> OffsetDeleteResponseTopic {
    let refused = |partition_index: &i32| OffsetDeleteResponsePartition {
        partition_index: *partition_index,
        error_code: ErrorCode::UnknownTopicOrPartition.code(),
    };
    OffsetDeleteResponseTopic { name, partitions: indexes.iter().map(refused).collect() }
}
