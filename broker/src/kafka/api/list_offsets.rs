//! ListOffsets: key 2, v1–v11. Offsets by time, and the ends of a log.
//!
//! A time gives the first record at or after it; -1 the end that the client may read to, -2 the
//! start, -3 the first record that has the greatest time, -4 the start of what is on this node
//! (the same as -2: nothing is tiered), -5 and -6 what is tiered and what waits for it (nothing).
//! Source: KIP-79, KIP-320, KIP-405, KIP-734, KIP-1005; Partition.fetchOffsetForTimestamp.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use duolog_log_core::ids::{Offset, TopicId};
use duolog_log_core::log::{LogReader, TimestampOffset};

use super::fetch::check_epoch;
use super::{Context, Handler};
use crate::kafka::codec::Str;
use crate::kafka::codec::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use crate::kafka::codec::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use crate::kafka::codec::messages::{ListOffsetsRequest, ListOffsetsResponse};
use crate::kafka::errors::ErrorCode;
use crate::partitions::Offsets;

/// The API.
pub(super) struct ListOffsets;

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;
const EARLIEST_PENDING_UPLOAD: i64 = -6;

/// The first version that knows each of the special times.
const fn known_from(timestamp: i64) -> i16 {
    match timestamp {
        MAX_TIMESTAMP => 7,
        EARLIEST_LOCAL => 8,
        LATEST_TIERED => 9,
        EARLIEST_PENDING_UPLOAD => 11,
        LATEST | EARLIEST | 0.. => 1,
        _ => i16::MAX,
    }
}

const NOT_FOUND: TimestampOffset = TimestampOffset { timestamp: -1, offset: -1, leader_epoch: -1 };

impl Handler for ListOffsets {
    type Request = ListOffsetsRequest;
    type Response = ListOffsetsResponse;
    const VERSIONS: RangeInclusive<i16> = 1..=11;

    async fn handle(context: &Context, request: ListOffsetsRequest) -> ListOffsetsResponse {
        let mut topics = Vec::with_capacity(request.topics.len());
        let mut twice = named_twice(&request.topics);
        for topic in request.topics.into_iter().filter(|topic| !topic.partitions.is_empty()) {
            let id = context.node.controller.image().topic(&topic.name).map(|topic| topic.id);
            let mut partitions = Vec::with_capacity(topic.partitions.len());
            for asked in topic.partitions {
                let index = asked.partition_index;
                let found = match twice.get_mut(&(topic.name.clone(), index)) {
                    None => find(context, id, &asked, request.isolation_level).await,
                    Some(Named::Unanswered) => Err(ErrorCode::InvalidRequest),
                    Some(Named::Answered) => continue,
                };
                if let Some(named) = twice.get_mut(&(topic.name.clone(), index)) {
                    *named = Named::Answered;
                }
                partitions.push(respond(index, found));
            }
            topics.push(ListOffsetsTopicResponse { name: topic.name, partitions });
        }
        ListOffsetsResponse { topics, ..ListOffsetsResponse::default() }
    }
}

/// A partition that a request names more than once: it is refused, in one answer.
enum Named {
    Unanswered,
    Answered,
}

fn named_twice(topics: &[ListOffsetsTopic]) -> BTreeMap<(Str, i32), Named> {
    let mut seen = BTreeSet::new();
    let mut twice = BTreeMap::new();
    for topic in topics {
        for partition in &topic.partitions {
            let place = (topic.name.clone(), partition.partition_index);
            if !seen.insert(place.clone()) {
                twice.insert(place, Named::Unanswered);
            }
        }
    }
    twice
}

async fn find(
    context: &Context,
    topic: Option<TopicId>,
    asked: &ListOffsetsPartition,
    isolation_level: i8,
) -> Result<TimestampOffset, ErrorCode> {
    if context.version < known_from(asked.timestamp) {
        return Err(ErrorCode::UnsupportedVersion);
    }
    let partition = topic.and_then(|id| context.node.partitions.find(id, asked.partition_index));
    let partition = partition.ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let reader = partition.reader().await.map_err(ErrorCode::of)?;
    check_epoch(&partition, asked.current_leader_epoch)?;
    let offsets = partition.offsets();
    let end = if isolation_level == 1 { offsets.last_stable } else { offsets.high_watermark };
    look_up(&reader, offsets, end, asked.timestamp)
}

fn look_up(
    reader: &LogReader,
    offsets: Offsets,
    end: i64,
    timestamp: i64,
) -> Result<TimestampOffset, ErrorCode> {
    let at =
        |offset: i64, leader_epoch: i32| TimestampOffset { timestamp: -1, offset, leader_epoch };
    let found = match timestamp {
        LATEST => return Ok(at(end, offsets.leader_epoch)),
        EARLIEST | EARLIEST_LOCAL => {
            let epochs = reader.leader_epochs();
            let epoch = match epochs.entries() {
                // A leader notes where its epoch begins before anything is written in it (Partition.makeLeader).
                [] => offsets.leader_epoch,
                _ => epochs.epoch_of(Offset(offsets.log_start)).map_or(-1, |epoch| epoch.0),
            };
            return Ok(at(offsets.log_start, epoch));
        }
        LATEST_TIERED | EARLIEST_PENDING_UPLOAD => None,
        MAX_TIMESTAMP => reader.max_timestamp(end).map_err(ErrorCode::of)?,
        timestamp => reader.offset_for_timestamp(timestamp, end).map_err(ErrorCode::of)?,
    };
    Ok(found.filter(|found| found.offset < end).unwrap_or(NOT_FOUND))
}

fn respond(
    partition_index: i32,
    found: Result<TimestampOffset, ErrorCode>,
) -> ListOffsetsPartitionResponse {
    let (error_code, found) = match found {
        Ok(found) => (ErrorCode::None, found),
        Err(code) => (code, NOT_FOUND),
    };
    ListOffsetsPartitionResponse {
        partition_index,
        error_code: error_code.code(),
        timestamp: found.timestamp,
        offset: found.offset,
        leader_epoch: found.leader_epoch,
    }
}
