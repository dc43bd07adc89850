//! OffsetFetch: key 9, v1–v10. A group's committed positions; many groups from v8 on (KIP-709),
//! topics by id from v10 on (KIP-516).
//!
//! A coordinator that is not ready says so: per partition in v1, for the whole group from v2 on,
//! never as "no position" (case B25). Source: KIP-447, KIP-709; KafkaApis.handleOffsetFetchRequest.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use duolog_coordinator::group::event::{OffsetFetch as Fetch, TopicFetch};
use duolog_coordinator::group::response::{FetchedOffset, FetchedTopic};
use duolog_log_core::ids::TopicId;

use super::{Context, Handler};
use crate::controller::image::Image;
use crate::kafka::codec::Str;
use crate::kafka::codec::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use crate::kafka::codec::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use crate::kafka::codec::messages::{OffsetFetchRequest, OffsetFetchResponse};
use crate::kafka::errors::ErrorCode;
use crate::limits::FETCHED_POSITIONS_MAX;

/// The API.
pub(super) struct OffsetFetch;

/// First version with an error for the whole answer.
const TOP_LEVEL_ERROR_FROM: i16 = 2;
/// First version with many groups.
const MANY_GROUPS_FROM: i16 = 8;
/// First version that names topics by id.
const TOPIC_ID_FROM: i16 = 10;

impl Handler for OffsetFetch {
    type Request = OffsetFetchRequest;
    type Response = OffsetFetchResponse;
    const VERSIONS: RangeInclusive<i16> = 1..=10;

    async fn handle(context: &Context, request: OffsetFetchRequest) -> OffsetFetchResponse {
        if context.version < MANY_GROUPS_FROM {
            return one_group(context, request).await;
        }
        let mut groups = Vec::with_capacity(request.groups.len());
        let mut room = FETCHED_POSITIONS_MAX;
        for group in request.groups {
            let answer = if room == 0 {
                // As Kafka refuses a CreateTopics with too many partitions.
                refused_group(group.group_id, ErrorCode::PolicyViolation)
            } else {
                group_of_many(context, group, request.require_stable).await
            };
            let positions = answer.topics.iter().map(|topic| topic.partitions.len() + 1);
            room = room.saturating_sub(positions.sum());
            groups.push(answer);
        }
        OffsetFetchResponse { groups, ..OffsetFetchResponse::default() }
    }
}

/// The positions, and what is not settled of them, which matters only to a client that wants settled
/// positions (KIP-447).
async fn fetch(
    context: &Context,
    require_stable: bool,
    fetch: Fetch,
) -> Result<(Unstable, Vec<FetchedTopic>), ErrorCode> {
    let coordinators = &context.node.coordinators;
    // Asked for before the positions: what is settled then is seen.
    let unstable = if require_stable {
        coordinators.unstable_positions(&fetch.group)
    } else {
        Some(Unstable::new())
    };
    let fetched = coordinators.fetch_offsets(fetch).await.map_err(ErrorCode::of);
    with_unstable(unstable, fetched)
}

/// Topics and partitions whose positions wait for the end of a transaction.
type Unstable = BTreeSet<(Str, i32)>;

/// The log may have been read in between: then nobody can tell what was not settled.
fn with_unstable(
    unstable: Option<Unstable>,
    fetched: Result<Vec<FetchedTopic>, ErrorCode>,
) -> Result<(Unstable, Vec<FetchedTopic>), ErrorCode> {
    let fetched = fetched?;
    let unstable = unstable.ok_or(ErrorCode::CoordinatorLoadInProgress)?;
    Ok((unstable, fetched))
}

/// The position, unless it is not settled.
fn settled(unstable: &Unstable, topic: &Str, fetched: FetchedOffset) -> (FetchedOffset, ErrorCode) {
    if unstable.is_empty() || !unstable.contains(&(topic.clone(), fetched.partition)) {
        return (fetched, ErrorCode::None);
    }
    let partition = fetched.partition;
    let none = FetchedOffset { partition, offset: -1, leader_epoch: -1, metadata: "".into() };
    (none, ErrorCode::UnstableOffsetCommit)
}

async fn one_group(context: &Context, request: OffsetFetchRequest) -> OffsetFetchResponse {
    let asked = request.topics.map(|topics| {
        let wanted = |topic: OffsetFetchRequestTopic| TopicFetch {
            topic: topic.name,
            topic_id: TopicId::ZERO,
            partitions: topic.partition_indexes,
        };
        topics.into_iter().map(wanted).collect::<Vec<_>>()
    });
    let wanted = Fetch { group: request.group_id, member: None, topics: asked.clone() };
    let (code, unstable, fetched) = match fetch(context, request.require_stable, wanted).await {
        Ok((unstable, fetched)) => (ErrorCode::None, unstable, fetched),
        Err(code) if context.version >= TOP_LEVEL_ERROR_FROM => (code, Unstable::new(), Vec::new()),
        Err(code) => {
            let topics = asked.unwrap_or_default().into_iter();
            let topics = topics.map(|topic| failed_topic(topic, code)).collect();
            return OffsetFetchResponse { topics, ..OffsetFetchResponse::default() };
        }
    };
    let topics = fetched
        .into_iter()
        .map(|topic| OffsetFetchResponseTopic {
            partitions: topic
                .partitions
                .into_iter()
                .map(|fetched| settled(&unstable, &topic.topic, fetched))
                .map(|(position, code)| OffsetFetchResponsePartition {
                    partition_index: position.partition,
                    committed_offset: position.offset,
                    committed_leader_epoch: position.leader_epoch,
                    metadata: Some(position.metadata),
                    error_code: code.code(),
                })
                .collect(),
            name: topic.topic,
        })
        .collect();
    OffsetFetchResponse { topics, error_code: code.code(), ..OffsetFetchResponse::default() }
}

