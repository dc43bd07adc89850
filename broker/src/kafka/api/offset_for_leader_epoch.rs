//! OffsetForLeaderEpoch: key 23, v2–v4. Where an epoch ended in this log, so that a client can see
//! whether what it has read was lost.
//!
//! Leaves out: followers. Source: KIP-101, KIP-279, KIP-320; Partition.lastOffsetForLeaderEpoch,
//! LeaderEpochFileCache.endOffsetFor.

use std::ops::RangeInclusive;

use duolog_log_core::ids::{LeaderEpoch, TopicId};

use super::fetch::check_epoch;
use super::{Context, Handler};
use crate::kafka::codec::messages::offset_for_leader_epoch_request::OffsetForLeaderPartition;
use crate::kafka::codec::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderTopicResult,
};
use crate::kafka::codec::messages::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct OffsetForLeaderEpoch;

impl Handler for OffsetForLeaderEpoch {
    type Request = OffsetForLeaderEpochRequest;
    type Response = OffsetForLeaderEpochResponse;
    const VERSIONS: RangeInclusive<i16> = 2..=4;

    async fn handle(
        context: &Context,
        request: OffsetForLeaderEpochRequest,
    ) -> OffsetForLeaderEpochResponse {
        let mut topics = Vec::with_capacity(request.topics.len());
        for topic in request.topics {
            let id = context.node.controller.image().topic(&topic.topic).map(|topic| topic.id);
            let mut partitions = Vec::with_capacity(topic.partitions.len());
            for asked in topic.partitions {
                let found = match id {
                    Some(id) => find(context, id, &asked).await,
                    None => Err(ErrorCode::UnknownTopicOrPartition),
                };
                partitions.push(respond(asked.partition, found));
            }
            topics.push(OffsetForLeaderTopicResult { topic: topic.topic, partitions });
        }
        OffsetForLeaderEpochResponse { topics, ..OffsetForLeaderEpochResponse::default() }
    }
}

/// The newest epoch up to the asked one, and where it ended: one from before all that is known ended where that begins.
/// -1 and -1 for an epoch that is still to come.
async fn find(
    context: &Context,
    topic: TopicId,
    asked: &OffsetForLeaderPartition,
) -> Result<(i32, i64), ErrorCode> {
    let partition = context.node.partitions.find(topic, asked.partition);
    let partition = partition.ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let reader = partition.reader().await.map_err(ErrorCode::of)?;
    check_epoch(&partition, asked.current_leader_epoch)?;
    let end = partition.epoch_end(&reader, LeaderEpoch(asked.leader_epoch));
    Ok(end.map_or((-1, -1), |end| (end.epoch.0, end.end_offset.0)))
}

fn respond(partition: i32, found: Result<(i32, i64), ErrorCode>) -> EpochEndOffset {
    let (error_code, (leader_epoch, end_offset)) = match found {
        Ok(found) => (ErrorCode::None, found),
        Err(code) => (code, (-1, -1)),
    };
    EpochEndOffset { error_code: error_code.code(), partition, leader_epoch, end_offset }
}
