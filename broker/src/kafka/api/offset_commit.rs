//! OffsetCommit: key 8, v2–v10. Positions of a group; topics by id from v10 on (KIP-516).
//!
//! A topic or partition that does not exist is refused here, the rest decides the coordinator.
//! Source: KIP-211, KIP-320, KIP-345; KafkaApis.handleOffsetCommitRequest.

use std::ops::RangeInclusive;

use duolog_coordinator::error::GroupError;
use duolog_coordinator::group::event::{
    CommitForm, OffsetCommit as Commit, PartitionCommit, TopicCommit, UnknownGroup,
};
use duolog_coordinator::group::response::CommittedTopic;

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
/// First version that answers GROUP_ID_NOT_FOUND, and in which members may name their epochs.
const NOT_FOUND_FROM: i16 = 9;

impl Handler for OffsetCommit {
    type Request = OffsetCommitRequest;
    type Response = OffsetCommitResponse;
    const VERSIONS: RangeInclusive<i16> = 2..=10;

    async fn handle(context: &Context, request: OffsetCommitRequest) -> OffsetCommitResponse {
        let image = context.node.controller.image().clone();
        let mut commits = Vec::with_capacity(request.topics.len());
        let mut topics = Vec::with_capacity(request.topics.len());
        // A topic without partitions is not answered at all, as in Kafka.
        for topic in request.topics.into_iter().filter(|topic| !topic.partitions.is_empty()) {
            let (commit, answer) = check(context.version, &image, topic);
            commits.extend(commit);
            topics.push(answer);
        }
        if !commits.is_empty() {
            let commit = Commit {
                group: request.group_id,
                member: request.member_id,
                instance: request.group_instance_id,
                generation: request.generation_id_or_member_epoch,
                retention_ms: Some(request.retention_time_ms).filter(|ms| *ms >= 0),
                form: if context.version < NOT_FOUND_FROM {
                    CommitForm::Generation
                } else {
                    CommitForm::MemberEpoch
                },
                unknown_group: if context.version < NOT_FOUND_FROM {
                    UnknownGroup::IllegalGeneration
                } else {
                    UnknownGroup::NotFound
                },
                topics: commits,
            };
            let committed =
                context.node.coordinators.commit_offsets(context.client(), commit).await;
            fill(&mut topics, committed);
        }
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

/// What of a topic goes to the coordinator; and its answer, in which the partitions that go there
/// have no error yet.
fn check(
    version: i16,
    image: &Image,
    asked: OffsetCommitRequestTopic,
) -> (Option<TopicCommit>, OffsetCommitResponseTopic) {
    let found = find(version, image, &asked);
    let mut commits = Vec::with_capacity(asked.partitions.len());
    let mut partitions = Vec::with_capacity(asked.partitions.len());
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
        partitions.push(OffsetCommitResponsePartition { partition_index, error_code });
    }
    let commit = found.ok().filter(|_| !commits.is_empty()).map(|topic| TopicCommit {
        topic: topic.name.clone(),
        topic_id: topic.id,
        partitions: commits,
    });
    let answer =
        OffsetCommitResponseTopic { name: asked.name, topic_id: asked.topic_id, partitions };
    (commit, answer)
}

/// Gives each partition without an error the coordinator's word for it; those come in the order
/// asked.
fn fill(
    topics: &mut [OffsetCommitResponseTopic],
    committed: Result<Vec<CommittedTopic>, GroupError>,
) {
    let open = topics.iter_mut().flat_map(|topic| &mut topic.partitions);
    let open = open.filter(|partition| partition.error_code == ErrorCode::None.code());
    match committed {
        Ok(committed) => {
            let results = committed.into_iter().flat_map(|topic| topic.partitions);
            for (partition, result) in open.zip(results) {
                let code = result.error.as_ref().map_or(ErrorCode::None, ErrorCode::from);
                partition.error_code = code.code();
            }
        }
        Err(error) => {
            let error_code = ErrorCode::from(&error).code();
            open.for_each(|partition| partition.error_code = error_code);
        }
    }
}

#[cfg(test)]
mod tests;