fn failed_topic(topic: TopicFetch, code: ErrorCode) -> OffsetFetchResponseTopic {
    let partitions = topic
        .partitions
        .into_iter()
        .map(|partition_index| OffsetFetchResponsePartition {
            partition_index,
            committed_offset: -1,
            committed_leader_epoch: -1,
            metadata: Some("".into()),
            error_code: code.code(),
        })
        .collect();
    OffsetFetchResponseTopic { name: topic.topic, partitions }
}

async fn group_of_many(
    context: &Context,
    asked: OffsetFetchRequestGroup,
    require_stable: bool,
) -> OffsetFetchResponseGroup {
    let image = context.node.controller.image().clone();
    let mut unknown = Vec::new();
    let topics = asked.topics.map(|topics| {
        let known = |topic| known_topic(context.version, &image, topic, &mut unknown);
        topics.into_iter().filter_map(known).collect()
    });
    // Whoever names no member may read anybody's positions.
    let member = match asked.member_id {
        None if asked.member_epoch < 0 => None,
        id => Some((id.unwrap_or_default(), asked.member_epoch)),
    };
    let wanted = Fetch { group: asked.group_id.clone(), member, topics };
    match fetch(context, require_stable, wanted).await {
        Ok((unstable, fetched)) => {
            let by_id = context.version >= TOPIC_ID_FROM;
            let found = |topic| found_topic(&image, &unstable, topic, by_id);
            let found = fetched.into_iter().filter_map(found);
            OffsetFetchResponseGroup {
                group_id: asked.group_id,
                topics: found.chain(unknown).collect(),
                error_code: ErrorCode::None.code(),
            }
        }
        Err(code) => refused_group(asked.group_id, code),
    }
}

fn refused_group(group_id: Str, code: ErrorCode) -> OffsetFetchResponseGroup {
    OffsetFetchResponseGroup { group_id, topics: Vec::new(), error_code: code.code() }
}

/// A topic named by an id that nobody knows is answered without the coordinator.
fn known_topic(
    version: i16,
    image: &Image,
    asked: OffsetFetchRequestTopics,
    unknown: &mut Vec<OffsetFetchResponseTopics>,
) -> Option<TopicFetch> {
    let partitions = asked.partition_indexes;
    if version < TOPIC_ID_FROM {
        return Some(TopicFetch { topic: asked.name, topic_id: TopicId::ZERO, partitions });
    }
    if let Some(topic) = image.topic_by_id(asked.topic_id) {
        let (topic, topic_id) = (topic.name.clone(), asked.topic_id);
        return Some(TopicFetch { topic, topic_id, partitions });
    }
    let failed = |partition| {
        let nothing =
            FetchedOffset { partition, offset: -1, leader_epoch: -1, metadata: "".into() };
        position(nothing, ErrorCode::UnknownTopicId)
    };
    unknown.push(OffsetFetchResponseTopics {
        name: "".into(),
        topic_id: asked.topic_id,
        partitions: partitions.into_iter().map(failed).collect(),
    });
    None
}

/// When all topics were asked for by id, one that was deleted since has none to be named by.
fn found_topic(
    image: &Image,
    unstable: &Unstable,
    fetched: FetchedTopic,
    by_id: bool,
) -> Option<OffsetFetchResponseTopics> {
    let mut topic_id = fetched.topic_id;
    if by_id && topic_id == TopicId::ZERO {
        topic_id = image.topic(&fetched.topic)?.id;
    }
    let positions = fetched.partitions.into_iter();
    let positions = positions.map(|position| settled(unstable, &fetched.topic, position));
    Some(OffsetFetchResponseTopics {
        partitions: positions.map(|(fetched, code)| position(fetched, code)).collect(),
        name: fetched.topic,
        topic_id,
    })
}

fn position(fetched: FetchedOffset, code: ErrorCode) -> OffsetFetchResponsePartitions {
    OffsetFetchResponsePartitions {
        partition_index: fetched.partition,
        committed_offset: fetched.offset,
        committed_leader_epoch: fetched.leader_epoch,
        metadata: Some(fetched.metadata),
        error_code: code.code(),
    }
}

#[cfg(test)]
mod tests;
