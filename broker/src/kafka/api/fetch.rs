//! Fetch: key 1, v4–v18. Whole batches from each partition, waiting for data where there is none.
//!
//! Reads whatever is there; while that is less than `min_bytes`, waits until one of the partitions'
//! published offsets moves, or `max_wait_ms` is over. Every fetch is a full one: the session id
//! answered is 0, so clients keep naming all their partitions. Leaves out: fetch sessions (KIP-227),
//! followers, racks. Source: KIP-74, KIP-98, KIP-207, KIP-320, KIP-516; ReplicaManager.fetchMessages.

mod deliver;

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use duolog_log_core::ids::LeaderEpoch;
use duolog_log_core::log::{LogReader, ReadMinimum};
use tokio::time::Instant;

use super::{Context, Handler};
use crate::kafka::codec::Records;
use crate::kafka::codec::messages::fetch_request::{FetchPartition, FetchTopic};
use crate::kafka::codec::messages::fetch_response::{
    AbortedTransaction, EpochEndOffset, FetchableTopicResponse, PartitionData,
};
use crate::kafka::codec::messages::{FetchRequest, FetchResponse};
use crate::kafka::errors::ErrorCode;
use crate::partitions::{Offsets, Partition, Registration};

/// The API.
pub(super) struct Fetch;

/// First version that names topics by id (KIP-516).
const TOPIC_ID_FROM: i16 = 13;

/// `replica_id` of tools that look at a log as it is, up to its end (`FetchRequest`).
const DEBUGGING_REPLICA: i32 = -2;

/// How far a reader may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Isolation {
    /// To the high watermark.
    ReadUncommitted,
    /// To the last stable offset.
    ReadCommitted,
    /// To the log end.
    Debugging,
}

impl Isolation {
    fn end(self, offsets: Offsets) -> i64 {
        match self {
            Self::ReadUncommitted => offsets.high_watermark,
            Self::ReadCommitted => offsets.last_stable,
            Self::Debugging => offsets.log_end,
        }
    }
}

/// One partition of the request.
struct Wanted {
    fetch: FetchPartition,
    source: Result<(Arc<Partition>, Arc<LogReader>), ErrorCode>,
}

/// One topic of the request.
struct WantedTopic {
    topic: FetchTopic,
    partitions: Vec<Wanted>,
}

/// What one look at all partitions gave.
struct Look {
    topics: Vec<Vec<PartitionData>>,
    bytes: i64,
    /// Something that the client should hear of at once.
    urgent: bool,
}

impl Handler for Fetch {
    type Request = FetchRequest;
    type Response = FetchResponse;
    const VERSIONS: RangeInclusive<i16> = 4..=18;

    async fn handle(context: &Context, mut request: FetchRequest) -> FetchResponse {
        if request.session_id != 0 && request.session_epoch > 0 {
            let error_code = ErrorCode::FetchSessionIdNotFound.code();
            return FetchResponse { error_code, ..FetchResponse::default() };
        }
        let limit = request.max_bytes.min(context.node.config.fetch_max_bytes).max(0);
        request.max_bytes = limit;
        let mut wanted = Vec::with_capacity(request.topics.len());
        for topic in std::mem::take(&mut request.topics) {
            wanted.push(find(context, &request, topic).await);
        }
        let mut look = look_until_enough(context, &request, &wanted).await;
        deliver::deliver(context, &wanted, &mut look).await;
        respond(wanted, look)
    }
}

/// Finds the partitions of one topic and opens their logs.
async fn find(context: &Context, request: &FetchRequest, mut topic: FetchTopic) -> WantedTopic {
    let by_id = context.version >= TOPIC_ID_FROM;
    let id = {
        let image = context.node.controller.image();
        if by_id {
            image.topic_by_id(topic.topic_id).map(|topic| topic.id).ok_or(ErrorCode::UnknownTopicId)
        } else {
            let found = image.topic(&topic.topic).map(|topic| topic.id);
            found.ok_or(ErrorCode::UnknownTopicOrPartition)
        }
    };
    let replica = request.replica_id.max(request.replica_state.replica_id);
    let mut partitions = Vec::with_capacity(topic.partitions.len());
    for fetch in std::mem::take(&mut topic.partitions) {
        let source = match id {
            Ok(_) if replica >= 0 => Err(ErrorCode::NotLeaderOrFollower),
            Ok(id) => open(context, id, &fetch).await,
            Err(code) => Err(code),
        };
        partitions.push(Wanted { fetch, source });
    }
    WantedTopic { topic, partitions }
}

async fn open(
    context: &Context,
    topic: duolog_log_core::ids::TopicId,
    fetch: &FetchPartition,
) -> Result<(Arc<Partition>, Arc<LogReader>), ErrorCode> {
    let partition = context.node.partitions.find(topic, fetch.partition);
    let partition = partition.ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let reader = partition.reader().await.map_err(|error| ErrorCode::from(&error))?;
    check_epoch(&partition, fetch.current_leader_epoch)?;
    Ok((partition, reader))
}

/// A client that has missed, or is ahead of, a change of leader looks for the leader again
/// (KIP-320); -1 asks for no check.
pub(super) fn check_epoch(partition: &Partition, given: i32) -> Result<(), ErrorCode> {
    let current = partition.offsets().leader_epoch;
    match given {
        -1 => Ok(()),
        given if given < current => Err(ErrorCode::FencedLeaderEpoch),
        given if given > current => Err(ErrorCode::UnknownLeaderEpoch),
        _ => Ok(()),
    }
}

