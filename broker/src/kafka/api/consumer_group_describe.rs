//! ConsumerGroupDescribe: key 69, v0–v1. State, members, assignments and targets of consumer groups.
//! Source: KIP-848, KIP-1099; ConsumerGroup.asDescribedGroup.

use std::ops::RangeInclusive;
use std::sync::Arc;

use duolog_coordinator::group::response::{DescribedConsumer, DescribedConsumerGroup};
use duolog_coordinator::record::consumer::Assignment as Partitions;

use super::{Context, Handler};
use crate::controller::image::Image;
use crate::kafka::codec::Str;
use crate::kafka::codec::messages::consumer_group_describe_response::{
    Assignment, DescribedGroup, Member, TopicPartitions,
};
use crate::kafka::codec::messages::{ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse};
use crate::kafka::errors::ErrorCode;
use crate::kafka::features::GROUP_VERSION;
use crate::kafka::operations;

/// The API.
pub(super) struct ConsumerGroupDescribe;

/// `MemberType` of a member that speaks the classic protocol, and of any other.
const CLASSIC: i8 = 0;
const CONSUMER: i8 = 1;

impl Handler for ConsumerGroupDescribe {
    type Request = ConsumerGroupDescribeRequest;
    type Response = ConsumerGroupDescribeResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=1;

    async fn handle(
        context: &Context,
        request: ConsumerGroupDescribeRequest,
    ) -> ConsumerGroupDescribeResponse {
        let mut groups = Vec::with_capacity(request.group_ids.len());
        for group in request.group_ids {
            let mut described = describe(context, group).await;
            let is_described = described.error_code == ErrorCode::None.code();
            described.authorized_operations =
                if request.include_authorized_operations && is_described {
                    operations::GROUP
                } else {
                    operations::NOT_ASKED
                };
            groups.push(described);
        }
        ConsumerGroupDescribeResponse { groups, ..ConsumerGroupDescribeResponse::default() }
    }
}

async fn describe(context: &Context, group: Str) -> DescribedGroup {
    if GROUP_VERSION.level(&context.node.controller.image()) < 1 {
        return refused(group, ErrorCode::UnsupportedVersion, None);
    }
    if group.is_empty() {
        return refused(group, ErrorCode::InvalidGroupId, None);
    }
    match context.node.coordinators.describe_consumer_group(group.clone()).await {
        Ok(described) => answer(&context.node.controller.image(), group, described),
        Err(refusal) => refused(group, ErrorCode::from(&refusal.error), Some(refusal.text.into())),
    }
}

fn refused(group_id: Str, code: ErrorCode, error_message: Option<Str>) -> DescribedGroup {
    DescribedGroup { error_code: code.code(), error_message, group_id, ..DescribedGroup::default() }
}

fn answer(image: &Image, group_id: Str, described: DescribedConsumerGroup) -> DescribedGroup {
    DescribedGroup {
        group_id,
        group_state: described.state.name().into(),
        group_epoch: described.epoch,
        assignment_epoch: described.target_epoch,
        assignor_name: described.assignor,
        members: described
            .members
            .into_iter()
            .map(|member| answer_member(image, &member))
            .collect(),
        ..DescribedGroup::default()
    }
}

fn answer_member(image: &Image, described: &DescribedConsumer) -> Member {
    let (metadata, current) = (&described.member.metadata, &described.member.current);
    Member {
        member_id: described.id.clone(),
        instance_id: metadata.instance.clone(),
        rack_id: metadata.rack.clone(),
        member_epoch: current.epoch,
        client_id: metadata.client_id.clone(),
        client_host: metadata.client_host.clone(),
        subscribed_topic_names: metadata.topics.iter().cloned().collect(),
        subscribed_topic_regex: Some(metadata.regex.clone()),
        assignment: assignment(image, &described.member.owned()),
        target_assignment: assignment(image, &described.target),
        member_type: if described.member.is_classic() { CLASSIC } else { CONSUMER },
    }
}

/// Topics that are gone have no name to be told by.
fn assignment(image: &Image, topics: &Partitions) -> Assignment {
    let named = topics.iter().filter_map(|(&topic_id, of)| {
        let topic_name = Arc::clone(&image.topic_by_id(topic_id)?.name);
        let partitions = of.iter().copied().collect();
        Some(TopicPartitions { topic_id, topic_name, partitions })
    });
    Assignment { topic_partitions: named.collect() }
}
