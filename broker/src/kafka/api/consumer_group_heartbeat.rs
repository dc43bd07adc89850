//! ConsumerGroupHeartbeat: key 68, v0–v1. A member of a consumer group joins, is alive, says what it
//! wants and has, hears what it may consume, and leaves.
//! Source: KIP-848, KIP-1082; `coordinator::group::kafka::consumer`.

use std::ops::RangeInclusive;

use duolog_coordinator::group::event::{ConsumerGroupHeartbeat as Beat, MemberIdMaker};
use duolog_coordinator::group::response::HeartbeatResponse;

use super::join_group::java_address;
use super::{Context, Handler};
use crate::kafka::codec::messages::consumer_group_heartbeat_response::{
    Assignment, TopicPartitions,
};
use crate::kafka::codec::messages::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse,
};
use crate::kafka::errors::ErrorCode;
use crate::kafka::features::GROUP_VERSION;
use crate::random;

/// The API.
pub(super) struct ConsumerGroupHeartbeat;

/// First version whose members make their ids.
const OWN_ID_FROM: i16 = 1;

impl Handler for ConsumerGroupHeartbeat {
    type Request = ConsumerGroupHeartbeatRequest;
    type Response = ConsumerGroupHeartbeatResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=1;

    async fn handle(
        context: &Context,
        request: ConsumerGroupHeartbeatRequest,
    ) -> ConsumerGroupHeartbeatResponse {
        if GROUP_VERSION.level(&context.node.controller.image()) < 1 {
            let error_code = ErrorCode::UnsupportedVersion.code();
            return ConsumerGroupHeartbeatResponse { error_code, ..Default::default() };
        }
        let Ok(uuid) = random::uuid() else {
            let error_code = ErrorCode::UnknownServerError.code();
            return ConsumerGroupHeartbeatResponse { error_code, ..Default::default() };
        };
        let heartbeat = Beat {
            group: request.group_id,
            member: request.member_id,
            id_maker: if context.version < OWN_ID_FROM {
                MemberIdMaker::Server
            } else {
                MemberIdMaker::Client
            },
            epoch: request.member_epoch,
            instance: request.instance_id,
            rack: request.rack_id,
            rebalance_timeout_ms: Some(request.rebalance_timeout_ms).filter(|ms| *ms != -1),
            topics: request.subscribed_topic_names,
            regex: request.subscribed_topic_regex,
            assignor: request.server_assignor,
            owned: request.topic_partitions.map(|topics| {
                topics.into_iter().map(|topic| (topic.topic_id, topic.partitions)).collect()
            }),
            client_id: context.client_id.clone().unwrap_or_default(),
            client_host: java_address(context.peer.ip()).into(),
            uuid: uuid.0,
        };
        match context.node.coordinators.consumer_group_heartbeat(heartbeat).await {
            Ok(response) => answer(response),
            Err(refusal) => ConsumerGroupHeartbeatResponse {
                error_code: ErrorCode::from(&refusal.error).code(),
                error_message: Some(refusal.text.into()),
                ..ConsumerGroupHeartbeatResponse::default()
            },
        }
    }
}

fn answer(response: HeartbeatResponse) -> ConsumerGroupHeartbeatResponse {
    let assignment = response.assignment.map(|topics| Assignment {
        topic_partitions: topics
            .into_iter()
            .map(|(topic_id, partitions)| TopicPartitions {
                topic_id,
                partitions: partitions.into_iter().collect(),
            })
            .collect(),
    });
    ConsumerGroupHeartbeatResponse {
        member_id: Some(response.member),
        member_epoch: response.epoch,
        heartbeat_interval_ms: response.heartbeat_interval_ms,
        assignment,
        ..ConsumerGroupHeartbeatResponse::default()
    }
}