/// Looks again and again until there is enough, something to tell, or no more time.
async fn look_until_enough(
    context: &Context,
    request: &FetchRequest,
    wanted: &[WantedTopic],
) -> Look {
    let isolation = match (request.replica_id, request.isolation_level) {
        (DEBUGGING_REPLICA, _) => Isolation::Debugging,
        (_, 1) => Isolation::ReadCommitted,
        _ => Isolation::ReadUncommitted,
    };
    let first = look(request, wanted, isolation);
    let max_wait_ms = u64::try_from(request.max_wait_ms).unwrap_or_default();
    let enough = |look: &Look| look.urgent || look.bytes >= i64::from(request.min_bytes);
    if max_wait_ms == 0 || enough(&first) {
        return first;
    }
    let deadline = Instant::now() + Duration::from_millis(max_wait_ms);
    let partitions = || {
        let all = wanted.iter().flat_map(|topic| &topic.partitions);
        all.filter_map(|wanted| wanted.source.as_ref().ok().map(|(partition, _)| partition.clone()))
    };
    loop {
        let registration = Registration::new(partitions().collect());
        let again = look(request, wanted, isolation);
        if enough(&again) {
            return again;
        }
        tokio::select! {
            () = registration.moved() => {}
            () = tokio::time::sleep_until(deadline) => return look(request, wanted, isolation),
            () = context.node.stopping.cancelled() => return again,
        }
    }
}

/// Reads every partition once, within the request's bounds.
fn look(request: &FetchRequest, wanted: &[WantedTopic], isolation: Isolation) -> Look {
    let mut look =
        Look { topics: Vec::with_capacity(wanted.len()), bytes: 0, urgent: wanted.is_empty() };
    let mut left = i64::from(request.max_bytes);
    for topic in wanted {
        let mut answers = Vec::with_capacity(topic.partitions.len());
        for wanted in &topic.partitions {
            // The first partition with data gives one whole batch however large (KIP-74, case B09).
            let minimum =
                if look.bytes == 0 { ReadMinimum::OneBatch } else { ReadMinimum::Nothing };
            let limit = i64::from(wanted.fetch.partition_max_bytes).min(left).max(0);
            let limit = usize::try_from(limit).unwrap_or_default();
            let answer = match &wanted.source {
                Ok((partition, reader)) => {
                    read(&wanted.fetch, partition, reader, isolation, limit, minimum)
                }
                Err(code) => Err(*code),
            };
            let answer = answer.unwrap_or_else(|code| refused(&wanted.fetch, code));
            let bytes = answer.records.as_ref().map_or(0, Records::len);
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            look.bytes = look.bytes.saturating_add(bytes);
            left = left.saturating_sub(bytes);
            look.urgent |= answer.error_code != 0 || answer.diverging_epoch.epoch >= 0;
            answers.push(answer);
        }
        look.topics.push(answers);
    }
    look
}

fn read(
    fetch: &FetchPartition,
    partition: &Partition,
    reader: &LogReader,
    isolation: Isolation,
    limit: usize,
    minimum: ReadMinimum,
) -> Result<PartitionData, ErrorCode> {
    let offsets = partition.offsets();
    let mut data = PartitionData {
        partition_index: fetch.partition,
        high_watermark: offsets.high_watermark,
        last_stable_offset: offsets.last_stable,
        log_start_offset: offsets.log_start,
        records: Some(Records::EMPTY),
        aborted_transactions: (isolation == Isolation::ReadCommitted).then(Vec::new),
        ..PartitionData::default()
    };
    if let Some(diverging) = diverging(fetch, reader) {
        data.diverging_epoch = diverging;
        return Ok(data);
    }
    let end = isolation.end(offsets);
    if fetch.fetch_offset < offsets.log_start || fetch.fetch_offset > offsets.log_end {
        return Err(ErrorCode::OffsetOutOfRange);
    }
    if fetch.fetch_offset >= end {
        return Ok(data);
    }
    let batches = reader
        .read(fetch.fetch_offset, limit, end, minimum)
        .map_err(|error| ErrorCode::from(&error))?;
    if let Some(aborted) = &mut data.aborted_transactions {
        let found = reader
            .aborted_transactions(fetch.fetch_offset, batches.next_offset)
            .map_err(|error| ErrorCode::from(&error))?;
        aborted.extend(found.iter().map(|aborted| AbortedTransaction {
            producer_id: aborted.producer_id,
            first_offset: aborted.first_offset,
        }));
    }
    data.records = Some(batches.pieces.into());
    Ok(data)
}

/// Where the log of a client that has read `last_fetched_epoch` parts from this one, if it does.
fn diverging(fetch: &FetchPartition, reader: &LogReader) -> Option<EpochEndOffset> {
    let asked = LeaderEpoch(fetch.last_fetched_epoch);
    if asked <= LeaderEpoch::UNKNOWN {
        return None;
    }
    let end = reader.end_offset_for_epoch(asked);
    match end {
        Some(end) if end.epoch < asked || end.end_offset.0 < fetch.fetch_offset => {
            Some(EpochEndOffset { epoch: end.epoch.0, end_offset: end.end_offset.0 })
        }
        _ => None,
    }
}

fn refused(fetch: &FetchPartition, code: ErrorCode) -> PartitionData {
    PartitionData {
        partition_index: fetch.partition,
        error_code: code.code(),
        high_watermark: -1,
        last_stable_offset: -1,
        log_start_offset: -1,
        records: Some(Records::EMPTY),
        ..PartitionData::default()
    }
}

fn respond(wanted: Vec<WantedTopic>, look: Look) -> FetchResponse {
    let topics = wanted.into_iter().zip(look.topics);
    let responses = topics
        .map(|(wanted, partitions)| FetchableTopicResponse {
            topic: wanted.topic.topic,
            topic_id: wanted.topic.topic_id,
            partitions,
        })
        .collect();
    FetchResponse { responses, ..FetchResponse::default() }
}
