//! OffsetDelete: key 47, v0. Positions of a group on topics that it does not subscribe to go.
//! Source: KIP-496; KafkaApis.handleOffsetDeleteRequest.

use std::ops::RangeInclusive;
use std::sync::Arc;

use duolog_coordinator::group::event::OffsetDelete as Delete;
use duolog_coordinator::group::response::PartitionResult;

use super::{Context, Handler};
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
        let image = Arc::clone(&context.node.controller.image());
        let (known, unknown): (Vec<_>, Vec<_>) =
            request.topics.into_iter().partition(|topic| image.topic(&topic.name).is_some());
        let mut topics: Vec<_> = unknown.into_iter().map(unknown_topic).collect();
        let delete = Delete {
            group: request.group_id,
            topics: known
                .into_iter()
                .map(|topic| {
                    let indexes = topic.partitions.iter().map(|one| one.partition_index);
                    (topic.name.clone(), indexes.collect())
                })
                .collect(),
        };
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

fn unknown_topic(topic: OffsetDeleteRequestTopic) -> OffsetDeleteResponseTopic {
    let refused = |partition_index| OffsetDeleteResponsePartition {
        partition_index,
        error_code: ErrorCode::UnknownTopicOrPartition.code(),
    };
    OffsetDeleteResponseTopic {
        name: topic.name,
        partitions: topic.partitions.iter().map(|one| refused(one.partition_index)).collect(),
    }
}
