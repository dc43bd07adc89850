//! OffsetCommit: key 8, v2–v10. Positions of a group; topics by id from v10 on (KIP-516).
//!
//! A topic or partition that does not exist is refused here, the rest decides the coordinator.
//! Source: KIP-211, KIP-320, KIP-345; KafkaApis.handleOffsetCommitRequest.

use std::ops::RangeInclusive;

use duolog_coordinator::group::event::{
    Event, OffsetCommit as Commit, PartitionCommit, TopicCommit, UnknownGroup,
};
use duolog_coordinator::group::response::{CommittedTopic, Response};

use super::{Context, Handler};
use crate::controller::image::{Image, Topic};
use crate::kafka::codec::messages::offset_commit_request::OffsetCommitRequestTopic;
use crate::kafka::codec::messages::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use crate::kafka::codec::messages::{OffsetCommitRequest, OffsetCommitResponse};
use crate::kafka::errors::ErrorCode;

/// The API.
pub(super) struct OffsetCommit;

/// First version that names topics by id.
const TOPIC_ID_FROM: i16 = 10;
/// First version that answers GROUP_ID_NOT_FOUND.
const NOT_FOUND_FROM: i16 = 9;

/// A topic of the request: what goes to the coordinator, and what is refused before.
struct Split {
    answer: OffsetCommitResponseTopic,
    commit: Option<TopicCommit>,
}

impl Handler for OffsetCommit {
    type Request = OffsetCommitRequest;
    type Response = OffsetCommitResponse;
    const VERSIONS: RangeInclusive<i16> = 2..=10;

    async fn handle(context: &Context, request: OffsetCommitRequest) -> OffsetCommitResponse {
        let image = context.node.controller.image().clone();
        let mut splits: Vec<Split> =
            request.topics.into_iter().map(|topic| split(context.version, &image, topic)).collect();
        let topics: Vec<TopicCommit> =
            splits.iter_mut().filter_map(|split| split.commit.take()).collect();
        if !topics.is_empty() {
            let group = request.group_id.clone();
            let event = Event::OffsetCommit(Commit {
                group: request.group_id,
                member: request.member_id,
                instance: request.group_instance_id,
                generation: request.generation_id_or_member_epoch,
                retention_ms: Some(request.retention_time_ms).filter(|ms| *ms >= 0),
                unknown_group: if context.version < NOT_FOUND_FROM {
                    UnknownGroup::IllegalGeneration
                } else {
                    UnknownGroup::NotFound
                },
                topics: topics.clone(),
            });
            let committed = match context.node.coordinators.request(&group, event).await {
                Ok(Response::OffsetCommit(committed)) => Ok(committed),
                Ok(_) => Err(ErrorCode::UnknownServerError),
                Err(error) => Err(ErrorCode::from(&error)),
            };
            join(&mut splits, &topics, committed);
        }
        let topics = splits.into_iter().map(|split| split.answer).collect();
        OffsetCommitResponse { topics, ..OffsetCommitResponse::default() }
    }
}

fn find<'a>(
    version: i16,
    image: &'a Image,
    topic: &OffsetCommitRequestTopic,
) -> Result<&'a Topic, ErrorCode> {
    if version >= TOPIC_ID_FROM {
        image.topic_by_id(topic.topic_id).map(|topic| &**topic).ok_or(ErrorCode::UnknownTopicId)
    } else {
        let found = image.topic(&topic.name).map(|topic| &**topic);
        found.ok_or(ErrorCode::UnknownTopicOrPartition)
    }
}

fn split(version: i16, image: &Image, asked: OffsetCommitRequestTopic) -> Split {
    let found = find(version, image, &asked);
    let mut answer = OffsetCommitResponseTopic {
        name: asked.name,
        topic_id: asked.topic_id,
        partitions: Vec::with_capacity(asked.partitions.len()),
    };
    let mut commits = Vec::with_capacity(asked.partitions.len());
    for partition in asked.partitions {
        let partition_index = partition.partition_index;
        let code = match found {
            Ok(topic) if topic.has_partition(partition_index) => {
                commits.push(PartitionCommit {
                    partition: partition_index,
                    offset: partition.committed_offset,
                    leader_epoch: partition.committed_leader_epoch,
                    metadata: partition.committed_metadata,
                });
                ErrorCode::None
            }
            Ok(_) => ErrorCode::UnknownTopicOrPartition,
            Err(code) => code,
        };
        let error_code = code.code();
        answer.partitions.push(OffsetCommitResponsePartition { partition_index, error_code });
    }
    let commit = found.ok().filter(|_| !commits.is_empty()).map(|topic| TopicCommit {
        topic: topic.name.clone(),
        topic_id: if version >= TOPIC_ID_FROM { topic.id } else { Default::default() },
        partitions: commits,
    });
    Split { answer, commit }
}

/// Puts the coordinator's word for each partition in its place.
fn join(
    splits: &mut [Split],
    asked: &[TopicCommit],
    committed: Result<Vec<CommittedTopic>, ErrorCode>,
) {
    let codes = asked.iter().enumerate().map(|(at, topic)| {
        let answered = committed.as_ref().map(|topics| topics.get(at));
        let code = |partition: i32| match answered {
            Err(code) => *code,
            Ok(None) => ErrorCode::UnknownServerError,
            Ok(Some(topic)) => topic
                .partitions
                .iter()
                .find(|result| result.partition == partition)
                .and_then(|result| result.error.as_ref())
                .map_or(ErrorCode::None, ErrorCode::from),
        };
        topic.partitions.iter().map(|one| (one.partition, code(one.partition))).collect::<Vec<_>>()
    });
    let sent = |split: &&mut Split| {
        split.answer.partitions.iter().any(|partition| partition.error_code == 0)
    };
    for (split, codes) in splits.iter_mut().filter(sent).zip(codes) {
        for (partition, code) in codes {
            let places = split.answer.partitions.iter_mut();
            for place in places.filter(|place| place.partition_index == partition) {
                place.error_code = code.code();
            }
        }
    }
}
