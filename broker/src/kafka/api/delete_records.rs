//! DeleteRecords: key 21, v0–v2. Raises the start of a log; what lies before it can be read no more.
//!
//! An offset of -1 means the high watermark. The new start is on the disk with the next checkpoint of
//! the log starts, as in Kafka. Source: KIP-107; ReplicaManager.deleteRecordsOnLocalLog.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::{Context, Handler};
use crate::controller::image::Topic;
use crate::kafka::codec::Str;
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
        // Of a partition that is named twice the last offset counts.
        let mut wanted: BTreeMap<Str, BTreeMap<i32, i64>> = BTreeMap::new();
        for topic in request.topics {
            let of_topic = topic.partitions.iter().map(|of| (of.partition_index, of.offset));
            wanted.entry(topic.name).or_default().extend(of_topic);
        }
        wanted.retain(|_, partitions| !partitions.is_empty());
        let mut topics = Vec::with_capacity(wanted.len());
        for (name, wanted) in wanted {
            let topic = context.node.controller.image().topic(&name).cloned();
            let mut partitions = Vec::with_capacity(wanted.len());
            for (partition_index, offset) in wanted {
                let outcome = delete(context, topic.as_ref(), partition_index, offset).await;
                let (code, low_watermark) = match outcome {
                    Ok(low_watermark) => (ErrorCode::None, low_watermark),
                    Err(code) => (code, NO_LOW_WATERMARK),
                };
                let error_code = code.code();
                partitions.push(DeleteRecordsPartitionResult {
                    partition_index,
                    low_watermark,
                    error_code,
                });
            }
            topics.push(DeleteRecordsTopicResult { name, partitions });
        }
        DeleteRecordsResponse { topics, ..DeleteRecordsResponse::default() }
    }
}

async fn delete(
    context: &Context,
    topic: Option<&Arc<Topic>>,
    index: i32,
    offset: i64,
) -> Result<i64, ErrorCode> {
    let topic = topic.ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let partition = context.node.partitions.find(topic.id, index);
    let partition = partition.ok_or(ErrorCode::UnknownTopicOrPartition)?;
    if topic.internal {
        return Err(ErrorCode::InvalidTopicException);
    }
    if topic.config.cleanup.compact && !topic.config.cleanup.delete {
        return Err(ErrorCode::PolicyViolation);
    }
    partition.delete_records(offset).await.map_err(ErrorCode::of)
}
