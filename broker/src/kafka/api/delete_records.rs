//! DeleteRecords: key 21, v0–v2. Raises the start of a log; what lies before it can be read no more.
//!
//! An offset of -1 means the high watermark. The new start is on the disk with the next checkpoint of
//! the log starts, as in Kafka. Source: KIP-107; ReplicaManager.deleteRecordsOnLocalLog.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::{Context, Handler};
use crate::controller::image::Topic;
use crate::kafka::codec::messages::delete_records_request::DeleteRecordsPartition;
use crate::kafka::codec::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsTopicResult,
};
use crate::kafka::codec::messages::{DeleteRecordsRequest, DeleteRecordsResponse};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct DeleteRecords;

/// Beside an error.
const NO_LOW_WATERMARK: i64 = -1;

impl Handler for DeleteRecords {
    type Request = DeleteRecordsRequest;
    type Response = DeleteRecordsResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=2;

    async fn handle(context: &Context, request: DeleteRecordsRequest) -> DeleteRecordsResponse {
        let mut topics = Vec::with_capacity(request.topics.len());
        for asked in request.topics {
            let topic = context.node.controller.image().topic(&asked.name).cloned();
            let mut partitions = Vec::with_capacity(asked.partitions.len());
            // Of a partition that is named twice the last offset counts.
            let wanted = asked.partitions.into_iter().map(|of| (of.partition_index, of));
            for partition in wanted.collect::<BTreeMap<_, _>>().into_values() {
                let outcome = delete(context, topic.as_ref(), &partition).await;
                let (code, low_watermark) = match outcome {
                    Ok(low_watermark) => (ErrorCode::None, low_watermark),
                    Err(code) => (code, NO_LOW_WATERMARK),
                };
                partitions.push(DeleteRecordsPartitionResult {
                    partition_index: partition.partition_index,
                    low_watermark,
                    error_code: code.code(),
                });
            }
            topics.push(DeleteRecordsTopicResult { name: asked.name, partitions });
        }
        DeleteRecordsResponse { topics, ..DeleteRecordsResponse::default() }
    }
}

async fn delete(
    context: &Context,
    topic: Option<&Arc<Topic>>,
    asked: &DeleteRecordsPartition,
) -> Result<i64, ErrorCode> {
    let topic = topic.ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let partition = context.node.partitions.find(topic.id, asked.partition_index);
    let partition = partition.ok_or(ErrorCode::UnknownTopicOrPartition)?;
    if topic.internal {
        return Err(ErrorCode::InvalidTopicException);
    }
    if topic.config.cleanup.compact && !topic.config.cleanup.delete {
        return Err(ErrorCode::PolicyViolation);
    }
    partition.delete_records(asked.offset).await.map_err(ErrorCode::of)
}
